"""One exchange, from the side that began it: reconcile, fetch, offer (DESIGN section 5; PROTOCOL.md, section 16).

A state machine without I/O: `steps` yields what to send and is given what came. Each step leaves this node valid, and
nothing has to be remembered for the next: an exchange that is cut goes on when the two meet again, from what they hold
by then.

1. Reconcile, message by message, over the items as they are at the time of each. Where that would take more than one
   exchange may, what is newest is found all the same (`remem_gossip.reconcile.passes`).
2. Leave out what was refused or superseded before. Where more is left than newcomers may come tonight, ask for the
   heads first, so that updates are found among the newcomers: of the newest, and of others as a sample. Proofs have no
   heads, and come last. Heads take at most half of the bytes that are left, and so does what has none.
3. Fetch in batches, and take in each. What did not fit into an answer is asked for again. What was left out although it
   would have fitted is a broken promise, and ends the fetching.
4. Offer what the peer lacks and what still stands here: the own file first, then the newest; a little at first, and
   twice as much each time. A peer that lets half of it wait is not asked again tonight, and one that kept less than
   half of its promises is offered nothing: it may say that it lacks everything, every night.

Everything that a peer says it has is a promise until it comes. What it sends unasked is dropped.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import chain
from random import Random
from typing import Final, TypeAlias

from remem.protocol import RULES
from remem.protocol.times import unix_seconds
from remem_gossip import wire
from remem_gossip.budget import Allowance
from remem_gossip.errors import GossipError
from remem_gossip.node import Node
from remem_gossip.parts import Blocked, Head, Missing, Outcome, Part, Proof, Verdict, Whole
from remem_gossip.reconcile import REACH, Differences, Passes, Reach
from remem_gossip.taking import BLOCKED

_SAMPLED_MOST: Final = 16_384
"""How many items are looked at where neither all nor the newest are known; others another night."""
_OFFERED_FIRST: Final = 16
_OFFERED_MOST: Final = 64 * 1_048_576
"""How many bytes one exchange offers, whatever the peer says that it lacks: it can fetch the rest itself."""
_FETCHED_AT_ONCE: Final = 256
_PART_MOST: Final = RULES.file_bytes + 64
"""No part is longer, with the line before it; a proof is shorter."""


class Refused(GossipError):
    """A peer refused what was asked of it."""

    code = "peer_refused"


@dataclass(frozen=True, slots=True)
class Request:
    """What to send next.

    Attributes:
        path: where to, below the peer's address.
        body: the bytes.
        most: how many bytes the answer may have.
    """

    path: str
    body: bytes
    most: int


@dataclass(frozen=True, slots=True)
class Answer:
    """What came.

    Attributes:
        status: of HTTP.
        body: the bytes.
        code: the stable code of a refusal.
    """

    status: int
    body: bytes
    code: str | None = None

    @property
    def is_good(self) -> bool:
        """Whether the peer did what was asked."""
        return self.status == 200


@dataclass(slots=True)
class Report:
    """What an exchange did.

    Attributes:
        rounds: how many messages of reconciliation were sent.
        sent: bytes of bodies that went.
        received: bytes of bodies that came.
        lacked: how many items the peer has and this node does not want or have.
        skipped: how many of these were refused or superseded before, or are not worth fetching.
        promised: how many were asked for.
        delivered: how many of these came, and are what they should be.
        taken: how many files came in, by their outcome.
        refused: the codes of what was refused, each with how often.
        waiting: how many files wait for another night, here or there.
        offered: how many parts were offered.
        stand_there: how many of these the peer holds now.
        unlisted: whether the peer takes offers from those that it lists alone.
    """

    rounds: int = 0
    sent: int = 0
    received: int = 0
    lacked: int = 0
    skipped: int = 0
    promised: int = 0
    delivered: int = 0
    taken: dict[str, int] = field(default_factory=dict)
    refused: dict[str, int] = field(default_factory=dict)
    waiting: int = 0
    offered: int = 0
    stand_there: int = 0
    unlisted: bool = False


Steps: TypeAlias = Generator[Request, Answer, None]


class Exchange:
    """One exchange with one peer.

    Args:
        node: this side.
        source: what the peer's files are said to come from.
        allowance: what the peer may still cost tonight.
        random: chooses among equals.
        now: the clock, with a zone.
        reach: how far reconciliation goes.

    Attributes:
        report: what was done so far.
    """

    def __init__(
        self,
        node: Node,
        source: str,
        allowance: Allowance,
        random: Random,
        *,
        now: datetime,
        reach: Reach = REACH,
    ) -> None:
        self.report = Report()
        self._node = node
        self._source = source
        self._allowance = allowance
        self._random = random
        self._now = unix_seconds(now)
        self._reach = reach

    def steps(self) -> Steps:
        """Yield each request, and be sent its answer.

        Raises:
            GossipError: what came is not what the protocol lets a peer send.
        """
        found = yield from self._reconcile()
        wanted, headless = yield from self._choose(found)
        yield from self._fetch(wanted, 0)
        if self._keeps_its_word:
            yield from self._fetch(headless, self._allowance.bytes_left // 2)
        if self._keeps_its_word:
            yield from self._offer(found.have)

    @property
    def _keeps_its_word(self) -> bool:
        return 2 * self.report.delivered >= self.report.promised

    # --- 1 ---

    def _reconcile(self) -> Generator[Request, Answer, Differences]:
        allowance = self._allowance
        messages = Passes(
            self._node.items,
            lambda: allowance.bytes_left,
            self._random,
            now=self._now,
            frame_limit=wire.FRAME_BYTES,
            reach=self._reach,
        ).messages()
        try:
            message = next(messages)
            while True:
                self.report.rounds += 1
                answer = yield from self._ask(Request(wire.RECONCILE, message, wire.FRAME_MOST))
                allowance.charge(size=len(answer.body))
                message = messages.send(answer.body)
        except StopIteration as end:
            found: Differences = end.value
        return found

    # --- 2 ---

    def _choose(self, found: Differences) -> Generator[Request, Answer, tuple[list[bytes], list[bytes]]]:
        """Return what to fetch, and then what may turn out to be anything."""
        report = self.report
        groups = [*found.newest, found.others]
        settled = self._node.settled(list(chain.from_iterable(groups)))
        left = [[one for one in some if one not in settled] for some in groups]
        wanted = list(chain.from_iterable(left))
        headless: list[bytes] = []
        report.lacked = sum(map(len, groups))
        if len(wanted) > self._allowance.origins:
            for some in left:
                self._random.shuffle(some)
            report.waiting += len(left[-1][_SAMPLED_MOST:])
            del left[-1][_SAMPLED_MOST:]
            wanted, headless = yield from self._by_heads(list(chain.from_iterable(left)))
        report.skipped = report.lacked - len(wanted) - len(headless) - report.waiting
        return wanted, headless

    def _by_heads(self, ids: list[bytes]) -> Generator[Request, Answer, tuple[list[bytes], list[bytes]]]:
        heads: list[Head] = []
        headless: list[bytes] = []
        allowance, least = self._allowance, self._allowance.bytes_left // 2
        for some in _batches(ids, wire.FETCH_IDS):
            if allowance.bytes_left <= least:
                self.report.waiting += len(ids) - len(heads) - len(headless)
                break
            answer = yield from self._ask(Request(wire.FETCH, wire.write_fetch(some, heads=True), wire.FETCH_BYTES))
            allowance.charge(size=len(answer.body))
            came = {head.id: head for head in wire.read_heads(answer.body)}
            heads += [came[one] for one in some if one in came]
            headless += [one for one in some if one not in came]
        return self._node.wanted(heads, allowance.origins), headless

    # --- 3 ---

    def _fetch(self, wanted: list[bytes], least: int) -> Steps:
        """Fetch as long as more than so many bytes of the allowance are left."""
        waiting = wanted
        while waiting and self._allowance.bytes_left > least:
            some, waiting = waiting[:_FETCHED_AT_ONCE], waiting[_FETCHED_AT_ONCE:]
            answer = yield from self._ask(Request(wire.FETCH, wire.write_fetch(some), wire.FETCH_BYTES))
            try:
                sent = {part.id: part for part in wire.read_parts(answer.body)}
                came = [sent[one] for one in some if one in sent]
                self._take(came)
            finally:
                # Charged behind what it brought, which is taken in although it may be the last.
                self._allowance.charge(size=len(answer.body))
            left = [one for one in some if one not in sent]
            if left and len(answer.body) + _PART_MOST <= wire.FETCH_BYTES:
                # Only a peer that does not mean it leaves out what it said that it has.
                self.report.promised += len(left)
                return
            if all(isinstance(part, Missing) for part in came):
                return
            waiting = left + waiting
        self.report.waiting += len(waiting)

    def _take(self, parts: Sequence[Part]) -> None:
        self.report.promised += sum(not isinstance(part, Blocked) for part in parts)
        whole = [part for part in parts if not isinstance(part, Blocked | Missing)]
        for verdict in self._node.take(whole, self._source, self._allowance):
            self._count(verdict)

    def _count(self, verdict: Verdict) -> None:
        report = self.report
        if verdict.outcome is Outcome.REFUSED:
            code = verdict.code or "refused"
            report.refused[code] = report.refused.get(code, 0) + 1
            # That a key is blocked here is not the peer's fault.
            report.delivered += code == BLOCKED
            return
        report.delivered += 1
        if verdict.outcome is Outcome.DEFERRED:
            report.waiting += 1
        elif verdict.outcome in (Outcome.NEW, Outcome.NEWER):
            report.taken[verdict.outcome.value] = report.taken.get(verdict.outcome.value, 0) + 1

    # --- 4 ---

    def _offer(self, have: list[bytes]) -> Steps:
        own = self._node.own()
        ordered = sorted(have, key=lambda one: one != own)
        left = _OFFERED_MOST
        for batch in _fitting(self._node.parts(ordered)):
            body = b"".join(map(wire.write_part, batch))
            left -= len(body)
            if left < 0:
                return
            self.report.offered += len(batch)
            answer = yield Request(wire.OFFER, body, wire.VERDICTS_BYTES)
            self.report.sent += len(body)
            self.report.received += len(answer.body)
            if answer.status == 403:
                # What was fetched is kept all the same.
                self.report.unlisted = True
                return
            _check(answer)
            verdicts = wire.read_verdicts(answer.body, len(batch))
            self.report.stand_there += sum(verdict.outcome.stands for verdict in verdicts)
            waits = sum(verdict.outcome is Outcome.DEFERRED for verdict in verdicts)
            self.report.waiting += waits
            if 2 * waits >= len(batch):
                return

    def _ask(self, request: Request) -> Generator[Request, Answer, Answer]:
        answer = yield request
        self.report.sent += len(request.body)
        self.report.received += len(answer.body)
        _check(answer)
        return answer


def _check(answer: Answer) -> None:
    if not answer.is_good:
        raise Refused("an answer with status 200", f"{answer.status} {answer.code or 'without a code'}")


def _batches(ids: Sequence[bytes], most: int) -> Iterator[Sequence[bytes]]:
    return (ids[start : start + most] for start in range(0, len(ids), most))


def _fitting(parts: Iterable[Part]) -> Iterator[list[Whole | Proof]]:
    """Put what can be offered into batches that a peer takes, each up to twice as long as the one before."""
    batch: list[Whole | Proof] = []
    size, most = 0, _OFFERED_FIRST
    for part in parts:
        if isinstance(part, Blocked | Missing):
            continue
        grown = wire.size_of(part)
        if batch and (len(batch) >= most or size + grown > wire.OFFER_BYTES):
            yield batch
            batch, size, most = [], 0, min(2 * most, wire.OFFER_PARTS)
        batch.append(part)
        size += grown
    if batch:
        yield batch
