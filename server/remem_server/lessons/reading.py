"""This commons' own reading of the lessons it holds (PROTOCOL.md, sections 9 and 11).

What the statements about a lesson come to stands in its row, by the policy of the operator: keys count that this
commons admitted by token, or all where it is open; and the revokers are its operators. What it is worth at this
moment follows from the row and the clock.

A list is in the order of `SEGMENTS`, and within one in the order of places. A confirmed lesson moves from one
segment to the next as time passes, without a write: which of them it is in, its last confirmation says. A page asks for
as many rows as it returns, and one more to know whether there is another.

Functions on a connection of a caller that only reads.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from datetime import datetime
from functools import cache
from typing import Any, Final, NamedTuple

from sqlalchemy import (
    BindParameter,
    ColumnElement,
    Connection,
    Integer,
    Row,
    Select,
    bindparam,
    cast,
    column,
    exists,
    select,
    table,
)
from sqlalchemy.dialects.postgresql import TSQUERY

from remem.protocol import Cause, Confirmation, Denial, Lesson, Policy, Revocation, State, Statement
from remem.protocol.evidence import Count
from remem.protocol.state import NAMED_MOST, explain, rule
from remem_server.database.engine import is_postgres
from remem_server.database.tables import Moment, lessons, statements
from remem_server.lessons import search
from remem_server.lessons.policy import CountingPolicy, policy_of
from remem_server.lessons.voices import counts, heard, principal_of

EVIDENCE_MOST: Final = 1_000

SEGMENTS: Final = (State.COMMON, State.FADING, State.CANDIDATE, State.REMOVED, State.REVOKED)

CURSOR_FORM: Final = re.compile(r"[0-4][0-9a-f]{1,16}")

_THRESHOLDS: Final = Policy()
_GRADES: Final = {State.CANDIDATE: search.GRADE_CANDIDATE, State.REVOKED: search.GRADE_REVOKED}

_LESSON: Final = select(*(lessons.c[name] for name in ("hash", "kind", "text", "place", *Count._fields)))
_ONE: Final = _LESSON.where(lessons.c.hash == bindparam("hash"))
_fts: Final = table("lesson_words", column("rowid", Integer), column("lesson_words"))

_REVOKERS: Final[BindParameter[str]] = bindparam("revokers", expanding=True)
_STATEMENT: Final = [statements.c[name] for name in Statement.__slots__]
_said: Final = statements.alias()


def _of_type(type_: str, *more: ColumnElement[Any]) -> Select[Any]:
    """Select what is said of a lesson in one way, by key, with what is asked beside it."""
    return (
        select(*(_said.c[name] for name in Statement.__slots__), principal_of(_said.c.key), *more)
        .where(_said.c.type == type_, _said.c.subject == bindparam("hash"))
        .order_by(_said.c.key)
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


class Wanted(NamedTuple):
    """Which lessons are wanted; None leaves the choice open.

    Attributes:
        state: only lessons in this state.
        kind: only lessons of this kind.
        words: only lessons that have all of these words.
    """

    state: State | None = None
    kind: str | None = None
    words: tuple[str, ...] | None = None


class Cursor(NamedTuple):
    """Where in a list to go on: behind a place of a segment."""

    segment: int
    place: int

    @classmethod
    def parse(cls, text: str) -> Cursor:
        """Read a cursor.

        Raises:
            ValueError: it is none.
        """
        if not CURSOR_FORM.fullmatch(text) or (place := int(text[1:], 16)) >= 1 << 63:
            raise ValueError("expected the `next` of a page")
        return cls(int(text[0]), place)

    def __str__(self) -> str:
        """Spell the cursor."""
        return f"{self.segment}{self.place:x}"


_START: Final = Cursor(0, -1)


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


def page(connection: Connection, wanted: Wanted, cursor: Cursor | None, most: int, now: datetime) -> Page:
    """Read the next lessons of which a publication stands."""
    start = cursor or _START
    found: list[tuple[Cursor, Row[Any]]] = []
    for segment, state in enumerate(SEGMENTS):
        left = most + 1 - len(found)
        if segment < start.segment or wanted.state not in (None, state) or not left or wanted.words == ():
            continue
        after = start.place if segment == start.segment else -1
        rows = _rows(connection, wanted, state, after, left, now)
        found += [(Cursor(segment, row.place), row) for row in rows]
    listed = found[:most]
    return Page(
        _known(connection, policy_of(connection), [row for _cursor, row in listed], now),
        listed[-1][0] if len(found) > most else None,
    )


def lesson(connection: Connection, hash_: str, now: datetime) -> tuple[Known, Evidence] | None:
    """Read one lesson, with its evidence; None where nothing is held about it."""
    row = connection.execute(_ONE, {"hash": hash_}).one_or_none()
    if row is None:
        return None
    policy = policy_of(connection)
    (known,) = _known(connection, policy, [row], now)
    return known, _evidence(connection, policy, hash_)


def _rows(
    connection: Connection, wanted: Wanted, state: State, after: int, most: int, now: datetime
) -> Sequence[Row[Any]]:
    """Read the next rows of one segment."""
    start, end = search.places_of(_GRADES.get(state, search.GRADE_CONFIRMED))
    recent, old = now - _THRESHOLDS.window, now - 2 * _THRESHOLDS.window
    named = {
        "after": max(after, start - 1),
        "end": end,
        "most": most,
        "kind": wanted.kind,
        "recent": recent,
        "recent_day": search.turned_day(recent),
        "old": old,
        "old_day": search.turned_day(old),
    }
    postgres = is_postgres(connection)
    if wanted.words is not None:
        named["words"] = search.tsquery(wanted.words) if postgres else search.fts_query(wanted.words)
    query = _query(state, of_kind=wanted.kind is not None, by_words=wanted.words is not None, postgres=postgres)
    return connection.execute(query, named).all()


@cache
def _query(state: State, *, of_kind: bool, by_words: bool, postgres: bool) -> Select[Any]:
    query: Select[Any] = _LESSON
    place: ColumnElement[int] = lessons.c.place
    if by_words and postgres:
        query = query.where(lessons.c.words.op("@@")(cast(bindparam("words"), TSQUERY)))
    elif by_words:
        place = _fts.c.rowid
        query = query.join_from(_fts, lessons, lessons.c.place == place)
        query = query.where(_fts.c.lesson_words.op("MATCH")(bindparam("words")))
    if of_kind:
        query = query.where(lessons.c.kind == bindparam("kind"))
    query = query.where(place > bindparam("after"), place < bindparam("end"), *_aged(place, state))
    return query.order_by(place).limit(bindparam("most"))


def _aged(place: ColumnElement[int], state: State) -> list[ColumnElement[bool]]:
    """Ask that the last confirmation is as long ago as a state has it."""
    last, day = lessons.c.last_confirmed, search.turned_day_of(place)
    recent, old = bindparam("recent", type_=Moment), bindparam("old", type_=Moment)
    match state:
        case State.COMMON:
            return [day <= bindparam("recent_day"), last >= recent]
        case State.FADING:
            return [day >= bindparam("recent_day"), day <= bindparam("old_day"), last < recent, last >= old]
        case State.REMOVED:
            return [day >= bindparam("old_day"), last < old]
        case _:
            return []


def _known(connection: Connection, policy: CountingPolicy, rows: Collection[Row[Any]], now: datetime) -> list[Known]:
    """Say what rows mean at this moment."""
    read = [(row, Count(*row[-len(Count._fields) :])) for row in rows]
    ruled = [(row, count, *rule(count, _THRESHOLDS, now)) for row, count in read]
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
