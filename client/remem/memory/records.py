"""What this memory has said, or is about to say, in its own file (PROTOCOL.md, section 10).

- An own record is a confirmation, a revocation or a denial. It stays until its owner takes it back; a file is
  put together from all of them.
- Every seal is logged before it is sent. A seal of this key that is not in the log was made by someone else:
  a second machine, a thief, or this memory before it was restored from a backup.
- A lesson that left once is remembered as published, so that it can be taken back when nothing else of it is left.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from remem.protocol import RULES, Lesson, Version
from remem.protocol.times import format_time, parse_time


@dataclass(frozen=True, slots=True)
class OwnRecord:
    """A confirmation, revocation or denial by this memory.

    Attributes:
        type: `confirm`, `revoke` or `deny`.
        subject: the lesson's hash, or the denied key.
        at: the time that the record carries.
        reason: of a revocation or denial, where it has one.
        episode: the episode that a confirmation rests on; it never leaves.
    """

    type: str
    subject: str
    at: datetime
    reason: str | None = None
    episode: str | None = None


def put_record(db: sqlite3.Connection, record: OwnRecord) -> None:
    """Say something, or say it anew."""
    db.execute(
        "INSERT INTO own_records (type, subject, at, reason, episode) VALUES (?, ?, ?, ?, ?)"
        " ON CONFLICT (type, subject) DO UPDATE SET at = excluded.at, reason = excluded.reason,"
        " episode = coalesce(excluded.episode, episode)",
        (record.type, record.subject, format_time(record.at), record.reason, record.episode),
    )


def own_records(db: sqlite3.Connection, subject: str | None = None) -> tuple[OwnRecord, ...]:
    """Return the own records, or those about one subject, in order."""
    rows = db.execute(
        "SELECT type, subject, at, reason, episode FROM own_records WHERE ?1 IS NULL OR subject = ?1"
        " ORDER BY type, subject",
        (subject,),
    )
    return tuple(OwnRecord(kind, about, parse_time(at), reason, episode) for kind, about, at, reason, episode in rows)


def log_published(db: sqlite3.Connection, hashes: Iterable[str], now: datetime) -> None:
    """Remember lessons that leave, before they do."""
    rows = [(lesson, format_time(now)) for lesson in hashes]
    db.executemany("INSERT INTO published (hash, at) VALUES (?, ?) ON CONFLICT DO NOTHING", rows)


def published(db: sqlite3.Connection) -> frozenset[str]:
    """Return every lesson that ever left, or was about to."""
    return frozenset(row[0] for row in db.execute("SELECT hash FROM published"))


def restore_lesson(db: sqlite3.Connection, lesson: Lesson) -> None:
    """Take a lesson that this memory's own key published for its own, as if the owner had chosen it."""
    db.execute(
        "INSERT INTO lessons (hash, kind, text, seen, strength, updated, parents, source, explicit)"
        " SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, 'own', 1 WHERE NOT EXISTS (SELECT 1 FROM vetoes WHERE hash = ?1)"
        " ON CONFLICT (hash) DO UPDATE SET seen = excluded.seen, strength = excluded.strength,"
        " updated = excluded.updated, source = 'own', explicit = max(explicit, 1)"
        " WHERE source <> 'own' OR updated < excluded.updated",
        (
            lesson.hash,
            lesson.kind,
            lesson.text,
            lesson.seen,
            lesson.strength,
            format_time(lesson.updated),
            json.dumps(lesson.parents),
        ),
    )


def log_seal(db: sqlite3.Connection, version: Version, at: datetime) -> None:
    """Log a seal of this memory's key, before it is sent."""
    db.execute(
        "INSERT INTO own_seals (seal, digest, at) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
        (version.seal, version.digest, format_time(at)),
    )


def own_seals(db: sqlite3.Connection) -> frozenset[Version]:
    """Return every seal that this memory logged."""
    return frozenset(Version(number, digest) for number, digest in db.execute("SELECT seal, digest FROM own_seals"))


def newest_seal(db: sqlite3.Connection) -> Version | None:
    """Return the newest seal that this memory logged."""
    row = db.execute("SELECT seal, digest FROM own_seals ORDER BY seal DESC, digest DESC LIMIT 1").fetchone()
    return None if row is None else Version(row[0], row[1])


def is_retired(db: sqlite3.Connection) -> bool:
    """Tell whether this memory's key has spoken its last seal."""
    return db.execute("SELECT 1 FROM own_seals WHERE seal = ?", (RULES.last_seal,)).fetchone() is not None
