"""The ordered set of items: whatever comes and goes, it is the sorted list of what is in it."""

from __future__ import annotations

import sqlite3
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from remem import itemset
from remem.itemset import BLOCK_ITEMS, READABLE_ITEMS, Block, Blocks, Head, ItemSet, Stored
from remem.memory.items import Rows
from remem.memory.store import open_store
from remem.protocol.items import INFINITY, Item, pack

MOST = 4
"""Small blocks, so that a few items are cut and joined as often as many are in large ones."""


class Shelf:
    """Blocks in memory."""

    def __init__(self) -> None:
        self.blocks: dict[bytes, tuple[Head, bytes]] = {}
        self.reads = 0
        self.puts = 0

    def heads(self) -> Sequence[tuple[bytes, int, bytes]]:
        return [self.blocks[start][0] for start in sorted(self.blocks)]

    def read(self, starts: Sequence[bytes]) -> Mapping[bytes, bytes]:
        self.reads += 1
        return {start: self.blocks[start][1] for start in starts}

    def at_or_before(self, start: bytes) -> Block | None:
        return self._block(max((one for one in self.blocks if one <= start), default=None))

    def before(self, start: bytes) -> Block | None:
        return self._block(max((one for one in self.blocks if one < start), default=None))

    def after(self, start: bytes) -> Block | None:
        return self._block(min((one for one in self.blocks if one > start), default=None))

    def put(self, head: Head, items: bytes) -> None:
        self.puts += 1
        self.blocks[head.start] = (head, items)

    def remove(self, start: bytes) -> None:
        del self.blocks[start]

    def _block(self, start: bytes | None) -> Block | None:
        return None if start is None else Block(start, self.blocks[start][1])


def item(time: int, name: int = 0) -> Item:
    # The high byte of the first and of the last word are set, so that sums overflow at once.
    return Item(time, b"\xff" * 8 + name.to_bytes(16, "big") + b"\xff" * 8)


def total(items: Sequence[Item]) -> int:
    return sum(int.from_bytes(one.id, "little") for one in items) % 2**256


ITEMS = st.one_of(
    st.builds(item, st.integers(0, 30), st.integers(0, 3)),
    st.builds(Item, st.integers(0, INFINITY - 1), st.binary(min_size=32, max_size=32)),
)


