"""Finding a lesson by its hash or the beginning of it, among all that this memory has or holds evidence about."""

from __future__ import annotations

import re
import sqlite3
from typing import Final

from remem.errors import RememError
from remem.memory import holdings
from remem.protocol.errors import show

_HEX: Final = re.compile(r"[0-9a-f]{4,32}")


def find_hash(db: sqlite3.Connection, reference: str) -> str:
    """Return the hash that a person means.

    Raises:
        RememError: no lesson begins so, or several do.
    """
    low = reference.lower()
    if not _HEX.fullmatch(low):
        raise RememError(f"expected the hash of a lesson, or at least 4 digits of it, got {show(reference)}")
    found = holdings.hashes_from(db, low)
    if len(found) == 1:
        return found[0]
    which = "no lesson here begins so" if not found else "several lessons begin so"
    raise RememError(f"expected the hash of one lesson, got {low}: {which}")
