"""The number of the next seal, and the last seal, behind which there is none (PROTOCOL.md, section 10)."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import NamedTuple

from remem.errors import Refused
from remem.memory.records import is_retired
from remem.protocol import RULES
from remem.protocol.times import unix_seconds


class KeyRetired(Refused):
    """The memory's key has spoken its last seal."""

    code = "key_retired"

    def __init__(self) -> None:
        super().__init__(
            "expected a key that may still speak, got one that withdrew for good",
            "a new memory has a new key: name another folder with REMEM_HOME and run `remem init`",
        )


def check_not_retired(db: sqlite3.Connection) -> None:
    """Refuse to say anything with a key that withdrew for good.

    Raises:
        KeyRetired: it did.
    """
    if is_retired(db):
        raise KeyRetired


class NextSeal(NamedTuple):
    """A seal's number, and the time that it carries."""

    number: int
    at: datetime


def is_near(number: int, now: datetime) -> bool:
    """Tell whether a seal is not so far ahead that the next one leaves it aside."""
    return number < unix_seconds(now) + RULES.seal_ahead_of_writer


def next_seal(now: datetime, held: Iterable[int]) -> NextSeal:
    """Choose the number of the next seal: above every own one, and at least the seconds of now.

    Numbers two days ahead and more are left aside, for a clock that was once far ahead must not burn them all. A
    seal may be a day above its time and a time a day ahead of its receivers, so where the number is further ahead
    than a day, the time goes ahead with it.

    Args:
        now: the writer's clock, with a zone.
        held: the numbers of the own seals that this memory or a target holds.
    """
    seconds = unix_seconds(now)
    near = (one + 1 for one in held if is_near(one, now))
    number = max((seconds, *near))
    ahead = max(0, number - RULES.seal_ahead_of_its_time - seconds)
    return NextSeal(number, now.replace(microsecond=0) + timedelta(seconds=ahead))
