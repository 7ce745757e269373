"""This commons' own reading of the lessons it holds (PROTOCOL.md, sections 9 and 11).

What the statements about a lesson come to stands in its row, by the policy of the operator: keys count that this
commons admitted by token, or all where it is open; and the revokers are its operators. What it is worth follows from
the row and the day: the clock of this reading stands at the beginning of the day in UTC, so nothing moves between two
midnights without a write. `listing.py` says which lessons a page has.

Functions on a connection of a caller that only reads.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from datetime import UTC, datetime
from hashlib import sha256
from importlib.metadata import version
from typing import Any, Final, NamedTuple

from sqlalchemy import BindParameter, ColumnElement, Connection, Row, Select, bindparam, exists, select

from remem.protocol import Cause, Confirmation, Denial, Lesson, Policy, Revocation, State, Statement
from remem.protocol.evidence import Count
from remem.protocol.state import NAMED_MOST, explain, rule
from remem_server.database.tables import files, lessons, meta, statements
from remem_server.lessons.listing import READ, Cursor, Wanted, listed
from remem_server.lessons.policy import CountingPolicy, is_settled, policy_of
from remem_server.lessons.voices import counts, heard, principal_of

EVIDENCE_MOST: Final = 1_000

_THRESHOLDS: Final = Policy()
_SOFTWARE: Final = version("remem")

_ONE: Final = READ.where(lessons.c.hash == bindparam("hash"))
_NEWEST: Final = select(files.c.digest).order_by(files.c.cursor.desc()).limit(1).scalar_subquery()
_GOES_BY: Final = select(meta.c.changes, meta.c.judgement, meta.c.policy, _NEWEST.label("digest"))

_REVOKERS: Final[BindParameter[str]] = bindparam("revokers", expanding=True)
_STATEMENT: Final = [statements.c[name] for name in Statement.__slots__]
_said: Final = statements.alias()


def _of_type(type_: str, *more: ColumnElement[Any]) -> Select[Any]:
    """Select what is said of a lesson in one way, with what is asked beside it; what stands or counts comes first."""
    return (
        select(*(_said.c[name] for name in Statement.__slots__), principal_of(_said.c.key), *more)
        .where(_said.c.type == type_, _said.c.subject == bindparam("hash"))
        # As the index has it, from its end.
        .order_by(_said.c.counts.desc(), _said.c.key.desc())
        .limit(bindparam("most"))
    )


_PUBLICATIONS: Final = _of_type(Lesson.type)
_REVOCATIONS: Final = _of_type(Revocation.type)
_CONFIRMATIONS: Final = _of_type(Confirmation.type, counts(_said))
_DENIALS: Final = (
    select(*_STATEMENT, principal_of(statements.c.key))
    .where(
        statements.c.type == Denial.type,
        statements.c.key.in_(_REVOKERS),
        exists().where(
            _said.c.key == statements.c.subject,
            _said.c.type.in_((Lesson.type, Confirmation.type, Revocation.type)),
            _said.c.subject == bindparam("hash"),
        ),
    )
    .order_by(statements.c.key, statements.c.subject)
    .limit(bindparam("most"))
)
_REVOKING: Final = (
    select(statements.c.key)
    .where(
        statements.c.type == Revocation.type,
        statements.c.subject == bindparam("hash"),
        # No policy marks a revocation, so in the index they are in the order of their keys.
        statements.c.counts.is_(None),
        heard(statements.c.key),
    )
    .order_by(statements.c.key)
    .limit(NAMED_MOST)
)
_TRUSTED: Final = (
    select(statements.c.subject, statements.c.key)
    .where(
        statements.c.type == Revocation.type,
        statements.c.subject.in_(bindparam("hashes", expanding=True)),
        statements.c.key.in_(_REVOKERS),
        heard(statements.c.key),
    )
    .order_by(statements.c.subject, statements.c.key)
)


class Said(NamedTuple):
    """One record about a lesson.

    Attributes:
        statement: what it says.
        principal: who answers for its key here; None for a key that is not admitted.
        counted: of a confirmation, whether it counts.
    """

    statement: Statement
    principal: str | None
    counted: bool | None = None


class Known(NamedTuple):
    """A lesson as this commons reads it: see `Reading`."""

    hash: str
    kind: str | None
    text: str | None
    state: State
    cause: Cause
    why: str
    confirmations: int
    unadmitted: int
    corroborations: int
    last_confirmed: datetime | None


class Page(NamedTuple):
    """Some lessons, in order, and where to go on; None at the end."""

    lessons: list[Known]
    following: Cursor | None


class Evidence(NamedTuple):
    """The records about a lesson, and whether these are all of them."""

    said: list[Said]
    complete: bool


def as_of(now: datetime) -> datetime:
    """Return the moment that a reading at this one is of: the beginning of the day in UTC."""
    return now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)


def mark_of(connection: Connection, now: datetime) -> str | None:
    """Name all that readings go by, without reading any: two with one mark are the same.

    Returns:
        None while all lessons are being counted, and a reading may change with every look.
    """
    row = connection.execute(_GOES_BY).one()
    if not is_settled(row.policy):
        return None
    what = [row.digest, row.judgement, row.policy, str(as_of(now).date()), _SOFTWARE]
    return f"{row.changes}-{sha256(json.dumps(what).encode()).hexdigest()[:16]}"


def page(connection: Connection, wanted: Wanted, cursor: Cursor | None, most: int, now: datetime) -> Page:
    """Read the next lessons of which a publication stands."""
    today = as_of(now)
    rows, following = listed(connection, wanted, cursor, most, today)
    return Page(_known(connection, policy_of(connection), rows, today), following)


def lesson(connection: Connection, hash_: str, now: datetime) -> tuple[Known, Evidence] | None:
    """Read one lesson, with its evidence; None where nothing is held about it."""
    row = connection.execute(_ONE, {"hash": hash_}).one_or_none()
    if row is None:
        return None
    policy = policy_of(connection)
    (known,) = _known(connection, policy, [row], as_of(now))
    return known, _evidence(connection, policy, hash_)


def _known(connection: Connection, policy: CountingPolicy, rows: Collection[Row[Any]], today: datetime) -> list[Known]:
    """Say what rows mean today."""
    read = [(row, Count(*row[-len(Count._fields) :])) for row in rows]
    ruled = [(row, count, *rule(count, _THRESHOLDS, today)) for row, count in read]
    by = _revokers(connection, policy, [row.hash for row, _count, _state, cause in ruled if cause is Cause.REVOKER])
    for row, _count, _state, cause in ruled:
        if cause is Cause.WITHDRAWN:
            by[row.hash] = _first_revoking(connection, policy, row.hash)
    return [
        Known(
            hash=row.hash,
            kind=row.kind,
            text=row.text,
            state=state,
            cause=cause,
            why=explain(cause, count, by.get(row.hash, ())),
            confirmations=count.confirmations,
            unadmitted=count.unadmitted,
            corroborations=max(0, count.standing - 1),
            last_confirmed=count.last_confirmed,
        )
        for row, count, state, cause in ruled
    ]


def _first_revoking(connection: Connection, policy: CountingPolicy, hash_: str) -> list[str]:
    named = {"hash": hash_, "revokers": sorted(policy.revokers)}
    return list(connection.execute(_REVOKING, named).scalars())


def _revokers(connection: Connection, policy: CountingPolicy, hashes: Collection[str]) -> dict[str, list[str]]:
    """Find which of the revokers revoke each of these lessons."""
    by: dict[str, list[str]] = {}
    if hashes:
        named = {"hashes": sorted(hashes), "revokers": sorted(policy.revokers)}
        for hash_, key in connection.execute(_TRUSTED, named):
            by.setdefault(hash_, []).append(key)
    return by


def _evidence(connection: Connection, policy: CountingPolicy, hash_: str) -> Evidence:
    """Read the records about a lesson, and the denials that take out a key of one: first what speaks against it.

    Keys are cheap where anyone may publish, and many that repeat a sentence must not hide that it was taken back.
    """
    named = {"hash": hash_, "revokers": sorted(policy.revokers)}
    said: list[Said] = []
    for query in (_REVOCATIONS, _DENIALS, _PUBLICATIONS, _CONFIRMATIONS):
        rows = connection.execute(query, {**named, "most": EVIDENCE_MOST + 1 - len(said)})
        said += [Said(Statement(*row[:6]), *row[6:]) for row in rows]
    return Evidence(said[:EVIDENCE_MOST], len(said) <= EVIDENCE_MOST)
