"""Brings a data folder to this release: the folder, the tables, and what judgement makes of the files.

It may run at every start and in several processes at once: one goes first, under the locks of `opened.py`, and
the others find its work done. The tables change in one transaction; a migration that fails leaves them as they were.
A folder that holds the files of another program is refused, and nothing in it is touched.
"""

from __future__ import annotations

import fcntl
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Engine, select, update

import remem_server
from remem.errors import Refused, RememError
from remem.judging import judgement_name
from remem.protocol.records import read_record
from remem_server.database import changes
from remem_server.database.engine import DATABASE_NAME, writing
from remem_server.database.tables import contents, meta
from remem_server.files import store
from remem_server.files.judging import judge_records
from remem_server.lessons.policy import begin_count, stored_policy
from remem_server.opening.node import KEY_NAME

LOCK_NAME: Final = "lock"
COUNT_LOCK_NAME: Final = "lock.count"
GOSSIP_LOCK_NAME: Final = "lock.gossip"

_VERSIONS: Final = "alembic_version"
# What may lie in a folder that no commons was made in: what a start leaves that was cut short, the key out of a
# backup, and what a file system keeps at its top.
_NEED_NO_DATABASE: Final = (
    LOCK_NAME,
    COUNT_LOCK_NAME,
    GOSSIP_LOCK_NAME,
    KEY_NAME,
    f"{KEY_NAME}.*",
    f".{KEY_NAME}.*",
    f"{DATABASE_NAME}-*",
    "lost+found",
)
_SHOWN: Final = 3
_ANOTHER_PROGRAM: Final = "another program's files seem to be there: name another folder with --data"

# Alembic keeps the migration that runs in variables of its modules.
_ONE_AT_A_TIME: Final = threading.Lock()


@contextmanager
def folder_lock(data: Path, name: str = LOCK_NAME) -> Iterator[None]:
    """Make the data folder where there is none, and let one process at a time prepare it.

    Args:
        data: the folder.
        name: the file that is locked.

    Raises:
        Refused: it holds another program's files.
        RememError: it cannot be made or written.
    """
    try:
        if data.exists():
            check_owner(data)
        data.mkdir(mode=0o700, parents=True, exist_ok=True)
        file = (data / name).open("a")
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        raise RememError(f"expected a data folder that can be written, got {data}: {why}") from error
    with file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def check_owner(data: Path) -> None:
    """Refuse a folder that holds something, and no commons of ours."""
    if not data.is_dir():
        raise Refused(f"expected a folder at {data}, got a file", _ANOTHER_PROGRAM)
    # Read once: another process may be making the commons at this moment.
    names = sorted(entry.name for entry in data.iterdir())
    if DATABASE_NAME not in names:
        others = [name for name in names if not any(fnmatchcase(name, pattern) for pattern in _NEED_NO_DATABASE)]
    else:
        others = [DATABASE_NAME] if _is_foreign(data / DATABASE_NAME) else []
    if others:
        more = f" and {len(others) - _SHOWN} more" if len(others) > _SHOWN else ""
        got = ", ".join(others[:_SHOWN]) + more
        raise Refused(f"expected a commons or an empty folder at {data}, got {got}", _ANOTHER_PROGRAM)


def _is_foreign(database: Path) -> bool:
    """Tell whether a database has tables and none of a commons; it is only read."""
    try:
        with closing(sqlite3.connect(f"{database.absolute().as_uri()}?mode=ro", uri=True)) as connection:
            names = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    except sqlite3.DatabaseError:
        # It cannot be read just now, or is no database: opening it will tell.
        return False
    return not names <= {_VERSIONS, "sqlite_sequence"} and not {_VERSIONS, meta.name} <= names


def has_database(data: Path) -> bool:
    """Tell whether a commons was ever made in this folder."""
    return (data / DATABASE_NAME).exists()


def migrate(engine: Engine) -> None:
    """Bring the tables and the statements to this release.

    Raises:
        RememError: the database is of a later release.
    """
    with _ONE_AT_A_TIME, writing(engine) as connection:
        config = alembic_config()
        config.attributes["connection"] = connection
        _refuse_later(config, connection)
        command.upgrade(config, "head")
    rejudge(engine)


def revision_of(engine: Engine) -> str | None:
    """Return the revision that the tables have; None before the first."""
    with engine.connect() as connection:
        return MigrationContext.configure(connection).get_current_revision()


def alembic_config() -> Config:
    """Find the migrations: packaged beside this module, or in the repository that it stands in."""
    here = Path(remem_server.__file__).parent
    packaged = here / "_migrations"
    config = Config()
    config.set_main_option("script_location", str(packaged if packaged.is_dir() else here.parents[1] / "alembic"))
    return config


def _refuse_later(config: Config, connection: Connection) -> None:
    known = {script.revision for script in ScriptDirectory.from_config(config).walk_revisions()}
    held = MigrationContext.configure(connection).get_current_heads()
    if later := set(held) - known:
        raise RememError(
            f"expected a database of this release or an earlier one, got revision {', '.join(sorted(later))}",
            "install the release of remem that wrote it, or a later one",
        )


def rejudge(engine: Engine) -> None:
    """Make the statements of every file again if this release judges otherwise than the one that made them."""
    with engine.connect() as connection:
        if connection.execute(select(meta.c.judgement)).scalar_one() == judgement_name():
            return
        keys = connection.execute(select(contents.c.key).order_by(contents.c.key)).scalars().all()
    for key in keys:
        while not _rejudged(engine, key):
            pass
    with writing(engine) as connection:
        changes.lock(connection)
        connection.execute(update(meta).values(judgement=judgement_name()))
        # What the statements come to is counted anew by the next start that serves.
        if (policy := stored_policy(connection)) is not None:
            begin_count(connection, policy)


def _rejudged(engine: Engine, key: str) -> bool:
    """Judge what stands of a key anew, in a transaction of its own; tell whether it stood still meanwhile."""
    with engine.connect() as connection:
        before = store.version_of(connection, key)
        data = connection.execute(select(contents.c.data).where(contents.c.key == key)).scalar()
    if data is None:
        return True
    judged = judge_records(map(read_record, data.splitlines()))
    with writing(engine) as connection:
        changes.lock(connection)
        if store.version_of(connection, key) != before:
            return False
        if (found := store.find(connection, key)) is not None and found.held:
            store.rejudge(connection, key, judged)
    return True
