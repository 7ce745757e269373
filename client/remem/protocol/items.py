"""Items: what nodes name a version of a file by when they compare what they hold (PROTOCOL.md, section 16).

An item is a time in whole seconds and an id of 32 bytes. Items sort by time, then by id, and so do their packed forms.
A sealed file has one, from the time of its seal, and so has the proof that a key spoke twice: one a key, at the
beginning of time, whichever number the proof is of. A file without a seal has none.
"""

from __future__ import annotations

from datetime import datetime
from hashlib import blake2b
from typing import Final, NamedTuple

from remem.protocol.keys import PublicKey
from remem.protocol.times import unix_seconds

ID_BYTES: Final = 32
TIME_BYTES: Final = 8
PACKED_BYTES: Final = TIME_BYTES + ID_BYTES
INFINITY: Final = 2**64 - 1
"""The time that no item has: every item sorts before it."""

_PROOF: Final = b"equivocation"


class Item(NamedTuple):
    """What nodes compare.

    Attributes:
        time: seconds since 1970.
        id: 32 bytes.
    """

    time: int
    id: bytes


def item_of(key: PublicKey | str, at: datetime, digest: str) -> Item:
    """Return the item of a sealed file (PROTOCOL.md, section 16).

    Args:
        key: whose file it is, or the 64 hex digits of that key.
        at: the time of its seal.
        digest: the digest of the whole file, 64 hex digits.
    """
    return Item(unix_seconds(at), item_id(key, digest))


def item_id(key: PublicKey | str, digest: str) -> bytes:
    """Return the id of the item of a file, which its time has no part in (PROTOCOL.md, section 16).

    Args:
        key: whose file it is, or the 64 hex digits of that key.
        digest: the digest of the whole file, 64 hex digits.
    """
    return _hash(_raw(key) + bytes.fromhex(digest))


def proof_item(key: PublicKey | str) -> Item:
    """Return the item of the proof that a key spoke twice (PROTOCOL.md, section 16)."""
    return Item(0, _hash(_PROOF + _raw(key)))


def pack(item: Item) -> bytes:
    """Write an item as 40 bytes, which sort as items do: the time, most significant byte first, and the id.

    Raises:
        ValueError: the id has another length, or the time is none of 0 to 2^64 - 1.
    """
    time, name = item
    if len(name) != ID_BYTES:
        raise ValueError(f"expected an id of {ID_BYTES} bytes, got {len(name)}")
    if not 0 <= time <= INFINITY:
        raise ValueError(f"expected a time of 0 to 2^64 - 1, got {time}")
    return time.to_bytes(TIME_BYTES, "big") + name


def unpack(packed: bytes) -> Item:
    """Read an item from its 40 bytes; another number of them is a ValueError."""
    if len(packed) != PACKED_BYTES:
        raise ValueError(f"expected an item of {PACKED_BYTES} bytes, got {len(packed)}")
    return Item(int.from_bytes(packed[:TIME_BYTES], "big"), packed[TIME_BYTES:])


def _hash(data: bytes) -> bytes:
    return blake2b(data, digest_size=ID_BYTES).digest()


def _raw(key: PublicKey | str) -> bytes:
    return bytes.fromhex(key) if isinstance(key, str) else key.raw
