"""A memory's nights among peers over real sockets: whom it asks, what it keeps, what it notes of each."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from datetime import timedelta
from random import Random

import pytest

from remem.memory import holdings, items, places
from remem.memory.store import transaction
from remem_gossip import night as nights
from remem_gossip import peers as book
from remem_gossip import wire
from remem_gossip.addresses import Allowed, read_url
from remem_gossip.budget import Allowance, Budget
from remem_gossip.dial import Dial
from remem_gossip.exchange import Answer, Exchange, Request
from remem_gossip.failures import TooSlow
from remem_gossip.meeting import meet
from remem_gossip.memory_node import open_memory
from remem_gossip.night import NightReport, dial_peer, gossip
from remem_gossip.peers import Peer as Listed
from remem_testkit.files import NOW, file, key, lesson, sentence
from remem_testkit.memories import Memory
from remem_testkit.nodes import PLENTY, MapNode, Peer
from remem_testkit.served import Served, served

Make = Callable[[int], Memory]
ALL = Allowed(http=True, private=True)


def said(number: int, version: int = 0) -> bytes:
    return file(key(number), [lesson(sentence(number))], at=NOW + timedelta(seconds=version))


def node_of(*files: bytes) -> MapNode:
    node = MapNode()
    for data in files:
        node.put(data)
    return node


def holds(memory: Memory) -> dict[str, str]:
    return {name: held.version.digest for name, held in holdings.holdings(memory.db).items()}


def add(memory: Memory, url: str) -> None:
    with transaction(memory.db):
        book.add(memory.db, read_url(url, ALL), ALL, memory.now)


def night(memory: Memory, *only: str, exchanges: int = 3) -> NightReport:
    return gossip(memory.home, memory.db, now=memory.now, random=Random(1), only=only or None, exchanges=exchanges)


def nobody() -> str:
    """Return an address where nobody answers."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return f"http://127.0.0.1:{listening.getsockname()[1]}"


@contextmanager
def all_served(*nodes: MapNode) -> Iterator[list[Served]]:
    with ExitStack() as stack:
        yield [stack.enter_context(served(Peer(node))) for node in nodes]


def test_three_nodes_hold_one_map_after_one_night_each(make: Make) -> None:
    one, other, commons = make(1), make(2), node_of(said(10))
    one.learn(sentence(1))
    one.share(one.home.path.parent)
    with all_served(commons) as (there,):
        for memory in (one, other):
            add(memory, there.url)
        night(one)
        night(other)
        assert holds(other) == commons.map()
        assert set(holds(other)) == {key(1).public.hex, key(10).public.hex}
        assert there.callers[0] == one.name
        assert there.callers[-1] == other.name
        # Nothing is new any more: one question finds that out.
        there.asked.clear()
        night(other)
        assert there.asked == [wire.RECONCILE]


def test_another_peer_is_tried_where_one_does_not_answer_and_that_one_rests(make: Make) -> None:
    memory, dead = make(1), [nobody() for _ in range(2)]
    with all_served(node_of(said(10))) as (there,):
        for url in (*dead, there.url):
            add(memory, url)
        report = night(memory, exchanges=1)
        failed = [met for met in report.met if met.code is not None]
        assert report.met[-1].peer == there.url
        assert report.met[-1].code is None
        assert {met.code for met in failed} <= {"peer_unreachable"}
        report = night(memory)
        rest = {peer.url for peer in book.peers(memory.db) if peer.standing.failures}
        assert rest == set(dead)
        assert set(report.resting) <= rest
        again = night(memory)
        assert set(again.resting) == rest
        assert [met.peer for met in again.met] == [there.url]
        # Who is named is asked whether or not it is to rest, and rests for longer then.
        (met,) = night(memory, dead[0]).met
        assert met.code == "peer_unreachable"
        assert met.again is not None
        assert met.again > memory.now + timedelta(hours=1)
        memory.later(hours=3)
        assert night(memory).resting == ()


def test_a_night_without_a_network_ends(make: Make) -> None:
    memory = make(1)
    for _number in range(12):
        add(memory, nobody())
    report = night(memory)
    assert len(report.met) == 9
    assert {met.code for met in report.met} == {"peer_unreachable"}


def test_no_more_than_a_few_peers_are_asked(make: Make) -> None:
    memory = make(1)
    with all_served(*(node_of(said(number)) for number in range(10, 15))) as there:
        for one in there:
            add(memory, one.url)
        assert len(night(memory).met) == 3
        assert sum(bool(one.asked) for one in there) == 3


def test_a_peer_that_cuts_is_noted_and_what_came_is_kept(make: Make) -> None:
    memory = make(1)
    with all_served(node_of(*(said(number) for number in range(10, 400)))) as (there,):
        add(memory, there.url)
        there.cut_after = 2
        report = night(memory)
        assert report.met[0].code is not None
        assert len(holds(memory)) == 256
        assert report.met[0].report.taken == {"new": 256}
        there.cut_after = None
        memory.later(hours=2)
        report = night(memory)
        assert report.met[0].code is None
        assert len(holds(memory)) == 390


def test_what_a_peer_costs_in_a_night_is_kept_over_restarts(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nights, "MEMORY_BUDGET", Budget(bytes=1 << 30, checks=1 << 30, origins=10))
    memory = make(1)
    with all_served(node_of(*(said(number) for number in range(10, 60)))) as (there,):
        add(memory, there.url)
        for expected in (10, 10):
            night(memory)
            assert len(holds(memory)) == expected
        assert book.spent(memory.db, there.url, memory.now).origins == 10
        memory.later(days=1)
        night(memory)
        assert len(holds(memory)) == 20


class Silent(Peer):
    """Says that it has everything, and delivers nothing of it."""

    def answer(self, request: Request, source: str = "caller") -> Answer:
        return Answer(200, b"") if request.path == wire.FETCH else super().answer(request, source)


