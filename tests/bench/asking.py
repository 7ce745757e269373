"""A client that does next to nothing, so that the server's work is what is measured."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager

_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_STEP_SECONDS = 60


def get(path: str, *headers: str) -> bytes:
    """Write a request that reads."""
    return "\r\n".join([f"GET {path} HTTP/1.1", "Host: bench", *headers, "", ""]).encode()


def put(path: str, body: bytes, *headers: str) -> bytes:
    """Write a request that publishes."""
    length = f"Content-Length: {len(body)}"
    return "\r\n".join([f"PUT {path} HTTP/1.1", "Host: bench", length, *headers, "", ""]).encode() + body


class Answer:
    """An answer as it comes in, bytes after bytes."""

    def __init__(self) -> None:
        self._data = b""
        self._whole: int | None = None

    def take(self, data: bytes) -> bool:
        """Add what came, and tell whether the answer is whole."""
        if not data:
            raise ConnectionError("expected an answer, got the end of the connection")
        self._data += data
        if self._whole is None and (end := self._data.find(b"\r\n\r\n")) >= 0:
            found = _LENGTH.search(self._data, 0, end)
            self._whole = end + 4 + (int(found[1]) if found else 0)
        return self._whole is not None and len(self._data) >= self._whole

    @property
    def status(self) -> int:
        return int(self._data[9:12])

    @property
    def body(self) -> bytes:
        return self._data.partition(b"\r\n\r\n")[2]


class Asker:
    """One connection to a commons on loopback."""

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection

    def ask(self, request: bytes) -> bytes:
        """Send a request, and return the body of its answer, which must be no refusal."""
        self._socket.sendall(request)
        answer = Answer()
        while not answer.take(self._socket.recv(1 << 20)):
            pass
        assert answer.status < 400, answer.body
        return answer.body


@contextmanager
def asking(url: str) -> Iterator[Asker]:
    """Connect to a commons on loopback."""
    with connect(url) as connection:
        yield Asker(connection)


def connect(url: str) -> socket.socket:
    """Open a connection to a commons on loopback."""
    host, _, port = url.removeprefix("http://").partition(":")
    connection = socket.create_connection((host, int(port)), timeout=_STEP_SECONDS)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection
