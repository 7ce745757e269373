"""The count of changes: every change of a file or of an admission takes the next number (PROTOCOL.md, section 11).

The number of a key's last change is its cursor in the index. It is counted in the transaction that makes the
change, by one writer at a time, so the order of the numbers is the order in which the changes were committed:
a reader that has seen a cursor has seen everything below it.
"""

from __future__ import annotations

from typing import Final

from sqlalchemy import Connection, bindparam, case, select, update

from remem_server.database.tables import files, meta

_NEXT: Final = update(meta).values(changes=meta.c.changes + 1).returning(meta.c.changes)
_NEWEST: Final = select(files.c.cursor, files.c.digest).order_by(files.c.cursor.desc()).limit(1)
# What was not counted before is not counted now: a server of the release before changed it, and counts nothing.
COUNTED_TO: Final = case((files.c.counted == files.c.cursor, bindparam("to")), else_=files.c.counted)
_TOUCH: Final = (
    update(files).where(files.c.key == bindparam("of_key")).values(cursor=bindparam("to"), counted=COUNTED_TO)
)


def lock(connection: Connection) -> None:
    """Let writers in one at a time, also on a database that would let in several; ends with the transaction."""
    connection.execute(select(meta.c.changes).with_for_update())


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
