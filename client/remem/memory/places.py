"""What this memory knows about the commons that it pulls from and shares to.

- A place is filed under its target. Its keys are those that it named at first contact; what it names later is
  compared with them.
- The bookmark says how far a place has been read, and moves only when nothing of it was left over.
- A place that is forgotten is met again as the one that it was: its keys stay.
- A private place lets in whom it chooses. What came from private places alone stays between them and this memory: it is
  not handed on. So it is with this memory's own file while that was put at private places alone.
- An admission is a place's word that someone answers for a key. It is replaced by that place's next word.
- Two seals of one number are kept as the proof that their key spoke twice. One proof of a key is enough: a key's owner
  could make any number of them.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from remem.memory import items
from remem.protocol import Admission, Seal, Version
from remem.protocol.times import format_time, parse_time

OWN: Final = "own"
"""Where this memory's own file is said to come from."""


@dataclass(frozen=True, slots=True)
class Place:
    """What is known about one commons.

    Attributes:
        target: its address.
        keys: the keys that it named at first contact; None before that.
        bookmark: how far it has been read.
        pulled: when it was last pulled from.
        shared: when this memory's file was last put there, or sent there and not answered.
        shared_seal: the seal of the file that was put there.
        own: the version of this memory's own file that it listed last.
    """

    target: str
    keys: tuple[str, ...] | None = None
    bookmark: str | None = None
    pulled: datetime | None = None
    shared: datetime | None = None
    shared_seal: int | None = None
    own: Version | None = None


_PLACE = "SELECT target, keys, bookmark, pulled, shared, shared_seal, own_seal, own_digest FROM places"


def place(db: sqlite3.Connection, target: str) -> Place:
    """Return what is known about a commons, which may be nothing."""
    row = db.execute(f"{_PLACE} WHERE target = ?", (target,)).fetchone()
    return Place(target) if row is None else _place(row)


def places(db: sqlite3.Connection) -> tuple[Place, ...]:
    """Return every commons that this memory knows, in order."""
    return tuple(map(_place, db.execute(f"{_PLACE} ORDER BY target")))


def meet(db: sqlite3.Connection, target: str, keys: tuple[str, ...]) -> None:
    """Keep the keys that a commons named at first contact."""
    _know(db, target)
    db.execute("UPDATE places SET keys = ? WHERE target = ? AND keys IS NULL", (json.dumps(keys), target))


def note_pulled(db: sqlite3.Connection, target: str, bookmark: str | None, now: datetime) -> None:
    """Note that a commons was pulled from, and how far."""
    _know(db, target)
    db.execute("UPDATE places SET pulled = ?, bookmark = ? WHERE target = ?", (format_time(now), bookmark, target))


def note_sent(db: sqlite3.Connection, target: str, now: datetime) -> None:
    """Note that this memory's file is on its way to a commons: from here on it may lie there."""
    _know(db, target)
    db.execute("UPDATE places SET shared = ? WHERE target = ?", (format_time(now), target))


def note_not_there(db: sqlite3.Connection, target: str) -> None:
    """Note that what was sent to a commons is not there, where nothing was put there before."""
    db.execute("UPDATE places SET shared = NULL WHERE target = ? AND shared_seal IS NULL", (target,))


def note_shared(db: sqlite3.Connection, target: str, seal: int | None, now: datetime) -> None:
    """Note that this memory's file was put at a commons."""
    _know(db, target)
    db.execute("UPDATE places SET shared = ?, shared_seal = ? WHERE target = ?", (format_time(now), seal, target))


def note_own(db: sqlite3.Connection, target: str, own: Version | None) -> None:
    """Note which version of this memory's own file a commons lists."""
    _know(db, target)
    values = (None, None) if own is None else (own.seal, own.digest)
    db.execute("UPDATE places SET own_seal = ?, own_digest = ? WHERE target = ?", (*values, target))


def note_private(db: sqlite3.Connection, target: str, *, is_private: bool) -> None:
    """Note whether a place lets in whom it chooses alone."""
    if is_private:
        db.execute("INSERT INTO private_places (target) VALUES (?) ON CONFLICT DO NOTHING", (target,))
    else:
        db.execute("DELETE FROM private_places WHERE target = ?", (target,))


def private_sources(db: sqlite3.Connection) -> frozenset[str]:
    """Return from where files came that are not handed on: private places, and `OWN` where it is so with the own."""
    private = frozenset(target for (target,) in db.execute("SELECT target FROM private_places"))
    shared = {target for (target,) in db.execute("SELECT target FROM places WHERE shared IS NOT NULL")}
    return private | {OWN} if shared and shared <= private else private


