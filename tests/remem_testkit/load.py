"""Writers that never rest, and a ledger of what a commons acknowledged to them.

Each writer has a key of its own whose files replace one another, and now and then publishes the first file of a new
key. What they say is drawn from few lessons, so that they publish, confirm and revoke the same ones, and some is about
lessons of which nobody else speaks, so that these come and go.
"""

from __future__ import annotations

import random
import ssl
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final

import httpx

from remem.protocol import lesson_hash
from remem_testkit.files import NOW, confirmation, file, key, lesson, revocation, sentence

WRITERS: Final = 4

_LESSONS: Final = 30
_NEWCOMERS: Final = 0.25
# The numbers below are those of the writers themselves, and of the tokens that are kept for them.
_FIRST_NEWCOMER: Final = 20
_REST_SECONDS: Final = 0.02
# Reading the certificates of the machine takes longer than most of what is done here.
_NO_TLS: Final = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


@dataclass
class Page:
    """What one key sent.

    Attributes:
        sent: its files, in the order in which they were sent, each by itself.
        acknowledged: the place of the last of them that the commons said it took; None while there is none.
    """

    sent: list[bytes] = field(default_factory=list)
    acknowledged: int | None = None

    def may_stand(self) -> list[bytes]:
        """Return the files one of which stands: the last acknowledged one, or one that came after it."""
        return self.sent[self.acknowledged or 0 :]


@dataclass
class Found:
    """What a commons has of what a ledger says.

    Attributes:
        acknowledged: how many files it acknowledged since the ledger was last settled.
        keys: how many keys they are of.
        found: of how many of these keys the acknowledged file stands, or a newer one.
        lost: the keys of which neither does.
        never_sent: the keys whose file was never sent like that.
        unheard: how many files stand that it took and could not say so.
    """

    acknowledged: int = 0
    keys: int = 0
    found: int = 0
    lost: list[str] = field(default_factory=list)
    never_sent: list[str] = field(default_factory=list)
    unheard: int = 0


class Ledger:
    """Who sent what, and what of it was acknowledged. Each key is written by one thread at a time.

    Args:
        tokens: as many tokens as keys may publish; None for a commons that is open.
        first: the number of the first writer's key, where there is another ledger of the same commons.
    """

    def __init__(self, tokens: Iterable[str] | None = None, first: int = 0) -> None:
        self.first = first
        self.pages: dict[int, Page] = {}
        self._unspent = None if tokens is None else list(tokens)
        self._tokens: dict[int, str] = {}
        self._random = random.Random(0)
        self._keys = first + _FIRST_NEWCOMER
        self._seconds = 0
        self._acknowledged = 0
        self._lock = threading.Lock()

    def newcomer(self) -> int | None:
        """Return the number of a key that never published; None where there is no token left for one."""
        with self._lock:
            if self._unspent is not None and len(self._unspent) <= _FIRST_NEWCOMER:
                return None
            self._keys += 1
            return self._keys

    def headers_of(self, number: int) -> dict[str, str]:
        """Return the headers that a key publishes with."""
        with self._lock:
            if self._unspent is None:
                return {}
            if number not in self._tokens:
                self._tokens[number] = self._unspent.pop()
            return {"Authorization": f"Bearer {self._tokens[number]}"}

    def next_file(self, number: int) -> bytes:
        """Make the next file of a key, and note that it is sent."""
        with self._lock:
            self._seconds += 1
            at = NOW + timedelta(seconds=self._seconds)
            said = [*self._random.sample(range(_LESSONS), 8), _LESSONS + self._seconds]
            page = self.pages.setdefault(number, Page())
        texts = [sentence(one) for one in said]
        contents = [lesson(text) for text in texts[:4]]
        contents += [confirmation(lesson_hash("error", text), at=at) for text in texts[4:7]]
        contents += [revocation(lesson_hash("error", text), at=at) for text in texts[7:8]]
        contents += [lesson(text) for text in texts[8:]]
        data = file(key(number), contents, at=at)
        page.sent.append(data)
        return data

    def acknowledge(self, number: int) -> None:
        """Note that the file which a key sent last was acknowledged."""
        page = self.pages[number]
        page.acknowledged = len(page.sent) - 1
        with self._lock:
            self._acknowledged += 1

    def settle(self, stands: Mapping[str, bytes]) -> Found:
        """Compare the ledger with the files that stand by key, and go on from those."""
        told = Found(acknowledged=self._acknowledged)
        for number, page in self.pages.items():
            name = key(number).public.hex
            data = stands.get(name)
            may_stand = page.may_stand()
            told.keys += page.acknowledged is not None
            if data is None:
                told.lost += [name] if page.acknowledged is not None else []
            elif data not in page.sent:
                told.never_sent.append(name)
            elif data not in may_stand:
                told.lost.append(name)
            else:
                told.found += page.acknowledged is not None
                told.unheard += page.acknowledged is None or data != may_stand[0]
        self.pages = {
            number: Page([stands[name]], 0)
            for number, name in ((number, key(number).public.hex) for number in self.pages)
            if name in stands
        }
        self._acknowledged = 0
        return told


@dataclass
class Load:
    """Writers at work.

    Attributes:
        statuses: what was answered, with the code of each refusal, and how often.
    """

    statuses: Counter[tuple[int, str | None]] = field(default_factory=Counter)
    _stopping: threading.Event = field(default_factory=threading.Event)
    _threads: list[threading.Thread] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def answers(self) -> int:
        """How many answers came."""
        return self.statuses.total()

    @property
    def successes(self) -> int:
        """How many files were acknowledged."""
        return self.statuses[200, None] + self.statuses[201, None]

    def note(self, answer: httpx.Response) -> None:
        """Count an answer."""
        code = None if answer.is_success else answer.json()["code"]
        # Who is to come later is told when.
        assert answer.status_code != 503 or int(answer.headers["Retry-After"]) > 0
        with self._lock:
            self.statuses[answer.status_code, code] += 1

    def wait_for(self, more: int, seconds: float = 60) -> None:
        """Wait until so many more files are acknowledged."""
        wanted, deadline = self.successes + more, time.monotonic() + seconds
        while self.successes < wanted:
            assert time.monotonic() < deadline, f"expected {wanted} acknowledged files, got {self.statuses}"
            time.sleep(0.005)

    def stop(self) -> None:
        """Let each writer have its answer, and end."""
        self._stopping.set()
        for thread in self._threads:
            thread.join(60)


@contextmanager
def load(url: str, ledger: Ledger, writers: int = WRITERS) -> Iterator[Load]:
    """Write without rest, until the commons is gone or the `with` ends."""
    made = Load()
    for number in range(ledger.first, ledger.first + writers):
        made._threads.append(threading.Thread(target=_write, args=(made, url, ledger, number), daemon=True))
    for thread in made._threads:
        thread.start()
    try:
        yield made
    finally:
        made.stop()


def _write(made: Load, url: str, ledger: Ledger, number: int) -> None:
    chance = random.Random(number)
    with httpx.Client(base_url=url, timeout=60, verify=_NO_TLS, trust_env=False) as client:
        while not made._stopping.is_set():
            newcomer = ledger.newcomer() if chance.random() < _NEWCOMERS else None
            who = number if newcomer is None else newcomer
            data = ledger.next_file(who)
            try:
                path = f"/commons/{key(who).public.hex}.jsonl"
                answer = client.put(path, content=data, headers=ledger.headers_of(who))
            except httpx.TransportError:
                return
            made.note(answer)
            if answer.is_success:
                ledger.acknowledge(who)
            else:
                time.sleep(_REST_SECONDS)
