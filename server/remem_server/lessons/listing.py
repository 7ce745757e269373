"""Which lessons a page lists, and in which order (PROTOCOL.md, section 11).

A list is in the order of `SEGMENTS`, and within one in the order of places. Which segment a confirmed lesson is in, the
day of its place says: of as many confirmations, a segment's lessons stand side by side. So a list goes from one number
of confirmations to the next by the index of places, and passes over the lessons of other segments unread, however
many they are. A page asks for as many rows as it returns, and one more to know whether there is another.

A search goes by the index of words: it reads the places of all lessons that have them, and the rows of its page.

Functions on a connection of a caller that only reads.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from functools import cache
from typing import Any, Final, NamedTuple

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Connection,
    Executable,
    Integer,
    Row,
    Select,
    String,
    bindparam,
    cast,
    column,
    select,
    table,
    text,
)
from sqlalchemy.dialects.postgresql import TSQUERY

from remem.protocol import Policy, State
from remem.protocol.evidence import Count
from remem_server.database.engine import is_postgres
from remem_server.database.tables import lessons
from remem_server.lessons import search

SEGMENTS: Final = (State.COMMON, State.FADING, State.CANDIDATE, State.REMOVED, State.REVOKED)

CURSOR_FORM: Final = re.compile(r"[0-4][0-9a-f]{1,16}")

READ: Final = select(*(lessons.c[name] for name in ("hash", "kind", "text", "place", *Count._fields)))
"""A lesson, as `reading.py` reads it."""

_WINDOW: Final = Policy().window
_GRADES: Final = {State.CANDIDATE: search.GRADE_CANDIDATE, State.REVOKED: search.GRADE_REVOKED}
_LAST_DAY: Final = (1 << search.DAY_BITS) - 1

_fts: Final = table("lesson_words", column("rowid", Integer), column("lesson_words"))

# A run is all lessons of a grade that have as many confirmations. Each step finds the first lesson of the next one, and
# the rows of a run are read when its turn comes. Nothing is sorted: that would take all runs to their ends.
_RUN_BITS: Final = search.DAY_BITS + search.ID_BITS
_COLUMNS: Final = ", ".join(READ.selected_columns.keys())
_RUNS: Final = """
WITH RECURSIVE runs(run) AS (
    SELECT (SELECT place FROM lessons WHERE place > :after AND place < :end ORDER BY place LIMIT 1) >> :bits
    UNION ALL
    SELECT (
        SELECT place FROM lessons WHERE place >= (run + 1) << :bits AND place < :end ORDER BY place LIMIT 1
    ) >> :bits
    FROM runs WHERE run IS NOT NULL
)
"""
_OF_RUN: Final = """
place >= {greatest}(:after + 1, (run << :bits) + :first) AND place < (run << :bits) + :behind
"""
_OF_KIND: Final = "AND kind = :kind"
# Not the column alone, of which it would make an index for this one query.
_OF_KIND_SQLITE: Final = "AND +kind = :kind"
_POSTGRES: Final = """
SELECT {columns} FROM runs
    CROSS JOIN LATERAL (SELECT {columns} FROM lessons WHERE {of_run} ORDER BY place LIMIT :most) AS listed
    LIMIT :most
