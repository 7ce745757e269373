"""Nodes that mean no good: each is asked like any other, and each breaks one promise of the protocol.

They hear what honest nodes offer them, and some make their lies of it. All of them are deterministic.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from random import Random
from typing import ClassVar, Final

from remem.protocol import digest_of
from remem.protocol.items import Item, item_of
from remem.protocol.times import parse_time, unix_seconds
from remem_gossip import wire
from remem_gossip.exchange import Answer, Request
from remem_gossip.parts import NO_ID, Missing, Outcome, Part, Proof, Verdict, Whole
from remem_gossip.reconcile import BadFrame, Reconciler, Vector
from remem_gossip.reconcile.encoding import END, Bound, Writer
from remem_testkit.files import confirmation, file, key
from remem_testkit.nodes import CutOff

_LIES: Final = 200
"""How many items a liar says that it has."""
_HEARD_MOST: Final = 200


class Hostile:
    """One that holds nothing, says that it holds what you hold, and swallows what it is given.

    Args:
        name: its address.
        now: the time at which it begins.
        seed: of its choices.
    """

    kind: ClassVar[str] = "black hole"

    def __init__(self, name: str, now: datetime, seed: int) -> None:
        self.name = name
        self.random = Random(seed)
        self.now = now
        self.heard: dict[str, bytes] = {}

    def answer(self, request: Request, source: str) -> Answer:
        """Answer a request."""
        if request.path == wire.RECONCILE:
            return self.reconcile(request.body)
        if request.path == wire.FETCH:
            return self.fetch(wire.read_fetch(request.body))
        return self.offered(wire.read_offer(request.body))

    def reconcile(self, message: bytes) -> Answer:
        """Say that nothing is missing."""
        del message
        return Answer(200, Writer().message)

    def fetch(self, asked: wire.Asked) -> Answer:
        """Hand out nothing."""
        return Answer(200, b"")

    def offered(self, parts: Sequence[Whole | Proof]) -> Answer:
        """Swallow it."""
        for part in parts:
            if isinstance(part, Whole) and len(self.heard) < _HEARD_MOST:
                self.hear(part.data)
        return Answer(200, wire.write_verdicts(Verdict(part.id, Outcome.NEW) for part in parts))

    def hear(self, data: bytes) -> None:
        """Remember a file for later."""
        self.heard.setdefault(_key(data), data)

    def attack(self) -> list[bytes]:
        """Return the offers that it brings to others tonight."""
        return []


class Silent(Hostile):
    """One that does not answer."""

    kind = "silent"

    def answer(self, request: Request, source: str) -> Answer:
        raise CutOff("an answer", "none")


class Refuser(Hostile):
    """One that refuses everything, in turn with every status."""

    kind = "refuser"

    def answer(self, request: Request, source: str) -> Answer:
        return Answer(self.random.choice((403, 404, 429, 500, 503)), b"no", "no")


class Garbler(Hostile):
    """One whose bodies are noise."""

    kind = "garbage"

    def answer(self, request: Request, source: str) -> Answer:
        size = self.random.choice((0, 1, 40, 4_000, request.most))
        noise = self.random.randbytes(min(size, 100_000))
        return Answer(200, b"\x61" + noise if noise and self.random.random() < 0.5 else noise)


class Endless(Hostile):
    """One whose fingerprints never agree, and whose answers come a drop at a time."""

    kind = "endless"

    def reconcile(self, message: bytes) -> Answer:
        out = Writer()
        start = unix_seconds(self.now)
        for number in range(200):
            out.fingerprint(Bound(Item(start - 2_000_000 + number * 10_000, NO_ID), 0), self.random.randbytes(16))
        out.fingerprint(END, self.random.randbytes(16))
        return Answer(200, out.message)

    def fetch(self, asked: wire.Asked) -> Answer:
        return Answer(200, wire.write_part(Missing(asked.ids[0])))


class _WithItems(Hostile):
    """One that reconciles truly over items that it should not have."""

    def items(self) -> Iterable[Item]:
        """Say what it has."""
        start = unix_seconds(self.now)
        return [Item(start - self.random.randrange(1_000_000), self.random.randbytes(32)) for _ in range(_LIES)]

    def part(self, id_: bytes) -> Part | None:
        """Return what it hands out for an item."""
        return None

    def reconcile(self, message: bytes) -> Answer:
        try:
            return Answer(200, Reconciler(Vector(self.items()), wire.FRAME_BYTES).answer(message))
        except BadFrame as error:
            return Answer(422, b"", error.code)

    def fetch(self, asked: wire.Asked) -> Answer:
        if asked.heads:
            return Answer(200, b"")
        return Answer(200, b"".join(wire.write_part(part) for part in map(self.part, asked.ids) if part is not None))


class Hollow(_WithItems):
    """One that says it has what does not exist."""

    kind = "hollow"


class WrongIds(_WithItems):
    """One that hands out true files under the names of others."""

    kind = "wrong ids"

    def part(self, id_: bytes) -> Part | None:
        heard = list(self.heard.values())
        return Whole(id_, self.random.choice(heard)) if heard else None


class _WithFiles(_WithItems):
    """One that hands out files of its own choice under their true names."""

    def __init__(self, name: str, now: datetime, seed: int) -> None:
        super().__init__(name, now, seed)
        self.files: dict[bytes, bytes] = {}
        self._items: list[Item] = []

    def add(self, data: bytes) -> None:
        """Hold a file."""
        item = _item(data)
        if item.id not in self.files:
            self.files[item.id] = data
            self._items.append(item)

    def items(self) -> Iterable[Item]:
        return self._items

    def part(self, id_: bytes) -> Part | None:
        data = self.files.get(id_)
        return Missing(id_) if data is None else Whole(id_, data)


class Stale(_WithFiles):
    """One that keeps the first file that it hears of each key, and spreads that."""

    kind = "stale files"

    def hear(self, data: bytes) -> None:
        if _key(data) not in self.heard:
            super().hear(data)
            self.add(data)

    def attack(self) -> list[bytes]:
        some = list(self.files.values())[-wire.OFFER_PARTS :]
        return [_offer(some)] if some else []


class Forger(_WithFiles):
    """One that makes newer versions of others' files, without their keys."""

    kind = "forged lines"

    def hear(self, data: bytes) -> None:
        super().hear(data)
        if len(self.files) < _HEARD_MOST:
            self.add(forged(data, self.random))

    def attack(self) -> list[bytes]:
        some = list(self.files.values())[-50:]
        return [_offer(some)] if some else []


