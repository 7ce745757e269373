"""The queue in front of verification: it is bounded, reads pass it by, and bodies that only arrive do not fill it."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest

from remem_server.files.accept import Accepted, accept_file
from remem_server.web import limits
from remem_server.web.routes import files
from remem_testkit.files import NOW, file, key, lesson, sentence
from remem_testkit.server import ServedCommons, verify_everything_stored
from remem_testkit.wire import connected, read_head

pytestmark = pytest.mark.any_database

Ask = Callable[..., httpx.Client]
Start = Callable[..., ServedCommons]


def path(number: int) -> str:
    return f"/commons/{key(number).public.hex}.jsonl"


@dataclass
class Held:
    """Verifications that wait for the test: how many have begun, and whether they may go on."""

    begun: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    go_on: threading.Event = field(default_factory=threading.Event)


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> Iterator[Held]:
    """Hold every verification back until the test lets it go on."""
    made = Held()

    def waiting(*arguments: Any, **named: Any) -> Accepted:
        made.begun.release()
        assert made.go_on.wait(60)
        return accept_file(*arguments, **named)

    monkeypatch.setattr("remem_server.web.routes.files.accept_file", waiting)
    yield made
    made.go_on.set()


@contextmanager
def publishing(commons: ServedCommons, *numbers: int) -> Iterator[list[httpx.Response]]:
    """Publish files beside the test, and return the answers when it is done with the rest."""
    answers: list[httpx.Response] = []

    def put(number: int) -> None:
        answers.append(httpx.put(commons.url + path(number), content=file(key(number), [lesson(sentence(number))])))

    with ThreadPoolExecutor(len(numbers)) as threads:
        for number in numbers:
            threads.submit(put, number)
        yield answers


def test_who_finds_the_queue_full_is_told_to_come_again_and_reads_go_on(start: Start, ask: Ask, held: Held) -> None:
    commons = start(open=True, verify_threads=1, verify_queue=1)
    client = ask(commons)
    third = file(key(3), [lesson(sentence(3))])
    with publishing(commons, 1, 2) as answers:
        assert held.begun.acquire(timeout=60)
        while "remem_queue_waiting 1.0" not in client.get("/metrics").text:
            pass
        busy = client.put(path(3), content=third)
        assert (busy.status_code, busy.json()["code"], busy.headers["Retry-After"]) == (503, "busy", "2")
        for read in ("/commons/index", "/commons/lessons", "/healthz", "/readyz"):
            assert client.get(read).status_code == 200
        assert answers == []
        held.go_on.set()
    assert [answer.status_code for answer in answers] == [201, 201]
    assert client.put(path(3), content=third).status_code == 201
    assert len(verify_everything_stored(commons.engine, NOW)) == 3


def test_a_queue_that_is_full_is_said_before_the_body_comes(start: Start, ask: Ask, held: Held) -> None:
    commons = start(open=True, verify_threads=1, verify_queue=0)
    with publishing(commons, 1):
        assert held.begun.acquire(timeout=60)
        with connected(commons.url) as opened:
            opened.sendall(begun(2))
            assert read_head(opened).split()[1] == b"503"
        held.go_on.set()


def test_bodies_that_arrive_are_bounded_for_an_address_and_altogether(
    start: Start, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "BODIES_OF_AN_ADDRESS", 2)
    monkeypatch.setattr(limits, "BODIES_MOST", 3)
    commons = start(open=True)
    with ExitStack() as stack:

        def begin(address: str) -> socket.socket:
            opened = stack.enter_context(connected(commons.url, address))
            opened.sendall(begun(1, "Expect: 100-continue"))
            return opened

        heads = [read_head(begin(address)).split()[1] for address in ["127.0.0.2"] * 3 + ["127.0.0.3"] * 2]
    assert heads == [b"100", b"100", b"429", b"100", b"503"]
    # Whoever breaks off leaves room.
    while ask(commons).put(path(1), content=file(key(1), [])).status_code != 201:
        pass


def test_a_token_has_a_share_of_the_bodies_that_arrive_wherever_they_come_from(
    start: Start, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "BODIES_OF_A_TOKEN", 1)
    commons = start()
    token, other = (f"Authorization: Bearer {commons.token()}" for _ in range(2))
    asked = [("127.0.0.2", token), ("127.0.0.3", token), ("127.0.0.2", other)]
    with ExitStack() as stack:
        heads = []
        for address, shown in asked:
            opened = stack.enter_context(connected(commons.url, address))
            opened.sendall(begun(1, "Expect: 100-continue", shown))
            heads.append(read_head(opened).split()[1])
    assert heads == [b"100", b"429", b"100"]


def begun(number: int, *more: str) -> bytes:
    lines = [f"PUT {path(number)} HTTP/1.1", "Host: commons", "Content-Length: 100", *more, "", ""]
    return "\r\n".join(lines).encode()
