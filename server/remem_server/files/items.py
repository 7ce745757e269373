"""The items of what a commons holds, which change in the transaction that changes it (PROTOCOL.md, section 16).

- There is one for each sealed file, and one for each key that is proven to have spoken twice. Files of draft 0 have
  none. A key that is blocked keeps its item, since the version counts as held; once the block is taken back it has none
  until its file is here again.
- Every writer holds `changes.lock` before it reads a block, so that no two wait for each other's blocks. A change reads
  and writes a block or two, most often the newest.
- A version that a newer one replaces is superseded from then on, and stands in the ledger.
- Files that were there before there were items, and those that a server of the release before puts there, are given
  theirs by the next start (`catch_up`): the row of `versions` has another digest then, or is missing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any, Final

from sqlalchemy import Connection, Engine, bindparam, delete, func, insert, select, update

from remem.itemset import Block, Head, ItemSet, Stored
from remem.protocol import OriginFile
from remem.protocol.items import Item, item_of, proof_item
from remem_server.database import changes
from remem_server.database.bulk import delete_rows, insert_rows
from remem_server.database.engine import is_postgres, writing
from remem_server.database.tables import blocks, equivocations, files, proofs, versions
from remem_server.files import ledger

REBUILD_FROM: Final = 2_000
"""From how many files on that have no item all of them are put in order anew, which is faster."""

_PAGE: Final = 1_000
_BEHIND: Final = (
    select(
        files.c.key,
        files.c.digest,
        files.c.seal_time,
        versions.c.id.label("gone_id"),
        versions.c.time.label("gone_time"),
    )
    .outerjoin(versions, versions.c.key == files.c.key)
    # Of a file whose block was taken back, the bytes are to come again.
    .where(files.c.held | select(blocks.c.key).where(blocks.c.key == files.c.key).exists())
    .where(files.c.seal.is_not(None), versions.c.digest.is_distinct_from(files.c.digest))
)
_BEHIND_AFTER: Final = _BEHIND.where(files.c.key > bindparam("after")).order_by(files.c.key).limit(_PAGE)
_HOW_MANY_BEHIND: Final = select(func.count()).select_from(_BEHIND.subquery())
_UNPROVEN: Final = (
    select(equivocations.c.key, equivocations.c.line_a, equivocations.c.line_b)
    .where(~select(proofs.c.key).where(proofs.c.key == equivocations.c.key).exists())
    .order_by(equivocations.c.key, equivocations.c.seal)
)
_VERSION: Final = select(versions.c.time, versions.c.id).where(versions.c.key == bindparam("key"))
_ADD_VERSION: Final = insert(versions)
_CHANGE_VERSION: Final = update(versions).where(versions.c.key == bindparam("of_key"))
_NO_VERSION: Final = delete(versions).where(versions.c.key == bindparam("of_key"))
_ADD_PROOF: Final = insert(proofs)
_HAS_PROOF: Final = select(proofs.c.id).where(proofs.c.key == bindparam("key"))


class Blocks:
    """The blocks of a commons' set of items: rows of its database."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._mark = "%s" if is_postgres(connection) else "?"

    def heads(self) -> Sequence[tuple[bytes, int, bytes]]:
        """Return the head of every block, in the order of their starts."""
        # As the driver gives them: there are thousands of them, and opening is to take no time.
        cursor = self._run("SELECT start, size, sum FROM items ORDER BY start").cursor
        assert cursor is not None
        rows: list[tuple[bytes, int, bytes]] = cursor.fetchall()
        return rows

    def read(self, starts: Sequence[bytes]) -> Mapping[bytes, bytes]:
        """Return the items of the blocks that start at these."""
        if self._mark == "%s":
            return dict(self._run("SELECT start, items FROM items WHERE start = ANY (@)", list(starts)).all())
        query = " ".join(("SELECT start, items FROM items WHERE start IN", f"({', '.join('@' * len(starts))})"))
        return dict(self._run(query, *starts).all())

    def at_or_before(self, start: bytes) -> Block | None:
        """Return the last block that starts here or before."""
        return self._block("SELECT start, items FROM items WHERE start <= @ ORDER BY start DESC LIMIT 1", start)

    def before(self, start: bytes) -> Block | None:
        """Return the last block that starts before."""
        return self._block("SELECT start, items FROM items WHERE start < @ ORDER BY start DESC LIMIT 1", start)

    def after(self, start: bytes) -> Block | None:
        """Return the first block that starts behind."""
        return self._block("SELECT start, items FROM items WHERE start > @ ORDER BY start LIMIT 1", start)

    def put(self, head: Head, items: bytes) -> None:
        """Write a block, in place of the one with this start if there is one."""
        self._run(
            "INSERT INTO items (start, size, sum, items) VALUES (@, @, @, @) ON CONFLICT (start)"
            " DO UPDATE SET size = excluded.size, sum = excluded.sum, items = excluded.items",
            *head,
            items,
        )

    def remove(self, start: bytes) -> None:
        """Remove the block that starts here."""
        self._run("DELETE FROM items WHERE start = @", start)

    def _block(self, query: str, start: bytes) -> Block | None:
        row = self._run(query, start).one_or_none()
        return None if row is None else Block(*row)

    def _run(self, query: str, *values: object) -> Any:
        return self._connection.exec_driver_sql(query.replace("@", self._mark), values)


