"""Commons that gossip with each other over loopback: rounds, pushes, and what they remember of each other."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import httpx
import pytest
from sqlalchemy import select

from remem.protocol import SigningKey
from remem_gossip.addresses import Allowed, read_url
from remem_gossip.dial import Dial
from remem_server.database import tables
from remem_server.database.engine import writing
from remem_server.files.accept import accept_file
from remem_server.gossip import peers, rounds
from remem_server.opening.context import Commons
from remem_server.upkeep.audit import audit
from remem_testkit.files import NOW, file, key, lesson, sentence
from remem_testkit.nodes import MapNode, Peer
from remem_testkit.served import served
from remem_testkit.server import HandClock, ServedCommons

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


def test_what_one_peer_costs_in_a_night_is_kept_whether_it_is_asked_or_offers(start: Start) -> None:
    clock = HandClock(datetime.now(UTC))
    commons, node = start(clock=clock, gossip_newcomers=10), MapNode()
    for number in range(25):
        node.put(said(number))

    def dial(of: Commons, peer: peers.Peer) -> Dial:
        # Signed by the clock of whoever answers.
        return Dial(peer.address, of.key, lambda: datetime.now(UTC), allowed=peer.allowed)

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
    assert added.status == 0, added.err
    assert node[:16] in operator("peers", "list").out
    assert f"key {node}" in operator("peers", "check").out
    assert httpx.get(f"{one.url}/.well-known/remem").json()["peers"] == [other.url]
    put(other, (key(1), said(1)))
    done = operator("gossip")
    assert (done.status, "1 new file and 0 newer came" in done.out) == (0, True), done.err
    assert operator("peers", "remove", "http://nobody.example").status == 1


def test_the_description_says_nothing_of_peers_that_are_not_published(both: tuple[ServedCommons, ...]) -> None:
    assert httpx.get(f"{both[0].url}/.well-known/remem").json()["peers"] == []


def test_a_data_folder_holds_the_lock_of_rounds(start: Start, database: str, tmp_path: Path) -> None:
    commons = start()
    with rounds.alone(commons.commons):
        assert (commons.settings.data / "lock.gossip").exists() is (database == "sqlite")
