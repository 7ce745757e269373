"""Hashed embedding of a text: what it is about, as a point on a sphere of 256 dimensions.

- Features are words and pairs of neighbouring words, in lower case. URLs, paths, addresses, numbers and hex are
  stripped before; so are function words and the frame of lesson sentences, which every sentence shares.
- A feature is hashed with BLAKE2b: its first byte names the dimension, the lowest bit of its second the sign. The
  same text gives the same vector on every machine and with every version of the interpreter.
- A feature counts once, however often it occurs, and the vector has length 1; a text without a feature has none.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from hashlib import blake2b
from itertools import pairwise
from math import sqrt
from typing import Final

DIMENSIONS: Final = 256

Vector = Mapping[int, float]
"""A vector by its dimensions that are not 0."""

_STRIPPED: Final = re.compile(
    r"\S*[/\\@]\S*"  # paths, URLs, addresses
    r"|\b(?:0x)?(?=[A-Za-z-]*[0-9])[0-9a-fA-F]{6,}(?:-[0-9a-fA-F]+)*\b"  # hex, UUIDs
    r"|\b[vV]?[0-9]\w*(?:[.:]\w+)*"  # numbers, times, versions
    r"|\ba (?:path|file|URL|secret)\b|\ban (?:address|option)\b"  # the placeholders of a lesson sentence
)
_WORD: Final = re.compile(r"[^\W_]{2,}(?:[-'][^\W_]+)*")
_CAMEL: Final = re.compile(r"(?<=[a-z])(?=[A-Z])")
_STOP: Final = frozenset(
    """
    a about after again agent all also am an and any are as asked at bash be because been before being but by call can
    corrected could did do does each exit failed for from had has have he her him his how if in into is it its just
    like me more most my no not now of offered on one only or our out over person reported said same she should so
    some status such than that the their them then there these they this those to too tool up us was we were what when
    where which while who why will with would you your
    """.split()
)


def embed(text: str) -> Vector:
    """Return the vector of a text; empty if nothing of the text counts."""
    plain = _CAMEL.sub(" ", _STRIPPED.sub(" ", text)).lower()
    words = [word for word in _WORD.findall(plain) if word not in _STOP]
    features = dict.fromkeys(words)
    features.update(dict.fromkeys(f"{left} {right}" for left, right in pairwise(words)))
    sums: dict[int, float] = {}
    for feature in features:
        dimension, sign = _place(feature)
        sums[dimension] = sums.get(dimension, 0.0) + sign
    length = sqrt(sum(value * value for value in sums.values()))
    return {dimension: value / length for dimension, value in sums.items() if value} if length else {}


def cosine(left: Vector, right: Vector) -> float:
    """Return how alike two vectors are, from -1 to 1; 0 if one is empty."""
    if len(left) > len(right):
        left, right = right, left
    return sum(value * right[dimension] for dimension, value in left.items() if dimension in right)


@lru_cache(maxsize=65_536)
def _place(feature: str) -> tuple[int, float]:
    first, second = blake2b(feature.encode("utf-8", "replace"), digest_size=2).digest()
    return first, 1.0 if second & 1 else -1.0
