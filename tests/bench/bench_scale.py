"""A commons of 100,000 memories and a million records beside one of 1,000: what each answer and the memory come to.

Both are filled with a crowd's signed files, served by a process of their own each, and asked in turns over one
connection each. Words and confirmations are spread as they are among people, so the larger commons has words of
200,000 lessons and lessons with thousands of confirmations.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from itertools import cycle
from pathlib import Path
from random import Random
from statistics import median
from typing import Any

import psycopg
from sqlalchemy import func, insert, make_url, select

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.asking import Asker, asking, get, put
from bench.table import Bound, medians, report
from remem_server.database.engine import writing
from remem_server.database.tables import files, tokens
from remem_server.lessons import tallies
from remem_server.lessons.policy import policy_of
from remem_server.lessons.rows import read_rows
from remem_server.opening.context import Commons
from remem_server.settings import system_clock
from remem_server.upkeep.audit import audit
from remem_testkit import crowd
from remem_testkit.crowd import UNLIMITED, Crowd, fill
from remem_testkit.postgres import DATABASES, start_postgres
from remem_testkit.server import CommonsProcess, prepared, spawn

SLOWER_MOST = 3.0
LARGER_MOST = 1.5
START_SECONDS_MOST = 2.0
STARTS = 5
SAMPLE = 500
INDEX, FILE, LESSON = "index page", "one file", "one lesson"
COMMON, RARE, FIRST = "search: a word of every other lesson", "search: a word of 5 lessons", "first page of lessons"
BOUNDED = (INDEX, FILE, LESSON, COMMON, RARE, FIRST)
# What nobody promised, and someone will do.
SELDOM = "search: a word of 1 lesson in 100"
TWO = "search: both of these words"
FADING = "first page of lessons that fade, of which there are none"
CONFIRMED = "the lesson with the most confirmations"
NEW, NEWER = "PUT of a new file of 10 records", "PUT of its next one"


class Place:
    """Where a crowd's commons is kept: a data folder, a database that its variables name, and a note of when."""

    def __init__(self, folder: Path, database: str, members: int, server: str | None) -> None:
        self.data = folder / f"{database}-{members}"
        self.note = folder / f"{database}-{members}.json"
        self.members = members
        self.variables: dict[str, str] = {}
        if server is not None:
            name = f"crowd_{members}"
            with psycopg.connect(server, autocommit=True) as connection:
                if not connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [name]).fetchone():
                    connection.execute(f"CREATE DATABASE {name}".encode())
            url = make_url(server).set(drivername="postgresql+psycopg", database=name)
            self.variables["REMEM_DATABASE_URL"] = url.render_as_string(hide_password=False)

    @contextmanager
    def opened(self) -> Iterator[Commons]:
        """Open it without serving it."""
        url = self.variables.get("REMEM_DATABASE_URL")
        with prepared(self.data, system_clock, **({"database_url": url} if url else {})) as commons:
            yield commons

    @contextmanager
    def served(self) -> Iterator[CommonsProcess]:
        """Serve it as a process of its own."""
        with spawn(self.data, **UNLIMITED, **self.variables) as commons:
            yield commons


def filled(place: Place) -> Crowd:
    """Have a crowd in a commons, unless it is there from an earlier run."""
    sample = [crowd.hash_of(number) for number in range(SAMPLE)]
    if place.note.exists():
        noted = json.loads(place.note.read_text())
        if noted["sample"] != sample:
            sys.exit(f"expected a folder of the crowd of now, got one of before: remove {place.note.parent}")
        return Crowd(place.members, datetime.fromisoformat(noted["now"]))
    made = Crowd(place.members, datetime.now(UTC))
    started = time.perf_counter()
    with place.opened() as commons:
        fill(commons, made)
        said = f"  {made.members:,} files with {made.records:,} records in {time.perf_counter() - started:.0f} s"
        print(said, file=sys.stderr, flush=True)
        check(commons, made)
    place.note.write_text(json.dumps({"now": made.now.isoformat(), "sample": sample}))
    return made


def check(commons: Commons, made: Crowd) -> None:
    """Compare what stands with what PUTs would have left: all of a small commons, and a sample of a large one."""
    if made.members <= SAMPLE * 2:
        found = list(audit(commons.engine, commons.clock(), node=commons.key.public.hex))
        assert not found, found
    with commons.reads.connect() as connection:
        hashes = {crowd.hash_of(number) for number in Random(1).choices(range(made.lessons), k=SAMPLE)}
        hashes |= {crowd.hash_of(number) for number in range(SAMPLE)}
        expected = tallies.expected(connection, hashes, policy_of(connection))
        assert {hash_: stored.row for hash_, stored in read_rows(connection, hashes).items()} == expected
        for member in crowd.members_of(made, SAMPLE):
            digest = select(files.c.digest).where(files.c.key == crowd.signer(member).public.hex)
            assert connection.execute(digest).scalar_one()


# --- requests ---


