"""What each kind of liar can make of an exchange, and what it costs the liar."""

from __future__ import annotations

import pytest

from remem_gossip import wire
from remem_gossip.budget import Allowance, Budget
from remem_gossip.errors import GossipError
from remem_gossip.exchange import Answer, Exchange, Request
from remem_gossip.parts import Missing, Whole
from remem_testkit.files import NOW, file, key, lesson, sentence
from remem_testkit.hostile import Endless, Forger, Garbler, Hollow, Hostile, Refuser, Silent, Stale, WrongIds
from remem_testkit.nodes import PLENTY, MapNode, Peer, run


def said(number: int, seal: int = 1) -> bytes:
    return file(key(number), [lesson(sentence(seal))], seal=seal)


def large(number: int) -> bytes:
    """Make a file of nearly as many bytes as one may have, in few lines."""
    return file(key(number), [{"line": line, "padding": "." * 7_500} for line in range(32)])


def node_of(*files: bytes) -> MapNode:
    node = MapNode()
    for data in files:
        node.put(data)
    return node


def exchange_with(node: MapNode, peer: Hostile | Peer, allowance: Allowance | None = None) -> Exchange:
    exchange = Exchange(node, peer.name, allowance or Allowance(PLENTY), node.random, now=node.clock())
    run(exchange, peer, node.name)
    return exchange


class Counting(Peer):
    """A peer that counts what it is asked, and may leave things out of its answers."""

    def __init__(self, node: MapNode, *, keeps: int | None = None, is_gone: bool = False) -> None:
        super().__init__(node)
        self.asked: list[str] = []
        self._keeps, self._is_gone = keeps, is_gone

    def answer(self, request: Request, source: str = "caller") -> Answer:
        self.asked.append(request.path)
        if request.path != wire.FETCH or (self._keeps is None and not self._is_gone):
            return super().answer(request, source)
        ids = wire.read_fetch(request.body).ids
        parts = [Missing(one) for one in ids] if self._is_gone else list(self.node.parts(ids))[: self._keeps]
        return Answer(200, b"".join(map(wire.write_part, parts)))


@pytest.mark.parametrize("kind", [Silent, Refuser, Garbler, Endless], ids=lambda kind: kind.kind)
def test_a_peer_that_does_not_play_along_ends_the_exchange_with_our_own_error(kind: type[Hostile]) -> None:
    for seed in range(10):
        with pytest.raises(GossipError):
            exchange_with(node_of(said(1)), kind("liar", NOW, seed))


def test_an_endless_reconciliation_is_left_behind_a_few_rounds() -> None:
    node = node_of(*(said(number) for number in range(100)))
    exchange = Exchange(node, "liar", Allowance(PLENTY), node.random, now=NOW)
    with pytest.raises(GossipError, match="something to learn"):
        run(exchange, Endless("liar", NOW, 1), "node")
    assert exchange.report.rounds <= 10


@pytest.mark.parametrize("kind", [Hollow, WrongIds, Forger], ids=lambda kind: kind.kind)
def test_a_liar_breaks_its_promises_and_is_offered_nothing(kind: type[Hostile]) -> None:
    node, liar = node_of(*(said(number) for number in range(20))), kind("liar", NOW, 1)
    for number in range(20):
        liar.hear(said(number, 2))
    before = node.map()
    report = exchange_with(node, liar).report
    assert report.promised > 0
    assert report.delivered == report.offered == 0
    assert node.map() == before


def test_stale_files_are_looked_at_once() -> None:
    node, liar = node_of(*(said(number, 5) for number in range(20))), Stale("liar", NOW, 1)
    for number in range(20):
        liar.hear(said(number, 2))
    before = node.map()
    assert exchange_with(node, liar).report.promised == 20
    assert exchange_with(node, liar).report.promised == 0
    assert node.map() == before


def test_what_is_left_out_although_there_was_room_is_a_broken_promise() -> None:
    peer = Counting(node_of(*(said(number) for number in range(600))), keeps=1)
    report = exchange_with(node_of(), peer).report
    assert (report.promised, report.delivered) == (256, 1)
    assert peer.asked.count(wire.FETCH) == 1


def test_a_peer_of_which_all_is_gone_is_not_asked_batch_by_batch() -> None:
    peer = Counting(node_of(*(said(number) for number in range(600))), is_gone=True)
    report = exchange_with(node_of(), peer).report
    assert report.delivered == 0
    assert peer.asked.count(wire.FETCH) == 1


def test_what_did_not_fit_is_asked_for_again() -> None:
    files = [large(number) for number in range(40)]
    node, peer = node_of(), Counting(node_of(*files))
    report = exchange_with(node, peer).report
    assert (report.promised, report.delivered, len(node.files)) == (40, 40, 40)
    assert peer.asked.count(wire.FETCH) == 2


def test_the_answer_that_goes_beyond_a_budget_is_taken_in_and_the_last() -> None:
    node, peer = node_of(), Counting(node_of(*(large(number) for number in range(40))))
    allowance = Allowance(Budget(bytes=1 << 20, checks=1 << 30, origins=100))
    exchange_with(node, peer, allowance)
    assert peer.asked.count(wire.FETCH) == 1
    assert 30 < len(node.files) < 40
    assert not allowance.is_open


def test_an_offer_is_charged_by_its_bytes_whatever_is_in_it() -> None:
    peer = Peer(node_of())
    body = wire.write_part(Whole(bytes(32), said(1)))
    for sent in (body, body, b"noise"):
        peer.answer(Request(wire.OFFER, sent, wire.VERDICTS_BYTES))
    assert peer.allowance("caller").spent.bytes == 2 * len(body) + len(b"noise")


def test_that_a_key_is_blocked_here_is_not_held_against_a_peer() -> None:
    node, peer = node_of(), Peer(node_of(said(1), said(2)))
    node.block(key(1).public.hex, "spam")
    first, second = (exchange_with(node, peer).report for _ in range(2))
    assert (first.promised, first.delivered) == (2, 2)
    assert second.promised == 0
