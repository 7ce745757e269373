"""Whom this memory trusts: keys that it follows, and keys whose revocations and denials it obeys.

- The owner's word stands: what the owner added stays, and what the owner removed is declined for ever. Only the
  owner's own `add` takes that back.
- The keys of a commons are pinned at first contact, and only then, as revokers (PROTOCOL.md, section 11).
"""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal, TypeAlias, cast

from remem.protocol.times import format_time, parse_time

Role: TypeAlias = Literal["follow", "revoker"]
ROLES: Final[tuple[Role, ...]] = ("follow", "revoker")


@dataclass(frozen=True, slots=True)
class Trust:
    """One key in one role.

    Attributes:
        key: the trusted key, 64 hex digits.
        role: `follow`, its confirmations count; `revoker`, its revocations and denials are obeyed.
        since: when it was added.
        via: the commons at whose first contact it was pinned; None where the owner added it.
        declined: the owner removed it, so that it is not pinned again.
    """

    key: str
    role: Role
    since: datetime
    via: str | None
    declined: bool


def add(db: sqlite3.Connection, key: str, role: Role, now: datetime) -> None:
    """Trust a key in a role, by the owner's word."""
    db.execute(
        "INSERT INTO trust (key, role, since, via, declined) VALUES (?, ?, ?, NULL, 0)"
        " ON CONFLICT (key, role) DO UPDATE SET since = excluded.since, via = NULL, declined = 0"
        " WHERE declined OR via IS NOT NULL",
        (key, role, format_time(now)),
    )


def pin(db: sqlite3.Connection, key: str, role: Role, via: str, now: datetime) -> bool:
    """Trust a key of a commons at first contact, unless the owner has said anything about it; tell whether."""
    found = db.execute(
        "INSERT INTO trust (key, role, since, via, declined) VALUES (?, ?, ?, ?, 0) ON CONFLICT DO NOTHING",
        (key, role, format_time(now), via),
    )
    return found.rowcount == 1


def remove(db: sqlite3.Connection, key: str, roles: tuple[Role, ...] = ROLES) -> tuple[Role, ...]:
    """Stop to trust a key, for ever; return the roles that it had."""
    had = tuple(role for role in roles if key in trusted(db, role))
    db.executemany("UPDATE trust SET declined = 1 WHERE key = ? AND role = ?", [(key, role) for role in had])
    return had


def trusted(db: sqlite3.Connection, role: Role) -> frozenset[str]:
    """Return the keys that are trusted in a role."""
    return frozenset(row[0] for row in db.execute("SELECT key FROM trust WHERE role = ? AND NOT declined", (role,)))


def everything(db: sqlite3.Connection, role: Role | None = None) -> tuple[Trust, ...]:
    """Return what the owner and first contacts have said about keys, in order, the declined ones too."""
    rows = db.execute(
        "SELECT key, role, since, via, declined FROM trust WHERE ?1 IS NULL OR role = ?1 ORDER BY role, since, key",
        (role,),
    )
    return tuple(
        Trust(key, cast("Role", role), parse_time(since), via, bool(declined))
        for key, role, since, via, declined in rows
    )
