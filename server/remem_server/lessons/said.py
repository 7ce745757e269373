"""What a key says, as rows of the table `statements`, and what the policy makes of each.

Functions on a connection whose transaction the caller owns. They read and write by key, and no more than a file has.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, NamedTuple

from sqlalchemy import Connection, bindparam, delete, literal_column, select, update

from remem.protocol import Confirmation, Denial, Lesson, Revocation
from remem_server.database.bulk import among, delete_rows, insert_rows, update_rows
from remem_server.database.tables import lessons, statements
from remem_server.lessons.rows import ABOUT, NAMED_AT_ONCE, chunks

Topic = tuple[str, str]
"""A statement's type and its subject."""

Marks = dict[tuple[str, str, str], bool]
"""What the column `counts` is to say of a statement, by its key, type and subject."""


class Line(NamedTuple):
    """A statement without its key and its topic; `counts` is the column as it stands, None for a new one."""

    time: datetime | None
    kind: str | None
    text: str | None
    counts: bool | None = None


@dataclass(slots=True)
class Stance:
    """What a key says of one lesson: each of its lines about it."""

    lesson: Line | None = None
    confirmation: Line | None = None
    revocation: Line | None = None


class Fellows(NamedTuple):
    """What the other keys of a principal say of a lesson.

    Attributes:
        publish: whether one of them does.
        revoke: whether one of them does.
        key: the one that confirmed it last; None where none did.
        time: when.
        counts: whether its confirmation is marked as the one that counts.
    """

    publish: bool = False
    revoke: bool = False
    key: str | None = None
    time: datetime | None = None
    counts: bool | None = None


_TOPIC: Final = ("key", "type", "subject")
_SAID: Final = ("time", "kind", "text")
_OF_KEY: Final = statements.c.key == bindparam("of_key")
_LINES: Final = select(*(statements.c[name] for name in ("type", "subject", *Line._fields))).where(
    _OF_KEY, statements.c.type.in_(ABOUT)
)
_LINES_OF: Final = _LINES.where(among(statements.c.subject, "subjects"))
_DENIED: Final = select(statements.c.subject).where(_OF_KEY, statements.c.type == Denial.type)
_FORGET_ALL: Final = delete(statements).where(_OF_KEY)
_ANSWER: Final = update(statements).where(_OF_KEY, statements.c.type.in_(ABOUT)).values(principal=bindparam("of"))

_fellow: Final = statements.alias()
# In so many words, as the index has it.
_SAME: Final = (
    _fellow.c.subject == lessons.c.hash,
    _fellow.c.principal == bindparam("principal"),
    _fellow.c.key != bindparam("of_key"),
)
_LATEST: Final = {
    name: select(_fellow.c[name])
    .where(*_SAME, _fellow.c.type == Confirmation.type, _fellow.c.time.is_not(None))
    .order_by(_fellow.c.time.desc(), _fellow.c.key.desc())
    .limit(1)
    .scalar_subquery()
    for name in ("key", "time", "counts")
}
_FELLOWS: Final = select(
    lessons.c.hash,
    select(literal_column("1")).where(*_SAME, _fellow.c.type == Lesson.type).exists(),
    select(literal_column("1")).where(*_SAME, _fellow.c.type == Revocation.type).exists(),
    *_LATEST.values(),
).where(among(lessons.c.hash, "hashes"))


def lines_of(connection: Connection, key: str, subjects: Collection[str] | None = None) -> dict[Topic, Line]:
    """Read what a key says of these lessons, or of all."""
    # Of many it takes less to read all that a file says.
    if subjects is None or len(subjects) > NAMED_AT_ONCE:
        rows = connection.execute(_LINES, {"of_key": key}).all()
        return {(row[0], row[1]): Line(*row[2:]) for row in rows if subjects is None or row[1] in subjects}
    if not subjects:
        return {}
    rows = connection.execute(_LINES_OF, {"of_key": key, "subjects": sorted(subjects)}).all()
    return {(row[0], row[1]): Line(*row[2:]) for row in rows}


def stances_of(lines: Mapping[Topic, Line]) -> dict[str, Stance]:
    """Put the lines of a key together by what they are about."""
    stances: dict[str, Stance] = {}
    for (type_, subject), line in lines.items():
        stance = stances.get(subject)
        if stance is None:
            stance = stances[subject] = Stance()
        if type_ == Lesson.type:
            stance.lesson = line
        elif type_ == Confirmation.type:
            stance.confirmation = line
        else:
            stance.revocation = line
    return stances


def denied_by(connection: Connection, key: str) -> set[str]:
    """Read which keys a key denies."""
    return set(connection.execute(_DENIED, {"of_key": key}).scalars())


def fellows_of(connection: Connection, principal: str, key: str, hashes: Collection[str]) -> dict[str, Fellows]:
    """Read what the keys of a principal, besides one, say of lessons that have rows.

    Each answer is some entries of an index, however many these keys are.
    """
    found: dict[str, Fellows] = {}
    for some in chunks(hashes):
        rows = connection.execute(_FELLOWS, {"principal": principal, "of_key": key, "hashes": some})
        found.update((row[0], Fellows(*row[1:])) for row in rows)
    return found


def forget(connection: Connection, key: str, topics: Collection[Topic] | None) -> None:
    """Remove what a key says on these topics, or all of it."""
    if topics is None:
        connection.execute(_FORGET_ALL, {"of_key": key})
    else:
        delete_rows(connection, statements, _TOPIC, [(key, *topic) for topic in topics])


def add(
    connection: Connection, rows: Sequence[Mapping[str, Any]], principal: str | None = None, marks: Marks | None = None
) -> None:
    """Add statements of one key.

    Args:
        connection: of a transaction that writes.
        rows: the statements.
        principal: whom they are said for.
        marks: whether they count; those of these statements are taken out of it.
    """
    left = {} if marks is None else marks
    come = []
    for row in rows:
        topic = row["key"], row["type"], row["subject"]
        come.append((*topic, row["time"], row["kind"], row["text"], principal, left.pop(topic, None)))
    # In the order of the table, which then grows at one place.
    come.sort()
    insert_rows(connection, statements, (*_TOPIC, *_SAID, "principal", "counts"), come)


def answer(connection: Connection, key: str, principal: str | None) -> None:
    """Say who answers for all that a key says of lessons."""
    connection.execute(_ANSWER, {"of_key": key, "of": principal})


def mark(connection: Connection, marks: Marks) -> None:
    """Say of statements whether they count."""
    rows = [(counts, *topic) for topic, counts in sorted(marks.items())]
    update_rows(connection, statements, ("counts",), _TOPIC, rows)
