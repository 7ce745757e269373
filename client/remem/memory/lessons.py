"""Lessons in the memory: one row a sentence, wherever it comes from.

- A lesson is known by its hash. Its id, the first half of the hash, is for people: others can make two lessons with
  one id, so nothing is stored by it.
- `source` says who made it: this memory (`own`), another one (`received`), or a file that the owner read in
  (`imported`). A received lesson that this memory had met by itself before becomes its own; one that it meets
  afterwards stays received, for that is what a confirmation is about.
- `state`: `active`; `archived`, put aside and reachable; `vetoed`, by the owner and for ever; `dropped`, taken back by
  those it came from. A vetoed or dropped lesson absorbs what resembles it and never comes back by itself.
- Joining a lesson adds 0.5 to its strength and 1 to `seen`; a lesson begins with 1, a received one with 0.5.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal, TypeAlias

from remem.errors import RememError
from remem.memory.episodes import Episode
from remem.memory.store import stamp
from remem.protocol.text import lesson_hash
from remem.protocol.times import format_time, parse_time

STATES: Final = ("active", "archived", "vetoed", "dropped")
JOINED: Final = 0.5
OWN_STRENGTH: Final = 1.0
RECEIVED_STRENGTH: Final = 0.5

_HEX: Final = frozenset("0123456789abcdef")
# What the column `explicit` holds, beside 0: a choice made before a revocation came is none to go on against it.
_CHOSEN: Final = 1
_INSISTED: Final = 2


@dataclass(frozen=True, slots=True)
class Lesson:
    """One lesson of this memory.

    Attributes:
        hash: the lesson's identity everywhere (PROTOCOL.md, section 5).
        kind: error, correction or surprise.
        text: the sentence.
        seen: how many surprises it has absorbed.
        strength: its weight.
        updated: when it last changed.
        parents: the hashes of lessons that it was merged from.
        source: own, received or imported.
        state: active, archived, vetoed or dropped.
        explicit: whether the owner chose to share it, whatever its kind.
        received: when it first came from another memory; None if it never did.
        insisted: whether the owner chose it although it read as revoked.
    """

    hash: str
    kind: str
    text: str
    seen: int
    strength: float
    updated: datetime
    parents: tuple[str, ...]
    source: str
    state: str
    explicit: bool
    received: datetime | None
    insisted: bool = False

    @property
    def id(self) -> str:
        """The first half of the hash, by which a person can name the lesson."""
        return self.hash[:16]


def lessons(
    db: sqlite3.Connection, *, kind: str | None = None, source: str | None = None, state: str | None = "active"
) -> list[Lesson]:
    """Return the lessons of this kind, source and state (None is any), the strongest first."""
    rows = db.execute(
        "SELECT * FROM lessons WHERE (:kind IS NULL OR kind = :kind) AND (:source IS NULL OR source = :source)"
        " AND (:state IS NULL OR state = :state) ORDER BY strength DESC, updated DESC, hash",
        {"kind": kind, "source": source, "state": state},
    )
    return [_lesson(row) for row in rows]


def find_lesson(db: sqlite3.Connection, digest: str) -> Lesson | None:
    """Return the lesson with this hash, whatever its state."""
    row = db.execute("SELECT * FROM lessons WHERE hash = ?", (digest,)).fetchone()
    return None if row is None else _lesson(row)


def get_lesson(db: sqlite3.Connection, reference: str) -> Lesson:
    """Return the lesson with this hash or id, or the only one whose hash begins so.

    Raises:
        RememError: there is none, or more than one.
    """
    low = reference.lower()
    if not low or not set(low) <= _HEX:
        raise RememError(f"expected the hash or id of a lesson, got {reference!r}")
    rows = db.execute("SELECT * FROM lessons WHERE hash >= ? AND hash < ? LIMIT 2", (low, low + "g")).fetchall()
    if len(rows) != 1:
        raise RememError(
            f"expected the hash or id of one lesson, got {reference!r}, which names {'none' if not rows else 'several'}"
        )
    return _lesson(rows[0])


def received_lessons(db: sqlite3.Connection) -> Iterator[Lesson]:
    """Return the active lessons of others, one by one: there can be very many."""
    rows = db.execute("SELECT * FROM lessons WHERE source = 'received' AND state = 'active' ORDER BY hash")
    return map(_lesson, rows)


def member_gists(db: sqlite3.Connection, kind: str) -> dict[str, list[str]]:
    """Return the gists of the episodes of every lesson of a kind, by hash, in order."""
    found: dict[str, list[str]] = {}
    rows = db.execute(
        "SELECT l.lesson, e.gist FROM lesson_episodes AS l JOIN episodes AS e ON e.id = l.episode WHERE e.kind = ?"
        " ORDER BY l.lesson, e.id",
        (kind,),
    )
    for digest, gist in rows:
        found.setdefault(digest, []).append(gist)
    return found


# --- what this memory learns by itself ---


Outcome: TypeAlias = Literal["new", "now_own", "gained", "absorbed"]
"""What became of a lesson that episodes say: it is new, it came from elsewhere and is this memory's own now, it gained,
or it only absorbed them, being vetoed or dropped."""


def found_lesson(
    db: sqlite3.Connection, kind: str, text: str, group: Sequence[Episode], now: datetime
) -> tuple[str, Outcome]:
    """Make a lesson of episodes, or let them join the one that says so; return its hash, and what became of it."""
    digest = lesson_hash(kind, text)
    known = find_lesson(db, digest)
    if known is not None:
        met_before = known.received is None or any(episode.recorded <= known.received for episode in group)
        turns = known.source != "own" and known.state in ("active", "archived") and met_before
        if turns:
            db.execute("UPDATE lessons SET source = 'own' WHERE hash = ?", (digest,))
        gained = [join_lesson(db, digest, episode, now) for episode in group]
        return digest, "now_own" if turns else "gained" if any(gained) else "absorbed"
    seen = sum(episode.seen for episode in group)
    is_new = not is_vetoed(db, digest)
    db.execute(
        "INSERT INTO lessons (hash, kind, text, seen, strength, updated, source, state)"
        " VALUES (?, ?, ?, ?, ?, ?, 'own', ?)",
        (
            digest, kind, text, seen, OWN_STRENGTH + JOINED * (seen - 1), format_time(now),
            "active" if is_new else "vetoed",
        ),
    )  # fmt: skip
    _link(db, digest, group)
    return digest, "new" if is_new else "absorbed"


def join_lesson(db: sqlite3.Connection, digest: str, episode: Episode, now: datetime) -> bool:
    """Let a lesson absorb an episode, once for every time it was seen; tell whether it gained."""
    _link(db, digest, [episode])
    return _strengthen(db, digest, episode.seen, now)


def absorb_repeats(db: sqlite3.Connection, now: datetime) -> set[str]:
    """Let lessons absorb what their episodes were seen again since; return the hashes of those that gained."""
    rows = db.execute(
        "SELECT l.lesson, l.episode, e.seen, e.seen - l.seen AS more FROM lesson_episodes AS l"
        " JOIN episodes AS e ON e.id = l.episode WHERE e.seen > l.seen ORDER BY l.lesson, l.episode"
    ).fetchall()
    gained: set[str] = set()
    for row in rows:
        db.execute("UPDATE lesson_episodes SET seen = ? WHERE episode = ?", (row["seen"], row["episode"]))
        if _strengthen(db, row["lesson"], row["more"], now):
            gained.add(row["lesson"])
    return gained


def _strengthen(db: sqlite3.Connection, digest: str, times: int, now: datetime) -> bool:
    # What was put aside comes back when it is met again; what was vetoed or dropped does not.
    done = db.execute(
        "UPDATE lessons SET seen = seen + ?, strength = strength + ?, updated = ?, state = 'active'"
        " WHERE hash = ? AND state IN ('active', 'archived')",
        (times, JOINED * times, format_time(now), digest),
    )
    return done.rowcount == 1


def _link(db: sqlite3.Connection, digest: str, group: Iterable[Episode]) -> None:
    db.executemany(
        "INSERT INTO lesson_episodes (lesson, episode, seen) VALUES (?, ?, ?)",
        [(digest, episode.id, episode.seen) for episode in group],
    )


# --- what comes from others ---


def add_received(db: sqlite3.Connection, digest: str, kind: str, text: str, now: datetime) -> bool:
    """Take in a lesson of another memory; tell whether it is new here. A vetoed one is not taken."""
    return add_received_many(db, [(digest, kind, text)], now) == 1


def add_received_many(db: sqlite3.Connection, found: Iterable[tuple[str, str, str]], now: datetime) -> int:
    """Take in lessons of other memories as (hash, kind, text); return how many are new here.

    A lesson that this memory has already is left as it is, but for the time at which it was first received.
    """
    vetoed = {row[0] for row in db.execute("SELECT hash FROM vetoes")}
    at, received = format_time(now), stamp(now)
    # In the order of the table a large number goes in twice as fast.
    rows = sorted((*lesson, RECEIVED_STRENGTH, at, received) for lesson in found if lesson[0] not in vetoed)
    new = db.executemany(
        "INSERT INTO lessons (hash, kind, text, seen, strength, updated, source, received)"
        " VALUES (?, ?, ?, 1, ?, ?, 'received', ?) ON CONFLICT (hash) DO NOTHING",
        rows,
    ).rowcount
    if new < len(rows):
        db.executemany(
            "UPDATE lessons SET received = ? WHERE hash = ? AND received IS NULL", [(received, row[0]) for row in rows]
        )
    return new


def raise_strength(db: sqlite3.Connection, digests: Iterable[str], now: datetime, by: float = JOINED) -> None:
    """Raise lessons that others have corroborated or episodes confirmed."""
    at = format_time(now)
    db.executemany(
        "UPDATE lessons SET strength = strength + ?, updated = ? WHERE hash = ?",
        [(by, at, digest) for digest in digests],
    )


# --- what the owner decides ---


def set_state(db: sqlite3.Connection, digests: Iterable[str], state: str, now: datetime) -> int:
    """Make lessons active, archived or dropped; return how many changed. What is vetoed stays so."""
    if state not in STATES or state == "vetoed":
        raise ValueError(f"expected active, archived or dropped, got {state}")
    at = format_time(now)
    return sum(
        db.execute(
            "UPDATE lessons SET state = ?1, updated = ?2 WHERE hash = ?3 AND state NOT IN (?1, 'vetoed')",
            (state, at, digest),
        ).rowcount
        for digest in digests
    )


def veto(db: sqlite3.Connection, digest: str, now: datetime, reason: str | None = None) -> None:
    """Never hold this sentence again, whether the memory has it yet or not."""
    at = format_time(now)
    db.execute("INSERT OR IGNORE INTO vetoes (hash, at, reason) VALUES (?, ?, ?)", (digest, at, reason))
    db.execute("UPDATE lessons SET state = 'vetoed', explicit = 0, updated = ? WHERE hash = ?", (at, digest))


def is_vetoed(db: sqlite3.Connection, digest: str) -> bool:
    """Tell whether the owner has vetoed a sentence."""
    return db.execute("SELECT 1 FROM vetoes WHERE hash = ?", (digest,)).fetchone() is not None


def choose(db: sqlite3.Connection, digest: str, *, insisted: bool = False) -> None:
    """Note that the owner chose to share a lesson whatever its kind, or even although it reads as revoked."""
    level = _INSISTED if insisted else _CHOSEN
    db.execute("UPDATE lessons SET explicit = max(explicit, ?) WHERE hash = ?", (level, digest))


def choose_no_more(db: sqlite3.Connection, digest: str) -> None:
    """Take back that the owner chose to share a lesson."""
    db.execute("UPDATE lessons SET explicit = 0 WHERE hash = ?", (digest,))


# --- lessons that met an episode ---


def add_meetings(db: sqlite3.Connection, found: Iterable[tuple[str, str, float]]) -> None:
    """Note episodes that met received lessons, as (lesson, episode, likeness)."""
    db.executemany("INSERT OR IGNORE INTO meetings (lesson, episode, likeness) VALUES (?, ?, ?)", found)


def meetings(db: sqlite3.Connection, digest: str | None = None) -> list[tuple[str, str, float]]:
    """Return the meetings of a lesson, or all, as (lesson, episode, likeness), the likest first."""
    rows = db.execute(
        "SELECT m.lesson, m.episode, m.likeness FROM meetings AS m JOIN lessons AS l ON l.hash = m.lesson"
        " WHERE l.source = 'received' AND l.state = 'active' AND (?1 IS NULL OR m.lesson = ?1)"
        " ORDER BY m.likeness DESC, m.lesson, m.episode",
        (digest,),
    )
    return [(row[0], row[1], row[2]) for row in rows]


def _lesson(row: sqlite3.Row) -> Lesson:
    return Lesson(
        row["hash"], row["kind"], row["text"], row["seen"], row["strength"], parse_time(row["updated"]),
        tuple(json.loads(row["parents"])), row["source"], row["state"], bool(row["explicit"]),
        None if row["received"] is None else parse_time(row["received"]), row["explicit"] >= _INSISTED,
    )  # fmt: skip
