"""The database as a whole: how it is opened, and how a transaction begins.

A commons has one database: SQLite in its data folder, or PostgreSQL by its URL. Whoever only reads may be sent to a
replica, whose answers may be a moment old.

On SQLite a transaction begins explicitly, since the driver's own rules would leave reads outside of it. A
writer takes the lock at its beginning (BEGIN IMMEDIATE), so that no transaction reads first and then finds
that it may not write. Readers never wait for a writer (WAL), and what was committed survives a power cut
(synchronous=FULL).

On PostgreSQL a reader sees one moment (REPEATABLE READ, READ ONLY), and a writer what was committed before its
statement. Connections come from psycopg's own pool, which mends broken ones and never grows beyond its size. A reader's
transaction ends by COMMIT, whoever gives it up: the driver forgets what it prepared at every ROLLBACK.

What either cannot do now, such as one that is away, full, busy, or of another release, is told apart from what it is
asked wrongly: the first is the reader's to try again, and the second our own fault.
"""

from __future__ import annotations

import logging
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Any, Final

import psycopg
from psycopg_pool import ConnectionPool
from sqlalchemy import URL, Connection, Engine, NullPool, create_engine, event
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.pool import ConnectionPoolEntry

from remem.errors import RememError
from remem_server.database.turns import Turns
from remem_server.postgres_url import conninfo_of
from remem_server.settings import Settings

DATABASE_NAME: Final = "commons.db"
TURNS: Final = "remem_turns"
"""The option of an engine for SQLite that keeps the turns of its writers."""

_BUSY_SECONDS: Final = 10
_CONNECT_SECONDS: Final = 5
_POOL_SECONDS: Final = 2
_RECONNECT_SECONDS: Final = 5
_STATEMENT_SECONDS: Final = 30
_IDLE_SECONDS: Final = 60
WRITES_BY: Final = "remem_writes_by"
"""The option of a connection that writes: when it has waited long enough to begin, by `monotonic`."""

# A full file changes pages all over the indexes of its lessons. The cache (in KiB) holds those of one transaction, and
# what several of them change is copied from the log once, not after each: at 8,000 pages, so some 32 MB of log.
_SPARING: Final = ("cache_size=-8000", "wal_autocheckpoint=8000")

# Of PostgreSQL's codes: no connection; a primary that became read-only; given up for another transaction; too little
# of something; a lock that does not come; an operator who intervenes; the machine.
_CANNOT_NOW: Final = ("08", "25", "40", "53", "55", "57", "58")
# The tables are of another release: no such table, no such column.
_OTHER_RELEASE: Final = frozenset({"42P01", "42703"})
_OTHER_RELEASE_SQLITE: Final = ("no such table", "no such column", "has no column named")

_UNREACHED: Final = "REMEM_DATABASE_URL says where it is: does it run there, and are the user and the password right?"

# Where nothing keeps a log, as in a command, what a pool tells of its attempts would go to the terminal as it is.
logging.getLogger("psycopg").addHandler(logging.NullHandler())

DATABASE_ERRORS: Final = (DBAPIError, PoolTimeout)
"""What a database raises; `is_unavailable` says whose fault it is."""


class _Connection(psycopg.Connection[Any]):
    """A connection. What a transaction reads that may only read comes in the binary form.

    Most of it are bytes, such as those of items: as text they are twice as long.
    """

    def cursor(self, *arguments: Any, **options: Any) -> Any:
        """Return a cursor."""
        return super().cursor(*arguments, **{"binary": bool(self.read_only), **options})


class _Reader(_Connection):
    """A connection that changes nothing, so that to give a transaction up and to end it well are one."""

    def rollback(self) -> None:
        """End the transaction."""
        if self.info.transaction_status == psycopg.pq.TransactionStatus.INTRANS:
            self.commit()
        else:
            super().rollback()


@dataclass(frozen=True, slots=True)
class Database:
    """A commons' database.

    Attributes:
        engine: where it is written, and read by whoever writes.
        reads: where it is only read; a replica may be behind by a moment.
        pools: the connections to PostgreSQL by what they are for; empty on SQLite.
    """

    engine: Engine
    reads: Engine
    pools: dict[str, ConnectionPool]

    def close(self) -> None:
        """Close every connection."""
        for engine in (self.engine, self.reads):
            engine.dispose()
        for pool in self.pools.values():
            pool.close()