"""
# It keeps the order of a cross join, and knows no lateral one.
_SQLITE: Final = "SELECT {columns} FROM runs CROSS JOIN lessons WHERE {of_run} LIMIT :most"


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


class Listed(NamedTuple):
    """The rows of a page, in order, and where to go on; None at the end."""

    rows: list[Row[Any]]
    following: Cursor | None


def listed(connection: Connection, wanted: Wanted, cursor: Cursor | None, most: int, today: datetime) -> Listed:
    """Find the next lessons of which a publication stands.

    Args:
        connection: of the caller.
        wanted: which ones.
        cursor: behind which; None for the first page.
        most: how many there may be.
        today: the beginning of the day that this is.
    """
    if wanted.words == ():
        return Listed([], None)
    start = cursor or _START
    found: list[tuple[Cursor, Row[Any]]] = []
    for segment, state in enumerate(SEGMENTS):
        left = most + 1 - len(found)
        if segment < start.segment or wanted.state not in (None, state) or not left:
            continue
        after = start.place if segment == start.segment else -1
        found += [(Cursor(segment, row.place), row) for row in _rows(connection, wanted, state, after, left, today)]
    return Listed([row for _cursor, row in found[:most]], found[most - 1][0] if len(found) > most else None)


def _rows(
    connection: Connection, wanted: Wanted, state: State, after: int, most: int, today: datetime
) -> Sequence[Row[Any]]:
    """Read the next rows of one segment."""
    start, end = search.places_of(_GRADES.get(state, search.GRADE_CONFIRMED))
    first, last = _days(state, today)
    named: dict[str, Any] = {"after": max(after, start - 1), "end": end, "most": most}
    if wanted.kind is not None:
        named["kind"] = wanted.kind
    postgres = is_postgres(connection)
    if wanted.words is not None:
        named |= {"first": first, "last": last}
        named["words"] = search.tsquery(wanted.words) if postgres else search.fts_query(wanted.words)
        return connection.execute(_found(of_kind=wanted.kind is not None, postgres=postgres), named).all()
    if state in _GRADES:
        return connection.execute(_whole(of_kind=wanted.kind is not None), named).all()
    named |= {"first": first << search.ID_BITS, "behind": (last + 1) << search.ID_BITS}
    return connection.execute(_by_runs(of_kind=wanted.kind is not None, postgres=postgres), named).all()


def _days(state: State, today: datetime) -> tuple[int, int]:
    """Return the first and the last day, as places have them, on which a lesson in this state was confirmed."""
    recent, old = search.turned_day(today - _WINDOW), search.turned_day(today - 2 * _WINDOW)
    match state:
        case State.COMMON:
            return 0, recent
        case State.FADING:
            return recent + 1, old
        case State.REMOVED:
            return old + 1, _LAST_DAY
        case _:
            return 0, _LAST_DAY


@cache
def _by_runs(*, of_kind: bool, postgres: bool) -> Executable:
    """Select the rows of a segment of confirmed lessons."""
    query, greatest, kind = (_POSTGRES, "greatest", _OF_KIND) if postgres else (_SQLITE, "max", _OF_KIND_SQLITE)
    of_run = _OF_RUN.format(greatest=greatest) + (kind if of_kind else "")
    whole = text(_RUNS + query.format(columns=_COLUMNS, of_run=of_run))
    numbers = [bindparam(name, type_=BigInteger) for name in ("after", "end", "first", "behind", "most")]
    # PostgreSQL shifts by an integer.
    numbers.append(bindparam("bits", _RUN_BITS, type_=Integer))
    kinds = [bindparam("kind", type_=String)] if of_kind else []
    return whole.bindparams(*numbers, *kinds).columns(*READ.selected_columns)


@cache
def _whole(*, of_kind: bool) -> Executable:
    """Select the rows of a segment that is a whole grade."""
    return _of_page(READ, lessons.c.place, of_kind=of_kind)


@cache
def _found(*, of_kind: bool, postgres: bool) -> Executable:
    """Select the rows of a segment that have words."""
    query: Select[Any] = READ
    place: ColumnElement[int] = lessons.c.place
    if postgres:
        query = query.where(lessons.c.words.op("@@")(cast(bindparam("words"), TSQUERY)))
    else:
        place = _fts.c.rowid
        query = query.join_from(_fts, lessons, lessons.c.place == place)
        query = query.where(_fts.c.lesson_words.op("MATCH")(bindparam("words")))
    query = query.where(search.turned_day_of(place).between(bindparam("first"), bindparam("last")))
    return _of_page(query, place, of_kind=of_kind)


def _of_page(query: Select[Any], place: ColumnElement[int], *, of_kind: bool) -> Select[Any]:
    if of_kind:
        query = query.where(lessons.c.kind == bindparam("kind"))
    query = query.where(place > bindparam("after"), place < bindparam("end"))
    return query.order_by(place).limit(bindparam("most"))
