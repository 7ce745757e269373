"""What is passed on at once, to whom, and how often."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from random import Random

import pytest

from remem_gossip import wire
from remem_gossip.choosing import Standing
from remem_gossip.exchange import Answer, Request
from remem_gossip.parts import NO_ID, Outcome, Proof, Verdict, Whole
from remem_gossip.relay import COPIES, PUSHED_AT_ONCE, Push, Relay
from remem_gossip.taking import claim_of
from remem_testkit.files import NOW, file, key, lesson, sentence
from remem_testkit.nodes import MapNode

PEERS = tuple(Standing(f"peer {number}") for number in range(10))
TAKEN = Answer(200, b"{}")


def said(number: int, age: timedelta = timedelta(0)) -> bytes:
    return file(key(number), [lesson(sentence(number))], at=NOW - age)


def noted(
    numbers: Sequence[int], outcome: Outcome = Outcome.NEW, *, source: str = "peer 0", age: timedelta = timedelta(0)
) -> tuple[Relay, MapNode]:
    """Make a node that holds these, and a relay that was told that they came."""
    node, relay = MapNode(), Relay()
    _note(relay, node, numbers, outcome, source, age)
    return relay, node


def _note(
    relay: Relay, node: MapNode, numbers: Sequence[int], outcome: Outcome, source: str = "peer 0",
    age: timedelta = timedelta(0),
) -> None:  # fmt: skip
    files = [said(number, age) for number in numbers]
    parts: list[Whole | Proof] = [Whole(_id(data), data) for data in files]
    for data in files:
        node.put(data)
    relay.note(parts, [Verdict(part.id, outcome) for part in parts], source, NOW)


def _id(data: bytes) -> bytes:
    claim = claim_of(data)
    assert claim is not None
    return claim.id


def pushed(relay: Relay, node: MapNode, *answers: Answer | None) -> list[tuple[str, Request]]:
    """Let one push go, and return whom was asked what; whoever comes behind the answers takes it."""
    push = relay.next(PEERS, NOW, Random(0))
    if push is None:
        return []
    steps, asked = relay.steps(node, push), []
    try:
        asked.append(next(steps))
        while True:
            answer = answers[len(asked) - 1] if len(asked) <= len(answers) else TAKEN
            asked.append(steps.send(answer))
    except StopIteration:
        return asked


def keys_of(request: Request) -> list[bytes]:
    return [part.id for part in wire.read_offer(request.body)]


@pytest.mark.parametrize(
    ("outcome", "is_relayed"),
    [(outcome, outcome in (Outcome.NEW, Outcome.NEWER)) for outcome in Outcome],
    ids=[outcome.value for outcome in Outcome],
)
def test_what_was_taken_in_is_pushed_on(outcome: Outcome, is_relayed: bool) -> None:
    relay, node = noted([1], outcome)
    asked = pushed(relay, node)
    assert len(asked) == COPIES * is_relayed
    assert all(keys_of(request) == [_id(said(1))] for _, request in asked)


def test_each_version_is_pushed_once() -> None:
    relay, node = noted([1])
    assert pushed(relay, node)
    assert not pushed(relay, node)


@pytest.mark.parametrize(("hours", "is_relayed"), [(23, True), (24, False), (-23, True)])
def test_only_what_was_sealed_less_than_a_day_ago_is_pushed_on(hours: int, is_relayed: bool) -> None:
    assert len(noted([1], age=timedelta(hours=hours))[0]) == is_relayed


def test_a_large_offer_is_no_push() -> None:
    assert len(noted(range(PUSHED_AT_ONCE))[0]) == PUSHED_AT_ONCE
    assert not len(noted(range(PUSHED_AT_ONCE + 1))[0])


def test_a_proof_travels_by_exchanges() -> None:
    relay, proof = Relay(), Proof(NO_ID, (b"", b""))
    relay.note([proof], [Verdict(NO_ID, Outcome.NEW)], "peer 0", NOW)
    assert not len(relay)


def test_nobody_gets_back_what_it_brought() -> None:
    for seed in range(20):
        relay, node = noted([1], source=f"peer {seed % 10}")
        assert f"peer {seed % 10}" not in [url for url, _ in pushed(relay, node)]


def test_whoever_brought_one_gets_the_others() -> None:
    relay, node = noted([1], source="peer 0")
    _note(relay, node, [2], Outcome.NEW, "peer 1")
    push = relay.next(PEERS[:2], NOW, Random(0))
    assert push is not None
    offers = _all(relay, node, push)
    assert offers == {"peer 0": [_id(said(2))], "peer 1": [_id(said(1))]}


def _all(relay: Relay, node: MapNode, push: Push) -> dict[str, list[bytes]]:
    steps, offers = relay.steps(node, push), {}
    try:
        url, request = next(steps)
        while True:
            offers[url] = keys_of(request)
            url, request = steps.send(TAKEN)
    except StopIteration:
        return offers


def test_a_peer_that_does_not_take_it_is_made_up_for() -> None:
    relay, node = noted([1])
    asked = pushed(relay, node, None, Answer(403, b"", "not_a_peer"))
    assert len(asked) == COPIES + 2
    assert len({url for url, _ in asked}) == len(asked)


def test_where_no_peer_takes_it_not_all_of_them_are_tried() -> None:
    relay, node = noted([1], source="somebody else")
    assert len(pushed(relay, node, *[None] * len(PEERS))) == 3 * COPIES < len(PEERS)


def test_what_was_superseded_since_is_not_pushed() -> None:
    relay, node = noted([1])
    node.put(file(key(1), [lesson(sentence(5))], at=NOW + timedelta(minutes=1)))
    assert not pushed(relay, node)


def test_what_is_published_is_pushed_before_what_came() -> None:
    relay, node = noted([1, 2, 3])
    node.put(said(9))
    relay.publish(_id(said(9)))
    assert keys_of(pushed(relay, node)[0][1])[0] == _id(said(9))


def test_a_flood_of_newcomers_leaves_the_queue_before_an_update() -> None:
    relay, node = noted([10_000], Outcome.NEWER)
    for start in range(0, 320, PUSHED_AT_ONCE):
        _note(relay, node, range(start, start + PUSHED_AT_ONCE), Outcome.NEW)
    assert len(relay) == 256
    first = pushed(relay, node)[0][1]
    assert keys_of(first)[0] == _id(said(10_000))
    assert len(keys_of(first)) == PUSHED_AT_ONCE
