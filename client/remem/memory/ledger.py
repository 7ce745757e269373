"""Which versions this memory does not want again, so that no peer brings them every night anew.

A version is named by the id of its item, which also one without a seal has. One that is held is never in the ledger.
What stands here may be forgotten: then it is fetched, looked at and noted once more.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterable
from datetime import datetime, timedelta
from typing import Final

from remem.protocol.times import format_time

SUPERSEDED: Final = "superseded"
"""The code of a version beside which a newer one of its key is known."""

ENTRIES_MOST: Final = 200_000
_SUPERSEDED_KEPT: Final = timedelta(days=90)


def note(db: sqlite3.Connection, ids: Iterable[bytes], code: str, now: datetime) -> None:
    """Remember versions that are not wanted.

    Args:
        db: the memory.
        ids: the ids of their items.
        code: which rule they break, or `SUPERSEDED`.
        now: the clock, with a zone.
    """
    rows = [(one, code, format_time(now)) for one in ids]
    db.executemany("INSERT INTO ledger (id, code, at) VALUES (?, ?, ?) ON CONFLICT DO NOTHING", rows)


def forget(db: sqlite3.Connection, ids: Iterable[bytes]) -> None:
    """Take versions out that are wanted after all."""
    db.executemany("DELETE FROM ledger WHERE id = ?", [(one,) for one in ids])


def settled(db: sqlite3.Connection, ids: Collection[bytes]) -> dict[bytes, str]:
    """Return those of these versions that are not wanted, each with why: the rule that it breaks, or `SUPERSEDED`."""
    found = (db.execute("SELECT id, code FROM ledger WHERE id = ?", (one,)).fetchone() for one in ids)
    return {row[0]: row[1] for row in found if row is not None}


def prune(db: sqlite3.Connection, now: datetime) -> None:
    """Forget what was superseded long ago, and what is beyond the most that is kept, the oldest first."""
    before = format_time(now - _SUPERSEDED_KEPT)
    db.execute("DELETE FROM ledger WHERE code = ? AND at < ?", (SUPERSEDED, before))
    (count,) = db.execute("SELECT count(*) FROM ledger").fetchone()
    if count > ENTRIES_MOST:
        db.execute(
            "DELETE FROM ledger WHERE id IN (SELECT id FROM ledger ORDER BY at, id LIMIT ?)", (count - ENTRIES_MOST,)
        )
