"""What reconciliation asks of a store: items in their order, and the sums of their ids.

Indexes count from 0, and a range includes its beginning and excludes its end. A store does not change while a message
is worked on. One message asks for ranges from left to right, so that a store may do its work on each item once.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from remem.protocol.items import Item


class Storage(Protocol):
    """A sorted set of items at one moment."""

    def __len__(self) -> int:
        """Return how many items there are."""
        ...

    def item(self, index: int) -> Item:
        """Return the item at an index."""
        ...

    def find(self, bound: Item) -> int:
        """Return how many items sort before a bound, which may lie at infinity."""
        ...

    def sum(self, begin: int, end: int) -> int:
        """Return the sum of the ids of a range as little-endian numbers, or any number congruent to it modulo 2^256."""
        ...

    def ids(self, begin: int, end: int) -> list[bytes]:
        """Return the ids of a range, in the order of the items."""
        ...

    def expect_bounds(self, bounds: Iterable[Item]) -> None:
        """Be told which bounds are looked for next, in their order, so that what they lie in may be read at once."""
        ...

    def expect_indexes(self, indexes: Iterable[int]) -> None:
        """Be told at which indexes ranges are cut next, for the same reason."""
        ...
