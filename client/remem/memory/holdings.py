"""The files that this memory holds, what they say, and which lessons came from them.

- A row of `holdings` names the newest file of a key; its bytes lie in the home's folder `commons`. The row is
  written in the transaction that puts the bytes there, and bytes that are not those of the row count as missing.
  The set of items follows in the same transaction (`remem.memory.items`).
- `statements` holds what the files' records say and judgement lets through: the evidence of every reading.
- `receipts` says from which keys a lesson came into this memory. `dropped` marks a key that took the lesson back:
  the lesson never comes from that key again by itself.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import lru_cache

from remem.memory import items, ledger
from remem.protocol import Denial, Fault, OriginFile, Revocation, Statement, Version, judge
from remem.protocol.evidence import statement_of
from remem.protocol.file import topic_of
from remem.protocol.items import Item, item_of, proof_item
from remem.protocol.records import Lesson, read_record
from remem.protocol.times import format_time, parse_time


@dataclass(frozen=True, slots=True)
class Holding:
    """The newest file of one key.

    Attributes:
        id: the row that statements refer to.
        key: whose file it is.
        version: its seal and digest.
        size: its bytes.
        records: how many records it has, the seal left out.
        source: where it came from.
        received: when it came.
        sealed: the time of its seal; None where it has no seal.
    """

    id: int
    key: str
    version: Version
    size: int
    records: int
    source: str
    received: datetime
    sealed: datetime | None = None

    @property
    def item(self) -> Item | None:
        """What it is called between nodes; None for a file without a seal, which they do not exchange."""
        return None if self.sealed is None else item_of(self.key, self.sealed, self.version.digest)


@dataclass(frozen=True, slots=True)
class Skipped:
    """A record that judgement keeps out of this mind.

    Attributes:
        key: who signed it.
        line: its number in the file.
        type: the type of the record.
        subject: what it is about.
        fault: why it is skipped.
    """

    key: str
    line: int
    type: str
    subject: str
    fault: Fault


@dataclass(frozen=True, slots=True)
class Arrival:
    """An accepted file on its way in, judged.

    Attributes:
        file: the file.
        source: where it came from.
        said: what those of its records say that were read for the first time.
        skipped: which of those records judgement skips.
        beside: the digest of the held file whose lines were not read again; None where all of them were read.
    """

    file: OriginFile
    source: str
    said: tuple[Statement, ...]
    skipped: tuple[Skipped, ...]
    beside: str | None = None


@dataclass(slots=True)
class Change:
    """What taking in files changed.

    Attributes:
        published: for each publication that was not there before, its holding and statement.
        newcomers: the holdings that were not there before.
        touched: the lessons about which something came or went.
        turned: those of them about which a revocation came or went.
        denials: whether a denial came or went.
    """

    published: list[tuple[int, Statement]] = field(default_factory=list)
    newcomers: set[int] = field(default_factory=set)
    touched: set[str] = field(default_factory=set)
    turned: set[str] = field(default_factory=set)
    denials: bool = False


# Sets of any size are handed over as one JSON array, since SQLite bounds the number of its parameters.
_HOLDING = "SELECT id, key, seal, digest, size, records, source, received, sealed FROM holdings"
_STATEMENT = (
    "SELECT h.key, s.type, s.subject, s.time, s.kind, s.text"
    " FROM statements AS s JOIN holdings AS h ON h.id = s.holding"
)


def holding(db: sqlite3.Connection, key: str) -> Holding | None:
    """Return what is held of a key."""
    row = db.execute(_HOLDING + " WHERE key = ?", (key,)).fetchone()
    return None if row is None else _holding(row)


def holdings(db: sqlite3.Connection) -> dict[str, Holding]:
    """Return what is held, by key."""
    return {found.key: found for found in map(_holding, db.execute(_HOLDING))}


def holding_of(db: sqlite3.Connection, item: bytes) -> Holding | None:
    """Return the held file whose item has this id."""
    row = db.execute(_HOLDING + " WHERE item = ?", (item,)).fetchone()
    return None if row is None else _holding(row)


def judged(file: OriginFile, source: str, beside: str | None = None) -> Arrival:
    """Judge those records of a file that its acceptance read (PROTOCOL.md, section 8).

    Args:
        file: an accepted file.
        source: where it came from.
        beside: the digest of the held file that was at hand for its acceptance, if one was.
    """
    said: list[Statement] = []
    skipped: list[Skipped] = []
    for record in file.fresh:
        fault = judge(record)
        if fault is not None:
            number = file.lines.index(record.line) + (1 if file.seal is None else 2)
            skipped.append(Skipped(file.key.hex, number, record.type, record.subject, fault))
        elif (statement := statement_of(record)) is not None:
            said.append(statement)
    return Arrival(file, source, tuple(said), tuple(skipped), beside)


def take(db: sqlite3.Connection, arrivals: Iterable[Arrival], now: datetime) -> Change:
    """Write what newest files say in place of what the same keys said before; one file a key.

    The caller owns the transaction, and decided within it that each of them is the newest.
    """
    change = Change()
    rows: list[tuple[int, str, str, str | None, str | None, str | None]] = []
    for found in arrivals:
        arrival = found
        before = holding(db, arrival.file.key.hex)
        if arrival.beside is not None and (before is None or before.version.digest != arrival.beside):
            # Another process took another file meanwhile: what was left out is not what the statements hold now.
            arrival = judged(replace(arrival.file, fresh=arrival.file.records), arrival.source)
        number = _write_holding(db, arrival, before, now)
        if before is None:
            change.newcomers.add(number)
        old = set() if before is None else _forget(db, number, arrival.file, change)
        for said in arrival.said:
            rows.append((number, said.type, said.subject, _time_text(said.time), said.kind, said.text))
            if said.type == Lesson.type and (said.type, said.subject) not in old:
                change.published.append((number, said))
            _note(change, said.type, said.subject)
    db.executemany("INSERT INTO statements (holding, type, subject, time, kind, text) VALUES (?, ?, ?, ?, ?, ?)", rows)
    return change


def judged_by(db: sqlite3.Connection) -> str | None:
    """Return the name of the rules of judgement that made the statements; None where nothing was judged yet."""
    row = db.execute("SELECT name FROM judgement").fetchone()
    return None if row is None else str(row[0])


def note_judgement(db: sqlite3.Connection, name: str) -> None:
    """Note which rules of judgement made the statements."""
    db.execute("DELETE FROM judgement")
    db.execute("INSERT INTO judgement (name) VALUES (?)", (name,))


def topics(data: bytes) -> Mapping[bytes, str]:
    """Read the topics of a sealed file's lines that were accepted before, so that they need no second verification."""
    lines = data[:-1].split(b"\n")[1:]
    return {line: topic_of(read_record(line)) for line in lines}