class Flooder(_WithFiles):
    """One that makes keys by the dozen, each with a good file, as long as there are news to hide.

    Attributes:
        keys: how many a night.
    """

    kind = "flood"
    keys = 20

    def attack(self) -> list[bytes]:
        fresh = list(free_files(self.random.getrandbits(60), self.keys, self.now))
        for data in fresh:
            self.add(data)
        return [_offer(fresh)]


KINDS: Final[tuple[type[Hostile], ...]] = (
    Hostile, Silent, Hollow, Stale, Forger, Flooder, WrongIds, Endless, Refuser, Garbler,
)  # fmt: skip


def free_files(first: int, count: int, now: datetime) -> Iterator[bytes]:
    """Make the smallest good files of so many keys."""
    for number in range(first, first + count):
        signer = key(1_000_000 + number)
        yield file(signer, [confirmation(f"{number:032x}"[:32], at=now)], at=now - timedelta(seconds=number % 3_600))


def forged(data: bytes, random: Random) -> bytes:
    """Make what looks like a newer version of a file: another number in its seal, or another text in a line."""
    seal, behind = data.split(b"\n", 1)
    if random.random() < 0.5 and b"module" in behind:
        return seal + b"\n" + behind.replace(b"module", b"nodule", 1)
    number = json.loads(seal)["seal"]
    return seal.replace(b'"seal":%d' % number, b'"seal":%d' % (number + 1_000)) + b"\n" + behind


def _offer(files: Sequence[bytes]) -> bytes:
    return b"".join(wire.write_part(Whole(NO_ID, data)) for data in files)


def _key(data: bytes) -> str:
    return str(json.loads(data.split(b"\n", 1)[0])["key"])


def _item(data: bytes) -> Item:
    fields = json.loads(data.split(b"\n", 1)[0])
    return item_of(fields["key"], parse_time(fields["at"]), digest_of(data))
