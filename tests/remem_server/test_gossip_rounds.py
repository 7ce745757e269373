"""Commons that gossip with each other over loopback: rounds, pushes, and what they remember of each other."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import httpx
import pytest
from sqlalchemy import select

from remem.protocol import SigningKey
from remem_gossip import wire
from remem_gossip.addresses import Allowed, read_url
from remem_gossip.choosing import Standing
from remem_gossip.dial import Dial
from remem_gossip.exchange import Answer, Request
from remem_gossip.spans import Span
from remem_server.database import tables
from remem_server.database.engine import writing
from remem_server.files.accept import accept_file
from remem_server.gossip import peers, rounds, spending
from remem_server.opening.context import Commons
from remem_server.upkeep.audit import audit
from remem_testkit.files import NOW, file, key, lesson, sentence
from remem_testkit.nodes import MapNode, Peer
from remem_testkit.served import Served, served
from remem_testkit.server import HandClock, ServedCommons
from remem_testkit.ticks import Ticks

Start = Callable[..., ServedCommons]
Ask = Callable[..., httpx.Client]
ALLOWED = Allowed(http=True, private=True)


def said(number: int, version: int = 0, at: datetime = NOW) -> bytes:
    return file(key(number), [lesson(sentence(number))], at=at + timedelta(seconds=version))


def put(commons: ServedCommons, *files: tuple[SigningKey, bytes]) -> None:
    for signer, data in files:
        accept_file(commons.engine, data, name=signer.public.hex, secret=None, token_needed=False, now=commons.clock())


def befriend(one: ServedCommons, other: ServedCommons) -> None:
    """Let two commons be peers, each of the other, as `peers add` does."""
    for left, right in ((one, other), (other, one)):
        with writing(left.engine) as connection:
            peers.add(connection, read_url(right.url, ALLOWED), ALLOWED, left.clock(), publish=False)
            peers.note_key(connection, right.url, right.commons.key.public.hex)


def map_of(commons: ServedCommons) -> dict[str, str]:
    with commons.engine.connect() as connection:
        held = {row.key: row.digest for row in connection.execute(select(tables.files.c.key, tables.files.c.digest))}
        proven = connection.execute(select(tables.proofs.c.key)).scalars().all()
    return held | {f"proof {one}": "" for one in proven}


@pytest.fixture
def both(start: Start) -> tuple[ServedCommons, ServedCommons]:
    """Return two commons with clocks that run, since what is signed is good for minutes alone."""
    one, other = (start(name, clock=lambda: datetime.now(UTC)) for name in ("data", "other"))
    befriend(one, other)
    return one, other


def test_two_commons_hold_the_same_after_one_exchange(both: tuple[ServedCommons, ServedCommons]) -> None:
    one, other = both
    put(one, *((key(n), said(n)) for n in range(20)), (key(30), said(30, 9)), (key(40), said(40)))
    put(other, *((key(n), said(n)) for n in range(10, 30)), (key(30), said(30, 2)))
    put(other, (key(40), file(key(40), [lesson(sentence(41))])))
    (met,) = rounds.go_round(one.commons, Random(1))
    assert met.code is None
    assert met.report.unlisted is False
    rounds.go_round(other.commons, Random(1))
    assert map_of(one) == map_of(other)
    assert f"proof {key(40).public.hex}" in map_of(one)
    for commons in both:
        assert not list(audit(commons.engine, commons.clock()))
    (again,) = rounds.go_round(one.commons, Random(1))
    assert (again.report.rounds, again.report.promised, again.report.offered) == (1, 0, 0)


def test_a_peer_that_is_not_there_is_left_alone_for_a_while(start: Start) -> None:
    clock = HandClock(datetime.now(UTC))
    commons = start(clock=clock)
    with writing(commons.engine) as connection:
        peers.add(connection, read_url("http://127.0.0.1:9", ALLOWED), ALLOWED, clock(), publish=False)
    (met,) = rounds.go_round(commons.commons, Random(1))
    assert (met.code, met.again) == ("peer_unreachable", clock() + timedelta(hours=1))
    assert rounds.go_round(commons.commons, Random(1)) == []
    clock.advance(timedelta(hours=1))
    (met,) = rounds.go_round(commons.commons, Random(1))
    assert met.again == clock() + timedelta(hours=2)


class Slow(Peer):
    """Takes its time for each answer."""

    def __init__(self, node: MapNode, after: Callable[[], object]) -> None:
        super().__init__(node)
        self._after = after

    def answer(self, request: Request, source: str = "caller") -> Answer:
        answer = super().answer(request, source)
        self._after()
        return answer


def list_peer(commons: ServedCommons, peer: Served) -> None:
    peer.key = SigningKey.from_seed(peer.url.encode().rjust(32)).public.hex
    with writing(commons.engine) as connection:
        peers.add(connection, read_url(peer.url, ALLOWED), ALLOWED, commons.clock(), publish=False)


def standings(commons: ServedCommons) -> dict[str, Standing]:
    with commons.engine.connect() as connection:
        return {peer.url: peer.standing for peer in peers.list_all(connection)}


def node_of(*numbers: int) -> MapNode:
    node = MapNode()
    for number in numbers:
        node.put(said(number))
    return node


def test_a_round_among_slow_peers_ends_and_they_rest(start: Start) -> None:
    commons, ticks = start(clock=lambda: datetime.now(UTC), gossip_minutes=0), Ticks()
    with ExitStack() as stack:
        for number in range(5):
            slow = Slow(node_of(number), lambda: ticks.advance(rounds.PEER_SECONDS))
            list_peer(commons, stack.enter_context(served(slow)))
        time = Span(rounds.ROUND_SECONDS, clock=ticks)
        met = rounds.go_round(commons.commons, Random(1), time=time)
    assert [one.code for one in met] == ["peer_timeout"] * 3
    assert ticks.now == rounds.ROUND_SECONDS
    assert sorted(one.failures for one in standings(commons).values()) == [0, 0, 1, 1, 1]
    assert map_of(commons) == {}


def test_a_server_that_ends_blames_no_peer_for_it(start: Start) -> None:
    commons, life = start(clock=lambda: datetime.now(UTC), gossip_minutes=0), Span()
    with served(Slow(node_of(1), life.end)) as peer:
        list_peer(commons, peer)
        (met,) = rounds.go_round(commons.commons, Random(1), time=Span(rounds.ROUND_SECONDS, within=life))
    assert (met.code, met.again) == ("peer_timeout", None)
    assert standings(commons)[peer.url].failures == 0


def test_what_another_server_takes_of_a_peer_meanwhile_counts_too(start: Start) -> None:
    commons = start(clock=lambda: datetime.now(UTC), gossip_minutes=0, gossip_newcomers=400)
    budget = spending.budget_of_peer(commons.settings)

    def meanwhile() -> None:
        if peer.asked.count(wire.FETCH) == 2:
            other = spending.account(commons.engine, peer.url, budget, commons.clock())
            other.charge(origins=300)
            other.settle()

    with served(Slow(node_of(*range(600)), meanwhile)) as peer:
        list_peer(commons, peer)
        (met,) = rounds.go_round(commons.commons, Random(1))
    assert met.code is None, met.detail
    # Beyond the budget went the one batch that was on its way.
    assert met.report.taken == {"new": 256}
    assert spending.account(commons.engine, peer.url, budget, commons.clock()).spent.origins == 300 + 256


def test_what_one_peer_costs_in_a_night_is_kept_whether_it_is_asked_or_offers(start: Start) -> None:
    clock = HandClock(datetime.now(UTC))
    commons, node = start(clock=clock, gossip_newcomers=10), MapNode()
    for number in range(25):
        node.put(said(number))

    def dial(of: Commons, peer: peers.Peer, time: Span) -> Dial:
        # Signed by the clock of whoever answers.
        return Dial(peer.address, of.key, lambda: datetime.now(UTC), allowed=peer.allowed, time=time)

    with served(Peer(node)) as peer:
        peer.key = key(900).public.hex
        with writing(commons.engine) as connection:
            peers.add(connection, read_url(peer.url, ALLOWED), ALLOWED, clock(), publish=False)
        taken = []
        for days in (0, 0, 1):
            clock.advance(timedelta(days=days))
            (met,) = rounds.go_round(commons.commons, Random(1), dialling=dial)
            assert met.code is None, met.detail
            taken.append(met.report.taken.get("new", 0))
        assert taken == [10, 0, 10]
        with commons.engine.connect() as connection:
            (known,) = peers.list_all(connection)
    assert known.key == peer.key
    assert known.standing.delivered == known.standing.promised == 20


def test_a_publication_is_pushed_to_peers_at_once_and_by_them_to_theirs(start: Start, ask: Ask) -> None:
    names = ("data", "second", "third")
    one, two, three = (start(name, clock=lambda: datetime.now(UTC), gossip_minutes=0) for name in names)
    befriend(one, two)
    befriend(two, three)
    me = key(7)
    data = said(7, at=datetime.now(UTC))
    client = ask(one, one.token())
    assert client.put(f"/commons/{me.public.hex}.jsonl", content=data).status_code == 201
    deadline = time.monotonic() + 20
    while me.public.hex not in map_of(three) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert map_of(one) == map_of(two) == map_of(three)


def test_a_file_that_was_sealed_long_ago_is_not_pushed(start: Start, ask: Ask) -> None:
    one, two = (start(name, clock=lambda: datetime.now(UTC), gossip_minutes=0) for name in ("data", "second"))
    befriend(one, two)
    client = ask(one, one.token())
    old = said(7, at=datetime.now(UTC) - timedelta(days=2))
    assert client.put(f"/commons/{key(7).public.hex}.jsonl", content=old).status_code == 201
    time.sleep(0.6)
    assert map_of(two) == {}


def test_a_server_goes_rounds_by_itself(start: Start) -> None:
    options: dict[str, Any] = {"clock": lambda: datetime.now(UTC), "gossip_minutes": 0.003}
    two = start("second", clock=options["clock"], gossip_minutes=0)
    put(two, (key(1), said(1)))
    one = start("data", **options)
    befriend(one, two)
    deadline = time.monotonic() + 20
    while not map_of(one) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert map_of(one) == map_of(two)
    metrics = httpx.get(f"{one.url}/metrics").text
    assert 'remem_gossiped_total{by="exchange",outcome="new"} 1.0' in metrics


def test_one_server_of_several_is_in_a_round(start: Start) -> None:
    commons = start().commons
    with rounds.alone(commons) as first, rounds.alone(commons) as second:
        assert (first, second) == (True, False)
    with rounds.alone(commons) as again:
        assert again


def test_peers_are_added_shown_checked_and_removed(both: tuple[ServedCommons, ServedCommons], operator: Any) -> None:
    one, other = both
    node = other.commons.key.public.hex
    assert operator("peers", "remove", other.url).status == 0
    assert operator("peers", "list", "--json").out.strip() == "[]"
    refused = operator("peers", "add", other.url)
    assert (refused.status, "--allow-http" in refused.err) == (2, True)
    added = operator("peers", "add", other.url, "--allow-http", "--allow-private", "--publish")
    words = f"{other.url}: key {node}, takes files of those it knows\n"
    assert (added.status, added.out, added.err) == (0, f"{other.url} is a peer now\n{words}", "")
    assert node[:16] in operator("peers", "list").out
    checked = operator("peers", "check")
    assert (checked.out, checked.err) == (words, "")
    with writing(one.engine) as connection:
        peers.note_key(connection, other.url, "ab" * 32)
    assert f"{other.url} names key {node}, and named {'ab' * 32} before" in operator("peers", "check").err
    assert httpx.get(f"{one.url}/.well-known/remem").json()["peers"] == [other.url]
    put(other, (key(1), said(1)))
    done = operator("gossip")
    assert (done.status, "1 new file and 0 newer came" in done.out) == (0, True), done.err
    assert operator("peers", "remove", "http://nobody.example").status == 1


def test_a_peer_that_does_not_answer_is_added_all_the_same_with_a_warning(
    commons: ServedCommons, operator: Any
) -> None:
    url = "http://127.0.0.1:9"
    added = operator("peers", "add", url, "--allow-http", "--allow-private")
    assert (added.status, added.out) == (0, f"{url} is a peer now\n")
    assert f"it did not say who it is: {url}: peer_unreachable: " in added.err
    assert "remem-server peers check" in added.err
    assert operator("peers", "check").status == 4
    assert standings(commons)[url].failures == 0


def test_a_round_that_is_asked_for_ends_as_that_of_a_memory_does(
    both: tuple[ServedCommons, ServedCommons], operator: Any
) -> None:
    one, other = both
    silent = "http://127.0.0.1:9"
    with writing(one.engine) as connection:
        peers.add(connection, read_url(silent, ALLOWED), ALLOWED, one.clock(), publish=False)
    # One of those that were chosen by themselves may be silent.
    assert operator("gossip").status == 0
    assert operator("gossip", silent).status == 4
    assert operator("gossip", silent, other.url).status == 5
    assert operator("peers", "remove", other.url).status == 0
    with writing(one.engine) as connection:
        peers.add(connection, read_url(silent, ALLOWED), ALLOWED, one.clock(), publish=False)
    assert operator("gossip").status == 4
    resting = operator("gossip")
    assert (resting.status, "remem-server gossip URL asks it anyway" in resting.err) == (4, True)
    assert operator("peers", "remove", silent).status == 0
    nobody = operator("gossip")
    assert (nobody.status, "remem-server peers add" in nobody.err) == (1, True)


def test_a_good_check_ends_the_rest_of_a_peer(both: tuple[ServedCommons, ServedCommons], operator: Any) -> None:
    one, other = both
    with writing(one.engine) as connection:
        assert peers.note_failed(connection, other.url, one.clock()) is not None
    assert operator("gossip").status == 4
    assert operator("peers", "check").status == 0
    assert standings(one)[other.url] == Standing(other.url)
    assert operator("gossip").status == 0


def test_whoever_adds_this_commons_itself_is_told_and_it_is_not_asked(start: Start, operator: Any) -> None:
    commons = start(clock=lambda: datetime.now(UTC), gossip_minutes=0)
    itself = f"{commons.url}: it is this commons itself, and an exchange with it moves nothing"
    for url in (commons.url, commons.url.replace("127.0.0.1", "localhost")):
        added = operator("peers", "add", url, "--allow-http", "--allow-private")
        assert (added.status, f"{url}: {itself.partition(': ')[2]}" in added.err) == (0, True)
    assert rounds.go_round(commons.commons, Random(1)) == []


def test_a_private_commons_without_names_is_told_which_setting_lets_its_peers_read(
    start: Start, operator: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    start(clock=lambda: datetime.now(UTC), gossip_minutes=0)
    words = ("peers", "add", "http://127.0.0.1:9", "--allow-http", "--allow-private")
    assert "REMEM_NAMES" not in operator(*words).err
    monkeypatch.setenv("REMEM_PRIVATE", "true")
    assert "REMEM_NAMES" in operator(*words).err
    monkeypatch.setenv("REMEM_NAMES", "commons.example")
    assert "REMEM_NAMES" not in operator(*words).err


def test_the_description_says_nothing_of_peers_that_are_not_published(both: tuple[ServedCommons, ...]) -> None:
    assert httpx.get(f"{both[0].url}/.well-known/remem").json()["peers"] == []


def test_a_data_folder_holds_the_lock_of_rounds(start: Start, database: str, tmp_path: Path) -> None:
    commons = start()
    with rounds.alone(commons.commons):
        assert (commons.settings.data / "lock.gossip").exists() is (database == "sqlite")
