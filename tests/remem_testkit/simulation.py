"""Many nights of many nodes: real files, real messages, one seed and a clock that only this moves.

Honest nodes are commons, which others dial, or memories, which dial out alone. Each lists some addresses at random,
liars among them. A night goes like this: some publish, and push what they published; then, in a random order, every
honest node that is online has exchanges with a few of those that it lists, and every hostile one brings its offers to
some.
Beside the liars there are nodes that are offline, connections that break, a partition, a backup that is older than
what it replaces, clocks that are wrong, and a key that says two things at once.
"""

from __future__ import annotations

from collections import Counter, deque
from copy import copy
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from random import Random
from typing import Final

from remem.protocol import SigningKey
from remem.protocol.canonical import JSON
from remem.protocol.times import unix_seconds
from remem_gossip import wire
from remem_gossip.budget import Allowance, Budget
from remem_gossip.choosing import Standing, back_off, in_turn
from remem_gossip.errors import GossipError
from remem_gossip.exchange import Answer, Exchange, Report, Request
from remem_gossip.relay import Relay
from remem_testkit.files import NOW, denial, file, key, lesson, revocation, sentence
from remem_testkit.hostile import KINDS, Flooder, Hostile
from remem_testkit.nodes import CutOff, MapNode, Peer, run
from remem_testkit.watched import LIAR, Traffic, Watched

DAY: Final = timedelta(days=1)
BUDGET: Final = Budget(bytes=16 << 20, checks=5_000, origins=60)
STRANGERS: Final = Budget(bytes=1 << 20, checks=500, origins=5)
"""What strangers bring comes in at every commons at once, so it has to be far less than what one peer may bring."""
_TWO_FACED: Final = 500_000
_BROKEN: Final = 0.05
"""Which part of the connections breaks."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What is simulated.

    Attributes:
        honest: how many honest nodes there are.
        memories: how many of these only dial out.
        hostile: how many others, of each kind in turn.
        listed: how many addresses each honest node lists.
        offline: which part of the honest nodes is offline in a night.
        exchanges: with how many peers a node means to speak in a night.
        news: for how many nights there are news.
        published: which part of the online nodes publishes in such a night.
        partition: in which nights the nodes are in two halves.
        backup: in which night a backup is made, and in which it replaces its node.
        skew: by how many hours clocks are wrong at most.
        skewed: by how many days two clocks are wrong, one forward and one back.
        pushes: whether publications are pushed.
        seed: of all choices.
    """

    honest: int = 80
    memories: int = 30
    hostile: int = 20
    listed: int = 12
    offline: float = 0.3
    exchanges: int = 3
    news: int = 21
    published: float = 0.2
    partition: range = range(4, 11)
    backup: tuple[int, int] = (7, 14)
    skew: float = 6
    skewed: float = 2.5
    pushes: bool = True
    seed: int = 1


@dataclass
class Member:
    """An honest node and its owner.

    Attributes:
        node: the node.
        signer: its key.
        peer: the node as others reach it; None for a memory.
        standings: what it lists, and how each behaved.
        relay: what it has to pass on.
        said: what its owner said, by the digest of the file.
    """

    node: Watched
    signer: SigningKey
    peer: Peer | None = None
    standings: dict[str, Standing] = field(default_factory=dict)
    relay: Relay = field(default_factory=Relay)
    said: dict[str, list[dict[str, JSON]]] = field(default_factory=dict)

    @property
    def latest(self) -> str | None:
        """The digest of the last file that its owner signed."""
        return next(reversed(self.said), None)


