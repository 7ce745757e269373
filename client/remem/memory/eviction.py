"""How files of others leave a memory where there is no room for all: with all that they said and brought.

A received lesson that came from no other key is an orphan then: nobody could take it back any more.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection

from remem.memory import items
from remem.memory.holdings import holding


def evict(db: sqlite3.Connection, keys: Collection[str]) -> set[str]:
    """Forget the files of these keys and what came from them; return the lessons about which they said something."""
    leaving = [found for key in keys if (found := holding(db, key)) is not None]
    rows = [(found.id,) for found in leaving]
    touched: set[str] = set()
    for row in rows:
        said = db.execute(
            "SELECT subject FROM statements WHERE holding = ?1 AND type <> 'deny'"
            " UNION SELECT hash FROM receipts WHERE holding = ?1",
            row,
        )
        touched.update(subject for (subject,) in said)
    db.executemany("DELETE FROM statements WHERE holding = ?", rows)
    db.executemany("DELETE FROM receipts WHERE holding = ?", rows)
    db.executemany("DELETE FROM holdings WHERE id = ?", rows)
    for found in leaving:
        items.let_go(db, found.item)
    return touched


def orphans(db: sqlite3.Connection, hashes: Collection[str]) -> list[str]:
    """Return which of these received lessons came from no key of which a file is held."""
    rows = db.execute(
        "SELECT hash FROM lessons WHERE source = 'received' AND hash IN (SELECT value FROM json_each(?))"
        " AND NOT EXISTS (SELECT 1 FROM receipts AS r WHERE r.hash = lessons.hash) ORDER BY hash",
        (json.dumps([*hashes]),),
    )
    return [row[0] for row in rows]
