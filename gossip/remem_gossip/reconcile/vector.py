"""A store of items in memory, sorted once and with a sum kept for each: for tests, and for sets that are made anew."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from itertools import accumulate, pairwise

from remem.protocol.items import ID_BYTES, INFINITY, Item


class Vector:
    """A set of items that does not change.

    Args:
        items: the items, in any order.

    Raises:
        ValueError: an item comes twice, its id is not of 32 bytes, or its time is none that an item has.
    """

    def __init__(self, items: Iterable[Item]) -> None:
        self._items = sorted(items)
        for item in self._items:
            if len(item.id) != ID_BYTES or not 0 <= item.time < INFINITY:
                raise ValueError(f"expected items with a time below 2^64 - 1 and {ID_BYTES} bytes of id, got {item}")
        for item, following in pairwise(self._items):
            if item == following:
                raise ValueError(f"expected each item once, got {item} twice")
        self._sums = list(accumulate((int.from_bytes(item.id, "little") for item in self._items), initial=0))

    def __len__(self) -> int:
        return len(self._items)

    def item(self, index: int) -> Item:
        """Return the item at an index."""
        return self._items[index]

    def find(self, bound: Item) -> int:
        """Return how many items sort before a bound."""
        return bisect_left(self._items, bound)

    def sum(self, begin: int, end: int) -> int:
        """Return the sum of the ids of a range."""
        return self._sums[end] - self._sums[begin]

    def ids(self, begin: int, end: int) -> list[bytes]:
        """Return the ids of a range."""
        return [item.id for item in self._items[begin:end]]

    def expect_bounds(self, bounds: Iterable[Item]) -> None:
        """Do nothing: all is here."""

    def expect_indexes(self, indexes: Iterable[int]) -> None:
        """Do nothing: all is here."""