class Changing(RuleBasedStateMachine):
    """A set and a sorted list that go through the same."""

    def __init__(self) -> None:
        super().__init__()
        self.shelf: Blocks = Shelf()
        self.held = ItemSet(self.shelf, most=MOST)
        self.model: list[Item] = []

    @rule(one=ITEMS)
    def add(self, one: Item) -> None:
        assert self.held.add(one) == (one not in self.model)
        self.model = sorted({*self.model, one})

    @rule(start=st.integers(0, 1_000), count=st.integers(1, 12))
    def grow_at_the_end(self, start: int, count: int) -> None:
        last = self.model[-1].time if self.model else 0
        for number in range(count):
            self.add(item(min(last + start + number, INFINITY - 1)))

    @rule(one=ITEMS)
    def discard(self, one: Item) -> None:
        assert self.held.discard(one) == (one in self.model)
        self.model = [held for held in self.model if held != one]

    @rule(gone=st.none() | ITEMS, come=st.none() | ITEMS)
    def replace(self, gone: Item | None, come: Item | None) -> None:
        self.held.replace(gone, come)
        self.model = sorted({one for one in self.model if one != gone}.union([] if come is None else [come]))

    @precondition(lambda self: self.model)
    @rule(data=st.data(), come=ITEMS)
    def replace_one_of_them(self, data: st.DataObject, come: Item) -> None:
        self.replace(data.draw(st.sampled_from(self.model)), come)

    @precondition(lambda self: self.model)
    @rule(data=st.data())
    def discard_some_of_them(self, data: st.DataObject) -> None:
        begin = data.draw(st.integers(0, len(self.model) - 1))
        for one in self.model[begin : begin + data.draw(st.integers(1, 9))]:
            self.discard(one)

    @rule(items=st.lists(ITEMS, max_size=20))
    def fill(self, items: list[Item]) -> None:
        self.held.fill(items)
        self.model = sorted(set(items))

    @rule(bound=ITEMS, data=st.data())
    def look(self, bound: Item, data: st.DataObject) -> None:
        stored = self.held.snapshot()
        begin = data.draw(st.integers(0, len(self.model)))
        end = data.draw(st.integers(begin, len(self.model)))
        assert stored.find(bound) == bisect_left(self.model, bound)
        assert stored.ids(begin, end) == [one.id for one in self.model[begin:end]]
        assert stored.sum(begin, end) == total(self.model[begin:end])

    @invariant()
    def it_is_the_list(self) -> None:
        stored = self.held.snapshot()
        assert [stored.item(index) for index in range(len(stored))] == list(self.held) == self.model
        assert stored.sum(0, len(stored)) == total(self.model)
        assert stored.find(Item(INFINITY, bytes(32))) == len(self.model)
        assert list(self.held.faults()) == []

    @invariant()
    def its_blocks_are_not_many(self) -> None:
        # Two small blocks side by side are one, so each pair holds more than a quarter.
        assert len(self.shelf.heads()) <= 2 * (len(self.model) // (MOST // 4 + 1) + 1)


TestChanging = Changing.TestCase


@pytest.fixture
def rows(tmp_path: Path) -> Iterator[Rows]:
    db = open_store(tmp_path / "memory.db")
    yield Rows(db)
    db.close()


@given(st.lists(ITEMS, unique=True, max_size=60), st.randoms(use_true_random=False))
def test_the_order_of_changes_leaves_no_trace(items: list[Item], random: Random) -> None:
    held = ItemSet(Shelf(), most=MOST)
    gone = random.sample(items, len(items) // 2)
    for one in items:
        held.add(one)
    for one in gone:
        held.discard(one)
    assert list(held) == sorted(set(items) - set(gone))


def test_rows_of_a_database_are_blocks_like_those_in_memory(rows: Rows) -> None:
    random, shelf = Random(5), Shelf()
    sets = [ItemSet(rows, most=MOST), ItemSet(shelf, most=MOST)]
    known = [item(random.randrange(200), random.randrange(3)) for _ in range(400)]
    for one in known:
        assert len({held.add(one) for held in sets}) == 1
    for one in random.sample(known, 300):
        assert len({held.discard(one) for held in sets}) == 1
    assert rows.heads() == [tuple(head) for head in shelf.heads()]
    starts = [head[0] for head in shelf.heads()]
    assert rows.read(starts) == shelf.read(starts)
    for one in known:
        start = pack(one)
        assert rows.at_or_before(start) == shelf.at_or_before(start)
        assert rows.before(start) == shelf.before(start)
        assert rows.after(start) == shelf.after(start)


def test_a_set_that_grows_at_its_end_has_full_blocks() -> None:
    shelf = Shelf()
    held = ItemSet(shelf)
    for time in range(2 * BLOCK_ITEMS + 10):
        held.add(item(time))
    assert [size for _start, size, _sum in shelf.heads()] == [BLOCK_ITEMS, BLOCK_ITEMS, 10]


def test_an_item_that_takes_the_place_of_another_in_its_block_is_written_once() -> None:
    shelf = Shelf()
    held = ItemSet(shelf)
    held.fill(item(2 * time) for time in range(3 * BLOCK_ITEMS))
    shelf.puts = 0
    held.replace(item(0), item(3))
    held.replace(item(6 * BLOCK_ITEMS - 2), item(6 * BLOCK_ITEMS))
    assert shelf.puts == 2
    # Of two blocks, both are written: here that of the first, and one that begins behind the last, which is full.
    held.replace(item(4), item(6 * BLOCK_ITEMS + 1))
    assert shelf.puts == 4
    assert list(held.faults()) == []


def test_a_full_block_in_the_middle_is_cut_in_half() -> None:
    shelf = Shelf()
    held = ItemSet(shelf)
    held.fill(item(2 * time) for time in range(2 * BLOCK_ITEMS))
    held.add(item(3))
    half = BLOCK_ITEMS // 2
    assert [size for _start, size, _sum in shelf.heads()] == [half, half + 1, BLOCK_ITEMS]


def test_small_blocks_become_one() -> None:
    shelf = Shelf()
    held = ItemSet(shelf)
    held.fill(map(item, range(10 * BLOCK_ITEMS)))
    for time in range(10 * BLOCK_ITEMS):
        if time % 50:
            held.discard(item(time))
    assert len(held.snapshot()) == len(range(0, 10 * BLOCK_ITEMS, 50))
    assert len(shelf.heads()) == 1


def test_a_set_without_items_has_no_blocks() -> None:
    shelf = Shelf()
    held = ItemSet(shelf)
    held.add(item(1))
    held.discard(item(1))
    stored = held.snapshot()
    assert (len(stored), stored.sum(0, 0), stored.ids(0, 0), stored.find(item(1))) == (0, 0, [], 0)
    assert shelf.blocks == {}


def test_opening_reads_no_block_and_a_range_only_those_at_its_ends() -> None:
    shelf = Shelf()
    held = ItemSet(shelf)
    held.fill(map(item, range(20 * BLOCK_ITEMS)))
    stored = held.snapshot()
    assert (len(stored), shelf.reads) == (20 * BLOCK_ITEMS, 0)
    stored.sum(0, len(stored))
    assert shelf.reads == 0
    stored.sum(3, len(stored) - 3)
    stored.sum(5, len(stored) - 5)
    assert shelf.reads == 2


def test_what_is_expected_is_read_at_once() -> None:
    shelf = Shelf()
    held = ItemSet(shelf)
    held.fill(map(item, range(20 * BLOCK_ITEMS)))
    stored = held.snapshot()
    cuts = [number * BLOCK_ITEMS + 7 for number in range(16)]
    stored.expect_bounds([*map(item, cuts), Item(INFINITY, bytes(32))])
    assert [stored.find(item(cut)) for cut in cuts] == cuts
    assert shelf.reads == 1
    cuts = [number * BLOCK_ITEMS for number in range(1, 20)]
    stored.expect_indexes([0, *cuts, len(stored)])
    assert [stored.item(cut - 1) for cut in cuts] == [item(cut - 1) for cut in cuts]
    assert stored.sum(5, len(stored) - 5) == total([item(time) for time in range(5, len(stored) - 5)])
    assert shelf.reads == 2
    assert stored.find(Item(INFINITY, bytes(32))) == len(stored)


def test_blocks_one_behind_the_other_are_read_several_at_once() -> None:
    shelf = Shelf()
    held = ItemSet(shelf, most=MOST)
    held.fill(map(item, range(40 * MOST)))
    stored = held.snapshot()
    assert stored.ids(0, len(stored)) == [item(time).id for time in range(40 * MOST)]
    # The first, and then by sixteens.
    assert shelf.reads == 4
    stored.item(0)
    assert shelf.reads == 4
    # What is expected of blocks that lie together is nothing else.
    stored = held.snapshot()
    for begin in range(0, 40 * MOST, 2 * MOST):
        stored.expect_indexes(range(begin, begin + 2 * MOST + 1))
        assert stored.item(begin) == item(begin)
        assert stored.item(begin + MOST) == item(begin + MOST)
    assert shelf.reads == 8
    other = held.snapshot()
    assert [other.item(index * MOST) for index in range(0, 40, 2)] == [item(time * MOST) for time in range(0, 40, 2)]
    assert shelf.reads == 28


def test_what_is_expected_and_never_asked_for_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(itemset, "CACHED_BLOCKS", 8)
    monkeypatch.setattr(itemset, "READ_ON", 2)
    held = ItemSet(Shelf(), most=MOST)
    held.fill(map(item, range(100)))
    stored = held.snapshot()
    stored.expect_bounds(map(item, range(50)))
    stored.expect_indexes(range(101))
    assert [stored.find(item(time)) for time in reversed(range(100))] == [*reversed(range(100))]


def test_however_much_is_read_only_some_blocks_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(itemset, "CACHED_BLOCKS", 8)
    monkeypatch.setattr(itemset, "READ_ON", 2)
    shelf = Shelf()
    held = ItemSet(shelf, most=MOST)
    held.fill(map(item, range(100)))
    stored = held.snapshot()
    assert stored.ids(0, 100) == [item(time).id for time in range(100)]
    assert len(stored._cached) == 8
    assert stored.item(0) == item(0)


@pytest.mark.parametrize("index", [-1, 2])
def test_an_index_outside_the_set_is_refused(index: int) -> None:
    held = ItemSet(Shelf())
    held.fill([item(1), item(2)])
    with pytest.raises(IndexError, match="expected an index below 2"):
        held.snapshot().item(index)


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        ("UPDATE items SET size = size + 1", "number and sum"),
        ("UPDATE items SET sum = zeroblob(32)", "number and sum"),
        ("UPDATE items SET items = zeroblob(0), size = 0, sum = zeroblob(32)", "items, got 0 bytes"),
        ("UPDATE items SET items = zeroblob(121)", "items, got 121 bytes"),
        ("UPDATE items SET items = zeroblob(120)", "in order"),
        ("UPDATE items SET start = x'01'", "start at zero"),
        ("UPDATE items SET start = (SELECT substr(items, 41, 40) FROM items)", "from its start to the next"),
    ],
)
def test_what_breaks_a_rule_of_the_blocks_is_told(damage: str, said: str, tmp_path: Path) -> None:
    db: sqlite3.Connection = open_store(tmp_path / "memory.db")
    held = ItemSet(Rows(db))
    held.fill(map(item, range(3)))
    assert list(held.faults()) == []
    db.execute(damage)
    assert any(said in fault for fault in held.faults())
    db.close()


