"""What other packages add to commands, by entry points: nothing of theirs is known here.

- `remem.commands`: adds commands.
- `remem.sleep`: a pass that `remem sleep` runs behind its own.
- `remem.shared`: called when this memory's own file went out.
- `remem.checks`: looks at more than `remem doctor` does by itself.

What was added keeps no command from its own work: where it fails, that is a warning.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from importlib.metadata import entry_points
from random import Random
from typing import Any, Protocol

from remem.cli.output import plain, progress, warn
from remem.errors import RememError
from remem.memory.home import Home
from remem.progress import Progress
from remem.sharing.escape import printable
from remem.sharing.health import Finding
from remem.sharing.reports import ShareReport

Showing = Callable[[str], AbstractContextManager[Progress | None]]


@dataclass(frozen=True, slots=True)
class Told:
    """What something that was added did.

    Attributes:
        report: for `--json`.
        lines: the same in words.
        warnings: what the owner should look into.
    """

    report: object
    lines: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


class AfterSleep(Protocol):
    """A pass behind those of a night."""

    def __call__(
        self, home: Home, db: sqlite3.Connection, *, now: datetime, random: Random, showing: Showing
    ) -> Told | None:
        """Run the pass; None where there is nothing to say."""
        ...


class AfterShare(Protocol):
    """What follows a publication."""

    def __call__(
        self, home: Home, db: sqlite3.Connection, report: ShareReport, *, now: datetime, random: Random
    ) -> Told | None:
        """Follow a publication that a target took, or that has none; None where there is nothing to say."""
        ...


class Check(Protocol):
    """A check of `remem doctor`."""

    def __call__(self, home: Home, db: sqlite3.Connection, *, now: datetime) -> Sequence[Finding]:
        """Look, change nothing, and say what was found."""
        ...


def each(group: str) -> Iterator[tuple[str, Any]]:
    """Load what was added to a group, in the order of the names."""
    for entry in sorted(entry_points(group=group), key=lambda found: found.name):
        yield entry.name, entry.load()


def after_sleep(home: Home, db: sqlite3.Connection, now: datetime, random: Random) -> Iterator[tuple[str, Told]]:
    """Run the passes behind a night."""
    yield from _told("remem.sleep", lambda found: found(home, db, now=now, random=random, showing=progress))


def after_share(
    home: Home, db: sqlite3.Connection, report: ShareReport, now: datetime, random: Random
) -> dict[str, Told]:
    """Tell those who want to know that the own file went out, or has no target; nobody where no target took it."""
    if report.rehearsed or (report.results and not any(result.ok for result in report.results)):
        return {}
    return dict(_told("remem.shared", lambda found: found(home, db, report, now=now, random=random)))


def tell(told: Told) -> None:
    """Print what something that was added did, in words."""
    for line in told.lines:
        print(line)
    tell_warnings(told)


def tell_warnings(told: Told) -> None:
    """Print what the owner should look into."""
    for text in told.warnings:
        warn(printable(text))


def document(report: object, added: Mapping[str, Told]) -> object:
    """Put what was added beside a command's own report."""
    whole = plain(report)
    assert isinstance(whole, dict)
    return {**whole, "added": {name: plain(told.report) for name, told in added.items()}}


def _told(group: str, call: Callable[[Any], Told | None]) -> Iterator[tuple[str, Told]]:
    for name, found in each(group):
        try:
            told = call(found)
        except (RememError, OSError, sqlite3.Error) as error:
            hint = f" ({error.hint})" if isinstance(error, RememError) and error.hint else ""
            told = Told(None, warnings=(f"{name}: {error}{hint}",))
        if told is not None:
            yield name, told
