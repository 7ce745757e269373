"""A conditional GET that answers 304, against an empty route that reads one row through the same engine.

Both are routes of one application in one process, written in the same way, and asked over one connection each by
a client that does next to nothing, so that the ratio is that of the server's work.
"""

from __future__ import annotations

import socket
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from sqlalchemy import select
from starlette.responses import Response

from bench.table import Bound, medians, report
from remem.protocol import digest_of
from remem_server.database.tables import meta
from remem_server.files.accept import accept_file
from remem_server.settings import system_clock
from remem_server.web.app import create_app
from remem_server.web.serving import listen, make_server, run, url_of
from remem_testkit.files import NOW, full_file, key
from remem_testkit.server import prepared

REPETITIONS = 300
WARM_UP = 30
PER_REPETITION = 20
NAME = f"/commons/{key(0).public.hex}.jsonl"


def serve(data: Path) -> None:
    """Serve a commons with one full file, and an empty route beside its own."""
    with prepared(data, system_clock) as commons:
        engine = commons.engine
        accept_file(engine, full_file(key(0)), name=key(0).public.hex, secret=None, token_needed=False, now=NOW)
        app = create_app(commons)
        row = select(meta.c.changes)

        @app.get("/empty", response_class=Response)
        def empty() -> Response:
            with engine.connect() as connection:
                connection.execute(row).one()
            return Response()

        listening = listen("127.0.0.1", 0, or_any=False)
        run(make_server(app), listening, lambda: print(url_of(listening), flush=True))


class Client:
    """One connection that sends the same bytes over and over."""

    def __init__(self, port: int, path: str, *headers: str) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._request = "\r\n".join([f"GET {path} HTTP/1.1", "Host: bench", *headers, "", ""]).encode()

    def ask(self) -> bytes:
        self._socket.sendall(self._request)
        answer = b""
        while not answer.endswith(b"\r\n\r\n"):
            answer += self._socket.recv(65_536)
        return answer

    def ask_often(self) -> None:
        for _ in range(PER_REPETITION):
            self.ask()


def main() -> None:
    etag = digest_of(full_file(key(0)))
    with tempfile.TemporaryDirectory() as folder:
        server = subprocess.Popen(
            [sys.executable, __file__, "--serve", str(Path(folder) / "data")], stdout=subprocess.PIPE, text=True
        )
        try:
            assert server.stdout is not None
            port = int(server.stdout.readline().rpartition(":")[2])
            clients = {
                "an empty route that reads one row": Client(port, "/empty"),
                "GET that answers 304": Client(port, NAME, f'If-None-Match: "{etag}"'),
                "GET that answers 304, gzip": Client(
                    port, NAME, "Accept-Encoding: gzip, deflate", f'If-None-Match: "{etag}-gzip"'
                ),
            }
            for (name, client), status in zip(clients.items(), (b"200", b"304", b"304"), strict=True):
                assert client.ask().split()[1] == status, name
            things = {name: lambda _, client=client: client.ask_often() for name, client in clients.items()}
            taken = medians(things, repetitions=REPETITIONS, warm_up=WARM_UP)
        finally:
            server.terminate()
            server.wait()
    seconds = {name: whole / PER_REPETITION for name, whole in taken.items()}
    empty, plain, zipped = seconds.values()
    bounds = [
        Bound("304 / empty route", plain / empty, most=1.5),
        Bound("304 gzip / empty route", zipped / empty, most=1.5),
    ]
    report(f"one request; medians of {REPETITIONS} times {PER_REPETITION}", seconds, bounds)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--serve"]:
        serve(Path(sys.argv[2]))
    else:
        main()
