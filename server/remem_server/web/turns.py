"""Turns: those who ask for much wait for one another, and not those who ask for little.

- While others ask for little, an address (or a token) that asks for much has one request at a time, and rests behind
  each: several times as long as its work took, and never less than what a refusal costs. While nobody does, there are
  no turns, and it is no slower for having asked for much.
- A turn comes before a body is read, so that what waits costs no more than its connection. How long a client takes to
  send its body is no work, and the turn of one that takes too long is given to the next.
- Only so many wait: behind a proxy, whose connections are not counted by address, the others would find none left.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from remem_server.errors import TooManyRequests

# As many as an address has connections.
WAITING_MOST: Final = 128

_CALM_SECONDS: Final = 1.0
_RESTS: Final = 4
_REST_SECONDS: Final = 0.01
_BODY_SECONDS: Final = 0.25
_BUSY_SECONDS: Final = 2


class Turn:
    """The turn of one request.

    Args:
        give: gives the next its turn, after so many seconds.
    """

    def __init__(self, give: Callable[[float], None]) -> None:
        self._give: Callable[[float], None] | None = give
        self._began = time.monotonic()

    @contextmanager
    def body(self) -> Iterator[None]:
        """Wait for a body's bytes: this is no work, and no turn for long."""
        began = time.monotonic()
        late = asyncio.get_running_loop().call_later(_BODY_SECONDS, self._end, 0.0)
        try:
            yield
        finally:
            late.cancel()
            self._began += time.monotonic() - began

    def end(self) -> None:
        """End the turn, if it has not ended; the rest behind it begins."""
        self._end(max(_REST_SECONDS, _RESTS * (time.monotonic() - self._began)))

    def _end(self, rest: float) -> None:
        give, self._give = self._give, None
        if give is not None:
            give(rest)


class Turns:
    """Who waits for its turn at a server."""

    def __init__(self) -> None:
        # Who asked for little last, and who did last of all others, and when.
        self._little = self._other = ("", -_CALM_SECONDS)
        # By who takes turns, those behind the one whose turn it is.
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}

    def note_little(self, who: str) -> None:
        """Note that somebody asks who does not ask for much."""
        if who != self._little[0]:
            self._other = self._little
        self._little = (who, time.monotonic())

    async def take(self, who: str) -> Turn | None:
        """Wait for the turn of a request of somebody who asks for much.

        Returns:
            the turn, to be ended once the request is answered; None where nobody else asks, and no turns are taken.

        Raises:
            TooManyRequests: too many wait already.
        """
        _, asked = self._other if self._little[0] == who else self._little
        if time.monotonic() - asked > _CALM_SECONDS:
            return None
        waiting = self._waiting.get(who)
        if waiting is None:
            self._waiting[who] = deque()
        elif len(waiting) >= WAITING_MOST:
            raise TooManyRequests(f"expected at most {WAITING_MOST} requests to wait, got more", _BUSY_SECONDS)
        else:
            await self._wait(who, waiting)
        return Turn(lambda rest: self._rest(who, rest))

    async def _wait(self, who: str, waiting: deque[asyncio.Future[None]]) -> None:
        turn = asyncio.get_running_loop().create_future()
        waiting.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            # It may have been given to who has gone meanwhile.
            if not turn.cancelled():
                self._give(who)
            raise

    def _rest(self, who: str, seconds: float) -> None:
        asyncio.get_running_loop().call_later(seconds, self._give, who)

    def _give(self, who: str) -> None:
        waiting = self._waiting[who]
        while waiting:
            turn = waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                return
        del self._waiting[who]
