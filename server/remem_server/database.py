"""The database as a whole: how it is opened, and how a transaction begins.

On SQLite a transaction begins explicitly, since the driver's own rules would leave reads outside of it. A
writer takes the lock at its beginning (BEGIN IMMEDIATE), so that no transaction reads first and then finds
that it may not write. Readers never wait for a writer (WAL), and what was committed survives a power cut
(synchronous=FULL).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from sqlalchemy import URL, Connection, Engine, create_engine, event
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.pool import ConnectionPoolEntry

DATABASE_NAME: Final = "commons.db"

_BUSY_SECONDS: Final = 10
_WRITES: Final = "remem_writes"


def open_engine(data: Path) -> Engine:
    """Open the database in a data folder; the file is made by the first connection."""
    engine = create_engine(
        # Not as the text of a URL, in which a '%' or a '?' in the name of a folder would mean something.
        URL.create("sqlite", database=str(data / DATABASE_NAME)),
        connect_args={"timeout": _BUSY_SECONDS},
        # As many connections as threads ask for: who waits for the lock must not keep readers out.
        max_overflow=-1,
        # An error message must not carry a token or a text into a log.
        hide_parameters=True,
    )
    event.listen(engine, "connect", _prepare_connection)
    event.listen(engine, "begin", _begin)
    return engine


@contextmanager
def writing(engine: Engine) -> Iterator[Connection]:
    """Run one transaction that writes: all of it is committed, or none."""
    with engine.connect() as connection:
        connection.execution_options(**{_WRITES: True})
        with connection.begin():
            yield connection


def _prepare_connection(connection: DBAPIConnection, _entry: ConnectionPoolEntry) -> None:
    # The driver begins and commits nothing by itself: `_begin` does.
    connection.isolation_level = None
    cursor = connection.cursor()
    for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON"):
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()


def _begin(connection: Connection) -> None:
    writes = connection.get_execution_options().get(_WRITES, False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")
