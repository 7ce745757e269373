"""What a database cannot do now, told apart from what it is asked wrongly."""

from __future__ import annotations

from collections.abc import Callable

import httpx
import psycopg
import pytest
from psycopg import sql
from sqlalchemy import Engine, create_engine, make_url, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from remem_server.database import changes
from remem_server.database.engine import is_unavailable, why_of
from remem_testkit.files import file, key
from remem_testkit.server import ServedCommons

Ask = Callable[..., httpx.Client]
Start = Callable[..., ServedCommons]


def error_of(engine: Engine, statement: str) -> DBAPIError:
    with engine.connect() as connection, pytest.raises(DBAPIError) as raised:
        connection.execute(text(statement))
    return raised.value


@pytest.mark.parametrize(
    ("statement", "unavailable"),
    [
        ("SELECT * FROM nowhere", True),
        ("SELECT nowhere FROM files", True),
        ("SELECT FROM WHERE", False),
        ("INSERT INTO blocks (key) VALUES (NULL)", False),
    ],
    ids=["no table", "no column", "no statement", "a rule that is broken"],
)
def test_tables_of_another_release_are_unavailable_and_mistakes_are_not(
    engine: Engine, statement: str, unavailable: bool
) -> None:
    assert is_unavailable(error_of(engine, statement)) is unavailable


@pytest.mark.parametrize("database", ["postgres"], indirect=True)
@pytest.mark.parametrize(
    ("code", "unavailable"),
    [
        *((code, True) for code in ("08006", "25006", "25P03", "40001", "40P01", "53300", "55P03", "57P01", "58030")),
        *((code, False) for code in ("22003", "23505", "42601", "XX000")),
    ],
)
def test_what_postgresql_cannot_do_now_goes_by_its_code(engine: Engine, code: str, unavailable: bool) -> None:
    raising = f"DO $$ BEGIN RAISE EXCEPTION USING ERRCODE = '{code}', MESSAGE = E'one\\n  two'; END $$"
    error = error_of(engine, raising)
    assert is_unavailable(error) is unavailable
    assert why_of(error).startswith("one two ")


def test_a_pool_that_gives_no_connection_and_a_server_that_is_not_there_are_unavailable() -> None:
    assert is_unavailable(PoolTimeout())
    assert not is_unavailable(ValueError())
    nowhere = create_engine(make_url("postgresql+psycopg://x@127.0.0.1:1/x"))
    with pytest.raises(DBAPIError) as raised:
        nowhere.connect()
    assert isinstance(raised.value.orig, psycopg.OperationalError)
    assert is_unavailable(raised.value)


@pytest.mark.parametrize("database", ["postgres"], indirect=True)
def test_a_primary_that_became_read_only_is_503(start: Start, ask: Ask) -> None:
    commons = start(open=True)
    client = ask(commons)
    address = f"/commons/{key(1).public.hex}.jsonl"
    assert commons.settings.database_url is not None
    url = commons.settings.database_url.get_secret_value().replace("+psycopg", "", 1)
    # Not by the commons' own connections, which are to begin anew.
    with psycopg.connect(url, autocommit=True) as connection:
        name = sql.Identifier(connection.info.dbname)
        connection.execute(sql.SQL("ALTER DATABASE {} SET default_transaction_read_only = on").format(name))
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
    answers = [client.put(address, content=file(key(1), [])) for _ in range(3)]
    assert {(answer.status_code, answer.json()["code"]) for answer in answers} == {(503, "store_unavailable")}
    assert client.get("/commons/index").status_code == 200


def test_a_private_commons_whose_database_is_away_says_so(start: Start, ask: Ask) -> None:
    commons = start(private=True)
    client = ask(commons, commons.token())
    with commons.engine.connect() as connection:
        connection.exec_driver_sql("ALTER TABLE tokens RENAME TO lost")
        connection.commit()
    answer = client.get("/commons/index")
    assert (answer.status_code, answer.json()["code"]) == (503, "store_unavailable")
    assert answer.headers["Retry-After"]


@pytest.mark.parametrize("database", ["postgres"], indirect=True)
def test_what_reads_prepare_outlives_them_and_what_fails_is_given_up(commons: ServedCommons) -> None:
    reads, prepared = commons.commons.reads, text("SELECT count(*) FROM pg_prepared_statements")
    pids = set()
    for _ in range(10):
        with reads.connect() as connection:
            changes.newest(connection)
            pids.add(connection.execute(text("SELECT pg_backend_pid()")).scalar_one())
            left = connection.execute(prepared).scalar_one()
    assert len(pids) == 1
    assert left > 0
    with reads.connect() as connection, pytest.raises(DBAPIError):
        connection.execute(text("SELECT 1/0"))
    with reads.connect() as connection:
        assert connection.execute(text("SHOW transaction_isolation")).scalar_one() == "repeatable read"
        with pytest.raises(DBAPIError, match="read-only"):
            connection.execute(text("DELETE FROM files"))
