"""A commons that answers whatever a test wants, on loopback: each path has its bytes, sent as they are."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TypeAlias

Answer: TypeAlias = "bytes | Iterable[bytes] | Callable[[str], bytes]"


@dataclass
class Liar:
    """A server without manners.

    Attributes:
        answers: for each path the bytes of the whole answer, or the pieces of it; what is missing is answered by 404.
        asked: the heads of the requests that came, in order.
    """

    answers: dict[str, Answer] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    url: str = ""

    def say(self, path: str, body: bytes, status: str = "200 OK", **headers: str) -> None:
        """Answer a path decently."""
        self.answers[path] = answer(body, status, headers)

    @property
    def paths(self) -> list[str]:
        """The paths that were asked for, in order."""
        return [head.split(" ", 2)[1] for head in self.asked]


def answer(body: bytes, status: str = "200 OK", headers: Mapping[str, str] | None = None) -> bytes:
    """Spell an answer of HTTP."""
    named = {
        "Content-Length": str(len(body)),
        "Connection": "close",
        **{k.replace("_", "-"): v for k, v in (headers or {}).items()},
    }
    head = "".join(f"{name}: {value}\r\n" for name, value in named.items())
    return f"HTTP/1.1 {status}\r\n{head}\r\n".encode() + body


@contextmanager
def lying() -> Iterator[Liar]:
    """Run a liar on a free port of loopback."""
    liar = Liar()
    with socket.create_server(("127.0.0.1", 0)) as listening:
        liar.url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        open_now: list[socket.socket] = []
        threading.Thread(target=_listen, args=(liar, listening, open_now), daemon=True).start()
        try:
            yield liar
        finally:
            listening.shutdown(socket.SHUT_RDWR)
            for connection in open_now:
                with suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)


def _listen(liar: Liar, listening: socket.socket, open_now: list[socket.socket]) -> None:
    while True:
        try:
            connection, _address = listening.accept()
        except OSError:
            return
        open_now.append(connection)
        threading.Thread(target=_serve, args=(liar, connection), daemon=True).start()


def _serve(liar: Liar, connection: socket.socket) -> None:
    # One exchange a connection: whoever lies about lengths cannot keep one open anyway.
    with connection, suppress(OSError):
        head = b""
        while b"\r\n\r\n" not in head:
            piece = connection.recv(65_536)
            if not piece:
                return
            head += piece
        text = head.partition(b"\r\n\r\n")[0].decode()
        liar.asked.append(text)
        path = text.split(" ", 2)[1]
        found = liar.answers.get(path, answer(b"", "404 Not Found"))
        if callable(found):
            found = found(text)
        for piece in (found,) if isinstance(found, bytes) else found:
            connection.sendall(piece)
        connection.shutdown(socket.SHUT_WR)
        while connection.recv(65_536):
            pass
