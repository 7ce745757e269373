"""The count of changes: every change of a file or of an admission takes the next number (PROTOCOL.md, section 11).

The number of a key's last change is its cursor in the index. It is counted in the transaction that makes the
change, by one writer at a time, so the order of the numbers is the order in which the changes were committed:
a reader that has seen a cursor has seen everything below it.
"""

from __future__ import annotations

from typing import Final

from sqlalchemy import Connection, Executable, bindparam, case, select, text, update

from remem_server.database.engine import is_postgres
from remem_server.database.tables import files, meta

# Any number will do, as long as nothing else in the database takes it.
_QUEUE: Final = 0x72656D656D + 3
# Who waits for a row of PostgreSQL waits for one version of it; whoever comes later meets the next one, and goes first.
# So there is a queue before it, and the row keeps out the servers of the release before. SQLite has let one in already.
_LOCK: Final[dict[bool, Executable]] = {
    True: text(
        "WITH turn AS MATERIALIZED (SELECT pg_advisory_xact_lock(:queue))"
        " SELECT meta.changes FROM meta, turn FOR UPDATE OF meta"
    ).bindparams(queue=_QUEUE),
    False: select(meta.c.changes),
}
_NEXT: Final = update(meta).values(changes=meta.c.changes + 1).returning(meta.c.changes)
_NEWEST: Final = select(files.c.cursor, files.c.digest).order_by(files.c.cursor.desc()).limit(1)
# What was not counted before is not counted now: a server of the release before changed it, and counts nothing.
COUNTED_TO: Final = case((files.c.counted == files.c.cursor, bindparam("to")), else_=files.c.counted)
_TOUCH: Final = (
    update(files).where(files.c.key == bindparam("of_key")).values(cursor=bindparam("to"), counted=COUNTED_TO)
)


def lock(connection: Connection) -> None:
    """Let writers in one at a time, also on a database that would let in several; ends with the transaction."""
    connection.execute(_LOCK[is_postgres(connection)])


def next_change(connection: Connection) -> int:
    """Count a change."""
    number: int = connection.execute(_NEXT).scalar_one()
    return number


def touch(connection: Connection, key: str) -> None:
    """Count a change of what the index says about a key."""
    connection.execute(_TOUCH, {"of_key": key, "to": next_change(connection)})


def newest(connection: Connection) -> tuple[int, str] | None:
    """Return the last cursor and the digest of the file that it concerns; None while there is no file."""
    row = connection.execute(_NEWEST).one_or_none()
    return None if row is None else (row.cursor, row.digest)
