"""Messages of Negentropy, version 1, as bytes: bounds, fingerprints and lists of ids (PROTOCOL.md, section 16).

A message is the version's byte and then ranges, each from where the last one ended up to its own bound: a bound, a mode
and what the mode brings. Numbers are written in base 128, the most significant digit first and as few digits as may be.
A bound's time is written as the distance from the time before it plus one, and 0 for infinity; its id as the bytes
without which it would not separate two items, the others being zero.

A reader takes nothing else. What it refuses beyond what the reference implementations do, none of them ever sends:

- a number with a leading zero, or one of more than 64 bits;
- a time at or beyond infinity that is not spelled as infinity, or bytes of an id at infinity;
- a bound before the one before it. The same bound again is good: it is sent where a frame is full.
"""

from __future__ import annotations

from contextlib import suppress
from hashlib import sha256
from typing import Final, NamedTuple

from remem.protocol.items import ID_BYTES, INFINITY, Item
from remem_gossip.errors import GossipError

VERSION: Final = 0x61
VERSIONS: Final = range(0x60, 0x70)
"""The bytes that are some version of the protocol."""

SKIP: Final = 0
FINGERPRINT: Final = 1
IDS: Final = 2

FINGERPRINT_BYTES: Final = 16

_MODES: Final = (SKIP, FINGERPRINT, IDS)
_NUMBER_DIGITS: Final = 10
_SUM_MASK: Final = 2 ** (8 * ID_BYTES) - 1


class BadFrame(GossipError):
    """A message of reconciliation that is none."""

    code = "frame"


class Bound(NamedTuple):
    """Where a range ends: before this item.

    Attributes:
        item: the first that may lie behind it, with zeros for what is not sent of its id.
        length: how many bytes of its id are sent.
    """

    item: Item
    length: int


START: Final = Bound(Item(0, bytes(ID_BYTES)), 0)
END: Final = Bound(Item(INFINITY, bytes(ID_BYTES)), 0)


def bound_between(before: Item, behind: Item) -> Bound:
    """Return the shortest bound between an item and the next one."""
    if before.time != behind.time:
        return Bound(Item(behind.time, START.item.id), 0)
    differing = int.from_bytes(before.id, "big") ^ int.from_bytes(behind.id, "big")
    length = ID_BYTES - (differing.bit_length() - 1) // 8
    return Bound(Item(behind.time, behind.id[:length].ljust(ID_BYTES, b"\0")), length)


def fingerprint_of(total: int, count: int) -> bytes:
    """Return the fingerprint of a number of items whose ids have this sum."""
    ids = (total & _SUM_MASK).to_bytes(ID_BYTES, "little")
    return sha256(ids + write_number(count)).digest()[:FINGERPRINT_BYTES]


def write_number(number: int) -> bytes:
    """Write a number."""
    if number < 128:
        return bytes((number,))
    digits = [number & 127]
    while number := number >> 7:
        digits.append(number & 127 | 128)
    return bytes(reversed(digits))


class Reader:
    """Reads a message from its first byte to its last.

    Raises:
        BadFrame: from each method, where the next bytes are not what they should be.
    """

    __slots__ = ("_at", "_data", "_last")

    def __init__(self, message: bytes) -> None:
        self._data = message
        self._at = 0
        self._last = START.item

    @property
    def is_done(self) -> bool:
        """Whether all bytes were read."""
        return self._at >= len(self._data)

    def version(self) -> int:
        """Read the byte of a version, which may be another than this one."""
        version = self._bytes(1)[0]
        if version not in VERSIONS:
            raise BadFrame("a version of the protocol, 0x60 to 0x6f", f"0x{version:02x}")
        return version

    def bound(self) -> Bound:
        """Read where the next range ends."""
        distance = self._number()
        length = self._number()
        if length > ID_BYTES:
            raise BadFrame(f"at most {ID_BYTES} bytes of an id", str(length))
        last = self._last
        time = last.time + distance - 1 if distance else INFINITY
        if time >= INFINITY and (distance or length):
            raise BadFrame("a time before infinity, or infinity alone", f"{time} and {length} bytes of an id")
        item = Item(time, self._bytes(length).ljust(ID_BYTES, b"\0"))
        if item < last:
            raise BadFrame("a bound that is not before the last one", f"{item.time} and {item.id.hex()}")
        self._last = item
        return Bound(item, length)

    def mode(self) -> int:
        """Read what the next range brings."""
        mode = self._number()
        if mode not in _MODES:
            raise BadFrame("a mode of 0, 1 or 2", str(mode))
        return mode

    def fingerprint(self) -> bytes:
        """Read a fingerprint."""
        return self._bytes(FINGERPRINT_BYTES)

    def ids(self) -> bytes:
        """Read a list of ids, and return them joined."""
        return self._bytes(ID_BYTES * self._number())

    def next_bounds(self, most: int) -> list[Item]:
        """Look at where the next ranges end, as far as they are what they should be, without reading on."""
        found: list[Item] = []
        stood = self._at, self._last
        with suppress(BadFrame):
            while not self.is_done and len(found) < most:
                found.append(self.bound().item)
                mode = self.mode()
                if mode == FINGERPRINT:
                    self.fingerprint()
                elif mode == IDS:
                    self.ids()
        self._at, self._last = stood
        return found

    def _number(self) -> int:
        data = self._data
        start = at = self._at
        number = 0
        try:
            while (digit := data[at]) > 127:
                at += 1
                number = number << 7 | digit & 127
                if not number or at - start >= _NUMBER_DIGITS:
                    raise BadFrame("a number of at most 64 bits without a leading zero", data[start:at].hex())
        except IndexError:
            raise BadFrame("a number", "the end of the message") from None
        self._at = at + 1
        number = number << 7 | digit
        if number > INFINITY:
            raise BadFrame("a number of at most 64 bits", str(number))
        return number

    def _bytes(self, count: int) -> bytes:
        start = self._at
        self._at = end = start + count
        if end > len(self._data):
            missing = "1 more byte" if count == 1 else f"{count} more bytes"
            raise BadFrame(f"{missing} of the message", str(len(self._data) - start))
        return self._data[start:end]


class Writer:
    """Writes a message."""

    __slots__ = ("_out", "_time")

    def __init__(self) -> None:
        self._out = bytearray((VERSION,))
        self._time = 0

    def __len__(self) -> int:
        return len(self._out)

    @property
    def message(self) -> bytes:
        """What was written."""
        return bytes(self._out)

    def skip(self, bound: Bound) -> None:
        """Write a range about which there is nothing to say."""
        self._head(bound, SKIP)

    def fingerprint(self, bound: Bound, fingerprint: bytes) -> None:
        """Write a range as its fingerprint."""
        self._head(bound, FINGERPRINT)
        self._out += fingerprint

    def ids(self, bound: Bound, ids: list[bytes]) -> None:
        """Write a range as the list of its ids."""
        self._head(bound, IDS)
        self._out += write_number(len(ids))
        self._out += b"".join(ids)

    def cut(self, length: int) -> None:
        """Take back what was written behind a length. Only a range to infinity may follow, since times are relative."""
        del self._out[length:]

    def _head(self, bound: Bound, mode: int) -> None:
        (time, name), length = bound
        out = self._out
        if time == INFINITY:
            out.append(0)
        else:
            out += write_number(time - self._time + 1)
            self._time = time
        out.append(length)
        out += name[:length]
        out.append(mode)
