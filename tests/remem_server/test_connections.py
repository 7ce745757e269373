"""Connections: who has one, who makes room, and whose is ended."""

from __future__ import annotations

import json
import logging
import re
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from datetime import timedelta
from email import message_from_bytes
from functools import partial
from itertools import cycle
from typing import Any, cast

import httpx
import pytest

from remem_server.web import connections, serving
from remem_server.web.connections import HEAD_BYTES, Connections
from remem_server.web.watching import Watch
from remem_testkit.files import full_file, key
from remem_testkit.server import HandClock, ServedCommons
from remem_testkit.wire import connected, read_head

pytestmark = pytest.mark.any_database

Ask = Callable[..., httpx.Client]
Start = Callable[..., ServedCommons]
Connect = Callable[[ServedCommons, str], socket.socket]

MOST = 8
SHARE = MOST // 4
STRANGERS = [f"127.0.0.{number}" for number in range(10, 10 + MOST // SHARE)]
ME = key(1)
PATH = f"/commons/{ME.public.hex}.jsonl"
ASKED = b"GET /healthz HTTP/1.1\r\nHost: commons\r\n\r\n"
BEGUN = f"PUT {PATH} HTTP/1.1\r\nHost: commons\r\nContent-Length: 100\r\n\r\n".encode()


@pytest.fixture(autouse=True)
def _hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let those who are read later, or not at all, wait a tenth of what they do."""
    monkeypatch.setattr(connections, "_LATER_SECONDS", 0.1)
    monkeypatch.setattr(connections, "_PARKED_SECONDS", 0.3)
    monkeypatch.setattr(serving, "_LOOK_SECONDS", 0.2)


@pytest.fixture
def connect() -> Iterator[Connect]:
    """Return a function that connects to a commons from an address of loopback."""
    with ExitStack() as stack:
        yield lambda commons, source: stack.enter_context(connected(commons.url, source))


def is_ended(opened: socket.socket) -> bool:
    with suppress(ConnectionError):
        return opened.recv(65_536) == b""
    return True


def read_answer(opened: socket.socket) -> bytes:
    """Read one answer whole, so that the next on the same connection begins with its head."""
    data = read_head(opened)
    head, _, body = data.partition(b"\r\n\r\n")
    length = re.search(rb"\r\ncontent-length: (\d+)", head.lower())
    left = int(length[1]) - len(body) if length else 0
    while left > 0 and (more := opened.recv(left)):
        data += more
        left -= len(more)
    return data


def asked(opened: socket.socket) -> bytes:
    """Ask whether the commons is well, and return the answer's head; none where nobody answers."""
    with suppress(ConnectionError):
        opened.sendall(ASKED)
        return read_answer(opened)
    return b""


def problem(answer: bytes) -> tuple[int, str]:
    """Return the status and the code of a problem that came whole and ends its connection."""
    status, _, rest = answer.partition(b"\r\n")
    head = message_from_bytes(rest)
    assert head.get_content_type() == "application/problem+json"
    assert (head["Connection"], head["X-Content-Type-Options"]) == ("close", "nosniff")
    body = str(head.get_payload())
    assert int(head["Content-Length"]) == len(body)
    told = json.loads(body)
    assert status.startswith(f"HTTP/1.1 {told['status']} ".encode())
    return told["status"], told["code"]


@pytest.mark.parametrize(
    "sent",
    [b"no HTTP at all\r\n\r\n", b"GET / HTTP/9\r\n\r\n", b"GET /" + b"x" * HEAD_BYTES + b" HTTP/1.1\r\n\r\n"],
    ids=["none", "another version", "too long"],
)
def test_what_is_no_request_is_told_so_as_any_other_problem(
    commons: ServedCommons, connect: Connect, sent: bytes
) -> None:
    opened = connect(commons, STRANGERS[0])
    opened.sendall(sent)
    answer = b""
    with suppress(ConnectionError):
        while more := opened.recv(65_536):
            answer += more
    assert problem(answer) == (400, "request_form")


def test_who_has_waited_longest_makes_room(start: Start, connect: Connect) -> None:
    commons = start(connections=MOST)
    idle = [connect(commons, address) for address in STRANGERS * SHARE]
    assert asked(connect(commons, "127.0.0.1")).startswith(b"HTTP/1.1 200 ")
    assert is_ended(idle[0])
    assert asked(idle[-1]).startswith(b"HTTP/1.1 200 ")


def test_no_number_of_idle_connections_keeps_anyone_out(start: Start, connect: Connect) -> None:
    commons = start(connections=MOST)
    sources = cycle(f"127.0.1.{number}" for number in range(1, 200))
    for _ in range(20):
        for _ in range(MOST):
            connect(commons, next(sources))
        assert asked(connect(commons, "127.0.0.1")).startswith(b"HTTP/1.1 200 ")


def test_where_nobody_can_make_room_some_are_told_and_the_rest_is_closed(start: Start, connect: Connect) -> None:
    commons = start(connections=MOST, open=True)
    for address in STRANGERS * SHARE:
        connect(commons, address).sendall(BEGUN)
    # Until the commons has read the heads, these make room too.
    while (heard := asked(connect(commons, "127.0.0.1"))).startswith(b"HTTP/1.1 200 "):
        pass
    assert problem(heard) == (503, "busy")
    assert b"\r\nretry-after: 2\r\n" in heard.lower()


def test_an_address_has_its_share(start: Start, connect: Connect) -> None:
    commons = start(connections=MOST)
    kept = [connect(commons, STRANGERS[0]) for _ in range(SHARE)]
    assert is_ended(connect(commons, STRANGERS[0]))
    assert asked(connect(commons, STRANGERS[1])).startswith(b"HTTP/1.1 200 ")
    kept.pop().close()
    while not asked(connect(commons, STRANGERS[0])):
        pass


def test_a_proxy_has_no_share(start: Start, connect: Connect) -> None:
    commons = start(connections=MOST, proxies=("127.0.0.0/28",))
    kept = [connect(commons, STRANGERS[0]) for _ in range(MOST)]
    assert [asked(one)[:13] for one in kept] == [b"HTTP/1.1 200 "] * MOST


@pytest.mark.parametrize(
    ("sent", "status"), [(BEGUN, b"401"), (b"no HTTP at all\r\n\r\n", b"400")], ids=["refused", "no HTTP"]
)
def test_who_is_refused_too_often_is_told_and_who_goes_on_is_not_heard_for_a_minute_and_others_are(
    start: Start, connect: Connect, sent: bytes, status: bytes
) -> None:
    commons = start(refusals_per_minute=1)
    assert isinstance(commons.clock, HandClock)
    opened = connect(commons, STRANGERS[0])
    opened.sendall(sent)
    assert read_answer(opened).split()[1] == status
    for _ in range(9):
        told = asked(connect(commons, STRANGERS[0]))
        assert told.startswith(b"HTTP/1.1 429 ")
        assert b"\r\nconnection: close\r\n" in told.lower()
        assert b"\r\nretry-after: 60\r\n" in told.lower()
    assert is_ended(connect(commons, STRANGERS[0]))
    assert asked(connect(commons, STRANGERS[1])).startswith(b"HTTP/1.1 200 ")
    commons.clock.advance(timedelta(minutes=1))
    assert asked(connect(commons, STRANGERS[0])).startswith(b"HTTP/1.1 200 ")


def test_a_connection_that_was_heard_before_is_told_and_ended(start: Start, connect: Connect) -> None:
    commons = start(refusals_per_minute=5)
    opened = connect(commons, STRANGERS[0])
    for _ in range(5):
        opened.sendall(b"DELETE /healthz HTTP/1.1\r\nHost: commons\r\n\r\n")
        assert read_answer(opened).split()[1] == b"405"
    heard = asked(opened)
    assert heard.startswith(b"HTTP/1.1 429 ")
    assert b"\r\nconnection: close\r\n" in heard.lower()


def test_who_asks_for_another_protocol_is_answered_in_this_one_and_not_written_down(
    commons: ServedCommons, connect: Connect, caplog: pytest.LogCaptureFixture
) -> None:
    opened = connect(commons, STRANGERS[0])
    with caplog.at_level(logging.WARNING):
        for protocol in (b"websocket", b"h2c"):
            opened.sendall(ASKED[:-2] + b"Connection: upgrade\r\nUpgrade: " + protocol + b"\r\n\r\n")
            assert read_answer(opened).startswith(b"HTTP/1.1 200 ")
    assert caplog.records == []


def test_an_answer_that_nobody_takes_ends_the_connection(start: Start, connect: Connect, ask: Ask) -> None:
    leave_unread(start(open=True, answer_seconds=0.5), connect, ask)


def test_where_too_much_waits_to_be_taken_who_has_most_of_it_goes_first(
    start: Start, connect: Connect, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serving, "Connections", partial(Connections, unread_bytes=50_000))
    leave_unread(start(open=True), connect, ask)


class Unread:
    """Stands for a connection with an answer that waits to be taken."""

    def __init__(self, address: str | None, unread: int) -> None:
        self.address = address
        self.unread = unread
        self.ended = False

    def end_unread(self, _now: float, _seconds: float) -> None:
        """It has not waited for long."""

    def end(self, _why: str) -> None:
        self.ended = True


@pytest.mark.parametrize(
    ("left", "ended"),
    [
        ([("a", 30), ("a", 20)], []),
        ([("a", 30), ("a", 21), ("b", 40)], [30]),
        ([("a", 45), ("a", 44), ("a", 7)], [45, 44]),
        ([(None, 30), (None, 40)], []),
        ([("a", 40), ("b", 41), (None, 20)], [41]),
    ],
    ids=["little", "an address", "the largest first", "a proxy", "altogether"],
)
def test_an_address_leaves_no_more_than_a_half_of_all_that_may_wait(
    commons: ServedCommons, left: list[tuple[str | None, int]], ended: list[int]
) -> None:
    ones = [Unread(address, unread) for address, unread in left]
    shared = Connections(Watch(commons.commons), unread_bytes=100)
    shared.made = cast("Any", set(ones))
    shared.end_unread()
    assert [one.unread for one in ones if one.ended] == ended


def test_a_large_request_of_who_was_refused_too_often_is_read_later_too(start: Start, connect: Connect) -> None:
    commons = start(refusals_per_minute=1)
    bearer = f"Authorization: Bearer {commons.token()}\r\n".encode()
    body = full_file(ME)
    opened = connect(commons, STRANGERS[0])
    opened.sendall(BEGUN)
    assert read_answer(opened).split()[1] == b"401"
    late = connect(commons, STRANGERS[0])
    late.sendall(BEGUN.replace(b"Content-Length: 100\r\n", b"Content-Length: %d\r\n" % len(body) + bearer) + body)
    assert read_answer(late).split()[1] == b"201"


def leave_unread(commons: ServedCommons, connect: Connect, ask: Ask) -> None:
    """Ask for more than all buffers between the two hold, take nothing, and see the connection end."""
    client = ask(commons)
    assert client.put(PATH, content=full_file(ME)).status_code == 201
    many = f"GET {PATH} HTTP/1.1\r\nHost: commons\r\n\r\n".encode() * 100
    connect(commons, STRANGERS[0]).sendall(many)
    for _ in range(300):
        if 'remem_connections_ended_total{why="unread"} 1.0' in client.get("/metrics").text:
            break
        threading.Event().wait(0.1)
    else:
        pytest.fail("the connection is still there")
    assert client.get(PATH).status_code == 200
