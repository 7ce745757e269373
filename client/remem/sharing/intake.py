"""Intake: how accepted files get into a memory (PROTOCOL.md, section 7).

Files are judged and staged beside their place while others are still being verified, and written some at a time:
bytes, rows and what they do to the mind, in one transaction. There the newest is decided once more, so that two
processes that pull at once end with the same. The bytes are renamed into place inside the transaction; a process
that dies in between leaves bytes that are newer than their row, and the next intake takes those in first.

The budget bounds what newcomers bring. Files of trusted revokers and of followed keys, and updates of held keys,
always come in: what strangers fill must not keep a revocation out. Where a newcomer that counts under the policy has
no room, files of keys that do not count make it, those first that came first.
"""

from __future__ import annotations

import sqlite3
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import IntEnum
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from remem.commons.folder import flush_folder, read_file, stage_file, sweep
from remem.judging import judgement_name
from remem.memory import eviction, holdings, items, places
from remem.memory.holdings import Arrival, Holding, Skipped
from remem.memory.store import transaction
from remem.protocol import OriginFile, ProtocolError, Seal, Verdict, Verified, Version, accept, newest, parse_record
from remem.sharing.files import END_OF_TIME, damaged, mark_received, path_of, read_held, verified_lines, writing
from remem.sharing.mind import Mind
from remem.sharing.reports import Notice, TakenFile

BATCH_FILES: Final = 64
SKIPPED_SHOWN: Final = 1_000
WRITERS: Final = 2


@dataclass(slots=True)
class Tally:
    """What came in; see `PullReport`."""

    taken: list[TakenFile] = field(default_factory=list)
    current: int = 0
    skipped: list[Skipped] = field(default_factory=list)
    skipped_count: int = 0
    evicted: int = 0
    notices: list[Notice] = field(default_factory=list)

    @property
    def told(self) -> list[Notice]:
        """The notices, with the one about what made room."""
        if not self.evicted:
            return self.notices
        text = f"{self.evicted} files of keys that no commons admits made room: budget_bytes in config.toml is used up"
        return [*self.notices, Notice("evicted", text)]


class Rank(IntEnum):
    """Whose file it is, in the order in which files come in."""

    REVOKER = 0
    FOLLOWED = 1
    HELD = 2
    ADMITTED = 3
    OTHER = 4


