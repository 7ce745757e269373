"""Whole nodes behind real sockets on loopback: what answers is `nodes.Peer`, or a liar that answers like one."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from remem_gossip.errors import GossipError
from remem_gossip.exchange import Request
from remem_gossip.signatures import verify
from remem_testkit.nodes import Answering


@dataclass
class Served:
    """A node that can be dialled.

    Attributes:
        url: its address.
        asked: the paths of what it was asked, in order.
        callers: the key that signed each of these.
        cut_after: behind how many answers it breaks each connection; None for never.
        cut_at: behind how many bytes of answers, heads and all, it breaks the connection; None for never.
        sent: how many bytes it sent.
        peers: what its descriptor publishes.
        key: the key that its descriptor names.
    """

    url: str = ""
    asked: list[str] = field(default_factory=list)
    callers: list[str] = field(default_factory=list)
    cut_after: int | None = None
    cut_at: int | None = None
    sent: int = 0
    peers: Sequence[object] = ()
    key: str = "ab" * 32


@contextmanager
def served(peer: Answering) -> Iterator[Served]:
    """Let a node answer on loopback; only requests that are signed as they have to be."""
    known = Served()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_PUT(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self._send(404, json.dumps({"code": "route_unknown"}).encode())

        def do_GET(self) -> None:
            if self.path != "/.well-known/remem":
                self._send(404, json.dumps({"code": "route_unknown"}).encode())
                return
            self._send(200, json.dumps({"protocol": [1], "key": known.key, "peers": list(known.peers)}).encode())

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if known.cut_after is not None and len(known.asked) >= known.cut_after:
                self.close_connection = True
                return
            known.asked.append(self.path)
            try:
                signed = verify("POST", self.path, self.headers.items(), datetime.now(UTC))
                signed.check(body)
                known.callers.append(signed.key.hex)
                answer = peer.answer(Request(self.path, body, 0), signed.key.hex)
                said = answer.body if answer.code is None else json.dumps({"code": answer.code}).encode()
                self._send(answer.status, said)
            except GossipError as error:
                self._send(401, json.dumps({"code": error.code}).encode())

        def _send(self, status: int, body: bytes) -> None:
            whole = b"HTTP/1.1 %d Said\r\nContent-Length: %d\r\n\r\n%b" % (status, len(body), body)
            left = len(whole) if known.cut_at is None else max(0, known.cut_at - known.sent)
            self.close_connection = left < len(whole)
            known.sent += len(whole[:left])
            self.wfile.write(whole[:left])

        def log_message(self, *_words: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    known.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield known
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
