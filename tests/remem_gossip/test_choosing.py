"""Which peers a night goes to, and in which order."""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remem_gossip.choosing import Standing, back_off, in_turn
from remem_testkit.files import NOW

HOUR = timedelta(hours=1)


def firsts(*peers: Standing, draws: int = 2_000) -> Counter[str]:
    """Count who comes first."""
    random = Random(1)
    return Counter(next(in_turn(peers, NOW, random)).url for _ in range(draws))


def test_every_peer_that_may_be_tried_has_its_turn_once() -> None:
    peers = [Standing(f"peer {number}", promised=number, delivered=0) for number in range(20)]
    assert sorted(peer.url for peer in in_turn(peers, NOW, Random(0))) == sorted(peer.url for peer in peers)


def test_no_order_may_be_foreseen() -> None:
    first = firsts(*(Standing(f"peer {number}") for number in range(4)))
    assert min(first.values()) > 400


@pytest.mark.parametrize(
    ("next_try", "is_tried"),
    [(None, True), (NOW - HOUR, True), (NOW, True), (NOW + HOUR, False)],
    ids=["never failed", "rested enough", "from now on", "rests still"],
)
def test_a_peer_that_rests_is_left_alone(next_try: datetime | None, is_tried: bool) -> None:
    peer = Standing("peer", failures=3, next_try=next_try)
    assert [peer] * is_tried == list(in_turn([peer], NOW, Random(0)))


def test_a_peer_is_chosen_as_seldom_as_it_keeps_its_word() -> None:
    first = firsts(Standing("honest", promised=100, delivered=100), Standing("half", promised=199, delivered=99))
    # It comes before the other with the chance of its weight among both.
    assert first["half"] / first.total() == pytest.approx(1 / 3, abs=0.05)


def test_a_liar_is_chosen_now_and_then() -> None:
    first = firsts(Standing("honest"), Standing("liar", promised=10_000, delivered=0))
    assert 0 < first["liar"] < 0.05 * first.total()


def test_a_peer_of_which_nothing_is_known_is_trusted_like_one_that_kept_its_word() -> None:
    assert Standing("new").word == Standing("old", promised=500, delivered=500).word == 1


@given(st.integers(0, 10**6), st.integers(0, 10**6))
def test_no_count_makes_a_word_that_cannot_be_weighed(promised: int, delivered: int) -> None:
    assert 0 < Standing("peer", promised=promised, delivered=min(promised, delivered)).word <= 1


def test_a_peer_rests_twice_as_long_each_time_and_a_week_at_most() -> None:
    assert [back_off(failures) / HOUR for failures in range(1, 10)] == [1, 2, 4, 8, 16, 32, 64, 128, 168]
    assert back_off(10**9) == timedelta(days=7)
