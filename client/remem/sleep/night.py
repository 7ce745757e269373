"""One night: the inbox is read, events become episodes, episodes become lessons.

Each pass is one transaction and goes on from what is stored, so a night that was cut short is finished by the next,
and a night without news changes nothing. `now` is the caller's; nothing here reads a clock.
"""

from __future__ import annotations

import contextlib
import getpass
import socket
import sqlite3
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Final, TypeAlias

from remem.ingest.sentence import read_event
from remem.memory.episodes import add_episode
from remem.memory.events import Intake, Unread, mark_read, unread
from remem.memory.home import Home
from remem.memory.intake import take_in_inbox
from remem.memory.store import transaction
from remem.sleep.lessons_pass import LessonsReport, lessons_pass

Progress: TypeAlias = Callable[[str, int, int], None]
"""Told the name of a pass, how much of it is done, and how much there is."""

_STEP: Final = 100
# Names that every machine has.
_ANYBODY: Final = frozenset(("", "root", "user", "localhost"))


@dataclass(slots=True)
class SleepReport:
    """What a night did.

    Attributes:
        intake: what became of the inbox.
        events: how many occurrences were read.
        episodes: how many of them are, or repeat, an episode; the others stay local.
        lessons: what became of lessons.
    """

    intake: Intake = field(default_factory=Intake)
    events: int = 0
    episodes: int = 0
    lessons: LessonsReport = field(default_factory=LessonsReport)


def sleep(home: Home, db: sqlite3.Connection, now: datetime, progress: Progress | None = None) -> SleepReport:
    """Run a night.

    Args:
        home: the memory.
        db: its open database.
        now: the time of the night.
        progress: told how far it is.
    """
    tell = progress or _silent
    report = SleepReport(intake=take_in_inbox(home, db, now))
    with transaction(db):
        report.events, report.episodes = _episodes_pass(db, tell)
    with transaction(db):
        tell("lessons", 0, 1)
        report.lessons = lessons_pass(db, now)
        tell("lessons", 1, 1)
    return report


def machine_names() -> frozenset[str]:
    """Return what this machine and its user are called, which no sentence may hold."""
    found = {socket.gethostname(), Path.home().name}
    # A user without an entry has no name to hide.
    with contextlib.suppress(KeyError, OSError):
        found.add(getpass.getuser())
    return frozenset(found - _ANYBODY)


def _episodes_pass(db: sqlite3.Connection, tell: Progress) -> tuple[int, int]:
    hidden = machine_names()
    found: list[Unread] = list(unread(db))
    made = 0
    for number, source in enumerate(found):
        if number % _STEP == 0:
            tell("episodes", number, len(found))
        made += _make(db, source, hidden)
    mark_read(db, [source.number for source in found])
    tell("episodes", len(found), len(found))
    return len(found), made


def _make(db: sqlite3.Connection, source: Unread, hidden: Iterable[str]) -> bool:
    reading = read_event(source.event, hidden)
    if reading is None:
        return False
    add_episode(db, reading, source)
    return True


def _silent(name: str, done: int, total: int) -> None:
    """Tell nobody."""
