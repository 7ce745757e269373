"""The items of a memory: opening, changing and summing a set of a million, and reconciling two that lie on disk.

    python tests/bench/bench_items.py [--items N] [--block N]

The set is measured in a process of its own, on a database that another process filled: its resident
memory is what opening, changing and reconciling take. Changes are in transactions of their own, on a disk that is
waited for; times are of the processor, so that other work on the machine does not count.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import shutil
import sqlite3
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Final

from bench.table import Bound, report
from remem.itemset import BLOCK_ITEMS, ItemSet
from remem.memory import items
from remem.memory.items import Rows
from remem.memory.store import open_store, transaction
from remem.protocol.items import Item
from remem_gossip.reconcile import Reconciler

_START: Final = 1_700_000_000
_CHANGES: Final = 500
_OPENINGS: Final = 10
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


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--items", type=int, default=1_000_000)
    options.add_argument("--block", type=int, default=BLOCK_ITEMS, help="how many items a block may hold")
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        _in_a_process(fill, Path(scratch), chosen.block, chosen.items)
        measured = _in_a_process(measure, Path(scratch), chosen.block, chosen.items)
    show(chosen.block, chosen.items, measured)


def fill(scratch: Path, most: int, count: int) -> Measured:
    """Make the databases: two alike, one with more that is new, and one with more everywhere."""
    random = Random(most)
    with closing(open_store(scratch / "here.db")) as db, transaction(db):
        ItemSet(Rows(db), most=most).fill(some(random, number) for number in range(count))
    for name in ("same", "newest", "scattered"):
        shutil.copy(scratch / "here.db", scratch / f"{name}.db")
    for name, numbers in (
        ("newest", range(count, count + _DIFFERENCES)),
        ("scattered", random.choices(range(count), k=_DIFFERENCES)),
    ):
        with closing(open_store(scratch / f"{name}.db")) as db, transaction(db):
            held = ItemSet(Rows(db), most=most)
            for number in numbers:
                held.add(some(random, number))
    return Measured({}, {}, 0)


def measure(scratch: Path, most: int, count: int) -> Measured:
    """Reconcile, then open, sum and change."""
    with closing(open_store(scratch / "here.db")) as db:
        reconciled = {name: reconcile(db, scratch / f"{name}.db") for name in ("same", "newest", "scattered")}
        held, random = ItemSet(Rows(db), most=most), Random(1)
        stored = held.snapshot()
        seconds = {
            "open": timed(held.snapshot, _OPENINGS),
            "sum of any range": timed(lambda: stored.sum(random.randrange(count // 2), random.randrange(count)), 200),
        }
        seconds |= changes(db, held, count)
        seconds["open when it has changed"] = timed(held.snapshot, _OPENINGS)
    return Measured(seconds, reconciled, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


def changes(db: sqlite3.Connection, held: ItemSet, count: int) -> dict[str, float]:
    """Add and discard, each in a transaction of its own."""
    random = Random(2)
    known = [index * (count // _CHANGES) for index in range(_CHANGES)]
    gone = iter([held.snapshot().item(index) for index in known])
    new = iter(range(count + _DIFFERENCES, count + 10 * _DIFFERENCES))
    return {
        "add at the end": timed(lambda: written(db, lambda: held.add(some(random, next(new)))), _CHANGES),
        "add anywhere": timed(lambda: written(db, lambda: held.add(some(random, random.randrange(count)))), _CHANGES),
        "discard anywhere": timed(lambda: written(db, lambda: held.discard(next(gone))), _CHANGES),
    }


def reconcile(db: sqlite3.Connection, path: Path) -> Trip:
    """Reconcile with another database, both opened anew for each message as a stateless side does."""
    with closing(open_store(path)) as there:
        for warm_up in (True, False):
            started, trips, carried = time.process_time(), 0, 0
            with items.opened(db) as stored:
                here = Reconciler(stored, _FRAME_BYTES)
                message: bytes | None = here.initiate()
                while message is not None:
                    with items.opened(there) as answering:
                        answer = Reconciler(answering, _FRAME_BYTES).answer(message)
                    trips, carried = trips + 1, carried + len(message) + len(answer)
                    message = here.reconcile(answer).message
            if not warm_up:
                break
    return Trip(time.process_time() - started, trips, carried)


def written(db: sqlite3.Connection, change: Callable[[], object]) -> None:
    with transaction(db):
        change()


def timed(thing: Callable[[], object], times: int) -> float:
    """Return the seconds of the processor that a thing takes."""
    started = time.process_time()
    for _ in range(times):
        thing()
    return (time.process_time() - started) / times


def some(random: Random, number: int) -> Item:
    """Make an item of the time that a number of the set has; three have the same."""
    return Item(_START + number // 3, random.randbytes(32))


def show(most: int, count: int, found: Measured) -> None:
    reconciled = found.reconciled
    bounds = [
        Bound("resident memory", found.resident, most=150, unit="MB"),
        Bound("open", 1_000 * found.seconds["open when it has changed"], most=50, unit="ms"),
        *(Bound(name, 1_000 * found.seconds[name], most=1, unit="ms") for name in found.seconds if "where" in name),
        Bound("add at the end", 1_000 * found.seconds["add at the end"], most=1, unit="ms"),
        *(
            Bound(f"reconcile: {name}: {what}", value, most=bound, unit=unit)
            for name, trip in reconciled.items()
            for what, value, bound, unit in (
                ("processor", 1_000 * trip.seconds, 20 if name != "scattered" else None, "ms"),
                ("trips", trip.trips, None, ""),
                ("bytes", trip.bytes, None, "B"),
            )
        ),
    ]
    report(f"{count} items in blocks of {most}; {_DIFFERENCES} differences", found.seconds, bounds)


def _in_a_process(thing: Callable[[Path, int, int], Measured], scratch: Path, most: int, count: int) -> Measured:
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(thing, (scratch, most, count))


if __name__ == "__main__":
    main()