class Simulation:
    """Nights, one behind the other.

    Args:
        plan: what is simulated.

    Attributes:
        members: the honest nodes by name.
        liars: the others.
        night: how many nights have passed.
        traffic: what moved.
        shares: for each night, how many exchanges went to each kind of node.
        failures: how often exchanges ended early, by the kind of node and the code.
    """

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.random = Random(plan.seed)
        self.now = NOW
        self.night = 0
        self.traffic = Traffic()
        self.shares: list[Counter[str]] = []
        self.failures: Counter[str] = Counter()
        self.members = {member.node.name: member for member in map(self._member, range(plan.honest))}
        self.liars: dict[str, Hostile] = {}
        for number in range(plan.hostile):
            liar = KINDS[number % len(KINDS)](f"{LIAR} {number}", NOW, plan.seed * 1_000 + number)
            self.liars[liar.name] = liar
        self._online: set[str] = set()
        self._sides = {name: self.random.randrange(2) for name in [*self.members, *self.liars]}
        self._backup: MapNode | None = None
        self._list_peers()

    # --- what holds ---

    @property
    def agree(self) -> bool:
        """Whether all honest nodes hold one map, with the last word of each of them."""
        first, *others = (member.node.map() for member in self.members.values())
        latest = {one.signer.public.hex: one.latest for one in self.members.values() if one.latest is not None}
        return all(other == first for other in others) and latest.items() <= first.items()

    # --- a night ---

    def run(self, quiet: int) -> int | None:
        """Pass all nights with news, and then until all agree.

        Args:
            quiet: how many nights behind the last news there are at most.

        Returns:
            how many it took; None where they did not come to agree.
        """
        for _ in range(self.plan.news):
            self.pass_night()
        for nights in range(quiet + 1):
            if self.agree:
                return nights
            if nights < quiet:
                self.pass_night()
        return None

    def pass_night(self) -> None:
        """Let everything happen that happens in a night."""
        self.now = NOW + self.night * DAY
        self._online = {name for name in self.members if self.random.random() >= self.plan.offline}
        self._online.update(self.liars)
        self.shares.append(Counter())
        self._back_up()
        if self.night < self.plan.news:
            self._publish()
        actors = sorted(self._online)
        self.random.shuffle(actors)
        for name in actors:
            self.now += timedelta(hours=8) / len(actors)
            if name in self.members:
                self._dial(self.members[name])
            else:
                self._attack(self.liars[name])
        for member in self.members.values():
            member.node.check()
        self.night += 1

    def reach(self, caller: str, target: str, request: Request) -> Answer:
        """Ask another node; a `GossipError` where it is out of reach."""
        divided = self.night in self.plan.partition and self._sides[caller] != self._sides[target]
        if target not in self._online or divided:
            raise CutOff("an answer", "none")
        if target in self.liars:
            return self.liars[target].answer(request, caller)
        peer = self.members[target].peer
        assert peer is not None
        return peer.answer(request, caller)

    def _dial(self, member: Member) -> None:
        now, answered = member.node.clock(), 0
        for standing in in_turn(member.standings.values(), now, member.node.random):
            if answered == self.plan.exchanges:
                return
            kind = self.liars[standing.url].kind if standing.url in self.liars else "honest"
            report, failure = self._exchange(member, standing.url)
            self._count(kind, report)
            if failure is None:
                # Who takes nothing of ours is made up for by another, like one that does not answer.
                answered += not report.unlisted
                self.shares[-1][kind] += 1
            else:
                self.failures[f"{kind}: {failure.code}"] += 1
            member.standings[standing.url] = _behaved(standing, report, failure, now)

    def _exchange(self, member: Member, url: str) -> tuple[Report, GossipError | None]:
        exchange = Exchange(member.node, url, Allowance(BUDGET), member.node.random, now=member.node.clock())
        cut_after = self.random.randrange(1, 5) if self.random.random() < _BROKEN else None
        member.node.is_dialling = True
        try:
            run(exchange, _Reached(self, url), member.node.name, cut_after=cut_after)
        except GossipError as error:
            return exchange.report, error
        finally:
            member.node.is_dialling = False
        return exchange.report, None

    def _attack(self, liar: Hostile) -> None:
        if isinstance(liar, Flooder) and self.night >= self.plan.news:
            return
        liar.now = self.now
        targets = [name for name in sorted(self.members) if self.members[name].peer is not None]
        for body in liar.attack():
            for target in self.random.sample(targets, min(5, len(targets))):
                try:
                    answer = self.reach(liar.name, target, Request(wire.OFFER, body, wire.VERDICTS_BYTES))
                except CutOff:
                    continue
                self.traffic.with_liars += len(body) + len(answer.body)

    def _count(self, kind: str, report: Report) -> None:
        traffic, moved = self.traffic, report.sent + report.received
        if kind != "honest":
            traffic.with_liars += moved
            return
        traffic.moved += moved
        traffic.promised += report.promised
        traffic.delivered += report.delivered

    # --- news ---

    def _publish(self) -> None:
        online = sorted(self._online & self.members.keys())
        for name in [name for name in online if self.random.random() < self.plan.published]:
            member = self.members[name]
            own = member.node.files.get(member.signer.public.hex)
            if (None if own is None else own.digest) != member.latest:
                # What was restored from a backup says nothing until it knows what it said.
                continue
            previous = 0 if own is None or own.seal is None else own.seal.number
            at = member.node.clock()
            contents = self._words(member, at)
            data = file(member.signer, contents, seal=max(previous + 1, unix_seconds(at)), at=at)
            stored = member.node.put(data)
            member.said[stored.digest] = contents
            member.node.check()
            if self.plan.pushes:
                member.relay.publish(member.node.own() or b"")
                self._push(name)
        if self.night == self.plan.news // 2:
            self._speak_twice()

    def _words(self, member: Member, at: datetime) -> list[dict[str, JSON]]:
        """Add a lesson to what a member said, and take one back now and then, or deny a key."""
        contents = [] if member.latest is None else list(member.said[member.latest])
        lessons = [fields for fields in contents if "text" in fields]
        if lessons and self.random.random() < 0.4:
            gone = self.random.choice(lessons)
            contents.remove(gone)
            contents.append(revocation(str(gone["hash"]), at=at))
        if self.random.random() < 0.1:
            unwanted = key(self.random.randrange(10_000)).public.hex
            contents = [fields for fields in contents if fields.get("deny") != unwanted] + [denial(unwanted, at=at)]
        return [*contents, lesson(sentence(self.random.randrange(1_000_000_000)), at=at)]

    def _speak_twice(self) -> None:
        """Let a key say two things under one number, to two nodes that are open to it."""
        commons = [member for name, member in sorted(self.members.items()) if member.peer and name in self._online]
        for text, member in enumerate(self.random.sample(commons, 2)):
            at = self.now - self.plan.skewed * DAY
            data = file(key(_TWO_FACED), [lesson(sentence(text), at=at)], at=at)
            member.node.put(data)

    def _push(self, name: str) -> None:
        """Let a member push what it has to, and whoever takes it push it on."""
        waiting = deque([name])
        while waiting:
            member = self.members[waiting.popleft()]
            push = member.relay.next(member.standings.values(), member.node.clock(), member.node.random)
            if push is None:
                continue
            steps = member.relay.steps(member.node, push)
            answer: Answer | None = None
            try:
                url, request = next(steps)
                while True:
                    answer = self._pushed(member.node.name, url, request)
                    if url in self.members and len(self.members[url].relay):
                        waiting.append(url)
                    url, request = steps.send(answer)
            except StopIteration:
                pass

    def _pushed(self, name: str, url: str, request: Request) -> Answer | None:
        try:
            answer = self.reach(name, url, request)
        except CutOff:
            return None
        moved = len(request.body) + len(answer.body)
        if url in self.liars:
            self.traffic.with_liars += moved
        else:
            self.traffic.moved += moved
            self.traffic.pushed += moved
        return answer

    # --- the world ---

    def _member(self, number: int) -> Member:
        plan, signer = self.plan, key(number)
        skew = timedelta(hours=self.random.uniform(-plan.skew, plan.skew))
        if number in (0, 1):
            skew = plan.skewed * DAY * (1 if number else -1)
        node = Watched(f"node {number}", lambda: self.now + skew, self.traffic, plan.seed * 10_000 + number)
        node.own_key = signer.public.hex
        member = Member(node, signer)
        if number < plan.honest - plan.memories:
            # Every third one takes offers from those that it lists alone.
            member.peer = Peer(node, BUDGET, STRANGERS, takes_offers=bool(number % 3), listed=member.standings.keys())
            if plan.pushes:
                member.peer.took = lambda source, body, verdicts: member.relay.note(
                    wire.read_offer(body), verdicts, source, node.clock()
                )
        return member

    def _list_peers(self) -> None:
        commons = [name for name, member in self.members.items() if member.peer is not None]
        everyone = [*commons, *self.liars]
        for name, member in self.members.items():
            others = [other for other in everyone if other != name]
            for url in self.random.sample(others, min(self.plan.listed, len(others))):
                member.standings[url] = Standing(url)

    def _back_up(self) -> None:
        made, restored = self.plan.backup
        member = self.members[f"node {self.plan.honest // 2}"]
        if self.night == made:
            self._backup = _copy_of(member.node)
        if self.night == restored and self._backup is not None:
            node, backup = member.node, self._backup
            for name in ("files", "proofs", "ledger", "_items", "_times"):
                setattr(node, name, getattr(backup, name))
            node._opened, node.size = None, backup.size
            # What the world may still know of it is newer than what it knows itself: the one step back there is.
            node.highest, node.revoked = {}, {}


@dataclass(frozen=True, slots=True)
class _Reached:
    """A node at the other end of a connection."""

    simulation: Simulation
    name: str

    def answer(self, request: Request, source: str) -> Answer:
        """Answer a request."""
        return self.simulation.reach(source, self.name, request)


def _behaved(standing: Standing, report: Report, failure: GossipError | None, now: datetime) -> Standing:
    if failure is not None:
        failures = standing.failures + 1
        return replace(standing, failures=failures, next_try=now + back_off(failures))
    return replace(
        standing,
        failures=0,
        next_try=None,
        promised=standing.promised + report.promised,
        delivered=standing.delivered + report.delivered,
    )


def _copy_of(node: MapNode) -> MapNode:
    other = copy(node)
    for name in ("files", "proofs", "ledger", "_items", "_times"):
        setattr(other, name, dict(getattr(node, name)))
    return other
