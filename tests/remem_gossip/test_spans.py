"""How long things may take, and what is begun at all."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

import pytest

from remem_gossip.exchange import Answer, Report, Request
from remem_gossip.meeting import PUSH_PATIENCE, PUSH_SECONDS, Met, deliver, meet_some
from remem_gossip.relay import Steps
from remem_gossip.spans import Span
from remem_testkit.ticks import Ticks


@pytest.fixture
def ticks() -> Ticks:
    return Ticks()


def test_a_span_ends_with_its_seconds_and_with_what_it_is_within(ticks: Ticks) -> None:
    night = Span(600, clock=ticks)
    ticks.advance(500)
    peer = Span(180, within=night)
    assert (night.left, peer.left, peer.seconds) == (100, 100, 100)
    answer = Span(30, within=peer)
    ticks.advance(20)
    assert (peer.left, answer.left, answer.seconds) == (80, 10, 30)
    assert night.has_room_for(80)
    assert not night.has_room_for(81)
    ticks.advance(1_000)
    assert (night.left, peer.left, answer.left) == (0, 0, 0)
    assert not answer.is_ended


def test_a_span_without_seconds_lasts_until_it_is_ended_and_ends_all_that_is_within_it() -> None:
    life = Span()
    work = Span(60, within=Span(within=life))
    assert life.left == math.inf
    assert 0 < work.left <= 60
    assert work.clock is time.monotonic
    life.end()
    assert work.left == life.left == 0
    assert work.is_ended


def meeting(ticks: Ticks, of: Callable[[int], tuple[float, str | None]]) -> Callable[[int, Span], Met]:
    """Return what meets a peer that takes so long, as long as it may, and ends with a code."""

    def meet_one(peer: int, share: Span) -> Met:
        seconds, code = of(peer)
        assert share.seconds == 180
        ticks.advance(min(seconds, share.left))
        return Met(str(peer), Report(), code)

    return meet_one


@pytest.mark.parametrize(
    ("seconds", "code", "met", "took"),
    [
        pytest.param(1, None, 3, 3, id="as many as should, where all answer"),
        pytest.param(5, "peer_unreachable", 9, 45, id="three for each, where none answers"),
        pytest.param(1_000, "peer_timeout", 3, 540, id="as many shares as there are, where all are slow"),
        pytest.param(100, "peer_answer", 5, 500, id="none that might not end in time"),
    ],
)
def test_a_night_ends_whatever_its_peers_do(
    ticks: Ticks, seconds: float, code: str | None, met: int, took: float
) -> None:
    night = Span(600, clock=ticks)
    one = meeting(ticks, lambda _peer: (seconds, code))
    assert len(list(meet_some(range(100), one, exchanges=3, time=night, share=180))) == met
    assert ticks.now == took


def test_a_slow_peer_is_made_up_for_by_another(ticks: Ticks) -> None:
    one = meeting(ticks, lambda peer: (1_000, "peer_timeout") if peer < 2 else (1, None))
    met = list(meet_some(range(100), one, exchanges=3, time=Span(600, clock=ticks), share=180))
    assert [one.peer for one in met if one.code is None] == ["2", "3", "4"]


def test_a_push_ends_although_nobody_answers(ticks: Ticks) -> None:
    asked: list[str] = []

    def steps() -> Steps:
        for number in range(100):
            yield f"peer {number}", Request("/gossip/offer", b"", 0)

    def slow(url: str, _request: Request) -> Answer | None:
        asked.append(url)
        ticks.advance(PUSH_PATIENCE.whole)
        return None

    deliver(steps(), slow, Span(PUSH_SECONDS, clock=ticks))
    assert ticks.now == PUSH_SECONDS
    assert len(asked) == PUSH_SECONDS / PUSH_PATIENCE.whole
