"""A whole node in memory, and two of them that meet without a network.

It keeps files in a dictionary and accepts them by the real protocol; its messages are those that travel. So what is
shown here of an exchange holds for every node that fills in the same port.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from random import Random
from typing import Protocol

from remem.protocol import Deferred, OriginFile, ProtocolError, Seal, Version, accept, newest, parse_record
from remem.protocol.items import Item, item_of, proof_item
from remem_gossip import wire
from remem_gossip.answering import answer_fetch, answer_offer, answer_reconcile
from remem_gossip.budget import Allowance, Budget, night_of
from remem_gossip.errors import GossipError
from remem_gossip.exchange import Answer, Exchange, Report, Request
from remem_gossip.parts import Blocked, Head, Missing, Outcome, Part, Proof, Verdict, Whole
from remem_gossip.reconcile import Vector
from remem_gossip.taking import Taken, outcome_of, take_parts
from remem_testkit.files import NOW

PLENTY = Budget(bytes=1 << 40, checks=1 << 40, origins=1 << 40)


@dataclass
class MapNode:
    """A node whose files are in a dictionary.

    Attributes:
        name: what its files are said to come from elsewhere.
        clock: its clock.
        files: the file that stands of each key.
        proofs: two seals of each key that spoke twice.
        blocked: the keys of which it keeps no file, each with the reason.
        ledger: the items that it does not want again, with why.
        own_key: the key of its own file.
        trusted: keys whose files come before all others.
        room: how many bytes of files it keeps at most; an update may go beyond by what it is longer.
        size: how many it keeps.
    """

    name: str = "node"
    clock: Callable[[], datetime] = lambda: NOW
    files: dict[str, OriginFile] = field(default_factory=dict)
    proofs: dict[str, tuple[bytes, bytes]] = field(default_factory=dict)
    blocked: dict[str, str] = field(default_factory=dict)
    ledger: dict[bytes, str | None] = field(default_factory=dict)
    own_key: str | None = None
    trusted: frozenset[str] = frozenset()
    room: int = 1 << 40
    size: int = 0
    random: Random = field(default_factory=lambda: Random(0))
    _items: dict[bytes, str] = field(default_factory=dict)
    _times: dict[bytes, int] = field(default_factory=dict)
    _opened: Vector | None = None

    def put(self, data: bytes) -> OriginFile:
        """Put a file in place, as its owner does."""
        file = accept(data, now=self.clock())
        self._store(file)
        return file

    def map(self) -> dict[str, str]:
        """Return the digest of what stands of each key, and which keys spoke twice."""
        return {key: file.digest for key, file in self.files.items()} | {f"proof {key}": "" for key in self.proofs}

    def block(self, key: str, reason: str) -> None:
        """Keep of a key's file its version alone."""
        self.blocked[key] = reason

    # --- Node ---

    @contextmanager
    def items(self) -> Iterator[Vector]:
        """Open the items that are held."""
        if self._opened is None:
            self._opened = Vector(Item(self._times[id_], id_) for id_ in self._items)
        yield self._opened

    def own(self) -> bytes | None:
        """Return the id of the own file."""
        file = None if self.own_key is None else self.files.get(self.own_key)
        return None if file is None else _item(file).id

    def parts(self, ids: Sequence[bytes]) -> Iterator[Part]:
        """Hand out what the items name."""
        return map(self._part, ids)

    def heads(self, ids: Sequence[bytes]) -> Iterator[Head]:
        """Say which files the items name."""
        for id_ in ids:
            part = self._part(id_)
            if isinstance(part, Whole):
                file = self.files[self._items[id_]]
                assert file.seal is not None
                yield Head(id_, file.key.hex, file.seal.number, len(file.data))

    def wanted(self, heads: Iterable[Head], newcomers: int) -> list[bytes]:
        """Choose what to fetch: trusted keys, then updates, then newcomers at random."""
        found = [head for head in heads if self._is_newer(head)]
        self.random.shuffle(found)
        known = [head for head in found if head.key in self.trusted or head.key in self.files]
        strangers = [head for head in found if head.key not in self.trusted and head.key not in self.files]
        ordered = sorted(known, key=lambda head: head.key not in self.trusted) + strangers[:newcomers]
        return [head.id for head in ordered]

    def take(self, parts: Sequence[Whole | Proof], source: str, allowance: Allowance) -> list[Verdict]:
        """Take in what came."""
        return take_parts(self, parts, source, allowance)

    # --- Shelf ---

    def standing(self, key: str) -> Version | None:
        """Return the version that stands of a key."""
        file = self.files.get(key)
        return None if file is None else file.version

    def is_blocked(self, key: str) -> bool:
        """Tell whether a key is blocked here."""
        return key in self.blocked

    def settled(self, ids: Collection[bytes]) -> set[bytes]:
        """Return what is not wanted again."""
        return self.ledger.keys() & set(ids)

    def settle(self, id_: bytes, code: str | None) -> None:
        """Remember what is not wanted again."""
        self.ledger[id_] = code

    def take_file(self, data: bytes, key: str, source: str) -> Taken:
        """Accept a file, and store it where it is the newest."""
        held = self.files.get(key)
        lines = data.count(b"\n")
        try:
            file = accept(data, now=self.clock(), verified=None if held is None else held.verified)
        except Deferred as error:
            return Taken(Outcome.DEFERRED, error.code, lines)
        except ProtocolError as error:
            return Taken(Outcome.REFUSED, error.code, lines)
        lines = len(file.fresh) + 1
        if held is None and self.size + len(data) > self.room:
            return Taken(Outcome.DEFERRED, "no_room", lines)
        verdict = newest(None if held is None else held.version, file.version)
        if verdict.equivocation and held is not None and held.seal and file.seal:
            self.proofs[file.key.hex] = _ordered(held.seal.line, file.seal.line)
            self._add(proof_item(file.key.hex), f"proof {file.key.hex}")
        if verdict.takes:
            self._store(file)
        return Taken(outcome_of(verdict), None, lines)

    def has_proof(self, key: str) -> bool:
        """Tell whether a key is proven to have spoken twice."""
        return key in self.proofs

    def take_proof(self, first: Seal, second: Seal) -> str | None:
        """Keep a proof."""
        key = first.key.hex
        self.proofs[key] = _ordered(first.line, second.line)
        self._add(proof_item(key), f"proof {key}")
        return None

    def _store(self, file: OriginFile) -> None:
        held = self.files.get(file.key.hex)
        if held is not None:
            before = _item(held).id
            del self._items[before], self._times[before]
            self.ledger[before] = None
            self.size -= len(held.data)
        self.size += len(file.data)
        self.files[file.key.hex] = file
        self._add(_item(file), file.key.hex)

    def _add(self, item: Item, name: str) -> None:
        self._items[item.id] = name
        self._times[item.id] = item.time
        self._opened = None

    def _part(self, id_: bytes) -> Part:
        name = self._items.get(id_)
        if name is None:
            return Missing(id_)
        if name.startswith("proof "):
            return Proof(id_, self.proofs[name.removeprefix("proof ")])
        if name in self.blocked:
            return Blocked(id_, self.blocked[name])
        return Whole(id_, self.files[name].data)

    def _is_newer(self, head: Head) -> bool:
        held = self.standing(head.key)
        return held is None or held.seal is None or head.seal >= held.seal


