"""Clients that break off, dawdle or never stop: nothing that was stored is lost, and nobody else waits."""

from __future__ import annotations

import socket
from collections.abc import Callable
from contextlib import suppress

import httpx
import pytest

from remem.protocol import RULES
from remem_server.files.accept import accept_file
from remem_testkit.files import NOW, file, full_file, key, lesson, sentence
from remem_testkit.server import ServedCommons, verify_everything_stored
from remem_testkit.wire import connected, read_head

pytestmark = pytest.mark.any_database

Ask = Callable[..., httpx.Client]
Start = Callable[..., ServedCommons]

ME = key(1)
PATH = f"/commons/{ME.public.hex}.jsonl"
HELD = file(ME, [lesson(sentence(1))])
NEWER = full_file(ME, lines=300, seal=int(NOW.timestamp()) + 1)


def head(token: str | None, *headers: str) -> bytes:
    bearer = [] if token is None else [f"Authorization: Bearer {token}"]
    return "\r\n".join([f"PUT {PATH} HTTP/1.1", "Host: commons", *bearer, *headers, "", ""]).encode()


def answer_of(opened: socket.socket) -> bytes:
    """Read until the answer is whole as far as this test cares, or the connection ends."""
    data = read_head(opened)
    while b"}" not in data and (more := opened.recv(65_536)):
        data += more
    return data


@pytest.fixture
def token(commons: ServedCommons, ask: Ask) -> str:
    """Return a token of a commons that holds a file."""
    made = commons.token()
    assert ask(commons, made).put(PATH, content=HELD).status_code == 201
    return made


def assert_as_it_was(commons: ServedCommons, ask: Ask) -> None:
    assert ask(commons).get(PATH).content == HELD
    (stands,) = verify_everything_stored(commons.engine, NOW)
    assert stands.data == HELD


@pytest.mark.parametrize("sent", [0, 1, 1_000, 100_000, len(NEWER) - 1])
def test_a_client_that_breaks_off_changes_nothing(commons: ServedCommons, ask: Ask, token: str, sent: int) -> None:
    with connected(commons.url) as opened:
        opened.sendall(head(token, f"Content-Length: {len(NEWER)}") + NEWER[:sent])
    assert_as_it_was(commons, ask)


def test_chunks_that_break_off_change_nothing(commons: ServedCommons, ask: Ask, token: str) -> None:
    with connected(commons.url) as opened:
        opened.sendall(head(token, "Transfer-Encoding: chunked") + b"%x\r\n" % len(HELD) + HELD + b"\r\n")
    with connected(commons.url) as opened:
        opened.sendall(head(token, "Transfer-Encoding: chunked") + b"zz\r\n")
        assert b" 400 " in read_head(opened)
    assert_as_it_was(commons, ask)


def test_a_client_that_is_reset_changes_nothing(commons: ServedCommons, ask: Ask, token: str) -> None:
    with connected(commons.url) as opened:
        opened.sendall(head(token, f"Content-Length: {len(NEWER)}") + NEWER[:50_000])
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00")
    assert_as_it_was(commons, ask)


def test_a_client_that_dawdles_keeps_nobody_waiting(commons: ServedCommons, ask: Ask, token: str) -> None:
    with connected(commons.url) as opened:
        opened.sendall(head(token, f"Content-Length: {len(NEWER)}") + NEWER[:10])
        # While it waits, others read and write.
        assert ask(commons).get(PATH).content == HELD
        assert ask(commons, token).put(PATH, content=HELD).status_code == 200
    assert_as_it_was(commons, ask)


def test_a_client_that_dawdles_for_too_long_is_told(start: Start, ask: Ask) -> None:
    commons = start(body_seconds=0.3)
    token = commons.token()
    # Not by way of HTTP, where that little time holds for every file.
    accept_file(commons.engine, HELD, name=ME.public.hex, secret=token, token_needed=True, now=NOW)
    with connected(commons.url) as opened:
        opened.sendall(head(token, f"Content-Length: {len(NEWER)}") + NEWER[:10])
        answer = answer_of(opened)
    assert answer.startswith(b"HTTP/1.1 408 ")
    assert b'"body_timeout"' in answer
    assert_as_it_was(commons, ask)