def open_database(settings: Settings) -> Database:
    """Open the database that the settings name; one of SQLite is made where there is none, for its owner alone.

    Raises:
        RememError: PostgreSQL cannot be reached, or lets nobody in by that name and password.
    """
    if settings.database_url is None:
        # Its other files take their rights from it, and the folder may be one that others can enter.
        with suppress(FileExistsError):
            os.close(os.open(settings.data / DATABASE_NAME, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        engine = open_sqlite(settings.data)
        return Database(engine, engine, {})
    most = settings.database_connections
    url = conninfo_of(settings.database_url.get_secret_value())
    replica = settings.replica_url and conninfo_of(settings.replica_url.get_secret_value())
    _reach(url)
    pools = {"write": _pool(url, most, reads=False), "read": _pool(replica or url, most, reads=True)}
    reads = _postgres(pools["read"]).execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
    return Database(_postgres(pools["write"]), reads, pools)


def open_sqlite(data: Path) -> Engine:
    """Open the SQLite database in a data folder; the file is made by the first connection."""
    engine = create_engine(
        # Not as the text of a URL, in which a '%' or a '?' in the name of a folder would mean something.
        URL.create("sqlite", database=str(data / DATABASE_NAME)),
        connect_args={"timeout": _BUSY_SECONDS},
        # As many connections as threads ask for: who waits for the lock must not keep readers out.
        max_overflow=-1,
        execution_options={TURNS: Turns()},
        # An error message must not carry a token or a text into a log.
        hide_parameters=True,
    )
    event.listen(engine, "connect", _prepare_connection)
    event.listen(engine, "begin", _begin)
    return engine


@contextmanager
def writing(engine: Engine) -> Iterator[Connection]:
    """Run one transaction that writes: all of it is committed, or none."""
    turns: Turns | None = engine.get_execution_options().get(TURNS)
    by = monotonic() + _BUSY_SECONDS
    # Whoever waits too long is told so by the database.
    with turns.one(_BUSY_SECONDS) if turns else nullcontext(), engine.connect() as connection:
        connection.execution_options(**{WRITES_BY: by})
        with connection.begin():
            yield connection


def is_postgres(bind: Engine | Connection) -> bool:
    """Tell which of the two databases this is."""
    return bind.dialect.name == "postgresql"


def is_unavailable(error: Exception) -> bool:
    """Tell whether an error of a database means that it cannot do now what was asked of it."""
    if not isinstance(error, DBAPIError):
        return isinstance(error, PoolTimeout)
    cause = error.orig
    if isinstance(cause, psycopg.Error):
        if cause.sqlstate is None:
            return error.connection_invalidated or isinstance(cause, (psycopg.OperationalError, psycopg.InterfaceError))
        return cause.sqlstate.startswith(_CANNOT_NOW) or cause.sqlstate in _OTHER_RELEASE
    if isinstance(cause, sqlite3.OperationalError):
        # Its code for "anything else" is also that of a statement that is none.
        plain = getattr(cause, "sqlite_errorcode", sqlite3.SQLITE_ERROR) == sqlite3.SQLITE_ERROR
        return not plain or any(one in str(cause) for one in _OTHER_RELEASE_SQLITE)
    return error.connection_invalidated


def why_of(error: Exception) -> str:
    """Return on one line what a database said of its error, without the statement."""
    return " ".join(str(getattr(error, "orig", error)).split())


def _reach(conninfo: str) -> None:
    """Connect once: a pool would try again and again, and say in the end only that it had no success."""
    try:
        psycopg.connect(conninfo, connect_timeout=_CONNECT_SECONDS).close()
    except psycopg.Error as error:
        why = " ".join(str(error).split())
        raise RememError(f"expected a database that can be reached, got: {why}", _UNREACHED) from error


def _pool(conninfo: str, most: int, *, reads: bool) -> ConnectionPool:
    # A server that goes away in the middle of a transaction must not hold its locks.
    options = f"-c lock_timeout={_BUSY_SECONDS}s -c idle_in_transaction_session_timeout={_IDLE_SECONDS}s"
    if reads:
        # A plan for any word does not know a rare one from a common one.
        options += f" -c statement_timeout={_STATEMENT_SECONDS}s -c plan_cache_mode=force_custom_plan"
    return ConnectionPool(
        conninfo,
        connection_class=_Reader if reads else _Connection,
        kwargs={"connect_timeout": _CONNECT_SECONDS, "application_name": "remem", "options": options},
        min_size=1,
        max_size=most,
        # Twice as many may wait as are served; the others hear at once that the database is busy.
        max_waiting=2 * most,
        timeout=_POOL_SECONDS,
        # The pause between attempts doubles up to this; who asks after that begins anew.
        reconnect_timeout=_RECONNECT_SECONDS,
        check=ConnectionPool.check_connection,
        name="read" if reads else "write",
        close_returns=True,
        open=True,
    )


def _postgres(pool: ConnectionPool) -> Engine:
    return create_engine("postgresql+psycopg://", creator=pool.getconn, poolclass=NullPool, hide_parameters=True)


def _prepare_connection(connection: DBAPIConnection, _entry: ConnectionPoolEntry) -> None:
    # The driver begins and commits nothing by itself: `_begin` does.
    connection.isolation_level = None
    cursor = connection.cursor()
    for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON", *_SPARING):
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()


def _begin(connection: Connection) -> None:
    by = connection.get_execution_options().get(WRITES_BY)
    if by is None:
        connection.exec_driver_sql("BEGIN")
        return
    # What it waited for its turn, it does not wait for the database.
    _be_patient(connection, max(0, by - monotonic()))
    try:
        connection.exec_driver_sql("BEGIN IMMEDIATE")
    finally:
        _be_patient(connection, _BUSY_SECONDS)


def _be_patient(connection: Connection, seconds: float) -> None:
    cursor = connection.connection.cursor()
    cursor.execute(f"PRAGMA busy_timeout = {int(1_000 * seconds)}")
    cursor.close()
