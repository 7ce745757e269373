"""Compares the items of a commons with what it holds, and looks at the proofs that came without files.

The set is right where its blocks are, each file that counts as held has its item in it, and there are as many items as
files and proofs. A file whose block was taken back while its bytes are away has none.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from sqlalchemy import Connection, bindparam, func, select

from remem.itemset import Stored
from remem.protocol import ProtocolError, Seal, parse_record
from remem.protocol.items import Item, item_of, proof_item
from remem_server.database.tables import blocks, files, ledger, proofs, versions
from remem_server.files import items
from remem_server.upkeep.findings import Finding

_PAGE: Final = 1_000
_FILES: Final = (
    select(
        files.c.key,
        files.c.seal,
        files.c.seal_time,
        files.c.digest,
        (files.c.held | blocks.c.key.is_not(None)).label("counts"),
        versions.c.id,
        versions.c.time,
        versions.c.digest.label("of_digest"),
    )
    .outerjoin(versions, versions.c.key == files.c.key)
    .outerjoin(blocks, blocks.c.key == files.c.key)
    .where(files.c.key > bindparam("after"))
    .order_by(files.c.key)
    .limit(_PAGE)
)
_UNWANTED: Final = select(versions.c.key).join(ledger, ledger.c.id == versions.c.id).order_by(versions.c.key)
_HELD: Final = (select(func.count()).select_from(versions), select(func.count()).select_from(proofs))


def audit_items(connection: Connection) -> Iterator[Finding]:
    """Find what is wrong with the items of one moment."""
    for fault in items.itemset(connection).faults():
        yield Finding("items", "blocks", *_said(fault))
    held = items.itemset(connection).snapshot()
    after = ""
    while rows := connection.execute(_FILES, {"after": after}).all():
        for row in rows:
            made = item_of(row.key, row.seal_time, row.digest) if row.seal is not None and row.counts else None
            if (None if row.id is None else (Item(row.time, row.id), row.of_digest)) != (
                None if made is None else (made, row.digest)
            ):
                yield Finding("item", row.key, "the item of the version that stands", "another or none")
            elif made is not None and not _has(held, made):
                yield Finding("items", row.key, "the item of its version among them", "none")
        after = rows[-1].key
    yield from _audit_proofs(connection, held)
    expected = sum(connection.execute(count).scalar_one() for count in _HELD)
    if len(held) != expected:
        yield Finding("items", "blocks", f"as many as files and proofs, {expected}", str(len(held)))
    for key in connection.execute(_UNWANTED).scalars():
        yield Finding("ledger", key, "no version that stands", "its version")


def _audit_proofs(connection: Connection, held: Stored) -> Iterator[Finding]:
    for row in connection.execute(select(proofs).order_by(proofs.c.key)):
        item = proof_item(row.key)
        if row.id != item.id or not _has(held, item):
            yield Finding("items", row.key, "the item of its proof among them", "another or none")
        try:
            first, second = parse_record(row.line_a), parse_record(row.line_b)
        except ProtocolError as error:
            yield Finding("proof", row.key, "two seals that verify", f"{error.code}: {error}")
            continue
        of_key = isinstance(first, Seal) and isinstance(second, Seal) and first.key.hex == second.key.hex == row.key
        if not of_key or first.line == second.line or first.subject != second.subject:
            yield Finding("proof", row.key, "two seals of this key and one number", "something else")


def _has(held: Stored, item: Item) -> bool:
    at = held.find(item)
    return at < len(held) and held.item(at) == item


def _said(fault: str) -> tuple[str, str]:
    expected, _, got = fault.removeprefix("expected ").rpartition(", got ")
    return expected, got
