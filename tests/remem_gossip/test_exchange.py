"""What an exchange leaves on both sides, however it goes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remem.protocol.items import Item
from remem_gossip import wire
from remem_gossip.budget import Allowance, Budget
from remem_gossip.errors import GossipError
from remem_gossip.exchange import Answer, Exchange, Report, Request
from remem_gossip.parts import Blocked, Head, Part, Whole
from remem_gossip.reconcile import REACH as REACH_OF_ALL
from remem_gossip.reconcile import Reach, Reconciler, Vector
from remem_gossip.reconcile.negentropy import FRAME_LEAST
from remem_gossip.taking import claim_of
from remem_testkit.files import NOW, file, key, lesson, sentence
from remem_testkit.nodes import PLENTY, MapNode, Peer, meet

SECOND = timedelta(seconds=1)
DAY = timedelta(days=1)


def said(number: int, version: int = 0, texts: tuple[int, ...] = (0,)) -> bytes:
    """Make a version of a key's file."""
    return file(key(number), [lesson(sentence(text)) for text in texts], at=NOW + version * SECOND)


def node_of(*files: bytes, name: str = "node") -> MapNode:
    node = MapNode(name)
    for data in files:
        node.put(data)
    return node


def test_after_one_exchange_both_sides_hold_the_newest_of_all() -> None:
    left = node_of(said(1), said(2, 5), said(3))
    right = node_of(said(2, 4), said(3, 9), said(4))
    report = meet(left, Peer(right))
    assert left.map() == right.map()
    assert len(left.files) == 4
    assert report.delivered == report.promised


@given(
    st.lists(st.tuples(st.integers(0, 12), st.integers(0, 4)), max_size=20),
    st.lists(st.tuples(st.integers(0, 12), st.integers(0, 4)), max_size=20),
    st.integers(0, 8),
)
def test_an_exchange_that_is_cut_leaves_both_sides_valid_and_the_next_one_ends_it(
    left_says: list[tuple[int, int]], right_says: list[tuple[int, int]], cut_after: int
) -> None:
    newest: dict[int, int] = {}
    nodes = []
    for says in (left_says, right_says):
        own: dict[int, int] = {}
        for number, version in says:
            own[number] = max(version, own.get(number, 0))
            newest[number] = max(version, newest.get(number, 0))
        nodes.append(node_of(*(said(number, version) for number, version in own.items())))
    left, right = nodes
    meet(left, Peer(right), cut_after=cut_after)
    meet(left, Peer(right))
    meet(right, Peer(left))
    whole = node_of(*(said(number, version) for number, version in newest.items()))
    assert left.map() == right.map() == whole.map()


def test_a_version_that_was_superseded_here_is_not_fetched() -> None:
    left = node_of(said(1, 0))
    left.put(said(1, 5))
    right = node_of(said(1, 0))
    report = meet(left, Peer(right))
    assert report.promised == 0
    assert report.skipped == 1
    assert left.map() == right.map()


def test_a_version_that_was_refused_is_not_fetched_again() -> None:
    broken = said(1).replace(b'"text":"the', b'"text":"The', 1)
    left, right = node_of(), _Liar(instead=broken)
    right.put(said(1))
    first, second = meet(left, Peer(right)), meet(left, Peer(right))
    assert first.promised == 1
    assert first.delivered == 0
    assert not left.files
    assert second.promised == 1, "what came was other bytes than the item names, so nothing is known about that one"


def test_what_a_peer_sends_unasked_is_dropped() -> None:
    left, right = node_of(), _Liar(besides=said(7))
    right.put(said(1))
    meet(left, Peer(right))
    assert set(left.files) == {key(1).public.hex}


def test_a_peer_that_answers_nothing_of_what_it_promised_ends_the_exchange() -> None:
    left, right = node_of(), _Liar(silent=True)
    for number in range(5):
        right.put(said(number))
    report = meet(left, Peer(right))
    assert (report.promised, report.delivered) == (5, 0)


def test_newcomers_beyond_a_budget_wait_and_updates_do_not() -> None:
    left = node_of(said(0))
    right = node_of(said(0, 5), *(said(number) for number in range(1, 50)))
    for night in range(1, 3):
        report = meet(left, Peer(right), Allowance(Budget(bytes=1 << 30, checks=1 << 30, origins=10)))
        assert left.files[key(0).public.hex].version == right.files[key(0).public.hex].version
        assert len(left.files) == 1 + 10 * night
        assert report.taken["new"] == 10


def test_offers_beyond_a_budget_wait_there() -> None:
    left = node_of(*(said(number) for number in range(40)))
    right = Peer(node_of(), budget=Budget(bytes=1 << 30, checks=1 << 30, origins=10))
    report = meet(left, right)
    assert len(right.node.files) == 10
    assert (report.stand_there, report.waiting) == (10, 30)