@pytest.mark.parametrize("declared", [True, False], ids=["declared", "chunked"])
def test_too_large_a_body_is_refused_before_the_rest_is_read(
    commons: ServedCommons, ask: Ask, token: str, *, declared: bool
) -> None:
    with connected(commons.url) as opened:
        if declared:
            # Not a byte of the body is sent.
            opened.sendall(head(token, "Content-Length: 99999999"))
        else:
            piece = b"x" * 65_536
            opened.sendall(head(token, "Transfer-Encoding: chunked") + b"fffffff\r\n")
            with suppress(ConnectionError):
                for _ in range(RULES.file_bytes // len(piece) + 1):
                    opened.sendall(piece)
        answer = answer_of(opened)
        # And the connection ends, so that the rest has nowhere to go.
        with suppress(ConnectionResetError):
            while opened.recv(65_536):
                pass
    assert answer.startswith(b"HTTP/1.1 413 ")
    assert b'"file_size"' in answer
    assert_as_it_was(commons, ask)


@pytest.mark.parametrize(
    ("bearer", "header", "status"),
    [
        (None, "Content-Length: 100", b"401"),
        ("remem_x", "Content-Length: 100", b"401"),
        ("", "Content-Encoding: gzip\r\nContent-Length: 100", b"415"),
    ],
    ids=["no token", "an unknown token", "compressed"],
)
def test_what_is_wrong_with_a_request_is_said_before_its_body_comes(
    commons: ServedCommons, ask: Ask, token: str, bearer: str | None, header: str, status: bytes
) -> None:
    with connected(commons.url) as opened:
        opened.sendall(head(token if bearer == "" else bearer, header))
        assert answer_of(opened).split()[1] == status
    assert_as_it_was(commons, ask)


def test_who_asks_first_sends_no_body_in_vain(commons: ServedCommons, ask: Ask, token: str) -> None:
    with connected(commons.url) as opened:
        opened.sendall(head(None, "Content-Length: 100", "Expect: 100-continue"))
        assert answer_of(opened).startswith(b"HTTP/1.1 401 ")
    with connected(commons.url) as opened:
        opened.sendall(head(token, f"Content-Length: {len(HELD)}", "Expect: 100-continue"))
        assert read_head(opened) == b"HTTP/1.1 100 Continue\r\n\r\n"
        opened.sendall(HELD)
        assert answer_of(opened).startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize("length", ["-1", "x", "1, 2", "9" * 5_000, ""])
def test_a_length_that_is_none_is_refused(commons: ServedCommons, ask: Ask, token: str, length: str) -> None:
    with connected(commons.url) as opened:
        opened.sendall(head(token, f"Content-Length: {length}") + HELD)
        assert read_head(opened).split()[1] in (b"400", b"413")
    assert_as_it_was(commons, ask)


def test_who_asks_twice_and_leaves_is_no_fault_of_the_commons(
    start: Start, ask: Ask, caplog: pytest.LogCaptureFixture
) -> None:
    commons = start(open=True)
    # The last signature is not good, so that it takes a while until that is known. With the next head it is one piece.
    whole, mark, last = full_file(ME, lines=80).rpartition(b'"sig":"')
    bad = whole + mark + b"00" + last[2:]
    for _ in range(5):
        with connected(commons.url) as opened:
            first = head(None, f"Content-Length: {len(bad)}", "Expect: 100-continue") + bad
            opened.sendall(first + head(None, "Content-Length: 9"))
            assert read_head(opened).startswith(b"HTTP/1.1 100 ")
    # Each first one is judged to its end.
    while 'remem_refused_total{code="signature_invalid"} 5.0' not in (told := ask(commons).get("/metrics").text):
        assert 'code="internal"' not in told
    assert not caplog.records
