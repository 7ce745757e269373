"""The items of a node: opening, changing and summing a set of a million, and reconciling two that lie on disk.

    python tests/bench/bench_items.py [--of memory|sqlite|postgres] [--items N] [--block N]

The set is that of a memory, of a commons over SQLite or of one over PostgreSQL; all of them if not said. It is measured
in a process of its own, on a database that another process filled: its resident memory is what opening, changing
and reconciling take. Changes are in transactions of their own, on a disk that is waited for; times are of the
processor, so that other work on the machine does not count. Those of PostgreSQL's processes are counted with them.
"""

from __future__ import annotations

import argparse
import gc
import multiprocessing
import resource
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random
from typing import Final

from sqlalchemy import Engine

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.places import Place
from bench.table import Bound, report
from remem.itemset import BLOCK_ITEMS, ItemSet, Stored
from remem.memory import items as memory_items
from remem.memory.items import Rows
from remem.memory.store import open_store, transaction
from remem.protocol.items import Item
from remem_gossip.reconcile import Reconciler
from remem_server.database import changes
from remem_server.database.engine import writing
from remem_server.files import items as commons_items
from remem_server.files.items import Blocks
from remem_server.opening.opened import prepared_database
from remem_testkit.postgres import DATABASES, start_postgres
from remem_testkit.server import make_settings

MEMORY: Final = "memory"
HERE: Final = "here"
OTHERS: Final = ("same", "newest", "scattered")
NEWEST_THERE: Final = "newest, lacked there"

_START: Final = 1_700_000_000
_CHANGES: Final = 500
_OPENINGS: Final = 10
_EXCHANGES: Final = 5
_DIFFERENCES: Final = 1_000
_FRAME_BYTES: Final = 262_144


@dataclass(frozen=True)
class Trip:
    """What one reconciliation took: seconds of the processor on both sides, messages there and back, and bytes."""

    seconds: float
    trips: int
    bytes: int


@dataclass(frozen=True)
class Measured:
    """What was measured of one size of blocks."""

    seconds: dict[str, float]
    reconciled: dict[str, Trip]
    resident: float


@dataclass(frozen=True)
class Where:
    """Where the sets lie.

    Attributes:
        scratch: the folder of all of them.
        kind: whose they are.
        server: the URL of PostgreSQL, if they lie there.
        most: how many items a block may hold.
    """

    scratch: Path
    kind: str
    server: str | None
    most: int

    def opened(self, name: str) -> AbstractContextManager[Kept]:
        """Open one of the sets."""
        if self.kind == MEMORY:
            return _of_memory(self.scratch / f"{name}.db", self.most)
        return _of_commons(self.place(name), self.most)

    def place(self, name: str) -> Place:
        return Place(self.scratch / name, self.server)

    def make(self) -> None:
        """Make the tables of the first."""
        if self.kind != MEMORY:
            here = self.place(HERE)
            here.make()
            with prepared_database(make_settings(here.data, **here.options)):
                pass

    def copy(self, name: str) -> None:
        """Make another that is as the first is."""
        if self.kind == MEMORY:
            shutil.copy(self.scratch / f"{HERE}.db", self.scratch / f"{name}.db")
        else:
            self.place(HERE).copied(self.scratch / name)


@dataclass(frozen=True)
class Kept:
    """A set that lies somewhere.

    Attributes:
        changing: opens a transaction that changes it, as whatever takes a file in does.
        seen: opens it as it is at one moment.
    """

    changing: Callable[[], AbstractContextManager[ItemSet]]
    seen: Callable[[], AbstractContextManager[Stored]]


@contextmanager
def _of_memory(path: Path, most: int) -> Iterator[Kept]:
    with closing(open_store(path)) as db:

        @contextmanager
        def changing() -> Iterator[ItemSet]:
            with transaction(db):
                yield ItemSet(Rows(db), most=most)

        yield Kept(changing, partial(memory_items.opened, db))


@contextmanager
def _of_commons(place: Place, most: int) -> Iterator[Kept]:
    with place.opened() as database:
        yield Kept(partial(_changing, database.engine, most), partial(commons_items.opened, database.reads))


@contextmanager
def _changing(engine: Engine, most: int) -> Iterator[ItemSet]:
    with writing(engine) as connection:
        changes.lock(connection)
        yield ItemSet(Blocks(connection), most=most)


class Meter:
    """Counts the seconds of the processor of this process, and those of PostgreSQL's where the sets lie there."""

    def __init__(self, where: Where) -> None:
        self._mother = ""
        if where.server is not None:
            self._mother = (where.scratch / "postgres" / "postmaster.pid").read_text().split()[0]
        # Also of those that have ended since.
        self._others: dict[str, float] = {}

    def read(self) -> float:
        """Say how many they took so far."""
        if self._mother:
            for process in Path(f"/proc/{self._mother}/task/{self._mother}/children").read_text().split():
                # It may have just ended.
                with suppress(FileNotFoundError, ProcessLookupError):
                    self._others[process] = int(Path(f"/proc/{process}/schedstat").read_text().split()[0]) / 1e9
        return time.process_time() + sum(self._others.values())

    def timed(self, thing: Callable[[], object], times: int) -> float:
        """Return the seconds that a thing takes."""
        started = self.read()
        for _ in range(times):
            thing()
        return (self.read() - started) / times


# --- what is measured ---


def fill(where: Where, count: int) -> Measured:
    """Make the databases: two alike, one with more that is new, and one with more everywhere."""
    random = Random(where.most)
    where.make()
    with where.opened(HERE) as kept, kept.changing() as held:
        held.fill(some(random, number) for number in range(count))
    more = {
        "same": [],
        "newest": range(count, count + _DIFFERENCES),
        "scattered": random.choices(range(count), k=1_000),
    }
    for name, numbers in more.items():
        where.copy(name)
        with where.opened(name) as kept, kept.changing() as held:
            for number in numbers:
                held.add(some(random, number))
    return Measured({}, {}, 0)


def measure(where: Where, count: int) -> Measured:
    """Reconcile, then open, sum and change."""
    # What was made to get here is looked at no more, as in a server.
    gc.collect()
    gc.freeze()
    random, meter = Random(1), Meter(where)
    with where.opened(HERE) as kept:
        reconciled = {name: reconcile(where, meter, kept, name) for name in OTHERS}
        reconciled[NEWEST_THERE] = reconcile(where, meter, kept, "newest", is_asked=True)
        seconds = {"open": meter.timed(lambda: look(kept), _OPENINGS)}
        with kept.seen() as stored:
            seconds["sum of any range"] = meter.timed(
                lambda: stored.sum(random.randrange(count // 2), random.randrange(count)), 200
            )
            known = [stored.item(index * (count // _CHANGES)) for index in range(_CHANGES)]
        gone = iter(known)
        new = iter(range(count + _DIFFERENCES, count + 10 * _DIFFERENCES))
        changed: dict[str, Callable[[ItemSet], object]] = {
            "add at the end": lambda held: held.add(some(random, next(new))),
            "add anywhere": lambda held: held.add(some(random, random.randrange(count))),
            "discard anywhere": lambda held: held.discard(next(gone)),
        }
        for name, change in changed.items():
            seconds[name] = meter.timed(partial(write, kept, change), _CHANGES)
        seconds["open when it has changed"] = meter.timed(lambda: look(kept), _OPENINGS)
    return Measured(seconds, reconciled, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


def look(kept: Kept) -> None:
    with kept.seen():
        pass


def write(kept: Kept, change: Callable[[ItemSet], object]) -> None:
    with kept.changing() as held:
        change(held)


def reconcile(where: Where, meter: Meter, kept: Kept, name: str, *, is_asked: bool = False) -> Trip:
    """Ask another set, or be asked by it; both are opened anew for each message, as in an exchange. Once to warm up."""
    with where.opened(name) as other:
        one, two = (other, kept) if is_asked else (kept, other)
        trips, carried = meet(one, two)
        return Trip(meter.timed(lambda: meet(one, two), _EXCHANGES), trips, carried)


def meet(kept: Kept, other: Kept) -> tuple[int, int]:
    """Let one set ask another until it knows what differs; return the messages there and back, and their bytes."""
    trips = carried = 0
    with kept.seen() as stored:
        here = Reconciler(stored, _FRAME_BYTES)
        message: bytes | None = here.initiate()
    while message is not None:
        with other.seen() as answering:
            answer = Reconciler(answering, _FRAME_BYTES).answer(message)
        trips, carried = trips + 1, carried + len(message) + len(answer)
        with kept.seen() as stored:
            message = Reconciler(stored, _FRAME_BYTES).reconcile(answer).message
    return trips, carried


def some(random: Random, number: int) -> Item:
    """Make an item of the time that a number of the set has; three have the same."""
    return Item(_START + number // 3, random.randbytes(32))


# --- the figures ---


def show(where: Where, count: int, found: Measured) -> None:
    seconds = found.seconds
    bounds = [
        Bound("resident memory", found.resident, most=150, unit="MB"),
        Bound("open", 1_000 * seconds["open when it has changed"], most=50, unit="ms"),
        *(Bound(name, 1_000 * seconds[name], most=1, unit="ms") for name in seconds if "where" in name),
        Bound("add at the end", 1_000 * seconds["add at the end"], most=1, unit="ms"),
    ]
    # What the asking side lacks at the end may take a trip more, by where the last part was cut.
    limits = {"same": (20, 1, 400), "newest": (20, 4, 40_000), NEWEST_THERE: (20, 3, 40_000)}
    for name, trip in found.reconciled.items():
        values = (1_000 * trip.seconds, trip.trips, trip.bytes)
        named = zip(
            ("processor", "trips", "bytes"), values, limits.get(name, (None,) * 3), ("ms", "", "B"), strict=True
        )
        bounds += [
            Bound(f"reconcile: {name}: {what}", value, most=most, unit=unit) for what, value, most, unit in named
        ]
    report(f"{where.kind}: {count} items in blocks of {where.most}; {_DIFFERENCES} differences", seconds, bounds)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    kinds = (MEMORY, *DATABASES)
    options.add_argument("--of", choices=kinds, action="append", help="whose set; all if not given")
    options.add_argument("--items", type=int, default=1_000_000)
    options.add_argument("--block", type=int, default=BLOCK_ITEMS, help="how many items a block may hold")
    chosen = options.parse_args()
    failed = False
    for kind in chosen.of or kinds:
        with ExitStack() as stack:
            scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True)))
            server = start_postgres(scratch / "postgres", durable=True) if kind == "postgres" else None
            where = Where(scratch, kind, server, chosen.block)
            _in_a_process(fill, where, chosen.items)
            try:
                show(where, chosen.items, _in_a_process(measure, where, chosen.items))
            except SystemExit:
                failed = True
    sys.exit(failed)


def _in_a_process(thing: Callable[[Where, int], Measured], where: Where, count: int) -> Measured:
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(thing, (where, count))


if __name__ == "__main__":
    main()
