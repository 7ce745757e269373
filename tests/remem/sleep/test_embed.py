"""The embedding: the same everywhere, blind to paths and numbers, and of length 1."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remem.sleep.embed import DIMENSIONS, cosine, embed


def test_the_vector_of_a_text_is_the_same_on_every_machine() -> None:
    # Written down once: another vector would part what memories on two machines know.
    assert {d: round(v, 6) for d, v in sorted(embed("git reported: merge conflict").items())} == {
        12: -0.447214, 27: 0.447214, 59: -0.447214, 64: 0.447214, 195: -0.447214,
    }  # fmt: skip


SAME = [
    ("paths", "cannot open /home/zed/a.py", "cannot open /srv/other/b.go"),
    ("relative paths", "cannot open src/a.py", "cannot open lib/b/c.py"),
    ("URLs", "fetch https://a.example/x broke", "fetch http://b.example broke"),
    ("addresses", "mail from zed@a.example bounced", "mail from kim@b bounced"),
    ("numbers", "line 12 column 9 broken", "line 4 column 17 broken"),
    ("hex", "object deadbeef99 missing", "object 0x12ab34cd missing"),
    ("UUIDs", "session 1b9d6bcd-bbfd-4b2d-9b5d-ab8dfbbd4bed ended", "session ended"),
    ("times", "timed out after 3.5s", "timed out after 200ms"),
    ("versions", "broken in v1.2.3", "broken in 4.5"),
    ("case", "Merge Conflict", "merge conflict"),
    ("placeholders", "no such directory: a path", "no such directory"),
    ("the frame of a sentence", "The Bash tool failed with exit status 3: merge conflict.", "merge conflict"),
]


@pytest.mark.parametrize(("left", "right"), [row[1:] for row in SAME], ids=[row[0] for row in SAME])
def test_what_differs_from_run_to_run_does_not_count(left: str, right: str) -> None:
    assert embed(left) == embed(right) != {}


def test_a_documented_code_counts() -> None:
    assert embed("error E0308") != embed("error E0277")


def test_the_order_of_words_counts() -> None:
    alike = cosine(embed("index lock before commit"), embed("commit before lock index"))
    assert 0.2 < alike < 0.8


@pytest.mark.parametrize("text", ["", "12 34", "/a/b", "the of and", "a"])
def test_a_text_of_nothing_that_counts_has_no_vector(text: str) -> None:
    assert embed(text) == {}
    assert cosine(embed(text), embed("merge conflict")) == 0


@given(st.text())
def test_a_vector_has_length_1_or_0(text: str) -> None:
    vector = embed(text)
    length = math.sqrt(sum(value * value for value in vector.values()))
    assert not vector or math.isclose(length, 1)
    assert all(0 <= dimension < DIMENSIONS for dimension in vector)
    assert embed(text) == vector


@given(st.text(), st.text())
def test_likeness_is_symmetric_and_at_most_1(left: str, right: str) -> None:
    alike = cosine(embed(left), embed(right))
    assert math.isclose(alike, cosine(embed(right), embed(left)))
    assert -1.000001 <= alike <= 1.000001
