"""Counters of what was done within a span of time, such as the requests of an address within a minute.

- The span of a counter begins with what it counts first. Once it has reached its most, nothing more is allowed until
  the span is over; what is refused is not counted, so whoever waits is let in again.
- What is allowed may be many at once, such as the lines of a file: a counter passes its most by one of these at most.
- A server counts in its own memory. Where a commons has several, over one PostgreSQL, each adds what it counted to the
  table `counters` whenever that is a hundredth of the most, and goes on from what it finds there. So together they
  let pass a hundredth too much for each server at most, and few requests wait for the database.
- While the database does not answer, a server goes by what it counted itself.
- So many counters are kept and no more: beyond them, those that are over first are forgotten. So one of a day lasts as
  long as there are others of a minute, however many addresses come. What is counted of the whole commons, or of a
  token, which its operator made, is never forgotten.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from operator import itemgetter
from typing import Final, NamedTuple

from sqlalchemy import Engine, bindparam, case, delete, select, text
from sqlalchemy.dialects.postgresql import insert

from remem_server.database.engine import DATABASE_ERRORS, is_unavailable, writing
from remem_server.database.tables import counters
from remem_server.settings import Clock

COUNTERS_MOST: Final = 50_000

_SHARED_PARTS: Final = 100
_SWEEP_SECONDS: Final = 60
_SWEPT_AT_ONCE: Final = 10_000

_NEW: Final = insert(counters).values(name=bindparam("of"), count=bindparam("more"), expires=bindparam("until"))
_IS_OVER: Final = counters.c.expires <= bindparam("now")
_ADD: Final = _NEW.on_conflict_do_update(
    index_elements=[counters.c.name],
    set_={
        "count": case((_IS_OVER, _NEW.excluded.count), else_=counters.c.count + _NEW.excluded.count),
        "expires": case((_IS_OVER, _NEW.excluded.expires), else_=counters.c.expires),
    },
).returning(counters.c.count, counters.c.expires)
# Another server may be at one of these rows just now, and both would wait for each other.
_SWEEP: Final = delete(counters).where(
    counters.c.name.in_(select(counters.c.name).where(_IS_OVER).limit(_SWEPT_AT_ONCE).with_for_update(skip_locked=True))
)
# What is lost in a crash of the database is a minute's count.
_NO_WAIT: Final = text("SET LOCAL synchronous_commit TO off")


class Charge(NamedTuple):
    """What is to be counted.

    Attributes:
        name: of the counter.
        most: how many are allowed within its span.
        seconds: how long its span is.
        amount: how many there are; of none, it is only asked whether more would be allowed.
        of: what they are, for whoever is refused.
        lasts: whether the counter is kept until its span is over, however many there are.
    """

    name: str
    most: int
    seconds: int
    amount: int = 1
    of: str = ""
    lasts: bool = False


class Reached(NamedTuple):
    """A counter that has reached its most, and for how many seconds it stays there."""

    seconds: float
    charge: Charge


@dataclass(slots=True)
class _Counter:
    """What is known of a counter: `fresh` of its `count` no other server knows of yet."""

    expires: float
    lasts: bool
    count: int = 0
    fresh: int = 0


class Counters:
    """The counters of a server; safe to use from several threads.

    Args:
        clock: where the time comes from.
        engine: the PostgreSQL database that other servers count in too; None where this one is alone.
    """

    def __init__(self, clock: Clock, engine: Engine | None = None) -> None:
        self._clock = clock
        self._engine = engine
        self._counters: dict[str, _Counter] = {}
        self._lock = threading.Lock()
        self._swept = 0

    def count(self, charges: Sequence[Charge]) -> Reached | None:
        """Count all of it, or nothing where one counter has reached its most.

        Returns:
            None if it was counted, else the counter that stays at its most for the longest.
        """
        now = self._clock().timestamp()
        with self._lock:
            found = [self._counter(charge, now) for charge in charges]
            reached = [
                Reached(one.expires - now, charge)
                for one, charge in zip(found, charges, strict=True)
                if one.count >= charge.most
            ]
            if reached:
                return max(reached, key=itemgetter(0))
            for one, charge in zip(found, charges, strict=True):
                one.count += charge.amount
                one.fresh += charge.amount
                if charge.name not in self._counters:
                    self._keep(charge.name, one, now)
        return None

    def reached(self, name: str, most: int) -> float | None:
        """Say for how many seconds a counter stays at its most; None where it has not reached it."""
        # Most names were never counted, and asking for one is common.
        found = self._counters.get(name)
        if found is None or found.count < most:
            return None
        left = found.expires - self._clock().timestamp()
        return left if left > 0 else None

    def due(self, charges: Sequence[Charge]) -> list[str]:
        """Name the counters of which the other servers should hear."""
        if self._engine is None:
            return []
        with self._lock:
            return [
                charge.name
                for charge in charges
                if (one := self._counters.get(charge.name)) and one.fresh >= max(1, charge.most // _SHARED_PARTS)
            ]

    def share(self, names: Sequence[str]) -> None:
        """Add what was counted here to what all servers count, and go on from that; this waits for the database."""
        assert self._engine is not None
        now = int(self._clock().timestamp())
        taken = self._take(names, now)
        try:
            with writing(self._engine) as connection:
                connection.execute(_NO_WAIT)
                # In one order, so that no two servers wait for each other.
                rows = [
                    {"of": name, "more": more, "until": ceil(until), "now": now}
                    for name, (more, until) in sorted(taken.items())
                ]
                found = {row["of"]: connection.execute(_ADD, row).one() for row in rows}
            self._learn({str(name): (row[0], row[1]) for name, row in found.items()})
            self._sweep(self._engine, now)
        except DATABASE_ERRORS as error:
            self._give_back(taken)
            if not is_unavailable(error):
                raise

    def _counter(self, charge: Charge, now: float) -> _Counter:
        found = self._counters.get(charge.name)
        if found is not None and found.expires > now:
            return found
        self._counters.pop(charge.name, None)
        return _Counter(now + charge.seconds, charge.lasts)

    def _keep(self, name: str, counter: _Counter, now: float) -> None:
        if len(self._counters) >= COUNTERS_MOST:
            left = [one for one in self._counters.items() if one[1].expires > now]
            left.sort(key=lambda one: (one[1].lasts, one[1].expires), reverse=True)
            room = max(COUNTERS_MOST * 3 // 4, sum(one[1].lasts for one in left))
            self._counters = dict(left[:room])
        self._counters[name] = counter

    def _take(self, names: Sequence[str], now: float) -> dict[str, tuple[int, float]]:
        taken: dict[str, tuple[int, float]] = {}
        with self._lock:
            for name in names:
                one = self._counters.get(name)
                if one is not None and one.fresh and one.expires > now:
                    taken[name] = (one.fresh, one.expires)
                    one.fresh = 0
        return taken

    def _learn(self, found: dict[str, tuple[int, int]]) -> None:
        with self._lock:
            for name, (count, expires) in found.items():
                if (one := self._counters.get(name)) is not None:
                    one.count, one.expires = count + one.fresh, expires

    def _give_back(self, taken: dict[str, tuple[int, float]]) -> None:
        with self._lock:
            for name, (more, _until) in taken.items():
                if (one := self._counters.get(name)) is not None:
                    one.fresh += more

    def _sweep(self, engine: Engine, now: int) -> None:
        """Take out of the table what is over, from time to time."""
        if now - self._swept >= _SWEEP_SECONDS:
            self._swept = now
            with writing(engine) as connection:
                connection.execute(_SWEEP, {"now": now})
