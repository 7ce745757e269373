"""A memory that accepts exchanges, over real sockets: with other memories, and with a commons."""

from __future__ import annotations

import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any

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
from remem_server.web import memory_app as memory_app_module
from remem_server.web.memory_app import Host, memory_app
from remem_server.web.serving import listen, make_server, url_of
from remem_testkit.files import file, key, lesson, sentence
from remem_testkit.memories import Memory
from remem_testkit.server import ServedCommons, plain_environment
from remem_testkit.wire import connected

Start = Callable[..., ServedCommons]
ALLOWED = Allowed(http=True, private=True)
NOW = datetime.now(UTC).replace(microsecond=0)


def clock() -> datetime:
    return datetime.now(UTC)


def said(number: int) -> bytes:
    return file(key(number), [lesson(sentence(number), at=NOW)], at=NOW)


@contextmanager
def node(path: Path, *, is_open: bool = False, **serving: Any) -> Iterator[str]:
    """Let the memory of a home accept exchanges, and return its address."""

    @contextmanager
    def opening() -> Iterator[tuple[Home, object]]:
        home = Home.open(path)
        with closing(home.connect()) as db:
            yield home, db

    listening = listen("127.0.0.1", 0, or_any=False)
    app = memory_app(Host(opening, clock, is_open=is_open))  # type: ignore[arg-type]  # the connection, as it is
    server = make_server(app, **serving)
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
        for signer, status, code in ((None, 403, "not_a_peer"), (key(51), 403, "not_a_peer")):
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


@pytest.mark.any_database
def test_a_memory_answers_in_gzip_whoever_reads_it(memory: Callable[[int], Memory]) -> None:
    mine = memory(1)
    with node(mine.home.path, is_open=True) as url:
        assert offer(url, offered(said(60), said(61))).status_code == 200
        with items.opened(mine.db) as storage:
            question = wire.write_fetch(storage.ids(0, len(storage)))
        plain, zipped = (
            httpx.post(url + wire.FETCH, content=question, headers={"Accept-Encoding": coding})
            for coding in ("identity", "gzip")
        )
    assert [one.headers.get("Content-Encoding") for one in (plain, zipped)] == [None, "gzip"]
    assert plain.content == zipped.content
    assert int(zipped.headers["Content-Length"]) < len(plain.content)


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


def reconcile(url: str, source: str = "127.0.0.1") -> httpx.Response:
    """Ask a node from an address of loopback what differs."""
    message = Reconciler(Vector([])).initiate()
    with httpx.Client(transport=httpx.HTTPTransport(local_address=source)) as client:
        return client.post(url + wire.RECONCILE, content=message)


@pytest.mark.any_database
def test_clients_that_send_next_to_nothing_keep_out_nobody_but_themselves(memory: Callable[[int], Memory]) -> None:
    slow, other, *idle = (f"127.0.0.{number}" for number in range(2, 8))
    with node(memory(1).home.path, connections=32) as url, ExitStack() as stack:
        for _number in range(4):
            begun = stack.enter_context(connected(url, slow))
            begun.sendall(b"POST /gossip/fetch HTTP/1.1\r\nHost: node\r\nContent-Length: 100\r\n\r\n{")
        # As many as are served, and each address as many as are served of one.
        for address in idle * 8:
            stack.enter_context(connected(url, address))
        deadline = time.monotonic() + 20
        while (refused := reconcile(url, slow)).status_code == 200 and time.monotonic() < deadline:
            time.sleep(0.01)
        assert (refused.status_code, refused.json()["code"]) == (429, "too_many_requests")
        assert reconcile(url, other).status_code == 200


@pytest.mark.any_database
def test_news_is_pushed_on_while_others_are_answered(memory: Callable[[int], Memory]) -> None:
    mine, bringer = memory(1), key(50)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        silent.settimeout(20)
        there = f"http://127.0.0.1:{silent.getsockname()[1]}"
        list_peer(mine, there)
        list_peer(mine, "http://127.0.0.1:9", bringer)
        with node(mine.home.path) as url:
            assert offer(url, offered(said(60)), bringer).json()["verdicts"][0]["verdict"] == "new"
            pushed, _address = silent.accept()
            with pushed:
                assert pushed.recv(20).startswith(b"POST /gossip/offer")
                # It waits for an answer, and keeps nobody waiting.
                assert reconcile(url).status_code == 200
                assert offer(url, offered(said(61)), bringer).json()["verdicts"][0]["verdict"] == "new"
            deadline = time.monotonic() + 20
            while not book.find(mine.db, there).standing.failures and time.monotonic() < deadline:
                time.sleep(0.01)
    assert book.find(mine.db, there).standing.failures >= 1
    assert held(mine) == {key(60).public.hex, key(61).public.hex}


@pytest.mark.any_database
def test_a_memory_that_another_process_writes_to_is_busy(
    memory: Callable[[int], Memory], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory_app_module, "_LOCKED_MILLISECONDS", 50)
    mine, other = memory(1), key(50)
    list_peer(mine, "http://127.0.0.1:9", other)
    with node(mine.home.path) as url:
        assert reconcile(url).status_code == 200
        with transaction(mine.db):
            mine.db.execute("UPDATE peers SET failures = failures")
            busy = offer(url, offered(said(60)), other)
            assert (busy.status_code, busy.json()["code"]) == (503, "busy")
            assert int(busy.headers["Retry-After"]) > 0
        assert offer(url, offered(said(60)), other).json()["verdicts"][0]["verdict"] == "new"
        assert reconcile(url).status_code == 200
    assert items.check(mine.db) == []


