"""Sets of items by seed, two sides that talk, and a set that counts what it is asked for."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from random import Random

from remem.protocol.items import Item
from remem_gossip.reconcile import Reconciler


def items_by_seed(
    *, seed: int, both: int, first: int, second: int, seconds: int, is_newest: bool = False
) -> tuple[list[Item], list[Item]]:
    """Make two sets: what both have, and what one of them has alone, within so many seconds or behind them."""
    random = Random(seed)

    def items(count: int, start: int) -> list[Item]:
        return [Item(start + random.randrange(seconds), random.randbytes(32)) for _ in range(count)]

    common = items(both, 1_700_000_000)
    start = 1_700_000_000 + (seconds if is_newest else 0)
    return common + items(first, start), items(second, start) + common


@dataclass
class Talked:
    """What two sides said: how many bytes each message had, and what was learned."""

    sent: list[int] = field(default_factory=list)
    received: list[int] = field(default_factory=list)
    have: set[bytes] = field(default_factory=set)
    need: set[bytes] = field(default_factory=set)


def talk(first: Reconciler, second: Reconciler, most: int = 2_000, since: int = 0) -> Talked:
    """Let the first side begin, at a time, and both talk until it has learned everything."""
    talked = Talked()
    message: bytes | None = first.initiate(since)
    while message is not None:
        assert len(talked.sent) < most, f"expected at most {most} trips, got more"
        talked.sent.append(len(message))
        answer = second.answer(message)
        talked.received.append(len(answer))
        step = first.reconcile(answer)
        talked.have.update(step.have)
        talked.need.update(step.need)
        message = step.message
    return talked


class Arithmetic:
    """Any number of items without their memory, which counts what it is asked for.

    The item at n has the time 3n, and n as a little-endian number as its id.

    Attributes:
        calls: how often it was asked.
        summed: how many items were in the ranges that it summed, those that reach to its end left out.
        listed: how many ids it listed.
        found: what `find` returned, in order.
    """

    def __init__(self, count: int) -> None:
        self._count = count
        self.calls = 0
        self.summed = 0
        self.listed = 0
        self.found: list[int] = []

    def __len__(self) -> int:
        return self._count

    def item(self, index: int) -> Item:
        assert 0 <= index < self._count
        self.calls += 1
        return Item(3 * index, index.to_bytes(32, "little"))

    def find(self, bound: Item) -> int:
        self.calls += 1
        index = min(-(-bound.time // 3), self._count)
        is_before = index < self._count and Item(3 * index, index.to_bytes(32, "little")) < bound
        self.found.append(index + is_before)
        return self.found[-1]

    def sum(self, begin: int, end: int) -> int:
        assert 0 <= begin <= end <= self._count
        self.calls += 1
        self.summed += end - begin if end < self._count else 0
        return (begin + end - 1) * (end - begin) // 2

    def ids(self, begin: int, end: int) -> list[bytes]:
        assert 0 <= begin <= end <= self._count
        self.calls += 1
        self.listed += end - begin
        return [index.to_bytes(32, "little") for index in range(begin, end)]

    def expect_bounds(self, bounds: Iterable[Item]) -> None:
        pass

    def expect_indexes(self, indexes: Iterable[int]) -> None:
        pass
