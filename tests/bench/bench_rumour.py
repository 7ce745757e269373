"""How many nights pass until a new file is everywhere, among up to a million nodes.

    python tests/bench/bench_rumour.py [--nodes N …] [--seeds N] [--plot FILE.png]

Nodes are only bits here: whether one holds the file. In a night, 30 % of the nodes are offline, and a fifth of all are
black holes, which answer, take everything and pass on nothing. Each honest node that is online has k exchanges, which
move the file either way, with peers at random; one that is offline is made up for by another. With the push, the file
is first handed on as `remem_gossip.relay` does: whoever takes it from a push hands it to k others, once. A node that is
offline on that day hears of it in an exchange.

No protocol is faster than the floor: the nights until so many nodes have been online once. `bench_nights.py` shows the
same with real files among fewer nodes.
"""

from __future__ import annotations

import argparse
import math
import sys
from dataclasses import dataclass, field
from pathlib import Path
from statistics import mean
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.table import Bound, report

OFFLINE: Final = 0.3
BLACK_HOLES: Final = 0.2
EXCHANGES: Final = (1, 3, 4, 8)
SHARES: Final = (0.5, 0.9, 0.999, 1.0)

# In so many steps, one behind the other, the exchanges of a round take place.
_STEPS: Final = 50
_NIGHTS_MOST: Final = 60

Indexes: TypeAlias = NDArray[np.int64]
Flags: TypeAlias = NDArray[np.bool_]


@dataclass(slots=True)
class Spread:
    """How a file spread.

    Attributes:
        held: which part of the honest nodes holds it at the end of each night.
        within_two: which part of the honest nodes that were online in the first two nights holds it behind these.
        pushes: how many pushes were sent for each honest node.
    """

    held: list[float] = field(default_factory=list)
    within_two: float = 0.0
    pushes: float = 0.0

    def nights(self, share: float) -> int:
        """Return how many nights it took to reach so many."""
        return 1 + next(night for night, held in enumerate(self.held) if held >= share)


def spread(nodes: int, k: int, *, pushed: bool, seed: int) -> Spread:
    """Let one file spread among nodes until all honest ones hold it."""
    random = np.random.default_rng(seed)
    honest = random.random(nodes) >= BLACK_HOLES
    held = np.zeros(nodes, np.bool_)
    met = np.zeros(nodes, np.bool_)
    came = Spread()
    while not came.held or (came.held[-1] < 1 and len(came.held) < _NIGHTS_MOST):
        online = random.random(nodes) >= OFFLINE
        awake = honest & online
        if not came.held:
            first = np.flatnonzero(awake)[:1]
            held[first] = True
            if pushed:
                came.pushes = push(random, first, held, awake, np.flatnonzero(online), k) / int(honest.sum())
        exchange(random, held, awake, np.flatnonzero(online), k)
        met |= awake
        came.held.append(float(held[honest].mean()))
        if len(came.held) == 2:
            came.within_two = float(held[met].mean())
    return came


def push(random: np.random.Generator, first: Indexes, held: Flags, awake: Flags, online: Indexes, k: int) -> int:
    """Hand a file on until nobody takes it who has not had it, and return how often it was sent."""
    sent = 0
    while first.size:
        reached = online[random.integers(0, online.size, first.size * k)]
        sent += reached.size
        first = np.unique(reached[awake[reached] & ~held[reached]])
        held[first] = True
    return sent


def exchange(random: np.random.Generator, held: Flags, awake: Flags, online: Indexes, k: int) -> None:
    """Let each honest node that is online have its exchanges."""
    callers = np.flatnonzero(awake)
    for _ in range(k):
        for some in np.array_split(random.permutation(callers), _STEPS):
            other = online[random.integers(0, online.size, some.size)]
            is_answered = awake[other]
            one, other = some[is_answered], other[is_answered]
            moves = held[one] | held[other]
            held[one[moves]] = True
            held[other[moves]] = True


def floor(share: float, honest: float) -> float:
    """Return the nights until so many of the honest nodes have been online once; all but less than one, for all."""
    return math.log(max(1 - share, 1 / honest)) / math.log(OFFLINE)


def main() -> None:
    """Let files spread, and print how long they took."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--nodes", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    options.add_argument("--seeds", type=int, default=3)
    options.add_argument("--plot", type=Path, help="draw the curves of the largest number of nodes into this file")
    chosen = options.parse_args()
    print(f"{'nodes':>9} {'k':>2} {'push':>5} " + " ".join(f"{share:>7.1%}" for share in SHARES), end="")
    print("  online held behind two nights, pushes a node")
    bounds: list[Bound] = []
    curves: dict[str, list[float]] = {}
    for nodes in chosen.nodes:
        for k in EXCHANGES:
            for pushed in (False, True):
                runs = [spread(nodes, k, pushed=pushed, seed=seed) for seed in range(1, chosen.seeds + 1)]
                show(nodes, k, pushed, runs)
                curves[f"k = {k}, {'with' if pushed else 'without'} the push"] = runs[0].held
                if k == 3:
                    bounds += bounds_of(nodes, pushed, runs)
        floors = (floor(share, nodes * (1 - BLACK_HOLES)) for share in SHARES)
        print(f"{nodes:>9}      floor " + " ".join(f"{one:>7.2f}" for one in floors))
    if chosen.plot is not None:
        plot(chosen.plot, chosen.nodes[-1], curves)
    report("k = 3", {}, bounds)


def show(nodes: int, k: int, pushed: bool, runs: list[Spread]) -> None:
    nights = " ".join(f"{mean(run.nights(share) for run in runs):>7.2f}" for share in SHARES)
    within_two, pushes = mean(run.within_two for run in runs), mean(run.pushes for run in runs)
    print(f"{nodes:>9} {k:>2} {'yes' if pushed else 'no':>5} {nights}  {within_two:>7.2%} {pushes:>7.2f}", flush=True)


def bounds_of(nodes: int, pushed: bool, runs: list[Spread]) -> list[Bound]:
    nights = mean(run.nights(0.999) for run in runs)
    if not pushed:
        return [Bound(f"nights to 99.9 % of {nodes:,} without the push", nights, most=9.5, unit="n")]
    # A night is a whole one.
    within = math.ceil(floor(0.999, nodes)) + 1
    two = 100 * mean(run.within_two for run in runs)
    return [
        Bound(f"nights to 99.9 % of {nodes:,} with the push", nights, most=within, unit="n"),
        Bound(f"of {nodes:,}, those that were online hold it behind two nights", two, least=90, unit="%"),
    ]


def plot(target: Path, nodes: int, curves: dict[str, list[float]]) -> None:
    """Draw which part of the honest nodes holds the file behind each night."""
    import matplotlib as mpl

    mpl.use("agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(9, 5.5))
    for name, held in curves.items():
        axes.plot(range(1, len(held) + 1), held, "--" if "without" in name else "-", marker=".", label=name)
    nights = range(1, max(map(len, curves.values())) + 1)
    axes.plot(nights, [1 - OFFLINE**night for night in nights], color="black", linewidth=1, label="online once")
    axes.set(xlabel="nights", ylabel="part of the honest nodes", title=f"A new file among {nodes:,} nodes")
    axes.grid(visible=True, alpha=0.3)
    axes.legend()
    figure.savefig(target, dpi=150, bbox_inches="tight")


if __name__ == "__main__":
    main()
