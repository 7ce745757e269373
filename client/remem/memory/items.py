"""The items of what a memory holds, which change in the transaction that changes it.

- There is one for each sealed file that is held, this memory's own among them, and one for each key that is proven to
  have spoken twice. Files without a seal have none.
- A version that a newer one replaces is superseded from then on, and stands in the ledger.
- A memory of an earlier release has files, and no items. They are made when it is opened, from the files: only they
  say when they were sealed. What has lost its bytes has no item until they are back.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Final

from remem.itemset import Block, Head, ItemSet, Stored
from remem.memory import ledger
from remem.memory.store import transaction
from remem.protocol import Seal, digest_of
from remem.protocol.items import Item, item_of, proof_item
from remem.protocol.records import read_record
from remem.protocol.times import format_time, parse_time

_SEALED: Final = "SELECT key, sealed, digest, item FROM holdings WHERE sealed IS NOT NULL"


class Rows:
    """The blocks of a memory's set of items: rows of its database."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def heads(self) -> Sequence[tuple[bytes, int, bytes]]:
        """Return the head of every block, in the order of their starts."""
        cursor = self._db.cursor()
        # Plain tuples: there are thousands of them, and opening is to take no time.
        cursor.row_factory = None
        return cursor.execute("SELECT start, size, sum FROM items ORDER BY start").fetchall()

    def read(self, starts: Sequence[bytes]) -> Mapping[bytes, bytes]:
        """Return the items of the blocks that start at these."""
        # There are few, and a statement costs next to nothing here.
        rows = (self._db.execute("SELECT items FROM items WHERE start = ?", (start,)).fetchone() for start in starts)
        return {start: bytes(row[0]) for start, row in zip(starts, rows, strict=True)}

    def at_or_before(self, start: bytes) -> Block | None:
        """Return the last block that starts here or before."""
        return self._block("SELECT start, items FROM items WHERE start <= ? ORDER BY start DESC LIMIT 1", start)

    def before(self, start: bytes) -> Block | None:
        """Return the last block that starts before."""
        return self._block("SELECT start, items FROM items WHERE start < ? ORDER BY start DESC LIMIT 1", start)

    def after(self, start: bytes) -> Block | None:
        """Return the first block that starts behind."""
        return self._block("SELECT start, items FROM items WHERE start > ? ORDER BY start LIMIT 1", start)

    def put(self, head: Head, items: bytes) -> None:
        """Write a block, in place of the one with this start if there is one."""
        self._db.execute(
            "INSERT INTO items (start, size, sum, items) VALUES (?, ?, ?, ?)"
            " ON CONFLICT (start) DO UPDATE SET size = excluded.size, sum = excluded.sum, items = excluded.items",
            (*head, items),
        )

    def remove(self, start: bytes) -> None:
        """Remove the block that starts here."""
        self._db.execute("DELETE FROM items WHERE start = ?", (start,))

    def _block(self, query: str, start: bytes) -> Block | None:
        row = self._db.execute(query, (start,)).fetchone()
        return None if row is None else Block(*row)


def itemset(db: sqlite3.Connection) -> ItemSet:
    """Return the set; the caller owns the transaction."""
    return ItemSet(Rows(db))


@contextmanager
def opened(db: sqlite3.Connection) -> Iterator[Stored]:
    """Open the items as they are at this moment; what is written meanwhile is not seen.

    Args:
        db: the memory, with no transaction open.
    """
    db.execute("BEGIN")
    try:
        yield itemset(db).snapshot()
    finally:
        db.execute("ROLLBACK")


def follow(db: sqlite3.Connection, gone: Item | None, come: Item | None, now: datetime) -> None:
    """Follow the replacement of a key's file by another, or by itself; None is a file without an item, or no file."""
    if gone == come:
        return
    itemset(db).replace(gone, come)
    if gone is not None:
        ledger.note(db, [gone.id], ledger.SUPERSEDED, now)
    if come is not None:
        ledger.forget(db, [come.id])


