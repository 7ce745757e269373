"""Heads that are made to cost: none freezes the commons, fills it, or is read for longer than it may take."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable
from contextlib import suppress

import httpx
import pytest
from starlette.requests import Request

from remem.protocol.errors import FileSize
from remem_server.web import serving
from remem_server.web.bodies import read_body
from remem_server.web.connections import HEAD_BYTES
from remem_server.web.routes.files import matches
from remem_testkit.files import file, key, lesson, sentence
from remem_testkit.server import ServedCommons
from remem_testkit.wire import connected

pytestmark = pytest.mark.any_database

Ask = Callable[..., httpx.Client]
Start = Callable[..., ServedCommons]

ME = key(1)
PATH = f"/commons/{ME.public.hex}.jsonl"
HELD = file(ME, [lesson(sentence(1))])
ETAG = '"x"'


def head(method: str, path: str, *headers: str) -> bytes:
    return "\r\n".join([f"{method} {path} HTTP/1.1", "Host: commons", *headers, "", ""]).encode()


def all_of(opened: socket.socket) -> bytes:
    """Read until the commons ends the connection, which it must."""
    data = b""
    with suppress(ConnectionError):
        while more := opened.recv(65_536):
            data += more
    return data


def asked(commons: ServedCommons, sent: bytes) -> bytes:
    with connected(commons.url) as opened:
        with suppress(ConnectionError):
            opened.sendall(sent)
        return all_of(opened)


# --- the values of headers ---


@pytest.mark.parametrize(
    ("condition", "fits"),
    [
        ("*", True),
        (" * ", True),
        ('"x"', True),
        ('W/"x"', True),
        ('"y" ,\t"x"', True),
        ("", False),
        ('"y"', False),
        ('*, "y"', False),
        ('a"x"', False),
        ('"x" "y"', False),
        (" " * 100_000 + ETAG, False),
    ],
    ids=[
        "any",
        "any, spaced",
        "equal",
        "weak",
        "in a list",
        "empty",
        "other",
        "any in a list",
        "inside",
        "two",
        "long",
    ],
)
def test_a_condition_is_a_list_of_whole_tags(condition: str, fits: bool) -> None:
    assert matches(condition, ETAG) is fits


@pytest.mark.parametrize("path", [PATH, "/commons/index"])
@pytest.mark.parametrize("spaces", [7_000, 60_000])
def test_no_condition_freezes_the_commons(commons: ServedCommons, ask: Ask, path: str, spaces: int) -> None:
    assert ask(commons, commons.token()).put(PATH, content=HELD).status_code == 201
    condition = f"If-None-Match: a{' ' * spaces}x"
    # A hundred of them, at some seconds each, would be more than any test may take.
    many = head("GET", path, condition) * 100 + head("GET", path, condition, "Connection: close")
    with connected(commons.url) as opened:
        sending = threading.Thread(target=opened.sendall, args=(many,))
        sending.start()
        answers = all_of(opened)
        sending.join()
    assert answers.count(b"HTTP/1.1 200 ") == 101


@pytest.mark.parametrize("length", ["9" * 21, "9" * 5_001])
def test_a_length_is_refused_by_its_digits(length: str) -> None:
    # Not by way of the web server, which refuses such a length by itself.
    request = Request({"type": "http", "method": "PUT", "headers": [(b"content-length", length.encode())]})
    with pytest.raises(FileSize):
        asyncio.run(read_body(request, 262_144, 1, FileSize))


@pytest.mark.parametrize("digits", [21, 5_001])
def test_a_length_of_any_number_of_digits_is_refused(commons: ServedCommons, digits: int) -> None:
    bearer = f"Authorization: Bearer {commons.token()}"
    answer = asked(commons, head("PUT", PATH, bearer, f"Content-Length: {'9' * digits}"))
    assert answer.split()[1] in (b"400", b"413")


# --- how much, and for how long ---


@pytest.mark.parametrize("ended", [True, False], ids=["whole", "endless"])
def test_a_head_is_bounded(commons: ServedCommons, ask: Ask, *, ended: bool) -> None:
    sent = head("GET", "/healthz", *(f"X-{n}: {'x' * 1_000}" for n in range(2 * HEAD_BYTES // 1_000)))
    assert asked(commons, sent if ended else sent[:-4]).split()[1] in (b"400", b"431")
    assert ask(commons).get("/healthz").status_code == 200


@pytest.mark.parametrize(
    "sent", [b"", b"G", b"GET /healthz HTTP/1.1\r\nHost: commons\r\n"], ids=["none", "byte", "most"]
)
def test_a_head_that_does_not_end_ends_the_connection(start: Start, sent: bytes) -> None:
    assert asked(start(head_seconds=0.3), sent) == b""


def test_a_head_that_trickles_gains_no_time(start: Start) -> None:
    commons = start(head_seconds=0.5)
    ended = threading.Event()
    with connected(commons.url) as opened:
        opened.sendall(b"GET /healthz HTTP/1.1\r\nX-Slow: ")

        def trickle() -> None:
            with suppress(OSError):
                while not ended.wait(0.05):
                    opened.sendall(b"X")

        trickling = threading.Thread(target=trickle)
        trickling.start()
        try:
            assert all_of(opened) == b""
        finally:
            ended.set()
            trickling.join()


def test_the_next_head_on_a_connection_is_bounded_too(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    # For so long a connection may be idle behind an answer.
    monkeypatch.setattr(serving, "_IDLE_SECONDS", 0.5)
    answer = asked(start(head_seconds=0.3), head("GET", "/healthz") + b"GET /he")
    assert answer.count(b"HTTP/1.1 ") == 1


def test_a_request_may_take_longer_than_its_head(start: Start, ask: Ask) -> None:
    commons = start(head_seconds=0.2)
    request = head("PUT", PATH, f"Authorization: Bearer {commons.token()}", f"Content-Length: {len(HELD)}")
    with connected(commons.url) as opened:
        opened.sendall(request.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
        threading.Event().wait(0.5)
        opened.sendall(HELD)
        assert all_of(opened).startswith(b"HTTP/1.1 201 ")


# --- bodies that nobody asked for ---


@pytest.mark.parametrize("framing", ["Content-Length: 99999999", "Transfer-Encoding: chunked"])
@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("POST", "/nowhere", b"404"),
        ("PUT", "/commons/x.jsonl", b"404"),
        ("PUT", PATH, b"401"),
        ("POST", PATH, b"405"),
        ("GET", "/healthz", b"200"),
    ],
)
def test_a_body_that_is_not_read_ends_the_connection(
    commons: ServedCommons, method: str, path: str, status: bytes, framing: str
) -> None:
    # Not a byte of the body is sent, so that only the commons can end this.
    answer = asked(commons, head(method, path, framing))
    assert answer.split()[1] == status
    assert answer.lower().count(b"\r\nconnection: close\r\n") == 1


def test_a_request_without_a_body_ends_no_connection(commons: ServedCommons) -> None:
    empty = head("DELETE", PATH, "Content-Length: 0")
    answer = asked(commons, empty + head("GET", "/nowhere") + head("GET", "/healthz", "Connection: close"))
    assert [part.split()[0] for part in answer.split(b"HTTP/1.1 ")[1:]] == [b"405", b"404", b"200"]
