"""Which lessons of this memory's own were taken back, so that sharing them would undo it.

1. A revoker that this memory trusts, or a quorum of the confirmers, revokes the lesson, whether it stands or not.
2. It is published nowhere, by this memory neither, and a key that this memory had it from revokes it.

A revocation by anyone else holds nothing back: a stranger could keep every sentence unsaid that can be guessed. What
stands under this memory's own key stands on its own, as everyone's does, and only the first rule drops its line.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Sequence
from datetime import datetime

from remem.memory import holdings
from remem.memory.lessons import Lesson
from remem.protocol import Cause, Evidence, Reading, State, Statement, lesson_state
from remem.sharing.readings import Reader
from remem.sharing.reports import HeldBack


def taken_back(db: sqlite3.Connection, this: Reader, found: Sequence[Lesson], now: datetime) -> dict[str, HeldBack]:
    """Return which of these lessons were taken back, and by whom.

    Args:
        db: the memory.
        this: what it holds, as it reads it.
        found: lessons of its own.
        now: the clock, with a zone.
    """
    contested = holdings.contested(db, [lesson.hash for lesson in found])
    said = holdings.evidence_about(db, contested)
    held_back: dict[str, HeldBack] = {}
    for lesson in found:
        if lesson.hash in contested and (why := _why(db, this, lesson, said[lesson.hash], now)) is not None:
            reason = f"read as revoked by {why}; --also sends it anyway"
            held_back[lesson.hash] = HeldBack(lesson.hash, lesson.text, "revoked", (reason,))
    return held_back


def _why(
    db: sqlite3.Connection, this: Reader, lesson: Lesson, said: Collection[Statement], now: datetime
) -> str | None:
    others = tuple(one for one in said if one.key != this.key)
    line = Statement(this.key, "lesson", lesson.hash, lesson.updated, lesson.kind, lesson.text)
    reading = _read(this, lesson, (*others, line), now)
    # What this memory says itself is left aside: its own revocation leaves in the place of the lesson.
    if reading.cause is Cause.REVOKER:
        return f"{_names(reading.revokers)}, trusted as a revoker"
    if reading.cause is Cause.QUORUM:
        return f"{_names(reading.revokers)}, more than two thirds of its confirmers"
    if any(one.key == this.key and one.type == "lesson" for one in said):
        return None
    alone = _read(this, lesson, others, now)
    came_from = holdings.receipts(db, lesson.hash)
    if alone.state is State.REVOKED and (takers_back := [key for key in alone.revokers if key in came_from]):
        return f"{_names(takers_back)}, whom this memory had it from"
    return None


def _read(this: Reader, lesson: Lesson, said: tuple[Statement, ...], now: datetime) -> Reading:
    return lesson_state(Evidence(lesson.hash, said, this.obeyed), this.policy, now)


def _names(keys: Collection[str]) -> str:
    return ", ".join(key[:16] for key in keys)
