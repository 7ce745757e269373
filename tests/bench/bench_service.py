"""What one server process answers in a second: publishing, reading and searching, beside an empty route.

One process serves a commons of 2,000 memories and 10,000 lessons, with an empty route among its own; another serves an
empty FastAPI application in the same way. The client holds several connections open, with a request under way on each.
"""

from __future__ import annotations

import argparse
import gc
import selectors
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from functools import partial
from itertools import cycle
from pathlib import Path
from random import Random
from typing import Any

import uvicorn
from fastapi import FastAPI
from sqlalchemy import insert
from starlette.responses import Response

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.asking import Answer, connect, get, put
from bench.table import Bound, medians, report
from remem.protocol import digest_of
from remem_server.database.engine import writing
from remem_server.database.tables import tokens
from remem_server.settings import system_clock
from remem_server.web.app import create_app
from remem_server.web.serving import listen, make_server, run, url_of
from remem_testkit import crowd
from remem_testkit.crowd import UNLIMITED, Crowd, fill
from remem_testkit.files import file, lesson
from remem_testkit.postgres import DATABASES, start_postgres
from remem_testkit.server import prepared

MEMBERS = 2_000
CONNECTIONS = 8
WARM_UP = 2
READS_EACH = 200
PUBLISHES_EACH = 40
SEARCHES_LEAST = 300
BARE, EMPTY = "an empty FastAPI application", "an empty route of the commons"
FILE, SAME, INDEX, LESSON = "a file", "a file that the reader has (304)", "an index page of 100", "a lesson"
COMMON, RARE, FIRST = "search for a common word", "search for a rare word", "first page of lessons"
PUBLISH = "publishing a new file of one lesson"


# --- the servers ---


def serve(app: FastAPI, make: Callable[[FastAPI], uvicorn.Server]) -> None:
    """Serve an application with an empty route among its own, prepared as `remem-server serve` prepares it."""

    @app.get("/empty", response_class=Response)
    def empty() -> Response:
        return Response()

    listening = listen("127.0.0.1", 0, or_any=False)
    gc.collect()
    gc.freeze()
    run(make(app), listening, lambda: print(url_of(listening), flush=True))


def serve_bare() -> None:
    """Serve an application that has nothing else, by the same web server."""
    serve(FastAPI(), lambda app: uvicorn.Server(uvicorn.Config(app, log_level="warning", access_log=False)))


def serve_commons(data: Path, now: datetime, repetitions: int, url: str | None) -> None:
    """Serve a crowd's commons, with tokens for as many new members as will publish."""
    options: dict[str, Any] = {"database_url": url} if url else {}
    options |= {name.removeprefix("REMEM_").lower(): int(most) for name, most in UNLIMITED.items()}
    with prepared(data, system_clock, **options) as commons:
        fill(commons, Crowd(MEMBERS, now))
        with writing(commons.engine) as connection:
            rows = [crowd.token_row(member, now, bound=False) for member in publishers(repetitions)]
            connection.execute(insert(tokens), [{**row, "principal": row["token_hash"]} for row in rows])
        serve(create_app(commons), make_server)


def publishers(repetitions: int) -> range:
    return range(MEMBERS, MEMBERS + PUBLISHES_EACH * (repetitions + WARM_UP))


