"""What the benches share: interleaved repetitions, medians, and one table of ratios a run.

Only ratios within one run are bounded. The repetitions of all things that are compared take turns, so that
whatever else the machine does meets all of them alike.
"""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable, Mapping
from statistics import median
from typing import NamedTuple


class Bound(NamedTuple):
    """A ratio, and the bound that it must keep.

    Attributes:
        name: what is compared.
        ratio: what came out.
        least: the least that it may be, if there is such a bound.
        most: the most that it may be, if there is such a bound.
        unit: what it is counted in where it is no ratio.
    """

    name: str
    ratio: float
    least: float | None = None
    most: float | None = None
    unit: str = "x"

    @property
    def kept(self) -> bool:
        return (self.least is None or self.ratio >= self.least) and (self.most is None or self.ratio <= self.most)

    @property
    def said(self) -> str:
        if self.least is None and self.most is None:
            return ""
        return f"at most {self.most:g}" if self.least is None else f"at least {self.least:g}"


def medians(
    things: Mapping[str, Callable[[int], object]],
    *,
    repetitions: int,
    warm_up: int = 2,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, float]:
    """Time things in turns, and return the median seconds of each.

    Args:
        things: what to time; each is given the number of its repetition, from 0, the warm-up's included.
        repetitions: how often each is timed.
        warm_up: how often each runs before anything is timed.
        clock: what they are timed by.
    """
    times: dict[str, list[float]] = {name: [] for name in things}
    gc.collect()
    gc.disable()
    try:
        for number in range(warm_up + repetitions):
            for name, thing in things.items():
                started = clock()
                thing(number)
                if number >= warm_up:
                    times[name].append(clock() - started)
    finally:
        gc.enable()
    return {name: median(taken) for name, taken in times.items()}


def report(title: str, seconds: Mapping[str, float], bounds: list[Bound]) -> None:
    """Print the times and the ratios, and end the program with 1 where a bound is not kept."""
    print(title)
    width = max(len(name) for name in [*seconds, *(bound.name for bound in bounds)])
    for name, taken in seconds.items():
        print(f"  {name:<{width}}  {taken * 1000:>10.3f} ms")
    for bound in bounds:
        verdict = "" if not bound.said else "  kept" if bound.kept else "  NOT KEPT"
        print(f"  {bound.name:<{width}}  {bound.ratio:>10.2f} {bound.unit:<3} {bound.said}{verdict}")
    if not all(bound.kept for bound in bounds):
        sys.exit(1)