# --- what is said about a lesson ---


def evidence_about(db: sqlite3.Connection, hashes: Collection[str]) -> dict[str, list[Statement]]:
    """Return what the held files say about each of these lessons."""
    found: dict[str, list[Statement]] = {lesson: [] for lesson in hashes}
    rows = db.execute(_STATEMENT + " JOIN json_each(?) AS wanted ON wanted.value = s.subject", (json.dumps([*hashes]),))
    for row in rows:
        found[row[2]].append(_statement(row))
    return found


def said_by(db: sqlite3.Connection, key: str) -> tuple[Statement, ...]:
    """Return what the held file of a key says."""
    return tuple(map(_statement, db.execute(_STATEMENT + " WHERE h.key = ? ORDER BY s.type, s.subject", (key,))))


def denials(db: sqlite3.Connection) -> tuple[Statement, ...]:
    """Return every denial that the held files say."""
    return tuple(map(_statement, db.execute(_STATEMENT + " WHERE s.type = 'deny'")))


def hashes_from(db: sqlite3.Connection, start: str, most: int = 2) -> list[str]:
    """Return the first lessons whose hashes begin so, whether the memory has them or holds evidence about them."""
    rows = db.execute(
        "SELECT hash FROM lessons WHERE hash >= ?1 AND hash < ?1 || 'g'"
        " UNION SELECT subject FROM statements WHERE subject >= ?1 AND subject < ?1 || 'g' AND type <> 'deny'"
        " UNION SELECT hash FROM published WHERE hash >= ?1 AND hash < ?1 || 'g'"
        " UNION SELECT subject FROM own_records WHERE subject >= ?1 AND subject < ?1 || 'g' AND type <> 'deny'"
        " ORDER BY 1 LIMIT ?2",
        (start, most),
    )
    return [row[0] for row in rows]


def contested(db: sqlite3.Connection, hashes: Collection[str] | None = None) -> set[str]:
    """Return which lessons, of these or of all, some held file revokes."""
    if hashes is None:
        rows = db.execute("SELECT DISTINCT subject FROM statements WHERE type = 'revoke'")
    else:
        rows = db.execute(
            "SELECT DISTINCT subject FROM statements WHERE type = 'revoke'"
            " AND subject IN (SELECT value FROM json_each(?))",
            (json.dumps([*hashes]),),
        )
    return {row[0] for row in rows}


def published_by(db: sqlite3.Connection, keys: Collection[str]) -> set[str]:
    """Return the lessons that the held files of these keys publish."""
    rows = db.execute(
        "SELECT DISTINCT s.subject FROM statements AS s JOIN holdings AS h ON h.id = s.holding"
        " WHERE s.type = 'lesson' AND h.key IN (SELECT value FROM json_each(?))",
        (json.dumps([*keys]),),
    )
    return {row[0] for row in rows}


# --- where a lesson came from ---


def receive(db: sqlite3.Connection, pairs: Iterable[tuple[str, int]], now: datetime) -> None:
    """Note that lessons came from the keys of these holdings."""
    at = format_time(now)
    db.executemany(
        "INSERT INTO receipts (hash, holding, at) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
        sorted((lesson, number, at) for lesson, number in pairs),
    )


