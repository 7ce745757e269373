"""The part of the audit that is about lessons: their rows, and the words that a search finds them by.

Every row is compared with what all statements about the lesson come to, counted from nothing, and so is how each of
the statements is marked. SQLite's full-text
table is read from end to end, and each of its words compared with the words of the rows; on PostgreSQL the words
are a column of the row itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from typing import Any, Final

from sqlalchemy import Connection, Text, bindparam, cast, select, text
from sqlalchemy.exc import DatabaseError

from remem_server.database.engine import is_postgres
from remem_server.database.tables import lessons
from remem_server.lessons.policy import CountingPolicy
from remem_server.lessons.rows import Row
from remem_server.lessons.tallies import Mark, Marked, counted, hashes_after
from remem_server.upkeep.findings import Finding, compared, spelled

# The words as text, which PostgreSQL spells in the way that they are compared in.
_COLUMNS: Final = [cast(one, Text).label("words") if one is lessons.c.words else one for one in lessons.c]
_ROWS: Final = select(*_COLUMNS).where(lessons.c.hash.in_(bindparam("hashes", expanding=True)))
_PLACED: Final = select(lessons.c.place, lessons.c.words).where(lessons.c.place.is_not(None))
_AT: Final = select(lessons.c.hash).where(lessons.c.place == bindparam("place"))

# Each word of each lesson that the full-text table has. It is of this connection alone, and nothing is written for it.
_OPEN_WORDS: Final = "CREATE VIRTUAL TABLE temp.audited_words USING fts5vocab('main', 'lesson_words', 'instance')"
_CLOSE_WORDS: Final = "DROP TABLE temp.audited_words"
_INDEXED: Final = text("SELECT doc, term FROM temp.audited_words")
_ROWS_AT_ONCE: Final = 1_000
_LESSONS_AT_ONCE: Final = 100
# So many sums are kept, whatever the number of words.
_SUMS: Final = 65_536

_Word = tuple[int, str]


def audit_lessons(
    connection: Connection, policy: CountingPolicy | None, doubtful: Collection[str], step: Callable[[int], None]
) -> Iterator[Finding]:
    """Find what is wrong with the lessons.

    Args:
        connection: a transaction that reads one moment.
        policy: what they are counted by; None where nothing was counted yet.
        doubtful: the hashes of those about which a statement is wrong.
        step: told how many lessons were looked at.
    """
    if policy is not None:
        yield from _compared_rows(connection, policy, doubtful, step)
    if not is_postgres(connection):
        yield from _audit_words(connection)


def _compared_rows(
    connection: Connection, policy: CountingPolicy, doubtful: Collection[str], step: Callable[[int], None]
) -> Iterator[Finding]:
    after, postgres = "", is_postgres(connection)
    # Fewer than are named at once elsewhere: everything that is said about them is in memory.
    while hashes := hashes_after(connection, after)[:_LESSONS_AT_ONCE]:
        stored = {row["hash"]: dict(row) for row in connection.execute(_ROWS, {"hashes": hashes}).mappings()}
        made, amiss = counted(connection, hashes, policy)
        for one, stands in amiss:
            if one.subject not in doubtful:
                yield from _compared_marks(one, stands)
        for hash_ in hashes:
            if hash_ in doubtful:
                continue
            if hash_ not in stored:
                yield Finding("lesson", hash_, "a row", "none")
            elif hash_ not in made:
                yield Finding("lesson", hash_, "no row", "one")
            else:
                row = stored[hash_]
                columns = _columns(made[hash_], row["id"], postgres=postgres)
                yield from compared("lesson", hash_, columns, row)
        step(len(hashes))
        after = hashes[-1]


def _compared_marks(one: Marked, stands: Mark) -> Iterator[Finding]:
    return compared("mark", f"{one.key} {one.type} {one.subject}", one.mark._asdict(), stands._asdict())


def _columns(row: Row, number: int, *, postgres: bool) -> dict[str, Any]:
    """Return the columns of a row as its database shows them."""
    columns = row.columns(number)
    if postgres and columns["words"] is not None:
        columns["words"] = " ".join(f"'{word}'" for word in sorted(set(columns["words"].split()), key=str.encode))
    return columns


# --- the full-text table of SQLite ---


def _audit_words(connection: Connection) -> Iterator[Finding]:
    try:
        with _opened_words(connection):
            yield from _compared_words(connection)
    except DatabaseError as error:
        yield Finding("word", "lesson_words", "a full-text table that can be read", str(error.orig))


@contextmanager
def _opened_words(connection: Connection) -> Iterator[None]:
    connection.exec_driver_sql(_OPEN_WORDS)
    try:
        yield
    finally:
        connection.exec_driver_sql(_CLOSE_WORDS)


def _compared_words(connection: Connection) -> Iterator[Finding]:
    """Compare sums of both sides first: only where those differ, the words themselves are kept and compared."""
    sums = [0] * _SUMS
    for side, words in ((1, _indexed(connection)), (-1, _placed(connection))):
        for one in words:
            sums[one[0] % _SUMS] += side * hash(one)
    wrong = {number for number, sum_ in enumerate(sums) if sum_}
    if not wrong:
        return
    counts: Counter[_Word] = Counter()
    counts.update(one for one in _placed(connection) if one[0] % _SUMS in wrong)
    counts.subtract(one for one in _indexed(connection) if one[0] % _SUMS in wrong)
    for (place, word), count in sorted(counts.items()):
        if count:
            hash_ = connection.execute(_AT, {"place": place}).scalar()
            should, is_ = ("the word", "none") if count > 0 else ("no word", "one")
            yield Finding("word", hash_ or f"place {place}", f"{should} {spelled(word)} in the full-text table", is_)


def _indexed(connection: Connection) -> Iterator[_Word]:
    for row in connection.execute(_INDEXED).yield_per(_ROWS_AT_ONCE):
        yield row.doc, row.term


def _placed(connection: Connection) -> Iterator[_Word]:
    for place, words in connection.execute(_PLACED).yield_per(_ROWS_AT_ONCE):
        for word in set(words.split()):
            yield place, word