# --- what is refused, and how ---


@pytest.mark.any_database
def test_an_exchange_of_one_that_is_not_listed_ends_well_and_says_so(memory: Callable[[int], Memory]) -> None:
    one, two = memory(1), memory(2)
    list_peer(one, "http://127.0.0.1:9", key(50))
    list_peer(two, "http://127.0.0.1:9", key(50))
    with node(two.home.path) as url:
        assert offer(url, offered(said(61)), key(50)).status_code == 200
    with transaction(two.db):
        book.remove(two.db, "http://127.0.0.1:9")
    with node(one.home.path) as url:
        assert offer(url, offered(said(60)), key(50)).status_code == 200
        list_peer(two, url)
        (met,) = gossip(two.home, two.db, now=clock(), random=Random(1)).met
    assert (met.code, met.report.taken, met.report.unlisted) == (None, {"new": 1}, True)
    assert held(one) == {key(60).public.hex}
    assert held(two) == {key(60).public.hex, key(61).public.hex}


@pytest.mark.any_database
@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        pytest.param("GET", "/", 404, "route_unknown", id="no route"),
        pytest.param("POST", f"{wire.OFFER}/", 404, "route_unknown", id="a slash too many"),
        pytest.param("GET", wire.OFFER, 405, "method_refused", id="a route of another method"),
        pytest.param("DELETE", "/.well-known/remem", 405, "method_refused", id="a description that cannot be deleted"),
    ],
)
def test_what_a_node_does_not_know_is_a_problem(
    memory: Callable[[int], Memory], method: str, path: str, status: int, code: str
) -> None:
    with node(memory(1).home.path) as url:
        refused = httpx.request(method, url + path)
    assert (refused.status_code, refused.json()["code"]) == (status, code)
    assert refused.headers["Content-Type"] == "application/problem+json"
    assert ("Allow" in refused.headers) is (status == 405)


def lose_key(home: Home) -> None:
    home.key_path.unlink()


def hide_key(home: Home) -> None:
    home.key_path.unlink()
    home.key_path.mkdir()


def lose_home(home: Home) -> None:
    shutil.rmtree(home.path)


def break_config(home: Home) -> None:
    home.config_path.write_text("targets = 1")


def break_database(home: Home) -> None:
    for path in home.path.glob("memory.db*"):
        path.write_bytes(b"no database" * 1_000)


BROKEN = [
    pytest.param(lose_key, 500, "internal", id="no key"),
    pytest.param(lose_home, 500, "internal", id="no home"),
    pytest.param(break_config, 500, "internal", id="settings of another form"),
    pytest.param(break_database, 500, "internal", id="no database"),
    pytest.param(hide_key, 503, "store_unavailable", id="a key that cannot be read"),
]


@pytest.mark.any_database
@pytest.mark.parametrize(("break_it", "status", "code"), BROKEN)
def test_a_memory_that_breaks_while_it_answers_is_a_problem_and_a_line_of_the_log(
    memory: Callable[[int], Memory],
    caplog: pytest.LogCaptureFixture,
    break_it: Callable[[Home], None],
    status: int,
    code: str,
) -> None:
    mine = memory(1)
    mine.close()
    with node(mine.home.path) as url:
        break_it(mine.home)
        refused = httpx.get(f"{url}/.well-known/remem")
    assert (refused.status_code, refused.json()["code"]) == (status, code)
    assert str(mine.home.path) not in refused.text
    (told,) = caplog.records
    assert (told.levelname, told.exc_info) == ("ERROR", None)
    assert "\n" not in told.getMessage()


# --- the command ---


def command(home: Home) -> subprocess.Popen[str]:
    """Start `remem node` as a process."""
    program = "from remem.cli.main import main; main()"
    return subprocess.Popen(
        [sys.executable, "-c", program, "node", "--port", "0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=plain_environment(REMEM_HOME=str(home.path)),
    )


@pytest.mark.any_database
@pytest.mark.parametrize("by", [signal.SIGTERM, signal.SIGINT], ids=str)
def test_the_command_serves_until_it_is_ended(memory: Callable[[int], Memory], by: signal.Signals) -> None:
    mine = memory(1)
    process = command(mine.home)
    try:
        assert process.stdout is not None
        said_first = process.stdout.readline()
        assert said_first.startswith("serving http://127.0.0.1:"), process.communicate()[1]
        answer = httpx.get(f"{said_first.split()[1]}/.well-known/remem").json()
        assert answer["key"] == mine.name
        process.send_signal(by)
        assert (process.wait(30), process.communicate()[1]) == (0, "")
    finally:
        process.kill()
        process.communicate()


@pytest.mark.any_database
@pytest.mark.parametrize(
    ("break_it", "status"),
    [
        pytest.param(lose_key, 3, id="no key"),
        pytest.param(lose_home, 1, id="no home"),
        pytest.param(break_config, 1, id="settings of another form"),
        pytest.param(break_database, 3, id="no database"),
        pytest.param(hide_key, 1, id="a key that cannot be read"),
    ],
)
def test_the_command_serves_no_memory_that_cannot_be_used(
    memory: Callable[[int], Memory], break_it: Callable[[Home], None], status: int
) -> None:
    mine = memory(1)
    mine.close()
    break_it(mine.home)
    out, err = (process := command(mine.home)).communicate(timeout=60)
    assert (process.returncode, out) == (status, "")
    first, *rest = err.splitlines()
    assert first.startswith("remem: error: ")
    assert all(line.startswith("remem: hint: ") for line in rest)
