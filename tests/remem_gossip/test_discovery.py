"""Whom peers are asked about themselves, and for how long."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from remem_gossip.addresses import Allowed, read_url
from remem_gossip.choosing import Standing
from remem_gossip.dial import Dial
from remem_gossip.discovery import ASKING_PATIENCE, ASKING_SECONDS, describe
from remem_gossip.failures import NotReached
from remem_gossip.spans import Span
from remem_testkit.files import NOW, key
from remem_testkit.liars import answer, lying
from remem_testkit.ticks import Ticks

NEAR = Allowed(http=True, private=True)


@dataclass(frozen=True)
class Listed:
    """A peer, as far as it matters here."""

    url: str
    standing: Standing


def peers(*failures: int) -> list[Listed]:
    urls = [f"https://{number}.example" for number in range(len(failures))]
    return [Listed(url, Standing(url, failed)) for url, failed in zip(urls, failures, strict=True)]


def silent(asked: list[str], ticks: Ticks) -> Callable[[Listed, Span], Dial]:
    """Return the way to peers that say nothing for as long as they are waited for."""

    def dialling(peer: Listed, _time: Span) -> Dial:
        asked.append(peer.url)
        ticks.advance(ASKING_PATIENCE.whole)
        raise NotReached("an answer", "none")

    return dialling


def test_many_silent_peers_are_asked_for_so_long_and_no_longer() -> None:
    asked: list[str] = []
    ticks = Ticks()
    told: list[tuple[int, int]] = []
    known = peers(*[0] * 50)
    described = describe(
        known,
        silent(asked, ticks),
        time=Span(ASKING_SECONDS, clock=ticks),
        progress=lambda done, total: told.append((done, total)),
    )
    assert ticks.now == ASKING_SECONDS
    assert [one.peer for one in described] == [peer.url for peer in known]
    assert [one.code for one in described] == ["peer_unreachable"] * 12 + ["peer_timeout"] * 38
    assert told == [(done, 50) for done in range(50)]


@pytest.mark.parametrize("failures", [(3, 0, 1), (1, 0, 1)], ids=str)
def test_those_that_failed_lately_are_asked_last(failures: tuple[int, ...]) -> None:
    asked: list[str] = []
    known = peers(*failures)
    described = describe(known, silent(asked, Ticks()))
    assert [one.peer for one in described] == [peer.url for peer in known]
    assert asked == [one.url for one in sorted(known, key=lambda one: one.standing.failures)]


@pytest.mark.parametrize(
    ("said", "code", "detail"),
    [
        pytest.param(answer(b""), "peer_answer", "expected a description as JSON, got b''", id="nothing"),
        pytest.param(answer(b"[]"), "peer_answer", "expected a description as an object, got []", id="no object"),
        pytest.param(
            answer(b'{"protocol":[1]}'),
            "peer_answer",
            "expected a key of 64 lower-case hex digits, got None",
            id="no key",
        ),
        pytest.param(
            answer(b"{}", "500 Internal Server Error"),
            "peer_refused",
            "expected a description, got status 500",
            id="a refusal",
        ),
    ],
)
def test_what_is_no_description_is_told_in_one_sentence(said: bytes, code: str, detail: str) -> None:
    with lying() as liar:
        liar.answers["/.well-known/remem"] = said
        url = read_url(liar.url, NEAR)
        (told,) = describe(
            [Listed(liar.url, Standing(liar.url))], lambda *_: Dial(url, key(1), lambda: NOW, allowed=NEAR)
        )
    assert (told.code, told.detail) == (code, detail)
