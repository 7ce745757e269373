"""A memory's nights among peers over real sockets: whom it asks, what it keeps, what it notes of each."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from random import Random

import pytest

from remem.memory import holdings, items, places
from remem.memory.store import transaction
from remem_gossip import night as nights
from remem_gossip import peers as book
from remem_gossip import wire
from remem_gossip.addresses import Allowed, read_url
from remem_gossip.budget import Budget
from remem_gossip.dial import Dial
from remem_gossip.exchange import Answer, Request
from remem_gossip.night import NightReport, dial_peer, gossip
from remem_gossip.peers import Peer as Listed
from remem_gossip.spans import Span
from remem_testkit.files import NOW, file, key, lesson, sentence
from remem_testkit.memories import Memory
from remem_testkit.nodes import PLENTY, MapNode, Peer
from remem_testkit.served import Served, served
from remem_testkit.ticks import Ticks

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

    def dialling(peer: Listed, signer: object, token: str | None, time: Span) -> Dial:
        tokens[peer.url] = token
        return dial_peer(peer, memory.key, token, time)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("remem_gossip.network.socket.getaddrinfo", _no_name)
        report = gossip(memory.home, memory.db, now=NOW, random=Random(1), dialling=dialling)
    assert tokens == {"https://a.example": "secret", "https://b.example": None}
    assert {met.code for met in report.met} == {"peer_name"}


def _no_name(*_words: object, **_more: object) -> object:
    raise OSError("no such name")


class Slow(Peer):
    """Takes its time for each answer."""

    def __init__(self, node: MapNode, ticks: Ticks, seconds: float = 100) -> None:
        super().__init__(node)
        self._ticks = ticks
        self._seconds = seconds

    def answer(self, request: Request, source: str = "caller") -> Answer:
        self._ticks.advance(self._seconds)
        return super().answer(request, source)


@contextmanager
def slow_ones(number: int, ticks: Ticks) -> Iterator[list[str]]:
    """Let some peers answer, each of them slowly."""
    with ExitStack() as stack:
        nodes = [node_of(said(20 + one)) for one in range(number)]
        yield [stack.enter_context(served(Slow(node, ticks))).url for node in nodes]


def test_a_night_among_slow_peers_ends_and_they_rest(make: Make) -> None:
    memory, ticks = make(1), Ticks()
    with slow_ones(5, ticks) as urls:
        for url in urls:
            add(memory, url)
        time = Span(nights.NIGHT_SECONDS, clock=ticks)
        report = gossip(memory.home, memory.db, now=NOW, random=Random(1), time=time)
    # Each answered once within its share, and was cut in its second answer.
    assert ticks.now == 3 * 200 == nights.NIGHT_SECONDS
    assert [(met.code, met.again is not None, met.report.rounds) for met in report.met] == [
        ("peer_timeout", True, 1)
    ] * 3
    assert len(report.resting) == 0
    assert sum(peer.standing.failures for peer in book.peers(memory.db)) == 3
    assert holds(memory) == {}


def test_a_slow_peer_leaves_time_for_another(make: Make) -> None:
    memory, ticks = make(1), Ticks()
    with slow_ones(2, ticks) as slow, all_served(node_of(said(10))) as (there,):
        for url in (*slow, there.url):
            add(memory, url)
        time = Span(nights.NIGHT_SECONDS, clock=ticks)
        report = gossip(memory.home, memory.db, now=NOW, random=Random(1), time=time)
    assert {met.peer: met.code for met in report.met} == {**dict.fromkeys(slow, "peer_timeout"), there.url: None}
    assert len(holds(memory)) == 1


@pytest.mark.parametrize(("files", "code"), [(int(nights.PEER_SECONDS), None), (1, "peer_timeout")])
def test_a_peer_that_brings_a_file_a_second_until_its_time_is_over_did_not_fail_and_one_that_brings_less_did(
    make: Make, files: int, code: str | None
) -> None:
    memory, ticks = make(1), Ticks()
    memory.learn(sentence(1))
    memory.share(memory.home.path.parent)
    commons = node_of(*(said(10 + number) for number in range(files)))
    # The third answer, that to the offer, is the one that comes too late.
    with served(Slow(commons, ticks, seconds=nights.PEER_SECONDS * 0.4)) as there:
        add(memory, there.url)
        time = Span(nights.NIGHT_SECONDS, clock=ticks)
        report = gossip(memory.home, memory.db, now=NOW, random=Random(1), time=time)
    assert [(met.code, met.report.taken, met.report.stand_there) for met in report.met] == [(code, {"new": files}, 0)]
    assert [peer.standing.failures for peer in book.peers(memory.db)] == [int(code is not None)]
    assert len(holds(memory)) == files + 1


def test_each_peer_that_is_named_has_its_share(make: Make) -> None:
    memory, ticks = make(1), Ticks()
    with slow_ones(5, ticks) as urls:
        for url in urls:
            add(memory, url)
        report = gossip(memory.home, memory.db, now=NOW, random=Random(1), only=urls, time=Span(clock=ticks))
    assert [met.code for met in report.met] == ["peer_timeout"] * 5


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
    memory, url = make(1), "https://a.example"
    one, other = (book.account(memory.db, url, PLENTY, NOW) for _ in range(2))
    one.charge(size=5, checks=6, origins=7)
    other.charge(size=10, checks=20, origins=30)
    one.settle()
    other.settle()
    assert book.spent(memory.db, url, NOW) == other.spent == Budget(15, 26, 37)
    later = NOW + timedelta(days=2)
    assert book.account(memory.db, url, PLENTY, later).spent == Budget()
    new = book.account(memory.db, "https://b.example", PLENTY, later)
    new.charge(size=1)
    new.settle()
    assert memory.db.execute("SELECT count(*) FROM spent").fetchone()[0] == 1


def test_no_peer_takes_the_name_of_another(make: Make) -> None:
    memory = make(1)
    for url in ("https://a.example", "https://b.example"):
        add(memory, url)
    with transaction(memory.db):
        assert book.note_key(memory.db, "https://a.example", "ab" * 32) is None
        assert book.note_key(memory.db, "https://b.example", "ab" * 32) == "https://a.example"
        assert book.note_key(memory.db, "https://a.example", "ab" * 32) is None
        assert book.note_key(memory.db, "https://c.example", "cd" * 32) is None
    assert [peer.key for peer in book.peers(memory.db)] == ["ab" * 32, None]


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
