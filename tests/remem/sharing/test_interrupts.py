"""A process that is stopped at once, while it waits for a commons that never answers, leaves nothing to clean up."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from remem.memory import places, trust
from remem.protocol import digest_of, lesson_hash
from remem.sharing.targets import pull_sources, share_targets
from remem_testkit.files import file, key, lesson, sentence
from remem_testkit.liars import Liar, answer, lying
from remem_testkit.memories import Memory

A = key(11)
TEXT = sentence(1)
HASH = lesson_hash("error", TEXT)
DATA = file(A, [lesson(TEXT)], seal=5)
FILE = f"/commons/{A.public.hex}.jsonl"
PATIENT = 3_600

# An hour of patience: what does not end by the signal does not end within the test.
PROGRAM = f"""
import os, signal, sys
from pathlib import Path
from remem.commons.http import HttpCommons
from remem.commons.waiting import Patience
from remem.sharing.pull import pull
from remem.sharing.share import share
from remem_testkit.memories import MACHINE, Memory

signal.signal(signal.SIGINT, lambda *_: os._exit(130))
memory = Memory.__new__(Memory)
memory.open(Path(sys.argv[2]))
commons = HttpCommons(sys.argv[3], patience=Patience({PATIENT}, {PATIENT}, {PATIENT}))
if sys.argv[1] == "pull":
    pull(memory.home, memory.db, commons, now=memory.now)
else:
    share(memory.home, memory.db, [commons], machine=MACHINE, now=memory.now)
"""


class Stuck:
    """An answer that is waited for until the test is over."""

    def __init__(self) -> None:
        self.asked = threading.Event()
        self.over = threading.Event()

    def __call__(self, _head: str) -> bytes:
        self.asked.set()
        self.over.wait(PATIENT)
        return b""


@pytest.fixture
def stuck() -> Iterator[Stuck]:
    made = Stuck()
    yield made
    made.over.set()


@pytest.fixture
def liar() -> Iterator[Liar]:
    with lying() as made:
        entry = f'{{"key":"{A.public.hex}","seal":5,"digest":"{digest_of(DATA)}","principal":null}}'
        made.say("/.well-known/remem", f'{{"protocol":[1],"key":"{A.public.hex}"}}'.encode())
        made.say("/commons/index", f"[{entry}]".encode(), ETag='"a"')
        made.say(FILE, DATA)
        yield made


def stop_while_it_waits(act: str, memory: Memory, liar: Liar, stuck: Stuck) -> None:
    """Start a process that does something, and stop it when it waits for the answer that never comes."""
    paths = os.pathsep.join(path for path in sys.path if path)
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, act, str(memory.home.path), liar.url],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": paths},
    ) as process:
        try:
            assert stuck.asked.wait(60)
            ended = stop(process)
        finally:
            process.kill()
    assert (process.returncode, *ended) == (130, b"", b"")


def stop(process: subprocess.Popen[bytes]) -> tuple[bytes, bytes]:
    """Stop a process as a person does, who tries again: a signal that comes the moment before a wait waits with it."""
    for _time in range(60):
        process.send_signal(signal.SIGINT)
        with suppress(subprocess.TimeoutExpired):
            return process.communicate(timeout=1)
    raise AssertionError("expected the process to end by the signal, got none")


@pytest.mark.parametrize("path", ["/.well-known/remem", "/commons/index", FILE])
def test_a_pull_is_stopped_at_once_and_the_next_one_does_all_of_it(
    memory: Callable[[int], Memory], liar: Liar, stuck: Stuck, path: str
) -> None:
    reader = memory(1)
    honest, liar.answers[path] = liar.answers[path], stuck
    stop_while_it_waits("pull", reader, liar, stuck)
    met = path == FILE
    assert trust.trusted(reader.db, "revoker") == ({A.public.hex} if met else set())
    assert pull_sources(reader.home, reader.db) == ()
    assert hidden(reader.home.commons_path) == []
    liar.answers[path] = honest
    report = reader.pull(liar.url)
    assert report.pinned == (A.public.hex,)
    assert [taken.key for taken in report.taken] == [A.public.hex]
    assert report.complete
    assert reader.lesson_state(HASH) == "received active"


def hidden(folder: Path) -> list[Path]:
    return sorted(folder.glob(".*"))


def test_a_share_is_stopped_at_once_and_its_place_is_known(
    memory: Callable[[int], Memory], liar: Liar, stuck: Stuck
) -> None:
    one = memory(1)
    (learned,) = one.learn(TEXT)

    own = f"/commons/{one.name}.jsonl"
    liar.answers[own] = on_put(stuck)
    stop_while_it_waits("share", one, liar, stuck)
    assert share_targets(one.home, one.db) == (liar.url,)
    assert [place.shared_seal for place in places.places(one.db)] == [None]
    assert hidden(one.home.commons_path) == []
    sealed = one.held_files()[f"{one.name}.jsonl"]
    liar.answers[own] = on_put(lambda _head: answer(b'{"outcome":"new","skipped":[]}'))
    report = one.share(liar.url)
    assert report.data == sealed
    assert report.lessons == 1
    assert learned.encode() in sealed
    assert [place.shared_seal for place in places.places(one.db)] == [report.version.seal]


def on_put(taken: Callable[[str], bytes]) -> Callable[[str], bytes]:
    """Answer a PUT so, and a GET by nothing."""
    return lambda head: taken(head) if head.startswith("PUT ") else answer(b"", "404 Not Found")
