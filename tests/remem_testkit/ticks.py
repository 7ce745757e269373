"""Seconds that a test counts."""

from __future__ import annotations


class Ticks:
    """A clock of a `Span` that stands still until it is moved.

    Attributes:
        now: the seconds so far.
    """

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def advance(self, seconds: float) -> None:
        self.now += seconds
