"""A memory that accepts exchanges, over real sockets: with other memories, and with a commons."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from random import Random

import httpx
import pytest

from remem.memory import holdings, items
from remem.memory.config import set_target
from remem.memory.home import Home
from remem.memory.store import transaction
from remem.protocol import SigningKey
from remem_gossip import peers as book
from remem_gossip import wire
from remem_gossip.addresses import Allowed, read_url
from remem_gossip.night import gossip
from remem_gossip.parts import Whole
from remem_gossip.reconcile import Reconciler, Vector
from remem_gossip.signatures import sign
from remem_server.database.engine import writing
from remem_server.files.accept import accept_file
from remem_server.gossip import peers, rounds
from remem_server.upkeep.audit import audit
from remem_server.web.memory_app import Host, memory_app
from remem_server.web.serving import listen, make_server, url_of
from remem_testkit.files import file, key, lesson, sentence
from remem_testkit.memories import Memory
from remem_testkit.server import ServedCommons, plain_environment

Start = Callable[..., ServedCommons]
ALLOWED = Allowed(http=True, private=True)
NOW = datetime.now(UTC).replace(microsecond=0)


def clock() -> datetime:
    return datetime.now(UTC)


def said(number: int) -> bytes:
    return file(key(number), [lesson(sentence(number), at=NOW)], at=NOW)


@contextmanager
def node(path: Path, *, is_open: bool = False) -> Iterator[str]:
    """Let the memory of a home accept exchanges, and return its address."""

    @contextmanager
    def opening() -> Iterator[tuple[Home, object]]:
        home = Home.open(path)
        with closing(home.connect()) as db:
            yield home, db

    listening = listen("127.0.0.1", 0, or_any=False)
    app = memory_app(Host(opening, clock, is_open=is_open))  # type: ignore[arg-type]  # the connection, as it is
    server = make_server(app)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    try:
        yield url_of(listening)
    finally:
        server.should_exit = True
        thread.join(30)
        listening.close()


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Callable[[int], Memory]]:
    with ExitStack() as stack:

        def make(number: int) -> Memory:
            made = Memory(tmp_path / f"memory{number}", number, NOW)
            stack.callback(made.close)
            return made

        yield make


def list_peer(memory: Memory, url: str, of: SigningKey | str | None = None) -> None:
    with transaction(memory.db):
        book.add(memory.db, read_url(url, ALLOWED), ALLOWED, NOW)
        if of is not None:
            book.note_key(memory.db, url, of if isinstance(of, str) else of.public.hex)


def held(memory: Memory) -> set[str]:
    return set(holdings.holdings(memory.db))


def offered(*files: bytes) -> bytes:
    return b"".join(wire.write_part(Whole(bytes(32), data)) for data in files)


def offer(url: str, body: bytes, signer: SigningKey | None = None) -> httpx.Response:
    signed = {} if signer is None else sign(signer, "POST", url.removeprefix("http://"), wire.OFFER, body, clock())
    return httpx.post(url + wire.OFFER, content=body, headers=signed)


@pytest.mark.any_database
def test_a_memory_takes_offers_of_the_peers_whose_keys_it_knows(memory: Callable[[int], Memory]) -> None:
    mine, other = memory(1), key(50)
    list_peer(mine, "http://127.0.0.1:9", other)
    with node(mine.home.path) as url:
        for signer, status, code in ((None, 401, "signature_missing"), (key(51), 403, "not_a_peer")):
            refused = offer(url, offered(said(60)), signer)
            assert (refused.status_code, refused.json()["code"]) == (status, code)
        took = offer(url, offered(said(60), said(61), said(60)), other)
        assert [one["verdict"] for one in took.json()["verdicts"]] == ["new", "new", "known"]
        broken = offer(url, b'{"file":2}\n{', other)
        assert (broken.status_code, broken.json()["code"]) == (422, "gossip_body")
    assert held(mine) == {key(60).public.hex, key(61).public.hex}
    assert items.check(mine.db) == []
    assert book.spent(mine.db, "http://127.0.0.1:9", clock()).origins == 2


@pytest.mark.any_database
def test_an_open_memory_takes_a_little_of_anyone(memory: Callable[[int], Memory]) -> None:
    mine = memory(1)
    with node(mine.home.path, is_open=True) as url:
        assert httpx.get(f"{url}/.well-known/remem").json()["open"] is True
        assert offer(url, offered(said(60))).json()["verdicts"][0]["verdict"] == "new"
        message = Reconciler(Vector([])).initiate()
        assert httpx.post(url + wire.RECONCILE, content=message).status_code == 200
        assert httpx.post(url + wire.RECONCILE, content=b"?").json()["code"] == "frame"
    assert held(mine) == {key(60).public.hex}


@pytest.mark.any_database
def test_two_memories_hold_the_same_after_one_exchange(memory: Callable[[int], Memory]) -> None:
    one, two = memory(1), memory(2)
    list_peer(one, "http://127.0.0.1:9", two.key)
    with node(one.home.path) as url:
        assert offer(url, offered(said(60)), two.key).status_code == 200
        list_peer(two, url)
        # What another process writes meanwhile is seen.
        list_peer(one, "http://127.0.0.1:8", key(70))
        assert offer(url, offered(said(61)), key(70)).status_code == 200
        report = gossip(two.home, two.db, now=clock(), random=Random(1))
        assert [(met.code, met.report.unlisted) for met in report.met] == [(None, False)]
    assert held(two) == {key(60).public.hex, key(61).public.hex}
    assert items.check(two.db) == []


def test_a_commons_and_a_memory_hold_the_same_after_one_exchange(start: Start, memory: Callable[[int], Memory]) -> None:
    commons, mine = start(clock=clock, gossip_minutes=0), memory(1)
    list_peer(mine, commons.url, commons.commons.key)
    for number in range(60, 80):
        accept_file(
            commons.engine,
            said(number),
            name=key(number).public.hex,
            secret=None,
            token_needed=False,
            now=clock(),
        )
    with node(mine.home.path) as url:
        assert offer(url, offered(said(90)), commons.commons.key).json()["verdicts"][0]["verdict"] == "new"
        with writing(commons.engine) as connection:
            peers.add(connection, read_url(url, ALLOWED), ALLOWED, clock(), publish=False)
        (met,) = rounds.go_round(commons.commons, Random(1))
        assert (met.code, met.report.taken, met.report.stand_there) == (None, {"new": 1}, 20)
    assert held(mine) == {key(number).public.hex for number in [*range(60, 80), 90]}
    assert not list(audit(commons.engine, clock()))
    assert items.check(mine.db) == []


def test_a_memory_that_only_dials_brings_what_it_has_to_a_commons(
    start: Start, memory: Callable[[int], Memory]
) -> None:
    commons, mine = start(clock=clock, gossip_minutes=0), memory(1)
    list_peer(mine, "http://127.0.0.1:9", key(50))
    with node(mine.home.path) as url:
        assert offer(url, offered(said(60), said(61)), key(50)).status_code == 200
    with transaction(mine.db):
        book.remove(mine.db, "http://127.0.0.1:9")
    list_peer(mine, commons.url)
    (met,) = gossip(mine.home, mine.db, now=clock(), random=Random(1)).met
    assert (met.code, met.report.unlisted) == (None, True)
    set_target(mine.home.config_path, commons.url, commons.token())
    (met,) = gossip(mine.home, mine.db, now=clock(), random=Random(1)).met
    assert (met.code, met.report.unlisted, met.report.stand_there) == (None, False, 2)
    entries = httpx.get(f"{commons.url}/commons/index").json()
    assert {entry["key"]: entry["principal"] for entry in entries} == {
        key(60).public.hex: None,
        key(61).public.hex: None,
    }


@pytest.mark.any_database
def test_the_command_serves_until_it_is_ended(memory: Callable[[int], Memory]) -> None:
    mine = memory(1)
    program = "from remem.cli.main import main; main()"
    process = subprocess.Popen(
        [sys.executable, "-c", program, "node", "--port", "0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=plain_environment(REMEM_HOME=str(mine.home.path)),
    )
    try:
        assert process.stdout is not None
        said_first = process.stdout.readline()
        assert said_first.startswith("serving http://127.0.0.1:"), process.communicate()[1]
        answer = httpx.get(f"{said_first.split()[1]}/.well-known/remem").json()
        assert answer["key"] == mine.name
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
    finally:
        process.kill()
        process.communicate()
