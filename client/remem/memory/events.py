"""Events in the memory: what was reported, each once, with every sighting of it.

- An event is stored under its identity. A repeat is another occurrence of it: counted, its time and words kept.
  The same report read twice is one occurrence.
- A file of events is a batch. The bytes of it that were taken in are noted in the transaction that stores their
  events, so a batch read again goes on where it stopped, also after a crash.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple, Self

from remem.ingest.events import Event, EventError, parse_event
from remem.memory.store import stamp
from remem.protocol.times import format_time, parse_time


@dataclass(slots=True)
class Intake:
    """What became of reports: new events, repeats of known ones, reports known before, and lines that are none."""

    new: int = 0
    repeated: int = 0
    known: int = 0
    rejected: list[tuple[int, EventError]] = field(default_factory=list)

    def __iadd__(self, other: Intake) -> Self:
        self.new += other.new
        self.repeated += other.repeated
        self.known += other.known
        self.rejected += other.rejected
        return self


class Unread(NamedTuple):
    """An occurrence of which no episode has been made yet."""

    number: int
    event: Event
    event_id: str
    at: str
    recorded: str


def add_event(db: sqlite3.Connection, event: Event, now: datetime) -> Intake:
    """Store one event, or count it as a repeat."""
    recorded = stamp(now)
    # Nothing happens after it was reported, whatever the reporter's clock says.
    at = format_time(min(event.at or now, now))
    identity = event.identity
    db.execute(
        "INSERT OR IGNORE INTO events (id, kind, agent, session, cwd, first_at, last_at, recorded)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        (identity, event.kind, event.agent, event.session, event.cwd, at, at, recorded),
    )
    added = db.execute(
        "INSERT OR IGNORE INTO occurrences (id, event, at, recorded, raw) VALUES (?, ?, ?, ?, ?)",
        (event.occurrence(now), identity, at, recorded, event.raw),
    )
    if added.rowcount == 0:
        return Intake(known=1)
    (seen,) = db.execute(
        "UPDATE events SET seen = seen + 1, first_at = min(first_at, ?), last_at = max(last_at, ?) WHERE id = ?"
        " RETURNING seen",
        (at, at, identity),
    ).fetchone()
    return Intake(new=1) if seen == 1 else Intake(repeated=1)


def add_events(db: sqlite3.Connection, lines: Iterable[tuple[int, Event | EventError]], now: datetime) -> Intake:
    """Store the events among these lines; the others are returned with what is wrong with them."""
    intake = Intake()
    for number, found in lines:
        if isinstance(found, EventError):
            intake.rejected.append((number, found))
        else:
            intake += add_event(db, found, now)
    return intake


def taken(db: sqlite3.Connection, batch: str) -> int | None:
    """Return how many bytes of a batch have been taken in; None for one that is not known."""
    row = db.execute("SELECT taken FROM batches WHERE name = ?", (batch,)).fetchone()
    return None if row is None else int(row[0])


def taken_at(db: sqlite3.Connection, batch: str) -> datetime | None:
    """Return when a batch was first taken in."""
    row = db.execute("SELECT recorded FROM batches WHERE name = ?", (batch,)).fetchone()
    return None if row is None else parse_time(row[0])


def note_batch(
    db: sqlite3.Connection, batch: str, size: int, rejected: Iterable[tuple[int, EventError]], now: datetime
) -> None:
    """Note how far a batch has been taken in, and which of its lines were no events."""
    recorded = stamp(now)
    db.execute(
        "INSERT INTO batches (name, taken, recorded) VALUES (?, ?, ?)"
        " ON CONFLICT (name) DO UPDATE SET taken = excluded.taken",
        (batch, size, recorded),
    )
    db.executemany(
        "INSERT INTO rejected (batch, line, code, message, recorded) VALUES (?, ?, ?, ?, ?)",
        [(batch, number, error.code, error.message, recorded) for number, error in rejected],
    )


def rejected_lines(db: sqlite3.Connection, batch: str) -> frozenset[int]:
    """Return the numbers of the lines of a batch that were no events."""
    return frozenset(row[0] for row in db.execute("SELECT line FROM rejected WHERE batch = ?", (batch,)))


def unread(db: sqlite3.Connection) -> Iterator[Unread]:
    """Return the occurrences of which no episode has been made, in the order in which they came."""
    rows = db.execute("SELECT number, event, at, recorded, raw FROM occurrences WHERE is_read = 0 ORDER BY number")
    for row in rows.fetchall():
        yield Unread(row["number"], parse_event(row["raw"]), row["event"], row["at"], row["recorded"])


def mark_read(db: sqlite3.Connection, numbers: Iterable[int]) -> None:
    """Note that episodes have been made of these occurrences, where there was anything to make."""
    db.executemany("UPDATE occurrences SET is_read = 1 WHERE number = ?", [(number,) for number in numbers])


def counts(db: sqlite3.Connection) -> dict[str, int]:
    """Return how many events there are of each kind."""
    return {row[0]: row[1] for row in db.execute("SELECT kind, count(*) FROM events GROUP BY kind ORDER BY kind")}
