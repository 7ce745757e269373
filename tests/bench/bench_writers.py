"""Eight writers at once: what they publish in a second, and how long each waits for its turn, beside one alone.

    python tests/bench/bench_writers.py [--database sqlite|postgres] [--writers N] [--each N] [--rounds N]

All put new files of one lesson, sealed one after the other, so that every one of them wants the newest block of items.
Over PostgreSQL they are spread over two servers of one commons, with a thread for each, so that they meet at the
database's locks and nowhere before; over SQLite there is one as it comes. One writer and all of them take turns, round
by round. If writers queue in the order in which they came, none waits much longer than all the others take: eight times
what one alone does.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path
from statistics import median, quantiles
from typing import Any, Final

from sqlalchemy import func, insert, select

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.asking import Answer, connect, put
from bench.table import Bound, report
from remem_server.database.engine import writing
from remem_server.database.tables import files, tokens
from remem_server.opening.context import Commons
from remem_server.settings import system_clock
from remem_server.upkeep.audit import audit
from remem_testkit import crowd
from remem_testkit.crowd import UNLIMITED
from remem_testkit.files import file, lesson, sentence
from remem_testkit.postgres import DATABASES, start_postgres
from remem_testkit.server import prepared, spawn

WARM_UP: Final = 1
SERVERS: Final = {"sqlite": 1, "postgres": 2}
# How much longer than all the others' turns together a wait may be, in the middle and for one in a hundred. The client
# and the servers share two cores, and take turns there too.
LONGER_MOST, LATE_MOST = 1.25, 2.0
LEAST: Final = 0.8
ONE, ALL = "one writer", "all writers"


@dataclass
class Taken:
    """What some writers met.

    Attributes:
        seconds: how long each answer took.
        spans: how long each round took.
        refused: how often what other status than 201 came.
    """

    seconds: list[float] = field(default_factory=list)
    spans: list[float] = field(default_factory=list)
    refused: Counter[int] = field(default_factory=Counter)

    @property
    def rate(self) -> float:
        """How many files a second were published."""
        return len(self.seconds) / sum(self.spans)

    @property
    def late(self) -> float:
        """How long one in a hundred took at least."""
        return quantiles(self.seconds, n=100)[-1]


# --- what they publish ---


def publications(many: int, now: datetime) -> Iterator[bytes]:
    """Write requests that publish new files, each sealed a second behind the one before."""
    for member in range(many):
        at = now - timedelta(seconds=many - member)
        signer = crowd.signer(member)
        data = file(signer, [lesson(sentence(member), at=at)], at=at)
        yield put(f"/commons/{signer.public.hex}.jsonl", data, f"Authorization: Bearer {crowd.secret(member)}")


def admit(commons: Commons, many: int, now: datetime) -> None:
    """Make a token for each of them, of a principal of its own."""
    rows = [crowd.token_row(member, now, bound=False) for member in range(many)]
    with writing(commons.engine) as connection:
        connection.execute(insert(tokens), [{**row, "principal": row["token_hash"]} for row in rows])


# --- the writers ---


def publish(url: str, requests: Sequence[bytes]) -> list[tuple[float, int]]:
    """Publish one file after the other over one connection; return how long each took, and its status."""
    told = []
    with connect(url) as connection:
        for request in requests:
            started = time.perf_counter()
            answer = Answer()
            connection.sendall(request)
            while not answer.take(connection.recv(1 << 20)):
                pass
            told.append((time.perf_counter() - started, answer.status))
    return told


def publish_together(urls: Sequence[str], requests: Iterator[bytes], writers: int, each: int, taken: Taken) -> None:
    """Let so many writers publish at once, spread over the servers."""
    shares = [list(islice(requests, each)) for _ in range(writers)]
    places = [urls[number % len(urls)] for number in range(writers)]
    started = time.perf_counter()
    with ThreadPoolExecutor(writers) as pool:
        told = [one for share in pool.map(publish, places, shares) for one in share]
    taken.spans.append(time.perf_counter() - started)
    taken.seconds += [seconds for seconds, _status in told]
    taken.refused.update(status for _seconds, status in told if status != 201)


# --- the figures ---


def deadlocks(commons: Commons) -> int:
    """Say how many deadlocks PostgreSQL met; SQLite has one writer, and none."""
    with commons.engine.connect() as connection:
        if connection.dialect.name == "sqlite":
            return 0
        row = connection.exec_driver_sql("SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()")
        return int(row.scalar_one())


def bounds_of(one: Taken, together: Taken, writers: int) -> Iterator[Bound]:
    yield Bound(f"{ALL} / {ONE}: files a second", together.rate / one.rate, least=LEAST)
    alone = median(one.seconds)
    yield Bound(f"{ALL} / {ONE}: median of a PUT", median(together.seconds) / alone, most=writers * LONGER_MOST)
    yield Bound(f"{ALL} / {ONE}: 99 in 100 PUTs", together.late / alone, most=writers * LATE_MOST)
    yield Bound(f"{ALL} / {ONE}: the longest PUT", max(together.seconds) / alone)
    yield Bound(f"{ONE}: 99 in 100 PUTs / their median", one.late / alone)


def measure(database: str, scratch: Path, writers: int, each: int, rounds: int) -> None:
    """Let one writer and all of them take turns, and report."""
    now, many = datetime.now(UTC).replace(microsecond=0), each * (writers + 1) * (rounds + WARM_UP)
    options: dict[str, Any] = {}
    variables = {**UNLIMITED, "REMEM_GOSSIP_MINUTES": "0"}
    if database == "postgres":
        options["database_url"] = start_postgres(scratch / "postgres", durable=True).replace(
            "postgresql://", "postgresql+psycopg://", 1
        )
        # So that none waits for a thread.
        variables |= {"REMEM_DATABASE_URL": options["database_url"], "REMEM_VERIFY_THREADS": str(writers)}
    requests = publications(many, now)
    with ExitStack() as stack:
        commons = stack.enter_context(prepared(scratch / "data", system_clock, **options))
        admit(commons, many, now)
        servers = [stack.enter_context(spawn(scratch / "data", **variables)) for _ in range(SERVERS[database])]
        urls = [server.url for server in servers]
        one, together = Taken(), Taken()
        for number in range(WARM_UP + rounds):
            if number == WARM_UP:
                one, together = Taken(), Taken()
            publish_together(urls[:1], requests, 1, each, one)
            publish_together(urls, requests, writers, each, together)
        with commons.engine.connect() as connection:
            stored = connection.execute(select(func.count()).select_from(files)).scalar_one()
        bounds = [
            *bounds_of(one, together, writers),
            Bound("answers other than 201", one.refused.total() + together.refused.total(), most=0, unit=""),
            Bound("files that are not there", many - stored, most=0, unit=""),
            Bound("deadlocks", deadlocks(commons), most=0, unit=""),
            Bound("what audit finds", len(list(audit(commons.engine, commons.clock()))), most=0, unit=""),
        ]
    taken = {ONE: one, ALL: together}
    seconds = {f"{name}: median of a PUT": median(of.seconds) for name, of in taken.items()}
    seconds |= {f"{name}: 99 in 100 PUTs": of.late for name, of in taken.items()}
    title = f"{database}: {writers} writers, {SERVERS[database]} server(s), {rounds} rounds of {each} files each"
    report(title, seconds, bounds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--database", choices=DATABASES, action="append", help="one of them; both if not given")
    parser.add_argument("--writers", type=int, default=8)
    parser.add_argument("--each", type=int, default=40)
    parser.add_argument("--rounds", type=int, default=8)
    chosen = parser.parse_args()
    failed = False
    for database in chosen.database or DATABASES:
        with tempfile.TemporaryDirectory() as scratch:
            try:
                measure(database, Path(scratch), chosen.writers, chosen.each, chosen.rounds)
            except SystemExit:
                failed = True
    sys.exit(failed)


if __name__ == "__main__":
    main()
