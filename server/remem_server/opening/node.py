"""The node's own key: a file of the data folder that only its owner may read.

All servers of a commons have the same key, and the database says which: a server beside another database's key, or
with none, would speak in a name that no reader knows.

The file is the seed as 64 hex digits and an LF. It is written whole beside its place and linked into it, so
two first starts at once end with one key, and a start that is cut short leaves none.
"""

from __future__ import annotations

import os
import re
import secrets
import stat
from pathlib import Path
from typing import Final

from sqlalchemy import Connection, select, update

from remem.errors import RememError
from remem.protocol import SigningKey
from remem_server.database import changes
from remem_server.database.tables import meta

KEY_NAME: Final = "node.key"

_NODE: Final = select(meta.c.node)
_FROM_ELSEWHERE: Final = "copy it from another server of this commons, or from a backup"
_FORM: Final = re.compile(r"([0-9a-f]{64})\n?")


def node_key(connection: Connection, data: Path) -> SigningKey:
    """Read the key of this commons' node; its first start makes it.

    Args:
        connection: a transaction that writes.
        data: the data folder.

    Raises:
        RememError: the file cannot be used, or is not the key of this commons.
    """
    known = connection.execute(_NODE).scalar_one()
    if known is None:
        # Of several first starts one goes first, and the others find what it wrote.
        changes.lock(connection)
        known = connection.execute(_NODE).scalar_one()
    if known is not None:
        return _known_key(known, data)
    key = load_key(data)
    connection.execute(update(meta).values(node=key.public.hex))
    return key


def made_key(connection: Connection, data: Path) -> SigningKey:
    """Read the key of this commons' node, where it was made before.

    Raises:
        RememError: it was not, the file cannot be used, or is not the key of this commons.
    """
    known = connection.execute(_NODE).scalar_one()
    if known is None:
        raise RememError("expected a commons with the key of its node, got one that never started", "start it once")
    return _known_key(known, data)


def _known_key(known: str, data: Path) -> SigningKey:
    path = data / KEY_NAME
    if not path.exists():
        raise RememError(f"expected the key of node {known[:16]} at {path}, got no file", _FROM_ELSEWHERE)
    key = read_key(path)
    if key.public.hex != known:
        raise RememError(f"expected the key of node {known[:16]} at {path}, got another", _FROM_ELSEWHERE)
    return key


def load_key(data: Path) -> SigningKey:
    """Read a node's key, and make it first where there is none.

    Raises:
        RememError: the file is not a key, or others may read it.
    """
    path = data / KEY_NAME
    if not path.exists():
        _make(path)
    return read_key(path)


def read_key(path: Path) -> SigningKey:
    """Read a signing key from its file.

    Raises:
        RememError: the file is not a key, or others may read it.
    """
    if stat.S_IMODE(path.stat().st_mode) & 0o077:
        raise RememError(
            f"expected {path} to be its owner's alone, got a file that others may read", f"chmod 600 {path}"
        )
    found = _FORM.fullmatch(path.read_text(encoding="ascii", errors="replace"))
    if found is None:
        raise RememError(
            f"expected {path} to hold a seed of 64 hex digits, got something else", "put it back from a copy"
        )
    return SigningKey.from_seed(bytes.fromhex(found[1]))


def _make(path: Path) -> None:
    draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(secrets.token_hex(32) + "\n")
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(draft, path)
        except FileExistsError:
            # Another start was first, and its key stands.
            return
    finally:
        draft.unlink()
