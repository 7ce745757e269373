"""Time that ends: for one request, for one peer, for a whole night.

What something may take is said once, where it begins, and whatever is done within it ends with it: so no number of slow
peers, and none of their answers, keeps a night, a round or a command longer than that.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable


class Span:
    """Some seconds, from now on.

    Args:
        seconds: how many; without them it lasts as long as what it is within, or until `end`.
        within: what it ends with at the latest.
        clock: counts seconds; that of what it is within, or the machine's.

    Attributes:
        clock: counts them.
        seconds: how many it had when it began.
    """

    def __init__(
        self, seconds: float = math.inf, *, within: Span | None = None, clock: Callable[[], float] | None = None
    ) -> None:
        self._within = within
        self.clock: Callable[[], float] = clock or (time.monotonic if within is None else within.clock)
        self._end = self.clock() + seconds
        self.seconds = self.left

    @property
    def left(self) -> float:
        """How many seconds are left: 0 where it is over."""
        own = max(0.0, self._end - self.clock())
        return own if self._within is None else min(own, self._within.left)

    @property
    def is_ended(self) -> bool:
        """Whether somebody ended it, or what it is within; else it may be over by itself alone."""
        return self._end == -math.inf or (self._within is not None and self._within.is_ended)

    def has_room_for(self, seconds: float) -> bool:
        """Tell whether something that may take so long would end within it.

        What would not is not begun: so nobody is blamed for the time that others took.
        """
        return self.left >= seconds

    def end(self) -> None:
        """End it now."""
        self._end = -math.inf
