"""A commons that is killed a thousand times while it is written to: what it acknowledged is there, and nothing half.

It kills itself with SIGKILL at every moment of a PUT at which something could stay half done: before the transaction,
after each statement inside it, before, during and after the commit, before, inside and after the answer; and it is
killed at moments of nobody's choice. After each restart everything that is stored is audited. Half of the commons are
open, and half need tokens, which the first file of a key binds.

The argument is how many kills there are on each database, in place of a thousand.
"""

from __future__ import annotations

import random
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from remem_testkit.crashes import Death, Place, live_and_die, points_of
from remem_testkit.load import WRITERS
from remem_testkit.mortal import ANY_MOMENT, AROUND_ANSWER, AROUND_COMMIT, BEFORE, Doom
from remem_testkit.postgres import DATABASES, fresh_database

KILLS = 1_000
# A commons grows with every life, and auditing it takes longer.
LIVES = 25
HEAD = ("kills", "acknowledged", "of keys", "found", "lost", "half", "unheard")


@dataclass
class Sum:
    """What came of the lives that ended at one moment.

    Attributes:
        kills: how many they are.
        acknowledged: how many files they acknowledged.
        keys: how many keys had an acknowledged file, all restarts together.
        found: of how many of these the acknowledged file stood, or a newer one.
        lost: of how many neither did.
        half: how much else was found that should not be.
        unheard: how many files stood that nobody was told of.
    """

    kills: int = 0
    acknowledged: int = 0
    keys: int = 0
    found: int = 0
    lost: int = 0
    half: int = 0
    unheard: int = 0

    def add(self, death: Death) -> None:
        found = death.found
        self.kills += 1
        self.acknowledged += found.acknowledged
        self.keys += found.keys
        self.found += found.found
        self.lost += len(found.lost)
        self.half += death.halves
        self.unheard += found.unheard

    @property
    def cells(self) -> list[int]:
        return [self.kills, self.acknowledged, self.keys, self.found, self.lost, self.half, self.unheard]


@contextmanager
def new_place(database: str, *, open_: bool) -> Iterator[Place]:
    with tempfile.TemporaryDirectory() as folder:
        if database == "sqlite":
            yield Place.make(Path(folder) / "data", open_=open_)
        else:
            with fresh_database() as url:
                yield Place.make(Path(folder) / "data", open_=open_, database_url=url)


def kill(database: str, kills: int) -> Mapping[str, Sum]:
    """Kill commons over a database, and return what came of it by the moment of the death."""
    sums: defaultdict[str, Sum] = defaultdict(Sum)
    chance = random.Random(database)
    for done in range(0, kills, LIVES):
        with new_place(database, open_=done // LIVES % 2 == 0) as place:
            # The commit and the answer are where what is acknowledged and what is stored can part.
            points = [*points_of(place), *AROUND_COMMIT, *AROUND_ANSWER, ANY_MOMENT, ANY_MOMENT]
            for point in chance.sample(points, k=min(LIVES, kills - done)):
                death = live_and_die(place, Doom(point, skip=chance.randrange(12)))
                sums[point if death.by_itself else ANY_MOMENT].add(death)
                if not death.is_clean:
                    print(f"{database}, {point}: {death}", file=sys.stderr)
    return sums


def order_of(point: str) -> tuple[int, str]:
    """Sort the moments of a PUT as they come."""
    last = [*AROUND_COMMIT, *AROUND_ANSWER, ANY_MOMENT]
    return (-1 if point == BEFORE else last.index(point) + 1 if point in last else 0, point)


def report(title: str, sums: Mapping[str, Sum]) -> bool:
    """Print what came of it, and tell whether nothing was lost and nothing half."""
    width = max(map(len, sums))
    print(title)
    print(f"  {'':<{width}}" + "".join(f"{name:>14}" for name in HEAD))
    whole = Sum(*(sum(column) for column in zip(*(one.cells for one in sums.values()), strict=True)))
    rows = [*((point, sums[point]) for point in sorted(sums, key=order_of)), ("all", whole)]
    for point, one in rows:
        print(f"  {point:<{width}}" + "".join(f"{cell:>14,}" for cell in one.cells))
    kept = whole.lost == whole.half == 0 and whole.found == whole.keys
    print(f"  lost and half: at most 0{'  kept' if kept else '  NOT KEPT'}")
    return kept


def main() -> None:
    kills = int(sys.argv[1]) if len(sys.argv) > 1 else KILLS
    kept = True
    for database in DATABASES:
        started = time.perf_counter()
        sums = kill(database, kills)
        minutes = (time.perf_counter() - started) / 60
        kept &= report(f"{database}: {kills:,} kills under {WRITERS} writers, {minutes:.1f} minutes", sums)
    if not kept:
        sys.exit(1)


if __name__ == "__main__":
    main()
