"""Which peers a night goes to (DESIGN section 5).

- A few of them at random, since every peer may be a black hole, and no order may be foreseen.
- A peer that does not answer is left alone for a while, twice as long each time, and another is tried in its place.
- A peer that delivers little of what it promised sinks: it is chosen as seldom as it keeps its word, and never quite
  never, since what it was blamed for may be over.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from random import Random
from typing import Final

EXCHANGES_A_NIGHT: Final = 3
FEW_PEERS: Final = 3
"""Below so many, one host's lie or failure is too large a part of what a node hears."""

_BACK_OFF_FIRST: Final = timedelta(hours=1)
_BACK_OFF_MOST: Final = timedelta(days=7)
_WORD_LEAST: Final = 0.02


@dataclass(frozen=True, slots=True)
class Standing:
    """How a peer has behaved.

    Attributes:
        url: its address.
        failures: how many times in a row it did not answer.
        next_try: before which it is not tried; None where it may be now.
        promised: how many files it said that it has, and was asked for.
        delivered: how many of these came and were good.
    """

    url: str
    failures: int = 0
    next_try: datetime | None = None
    promised: int = 0
    delivered: int = 0

    @property
    def word(self) -> float:
        """The part of its promises that it kept, as far as is known; 1 before any."""
        return max(_WORD_LEAST, (self.delivered + 1) / (self.promised + 1))


def in_turn(peers: Iterable[Standing], now: datetime, random: Random) -> Iterator[Standing]:
    """Put the peers that may be tried now in an order: at random, those that keep their word before the others."""
    ready = [peer for peer in peers if peer.next_try is None or peer.next_try <= now]
    # Weighted sampling without replacement: the larger the weight, the likelier an early place.
    yield from sorted(ready, key=lambda peer: random.random() ** (1 / peer.word), reverse=True)


def back_off(failures: int) -> timedelta:
    """Say for how long a peer is left alone after so many failures in a row.

    Args:
        failures: at least 1.
    """
    # No shift beyond what reaches the most, so that a count that was damaged costs nothing.
    return min(_BACK_OFF_MOST, _BACK_OFF_FIRST * (1 << min(failures - 1, 10)))