def test_a_peer_that_delivers_nothing_it_promised_sinks(make: Make) -> None:
    memory = make(1)
    with served(Silent(node_of(*(said(number) for number in range(10, 60))))) as there:
        add(memory, there.url)
        night(memory)
        (peer,) = book.peers(memory.db)
        assert (peer.standing.promised, peer.standing.delivered) == (50, 0)
        assert peer.standing.word < 0.05


def test_a_commons_that_is_pulled_from_is_a_peer_until_it_is_not(make: Make) -> None:
    memory = make(1)
    with transaction(memory.db):
        for target in ("http://127.0.0.1:8000", "https://commons.example", "/folder", "https://10.0.0.1"):
            places.note_pulled(memory.db, target, None, NOW)
    found = {peer.url: peer for peer in book.known_peers(memory.db, NOW)}
    assert set(found) == {"http://127.0.0.1:8000", "https://commons.example", "https://10.0.0.1"}
    assert {peer.source for peer in found.values()} == {"pull"}
    assert found["http://127.0.0.1:8000"].allowed == ALL
    assert found["https://commons.example"].allowed == Allowed()
    assert found["https://10.0.0.1"].allowed == Allowed(private=True)
    add(memory, "https://10.0.0.1")
    with transaction(memory.db):
        for target in found:
            places.forget(memory.db, target)
    assert [peer.url for peer in book.known_peers(memory.db, NOW)] == ["https://10.0.0.1"]


def test_the_token_of_a_commons_goes_with_what_it_is_asked(make: Make) -> None:
    memory = make(1)
    memory.home.config_path.write_text('[[targets]]\naddress = "https://a.example"\ntoken = "secret"\n')
    add(memory, "https://a.example")
    add(memory, "https://b.example")
    tokens: dict[str, str | None] = {}

    def dialling(peer: Listed, signer: object, token: str | None) -> Dial:
        tokens[peer.url] = token
        return dial_peer(peer, memory.key, token)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("remem_gossip.network.socket.getaddrinfo", _no_name)
        report = gossip(memory.home, memory.db, now=NOW, random=Random(1), dialling=dialling)
    assert tokens == {"https://a.example": "secret", "https://b.example": None}
    assert {met.code for met in report.met} == {"peer_name"}


def _no_name(*_words: object, **_more: object) -> object:
    raise OSError("no such name")


def test_an_exchange_takes_no_longer_than_it_may(make: Make) -> None:
    memory = make(1)
    with all_served(node_of(said(10))) as (there,):
        add(memory, there.url)
        (peer,) = book.peers(memory.db)
        with open_memory(memory.home, memory.db, now=NOW, random=Random(1)) as node:
            exchange = Exchange(node, peer.url, Allowance(PLENTY), Random(1))
            with pytest.raises(TooSlow), closing(dial_peer(peer, memory.key, None)) as dial:
                meet(exchange, dial, seconds=-1)
        assert there.asked == []


def test_a_connection_that_breaks_at_any_byte_leaves_both_sides_valid_and_the_next_night_goes_on(make: Make) -> None:
    memory, commons = make(1), node_of(*(said(number) for number in range(10, 20)))
    memory.learn(sentence(1))
    memory.share(memory.home.path.parent)
    with all_served(commons) as (there,):
        add(memory, there.url)
        random = Random(4)
        for broken in range(25):
            # Something is new on both sides each time.
            there.sent, there.cut_at = 0, random.choice((random.randrange(300), random.randrange(12_000)))
            commons.put(said(30 + broken))
            night(memory, there.url)
            assert items.check(memory.db) == []
            for name, held in holdings.holdings(memory.db).items():
                assert name == memory.name or held.version == commons.files[name].version
        there.cut_at = None
        night(memory, there.url)
    assert holds(memory) == commons.map()


# --- what is kept of peers ---


def test_exchanges_beside_each_other_cost_a_peer_what_both_do(make: Make) -> None:
    memory, one, other = make(1), Budget(5, 6, 7), Budget(10, 20, 30)
    with transaction(memory.db):
        book.note_spent(memory.db, "https://a.example", Budget(), one, NOW)
        book.note_spent(memory.db, "https://a.example", Budget(), other, NOW)
    assert book.spent(memory.db, "https://a.example", NOW) == Budget(15, 26, 37)
    later = NOW + timedelta(days=2)
    assert book.spent(memory.db, "https://a.example", later) == Budget()
    with transaction(memory.db):
        book.note_spent(memory.db, "https://b.example", Budget(), one, later)
    assert memory.db.execute("SELECT count(*) FROM spent").fetchone()[0] == 1


def test_no_peer_lives_on_its_past_for_ever(make: Make) -> None:
    memory = make(1)
    add(memory, "https://a.example")
    with transaction(memory.db):
        book.note_word(memory.db, "https://a.example", promised=100_000, delivered=100_000)
        for _night in range(30):
            book.note_word(memory.db, "https://a.example", promised=2_000, delivered=0)
    (peer,) = book.peers(memory.db)
    assert peer.standing.word < 0.05


def test_who_is_added_again_may_be_asked_at_once(make: Make) -> None:
    memory = make(1)
    add(memory, "https://a.example")
    with transaction(memory.db):
        again = [book.note_failed(memory.db, "https://a.example", NOW) - NOW for _time in range(20)]
    assert again[:3] == [timedelta(hours=1), timedelta(hours=2), timedelta(hours=4)]
    assert again[-1] == timedelta(days=7)
    assert book.find(memory.db, "https://a.example").standing.next_try == NOW + timedelta(days=7)
    add(memory, "https://a.example")
    assert book.find(memory.db, "https://a.example").standing.next_try is None