def test_a_caller_that_may_not_offer_keeps_what_it_fetched() -> None:
    left, right = node_of(said(1)), node_of(said(2))
    report = meet(left, Peer(right, takes_offers=False))
    assert report.unlisted
    assert len(left.files) == 2
    assert len(right.files) == 1


def test_the_own_file_is_offered_first() -> None:
    left = node_of(*(said(number, number) for number in range(20)))
    left.own_key = key(3).public.hex
    seen: list[Request] = []
    _run(left, Peer(node_of()), seen)
    offered = wire.read_offer(next(request.body for request in seen if request.path == wire.OFFER))
    assert offered[0].id == left.own()


def test_a_key_that_spoke_twice_is_proven_to_everyone() -> None:
    one, other = sorted((said(1, 0, (1,)), said(1, 0, (2,))))
    left, right, third = node_of(one), node_of(other), node_of()
    meet(left, Peer(right))
    meet(right, Peer(left))
    meet(third, Peer(left))
    meet(third, Peer(right))
    assert key(1).public.hex in third.proofs
    assert third.map() == left.map() == right.map()


def test_a_blocked_file_counts_as_held_and_is_not_promised() -> None:
    left, right = node_of(), node_of(said(1), said(2))
    right.block(key(1).public.hex, "spam")
    report = meet(left, Peer(right))
    assert set(left.files) == {key(2).public.hex}
    assert (report.promised, report.delivered) == (1, 1)
    back = meet(node_of(said(1), said(2)), Peer(right))
    assert back.offered == 0


def test_a_key_that_is_blocked_here_does_not_come_back() -> None:
    left, right = node_of(), node_of(said(1))
    left.block(key(1).public.hex, "spam")
    meet(left, Peer(right))
    assert not left.files


def test_a_refusal_ends_the_exchange_with_its_code() -> None:
    steps = Exchange(node_of(said(1)), "peer", Allowance(PLENTY), Random(0), now=NOW).steps()
    next(steps)
    with pytest.raises(GossipError, match="429 too_many_requests"):
        steps.send(Answer(429, b"", "too_many_requests"))


def test_two_equal_sides_need_one_trip_and_a_few_bytes() -> None:
    files = [said(number) for number in range(100)]
    report = meet(node_of(*files), Peer(node_of(*files)))
    assert report.rounds == 1
    assert report.sent + report.received <= 400


# --- far more than one exchange takes ---

FEW = Budget(bytes=1 << 30, checks=1 << 30, origins=5)
REACH = Reach(rounds=12, differences=100)


class Terse(Peer):
    """A peer that says little at a time, so that a few hundred items are more than one exchange finds."""

    def answer(self, request: Request, source: str = "caller") -> Answer:
        if request.path != wire.RECONCILE:
            return super().answer(request, source)
        with self.node.items() as items:
            return Answer(200, Reconciler(items, FRAME_LEAST).answer(request.body))


def of_day(number: int, *, days_ago: float, texts: tuple[int, ...] = (0,)) -> bytes:
    return file(key(number), [lesson(sentence(text)) for text in texts], at=NOW - days_ago * DAY)


@pytest.fixture(scope="module")
def old_files() -> list[bytes]:
    return [of_day(number, days_ago=300 - number / 2) for number in range(600)]


def test_a_node_that_holds_few_of_very_many_gets_the_update_of_a_known_key_the_same_night(
    old_files: list[bytes],
) -> None:
    left, right = node_of(*old_files[::100]), node_of(*old_files)
    right.put(of_day(200, days_ago=0.1, texts=(0, 1)))
    seen: list[Request] = []
    report = _run(left, Terse(right), seen, Allowance(FEW), REACH)
    assert left.files[key(200).public.hex].data == right.files[key(200).public.hex].data
    assert report.taken == {"newer": 1, "new": 5}
    assert report.rounds <= REACH.rounds
    asked = next(wire.read_fetch(one.body) for one in seen if one.path == wire.FETCH)
    newest = {one.id for one in right.heads(asked.ids[:10])}
    assert asked.heads
    assert claim_id(of_day(200, days_ago=0.1, texts=(0, 1))) in newest, "the newest are asked for first"


def test_what_very_many_have_goes_to_few_from_the_newest_on(old_files: list[bytes]) -> None:
    left, right = node_of(*old_files), node_of(*old_files[::100])
    left.put(of_day(200, days_ago=0.1, texts=(0, 1)))
    _run(left, Terse(right), [], Allowance(FEW), REACH)
    assert right.files[key(200).public.hex].data == left.files[key(200).public.hex].data


