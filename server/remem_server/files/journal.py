"""The journal of what operators did: who did what, when, to what and why. It only grows.

The database itself refuses to change or to delete a row, and to put one before another; whoever owns the database may
take that rule away. An operator whose key is on another machine acts by publishing its file; what that says and takes
back is written down like everything else.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any, Final

from sqlalchemy import Connection, bindparam, insert, select

from remem.protocol import Denial, Revocation
from remem_server.answers import JournalEntry
from remem_server.database.tables import acts
from remem_server.lessons.policy import stored_policy

_ROW: Final = [acts.c[name] for name in JournalEntry.model_fields]
_AFTER: Final = select(*_ROW).where(acts.c.id > bindparam("after")).order_by(acts.c.id).limit(bindparam("most"))
_ADD: Final = insert(acts)
_WHO_MOST: Final = 200
_TYPES: Final = (Revocation.type, Denial.type)


def read_after(connection: Connection, after: int, most: int) -> list[JournalEntry]:
    """List what was done after a row, the oldest first."""
    return [JournalEntry(**row) for row in connection.execute(_AFTER, {"after": after, "most": most}).mappings()]


def write(connection: Connection, now: datetime, who: str, act: str, subject: str, reason: str | None) -> None:
    """Write down what was done, in the transaction that does it."""
    # Whoever has a long name on this machine is known by its beginning.
    connection.execute(_ADD, {"at": now, "who": who[:_WHO_MOST], "act": act, "subject": subject, "reason": reason})


def write_published(
    connection: Connection,
    now: datetime,
    who: str,
    key: str,
    come: Collection[Mapping[str, Any]],
    gone: Collection[str],
) -> None:
    """Write down what the published file of an operator says and takes back; nothing for anybody else's.

    Args:
        connection: a transaction that writes.
        now: this commons' clock.
        who: who published it.
        key: whose file it is.
        come: rows of statements that it did not make before.
        gone: topics of lines that it had before.
    """
    said = {f"{row['type']} {row['subject']}": row["text"] for row in come if row["type"] in _TYPES}
    back = {topic for topic in gone if topic.partition(" ")[0] in _TYPES}
    if not said.keys() ^ back:
        return
    policy = stored_policy(connection)
    if policy is None or key not in policy.revokers:
        return
    for topic in sorted(said.keys() - back):
        act, _blank, subject = topic.partition(" ")
        write(connection, now, who, act, subject, said[topic])
    for topic in sorted(back - said.keys()):
        act, _blank, subject = topic.partition(" ")
        write(connection, now, who, f"un{act}", subject, None)
