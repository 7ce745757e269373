"""A set of items in their order, that opens at once at any size and tells the sum of any range.

- The items lie in blocks of at most `BLOCK_ITEMS`: larger ones cost each change more, smaller ones each opening. A
  block has a start, and holds the items from there up to the start of the next one; the first block starts at zero.
  Beside its items it keeps their number and the sum of their ids. Starts, numbers and sums are all that opening reads.
- A change reads and writes one block, sometimes one beside it. A full block is cut in the middle; where the item
  comes behind everything it gets a block of its own, so that a set that grows at its end has full blocks.
- Where an item takes the place of another in its block, as it does in a set of few blocks, that is written once.
- A block that holds less than a quarter joins one beside it if both fill three quarters at most. None is ever empty.
- Ids are summed as little-endian numbers modulo 2^256, as reconciliation does.

Where the blocks lie is the business of `Blocks`: a memory and a commons each have them in their database, and change
them in the transaction that changes what they hold.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, pairwise
from typing import Final, NamedTuple, Protocol

from remem.protocol.items import ID_BYTES, INFINITY, PACKED_BYTES, TIME_BYTES, Item, pack, unpack

BLOCK_ITEMS: Final = 768
READABLE_ITEMS: Final = 2_048
"""How many items a block may have that is read: more than are written, so that releases may differ in that."""
CACHED_BLOCKS: Final = 64
READ_ON: Final = 16
"""How many blocks are read at once by whoever reads one behind the other."""
_START: Final = bytes(PACKED_BYTES)
_MODULUS: Final = 1 << 8 * ID_BYTES
# Items as one number, in which the times' bits are empty and the ids' are all set.
_IDS: Final = int.from_bytes((bytes(TIME_BYTES) + b"\xff" * ID_BYTES) * READABLE_ITEMS, "little")


class Head(NamedTuple):
    """What a set knows of a block without its items.

    Attributes:
        start: the packed item from which on its items are; it need not be among them.
        size: how many items it holds.
        sum: the sum of their ids, 32 bytes, little-endian.
    """

    start: bytes
    size: int
    sum: bytes


class Block(NamedTuple):
    """A block: its start, and its packed items one behind the other."""

    start: bytes
    items: bytes

    @property
    def size(self) -> int:
        """How many items it holds."""
        return len(self.items) // PACKED_BYTES

    @property
    def head(self) -> Head:
        """What is kept beside its items, worked out from them."""
        return Head(self.start, self.size, _sum(self.items).to_bytes(ID_BYTES, "little"))


class Blocks(Protocol):
    """Where blocks lie. Each call sees what the calls before it wrote."""

    def heads(self) -> Sequence[tuple[bytes, int, bytes]]:
        """Return the head of every block, in the order of their starts."""
        ...

    def read(self, starts: Sequence[bytes]) -> Mapping[bytes, bytes]:
        """Return the items of the blocks that start at these."""
        ...

    def at_or_before(self, start: bytes) -> Block | None:
        """Return the last block that starts here or before."""
        ...

    def before(self, start: bytes) -> Block | None:
        """Return the last block that starts before."""
        ...

    def after(self, start: bytes) -> Block | None:
        """Return the first block that starts behind."""
        ...

    def put(self, head: Head, items: bytes) -> None:
        """Write a block, in place of the one with this start if there is one."""
        ...

    def remove(self, start: bytes) -> None:
        """Remove the block that starts here."""
        ...


class ItemSet:
    """The set; the caller owns the transaction.

    Args:
        blocks: where it lies.
        most: how many items a block may hold.
    """

    def __init__(self, blocks: Blocks, *, most: int = BLOCK_ITEMS) -> None:
        self._blocks = blocks
        self._most = most

    def add(self, item: Item) -> bool:
        """Add an item; false where it is in the set already."""
        packed = pack(item)
        block = self._blocks.at_or_before(packed) or Block(_START, b"")
        if _has(block.items, packed):
            return False
        is_last = packed > block.items[-PACKED_BYTES:]
        if block.size == self._most and is_last and self._blocks.after(block.start) is None:
            self._put(Block(packed, packed))
            return True
        grown = _with(block.items, packed)
        if block.size < self._most:
            self._put(Block(block.start, grown))
            return True
        middle = len(grown) // PACKED_BYTES // 2 * PACKED_BYTES
        self._put(Block(block.start, grown[:middle]))
        self._put(Block(grown[middle : middle + PACKED_BYTES], grown[middle:]))
        return True

    def discard(self, item: Item) -> bool:
        """Take an item out; false where it is not in the set."""
        packed = pack(item)
        block = self._blocks.at_or_before(packed)
        if block is None or not _has(block.items, packed):
            return False
        left = Block(block.start, _without(block.items, packed))
        if left.size >= self._most // 4 or not self._join(left):
            self._put(left)
        return True

    def replace(self, gone: Item | None, come: Item | None) -> None:
        """Put an item in the place of another; None is none."""
        if gone is not None and come is not None and self._swap(pack(gone), pack(come)):
            return
        if gone is not None:
            self.discard(gone)
        if come is not None:
            self.add(come)

    def fill(self, items: Iterable[Item]) -> None:
        """Let the set hold these items and no others."""
        for head in self._blocks.heads():
            self._blocks.remove(head[0])
        packed = sorted({pack(item) for item in items})
        for begin in range(0, len(packed), self._most):
            self._put(Block(packed[begin] if begin else _START, b"".join(packed[begin : begin + self._most])))

    def __iter__(self) -> Iterator[Item]:
        """Read the items in their order, block by block."""
        for head in self._blocks.heads():
            items = self._blocks.read([head[0]])[head[0]]
            yield from (unpack(items[at : at + PACKED_BYTES]) for at in range(0, len(items), PACKED_BYTES))

    def snapshot(self) -> Stored:
        """Return the set as it is, for as long as the caller's transaction sees it so."""
        return Stored(self._blocks)

    def faults(self) -> Iterator[str]:
        """Read all of it, and tell what breaks a rule of this module."""
        heads = [Head(*found) for found in self._blocks.heads()]
        if heads and heads[0].start != _START:
            yield f"expected the first block to start at zero, got {heads[0].start.hex()}"
        for head, following in pairwise([*heads, None]):
            if head is not None:
                yield from _block_faults(head, self._blocks.read([head.start])[head.start], following)

    def _put(self, block: Block) -> None:
        self._blocks.put(block.head, block.items)

    def _swap(self, gone: bytes, come: bytes) -> bool:
        """Put an item in the place of another of its block; false where that has it not, or both."""
        block = self._blocks.at_or_before(come)
        if block is None or not _has(block.items, gone) or _has(block.items, come):
            return False
        self._put(Block(block.start, _with(_without(block.items, gone), come)))
        return True

    def _join(self, small: Block) -> bool:
        """Put what is left of a block into one beside it; false where that would be too full, or none is there."""
        before, after = self._blocks.before(small.start), self._blocks.after(small.start)
        for left, right in ((before, small), (small, after)):
            if left is None or right is None:
                continue
            if left.size + right.size <= self._most * 3 // 4 or not small.items:
                self._blocks.remove(right.start)
                self._put(Block(left.start, left.items + right.items))
                return True
        if not small.items:
            self._blocks.remove(small.start)
        return not small.items


