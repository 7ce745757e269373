"""HTTP byte by byte, for tests of what a client library would never send, and of what goes over the wire."""

from __future__ import annotations

import re
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

_STEP_SECONDS = 60


@contextmanager
def connected(url: str, source: str | None = None) -> Iterator[socket.socket]:
    """Connect to a commons on loopback, from any address of it."""
    host, _, port = url.removeprefix("http://").partition(":")
    origin = source and (source, 0)
    with socket.create_connection((host, int(port)), timeout=_STEP_SECONDS, source_address=origin) as opened:
        yield opened


def read_head(opened: socket.socket) -> bytes:
    """Read an answer up to its blank line and whatever came with that; less, if the connection ends before it."""
    data = b""
    while b"\r\n\r\n" not in data and (more := opened.recv(65_536)):
        data += more
    return data


@dataclass
class Relay:
    """A place between a client and a commons that keeps every byte of both.

    Attributes:
        url: where a client reaches the commons through it.
        sent: what clients sent, connection after connection.
        came: what the commons answered.
    """

    url: str
    sent: list[bytearray] = field(default_factory=list)
    came: list[bytearray] = field(default_factory=list)

    def forget(self) -> None:
        """Begin to count anew."""
        for kept in (*self.sent, *self.came):
            kept.clear()

    @property
    def requests(self) -> list[str]:
        """The first lines of the requests without a body, in order."""
        return re.findall(r"^([A-Z]+ \S+) HTTP/1\.1\r$", b"".join(self.sent).decode("latin-1"), re.MULTILINE)

    @property
    def statuses(self) -> list[int]:
        """The statuses of the answers, in order."""
        # A body need not end in a line feed.
        return [int(status) for status in re.findall(rb"HTTP/1\.1 (\d{3}) ", b"".join(self.came))]

    @property
    def bytes(self) -> int:
        """How many bytes went both ways, heads and all."""
        return sum(map(len, (*self.sent, *self.came)))


@contextmanager
def relayed(url: str) -> Iterator[Relay]:
    """Stand between clients and a commons on loopback."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        relay = Relay(f"http://127.0.0.1:{listening.getsockname()[1]}")
        threading.Thread(target=_accept, args=(relay, url, listening), daemon=True).start()
        try:
            yield relay
        finally:
            listening.shutdown(socket.SHUT_RDWR)


def _accept(relay: Relay, url: str, listening: socket.socket) -> None:
    while True:
        try:
            connection, _address = listening.accept()
        except OSError:
            return
        relay.sent.append(bytearray())
        relay.came.append(bytearray())
        threading.Thread(target=_join, args=(url, connection, relay.sent[-1], relay.came[-1]), daemon=True).start()


def _join(url: str, client: socket.socket, sent: bytearray, came: bytearray) -> None:
    with client, connected(url) as commons:
        there = threading.Thread(target=_copy, args=(client, commons, sent), daemon=True)
        there.start()
        _copy(commons, client, came)
        there.join()


def _copy(source: socket.socket, target: socket.socket, kept: bytearray) -> None:
    with suppress(OSError):
        while data := source.recv(65_536):
            # Kept before it goes on, so that who has the answer finds it counted.
            kept += data
            target.sendall(data)
    with suppress(OSError):
        target.shutdown(socket.SHUT_WR)