class Intake:
    """The files of others, and how more of them come in."""

    def __init__(self, folder: Path, db: sqlite3.Connection, mind: Mind, *, budget: int, now: datetime) -> None:
        self.folder = folder
        self.db = db
        self.mind = mind
        self.budget = budget
        self.now = now
        self.held = {key: held for key, held in holdings.holdings(db).items() if key != mind.key}
        self.size = sum(held.size for held in self.held.values())
        self.broken, self._strays = damaged(folder, self.held)
        self.tally = Tally()
        self._evictable: dict[str, None] | None = None
        self._batch: dict[str, tuple[Arrival, Future[Path]]] = {}
        self._writers = ThreadPoolExecutor(WRITERS, thread_name_prefix="remem-write")

    def __enter__(self) -> Self:
        sweep(self.folder)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._writers.shutdown()
        for _arrival, future in self._batch.values():
            _discard(future)

    def version(self, key: str) -> Version | None:
        """Return which file of a key is held."""
        held = self.held.get(key)
        return None if held is None else held.version

    def rank(self, key: str) -> Rank:
        """Tell where a key's file stands in the order."""
        policy = self.mind.reader.policy
        if key in policy.revokers:
            return Rank.REVOKER
        if key in policy.followed:
            return Rank.FOLLOWED
        if key in self.held:
            return Rank.HELD
        return Rank.OTHER if policy.principal(key) is None else Rank.ADMITTED

    def may_fit(self, key: str, size: int = 1) -> bool:
        """Tell whether a key's file of a size, or of whatever size, could have room, so that it is worth fetching."""
        rank = self.rank(key)
        return rank <= Rank.HELD or self.size + size <= self.budget or (rank is Rank.ADMITTED and bool(self._carried()))

    def verified(self, key: str) -> tuple[Verified | None, str | None]:
        """Return the lines of a key that need no second verification, and the digest of the file they are of."""
        held = None if key in self.broken else self.held.get(key)
        known = verified_lines(self.folder, held)
        return known, None if known is None or held is None else held.version.digest

    def add(self, file: OriginFile, source: str, beside: str | None = None) -> bool:
        """Put an accepted file among those to be written; false where it has no room.

        Args:
            file: the file.
            source: where it came from.
            beside: the digest of the held file whose lines were not verified again, as `verified` gave it.
        """
        key = file.key.hex
        before = self.held.get(key)
        grown = len(file.data) - (0 if before is None else before.size)
        if not self._has_room(key, grown):
            return False
        if key in self._batch:
            self.write()
        self.size += grown
        staged = self._writers.submit(stage_file, self.folder, key, file.data)
        self._batch[key] = holdings.judged(file, source, beside), staged
        if len(self._batch) >= BATCH_FILES:
            self.write()
        return True

    def _has_room(self, key: str, grown: int) -> bool:
        rank = self.rank(key)
        if rank <= Rank.HELD or self.size + grown <= self.budget:
            return True
        return rank is Rank.ADMITTED and self._make_room(self.size + grown - self.budget)

    def _carried(self) -> dict[str, None]:
        """Return the keys that neither count nor are trusted, those first that came first; worked out once."""
        if self._evictable is None:
            policy = self.mind.reader.policy
            ordered = sorted(self.held.values(), key=lambda held: (held.received, held.id))
            free = (held.key for held in ordered if held.key not in policy.revokers)
            self._evictable = dict.fromkeys(key for key in free if policy.principal(key) is None)
        return self._evictable

    def _make_room(self, needed: int) -> bool:
        """Evict files of keys that do not count, the oldest first, until so many bytes are free; or none."""
        carried = self._carried()
        if any(key in carried for key in self._batch):
            self.write()
        gone: list[str] = []
        for key in carried:
            if needed <= 0:
                break
            gone.append(key)
            needed -= self.held[key].size
        if needed > 0:
            return False
        with transaction(self.db):
            self.mind.let_go(eviction.evict(self.db, gone), self.now)
        # The rows first: bytes that have none are taken in again by the next intake, if there is room.
        for key in gone:
            path_of(self.folder, key).unlink(missing_ok=True)
            self.size -= self.held.pop(key).size
            del carried[key]
        self.tally.evicted += len(gone)
        return True

    def write(self) -> None:
        """Write the files that wait, all or none."""
        batch, self._batch = self._batch, {}
        if not batch:
            return
        verdicts: list[tuple[Arrival, Verdict]] = []
        try:
            with writing(self.folder):
                staged = {key: future.result() for key, (_arrival, future) in batch.items()}
                with transaction(self.db):
                    for key, (arrival, _future) in batch.items():
                        verdicts.append((arrival, self._place(key, arrival.file, staged[key])))
                    flush_folder(self.folder)
                    winners = [arrival for arrival, verdict in verdicts if verdict.takes]
                    self.mind.take_in(holdings.take(self.db, winners, self.now), self.now)
        finally:
            for _arrival, future in batch.values():
                _discard(future)
        for arrival, verdict in verdicts:
            self._count(arrival, verdict)

    def judge_again(self) -> None:
        """Judge all that is held anew, where other rules of judgement did it: those of an earlier release."""
        name = judgement_name()
        if holdings.judged_by(self.db) == name:
            return
        keys = sorted(self.held)
        # Some files at a time: another process must not wait for all of them. A second round does no harm.
        for start in range(0, len(keys), BATCH_FILES):
            with transaction(self.db):
                for key in keys[start : start + BATCH_FILES]:
                    self._judge_again(key)
        with transaction(self.db):
            self.mind.judge_again(self.now)
            holdings.note_judgement(self.db, name)

    def _judge_again(self, key: str) -> None:
        held = holdings.holding(self.db, key)
        data = None if held is None else read_held(self.folder, held)
        if held is not None and data is not None:
            file = accept(data, now=END_OF_TIME, verified=verified_lines(self.folder, held))
            again = holdings.judged(replace(file, fresh=file.records), held.source)
            self.mind.take_in(holdings.take(self.db, [again], held.received), self.now)

    def mend(self) -> None:
        """Take in bytes that a process left behind before it could write their rows."""
        for key in sorted(self.broken | self._strays - {self.mind.key}):
            data = read_file(path_of(self.folder, key))
            if data is None:
                continue
            try:
                file = accept(data, now=self.now)
            except ProtocolError:
                continue
            if file.key.hex == key and newest(self.version(key), file.version).takes:
                self.add(file, self.held[key].source if key in self.held else str(self.folder))
        self.write()

    def _place(self, key: str, file: OriginFile, staged: Path) -> Verdict:
        """Decide what the file is beside the one that is held now, and put its bytes in their place if they win."""
        held = holdings.holding(self.db, key)
        verdict = newest(None if held is None else held.version, file.version)
        if verdict.equivocation and held is not None and file.seal is not None:
            self._prove(held, file.seal)
        if verdict.takes or (verdict is Verdict.UNCHANGED and key in self.broken):
            mark_received(staged, self.now if verdict.takes or held is None else held.received)
            staged.replace(path_of(self.folder, key))
            if not verdict.takes and file.seal is not None:
                items.find_again(self.db, file.seal, file.digest, self.now)
        return verdict

    def _prove(self, held: Holding, other: Seal) -> None:
        data = read_held(self.folder, held)
        seal = None if data is None else parse_record(data.partition(b"\n")[0])
        if isinstance(seal, Seal):
            places.note_equivocation(self.db, seal, other, self.now)
            text = f"key {held.key} sealed two files with number {other.number}: its owner did, or someone has the key"
            self.tally.notices.append(Notice("equivocation", text))

    def _count(self, arrival: Arrival, verdict: Verdict) -> None:
        tally, file, key = self.tally, arrival.file, arrival.file.key.hex
        restored = verdict is Verdict.UNCHANGED and key in self.broken
        if not (verdict.takes or restored):
            tally.current += 1
            return
        outcome = "restored" if restored else verdict.value
        tally.taken.append(TakenFile(key, outcome, file.version.seal, len(file.lines)))
        if not restored:
            tally.skipped += arrival.skipped[: SKIPPED_SHOWN - len(tally.skipped)]
            tally.skipped_count += len(arrival.skipped)
        self.broken -= {key}
        if (held := holdings.holding(self.db, key)) is not None:
            self.held[key] = held


def _discard(staged: Future[Path]) -> None:
    """Remove staged bytes that were not put in their place."""
    if staged.exception() is None:
        staged.result().unlink(missing_ok=True)
