"""A hundred nodes, a fifth of them hostile, for as many nights as it takes until all honest ones hold one map.

    python tests/bench/bench_nights.py [--seeds N] [--seed N]

Files, signatures and messages are real; the network is calls and the clock is set by hand. The liars are black holes,
the silent, the hollow, those with stale files, forgers, floods of free keys, those with wrong ids, the endless, those
that refuse and those that babble. Each night 30 % of the honest nodes are offline; for a week the nodes are in two
halves; one node is put back to a backup that is a week old; clocks are wrong by hours, and two by days.
`remem_testkit/simulation.py` says what happens in a night. While it runs, no node ever goes back to an older version,
and nothing that was revoked comes back: that is checked every night at every node, and ends the program.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.table import Bound, report
from remem_testkit.simulation import Plan, Simulation

NIGHTS_MOST: Final = 12
"""Within so many nights behind the last news all honest nodes hold one map; a clock that is days late needs some."""
_CAUGHT: Final = ("hollow", "wrong ids", "forged lines", "endless", "garbage")
"""What is caught in a lie sinks. A black hole lies to nobody, a flood delivers, and stale files are settled at once."""


def main() -> None:
    """Let the nights pass, and print what they came to."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--seeds", type=int, default=2, help="how many worlds, each with its pushes and without")
    options.add_argument("--seed", type=int, default=1, help="the first of them")
    chosen = options.parse_args()
    bounds: list[Bound] = []
    for seed in range(chosen.seed, chosen.seed + chosen.seeds):
        for pushes in (True, False):
            simulation = Simulation(Plan(seed=seed, pushes=pushes))
            nights = simulation.run(NIGHTS_MOST)
            name = f"seed {seed}, {'with' if pushes else 'without'} pushes"
            show(name, simulation)
            bounds += bounds_of(name, simulation, nights)
    report("one map everywhere", {}, bounds)


def show(name: str, simulation: Simulation) -> None:
    """Print what moved, and whom the honest nodes turned to."""
    traffic = simulation.traffic
    files = len(next(iter(simulation.members.values())).node.files)
    print(f"{name}: {files} files, {simulation.night} nights")
    print(
        f"  between honest nodes {traffic.moved / 1e6:.0f} MB moved ({traffic.pushed / 1e6:.0f} of them pushed),"
        f" {traffic.needed / 1e6:.0f} MB needed; {traffic.with_liars / 1e6:.0f} MB to and from liars"
    )
    print(
        f"  asked for {traffic.promised:,} files, {traffic.promised - traffic.delivered:,} of which did not come;"
        f" {traffic.fetched_again:,} came again, and {traffic.brought_again:,} of the {traffic.brought:,} brought ones"
    )
    first, last = (sum(simulation.shares[week], Counter()) for week in (slice(0, 7), slice(-7, None)))
    weeks = (f"{kind} {first[kind]}, {last[kind]}" for kind in sorted(first.keys() | last.keys()))
    print("  exchanges in the first week and in the last:", "; ".join(weeks))


def bounds_of(name: str, simulation: Simulation, nights: int | None) -> list[Bound]:
    traffic = simulation.traffic
    first, last = (sum(simulation.shares[week], Counter()) for week in (slice(0, 7), slice(-7, None)))
    before, behind = (sum(week[kind] for kind in _CAUGHT) / week.total() for week in (first, last))
    broken, again = 1 - traffic.delivered / traffic.promised, traffic.fetched_again / traffic.fetched
    took = NIGHTS_MOST + 1 if nights is None else nights
    return [
        Bound(f"{name}: nights behind the last news", took, most=NIGHTS_MOST, unit="n"),
        Bound(f"{name}: moved between honest nodes, to needed", traffic.moved / traffic.needed, most=2.5),
        Bound(f"{name}: honest promises that were broken", 100 * broken, most=0.1, unit="%"),
        Bound(f"{name}: fetched again, of what was fetched", 100 * again, most=20, unit="%"),
        Bound(f"{name}: what caught liars keep of their share", behind / before, most=0.5),
    ]


if __name__ == "__main__":
    main()