class Stored:
    """A set as it was at one moment: a `Storage` for reconciliation.

    It holds the heads, and the blocks that were read last. Whoever reads block after block is given some more at once,
    since elsewhere a statement costs as much as a block.
    """

    def __init__(self, blocks: Blocks) -> None:
        self._blocks = blocks
        heads = blocks.heads()
        self._starts: Sequence[bytes]
        self._sums: Sequence[bytes]
        sizes: Sequence[int]
        # All at once, which is faster than one by one.
        self._starts, sizes, self._sums = zip(*heads, strict=True) if heads else ((), (), ())
        # For each block how many items are before it; and the same behind the last.
        self._before: list[int] = list(accumulate(sizes, initial=0))
        self._cached: OrderedDict[int, bytes] = OrderedDict()
        self._expected: list[int] = []

    def __len__(self) -> int:
        return self._before[-1]

    def item(self, index: int) -> Item:
        """Return the item at an index."""
        if not 0 <= index < len(self):
            raise IndexError(f"expected an index below {len(self)}, got {index}")
        number = self._number(index)
        at = (index - self._before[number]) * PACKED_BYTES
        return unpack(self._items(number)[at : at + PACKED_BYTES])

    def find(self, bound: Item) -> int:
        """Return how many items are below a bound, which need not be in the set."""
        if bound.time == INFINITY:
            return len(self)
        packed = pack(bound)
        number = self._holding(packed)
        return 0 if number < 0 else self._before[number] + _position(self._items(number), packed)

    def expect_bounds(self, bounds: Iterable[Item]) -> None:
        """Be told which bounds are looked for next, in their order."""
        packed = [pack(bound) for bound in bounds if bound.time < INFINITY]
        self._expected = sorted({number for one in packed if (number := self._holding(one)) >= 0})

    def expect_indexes(self, indexes: Iterable[int]) -> None:
        """Be told at which indexes ranges are cut next: the items on both sides are asked for."""
        near = {index for cut in indexes for index in (cut - 1, cut) if 0 <= index < len(self)}
        missing = sorted({self._number(index) for index in near} - self._cached.keys())
        # Those that lie together are read one behind the other.
        if len(missing) <= CACHED_BLOCKS and missing and missing[-1] - missing[0] >= READ_ON:
            self._read(missing)

    def sum(self, begin: int, end: int) -> int:
        """Return the sum of the ids in a range, modulo 2^256."""
        if begin >= end:
            return 0
        first, last = self._number(begin), self._number(end - 1)
        if first == last:
            start = self._before[first]
            return self._partial(first, begin - start, end - start)
        whole = sum(int.from_bytes(one, "little") for one in self._sums[first + 1 : last])
        head = self._partial(first, begin - self._before[first], self._before[first + 1] - self._before[first])
        return (head + whole + self._partial(last, 0, end - self._before[last])) % _MODULUS

    def ids(self, begin: int, end: int) -> list[bytes]:
        """Return the ids of a range, in the order of their items."""
        found: list[bytes] = []
        while begin < end:
            number = self._number(begin)
            start, stop = self._before[number], min(end, self._before[number + 1])
            items = self._items(number)
            places = range((begin - start) * PACKED_BYTES, (stop - start) * PACKED_BYTES, PACKED_BYTES)
            found += [items[at + TIME_BYTES : at + PACKED_BYTES] for at in places]
            begin = stop
        return found

    def _number(self, index: int) -> int:
        return bisect_right(self._before, index) - 1

    def _partial(self, number: int, begin: int, end: int) -> int:
        """Sum some ids of a block: those that are asked for, or those that are not, whichever are fewer."""
        count = self._before[number + 1] - self._before[number]
        if end - begin == count:
            return int.from_bytes(self._sums[number], "little")
        items = memoryview(self._items(number))
        if end - begin <= count // 2:
            return _sum(items[begin * PACKED_BYTES : end * PACKED_BYTES])
        rest = _sum(items[: begin * PACKED_BYTES]) + _sum(items[end * PACKED_BYTES :])
        return (int.from_bytes(self._sums[number], "little") - rest) % _MODULUS

    def _holding(self, packed: bytes) -> int:
        return bisect_right(self._starts, packed) - 1

    def _items(self, number: int) -> bytes:
        cached = self._cached
        if (found := cached.get(number)) is not None:
            cached.move_to_end(number)
            return found
        at = bisect_left(self._expected, number)
        if number - 1 in cached:
            # Block after block.
            wanted: Sequence[int] = range(number, min(number + READ_ON, len(self._starts)))
        elif self._expected[at : at + 1] == [number]:
            wanted = self._expected[at : at + CACHED_BLOCKS // 2]
        else:
            wanted = (number,)
        self._read([one for one in wanted if one not in cached])
        return cached[number]

    def _read(self, numbers: Sequence[int]) -> None:
        """Read blocks that are not cached, at once."""
        cached = self._cached
        found = self._blocks.read([self._starts[number] for number in numbers])
        for number in numbers:
            if len(cached) >= CACHED_BLOCKS:
                cached.popitem(last=False)
            cached[number] = found[self._starts[number]]


def _position(items: bytes, packed: bytes) -> int:
    """Return how many items of a block are below this one."""
    low, high = 0, len(items) // PACKED_BYTES
    return bisect_left(range(low, high), packed, key=lambda at: items[at * PACKED_BYTES : (at + 1) * PACKED_BYTES])


def _has(items: bytes, packed: bytes) -> bool:
    at = _position(items, packed) * PACKED_BYTES
    return items[at : at + PACKED_BYTES] == packed


def _with(items: bytes, packed: bytes) -> bytes:
    at = _position(items, packed) * PACKED_BYTES
    return items[:at] + packed + items[at:]


def _without(items: bytes, packed: bytes) -> bytes:
    at = _position(items, packed) * PACKED_BYTES
    return items[:at] + items[at + PACKED_BYTES :]


def _sum(items: bytes | memoryview) -> int:
    """Sum the ids of packed items modulo 2^256: all at once, which is faster than one by one."""
    # The items are one little-endian number of as many lanes. Each lane's low 64 bits were a time; emptied, they take
    # up what the lane below overflows, and never reach the id above. Half the lanes are added to the other half.
    count = len(items) // PACKED_BYTES
    lanes = int.from_bytes(items, "little") & _IDS
    while count > 1:
        count = (count + 1) // 2
        bits = 8 * PACKED_BYTES * count
        lanes = (lanes & ((1 << bits) - 1)) + (lanes >> bits)
    return (lanes >> 8 * TIME_BYTES) % _MODULUS


def _block_faults(head: Head, items: bytes, following: Head | None) -> Iterator[str]:
    name = f"block {head.start.hex()}"
    block = Block(head.start, items)
    if not 1 <= block.size <= READABLE_ITEMS or len(items) % PACKED_BYTES:
        yield f"{name}: expected 1 to {READABLE_ITEMS} items, got {len(items)} bytes"
    if block.head != head:
        yield f"{name}: expected the number and sum of its items, got others"
    packed = [items[at : at + PACKED_BYTES] for at in range(0, len(items), PACKED_BYTES)]
    if any(one >= other for one, other in pairwise(packed)):
        yield f"{name}: expected its items in order, got another order"
    if packed and (packed[0] < head.start or (following is not None and packed[-1] >= following.start)):
        yield f"{name}: expected items from its start to the next, got others"
