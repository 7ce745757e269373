"""What an honest reader notices of an attack: its speed under it, against its speed without.

Each attacker has a commons of its own, which is open, so that it needs no token, and has its default limits. All of it
is on loopback: the attackers come from two addresses and the reader from another. What is measured is one reader with
one connection, which reads one file over and over and is told that it has it; while nothing else is there, and while
the attack goes on, from its first second. Reconnecting, where its connection is taken away, is part of the time.
Beside the flood of new keys there is a publisher too, with some files and an address of its own.

The attackers share the two cores with the commons and the reader. So they are cheap: one process, raw sockets and
bytes that were made before. What they take of the machine counts against the commons here, and would not elsewhere.

`bench_attack.py small` is a shorter run with fewer of everything; its bounds are the same.
"""

from __future__ import annotations

import multiprocessing
import select
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from itertools import cycle
from multiprocessing.synchronize import Event
from pathlib import Path
from statistics import median
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.table import Bound, report
from remem.protocol import digest_of
from remem_testkit.files import file, full_file, key, lesson, sentence
from remem_testkit.server import CommonsProcess, spawn

SMALL = sys.argv[1:2] == ["small"]
SECONDS = 2.0 if SMALL else 12.0
TINY = 3_000 if SMALL else 100_000
NEW_KEYS = 200 if SMALL else 2_000
IDLE = 300 if SMALL else 2_000
ADDRESSES = ("127.0.0.21", "127.0.0.22")
READER = "127.0.0.11"
PUBLISHER = "127.0.0.12"
PUBLISHED = 8
AT_ONCE = 32

HELD = full_file(key(0))
NAME = f"/commons/{key(0).public.hex}.jsonl"
ASKED = f'GET {NAME} HTTP/1.1\r\nHost: bench\r\nIf-None-Match: "{digest_of(HELD)}"\r\n\r\n'.encode()


# --- the honest reader ---


class Reader:
    """One connection that asks whether a file has changed, and connects again where it was taken away."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._socket: socket.socket | None = None

    def close(self) -> None:
        """Close the connection."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def read(self) -> None:
        """Ask until there is an answer that says that nothing changed."""
        while not self._asked():
            self.close()

    def _asked(self) -> bool:
        with suppress(OSError):
            if self._socket is None:
                self._socket = socket.create_connection(("127.0.0.1", self._port), 5, (READER, 0))
                self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._socket.sendall(ASKED)
            answer = b""
            while not answer.endswith(b"\r\n\r\n"):
                more = self._socket.recv(65_536)
                if not more:
                    return False
                answer += more
            return answer.startswith(b"HTTP/1.1 304 ")
        return False


def reads_a_second(port: int, seconds: float) -> float:
    """Read for so long, and return how many reads a second that were."""
    with closing(Reader(port)) as reader:
        reader.read()
        number, started = 0, time.perf_counter()
        while (now := time.perf_counter()) - started < seconds:
            reader.read()
            number += 1
        return number / (now - started)


def publish_seconds(port: int, first: int) -> float:
    """Publish some files, each a while after the last, and return the median of how long one took."""
    taken = []
    for number in range(first, first + PUBLISHED):
        request = put_of(number, file(key(number), [lesson(sentence(number))]))
        with socket.create_connection(("127.0.0.1", port), 30, (PUBLISHER, 0)) as opened:
            started = time.perf_counter()
            opened.sendall(request)
            assert opened.recv(65_536).startswith(b"HTTP/1.1 201 ")
            taken.append(time.perf_counter() - started)
        time.sleep(0.1)
    return median(taken)


# --- attackers ---


def heads(method: str, path: str, *headers: str) -> bytes:
    return "\r\n".join([f"{method} {path} HTTP/1.1", "Host: bench", *headers, "", ""]).encode()


def put_of(number: int, data: bytes) -> bytes:
    return heads("PUT", f"/commons/{key(number).public.hex}.jsonl", f"Content-Length: {len(data)}") + data


def flood(port: int, ended: Event, requests: Iterator[bytes], *, waits: bool = True) -> None:
    """Keep some connections busy: send, look for any answer, and send the next on the same one or on a new one.

    Args:
        port: of the commons.
        ended: says when to stop.
        requests: what to send, one after the other; the attack is over with the last.
        waits: whether an answer is waited for; otherwise a connection is left as it is.
    """
    addresses = cycle(ADDRESSES)
    poll = select.poll()
    open_now: dict[int, socket.socket] = {}

    def begin() -> bool:
        request = next(requests, None)
        if request is None:
            return False
        opened = socket.socket()
        with suppress(OSError):
            opened.bind((next(addresses), 0))
            opened.connect(("127.0.0.1", port))
            opened.settimeout(0)
            open_now[opened.fileno()] = opened
            poll.register(opened, select.POLLIN)
            opened.send(request)
        return True

    more = True
    while not ended.is_set():
        while more and len(open_now) < (AT_ONCE if waits else IDLE) and not ended.is_set():
            more = begin()
        for descriptor, _event in poll.poll(50):
            opened = open_now[descriptor]
            again = next(requests, None) if _answered(opened) else None
            with suppress(OSError):
                if again is not None:
                    opened.send(again)
                    continue
            poll.unregister(descriptor)
            del open_now[descriptor]
            opened.close()


def _answered(opened: socket.socket) -> bool:
    with suppress(OSError):
        answer = opened.recv(65_536)
        return bool(answer) and b"\r\nconnection: close\r\n" not in answer.lower()
    return False