def drop(db: sqlite3.Connection, lesson: str, keys: Iterable[str]) -> None:
    """Mark keys that took a lesson back."""
    db.executemany(
        "UPDATE receipts SET dropped = 1 WHERE hash = ? AND holding = (SELECT id FROM holdings WHERE key = ?)",
        [(lesson, key) for key in keys],
    )


def receipts(db: sqlite3.Connection, lesson: str) -> dict[str, tuple[datetime, bool]]:
    """Return from which keys a lesson came: when first, and whether that key took it back."""
    rows = db.execute(
        "SELECT h.key, r.at, r.dropped FROM receipts AS r JOIN holdings AS h ON h.id = r.holding WHERE r.hash = ?",
        (lesson,),
    )
    return {key: (parse_time(at), bool(dropped)) for key, at, dropped in rows}


def received_pairs(db: sqlite3.Connection, hashes: Collection[str]) -> set[tuple[str, int]]:
    """Return which of these lessons came from which holdings."""
    rows = db.execute(
        "SELECT hash, holding FROM receipts WHERE hash IN (SELECT value FROM json_each(?))", (json.dumps([*hashes]),)
    )
    return {(row[0], row[1]) for row in rows}


def received_from(db: sqlite3.Connection, keys: Collection[str]) -> set[str]:
    """Return the lessons that came from any of these keys."""
    rows = db.execute(
        "SELECT DISTINCT r.hash FROM receipts AS r JOIN holdings AS h ON h.id = r.holding"
        " WHERE h.key IN (SELECT value FROM json_each(?))",
        (json.dumps([*keys]),),
    )
    return {row[0] for row in rows}


def known_here(db: sqlite3.Connection, hashes: Collection[str]) -> dict[str, tuple[str, str]]:
    """Return the source and state of those of these lessons that the memory has itself."""
    rows = db.execute(
        "SELECT hash, source, state FROM lessons WHERE hash IN (SELECT value FROM json_each(?))",
        (json.dumps([*hashes]),),
    )
    return {row[0]: (row[1], row[2]) for row in rows}


# --- rows and values ---


def _write_holding(db: sqlite3.Connection, arrival: Arrival, before: Holding | None, now: datetime) -> int:
    file = arrival.file
    item = None if file.seal is None else item_of(file.key, file.seal.time, file.digest)
    row = db.execute(
        "INSERT INTO holdings (key, seal, digest, size, records, source, received, sealed, item)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (key) DO UPDATE SET seal = excluded.seal,"
        " digest = excluded.digest, size = excluded.size, records = excluded.records, source = excluded.source,"
        " received = excluded.received, sealed = excluded.sealed, item = excluded.item RETURNING id",
        (
            file.key.hex,
            file.version.seal,
            file.digest,
            len(file.data),
            len(file.lines),
            arrival.source,
            format_time(now),
            None if file.seal is None else format_time(file.seal.time),
            None if item is None else item.id,
        ),
    ).fetchone()
    items.follow(db, None if before is None else before.item, item, now)
    # The proof that this key spoke twice, which may have had no room, is of use from now on.
    ledger.forget(db, [proof_item(file.key).id])
    return int(row[0])


def _forget(db: sqlite3.Connection, number: int, file: OriginFile, change: Change) -> set[tuple[str, str]]:
    """Delete what a key says no more, or says in another line now; return what it said before."""
    old = {(row[0], row[1]) for row in db.execute("SELECT type, subject FROM statements WHERE holding = ?", (number,))}
    fresh = {(record.type, record.subject) for record in file.fresh}
    kept = set(file.topics)
    gone = [(kind, subject) for kind, subject in old if f"{kind} {subject}" not in kept]
    renewed = fresh & old
    for kind, subject in gone:
        _note(change, kind, subject)
    # Judgement may skip a renewed line, and then it says nothing any more.
    for kind, subject in renewed:
        _note(change, kind, subject)
    db.executemany(
        "DELETE FROM statements WHERE holding = ? AND type = ? AND subject = ?",
        [(number, kind, subject) for kind, subject in (*gone, *renewed)],
    )
    return old


def _note(change: Change, kind: str, subject: str) -> None:
    if kind == Denial.type:
        change.denials = True
        return
    change.touched.add(subject)
    if kind == Revocation.type:
        change.turned.add(subject)


def _holding(row: Sequence[object]) -> Holding:
    number, key, seal, digest, size, records, source, received, sealed = row
    time = None if sealed is None else parse_time(str(sealed))
    # The table is STRICT, so the columns have these types.
    return Holding(number, key, Version(seal, digest), size, records, source, parse_time(received), time)  # type: ignore[arg-type]


def _statement(row: sqlite3.Row) -> Statement:
    key, kind, subject, time, lesson_kind, text = row
    return Statement(key, kind, subject, None if time is None else _moment(time), lesson_kind, text)


# The rows keep what the wire said to the microsecond: a state may hang on it.
def _time_text(moment: datetime | None) -> str | None:
    return None if moment is None else _exact(moment)


@lru_cache(maxsize=4_096)
def _exact(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


@lru_cache(maxsize=4_096)
def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text)
