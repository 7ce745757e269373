"""Two commons of 100,000 files that differ in 1,000: the bytes that one exchange moves, and what it costs.

    python tests/bench/bench_commons.py [--files N] [--missing M] [--records R] [--database sqlite|postgres]

Both commons are copies of one, which the server's own write path filled, many files a transaction; of these files only
their number matters, and they are small. What is missing has as many records as a memory has after a year. It is put
on one side, on the other or half on each; it is the newest of all, or of any time. Then each commons is served by a
process of its own, the two list each other, and `remem-server gossip` is run at one of them.

Bytes are counted on the wire, both ways, with the heads of HTTP and all that either says to the other meanwhile; and
beside them the bodies as they are before what is fetched is compressed. They are compared with the missing files and 32
bytes for the id of each. What finding the differences takes does not depend on the files' size, so small files of any
time cost more than themselves: that is printed too. A second exchange, which finds nothing, tells what the command
costs by itself; the processor's time of the first is that of both sides without it.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import islice
from multiprocessing import get_context
from pathlib import Path
from random import Random
from typing import Any, Final, NamedTuple

from nacl.signing import VerifyKey
from sqlalchemy import select, update

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.bench_acceptance import signed_messages
from bench.places import Place
from bench.table import Bound, report
from remem.protocol import OriginFile, accept, lesson_hash
from remem.protocol.canonical import JSON
from remem_server.database import changes
from remem_server.database.engine import Database, writing
from remem_server.database.tables import files, meta
from remem_server.files.accept import store_accepted
from remem_server.opening.node import KEY_NAME, load_key
from remem_server.settings import system_clock
from remem_server.upkeep.audit_items import audit_items
from remem_testkit.cutting import Wire
from remem_testkit.files import confirmation, file, key, lesson, sentence
from remem_testkit.postgres import DATABASES, start_postgres
from remem_testkit.server import CommonsProcess, operator_command, plain_environment, prepared, spawn

MOVED_MOST: Final = 1.2
COMMON_RECORDS: Final = 1
SMALL_RECORDS: Final = 3
# What a commons holds was said in this time; what is newest, since then.
SPAN: Final = timedelta(days=300)
NEWEST: Final = timedelta(hours=12)
_TOGETHER: Final = 500
_LOOK_SECONDS: Final = 0.02
_TICKS: Final = os.sysconf("SC_CLK_TCK")


# --- the files ---


def times(count: int, now: datetime) -> list[datetime]:
    """Spread moments over the time in which a commons grew."""
    return [now - NEWEST - SPAN * (1 - number / count) for number in range(count)]


def missing_times(count: int, now: datetime, *, newest: bool) -> list[datetime]:
    """Say when what is missing was said: since everything else, or at any time."""
    chance = Random(count)
    return [now - (NEWEST if newest else NEWEST + SPAN) * chance.random() for _ in range(count)]


def made(moments: Sequence[datetime], first: int, records: int, now: datetime) -> Iterator[list[OriginFile]]:
    """Sign a file of each of so many keys, several at once."""
    starts = range(0, len(moments), _TOGETHER)
    parts = [(first + start, moments[start : start + _TOGETHER]) for start in starts]
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        yield from pool.map(partial(_made, records=records, now=now), parts)


def _made(part: tuple[int, Sequence[datetime]], *, records: int, now: datetime) -> list[OriginFile]:
    first, moments = part
    return [
        accept(file(key(number), said(number, records, moment), at=moment.replace(microsecond=0)), now=now)
        for number, moment in enumerate(moments, first)
    ]


def said(number: int, records: int, moment: datetime) -> list[dict[str, JSON]]:
    """Say as many records: half of them are lessons, and half confirm those of others."""
    own, theirs = number * records, (number + 1) * records
    lessons = [lesson(sentence(own + line), at=moment) for line in range((records + 1) // 2)]
    hashes = [lesson_hash("error", sentence(theirs + line)) for line in range(records // 2)]
    return lessons + [confirmation(subject, at=moment) for subject in hashes]


def put(database: Database, some: Sequence[OriginFile], now: datetime) -> None:
    """Store files that are accepted, in one transaction."""
    with writing(database.engine) as connection:
        changes.lock(connection)
        for one in some:
            store_accepted(connection, one, now)


# --- the commons ---


@dataclass(frozen=True)
class Pair:
    """Two commons that hold the same, and what their servers are started with: both count by one policy."""

    one: Place
    other: Place
    variables: dict[str, str]


def prepare(folder: Path, server: str | None, count: int, now: datetime) -> Pair:
    """Fill a commons, and copy it; the copy has a key of its own."""
    theirs = folder / "key"
    theirs.mkdir()
    other_key = load_key(theirs).public.hex
    one = Place(folder / "one", server)
    one.make()
    started = time.perf_counter()
    with prepared(one.data, system_clock, operators=(other_key,), **one.options) as commons:
        operators = " ".join(commons.operators)
        for some in made(times(count, now), 0, COMMON_RECORDS, now):
            put(Database(commons.engine, commons.engine, {}), some, now)
    other = one.copied(folder / "other")
    shutil.copy(theirs / KEY_NAME, other.data / KEY_NAME)
    with other.opened() as database, writing(database.engine) as connection:
        connection.execute(update(meta).values(node=other_key))
    took = time.perf_counter() - started
    print(f"  {count:,} files in {took:.0f} s", file=sys.stderr, flush=True)
    return Pair(one, other, {"REMEM_OPERATORS": operators, "REMEM_GOSSIP_MINUTES": "0"})


# --- an exchange ---


@dataclass(frozen=True)
class Exchanged:
    """What one run of `remem-server gossip` did and cost.

    Attributes:
        told: what it told of the exchange.
        moved: bytes that passed between the two commons, both ways.
        seconds: how long it took.
        here: the processor's seconds of the command.
        there: those of the other commons' server.
        resident: the memory that the command had at most, in MB.
    """

    told: dict[str, Any]
    moved: int
    seconds: float
    here: float
    there: float
    resident: float


def exchange(one: Place, variables: dict[str, str], wires: Sequence[Wire], server: CommonsProcess) -> Exchanged:
    """Have one exchange by the command."""
    moved, there = sum(wire.passed for wire in wires), processor(server)
    started = time.perf_counter()
    words = operator_command("gossip", wires[1].url, "--data", str(one.data), "--json")
    before, memory = resource.getrusage(resource.RUSAGE_CHILDREN), 0.0
    with subprocess.Popen(words, stdout=subprocess.PIPE, env=plain_environment(**variables)) as process:
        while process.poll() is None:
            memory = max(memory, resident(process.pid))
            time.sleep(_LOOK_SECONDS)
        assert process.stdout is not None
        told = process.stdout.read()
    seconds, after = time.perf_counter() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
    (met,) = json.loads(told)
    assert met["code"] is None, met
    return Exchanged(
        met["report"],
        sum(wire.passed for wire in wires) - moved,
        seconds,
        after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
        processor(server) - there,
        memory,
    )


def processor(server: CommonsProcess) -> float:
    """Say how many seconds of the processor a server took so far."""
    fields = Path(f"/proc/{server.process.pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:13])) / _TICKS


def resident(pid: int) -> float:
    """Say how much memory a process had at most, in MB; nothing where it has ended."""
    status = Path(f"/proc/{pid}/status").read_text()
    return next((int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM:")), 0) / 1024


def listed(place: Place, wire: Wire, variables: dict[str, str]) -> None:
    """Let a commons list the one behind a wire as its peer."""
    words = operator_command("peers", "add", wire.url, "--allow-private", "--allow-http", "--data", str(place.data))
    subprocess.run(words, env=plain_environment(**variables), check=True, capture_output=True)


def versions(place: Place) -> set[tuple[str, str]]:
    """Return the version of each key that a commons holds, and fail where its items are others."""
    with place.opened() as database, database.engine.connect() as connection:
        found = list(audit_items(connection))
        assert not found, found
        return {(row.key, row.digest) for row in connection.execute(select(files.c.key, files.c.digest))}


@dataclass(frozen=True)
class Measured:
    """The exchange of one pair, the one behind it that finds nothing, and the memory of the server that was asked."""

    first: Exchanged
    second: Exchanged
    server: float


def measure(folder: Path, pair: Pair, here: Sequence[OriginFile], there: Sequence[OriginFile]) -> Measured:
    """Put on each side of a copied pair what the other lacks, and let them meet."""
    places = (pair.one.copied(folder / "here"), pair.other.copied(folder / "there"))
    for place, some in zip(places, (here, there), strict=True):
        with place.opened() as database:
            put(database, some, system_clock())
    told = [{**pair.variables} for _ in places]
    for variables, place in zip(told, places, strict=True):
        if "database_url" in place.options:
            variables["REMEM_DATABASE_URL"] = place.options["database_url"]
    with ExitStack() as stack:
        wires = [Wire() for _ in places]
        servers = [stack.enter_context(spawn(place.data, **of)) for place, of in zip(places, told, strict=True)]
        for wire, server in zip(wires, servers, strict=True):
            stack.callback(wire.close)
            wire.lead_to(server.url)
        for place, wire, variables in zip(places, reversed(wires), told, strict=True):
            listed(place, wire, variables)
        runs = [exchange(places[0], told[0], wires, servers[1]) for _ in range(2)]
        measured = Measured(runs[0], runs[1], resident(servers[1].process.pid))
    held = [versions(place) for place in places]
    assert held[0] == held[1], "expected both to hold the same"
    assert runs[0].told["taken"].get("new", 0) == len(there), runs[0].told
    assert runs[0].told["stand_there"] == len(here), runs[0].told
    for place in places:
        place.remove()
    return measured


# --- the figures ---


def verification(missing: Sequence[OriginFile]) -> float:
    """Measure the seconds of the processor that a bare verification of what is missing takes."""
    messages = [(one.key.raw, signed_messages(one.data)) for one in missing]
    started = time.process_time()
    for raw, signed in messages:
        verify = VerifyKey(raw).verify
        for message, signature in signed:
            verify(message, signature)
    return time.process_time() - started


def bounds_of(
    name: str, missing: Sequence[OriginFile], found: Measured, bare: float, most: float | None
) -> Iterator[Bound]:
    first, second = found.first, found.second
    needed = sum(len(one.data) + 32 for one in missing)
    bodies = first.told["sent"] + first.told["received"]
    cost = first.here + first.there - second.here - second.there
    yield Bound(f"{name}: moved / files and ids", first.moved / needed, most=most)
    yield Bound(f"{name}: the same, not compressed", bodies / needed, most=most)
    yield Bound(f"{name}: messages of reconciliation", first.told["rounds"], unit="")
    yield Bound(f"{name}: processor of both / bare verification", cost / bare)
    yield Bound(f"{name}: memory of the command", first.resident, unit="MB")
    yield Bound(f"{name}: memory of the server", found.server, unit="MB")
    yield Bound(
        f"{name}: bodies of a second exchange", second.told["sent"] + second.told["received"], most=400, unit="B"
    )


class Case(NamedTuple):
    """What differs: its name, when it was said, how many records a file of it has, and how many are only here."""

    name: str
    newest: bool
    records: int
    here: int

    @property
    def said(self) -> str:
        return f"{'newest' if self.newest else 'of any time'}, {self.name}"


def cases(many: int, records: int) -> Iterator[Case]:
    for newest in (True, False):
        yield Case("lacked here", newest, records, 0)
        yield Case("lacked there", newest, records, many)
        yield Case("half on each side", newest, records, many // 2)
    if records > SMALL_RECORDS:
        yield Case(f"lacked here, {SMALL_RECORDS} records", newest=False, records=SMALL_RECORDS, here=0)
        yield Case(f"lacked there, {SMALL_RECORDS} records", newest=False, records=SMALL_RECORDS, here=many)


def compare(folder: Path, server: str | None, chosen: argparse.Namespace, title: str) -> None:
    """Prepare a pair, let copies of it meet in every way, and report."""
    now, many = datetime.now(UTC).replace(microsecond=0), chosen.missing
    pair = prepare(folder, server, chosen.files - many, now)
    seconds: dict[str, float] = {}
    bounds: list[Bound] = []
    size = 0
    for case in cases(many, chosen.records):
        moments = missing_times(many, now, newest=case.newest)
        missing = [one for some in made(moments, chosen.files, case.records, now) for one in some]
        left = iter(missing)
        found = measure(folder, pair, list(islice(left, case.here)), list(left))
        seconds[case.said] = found.first.seconds
        most = MOVED_MOST if case.records == chosen.records else None
        bounds += bounds_of(case.said, missing, found, verification(missing), most)
        size = size or sum(len(one.data) for one in missing) // many
    title += f": {chosen.files:,} files, {many:,} differ, of {chosen.records} records and {size:,} bytes"
    report(title, seconds, bounds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=100_000)
    parser.add_argument("--missing", type=int, default=1_000)
    parser.add_argument("--records", type=int, default=50, help="how many a file that is missing has")
    parser.add_argument("--database", choices=DATABASES, default="sqlite")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        server = start_postgres(folder / "postgres", durable=True) if chosen.database == "postgres" else None
        compare(folder, server, chosen, chosen.database)


if __name__ == "__main__":
    main()
