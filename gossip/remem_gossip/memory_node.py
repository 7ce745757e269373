"""A memory as a node: what it hands out, and how what comes gets into its mind (DESIGN section 5).

A memory holds its own file, then those of the keys that its owner trusts, then those of admitted keys and, where there
is room, of others, up to its budget of bytes: `remem.sharing.intake` decides, as it does for a pull.

- Nobody but this memory itself writes its own file. A file of its key that it did not make is a notice: its owner
  takes it over, or learns that somebody has the key.
- A proof about a key of which it holds no file is of no use before one comes. All these together take no more than a
  sixteenth of the budget, beside the files. One that has no room is not fetched again before such a file comes.
- What came from private places alone is not handed on (`remem.memory.places`): it counts as held, and is blocked for
  whoever asks.
- What has lost its bytes is no item until they are back, so that peers bring them.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from datetime import datetime
from random import Random
from typing import Final

from remem.memory import holdings, items, ledger, places, records
from remem.memory.home import Home
from remem.memory.store import transaction
from remem.protocol import RULES, Deferred, OriginFile, ProtocolError, Seal, Verdict, Version, accept, newest
from remem.protocol.items import proof_item
from remem.sharing.files import read_held
from remem.sharing.intake import Intake, Rank, Tally
from remem.sharing.mind import Effects, Mind
from remem.sharing.reports import Notice
from remem_gossip.addresses import Allowed, read_url
from remem_gossip.budget import Allowance
from remem_gossip.errors import GossipError
from remem_gossip.parts import Blocked, Head, Missing, Outcome, Part, Proof, Whole
from remem_gossip.parts import Verdict as Said
from remem_gossip.reconcile import Storage
from remem_gossip.taking import Taken, outcome_of, take_parts

OWN_FILE: Final = "own_file"
NO_ROOM: Final = "no_room"

_LOOSE_PROOFS_PART: Final = 16
_PRIVATE: Final = "it came from a private place, and is not handed on"
_ANY: Final = Allowed(http=True, private=True)


class MemoryNode:
    """A memory that takes part in exchanges; `open_memory` makes one."""

    def __init__(self, db: sqlite3.Connection, intake: Intake, random: Random) -> None:
        self._db = db
        self._intake = intake
        self._random = random
        self._key = intake.mind.key
        self._waiting: set[str] = set()
        self._unwanted: dict[bytes, str] = {}
        self._notices: dict[object, Notice] = {}
        self._strangers = 0
        self._loose: int | None = None

    @property
    def tally(self) -> Tally:
        """What came in so far."""
        return self._intake.tally

    @property
    def notices(self) -> tuple[Notice, ...]:
        """What the owner should look into."""
        return (*self._notices.values(), *self._intake.tally.told)

    @property
    def effects(self) -> Effects:
        """What it did to the mind."""
        return self._intake.mind.effects

    @property
    def is_full(self) -> bool:
        """Whether there may be a file of a newcomer that has no room."""
        return self._intake.size + RULES.file_bytes > self._intake.budget

    # --- Node ---

    def items(self) -> AbstractContextManager[Storage]:
        """Open the items that are held, as they are at one moment."""
        return items.opened(self._db)

    def own(self) -> bytes | None:
        """Return the id of this memory's own file; None where it has none."""
        held = holdings.holding(self._db, self._key)
        item = None if held is None else held.item
        return None if item is None else item.id

    def parts(self, ids: Sequence[bytes]) -> Iterator[Part]:
        """Hand out what these items name, in their order."""
        private = self._private_sources()
        return (self._part(id_, private) for id_ in ids)

    def heads(self, ids: Sequence[bytes]) -> Iterator[Head]:
        """Say which files these items name; what is no file that is here is left out."""
        private = self._private_sources()
        for id_ in ids:
            held = holdings.holding_of(self._db, id_)
            if held is not None and held.version.seal is not None and held.source not in private:
                yield Head(id_, held.key, held.version.seal, held.size)

    def wanted(self, heads: Iterable[Head], newcomers: int) -> list[bytes]:
        """Choose among files that a peer says it has: trusted keys, updates, admitted newcomers, others at random."""
        found = [head for head in heads if self._is_newer(head)]
        self._random.shuffle(found)
        found.sort(key=lambda head: self._rank(head.key))
        chosen: list[bytes] = []
        planned = 0
        for head in found:
            rank = self._rank(head.key)
            if rank > Rank.HELD:
                if not self._intake.may_fit(head.key, planned + head.size):
                    continue
                if not newcomers:
                    continue
                newcomers -= 1
                planned += head.size
            chosen.append(head.id)
        return chosen

    def take(self, parts: Sequence[Whole | Proof], source: str, allowance: Allowance) -> list[Said]:
        """Take in what a peer sent, as far as its allowance goes; what stands is stored when this returns."""
        verdicts = take_parts(self, parts, source, allowance)
        self._write()
        return verdicts

    # --- Shelf ---

    def standing(self, key: str) -> Version | None:
        """Return the version that stands of a key; None of one that never came."""
        if key in self._waiting:
            self._write()
        if key == self._key:
            held = holdings.holding(self._db, key)
            return None if held is None else held.version
        return None if key in self._intake.broken else self._intake.version(key)

    def is_blocked(self, key: str) -> bool:
        """Tell whether this memory keeps no file of a key: it has no such choice."""
        del key
        return False

    def settled(self, ids: Collection[bytes]) -> set[bytes]:
        """Return those of these items that were refused or superseded before."""
        return ledger.settled(self._db, ids).keys() | (self._unwanted.keys() & set(ids))

    def settle(self, id_: bytes, code: str | None) -> None:
        """Remember an item that is not wanted again."""
        self._unwanted[id_] = code or ledger.SUPERSEDED

    def take_file(self, data: bytes, key: str, source: str) -> Taken:
        """Accept a file and put it among those that are about to be written."""
        if key == self._key:
            return self._look_at_own(data, source)
        verified, beside = self._intake.verified(key)
        known = 0 if verified is None else len(verified.topics)
        try:
            file = accept(data, now=self._intake.now, verified=verified)
        except Deferred as error:
            return Taken(Outcome.DEFERRED, error.code, data.count(b"\n"))
        except ProtocolError as error:
            return Taken(Outcome.REFUSED, error.code, max(1, data.count(b"\n") - known))
        return self._add(file, source, beside)

    def has_proof(self, key: str) -> bool:
        """Tell whether it is proven here that a key spoke twice."""
        return places.proof_of(self._db, proof_item(key).id) is not None

    def take_proof(self, first: Seal, second: Seal) -> str | None:
        """Keep two seals that prove that their key spoke twice; return why they can not be kept now."""
        key = first.key.hex
        is_loose = self._rank(key) > Rank.HELD
        if is_loose and not self._has_room_for(len(first.line) + len(second.line)):
            return NO_ROOM
        with transaction(self._db):
            places.note_equivocation(self._db, first, second, self._intake.now)
        if is_loose:
            self._strangers += 1
            text = f"keys that sealed two files with one number, and of which no file is held here: {self._strangers}"
        else:
            text = f"key {key} sealed two files with number {first.number}: its owner did, or someone has the key"
        self._notices["strangers" if is_loose else key] = Notice("equivocation", text)
        return None

    def _has_room_for(self, size: int) -> bool:
        """Tell whether one more proof about a key without a file has room, and give it that."""
        if self._loose is None:
            self._loose = places.size_of_loose_proofs(self._db)
        if self._loose + size > self._intake.budget // _LOOSE_PROOFS_PART:
            return False
        self._loose += size
        return True

    def _look_at_own(self, data: bytes, source: str) -> Taken:
        """Look at a file of this memory's own key, which is not the one that it made last."""
        lines = data.count(b"\n")
        try:
            file = accept(data, now=self._intake.now)
        except Deferred as error:
            return Taken(Outcome.DEFERRED, error.code, lines)
        except ProtocolError as error:
            return Taken(Outcome.REFUSED, error.code, lines)
        if file.version not in records.own_seals(self._db):
            text = (
                f"{source} holds a file of this memory's own key, seal {file.version.seal}, that this memory did not"
                f" make: after a restore or with a second machine, remem share {source} --adopt takes it over; else"
                " someone has your key"
            )
            self._notices.setdefault(file.version, Notice("foreign_seal", text))
        return Taken(Outcome.DEFERRED, OWN_FILE, lines)

    def _add(self, file: OriginFile, source: str, beside: str | None) -> Taken:
        key, checks = file.key.hex, len(file.fresh) + 1
        verdict = newest(self._intake.version(key), file.version)
        if not self._intake.add(file, source, beside):
            return Taken(Outcome.DEFERRED, NO_ROOM, checks)
        self._waiting.add(key)
        code = Verdict.EQUIVOCATION_LEFT.value if verdict is Verdict.EQUIVOCATION_LEFT else None
        return Taken(outcome_of(verdict), code, checks)

    def _write(self) -> None:
        self._intake.write()
        self._waiting.clear()
        if self._unwanted:
            unwanted, self._unwanted = self._unwanted, {}
            with transaction(self._db):
                for id_, code in unwanted.items():
                    ledger.note(self._db, [id_], code, self._intake.now)

    def _private_sources(self) -> frozenset[str]:
        found = set(places.private_sources(self._db))
        for one in tuple(found):
            # What came by an exchange came from the same place, under its address as a peer.
            with suppress(GossipError):
                found.add(str(read_url(one, _ANY)))
        return frozenset(found)

    def _part(self, id_: bytes, private: frozenset[str]) -> Part:
        held = holdings.holding_of(self._db, id_)
        if held is not None and held.source in private:
            return Blocked(id_, _PRIVATE)
        if held is not None:
            data = read_held(self._intake.folder, held)
            return Missing(id_) if data is None else Whole(id_, data)
        proof = places.proof_of(self._db, id_)
        return Missing(id_) if proof is None else Proof(id_, (proof.first, proof.second))

    def _rank(self, key: str) -> int:
        """Tell where a key's file stands in the order; this memory's own comes first."""
        return -1 if key == self._key else self._intake.rank(key)

    def _is_newer(self, head: Head) -> bool:
        held = self.standing(head.key)
        return held is None or held.seal is None or head.seal >= held.seal


@contextmanager
def open_memory(home: Home, db: sqlite3.Connection, *, now: datetime, random: Random) -> Iterator[MemoryNode]:
    """Open a memory as a node.

    Args:
        home: the memory's home.
        db: its database, with no transaction open.
        now: the clock, with a zone.
        random: chooses among equals.
    """
    config = home.config()
    mind = Mind(db, home.signing_key().public.hex, config)
    with Intake(home.commons_path, db, mind, budget=config.budget_bytes, now=now) as intake:
        intake.judge_again()
        intake.mend()
        with transaction(db):
            items.lose(db, intake.broken)
            ledger.prune(db, now)
        yield MemoryNode(db, intake, random)