def test_night_by_night_two_sides_that_have_little_in_common_end_with_one_map(old_files: list[bytes]) -> None:
    left, right = node_of(*old_files[:350:2]), node_of(*old_files[1::2])
    budget = Budget(bytes=1 << 30, checks=1 << 30, origins=60)
    for night in range(40):
        _run(left, Terse(right, budget), [], Allowance(budget), REACH, seed=night)
        if left.map() == right.map():
            break
    assert left.map() == right.map()
    assert len(left.files) == 175 + 300


def test_heads_take_half_of_an_allowance_and_leave_the_rest_to_files() -> None:
    left, crowd = node_of(said(1)), _Crowd(20_000)
    allowance = Allowance(Budget(bytes=4 << 20, checks=1 << 30, origins=100))
    seen: list[Request] = []
    report = _run(left, crowd, seen, allowance)
    asked = [wire.read_fetch(one.body) for one in seen if one.path == wire.FETCH]
    assert [one.heads for one in asked] == [True, True, True, False]
    assert report.waiting == report.lacked - 3 * wire.FETCH_IDS
    assert report.skipped == 3 * wire.FETCH_IDS - 100
    assert allowance.bytes_left > 1 << 20


def test_what_has_no_head_takes_half_of_an_allowance() -> None:
    left, crowd = node_of(said(1)), _Crowd(20_000, is_headless=True)
    allowance = Allowance(Budget(bytes=6 << 20, checks=1 << 30, origins=100))
    report = _run(left, crowd, [], allowance)
    assert report.waiting > 5_000
    assert allowance.bytes_left > 2 << 20


def test_of_what_is_neither_all_nor_newest_a_sample_is_looked_at() -> None:
    left, crowd = node_of(said(1)), _Crowd(40_000)
    allowance = Allowance(Budget(bytes=1 << 30, checks=1 << 30, origins=100))
    samples = []
    for night in range(2):
        seen: list[Request] = []
        report = _run(left, crowd, seen, allowance, Reach(rounds=16, differences=40_000), seed=night)
        asked = [wire.read_fetch(one.body) for one in seen if one.path == wire.FETCH]
        samples.append({one for some in asked if some.heads for one in some.ids})
        assert report.waiting == report.lacked - len(samples[-1])
    assert {len(sample) for sample in samples} == {4 * wire.FETCH_IDS}
    assert len(samples[0] | samples[1]) > 5 * wire.FETCH_IDS


def claim_id(data: bytes) -> bytes:
    claim = claim_of(data)
    assert claim is not None
    return claim.id


def _run(
    node: MapNode,
    peer: Peer,
    seen: list[Request],
    allowance: Allowance | None = None,
    reach: Reach = REACH_OF_ALL,
    seed: int = 0,
) -> Report:
    exchange = Exchange(node, "peer", allowance or Allowance(PLENTY), Random(seed), now=NOW, reach=reach)
    steps = exchange.steps()
    try:
        request = next(steps)
        while True:
            seen.append(request)
            request = steps.send(peer.answer(request))
    except StopIteration:
        pass
    return exchange.report


class _Crowd(Peer):
    """One that says that it has very many items, and of each that it is blocked there.

    Args:
        count: how many.
        is_headless: whether it gives no heads of them.
    """

    def __init__(self, count: int, *, is_headless: bool = False) -> None:
        super().__init__(MapNode("crowd"))
        self._is_headless = is_headless
        random = Random(1)
        self._items = Vector(Item(1_700_000_000 + number, random.randbytes(32)) for number in range(count))

    def answer(self, request: Request, source: str = "caller") -> Answer:
        if request.path == wire.RECONCILE:
            return Answer(200, Reconciler(self._items, wire.FRAME_BYTES).answer(request.body))
        if request.path == wire.OFFER:
            return super().answer(request, source)
        asked = wire.read_fetch(request.body)
        if asked.heads:
            heads = [] if self._is_headless else [Head(one, one.hex(), 1, 500) for one in asked.ids]
            return Answer(200, b"".join(map(wire.write_head, heads)))
        return Answer(200, b"".join(wire.write_part(Blocked(one, "spam" * 40)) for one in asked.ids))


class _Liar(MapNode):
    """A node that does not hand out what it says that it has."""

    def __init__(self, *, instead: bytes = b"", besides: bytes = b"", silent: bool = False) -> None:
        super().__init__("liar")
        self._instead, self._besides, self._silent = instead, besides, silent

    def parts(self, ids: Sequence[bytes]) -> Iterator[Part]:
        if self._silent:
            return
        for part in super().parts(ids):
            yield Whole(part.id, self._instead) if self._instead else part
        if self._besides:
            yield Whole(bytes(32), self._besides)
