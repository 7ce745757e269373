"""Opens a commons: its folder, its database, the key of its node, all brought to this release.

One process at a time prepares a commons: under a lock in the data folder, and on PostgreSQL under a lock of the
database too, since its other servers have folders of their own. All lessons are counted by one process at a time
as well, under locks of their own: it may take long, and keeps no command from its work.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from sqlalchemy import Engine, text

from remem.protocol import SigningKey
from remem_server.database.engine import Database, is_postgres, open_database, writing
from remem_server.files import items
from remem_server.lessons import tallies
from remem_server.lessons.policy import CountingPolicy
from remem_server.opening.context import Commons
from remem_server.opening.migrate import COUNT_LOCK_NAME, folder_lock, migrate
from remem_server.opening.node import made_key, node_key
from remem_server.settings import Clock, Settings, system_clock

# Any number will do, as long as nothing else in the database takes it.
_LOCK: Final = 0x72656D656D
_COUNT_LOCK: Final = _LOCK + 1


@contextmanager
def prepared_database(settings: Settings) -> Iterator[Database]:
    """Open the database of a commons, made first where there is none, and brought to this release.

    Raises:
        RememError: the folder or the database is not one of ours, or of a later release.
    """
    # The folder comes first: it may be another program's.
    with folder_lock(settings.data):
        database = open_database(settings)
        try:
            with _alone(database.engine, _LOCK):
                migrate(database.engine)
        except BaseException:
            database.close()
            raise
    try:
        yield database
    finally:
        database.close()


@contextmanager
def open_commons(settings: Settings, clock: Clock = system_clock, *, serves: bool = False) -> Iterator[Commons]:
    """Open a commons.

    Args:
        settings: what the operator decided.
        clock: where the time comes from.
        serves: whether it is served: then the policy becomes the one of these settings, and the lessons are counted
            by it. A command takes the policy that stands.

    Raises:
        RememError: see `prepared_database`; or the node's key cannot be used.
    """
    with prepared_database(settings) as database:
        with folder_lock(settings.data), writing(database.engine) as connection:
            key = node_key(connection, settings.data)
        commons = _commons(settings, database, clock, key)
        if serves:
            with counting_alone(settings, database.engine):
                tallies.bring_up(database.engine, CountingPolicy(settings.open, frozenset(commons.operators)))
                items.catch_up(database.engine)
        yield commons


def commons_to_read(settings: Settings, database: Database, clock: Clock = system_clock) -> Commons:
    """Return a commons of which nothing is made or written, over a database that is open.

    Raises:
        RememError: the node's key cannot be used.
    """
    with database.reads.connect() as connection:
        key = made_key(connection, settings.data)
    return _commons(settings, database, clock, key)


def _commons(settings: Settings, database: Database, clock: Clock, key: SigningKey) -> Commons:
    operators = tuple(dict.fromkeys((key.public.hex, *settings.operators)))
    return Commons(settings, database, clock, key, operators)


@contextmanager
def counting_alone(settings: Settings, engine: Engine) -> Iterator[None]:
    """Let one process at a time count all lessons."""
    with folder_lock(settings.data, COUNT_LOCK_NAME), _alone(engine, _COUNT_LOCK):
        yield


@contextmanager
def _alone(engine: Engine, lock: int) -> Iterator[None]:
    """Keep the other servers of a PostgreSQL database waiting; on SQLite the lock of the folder does."""
    if not is_postgres(engine):
        yield
        return
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text("SET lock_timeout = 0"))
        connection.execute(text("SELECT pg_advisory_lock(:lock)"), {"lock": lock})
        try:
            yield
        finally:
            connection.execute(text("SELECT pg_advisory_unlock(:lock)"), {"lock": lock})
            connection.execute(text("RESET lock_timeout"))
