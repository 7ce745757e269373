"""What a peer may still cost tonight, where several spend of it at once: an exchange with it, and what it offers.

What is spent is added to what is written down, in one step of the database, and what all spent by then is read again.
That is done behind each answer and each offer, on whichever server it is: so all together go beyond a budget by no more
than one of these for each.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from remem_gossip.budget import Allowance, Budget

Add: TypeAlias = Callable[[Budget], Budget]
"""Adds to what is written down, where there is anything to add, and returns all of it."""


class Account(Allowance):
    """What is left of a budget in one night, as far as was heard of the others.

    Args:
        budget: the whole of it.
        add: writes down what is spent.
    """

    def __init__(self, budget: Budget, add: Add) -> None:
        self._add = add
        self._settled = add(Budget())
        super().__init__(budget, self._settled)

    @property
    def is_settled(self) -> bool:
        """Whether nothing was spent since it was settled."""
        return self.spent == self._settled

    def settle(self) -> None:
        """Write down what was spent here, and read what the others spent."""
        more = Budget(*(getattr(self.spent, name) - getattr(self._settled, name) for name in Budget.__slots__))
        self.spent = self._settled = self._add(more)
