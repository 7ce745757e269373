"""A node as an exchange sees it: the port that a memory and a commons each fill in (DESIGN section 5).

A node has a set of items, one for each sealed file that it holds and one for each key of which it has the proof that it
spoke twice. It hands out what an item names, takes in what comes as if it had been put there by a stranger, and
remembers what it does not want again. Whatever it takes is stored when `take` returns, so an exchange may end at any
point.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from remem_gossip.budget import Allowance
from remem_gossip.parts import Head, Part, Proof, Verdict, Whole
from remem_gossip.reconcile import Storage


class Node(Protocol):
    """What takes part in exchanges."""

    def items(self) -> AbstractContextManager[Storage]:
        """Open the items that are held, as they are at one moment."""
        ...

    def own(self) -> bytes | None:
        """Return the id of this node's own file; None where it has none."""
        ...

    def parts(self, ids: Sequence[bytes]) -> Iterator[Part]:
        """Hand out what these items name, in their order, one part for each."""
        ...

    def heads(self, ids: Sequence[bytes]) -> Iterator[Head]:
        """Say which files these items name, in their order; what is no file that is here is left out."""
        ...

    def settled(self, ids: Collection[bytes]) -> set[bytes]:
        """Return those of these items that are not wanted: refused before, or superseded."""
        ...

    def wanted(self, heads: Iterable[Head], newcomers: int) -> list[bytes]:
        """Choose among files that a peer says it has.

        Trusted keys come first, then updates of held keys, then newcomers: the admitted ones, then the others at
        random.

        Args:
            heads: the files as the peer names them, which may be lies.
            newcomers: how many keys may be new.

        Returns:
            the ids of those that are worth fetching, in that order.
        """
        ...

    def take(self, parts: Sequence[Whole | Proof], source: str, allowance: Allowance) -> list[Verdict]:
        """Take in what a peer sent, as far as its allowance goes, and charge it.

        Args:
            parts: what came.
            source: the peer's address, or its key.
            allowance: what it may still cost tonight.

        Returns:
            a verdict for each, in their order; all that stands is stored.
        """
        ...
