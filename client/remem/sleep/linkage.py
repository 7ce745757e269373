"""Average linkage: which vectors belong together.

Each vector begins as a cluster of its own. As long as two clusters have an average cosine between their members of
at least the threshold, the two with the highest are merged; of equals, those whose first members come first.

The vectors have length 1, so the average over all pairs of two clusters is the product of the sums of their
vectors, divided by both sizes; that is all this module computes. It is not the cosine of their centroids, which
forgets how far the members of a cluster lie apart, and so joins what average linkage keeps separate.

Two short cuts leave the result as it is: equal vectors are one point of some weight, since they merge before all
others; and only clusters with a pair of members that reaches the threshold are looked at, since no average is
above the highest of its terms.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from heapq import heapify, heappop, heappush
from typing import Final

from remem.sleep.embed import DIMENSIONS, Vector

JOIN: Final = 0.55

# Sums taken in another order differ in their last digits; equals should stay equal.
_DIGITS: Final = 9
_SLACK: Final = 1e-6


class Groups:
    """Groups of vectors, each kept as the sum and the number of its members."""

    def __init__(self) -> None:
        self._sums: list[dict[int, float]] = [{} for _ in range(DIMENSIONS)]
        self._sizes: list[int] = []

    def __len__(self) -> int:
        return len(self._sizes)

    def new(self, members: Iterable[Vector] = ()) -> int:
        """Make a group, and return its number."""
        self._sizes.append(0)
        for vector in members:
            self.add(len(self._sizes) - 1, vector)
        return len(self._sizes) - 1

    def add(self, group: int, vector: Vector) -> None:
        """Put a vector into a group."""
        self._sizes[group] += 1
        for dimension, value in vector.items():
            sums = self._sums[dimension]
            sums[group] = sums.get(group, 0.0) + value

    def near(self, vector: Vector, threshold: float = JOIN) -> list[tuple[int, float]]:
        """Return each group whose members have an average cosine of at least the threshold, with that average."""
        totals = [0.0] * len(self._sizes)
        for dimension, value in vector.items():
            for group, total in self._sums[dimension].items():
                totals[group] += value * total
        # A total is the average times the size, so one below the threshold needs no division.
        found = [(group, total) for group, total in enumerate(totals) if total >= threshold - _SLACK]
        averages = [(group, round(total / self._sizes[group], _DIGITS)) for group, total in found if self._sizes[group]]
        return [(group, average) for group, average in averages if average >= threshold]


def clusters(vectors: Sequence[Vector], threshold: float = JOIN) -> list[list[int]]:
    """Return the clusters as lists of indices, in order of their first members; an empty vector stands alone."""
    points: dict[frozenset[tuple[int, float]], list[int]] = {}
    alone: list[list[int]] = []
    for index, vector in enumerate(vectors):
        if vector:
            points.setdefault(frozenset(vector.items()), []).append(index)
        else:
            alone.append([index])
    members = list(points.values())
    merged = _merge(members, [dict(vectors[group[0]]) for group in members], threshold)
    return sorted([sorted(group) for group in merged] + alone)


def _merge(members: list[list[int]], points: list[dict[int, float]], threshold: float) -> list[list[int]]:
    sums = [_scaled(point, len(group)) for point, group in zip(points, members, strict=True)]
    first = [group[0] for group in members]
    alive = [True] * len(members)
    neighbours: list[set[int]] = [set() for _ in members]
    queue: list[tuple[float, int, int, int, int]] = []

    def candidate(a: int, b: int, average: float) -> tuple[float, int, int, int, int]:
        low, high = (a, b) if first[a] < first[b] else (b, a)
        return -average, first[low], first[high], low, high

    for a, b, average in _pairs(points, threshold):
        neighbours[a].add(b)
        neighbours[b].add(a)
        queue.append(candidate(a, b, average))
    heapify(queue)
    while queue:
        _, _, _, a, b = heappop(queue)
        if not (alive[a] and alive[b]):
            continue
        # The union is a cluster with a new number, so that no candidate of its parts is mistaken for its own.
        alive[a] = alive[b] = False
        union = len(members)
        members.append(members[a] + members[b])
        first.append(first[a])
        alive.append(True)
        sums.append(_sum(sums[a], sums[b]))
        neighbours.append({other for other in neighbours[a] | neighbours[b] if alive[other]})
        for other in neighbours[union]:
            neighbours[other].add(union)
            pairs = len(members[union]) * len(members[other])
            average = round(_dot(sums[union], sums[other]) / pairs, _DIGITS)
            if average >= threshold:
                heappush(queue, candidate(union, other, average))
    return [group for group, is_alive in zip(members, alive, strict=True) if is_alive]


def _pairs(points: list[dict[int, float]], threshold: float) -> Iterator[tuple[int, int, float]]:
    """Return each pair of points that reaches the threshold, with its cosine."""
    groups = Groups()
    for number, point in enumerate(points):
        for other, average in groups.near(point, threshold):
            yield other, number, average
        groups.new([point])


def _sum(left: dict[int, float], right: dict[int, float]) -> dict[int, float]:
    total = dict(left)
    for dimension, value in right.items():
        total[dimension] = total.get(dimension, 0.0) + value
    return total


def _scaled(vector: dict[int, float], factor: int) -> dict[int, float]:
    return {dimension: value * factor for dimension, value in vector.items()}


def _dot(left: dict[int, float], right: dict[int, float]) -> float:
    if len(left) > len(right):
        left, right = right, left
    return sum(value * right[dimension] for dimension, value in left.items() if dimension in right)
