"""Turns of those in one process who write to SQLite, which would let them sleep and try again in no order."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock


class Turns:
    """Lets one in at a time, in the order in which they came.

    Attributes:
        waiting: who waits, each for its own lock.
    """

    def __init__(self) -> None:
        self.waiting: deque[Lock] = deque()
        self._lock = Lock()
        self._is_taken = False

    @contextmanager
    def one(self, seconds: float) -> Iterator[None]:
        """Wait for a turn, and have it; whoever waits for so long goes on without one."""
        has_turn = self._wait(seconds)
        try:
            yield
        finally:
            if has_turn:
                self._give()

    def _wait(self, seconds: float) -> bool:
        with self._lock:
            if not self._is_taken:
                self._is_taken = True
                return True
            mine = Lock()
            mine.acquire()
            self.waiting.append(mine)
        if mine.acquire(timeout=seconds):
            return True
        with self._lock:
            if mine in self.waiting:
                self.waiting.remove(mine)
                return False
        # It was given at this moment.
        return True

    def _give(self) -> None:
        with self._lock:
            if self.waiting:
                self.waiting.popleft().release()
            else:
                self._is_taken = False
