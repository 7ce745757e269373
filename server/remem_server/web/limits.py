"""What a commons lets be done to it within a minute and within a day, by whom (the settings say how much).

- An address has a limit for what it reads, and one each for the files, the bytes and the lines that it sends. Whoever
  shows a good token is counted by that alone when it publishes, and when its address may read no more: so nobody
  without a token spends what others behind the same address need, and many addresses with one token gain nothing.
- A refusal costs next to nothing: it comes before a thread is taken, before a body is read, and before a
  signature is verified. Bytes count as they came, and lines as many as a file may have at most.
- New keys are counted where no token is needed or sent: a token brings one key, and its operator gave it out.
- An address of which too many requests were refused is told so for the rest of its minute, without a look at what it
  asks, unless it shows a good token. Of ten times as many, it is not heard at all: its connections are closed before a
  byte is read, or, behind a proxy, where nobody can be told by the connection, all that it asks is refused.
- An address that asks for much, by lists and searches or by what is refused, is no slower for it while nobody asks for
  less. Otherwise it has one request at a time, and rests several times as long behind each.
- Only so many bodies arrive at once, and only so many files wait to be verified; whoever comes then is told to come
  again. Reads never wait for either.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from math import ceil
from typing import Final, TypeVar

from anyio import CapacityLimiter, to_thread

from remem.protocol import RULES
from remem_server.database.engine import Database, is_postgres
from remem_server.errors import Busy, TooManyKeys, TooManyRequests
from remem_server.settings import Clock, Settings
from remem_server.web.counters import Charge, Counters

BODIES_MOST: Final = 128
BODIES_OF_AN_ADDRESS: Final = 32
BODIES_OF_A_TOKEN: Final = 4
MUCH: Final = 100
UNHEARD_TIMES: Final = 10
QUERY_BYTES: Final = 16_384
QUERY_FIELDS: Final = 32

_MINUTE: Final = 60
_DAY: Final = 86_400
_CALM_SECONDS: Final = 1.0
_RESTS: Final = 4
_BUSY_SECONDS: Final = 2
_SHARING_AT_ONCE: Final = 4
# No address begins so.
_BEARER: Final = "token "

_T = TypeVar("_T")


class Limits:
    """The limits of a commons, counted by this server.

    Args:
        settings: what the operator decided.
        clock: the commons' clock.
        database: where several servers count together, if it is PostgreSQL.
    """

    def __init__(self, settings: Settings, clock: Clock, database: Database) -> None:
        self._settings = settings
        self._counters = Counters(clock, database.engine if is_postgres(database.engine) else None)
        # Of this server alone: whoever is not heard here may be heard elsewhere.
        self._refusals = Counters(clock)
        self._much = Counters(clock)
        self._sharing = CapacityLimiter(_SHARING_AT_ONCE)

    async def read(self, who: str) -> None:
        """Count what an address reads, or a token where its address may read no more.

        Raises:
            TooManyRequests: it read too much.
        """
        await self._count([_minute(who, "requests", self._settings.reads_per_minute)])

    async def publish(self, who: str) -> None:
        """Count a file that an address or a token is about to send.

        Raises:
            TooManyRequests: it sent too much.
        """
        told = self._settings
        await self._count(
            [
                _minute(who, "files", told.publishes_per_minute),
                # How many there are is not known yet, but whether one more is allowed.
                _minute(who, "kilobytes", told.kilobytes_per_minute, 0),
                _minute(who, "lines", told.lines_per_minute, 0),
            ]
        )

    async def came(self, who: str, size: int) -> None:
        """Count the bytes of a body that came, whatever becomes of it."""
        kilobytes = _minute(who, "kilobytes", self._settings.kilobytes_per_minute, ceil(size / 1_000))
        self._counters.count([kilobytes])
        await self._share([kilobytes])

    async def verify(self, who: str, lines: int) -> None:
        """Count the lines of a file that is about to be verified.

        Args:
            who: the address or the token that sent it.
            lines: how many lines the file has.

        Raises:
            TooManyRequests: it sent too many.
        """
        # A file of more is refused before any of them is verified.
        amount = min(lines, RULES.file_records + 1)
        await self._count([_minute(who, "lines", self._settings.lines_per_minute, amount)])

    def take_key(self, address: str) -> None:
        """Count a key that was never seen here and comes without a token; it may wait for the database.

        Raises:
            TooManyKeys: too many came today.
        """
        charges = [
            Charge(f"keys {address}", self._settings.new_keys_per_address, _DAY),
            Charge("keys", self._settings.new_keys_per_day, _DAY, lasts=True),
        ]
        reached = self._counters.count(charges)
        if reached is not None:
            raise TooManyKeys("expected fewer new keys without a token today, got one more", reached.seconds)
        if due := self._counters.due(charges):
            self._counters.share(due)

    def note_refusal(self, address: str) -> bool:
        """Count a request of an address that was refused; tell whether it is not heard from now on."""
        most = self._settings.refusals_per_minute * UNHEARD_TIMES
        return self._refusals.count([Charge(address, most, _MINUTE)]) is None and self.unheard(address) is not None

    def refused(self, address: str) -> float | None:
        """Say for how many seconds an address is refused whatever it asks without a token; None where it is not."""
        return self._refusals.reached(address, self._settings.refusals_per_minute)

    def unheard(self, address: str) -> float | None:
        """Say for how many seconds an address is not heard any more; None where it is."""
        return self._refusals.reached(address, self._settings.refusals_per_minute * UNHEARD_TIMES)

    def note_much(self, address: str) -> None:
        """Count a request that costs more than others: for a list, or one that was refused."""
        self._much.count([Charge(address, MUCH, _MINUTE)])

    def asks_for_much(self, address: str) -> bool:
        """Tell whether an address made many such requests within its minute."""
        return self._much.reached(address, MUCH) is not None

    async def _count(self, charges: list[Charge]) -> None:
        reached = self._counters.count(charges)
        if reached is not None:
            most = f"{reached.charge.most:,} {reached.charge.of}"
            raise TooManyRequests(f"expected at most {most} a minute from here, got more", reached.seconds)
        await self._share(charges)

    async def _share(self, charges: list[Charge]) -> None:
        if due := self._counters.due(charges):
            await to_thread.run_sync(self._counters.share, due, limiter=self._sharing)


def token_name(number: int) -> str:
    """Return what a token is counted as."""
    return f"{_BEARER}{number}"


def _minute(who: str, of: str, most: int, amount: int = 1) -> Charge:
    return Charge(f"{of} {who}", most, _MINUTE, amount, of, lasts=who.startswith(_BEARER))


def check_query(query: bytes) -> bool:
    """Tell whether a query is of a length that is looked into."""
    return len(query) <= QUERY_BYTES and query.count(b"&") < QUERY_FIELDS


class Bodies:
    """How many bodies arrive at once; all of them are held in memory."""

    def __init__(self) -> None:
        self._of: Counter[str] = Counter()

    @contextmanager
    def one(self, who: str, most: int) -> Iterator[None]:
        """Hold a place while a body arrives.

        Args:
            who: the address or the token that sends it.
            most: how many it may send at once.

        Raises:
            TooManyRequests: it sends as many.
            Busy: there is no place.
        """
        if self._of[who] >= most:
            raise TooManyRequests(f"expected at most {most} files on their way from here, got more", _BUSY_SECONDS)
        if self._of.total() >= BODIES_MOST:
            raise Busy(f"expected at most {BODIES_MOST} files on their way here, got more", _BUSY_SECONDS)
        self._of[who] += 1
        try:
            yield
        finally:
            self._of[who] -= 1
            if not self._of[who]:
                del self._of[who]


class Turns:
    """One request at a time of an address that asks for much, with a rest behind each, while others ask for little."""

    def __init__(self) -> None:
        self._little = -_CALM_SECONDS
        # By address, those behind the one whose turn it is.
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}

    def note_little(self) -> None:
        """Note that an address asks that does not ask for much."""
        self._little = time.monotonic()

    async def take(self, address: str) -> Callable[[], None] | None:
        """Wait for the turn of a request of an address that asks for much.

        Returns:
            what to call once it was answered; None where nobody else asks, and no turns are taken.
        """
        if time.monotonic() - self._little > _CALM_SECONDS:
            return None
        waiting = self._waiting.get(address)
        if waiting is None:
            self._waiting[address] = deque()
        else:
            turn = asyncio.get_running_loop().create_future()
            waiting.append(turn)
            try:
                await turn
            except asyncio.CancelledError:
                # It may have been given to who has gone meanwhile.
                if not turn.cancelled():
                    self._give(address)
                raise
        return partial(self._rest, address, time.monotonic())

    def _rest(self, address: str, began: float) -> None:
        rest = _RESTS * (time.monotonic() - began)
        asyncio.get_running_loop().call_later(rest, self._give, address)

    def _give(self, address: str) -> None:
        waiting = self._waiting[address]
        while waiting:
            turn = waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                return
        del self._waiting[address]


class Verifying:
    """The threads that verify files, and the queue in front of them.

    Args:
        at_once: how many there are.
        waiting: how many files may wait for one.
    """

    def __init__(self, at_once: int, waiting: int) -> None:
        self._threads = CapacityLimiter(at_once)
        self._most = at_once + waiting
        self._inside = 0

    @property
    def waiting(self) -> int:
        """How many files wait."""
        return self._threads.statistics().tasks_waiting

    def check(self) -> None:
        """Refuse where there is no room for one more.

        Raises:
            Busy: there is none.
        """
        if self._inside >= self._most:
            raise Busy("expected fewer files to be verified, got one more than may wait", _BUSY_SECONDS)

    async def run(self, work: Callable[[], _T]) -> _T:
        """Do the work in one of the threads, when its turn has come.

        Raises:
            Busy: too many wait already.
        """
        self.check()
        self._inside += 1
        try:
            return await to_thread.run_sync(work, limiter=self._threads)
        finally:
            self._inside -= 1