def slow_bodies(port: int, ended: Event) -> None:
    """Begin to send files, and send a byte now and then."""
    begun = heads("PUT", NAME, "Content-Length: 200000") + b"{"
    opened: list[socket.socket] = []
    addresses = cycle(ADDRESSES)
    while not ended.is_set():
        for one in list(opened):
            try:
                one.send(b"x")
            except OSError:
                opened.remove(one)
                one.close()
        while len(opened) < 200 and not ended.is_set():
            one = socket.socket()
            with suppress(OSError):
                one.bind((next(addresses), 0))
                one.connect(("127.0.0.1", port))
                one.settimeout(0)
                one.send(begun)
            opened.append(one)
        ended.wait(0.1)


def oversized_bodies(port: int, ended: Event) -> None:
    """Send bodies that are too large, in chunks, so that nobody knows before it is so."""
    piece = b"x" * 65_536
    body = b"".join(b"%x\r\n" % len(piece) + piece + b"\r\n" for _ in range(5)) + b"0\r\n\r\n"
    request = heads("PUT", NAME, "Transfer-Encoding: chunked") + body
    declared = heads("PUT", NAME, "Content-Length: 99999999") + piece
    flood(port, ended, cycle([request, declared]))


def bad_signatures(port: int, ended: Event) -> None:
    """Send tiny files, each with a signature that is not good."""
    data = file(key(1), [lesson(sentence(1))])
    bad = data.replace(b'"sig":"', b'"sig":"00', 1)
    bad = bad[: bad.index(b'"sig":"00') + 9 + 126] + bad[bad.index(b'"sig":"00') + 9 + 128 :]
    request = put_of(1, bad)
    flood(port, ended, (request for _ in range(TINY)))


def new_keys(port: int, ended: Event) -> None:
    """Send good files of keys that were never there."""
    made = [put_of(number, file(key(number), [lesson(sentence(number))])) for number in range(10, 10 + NEW_KEYS)]
    flood(port, ended, cycle(made))


def deep_queries(port: int, ended: Event) -> None:
    """Ask for lists by queries that are long, deep, and of many fields."""
    deep = "&".join(f"q[{'a' * 8}][{number}]={'%41' * 6}" for number in range(1_400))
    many = "&".join(f"q{number}=%41" for number in range(31))
    words = "q=" + "%20".join(f"build{number}" for number in range(30))
    paths = [f"/commons/lessons?{query}" for query in (deep, many, words, "q=" + "%41" * 5_000)]
    flood(port, ended, cycle([heads("GET", path) for path in paths]))


def idle_sockets(port: int, ended: Event) -> None:
    """Connect, and send nothing or the beginning of a head."""
    flood(port, ended, cycle([b"G", b"GET /healthz HTTP/1.1\r\n"]), waits=False)


ATTACKS: dict[str, Callable[[int, Event], None]] = {
    "slow bodies": slow_bodies,
    "oversized bodies": oversized_bodies,
    f"{TINY:,} tiny files with bad signatures": bad_signatures,
    "floods of new keys": new_keys,
    "deep queries": deep_queries,
    "idle sockets": idle_sockets,
}


# --- the table ---


class Measured(NamedTuple):
    """What an honest reader or publisher finds, without an attack and under it."""

    without: float
    under: float


@contextmanager
def under(attack: Callable[[int, Event], None], port: int) -> Iterator[None]:
    """Attack a commons while the `with` lasts."""
    context = multiprocessing.get_context("fork")
    ended = context.Event()
    attacker = context.Process(target=attack, args=(port, ended), daemon=True)
    attacker.start()
    try:
        yield
    finally:
        ended.set()
        attacker.join(10)
        attacker.kill()


def measure_publisher() -> Measured:
    """Measure how long an honest file takes without a flood of new keys, and beside it."""
    with tempfile.TemporaryDirectory() as folder, spawn(Path(folder) / "data", ["--port", "0", "--open"]) as commons:
        port = int(commons.url.rpartition(":")[2])
        _publish(port)
        without = publish_seconds(port, 1_000_000)
        with under(new_keys, port):
            # The flood has to begin.
            reads_a_second(port, 1.0)
            beside = publish_seconds(port, 2_000_000)
    return Measured(without, beside)


def measure(attack: Callable[[int, Event], None]) -> Measured:
    """Measure one attack on a commons of its own."""
    with tempfile.TemporaryDirectory() as folder, spawn(Path(folder) / "data", ["--port", "0", "--open"]) as commons:
        port = int(commons.url.rpartition(":")[2])
        _publish(port)
        reads_a_second(port, 0.5)
        before = reads_a_second(port, SECONDS / 2)
        with under(attack, port):
            during = reads_a_second(port, SECONDS)
        after = reads_a_second(port, SECONDS / 2)
        _check_alive(commons)
    return Measured(median([before, after]), during)


def _publish(port: int) -> None:
    with socket.create_connection(("127.0.0.1", port)) as opened:
        opened.sendall(put_of(0, HELD))
        assert opened.recv(65_536).startswith(b"HTTP/1.1 201 ")


def _check_alive(commons: CommonsProcess) -> None:
    assert commons.process.poll() is None
    faults = [line for line in commons.noted if "status=500" in line]
    assert not faults, faults[:3]


def main() -> None:
    measured = {name: measure(attack) for name, attack in ATTACKS.items()}
    seconds = {}
    for name, found in measured.items():
        seconds[f"{name}: a read without them"] = 1 / found.without
        seconds[f"{name}: a read beside them"] = 1 / found.under
    published = measure_publisher()
    seconds["an honest file without a flood of new keys"] = published.without
    seconds["an honest file beside it"] = published.under
    bounds = [Bound(name, found.under / found.without, least=0.5) for name, found in measured.items()]
    report(f"one honest reader; means of {SECONDS:g} seconds, attackers on the same two cores", seconds, bounds)


if __name__ == "__main__":
    main()
