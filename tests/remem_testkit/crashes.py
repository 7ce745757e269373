"""Lives of a commons that end by SIGKILL while it is written to, and what is found of it afterwards."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Final

from sqlalchemy import select

from remem_server.database import tables
from remem_server.database.engine import writing
from remem_server.files import tokens
from remem_server.opening.context import Commons
from remem_server.upkeep.audit import audit
from remem_testkit.files import NOW
from remem_testkit.load import Found, Ledger, load
from remem_testkit.mortal import ANY_MOMENT, Doom, Mortal, mortal
from remem_testkit.server import HandClock, make_settings, prepared

_CLOCK: Final = HandClock(NOW + timedelta(days=30))
# So many answers it gives at most; by then it has come by every moment of a PUT that comes at all often.
_LONGEST_LIFE: Final = 200
_NO_DOOM: Final = Doom()
_TOKENS: Final = 300
# Far above what the writers reach: these are tests of what is stored, not of what is refused.
NO_LIMITS: Final = {
    "reads_per_minute": 10**9,
    "publishes_per_minute": 10**9,
    "kilobytes_per_minute": 10**9,
    "lines_per_minute": 10**9,
    "new_keys_per_day": 10**9,
    "new_keys_per_address": 10**9,
    "refusals_per_minute": 10**9,
}


@dataclass
class Place:
    """A commons that dies and is started again.

    Attributes:
        data: its folder.
        options: its settings.
        ledger: what its writers were told.
    """

    data: Path
    options: dict[str, object]
    ledger: Ledger = field(default_factory=Ledger)

    @classmethod
    def make(cls, data: Path, *, open_: bool, **options: object) -> Place:
        """Make a commons, and as many tokens as its writers need."""
        made = cls(data, {**NO_LIMITS, **options, "open": open_})
        with made.opened() as commons, writing(commons.engine) as connection:
            if not open_:
                made.ledger = Ledger([tokens.create(connection, _CLOCK())[0] for _ in range(_TOKENS)])
        return made

    @contextmanager
    def opened(self) -> Iterator[Commons]:
        """Open it as a start does, with nobody served."""
        with prepared(self.data, _CLOCK, **self.options) as commons:
            yield commons

    @contextmanager
    def served(self, doom: Doom = _NO_DOOM) -> Iterator[Mortal]:
        """Serve it in a process of its own."""
        with mortal(make_settings(self.data, **self.options), doom, _CLOCK) as served:
            yield served

    def examined(self) -> tuple[Found, list[str]]:
        """Say what is found of what its writers were told, and whatever else is wrong, after a start."""
        with self.opened() as commons:
            wrong = [str(finding) for finding in audit(commons.engine, _CLOCK(), node=commons.operators[0])]
            with commons.engine.connect() as connection:
                stands = {row.key: row.data for row in connection.execute(select(tables.contents))}
        return self.ledger.settle(stands), wrong


@dataclass
class Death:
    """How a life ended, and what was left of it.

    Attributes:
        by_itself: whether it came by the moment that it was to die at; it was killed at another if not.
        found: what was found of what it acknowledged.
        wrong: what else is not as it should be.
    """

    by_itself: bool
    found: Found
    wrong: list[str]

    @property
    def halves(self) -> int:
        """How much was found that nobody had sent like that."""
        return len(self.found.never_sent) + len(self.wrong)

    @property
    def is_clean(self) -> bool:
        return not self.found.lost and not self.halves


def live_and_die(place: Place, doom: Doom) -> Death:
    """Serve a commons to writers until it dies, and look at what it left after a restart."""
    with place.served(doom) as served, load(served.url, place.ledger) as writers:
        if doom.point == ANY_MOMENT:
            writers.wait_for(doom.skip)
            time.sleep(random.random() / 50)
            served.kill()
        by_itself = served.is_dead_by(lambda: writers.answers > _LONGEST_LIFE)
        served.kill()
    found, wrong = place.examined()
    wrong += [f"an answer of {status}, {code}" for status, code in writers.statuses if status not in (200, 201)]
    return Death(by_itself, found, wrong)


def points_of(place: Place, answers: int = 60) -> list[str]:
    """Serve a commons to writers for a while, and return the moments of a PUT that it came by."""
    with place.served() as served:
        with load(served.url, place.ledger) as writers:
            writers.wait_for(answers)
            served.kill()
        return served.points