def itemset(connection: Connection) -> ItemSet:
    """Return the set; the caller owns the transaction, and holds `changes.lock` where it changes something."""
    return ItemSet(Blocks(connection))


@contextmanager
def opened(reads: Engine) -> Iterator[Stored]:
    """Open the items as they are at one moment; what is written meanwhile is not seen.

    Args:
        reads: a database of which a transaction sees one moment.
    """
    with reads.connect() as connection:
        yield itemset(connection).snapshot()


# --- what follows a change ---


def follow(connection: Connection, file: OriginFile, gone: Item | None, now: datetime) -> None:
    """Follow the replacement of what stands of a key by this file, or by itself.

    Args:
        connection: of a transaction that holds `changes.lock`.
        file: what stands now.
        gone: the item that the key has, as it was read behind that lock.
        now: this commons' clock.
    """
    key = file.key.hex
    come = None if file.seal is None else item_of(file.key, file.seal.time, file.digest)
    if gone == come:
        return
    itemset(connection).replace(gone, come)
    if gone is not None:
        ledger.note(connection, gone.id, ledger.SUPERSEDED, now)
    if come is None:
        connection.execute(_NO_VERSION, {"of_key": key})
        return
    ledger.forget(connection, come.id)
    said = {"id": come.id, "time": come.time, "digest": file.digest}
    if gone is None:
        connection.execute(_ADD_VERSION, {"key": key, **said})
    else:
        connection.execute(_CHANGE_VERSION, {"of_key": key, **said})


def item_held(connection: Connection, key: str) -> Item | None:
    """Return the item that a key has."""
    row = connection.execute(_VERSION, {"key": key}).one_or_none()
    return None if row is None else Item(*row)


def let_go(connection: Connection, key: str) -> None:
    """Hold a key's version no more, so that its file may come again."""
    item = item_held(connection, key)
    if item is not None:
        itemset(connection).discard(item)
        connection.execute(_NO_VERSION, {"of_key": key})


def has_proof(connection: Connection, key: str) -> bool:
    """Tell whether it is proven here that a key spoke twice."""
    return connection.execute(_HAS_PROOF, {"key": key}).one_or_none() is not None


def prove(connection: Connection, key: str, first: bytes, second: bytes) -> None:
    """Hold two seals that prove that a key spoke twice, if there is no proof of that yet."""
    if not has_proof(connection, key):
        item = proof_item(key)
        connection.execute(_ADD_PROOF, {"id": item.id, "key": key, "line_a": first, "line_b": second})
        itemset(connection).add(item)


# --- catching up ---


def catch_up(engine: Engine) -> None:
    """Give an item to what has none, or that of another version."""
    with engine.connect() as connection:
        behind: int = connection.execute(_HOW_MANY_BEHIND).scalar_one()
        unproven = connection.execute(_UNPROVEN).first()
    if behind >= REBUILD_FROM:
        rebuild(engine)
    elif behind:
        _follow_some(engine)
    if unproven is not None:
        with writing(engine) as connection:
            changes.lock(connection)
            for row in connection.execute(_UNPROVEN).all():
                prove(connection, *row)


def rebuild(engine: Engine) -> None:
    """Make the set anew from what is held, whatever became of it."""
    with writing(engine) as connection:
        changes.lock(connection)
        for _page in _follow_pages(connection):
            pass
        _fill(connection)


def _follow_some(engine: Engine) -> None:
    """Let the set follow, a page at a time: whoever publishes meanwhile waits for one of them."""
    with writing(engine) as connection:
        changes.lock(connection)
        held = itemset(connection)
        for page in _follow_pages(connection):
            for gone, come in page:
                if gone is not None:
                    held.discard(gone)
                held.add(come)


def _follow_pages(connection: Connection) -> Iterator[list[tuple[Item | None, Item]]]:
    """Bring the rows of `versions` up, and tell of each what the set has to follow."""
    after = ""
    while rows := connection.execute(_BEHIND_AFTER, {"after": after}).all():
        pairs = [
            (
                None if row.gone_id is None else Item(row.gone_time, row.gone_id),
                item_of(row.key, row.seal_time, row.digest),
            )
            for row in rows
        ]
        delete_rows(connection, versions, ("key",), [(row.key,) for row in rows if row.gone_id is not None])
        made = [(come.id, row.key, come.time, row.digest) for row, (_gone, come) in zip(rows, pairs, strict=True)]
        insert_rows(connection, versions, ("id", "key", "time", "digest"), made)
        yield pairs
        after = rows[-1].key


def _fill(connection: Connection) -> None:
    of_files = connection.execute(select(versions.c.time, versions.c.id))
    of_proofs = connection.execute(select(proofs.c.id))
    itemset(connection).fill([*(Item(*row) for row in of_files), *(Item(0, row.id) for row in of_proofs)])
