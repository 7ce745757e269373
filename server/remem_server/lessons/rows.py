"""The rows of the table `lessons`: how they are read and written, and what no difference can tell of them.

Functions on a connection whose transaction the caller owns. What is looked for here is the first entry of an index, and
nothing else of what is said about a lesson is read.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from datetime import datetime
from typing import Any, Final, NamedTuple

from sqlalchemy import Connection, TextClause, bindparam, func, literal_column, select, text, tuple_

from remem.protocol import Confirmation, Lesson, Revocation
from remem.protocol.evidence import Count
from remem_server.database.bulk import Rows, among, delete_rows, insert_rows, update_rows
from remem_server.database.engine import is_postgres
from remem_server.database.tables import lessons, statements
from remem_server.lessons.policy import CountingPolicy
from remem_server.lessons.search import place_of, words_of
from remem_server.lessons.voices import heard

ABOUT: Final = (Lesson.type, Confirmation.type, Revocation.type)
"""The types of the statements that are about a lesson."""

NAMED_AT_ONCE: Final = 500
"""How many hashes are named in one query."""


class Row(NamedTuple):
    """What a row of `lessons` says of a hash.

    Attributes:
        sums: what the statements about it come to; `trusted` is 1 where a revoker revokes it.
        shown: the key whose publication is shown, None while none stands.
        kind: the kind of that publication.
        text: its text.
        updated: its time.
    """

    sums: Count = Count()
    shown: str | None = None
    kind: str | None = None
    text: str | None = None
    updated: datetime | None = None

    def place(self, id_: int) -> int | None:
        """Say where the row of this id stands in a list."""
        return None if self.updated is None else place_of(self.sums, self.updated, id_)

    def columns(self, id_: int) -> dict[str, Any]:
        """Return the columns of the row of this id, besides its id and its hash."""
        return {
            **self.sums._asdict(),
            "trusted": self.sums.trusted > 0,
            "shown": self.shown,
            "kind": self.kind,
            "text": self.text,
            "updated": self.updated,
            "words": None if self.text is None else words_of(self.text),
            "place": self.place(id_),
        }

    def with_sums(self, **sums: Any) -> Row:
        """Return the row with some other sums."""
        return self._replace(sums=self.sums._replace(**sums))


# Of a lesson that is listed before and after, these alone move it: from `trusted` to `last_confirmed`.
_PLACING: Final = slice(2, 6)


class Stored(NamedTuple):
    """A row as it is stored, with its id."""

    id: int
    row: Row


NOTHING: Final = Row()

_READ: Final = ("id", "hash", "shown", "kind", "text", "updated", *Count._fields)
_COLUMNS: Final = tuple(NOTHING.columns(0))
_ROWS: Final = select(*(lessons.c[name] for name in _READ)).where(among(lessons.c.hash, "hashes"))
_NEWEST_ID: Final = select(func.coalesce(func.max(lessons.c.id), 0))
_IN_IDS: Final = "FROM lessons WHERE id IN (SELECT value FROM json_each(:ids)) AND place IS NOT NULL ORDER BY place"
_UNLIST: Final = text(f"INSERT INTO lesson_words(lesson_words, rowid, words) SELECT 'delete', place, words {_IN_IDS}")
_LIST: Final = text(f"INSERT INTO lesson_words(rowid, words) SELECT place, words {_IN_IDS}")

_said: Final = statements.alias()
# In so many words, as the indexes have them.
_LAST: Final = select(
    lessons.c.hash,
    select(_said.c.time)
    .where(_said.c.subject == lessons.c.hash, _said.c.type == literal_column("'confirm'"), _said.c.counts)
    .order_by(_said.c.time.desc())
    .limit(1)
    .scalar_subquery(),
).where(among(lessons.c.hash, "hashes"))
_LOWEST: Final = select(
    lessons.c.hash,
    select(_said.c.key)
    .where(_said.c.subject == lessons.c.hash, _said.c.type == literal_column("'lesson'"), _said.c.counts)
    .order_by(_said.c.key)
    .limit(1)
    .scalar_subquery(),
).where(among(lessons.c.hash, "hashes"))
_PUBLICATIONS: Final = select(*(statements.c[name] for name in ("subject", "key", "kind", "text", "time"))).where(
    statements.c.type == Lesson.type,
    tuple_(statements.c.subject, statements.c.key).in_(bindparam("pairs", expanding=True)),
)
_TRUSTED: Final = (
    select(statements.c.subject)
    .distinct()
    .where(
        statements.c.type == Revocation.type,
        among(statements.c.subject, "hashes"),
        statements.c.key.in_(bindparam("revokers", expanding=True)),
        heard(statements.c.key),
    )
)
_SAID_OF: Final = select(lessons.c.hash).where(
    among(lessons.c.hash, "hashes"),
    select(_said.c.key).where(_said.c.type.in_(ABOUT), _said.c.subject == lessons.c.hash).exists(),
)


def chunks(hashes: Collection[str]) -> Iterator[list[str]]:
    """Cut hashes into as many as a query names at once, in their order."""
    whole = sorted(hashes)
    return (whole[start : start + NAMED_AT_ONCE] for start in range(0, len(whole), NAMED_AT_ONCE))


def read_rows(connection: Connection, hashes: Collection[str]) -> dict[str, Stored]:
    """Read the rows of these hashes, as far as they have any."""
    found: dict[str, Stored] = {}
    for some in chunks(hashes):
        for id_, hash_, shown, kind, said, updated, *sums in connection.execute(_ROWS, {"hashes": some}).all():
            found[hash_] = Stored(id_, Row(Count(*sums), shown, kind, said, updated))
    return found


def write_rows(
    connection: Connection,
    held: Mapping[str, Stored],
    rows: Mapping[str, Row],
    gone: Collection[str],
    *,
    anew: bool = False,
) -> None:
    """Make these the rows of their hashes.

    Args:
        connection: of the one transaction that writes at this time.
        held: what `read_rows` found of the hashes.
        rows: what they say from now on.
        gone: the hashes about which nothing is said any more.
        anew: whether rows that say this already are written too, with all that follows from it.
    """
    added, changed, moved, summed = list[Any](), list[Any](), list[Any](), list[Any]()
    for hash_, row in rows.items():
        stored = held.get(hash_)
        if stored is None:
            added.append((hash_, row))
        elif anew or row[1:] != stored.row[1:]:
            changed.append((*row.columns(stored.id).values(), stored.id))
        elif row.sums != stored.row.sums:
            # The text stays, and most often the place: what neither of them changes costs no index anything.
            if row.sums[_PLACING] == stored.row.sums[_PLACING]:
                summed.append((*_stored_sums(row), stored.id))
            else:
                moved.append((*_stored_sums(row), row.place(stored.id), stored.id))
    listed = [columns[-1] for columns in (*changed, *moved)]
    if not is_postgres(connection):
        _index(connection, _UNLIST, listed)
    delete_rows(connection, lessons, ("id",), [(held[hash_].id,) for hash_ in gone if hash_ in held])
    update_rows(connection, lessons, _COLUMNS, ("id",), changed)
    update_rows(connection, lessons, (*Count._fields, "place"), ("id",), moved)
    update_rows(connection, lessons, Count._fields, ("id",), summed)
    listed += _add(connection, added)
    if not is_postgres(connection):
        _index(connection, _LIST, listed)


def _stored_sums(row: Row) -> tuple[Any, ...]:
    sums = row.sums
    return (sums[0], sums[1], sums.trusted > 0, *sums[3:])


def _add(connection: Connection, added: list[tuple[str, Row]]) -> list[int]:
    """Add the rows of hashes, and return the ids that they get."""
    if not added:
        return []
    newest: int = connection.execute(_NEWEST_ID).scalar_one()
    ids = list(range(newest + 1, newest + 1 + len(added)))
    rows: Rows = [(id_, hash_, *row.columns(id_).values()) for id_, (hash_, row) in zip(ids, added, strict=True)]
    insert_rows(connection, lessons, ("id", "hash", *_COLUMNS), rows)
    return ids


def _index(connection: Connection, statement: TextClause, ids: list[int]) -> None:
    """Take the words of rows out of the full-text table as they stand, or put them in."""
    # In bulk: after every statement that it is part of, it writes to the disk what it has gathered.
    if ids:
        connection.execute(statement, {"ids": json.dumps(ids)})


# --- what no difference can tell ---


def last_confirmed(connection: Connection, hashes: Collection[str]) -> dict[str, datetime]:
    """Find the last confirmation that counts, of those hashes that have one."""
    return {
        hash_: time
        for some in chunks(hashes)
        for hash_, time in connection.execute(_LAST, {"hashes": some})
        if time is not None
    }


def shown(connection: Connection, hashes: Collection[str]) -> dict[str, Row]:
    """Find the publication that is shown, of those hashes of which one stands; the counts are left open."""
    found: dict[str, Row] = {}
    for some in chunks(hashes):
        pairs = connection.execute(_LOWEST, {"hashes": some}).all()
        lowest = [tuple(pair) for pair in pairs if pair[1] is not None]
        for hash_, *said in connection.execute(_PUBLICATIONS, {"pairs": lowest}):
            found[hash_] = Row(Count(), *said)
    return found


def trusted(connection: Connection, hashes: Collection[str], policy: CountingPolicy) -> set[str]:
    """Find those of the hashes that a revoker revokes."""
    revokers = sorted(policy.revokers)
    return {
        hash_
        for some in chunks(hashes)
        for hash_ in connection.execute(_TRUSTED, {"hashes": some, "revokers": revokers}).scalars()
    }


def said_of(connection: Connection, hashes: Collection[str]) -> set[str]:
    """Find those of the hashes, which have rows, that a statement is about."""
    return {hash_ for some in chunks(hashes) for hash_ in connection.execute(_SAID_OF, {"hashes": some}).scalars()}
