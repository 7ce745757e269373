"""What one peer may cost a node in a night (DESIGN's budgets; PROTOCOL.md, section 16).

Keys are free, and so whoever answers to a name can offer any number of good files. What comes in beyond a budget is
not refused but waits: another night takes it, or another peer brings it. Updates of keys that are held are never
counted as newcomers, so a flood of new keys does not keep them out.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

_NIGHT_SECONDS: Final = 86_400


@dataclass(frozen=True, slots=True)
class Budget:
    """What a peer may cost in a night; also what it did cost.

    Attributes:
        bytes: of files and frames that came from it.
        checks: signatures that were verified of what it sent.
        origins: keys that were never seen here before.
    """

    bytes: int = 0
    checks: int = 0
    origins: int = 0


class Allowance:
    """What is left of a peer's budget in one night.

    Args:
        budget: the whole of it.
        spent: what the night has cost already.
    """

    def __init__(self, budget: Budget, spent: Budget | None = None) -> None:
        self.budget = budget
        self.spent = spent or Budget()

    @property
    def is_open(self) -> bool:
        """Whether anything more may come: the file that goes beyond is the last."""
        return self.spent.bytes < self.budget.bytes and self.spent.checks < self.budget.checks

    @property
    def bytes_left(self) -> int:
        """How many bytes may still come; none where nothing more may."""
        return self.budget.bytes - self.spent.bytes if self.is_open else 0

    @property
    def origins(self) -> int:
        """How many newcomers may still come."""
        return max(0, self.budget.origins - self.spent.origins)

    def charge(self, *, size: int = 0, checks: int = 0, origins: int = 0) -> None:
        """Count what came."""
        spent = self.spent
        self.spent = replace(
            spent, bytes=spent.bytes + size, checks=spent.checks + checks, origins=spent.origins + origins
        )


def night_of(now: datetime) -> int:
    """Number the night that a moment belongs to: days of UTC since 1970."""
    return int(now.timestamp()) // _NIGHT_SECONDS
