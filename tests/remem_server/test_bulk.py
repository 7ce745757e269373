"""Many rows at once, on both databases."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from sqlalchemy import Connection, Engine, func, select

from remem_server.database.bulk import among, delete_rows, insert_rows, update_rows
from remem_server.database.engine import is_postgres, writing
from remem_server.database.tables import files, lessons, statements
from remem_testkit.files import NOW, key

ME = key(1).public.hex
TOPIC = ("key", "type", "subject")
COLUMNS = (*TOPIC, "time", "kind", "text", "principal", "counts")
ROWS = [
    (ME, "lesson", "a" * 32, NOW, "error", 'it\'s \\ "quoted", {}, NULL, ☃', "one", True),
    (ME, "confirm", "b" * 32, NOW + timedelta(microseconds=1), None, None, None, False),
    (ME, "revoke", "c" * 32, None, None, "", "two", None),
]


@pytest.fixture
def known(engine: Engine) -> Engine:
    """Return a database in which there is a file that says nothing."""
    with writing(engine) as connection:
        row = {"key": ME, "origin": "0" * 16, "digest": "0" * 64, "records": 0, "size": 1, "updated": NOW, "cursor": 1}
        connection.execute(files.insert(), row)
    return engine


def said(connection: Connection) -> list[tuple[Any, ...]]:
    rows = connection.execute(select(*(statements.c[name] for name in COLUMNS)).order_by(statements.c.subject))
    return [tuple(row) for row in rows]


def test_rows_come_back_as_they_were_put_in(known: Engine) -> None:
    with writing(known) as connection:
        insert_rows(connection, statements, COLUMNS, ROWS)
        assert said(connection) == ROWS


def test_a_row_is_changed_and_deleted_by_the_columns_that_name_it(known: Engine) -> None:
    with writing(known) as connection:
        insert_rows(connection, statements, COLUMNS, ROWS)
        update_rows(connection, statements, ("counts", "time"), TOPIC, [(None, NOW, *ROWS[0][:3])])
        delete_rows(connection, statements, TOPIC, [ROWS[1][:3], (ME, "confirm", "a" * 32)])
        first, last = said(connection)
    assert first == (*ROWS[0][:3], NOW, *ROWS[0][4:7], None)
    assert last == ROWS[2]


def test_no_rows_are_no_statement(known: Engine) -> None:
    with writing(known) as connection:
        insert_rows(connection, statements, COLUMNS, [])
        update_rows(connection, statements, ("counts",), TOPIC, [])
        delete_rows(connection, statements, TOPIC, [])
        assert said(connection) == []


def test_a_moment_is_kept_in_utc_whatever_its_zone(known: Engine) -> None:
    there = datetime(2026, 11, 30, 1, 2, 3, tzinfo=timezone(timedelta(hours=2)))
    with writing(known) as connection:
        insert_rows(connection, statements, COLUMNS, [(*ROWS[0][:3], there, *ROWS[0][4:])])
        # Both ways of writing spell it alike.
        assert connection.execute(select(func.count()).where(statements.c.time == there)).scalar_one() == 1
        (row,) = said(connection)
    assert row[3] == datetime(2026, 11, 29, 23, 2, 3, tzinfo=UTC)
    assert row[3].tzinfo is UTC


@pytest.mark.parametrize("names", [[], ["a" * 32], ["a" * 32, "c" * 32, "'; --"]], ids=["none", "one", "some"])
def test_a_row_is_found_among_names(known: Engine, names: list[str]) -> None:
    with writing(known) as connection:
        insert_rows(connection, statements, COLUMNS, ROWS)
        query = select(statements.c.subject).where(among(statements.c.subject, "names"), statements.c.key == ME)
        found = connection.execute(query, {"names": names}).scalars().all()
    assert set(found) == {row[2] for row in ROWS} & set(names)


def test_names_are_looked_up_in_an_index(engine: Engine) -> None:
    if is_postgres(engine):
        pytest.skip("its planner chooses by how many rows there are")
    query = select(lessons).where(among(lessons.c.hash, "names"))
    with engine.connect() as connection:
        plan = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {query.compile(engine)}", ("[]",)).all()
    assert any("SEARCH lessons USING INDEX" in row[3] for row in plan)
