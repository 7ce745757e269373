"""How what a peer sent comes in, whatever the node keeps it in (PROTOCOL.md, sections 6, 7 and 16).

1. What a file claims about itself is read from its first line, leniently, since acceptance follows: a version that is
   held, that was refused or superseded before, or that is older than what stands, goes no further.
2. What goes on is charged to whoever sent it. A file that goes beyond an allowance is the last; of newcomers, none is
   taken beyond it, and updates still are. What is not taken now is deferred, and may come again another night. A proof
   about a key that never came here is a newcomer too, kept or not: keys are free, and so are two seals of one.
3. The file is then accepted as if it had been put here by a stranger; only that decides.
4. What is not wanted is remembered by the item's id, which names those bytes and no others, and each such memory is
   charged as a check, so that nobody fills a ledger for nothing. A file that only the clock is against may come again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, NamedTuple, Protocol

from remem.protocol import RULES, ProtocolError, Seal, Verdict, Version, digest_of, newest, parse_record
from remem.protocol.items import item_of, proof_item
from remem_gossip.budget import Allowance
from remem_gossip.parts import NO_ID, Outcome, Proof, Whole
from remem_gossip.parts import Verdict as Said

OVER_BUDGET: Final = "over_budget"
BLOCKED: Final = "blocked"
NOT_SEALED: Final = "gossip_unsealed"
NO_PROOF: Final = "gossip_proof"
REFUSED_BEFORE: Final = "refused_before"

_KEY: Final = re.compile(r"[0-9a-f]{64}")
# An id does not depend on the time.
_ANY_TIME: Final = datetime(1970, 1, 1, tzinfo=UTC)
_OUTCOMES: Final = {
    Verdict.NEW: Outcome.NEW,
    Verdict.NEWER: Outcome.NEWER,
    Verdict.UNCHANGED: Outcome.KNOWN,
    Verdict.OLDER: Outcome.OLDER,
    Verdict.EQUIVOCATION_TAKEN: Outcome.NEWER,
    Verdict.EQUIVOCATION_LEFT: Outcome.OLDER,
}


@dataclass(frozen=True, slots=True)
class Taken:
    """What became of a file at the door of a store.

    Attributes:
        outcome: what became of it.
        code: why it was refused or deferred.
        checks: how many signatures were verified.
    """

    outcome: Outcome
    code: str | None = None
    checks: int = 0


class Shelf(Protocol):
    """Where a node keeps files, and what it does not want."""

    def standing(self, key: str) -> Version | None:
        """Return the version that stands of a key; None of one that never came."""
        ...

    def is_blocked(self, key: str) -> bool:
        """Tell whether this node keeps no file of a key."""
        ...

    def settled(self, ids: Collection[bytes]) -> set[bytes]:
        """Return those of these items that were refused or superseded before."""
        ...

    def settle(self, id_: bytes, code: str | None) -> None:
        """Remember an item that is not wanted again: refused with a code, or superseded."""
        ...

    def take_file(self, data: bytes, key: str, source: str) -> Taken:
        """Accept a file, which says that it is of this key, and store it where it is the newest of it."""
        ...

    def has_proof(self, key: str) -> bool:
        """Tell whether it is proven here that a key spoke twice."""
        ...

    def take_proof(self, first: Seal, second: Seal) -> str | None:
        """Keep two seals, both verified, that prove that their key spoke twice; return why they can not be kept now."""
        ...


class Claim(NamedTuple):
    """What a sealed file says that it is; nothing of it is verified."""

    key: str
    version: Version
    id: bytes


def claim_of(data: bytes) -> Claim | None:
    """Read what a file says that it is; None where its first line is no seal."""
    named = _named(data[: RULES.line_bytes + 1].partition(b"\n")[0])
    if named is None:
        return None
    (key, number), digest = named, digest_of(data)
    return Claim(key, Version(number, digest), item_of(key, _ANY_TIME, digest).id)


def outcome_of(verdict: Verdict) -> Outcome:
    """Say of a decision between two versions what became of the one that was offered."""
    return _OUTCOMES[verdict]


def take_parts(shelf: Shelf, parts: Sequence[Whole | Proof], source: str, allowance: Allowance) -> list[Said]:
    """Take in what came, and return a verdict for each, in their order."""
    return [
        _take_file(shelf, part, source, allowance) if isinstance(part, Whole) else _take_proof(shelf, part, allowance)
        for part in parts
    ]


def _take_file(shelf: Shelf, part: Whole, source: str, allowance: Allowance) -> Said:
    claim = claim_of(part.data)
    if claim is None:
        return _unwanted(shelf, part.id, Outcome.REFUSED, NOT_SEALED, allowance)
    id_, held = claim.id, shelf.standing(claim.key)
    verdict = newest(held, claim.version)
    if verdict is Verdict.UNCHANGED:
        return Said(id_, Outcome.KNOWN)
    if id_ in shelf.settled([id_]):
        return Said(id_, Outcome.OLDER) if verdict is Verdict.OLDER else Said(id_, Outcome.REFUSED, REFUSED_BEFORE)
    if not allowance.is_open:
        return Said(id_, Outcome.DEFERRED, OVER_BUDGET)
    if shelf.is_blocked(claim.key):
        return _unwanted(shelf, id_, Outcome.REFUSED, BLOCKED, allowance)
    if verdict is Verdict.OLDER:
        return _unwanted(shelf, id_, Outcome.OLDER, None, allowance)
    if held is None and not allowance.origins:
        return Said(id_, Outcome.DEFERRED, OVER_BUDGET)
    taken = shelf.take_file(part.data, claim.key, source)
    allowance.charge(checks=taken.checks, origins=int(held is None and taken.outcome.stands))
    if taken.outcome in (Outcome.REFUSED, Outcome.OLDER):
        shelf.settle(id_, taken.code if taken.outcome is Outcome.REFUSED else None)
    return Said(id_, taken.outcome, taken.code)


def _unwanted(shelf: Shelf, id_: bytes, outcome: Outcome, code: str | None, allowance: Allowance) -> Said:
    allowance.charge(checks=1)
    shelf.settle(id_, code)
    return Said(id_, outcome, code)


def _take_proof(shelf: Shelf, part: Proof, allowance: Allowance) -> Said:
    named = _named(part.seals[0])
    if named is None:
        return Said(NO_ID, Outcome.REFUSED, NO_PROOF)
    key, _ = named
    id_ = proof_item(key).id
    if shelf.has_proof(key):
        return Said(id_, Outcome.KNOWN)
    if id_ in shelf.settled([id_]):
        return Said(id_, Outcome.REFUSED, REFUSED_BEFORE)
    is_newcomer = shelf.standing(key) is None
    if not allowance.is_open or (is_newcomer and not allowance.origins):
        return Said(id_, Outcome.DEFERRED, OVER_BUDGET)
    first, second = map(_seal, part.seals)
    allowance.charge(checks=len(part.seals))
    if first is None or second is None or not _proves(first, second):
        return Said(NO_ID, Outcome.REFUSED, NO_PROOF)
    allowance.charge(origins=int(is_newcomer))
    code = shelf.take_proof(first, second)
    if code is None:
        return Said(id_, Outcome.NEW)
    shelf.settle(id_, code)
    return Said(id_, Outcome.DEFERRED, code)


def _named(line: bytes) -> tuple[str, int] | None:
    """Read which key and number a line says that it seals, fast: acceptance finds out whether it is a line at all."""
    try:
        fields = json.loads(line.decode())
    except (ValueError, RecursionError):
        return None
    if not isinstance(fields, Mapping):
        return None
    key, number = fields.get("key"), fields.get("seal")
    if not isinstance(key, str) or not _KEY.fullmatch(key) or type(number) is not int:
        return None
    return key, number


def _seal(line: bytes) -> Seal | None:
    try:
        record = parse_record(line)
    except ProtocolError:
        return None
    return record if isinstance(record, Seal) else None


def _proves(first: Seal, second: Seal) -> bool:
    return first.key == second.key and first.number == second.number and first.line != second.line