class Answering(Protocol):
    """Whoever is asked, honest or not."""

    @property
    def name(self) -> str:
        """Its address."""
        ...

    def answer(self, request: Request, source: str) -> Answer:
        """Answer a request, or raise a `GossipError` where no answer comes."""
        ...


@dataclass
class Peer:
    """A node as others reach it.

    Attributes:
        node: the node.
        budget: what whoever offers may cost in a night.
        strangers: what all that it does not list may cost together; the same, if nothing is said.
        takes_offers: whether it takes offers of those that it does not list.
        listed: its peers; None where everyone is one.
        took: told of each offer that was taken in.
    """

    node: MapNode
    budget: Budget = PLENTY
    strangers: Budget | None = None
    takes_offers: bool = True
    listed: Collection[str] | None = None
    took: Callable[[str, bytes, list[Verdict]], None] | None = None
    _allowances: dict[tuple[str, int], Allowance] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Its address."""
        return self.node.name

    def answer(self, request: Request, source: str = "caller") -> Answer:
        """Answer a request as a server's routes do."""
        try:
            if request.path == wire.RECONCILE:
                return Answer(200, answer_reconcile(self.node, request.body))
            if request.path == wire.FETCH:
                return Answer(200, b"".join(answer_fetch(self.node, request.body)))
            return self._offered(request.body, source)
        except GossipError as error:
            return Answer(422, b"", error.code)

    def allowance(self, source: str) -> Allowance:
        """Return what is left tonight to whoever offers."""
        known = self.listed is None or source in self.listed
        account, budget = (source, self.budget) if known else ("", self.strangers or self.budget)
        return self._allowances.setdefault((account, night_of(self.node.clock())), Allowance(budget))

    def _offered(self, body: bytes, source: str) -> Answer:
        if not self.takes_offers and (self.listed is None or source not in self.listed):
            return Answer(403, b"", "not_a_peer")
        verdicts = answer_offer(self.node, body, source, self.allowance(source))
        if self.took is not None:
            self.took(source, body, verdicts)
        return Answer(200, wire.write_verdicts(verdicts))


class CutOff(GossipError):
    """The connection broke."""

    code = "peer_unreachable"


def meet(
    node: MapNode,
    peer: Answering,
    allowance: Allowance | None = None,
    *,
    cut_after: int | None = None,
) -> Report:
    """Run an exchange from one node with another, and return what it did.

    Args:
        node: the one that dials.
        peer: the other.
        allowance: what the other may cost.
        cut_after: behind how many answers the connection breaks.
    """
    exchange = Exchange(node, peer.name, allowance or Allowance(PLENTY), node.random, now=node.clock())
    with suppress(CutOff):
        run(exchange, peer, node.name, cut_after=cut_after)
    return exchange.report


def run(exchange: Exchange, peer: Answering, source: str, *, cut_after: int | None = None) -> None:
    """Run an exchange to its end; its report says what it did.

    Raises:
        GossipError: the peer did not answer, or answered what no peer may, or the connection broke.
    """
    steps = exchange.steps()
    answers = 0
    try:
        request = next(steps)
        while cut_after is None or answers < cut_after:
            answers += 1
            request = steps.send(peer.answer(request, source))
    except StopIteration:
        return
    finally:
        steps.close()
    raise CutOff("an answer", "none")


def _item(file: OriginFile) -> Item:
    assert file.seal is not None
    return item_of(file.key.hex, file.seal.time, file.digest)


def _ordered(first: bytes, second: bytes) -> tuple[bytes, bytes]:
    assert isinstance(parse_record(first), Seal)
    return (first, second) if first < second else (second, first)