def let_go(db: sqlite3.Connection, gone: Item | None) -> None:
    """Follow the eviction of a file, which may come again."""
    if gone is not None:
        itemset(db).discard(gone)


def lose(db: sqlite3.Connection, keys: Iterable[str]) -> None:
    """Take out the items of files whose bytes are lost; the caller owns the transaction."""
    held = itemset(db)
    for key in keys:
        row = db.execute(_SEALED + " AND key = ?", (key,)).fetchone()
        if row is not None:
            held.discard(item_of(key, parse_time(row[1]), row[2]))
            db.execute("UPDATE holdings SET sealed = NULL, item = NULL WHERE key = ?", (key,))


def find_again(db: sqlite3.Connection, seal: Seal, digest: str, now: datetime) -> None:
    """Follow the return of a held file's bytes; the caller owns the transaction."""
    item = item_of(seal.key, seal.time, digest)
    db.execute(
        "UPDATE holdings SET sealed = ?, item = ? WHERE key = ? AND digest = ?",
        (format_time(seal.time), item.id, seal.key.hex, digest),
    )
    follow(db, None, item, now)


def prove(db: sqlite3.Connection, key: str) -> Item:
    """Hold the proof that a key spoke twice; return its item."""
    item = proof_item(key)
    itemset(db).add(item)
    return item


def check(db: sqlite3.Connection) -> list[str]:
    """Compare the items with what is held; return what is wrong with them."""
    held = itemset(db)
    faults = list(held.faults())
    expected = {proof_item(key) for (key,) in db.execute("SELECT DISTINCT key FROM equivocations")}
    for key, sealed, digest, name in db.execute(_SEALED):
        expected.add(item := item_of(key, parse_time(sealed), digest))
        if item.id != name:
            faults.append(f"expected the id of its item in the row of key {key}, got another")
    found = set(held)
    faults += [f"expected item {item.id.hex()} of time {item.time}, got none" for item in sorted(expected - found)]
    faults += [f"expected what item {item.id.hex()} names, got none" for item in sorted(found - expected)]
    return faults


def rebuild(db: sqlite3.Connection) -> None:
    """Make all items anew from what is held; the caller owns the transaction."""
    files = [
        (key, item_of(key, parse_time(sealed), digest)) for key, sealed, digest, _name in db.execute(_SEALED).fetchall()
    ]
    proofs = [(key, proof_item(key)) for (key,) in db.execute("SELECT DISTINCT key FROM equivocations").fetchall()]
    db.executemany("UPDATE holdings SET item = ? WHERE key = ?", [(item.id, key) for key, item in files])
    db.executemany("UPDATE equivocations SET item = ? WHERE key = ?", [(item.id, key) for key, item in proofs])
    itemset(db).fill(item for _key, item in (*files, *proofs))


def catch_up(db: sqlite3.Connection, folder: Path) -> None:
    """Make the items of what an earlier release held.

    Args:
        db: the memory, with no transaction open.
        folder: where the files lie.
    """
    files = db.execute("SELECT id, key, digest, size FROM holdings WHERE item IS NULL AND seal IS NOT NULL").fetchall()
    (proofs,) = db.execute("SELECT count(*) FROM equivocations WHERE item IS NULL").fetchone()
    # The files are read before anything is locked: there may be many.
    times = [
        (format_time(time), number, digest)
        for number, key, digest, size in files
        if (time := _sealed(folder, key, digest, size)) is not None
    ]
    if not times and not proofs:
        return
    with transaction(db):
        # Another process may have taken another file meanwhile.
        db.executemany("UPDATE holdings SET sealed = ? WHERE id = ? AND digest = ?", times)
        rebuild(db)


def _sealed(folder: Path, key: str, digest: str, size: int) -> datetime | None:
    """Read when a held file was sealed; None where its bytes are missing or others."""
    path = folder / f"{key}.jsonl"
    try:
        data = path.read_bytes() if path.stat().st_size == size else b""
    except OSError:
        return None
    if digest_of(data) != digest:
        return None
    seal = read_record(data.partition(b"\n")[0])
    return seal.time if isinstance(seal, Seal) else None
