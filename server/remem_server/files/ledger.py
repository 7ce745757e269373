"""Which versions this commons does not want again, so that no peer brings them every night anew.

A version is named by the id of its item. One that is held is never in the ledger. What was noted long ago is forgotten:
should it come once more, it is found out once more.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from datetime import datetime, timedelta
from itertools import islice
from typing import Any, Final

from sqlalchemy import Connection, bindparam, delete, select
from sqlalchemy.dialects import postgresql, sqlite

from remem_server.database.engine import is_postgres
from remem_server.database.tables import ledger
from remem_server.errors import Blocked

SUPERSEDED: Final = "superseded"
"""The code of a version beside which a newer one of its key is known."""

KEPT: Final = timedelta(days=180)
_AT_ONCE: Final = 500
_SETTLED: Final = select(ledger.c.id).where(ledger.c.id.in_(bindparam("ids", expanding=True)))
_FORGET: Final = delete(ledger).where(ledger.c.id == bindparam("of_id"))
_FORGET_BLOCKED: Final = delete(ledger).where(ledger.c.code == Blocked.code)
_FORGET_OLD: Final = delete(ledger).where(ledger.c.at < bindparam("before"))
_NOTE: Final[dict[bool, Any]] = {
    True: postgresql.insert(ledger).on_conflict_do_nothing(),
    False: sqlite.insert(ledger).on_conflict_do_nothing(),
}


def note(connection: Connection, id_: bytes, code: str, now: datetime) -> None:
    """Remember a version that is not wanted.

    Args:
        connection: a transaction that writes.
        id_: of its item.
        code: which rule it breaks, or `SUPERSEDED`.
        now: this commons' clock.
    """
    connection.execute(_NOTE[is_postgres(connection)], {"id": id_, "code": code, "at": now})


def forget(connection: Connection, id_: bytes) -> None:
    """Take a version out that is wanted after all."""
    connection.execute(_FORGET, {"of_id": id_})


def forget_blocked(connection: Connection) -> None:
    """Take out what was not wanted because its key was blocked: of which key it is, an item does not tell."""
    connection.execute(_FORGET_BLOCKED)


def forget_old(connection: Connection, now: datetime) -> None:
    """Take out what was noted long ago."""
    connection.execute(_FORGET_OLD, {"before": now - KEPT})


def settled(connection: Connection, ids: Collection[bytes]) -> set[bytes]:
    """Return those of these versions that are not wanted."""
    return {row.id for some in _chunks(ids) for row in connection.execute(_SETTLED, {"ids": some})}


def _chunks(ids: Collection[bytes]) -> Iterator[list[bytes]]:
    left = iter(ids)
    while some := list(islice(left, _AT_ONCE)):
        yield some
