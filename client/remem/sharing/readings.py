"""What this memory makes of the lessons it holds evidence about (PROTOCOL.md, section 9).

A reading is worked out anew from the held files each time it is asked for, under this memory's own policy; only
what the memory has said itself and not yet shared is added, so that the owner's word holds at once. The owner's
own key is followed and obeyed.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from remem.memory import holdings, places, records, trust
from remem.memory.config import Config
from remem.protocol import Cause, Evidence, Policy, Reading, Statement, lesson_state

_CHUNK: Final = 2_000


@dataclass(frozen=True, slots=True)
class Reader:
    """A policy, and all that bears on every lesson alike: read once, used for many.

    Attributes:
        key: the memory's own key.
        policy: its thresholds and trust.
        denials: every denial that it holds, its own too.
        obeyed: those of them that its revokers say; the others change nothing.
        own: what it says in its own file, or will say there, by subject.
    """

    key: str
    policy: Policy
    denials: tuple[Statement, ...]
    obeyed: tuple[Statement, ...]
    own: dict[str, tuple[Statement, ...]]

    @property
    def denied(self) -> frozenset[str]:
        """The keys of which nothing counts."""
        return frozenset(denial.subject for denial in self.obeyed)

    @property
    def revoked(self) -> frozenset[str]:
        """The lessons that this memory revokes itself."""
        return frozenset(subject for subject, said in self.own.items() if any(one.type == "revoke" for one in said))

    def readings(self, db: sqlite3.Connection, hashes: Collection[str], now: datetime) -> dict[str, Reading]:
        """Work out what each of these lessons is worth."""
        return {
            lesson: lesson_state(self.evidence(lesson, said), self.policy, now)
            for lesson, said in holdings.evidence_about(db, hashes).items()
        }

    def why(self, reading: Reading) -> str:
        """Say which rule gave a state, in the words of this memory about itself."""
        if self.key not in reading.revokers or reading.cause is Cause.QUORUM:
            return reading.why
        others = ", ".join(key[:16] for key in reading.revokers if key != self.key)
        by = f"this memory and by {others}" if others else "this memory"
        if reading.cause is Cause.REVOKER:
            return f"revoked by {by}, whom it trusts as a revoker" if others else f"revoked by {by}"
        return f"no publication stands, and it is revoked by {by}"

    def evidence(self, lesson: str, said: Collection[Statement]) -> Evidence:
        """Gather what is said about a lesson, by others and by this memory."""
        return Evidence(lesson, (*said, *self.own.get(lesson, ())), self.obeyed)


def reader(db: sqlite3.Connection, key: str, config: Config) -> Reader:
    """Read this memory's policy.

    Args:
        db: the memory.
        key: its own key.
        config: its thresholds.
    """
    own: dict[str, tuple[Statement, ...]] = {}
    revokers = trust.trusted(db, "revoker") | {key}
    denials = list(holdings.denials(db))
    for record in records.own_records(db):
        said = Statement(key, record.type, record.subject, record.at, None, record.reason)
        if record.type == "deny":
            denials.append(said)
        else:
            own[record.subject] = (*own.get(record.subject, ()), said)
    policy = Policy(
        confirmations=config.confirmations,
        window=timedelta(days=config.window_days),
        open=config.open,
        followed=trust.trusted(db, "follow") | {key},
        admitted=places.admissions(db),
        revokers=revokers,
    )
    # Anyone may deny anyone, and every reading looks through all that it is given.
    obeyed = tuple(denial for denial in denials if denial.key in revokers)
    return Reader(key, policy, tuple(denials), obeyed, own)
