"""Average linkage, held against its plain definition, and against the centroid that it is not."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations

from hypothesis import given, settings
from hypothesis import strategies as st

from remem.sleep.embed import Vector, cosine, embed
from remem.sleep.linkage import JOIN, Groups, clusters


def _average(left: Sequence[Vector], right: Sequence[Vector]) -> float:
    return sum(cosine(one, other) for one in left for other in right) / (len(left) * len(right))


def _plain(vectors: Sequence[Vector], threshold: float) -> list[list[int]]:
    """Cluster by the definition, looking at all pairs of all clusters again and again."""
    groups = [[index] for index in range(len(vectors))]
    while True:
        best: tuple[float, int, int] | None = None
        for a, b in combinations(range(len(groups)), 2):
            average = round(_average([vectors[i] for i in groups[a]], [vectors[i] for i in groups[b]]), 9)
            if average >= threshold and (best is None or average > best[0]):
                best = (average, a, b)
        if best is None:
            return [sorted(group) for group in groups]
        _, a, b = best
        groups[a] += groups.pop(b)


def _vector(*values: float) -> Vector:
    length = math.sqrt(sum(value * value for value in values))
    return {dimension: value / length for dimension, value in enumerate(values) if value}


def test_a_centroid_would_join_and_average_linkage_must_not() -> None:
    wide = [_vector(1, 0.53), _vector(1, -0.53)]
    outside = _vector(1, 0, 1.3)
    centroid = _vector(1, 0)
    assert cosine(*wide) >= JOIN
    assert cosine(centroid, outside) >= JOIN
    assert _average(wide, [outside]) < JOIN
    groups = Groups()
    group = groups.new(wide)
    assert groups.near(outside) == []
    assert groups.near(wide[0]) == [(group, round(_average(wide, [wide[0]]), 9))]
    assert clusters([*wide, outside]) == _plain([*wide, outside], JOIN) == [[0, 1], [2]]


words = st.sampled_from(
    "lock index merge conflict branch commit push reject parse error token quote missing file".split()
)
texts = st.lists(words, min_size=0, max_size=6).map(" ".join)


@settings(max_examples=300)
@given(st.lists(texts, max_size=14), st.sampled_from([0.3, 0.5, JOIN, 0.7]))
def test_the_clusters_are_those_of_the_plain_definition(found: list[str], threshold: float) -> None:
    vectors = [embed(text) for text in found]
    assert clusters(vectors, threshold) == _plain(vectors, threshold)


@given(
    st.lists(st.tuples(*[st.floats(-1, 1)] * 3).filter(lambda point: any(abs(x) > 0.01 for x in point)), max_size=10)
)
def test_so_they_are_for_any_points(points: list[tuple[float, ...]]) -> None:
    vectors = [_vector(*point) for point in points]
    assert clusters(vectors) == _plain(vectors, JOIN)


@given(st.lists(st.lists(texts, min_size=1, max_size=4), max_size=6), texts)
def test_the_groups_near_a_vector_are_those_of_the_plain_definition(found: list[list[str]], text: str) -> None:
    groups = Groups()
    for group in found:
        groups.new(map(embed, group))
    plain = {
        number: average
        for number, group in enumerate(found)
        if (average := round(_average([embed(one) for one in group], [embed(text)]), 9)) >= JOIN
    }
    assert dict(groups.near(embed(text))) == plain


def test_an_empty_group_and_an_empty_vector_are_near_nothing() -> None:
    groups = Groups()
    groups.new()
    groups.new([embed("merge conflict")])
    assert len(groups) == 2
    assert groups.near({}) == []
    assert [number for number, _ in groups.near(embed("merge conflict"))] == [1]


def test_thousands_of_equal_and_of_different_texts_are_clustered() -> None:
    found = [f"{verb} {noun} refused" for verb in ("lock", "merge", "push") for noun in ("index", "branch", "token")]
    vectors = [embed(found[number % len(found)]) for number in range(5_000)]
    assert sum(len(group) for group in clusters(vectors)) == 5_000
    assert clusters(vectors[: len(found)]) == _plain(vectors[: len(found)], JOIN)
