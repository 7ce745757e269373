"""Backups of the database, and what one that was put back needs.

A commons on SQLite is copied by SQLite itself while it is in use: the copy is of one moment, complete in one file. On
PostgreSQL that is the work of `pg_dump`. The key of the node is no part of either.

A commons that was set back gives numbers again that it gave before. To its readers they would say that nothing
changed, so `recount` gives every file a number beyond any that was ever given: the count of changes goes on from
the microseconds of the clock, which no commons can have counted yet. Readers then list everything once. What can be
made again, it makes again: the lessons and their words from the statements, and the items from the files.
"""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing, suppress
from datetime import datetime
from pathlib import Path
from typing import Final

from sqlalchemy import Engine, func, select, update

from remem.commons.folder import flush_folder
from remem.errors import RememError
from remem.progress import Progress
from remem.protocol.times import unix_seconds
from remem_server.database import changes
from remem_server.database.engine import DATABASE_NAME, is_postgres, writing
from remem_server.database.tables import files, meta
from remem_server.files import items
from remem_server.lessons import tallies
from remem_server.lessons.policy import stored_policy

_PAGES: Final = 1_000


def back_up(data: Path, target: Path, progress: Progress | None = None) -> int:
    """Copy the SQLite database of a data folder into a new file, which its owner alone may read.

    Args:
        data: the data folder.
        target: the file to make; it is there when it is whole, and not before.
        progress: told how many pages of how many are copied.

    Returns:
        The size of the copy.

    Raises:
        RememError: the file is there already.
        OSError: it cannot be written.
        sqlite3.Error: the database cannot be read.
    """
    if target.exists():
        raise RememError(f"expected a new file, got {target}, which is there", "name another; none is overwritten")
    draft = target.with_name(f".{target.name}.{os.getpid()}.part")
    os.close(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    try:
        _copy(data / DATABASE_NAME, draft, progress)
        # A link and no renaming, so that a file that came meanwhile is not overwritten.
        os.link(draft, target)
    finally:
        for left in ("", "-journal"):
            with suppress(FileNotFoundError):
                draft.with_name(draft.name + left).unlink()
    flush_folder(target.parent)
    return target.stat().st_size


def _copy(database: Path, draft: Path, progress: Progress | None) -> None:
    source = sqlite3.connect(f"{database.absolute().as_uri()}?mode=ro", uri=True, isolation_level=None)
    with closing(source), closing(sqlite3.connect(draft)) as copy:
        # One moment for all steps: without it, each change in between would begin the copy again.
        source.execute("BEGIN")
        source.execute("SELECT count(*) FROM sqlite_master").fetchone()
        told = None if progress is None else lambda _status, left, all_: progress(all_ - left, all_)
        source.backup(copy, pages=_PAGES, progress=told)
        found = copy.execute("PRAGMA quick_check(1)").fetchone()[0]
        if found != "ok":
            raise RememError(f"expected a database that is whole, got one where {found}")
    with draft.open("rb") as file:
        os.fsync(file.fileno())


def recount(engine: Engine, now: datetime) -> int:
    """Number all changes anew, beyond any number that was ever given, and count all lessons; return the last number.

    The commons may be in use meanwhile. Where it is cut short, the next start of the server counts.
    """
    number = _renumber(engine, now)
    items.rebuild(engine)
    if not is_postgres(engine):
        with writing(engine) as connection:
            # From the rows as they stand: who then changes a row takes out of it what the row says.
            connection.exec_driver_sql("INSERT INTO lesson_words(lesson_words) VALUES ('rebuild')")
    with engine.connect() as connection:
        policy = stored_policy(connection)
    if policy is not None:
        tallies.recount(engine, policy)
    return number


def _renumber(engine: Engine, now: datetime) -> int:
    with writing(engine) as connection:
        changes.lock(connection)
        first, last = connection.execute(select(func.min(files.c.cursor), func.max(files.c.cursor))).one()
        if first is None:
            return 0
        counted: int = connection.execute(select(meta.c.changes)).scalar_one()
        shift = max(counted, unix_seconds(now) * 1_000_000 + now.microsecond) + 1 - first
        # What is counted to its change stays so.
        connection.execute(update(files).values(cursor=files.c.cursor + shift, counted=files.c.counted + shift))
        connection.execute(update(meta).values(changes=last + shift))
    return int(last + shift)