def test_blocks_of_a_release_that_writes_larger_ones_are_read_and_become_small_ones() -> None:
    shelf = Shelf()
    ItemSet(shelf, most=READABLE_ITEMS).fill(item(2 * time) for time in range(READABLE_ITEMS + 1))
    held = ItemSet(shelf)
    assert list(held.faults()) == []
    for one in (item(1), item(2 * READABLE_ITEMS + 1)):
        held.add(one)
    held.discard(item(2))
    assert [size for _start, size, _sum in shelf.heads()] == [READABLE_ITEMS // 2 - 1, READABLE_ITEMS // 2 + 1, 2]
    assert list(held) == [item(0), item(1), *(item(2 * time) for time in range(2, READABLE_ITEMS + 1)), item(4097)]
    assert list(held.faults()) == []
    shelf.put(*_too_large())
    assert any("expected 1 to 2048 items" in fault for fault in held.faults())


def _too_large() -> tuple[Head, bytes]:
    items = b"".join(pack(item(time)) for time in range(READABLE_ITEMS + 1))
    return Block(bytes(40), items).head, items


def test_a_snapshot_of_changed_blocks_is_another(rows: Rows) -> None:
    held = ItemSet(rows)
    before: Stored = held.snapshot()
    held.add(item(1))
    assert (len(before), len(held.snapshot())) == (0, 1)
