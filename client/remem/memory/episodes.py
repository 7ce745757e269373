"""Episodes: what the memory makes of events, the stuff that lessons consist of.

One event is one episode as long as it says the same: where a call of the same name fails in another way, that
is another episode. `gist` is what likeness is measured by and stays here; `sentence` is what a lesson may say.
An episode that has a sentence can found a lesson, one without can only join one.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from hashlib import blake2b

from remem.errors import RememError
from remem.ingest.sentence import Telling
from remem.memory.events import Unread
from remem.protocol.times import parse_time


@dataclass(frozen=True, slots=True)
class Episode:
    """One episode.

    Attributes:
        id: 16 hex digits.
        kind: the kind of lesson it can become.
        gist: what it is about.
        sentence: what a lesson of it may say; None where nothing would be left to say.
        cwd: the folder in which it happened.
        seen: how often.
        at: when first, by whoever reported it.
        last_at: when last.
        recorded: when this memory first took it in.
    """

    id: str
    kind: str
    gist: str
    sentence: str | None
    cwd: str | None
    seen: int
    at: datetime
    last_at: datetime
    recorded: datetime


def add_episode(db: sqlite3.Connection, telling: Telling, source: Unread) -> str:
    """Make an episode of an occurrence, or count it as a repeat of one; return its id."""
    words = f"{source.event_id}\x1f{telling.kind}\x1f{telling.gist}"
    episode = blake2b(words.encode("utf-8", "replace"), digest_size=8).hexdigest()
    db.execute(
        "INSERT INTO episodes (id, event, kind, gist, sentence, cwd, seen, at, last_at, recorded)"
        " VALUES (?, ?, ?, ?, ?, ?, 1, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET seen = seen + 1,"
        " at = min(at, excluded.at), last_at = max(last_at, excluded.last_at),"
        " recorded = min(recorded, excluded.recorded)",
        (
            episode, source.event_id, telling.kind, telling.gist, telling.sentence, source.event.cwd,
            source.at, source.at, source.recorded,
        ),
    )  # fmt: skip
    return episode


def episodes(db: sqlite3.Connection, ids: Iterable[str] | None = None) -> list[Episode]:
    """Return these episodes, or all, in the order of their times."""
    if ids is None:
        return [_episode(row) for row in db.execute("SELECT * FROM episodes ORDER BY at, id")]
    found = (db.execute("SELECT * FROM episodes WHERE id = ?", (one,)).fetchone() for one in ids)
    return sorted((_episode(row) for row in found if row is not None), key=lambda one: (one.at, one.id))


def get_episode(db: sqlite3.Connection, reference: str) -> Episode:
    """Return the episode with this id, or the only one whose id begins so.

    Raises:
        RememError: there is none, or more than one.
    """
    low = reference.lower()
    rows = db.execute("SELECT * FROM episodes WHERE substr(id, 1, ?) = ? LIMIT 2", (len(low), low)).fetchall()
    if len(rows) != 1 or not low:
        raise RememError(
            f"expected the id of one episode, got {reference!r}, which names {'none' if not rows else 'several'}"
        )
    return _episode(rows[0])


def unabsorbed(db: sqlite3.Connection) -> list[Episode]:
    """Return the episodes that are in no lesson yet, in the order of their times."""
    rows = db.execute("SELECT * FROM episodes WHERE id NOT IN (SELECT episode FROM lesson_episodes) ORDER BY at, id")
    return [_episode(row) for row in rows]


def uncompared(db: sqlite3.Connection) -> list[Episode]:
    """Return the episodes that were not yet held against the lessons of others."""
    return [_episode(row) for row in db.execute("SELECT * FROM episodes WHERE is_compared = 0 ORDER BY at, id")]


def mark_compared(db: sqlite3.Connection, ids: Iterable[str]) -> None:
    """Note that episodes were held against the lessons of others."""
    db.executemany("UPDATE episodes SET is_compared = 1 WHERE id = ?", [(one,) for one in ids])


def members(db: sqlite3.Connection, lesson: str) -> list[Episode]:
    """Return the episodes of a lesson, in the order of their times."""
    rows = db.execute(
        "SELECT e.* FROM lesson_episodes AS l JOIN episodes AS e ON e.id = l.episode WHERE l.lesson = ?"
        " ORDER BY e.at, e.id",
        (lesson,),
    )
    return [_episode(row) for row in rows]


def _episode(row: sqlite3.Row) -> Episode:
    return Episode(
        row["id"], row["kind"], row["gist"], row["sentence"], row["cwd"], row["seen"],
        parse_time(row["at"]), parse_time(row["last_at"]), parse_time(row["recorded"]),
    )  # fmt: skip