def reads(made: Crowd, most_confirmed: str) -> Mapping[str, Iterator[bytes]]:
    """Write the requests that read, each of them over and over; of what there are many, always others."""
    chance = Random(made.members)
    members = [chance.randrange(made.members) for _ in range(1_000)]
    numbers = [member * crowd.LESSONS_EACH for member in members]
    page = "/commons/lessons?q="
    asked = {
        INDEX: [get(f"/commons/index?limit=100&since={chance.randrange(made.members - 100)}") for _ in members],
        FILE: [get(f"/commons/{crowd.signer(member).public.hex}.jsonl") for member in members],
        LESSON: [get(f"/commons/lessons/{crowd.hash_of(number)}") for number in numbers],
        COMMON: [get(page + crowd.COMMON)],
        RARE: [get(page + crowd.rare_word(number)) for number in numbers],
        FIRST: [get("/commons/lessons")],
        SELDOM: [get(page + crowd.SELDOM)],
        TWO: [get(f"{page}{crowd.COMMON}%20{crowd.SELDOM}")],
        FADING: [get("/commons/lessons?state=fading")],
        CONFIRMED: [get(f"/commons/lessons/{most_confirmed}")],
    }
    return {name: cycle(requests) for name, requests in asked.items()}


def publications(place: Place, made: Crowd, many: int) -> Mapping[str, Iterator[bytes]]:
    """Sign files of new members, and their next ones; their tokens are made here."""
    with place.opened() as commons, writing(commons.engine) as connection:
        first = made.members + connection.execute(select(func.count()).select_from(tokens)).scalar_one()
        members = range(first, first + many)
        rows = [crowd.token_row(member, made.now, bound=False) for member in members]
        connection.execute(insert(tokens), [{**row, "principal": f"new-{row['token_hash'][:16]}"} for row in rows])

    def request(member: int, later: int) -> bytes:
        path = f"/commons/{crowd.signer(member).public.hex}.jsonl"
        data = crowd.file_of(made, member, later=later)
        return put(path, data, f"Authorization: Bearer {crowd.secret(member)}")

    return {
        NEW: iter([request(member, 0) for member in members]),
        NEWER: iter([request(member, 60) for member in members]),
    }


def most_confirmed(place: Place) -> str:
    with place.opened() as commons, commons.reads.connect() as connection:
        row = connection.exec_driver_sql("SELECT hash FROM lessons ORDER BY confirmations DESC LIMIT 1")
        return str(row.scalar_one())


# --- measures ---


def resident(process: CommonsProcess) -> int:
    """Say how much memory a process has, in kilobytes."""
    status = Path(f"/proc/{process.process.pid}/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS:"))


def start_seconds(place: Place) -> float:
    """Time how long it takes from the command to the first answer."""
    taken = []
    for _ in range(STARTS):
        started = time.perf_counter()
        with place.served() as commons, asking(commons.url) as client:
            client.ask(get("/commons/lessons"))
            taken.append(time.perf_counter() - started)
    return median(taken)


def measure(places: list[Place], repetitions: int, title: str) -> None:
    """Fill, ask and report both commons of one database."""
    names = [f"{place.members:,} memories" for place in places]
    crowds = [filled(place) for place in places]
    starts = dict(zip((f"start, {name}" for name in names), map(start_seconds, places), strict=True))
    # Each thing that is asked warms up twice.
    asked = [
        {**reads(made, most_confirmed(place)), **publications(place, made, repetitions + 2)}
        for place, made in zip(places, crowds, strict=True)
    ]
    seconds: dict[str, float] = {}
    with ExitStack() as stack:
        served = [stack.enter_context(place.served()) for place in places]
        clients = [stack.enter_context(asking(commons.url)) for commons in served]
        # Publishing apart from reading: who reads this much takes turns while others ask for little.
        for whats in ([what for what in asked[0] if what not in (NEW, NEWER)], [NEW, NEWER]):
            things: dict[str, Callable[[int], object]] = {}
            for what in whats:
                for name, client, requests in zip(names, clients, asked, strict=True):
                    things[f"{what}, {name}"] = asker(client, requests[what])
            seconds |= medians(things, repetitions=repetitions)
        memory = [resident(commons) for commons in served]
    few, many = names
    bounds = [
        Bound(
            f"{what}: {many} / {few}",
            seconds[f"{what}, {many}"] / seconds[f"{what}, {few}"],
            most=SLOWER_MOST if what in BOUNDED else None,
        )
        for what in asked[0]
    ]
    bounds.append(Bound(f"memory: {many} ({memory[1]:,} KB) / {few}", memory[1] / memory[0], most=LARGER_MOST))
    bounds.append(Bound("start to first answer", starts[f"start, {many}"], most=START_SECONDS_MOST, unit="s"))
    report(f"{title}; medians of {repetitions}", {**seconds, **starts}, bounds)


def asker(client: Asker, requests: Iterator[bytes]) -> Callable[[int], object]:
    return lambda _number: client.ask(next(requests))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--database", choices=DATABASES, action="append", help="one of them; both if not given")
    parser.add_argument("--members", type=int, nargs=2, default=[1_000, 100_000], help="of the small and the large one")
    parser.add_argument("--repetitions", type=int, default=100)
    parser.add_argument("--keep", type=Path, help="a folder to keep the databases in, for another run")
    options: Any = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = (options.keep or Path(scratch)).resolve()
        folder.mkdir(exist_ok=True)
        failed = False
        for database in options.database or DATABASES:
            server = None
            if database == "postgres":
                server = start_postgres(folder / "postgres", durable=True, keep=options.keep is not None)
            places = [Place(folder, database, members, server) for members in options.members]
            try:
                measure(places, options.repetitions, f"{database}: {' and '.join(map(str, options.members))} memories")
            except SystemExit:
                failed = True
    sys.exit(failed)


if __name__ == "__main__":
    main()