@contextmanager
def started(*arguments: str) -> Iterator[str]:
    """Start one of the servers as a process, and return its URL."""
    server = subprocess.Popen([sys.executable, __file__, *arguments], stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        yield server.stdout.readline().strip()
    finally:
        server.terminate()
        server.wait()


# --- the client ---


def ask(url: str, requests: Iterator[bytes], many: int) -> None:
    """Send so many requests over several connections, a new one wherever an answer came, and wait for every answer."""
    with ExitStack() as stack, selectors.DefaultSelector() as selector:
        for _ in range(CONNECTIONS):
            connection = stack.enter_context(connect(url))
            connection.sendall(next(requests))
            selector.register(connection, selectors.EVENT_READ, (connection, Answer()))
        sent = CONNECTIONS
        while selector.get_map():
            for ready, _events in selector.select():
                connection, answer = ready.data
                if not answer.take(connection.recv(1 << 20)):
                    continue
                assert answer.status < 400, answer.body
                if sent == many:
                    selector.unregister(connection)
                    continue
                sent += 1
                connection.sendall(next(requests))
                selector.modify(connection, selectors.EVENT_READ, (connection, Answer()))


def requests_of(made: Crowd, repetitions: int) -> dict[str, Iterator[bytes]]:
    """Write what is asked of the commons, over and over."""
    chance = Random(7)
    members = [chance.randrange(made.members) for _ in range(500)]
    paths = [f"/commons/{crowd.signer(member).public.hex}.jsonl" for member in members]
    etags = [digest_of(crowd.file_of(made, member)) for member in members]
    lessons = [member * crowd.LESSONS_EACH for member in members]
    page = "/commons/lessons?limit=100"
    reads = {
        EMPTY: [get("/empty")],
        FILE: [get(path) for path in paths],
        SAME: [get(path, f'If-None-Match: "{etag}"') for path, etag in zip(paths, etags, strict=True)],
        INDEX: [get(f"/commons/index?limit=100&since={chance.randrange(made.members - 100)}") for _ in members],
        LESSON: [get(f"/commons/lessons/{crowd.hash_of(number)}") for number in lessons],
        FIRST: [get(page)],
        COMMON: [get(f"{page}&q={crowd.COMMON}")],
        RARE: [get(f"{page}&q={crowd.rare_word(number)}") for number in lessons],
    }
    return {**{name: cycle(asked) for name, asked in reads.items()}, PUBLISH: iter(publications(made, repetitions))}


def publications(made: Crowd, repetitions: int) -> list[bytes]:
    written = []
    for member in publishers(repetitions):
        kind, text = crowd.sentence(member * crowd.LESSONS_EACH)
        signer = crowd.signer(member)
        data = file(signer, [lesson(text, kind=kind, at=made.now)], at=made.now)
        path = f"/commons/{signer.public.hex}.jsonl"
        written.append(put(path, data, f"Authorization: Bearer {crowd.secret(member)}"))
    return written


def measure(database: str, scratch: Path, repetitions: int) -> None:
    """Ask both servers in turns, and report."""
    made = Crowd(MEMBERS, datetime.now(UTC).replace(microsecond=0))
    url = ""
    if database == "postgres":
        url = start_postgres(scratch / "postgres", durable=True).replace("postgresql://", "postgresql+psycopg://", 1)
    requests = requests_of(made, repetitions)
    with ExitStack() as stack:
        bare = stack.enter_context(started("--bare"))
        told = (str(scratch / "data"), made.now.isoformat(), str(repetitions), url)
        commons = stack.enter_context(started("--serve", *told))
        empty = cycle([get("/empty")])
        things: dict[str, Callable[[int], object]] = {BARE: partial(_ask, bare, empty, READS_EACH)}
        for name, asked in requests.items():
            things[name] = partial(_ask, commons, asked, each(name))
        # Publishing apart from reading: who reads this much takes turns while others ask for little.
        publishing = {PUBLISH: things.pop(PUBLISH)}
        taken = medians(things, repetitions=repetitions, warm_up=WARM_UP)
        taken |= medians(publishing, repetitions=repetitions, warm_up=WARM_UP)
    seconds = {name: whole / each(name) for name, whole in taken.items()}
    least = {COMMON: float(SEARCHES_LEAST)}
    bounds = [Bound(name, 1 / one, least=least.get(name), unit="/s") for name, one in seconds.items()]
    bounds += [Bound(f"{name} / {BARE}", one / seconds[BARE]) for name, one in seconds.items() if name != BARE]
    title = f"{database}: {made.lessons:,} lessons, {CONNECTIONS} connections; medians of {repetitions}, time an answer"
    report(title, seconds, bounds)


def _ask(url: str, requests: Iterator[bytes], many: int, _repetition: int) -> None:
    ask(url, requests, many)


def each(name: str) -> int:
    return PUBLISHES_EACH if name == PUBLISH else READS_EACH


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--database", choices=DATABASES, action="append", help="one of them; both if not given")
    parser.add_argument("--repetitions", type=int, default=20)
    options = parser.parse_args()
    failed = False
    for database in options.database or DATABASES:
        with tempfile.TemporaryDirectory() as scratch:
            try:
                measure(database, Path(scratch), options.repetitions)
            except SystemExit:
                failed = True
    sys.exit(failed)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--bare"]:
        serve_bare()
    elif sys.argv[1:2] == ["--serve"]:
        serve_commons(Path(sys.argv[2]), datetime.fromisoformat(sys.argv[3]), int(sys.argv[4]), sys.argv[5] or None)
    else:
        main()
