"""How much of everything this memory has."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LessonCount:
    """How many lessons of one source are in one state."""

    source: str
    state: str
    count: int


def events_and_episodes(db: sqlite3.Connection) -> tuple[int, int]:
    """Count the events that the memory was told, and the episodes that they became."""
    row = db.execute("SELECT (SELECT count(*) FROM events), (SELECT count(*) FROM episodes)").fetchone()
    return row[0], row[1]


def lesson_counts(db: sqlite3.Connection) -> tuple[LessonCount, ...]:
    """Count the lessons by source and state."""
    rows = db.execute("SELECT source, state, count(*) FROM lessons GROUP BY source, state ORDER BY source, state")
    return tuple(LessonCount(*row) for row in rows)