def forget(db: sqlite3.Connection, target: str) -> bool:
    """Forget a commons and whom it admitted, all but the keys of first contact; tell whether there was anything."""
    known = place(db, target)
    admissions = db.execute("DELETE FROM admissions WHERE target = ?", (target,)).rowcount
    db.execute("DELETE FROM places WHERE target = ?", (target,))
    if known.keys is not None:
        meet(db, target, known.keys)
    return admissions > 0 or known != Place(target, keys=known.keys)


def _know(db: sqlite3.Connection, target: str) -> None:
    db.execute("INSERT INTO places (target) VALUES (?) ON CONFLICT DO NOTHING", (target,))


def _place(row: sqlite3.Row) -> Place:
    target, keys, bookmark, pulled, shared, shared_seal, own_seal, own_digest = row
    return Place(
        target,
        None if keys is None else tuple(json.loads(keys)),
        bookmark,
        None if pulled is None else parse_time(pulled),
        None if shared is None else parse_time(shared),
        shared_seal,
        None if own_digest is None else Version(own_seal, own_digest),
    )


# --- admissions ---


def admit(db: sqlite3.Connection, target: str, principals: Mapping[str, str | None], *, whole: bool) -> bool:
    """Take over what a commons says about who answers for which key; tell whether anything changed.

    Args:
        db: the memory.
        target: the commons.
        principals: each listed key's principal, None for a key that it does not admit.
        whole: whether every key of that commons is listed, so that the others are no longer admitted.
    """
    before: dict[str, str] = dict(
        db.execute("SELECT key, principal FROM admissions WHERE target = ?", (target,)).fetchall()
    )
    after = {} if whole else {key: name for key, name in before.items() if key not in principals}
    after |= {key: name for key, name in principals.items() if name is not None}
    if after == before:
        return False
    gone = [(target, key) for key in before.keys() - after.keys()]
    come = [(target, key, name) for key, name in after.items() if before.get(key) != name]
    db.executemany("DELETE FROM admissions WHERE target = ? AND key = ?", gone)
    db.executemany(
        "INSERT INTO admissions (target, key, principal) VALUES (?, ?, ?)"
        " ON CONFLICT (target, key) DO UPDATE SET principal = excluded.principal",
        come,
    )
    return True


def admissions(db: sqlite3.Connection) -> frozenset[Admission]:
    """Return every admission by the commons that this memory pulls from."""
    return frozenset(Admission(*row) for row in db.execute("SELECT key, target, principal FROM admissions"))


# --- keys that spoke twice ---


_EQUIVOCATION: Final = "SELECT key, seal, first, second, at FROM equivocations"


@dataclass(frozen=True, slots=True)
class Equivocation:
    """Two seals of one number by one key: its owner spoke twice, or someone else has the key."""

    key: str
    seal: int
    first: bytes
    second: bytes
    at: datetime


def note_equivocation(db: sqlite3.Connection, first: Seal, second: Seal, now: datetime) -> None:
    """Keep the two seals that prove an equivocation, where none of their key is proven yet."""
    key, lines = first.key.hex, sorted((first.line, second.line))
    item = items.prove(db, key)
    db.execute(
        "INSERT INTO equivocations (key, seal, first, second, at, item) SELECT ?1, ?2, ?3, ?4, ?5, ?6"
        " WHERE NOT EXISTS (SELECT 1 FROM equivocations WHERE key = ?1)",
        (key, first.number, *lines, format_time(now), item.id),
    )


def size_of_loose_proofs(db: sqlite3.Connection) -> int:
    """Return how many bytes the proofs take that are about keys of which no file is held."""
    row = db.execute(
        "SELECT coalesce(sum(length(first) + length(second)), 0) FROM equivocations"
        " WHERE key NOT IN (SELECT key FROM holdings)"
    ).fetchone()
    return int(row[0])


def equivocations(db: sqlite3.Connection) -> tuple[Equivocation, ...]:
    """Return every proof of an equivocation, in order."""
    return tuple(map(_equivocation, db.execute(_EQUIVOCATION + " ORDER BY key, seal")))


def proof_of(db: sqlite3.Connection, item: bytes) -> Equivocation | None:
    """Return the proof whose item has this id; the first of a key's, for one is enough."""
    rows = db.execute(_EQUIVOCATION + " WHERE item = ? ORDER BY seal LIMIT 1", (item,))
    return next(map(_equivocation, rows), None)


def _equivocation(row: sqlite3.Row) -> Equivocation:
    key, seal, first, second, at = row
    return Equivocation(key, seal, first, second, parse_time(at))
