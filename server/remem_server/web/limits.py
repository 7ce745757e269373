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
- An address asks for much by lists and searches, by files without a token, and by what is refused: then it takes turns
  (`turns.py`). Whoever shows a good token is not kept waiting by what others behind the same address ask for.
- Only so many bodies arrive at once, and only so many files wait to be verified; whoever comes then is told to come
  again. Reads never wait for either.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import ceil
from typing import Final, TypeVar

from anyio import CapacityLimiter, to_thread

from remem.protocol import RULES
from remem_server.database.engine import Database, is_postgres
from remem_server.errors import Busy, TooManyKeys, TooManyRequests
from remem_server.settings import Clock, Settings
from remem_server.web.counters import Charge, Counters

BODIES_MOST: Final = 128
OFFERS_MOST: Final = 8
BODIES_OF_AN_ADDRESS: Final = 32
BODIES_OF_A_TOKEN: Final = 4
MUCH: Final = 100
# A file is verified and written to the disk.
PUBLISH_MUCH: Final = 5
UNHEARD_TIMES: Final = 10
QUERY_BYTES: Final = 16_384
QUERY_FIELDS: Final = 32

_MINUTE: Final = 60
_DAY: Final = 86_400
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

    def note_much(self, who: str, amount: int = 1) -> None:
        """Count a request that costs more than others: for a list, a file without a token, or one that was refused.

        Args:
            who: the address or the token that made it.
            amount: how many others it costs as much as.
        """
        self._much.count([Charge(who, MUCH, _MINUTE, amount)])

    def asks_for_much(self, who: str) -> bool:
        """Tell whether an address or a token made many such requests within its minute."""
        return self._much.reached(who, MUCH) is not None

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
    """How many bodies arrive at once; all of them are held in memory.

    Args:
        most: how many; as many as of files if not given.
    """

    def __init__(self, most: int | None = None) -> None:
        self._most = BODIES_MOST if most is None else most
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
        if self._of.total() >= self._most:
            raise Busy(f"expected at most {self._most} files on their way here, got more", _BUSY_SECONDS)
        self._of[who] += 1
        try:
            yield
        finally:
            self._of[who] -= 1
            if not self._of[who]:
                del self._of[who]


class Verifying:
    """The threads that verify files, and the queue in front of them.

    Args:
        threads: how many there are.
        queue: how many files may wait for one.
    """

    def __init__(self, threads: int, queue: int) -> None:
        self._threads = CapacityLimiter(threads)
        self._most = threads + queue
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
