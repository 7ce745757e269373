"""Twelve nodes as real processes that gossip over loopback while they are killed, restarted and cut off.

    python tests/bench/bench_gossip.py [SECONDS] [--seed N]

Four commons over SQLite and three over PostgreSQL know some of the others as their peers; one of them takes files from
its peers alone. Five memories only dial out. Publishers keep putting files at the commons, the memories learn, share
and gossip, and some keys speak twice. Each process is killed with SIGKILL or ended at moments of nobody's choice, and
started again; each commons is reached by a wire that is cut at any byte.

Then everything is up, and all gossip by their commands until a pass brings nothing. All have to hold one map: the same
version of every key, and the same proofs that keys spoke twice. What was acknowledged has to stand, or something newer
of that key; `remem-server audit` and `remem doctor` have to find nothing wrong anywhere.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from random import Random
from signal import SIGKILL, SIGTERM
from typing import Any, Final, TypeAlias

import httpx
from sqlalchemy import select

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.table import Bound, report
from remem.commons.base import read_descriptor
from remem.memory import holdings
from remem.memory.store import transaction
from remem_gossip import peers as memory_book
from remem_gossip.addresses import Allowed, read_url
from remem_server.database import tables
from remem_server.database.engine import open_database, writing
from remem_server.gossip import peers as commons_book
from remem_server.opening.description import DESCRIPTOR_PATH
from remem_testkit.cutting import Wire
from remem_testkit.files import file, key, lesson, sentence
from remem_testkit.memories import Memory
from remem_testkit.postgres import fresh_database
from remem_testkit.server import make_settings, operator_command, plain_environment, spawn

SECONDS: Final = 180
OVER_SQLITE, OVER_POSTGRES, MEMORIES, PUBLISHERS = 4, 3, 5, 3
PASSES_MOST: Final = 6

ALLOWED: Final = Allowed(http=True, private=True)
# A round about every six seconds, in place of every hour.
_GOSSIP_MINUTES: Final = "0.1"
_COMMAND_SECONDS: Final = 120
_KEYS_EACH: Final = 40

# Of each key the number of its seal and the digest of its file; and the keys that are proven to have spoken twice.
Map: TypeAlias = Mapping[str, tuple[int | None, str] | None]


def now() -> datetime:
    return datetime.now(UTC).replace(microsecond=0)


def remem(*words: str) -> list[str]:
    return [str(Path(sys.executable).with_name("remem")), *words]


@dataclass
class Run:
    """What the whole run shares: whether it goes on, and what happened in it so far."""

    seed: int
    ending: threading.Event = field(default_factory=threading.Event)
    counts: Counter[str] = field(default_factory=Counter)
    acknowledged: dict[str, int] = field(default_factory=dict)
    unexpected: list[str] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def count(self, what: str) -> None:
        with self.lock:
            self.counts[what] += 1

    def random(self, name: str) -> Random:
        return Random(f"{self.seed} {name}")


class Server:
    """A commons as a process, behind a wire."""

    def __init__(self, name: str, data: Path, url: str | None, *, is_open: bool) -> None:
        self.name, self.data, self.is_open = name, data, is_open
        self.wire = Wire()
        self.peers: list[Server] = []
        self.key = ""
        self.variables = {"REMEM_GOSSIP_MINUTES": _GOSSIP_MINUTES, "REMEM_OPEN": str(is_open).lower()}
        if url is not None:
            self.variables["REMEM_DATABASE_URL"] = url
        self.life = ExitStack()
        self.start()
        self.database = open_database(make_settings(data, database_url=url))
        described = httpx.get(f"{self.started.url}{DESCRIPTOR_PATH}", trust_env=False)
        self.key = read_descriptor(described.content).key

    def start(self) -> None:
        self.started = self.life.enter_context(spawn(self.data, **self.variables))
        self.wire.lead_to(self.started.url)

    def end(self, by: Any = SIGKILL) -> None:
        self.started.end(by)
        self.life.close()

    def add_peers(self) -> None:
        """List its peers, so that one that rests after a failure may be asked: its hours would outlast the run."""
        with writing(self.database.engine) as connection:
            for peer in self.peers:
                commons_book.add(connection, read_url(peer.wire.url, ALLOWED), ALLOWED, now(), publish=False)
                commons_book.note_key(connection, peer.wire.url, peer.key)

    def map(self) -> Map:
        files, proofs = tables.files.c, tables.proofs.c
        with self.database.engine.connect() as connection:
            rows = connection.execute(select(files.key, files.seal, files.digest)).all()
            proven = connection.execute(select(proofs.key)).scalars().all()
        return {one: (seal, digest) for one, seal, digest in rows} | {f"proof {one}": None for one in proven}

    def command(self, *words: str) -> subprocess.CompletedProcess[str]:
        return ended(operator_command(*words, "--data", str(self.data)), self.variables)

    def checked(self) -> subprocess.CompletedProcess[str]:
        return self.command("audit")

    def trouble(self, run: Run) -> None:
        """Be killed, ended or cut at random."""
        random = run.random(self.name)
        while not run.ending.wait(random.uniform(3, 15)):
            act = random.choice(("kill -9", "kill -9", "ended", "cut at once", "cut at a byte", "cut at a byte"))
            run.count(act)
            if act.startswith("cut"):
                self.wire.cut(0 if act == "cut at once" else random.randrange(1, 40_000))
                run.ending.wait(random.uniform(0.5, 5))
                self.wire.lead_to(self.started.url)
            else:
                self.end(SIGKILL if act == "kill -9" else SIGTERM)
                run.ending.wait(random.uniform(0.1, 4))
                self.start()
            self.add_peers()


class Dialler:
    """A memory that only dials out, by a process for each thing that it does."""

    def __init__(self, name: str, path: Path, number: int, peers: list[Server]) -> None:
        self.name, self.number, self.peers = name, number, peers
        self.path, self.memory = path, Memory(path, number, now())
        self.memory.close()
        self.variables = {"REMEM_HOME": str(path)}
        with self.opened() as memory:
            self.add_peers(memory)

    @contextmanager
    def opened(self) -> Iterator[Memory]:
        """Open it for the thread that asks."""
        self.memory.open(self.path, now())
        with closing(self.memory):
            yield self.memory

    def add_peers(self, memory: Memory) -> None:
        with transaction(memory.db):
            for peer in self.peers:
                memory_book.add(memory.db, read_url(peer.wire.url, ALLOWED), ALLOWED, now())

    def map(self) -> Map:
        with self.opened() as memory:
            held = holdings.holdings(memory.db)
            proven = memory.db.execute("SELECT DISTINCT key FROM equivocations").fetchall()
        stands = {name: (one.version.seal, one.version.digest) for name, one in held.items()}
        return stands | {f"proof {one}": None for (one,) in proven}

    def command(self, *words: str) -> subprocess.CompletedProcess[str]:
        return ended(remem(*words), self.variables)

    def checked(self) -> subprocess.CompletedProcess[str]:
        return self.command("doctor")

    def live(self, run: Run) -> None:
        """Learn, share and gossip, and be killed at it at random."""
        random = run.random(self.name)
        learned = 0
        while not run.ending.wait(random.uniform(0.5, 4)):
            words = ["gossip"]
            with self.opened() as memory:
                self.add_peers(memory)
                if random.random() < 0.4:
                    learned += 1
                    memory.learn(sentence(self.number * 1_000 + learned))
                    words = ["share", random.choice([one.wire.url for one in self.peers if one.is_open])]
            self._run(words, run, random)

    def _run(self, words: list[str], run: Run, random: Random) -> None:
        process = subprocess.Popen(
            remem(*words), env=plain_environment(**self.variables), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        )
        dies = random.random() < 0.3
        with process:
            try:
                _out, err = process.communicate(timeout=random.uniform(0.3, 2) if dies else _COMMAND_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.communicate()
                run.count("memory killed")
                return
        # A peer that is down, or that broke off: 4 and 5.
        if process.returncode in (0, 4, 5):
            run.count("memory's commands")
        else:
            run.unexpected.append(f"{self.name}: {' '.join(words)}: {process.returncode}: {err.decode()}")


Node: TypeAlias = Server | Dialler


def ended(command: list[str], variables: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        env=plain_environment(**variables),
        capture_output=True,
        text=True,
        timeout=_COMMAND_SECONDS,
        check=False,
    )


def publish(number: int, servers: list[Server], run: Run) -> None:
    """Put files at commons that take them, now and then two of one key that contradict each other."""
    random = run.random(f"publisher {number}")
    first, seal = number * 10_000, 0
    with httpx.Client(timeout=10, trust_env=False) as client:
        while not run.ending.wait(random.uniform(0.02, 0.3)):
            seal += 1
            contradicts = random.random() < 0.03
            signer = key(first + (1_000 + seal if contradicts else random.randrange(_KEYS_EACH)))
            for text in range(2 if contradicts else 1):
                words = [lesson(sentence(first * 100 + seal * 2 + text + more), at=now()) for more in (0, 2)]
                data = file(signer, words, seal=seal, at=now())
                name = signer.public.hex
                with suppress(httpx.HTTPError):
                    where = random.choice(servers).wire.url
                    if client.put(f"{where}/commons/{name}.jsonl", content=data).is_success:
                        run.count("files acknowledged")
                        run.acknowledged[name] = seal


def make_nodes(folder: Path, stack: ExitStack, random: Random) -> tuple[list[Server], list[Dialler]]:
    """Make them all: each commons is a peer of its neighbours in a ring and of one more, each memory has three."""
    urls: list[str | None] = [None] * OVER_SQLITE
    urls += [stack.enter_context(fresh_database()) for _number in range(OVER_POSTGRES)]
    servers = []
    for number, url in enumerate(urls):
        is_open = number != OVER_SQLITE
        name = f"{'sqlite' if url is None else 'postgres'} {number}"
        servers.append(Server(name, folder / f"server{number}", url, is_open=is_open))
        stack.callback(servers[-1].database.close)
        stack.callback(servers[-1].wire.close)
        stack.callback(servers[-1].life.close)
    random.shuffle(servers)
    count = len(servers)
    pairs = {frozenset((n, (n + 1) % count)) for n in range(count)}
    pairs |= {frozenset((n, (n + count // 2) % count)) for n in range(0, count, 2)}
    for one, other in map(sorted, pairs):
        servers[one].peers.append(servers[other])
        servers[other].peers.append(servers[one])
    for server in servers:
        server.add_peers()
    diallers = []
    for number in range(MEMORIES):
        known = random.sample(servers, 3)
        diallers.append(Dialler(f"memory {number}", folder / f"memory{number}", 100 + number, known))
    return servers, diallers


def make_trouble(servers: list[Server], diallers: list[Dialler], run: Run, seconds: float) -> None:
    """Let everybody live, and some of them die, for some time; bring everything up again."""
    takers = [server for server in servers if server.is_open]
    work: list[Callable[[], None]] = []
    work += [partial(server.trouble, run) for server in servers]
    work += [partial(memory.live, run) for memory in diallers]
    work += [partial(publish, number, takers, run) for number in range(1, PUBLISHERS + 1)]
    with ThreadPoolExecutor(len(work)) as pool:
        under_way = [pool.submit(one) for one in work]
        end = time.monotonic() + seconds
        while time.monotonic() < end and not any(one.done() for one in under_way):
            time.sleep(0.2)
        run.ending.set()
    for one in under_way:
        one.result()


def gossip_until_quiet(nodes: list[Node], run: Run) -> int:
    """Let all nodes gossip with all their peers; return how many passes brought something."""
    for done in range(PASSES_MOST + 1):
        brought = 0
        with ThreadPoolExecutor(3) as pool:
            for node, came in zip(nodes, pool.map(_gossip, nodes), strict=True):
                if came.returncode != 0:
                    run.unexpected.append(f"{node.name}: gossip: {came.returncode}: {came.stderr}")
                    continue
                said = json.loads(came.stdout)
                for met in said["met"] if isinstance(said, dict) else said:
                    taken = met["report"]["taken"]
                    brought += taken.get("new", 0) + taken.get("newer", 0) + met["report"]["stand_there"]
        print(f"  pass {done + 1}: {brought} files moved, {maps_of(nodes)} different maps", flush=True)
        if not brought:
            return done
    return PASSES_MOST + 1


def _gossip(node: Node) -> subprocess.CompletedProcess[str]:
    return node.command("gossip", "--json", *(peer.wire.url for peer in node.peers))


def maps_of(nodes: list[Node]) -> int:
    return len({frozenset(node.map().items()) for node in nodes})


def unclean(nodes: list[Node], run: Run) -> int:
    """Check every node by its own command; return how many found something wrong."""
    with ThreadPoolExecutor(3) as pool:
        found = list(pool.map(lambda node: node.checked(), nodes))
    wrong = [(node, one) for node, one in zip(nodes, found, strict=True) if one.returncode != 0]
    run.unexpected += [f"{node.name}: {one.stdout}{one.stderr}" for node, one in wrong]
    return len(wrong)


def bounds_of(servers: list[Server], diallers: list[Dialler], run: Run, passes: int) -> list[Bound]:
    """Say what came of it."""
    nodes: list[Node] = [*servers, *diallers]
    whole = nodes[0].map()
    lost = sum(((whole.get(name) or (0, ""))[0] or 0) < seal for name, seal in run.acknowledged.items())
    proofs = sum(name.startswith("proof ") for name in whole)
    return [
        *(Bound(what, number, unit="") for what, number in sorted(run.counts.items())),
        Bound("connections cut", sum(server.wire.cuts for server in servers), unit=""),
        Bound("keys", len(whole) - proofs, least=1, unit=""),
        Bound("proofs that a key spoke twice", proofs, least=1, unit=""),
        Bound("passes until quiet", passes, most=PASSES_MOST, unit=""),
        Bound("different maps", maps_of(nodes), most=1, unit=""),
        Bound("acknowledged and lost", lost, most=0, unit=""),
        Bound("commons where audit finds something", unclean(list(servers), run), most=0, unit=""),
        Bound("memories where doctor finds something", unclean(list(diallers), run), most=0, unit=""),
        Bound("commands that ended as none should", len(run.unexpected), most=0, unit=""),
    ]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("seconds", nargs="?", type=float, default=SECONDS)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    run = Run(given.seed)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        servers, diallers = make_nodes(folder, stack, run.random("nodes"))
        nodes: list[Node] = [*servers, *diallers]
        make_trouble(servers, diallers, run, given.seconds)
        print(f"{maps_of(nodes)} different maps at the end of the trouble")
        passes = gossip_until_quiet(nodes, run)
        bounds = bounds_of(servers, diallers, run, passes)
        for text in run.unexpected:
            print(text, file=sys.stderr)
    report(f"{len(nodes)} nodes, {given.seconds:.0f} s of trouble, seed {given.seed}", {}, bounds)


if __name__ == "__main__":
    main()
