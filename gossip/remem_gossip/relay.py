"""What is passed on at once (DESIGN section 5): a new publication does not wait for the night.

- Whoever publishes pushes its file to a few peers: an offer, with no reconciliation before it.
- An offer of a few parts is taken for a push. What came in it as new or newer, and was sealed less than a day ago, is
  pushed once more by whoever took it. A version is new to a node once, so it is pushed by each node once.
- A peer that does not take an offer is made up for by another, as long as that is worth it: most are away where many
  are. Nobody gets back what it brought.
- The queue is bounded. Newcomers leave it before updates do, and go behind them: keys are free, and nobody may make
  nodes carry them about in place of news. What leaves it travels by the exchanges of the night.

Nothing here sends: `steps` yields whom to ask and what, and is given what came.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from random import Random
from typing import Final, TypeAlias

from remem.protocol import ProtocolError, Seal
from remem.protocol.records import read_record
from remem_gossip import wire
from remem_gossip.choosing import Standing, in_turn
from remem_gossip.exchange import Answer, Request
from remem_gossip.node import Node
from remem_gossip.parts import Blocked, Missing, Outcome, Proof, Verdict, Whole

COPIES: Final = 3
"""To how many peers a version is pushed."""
PUSHED_AT_ONCE: Final = 16
"""No push has more parts."""

_TRIES: Final = 3
"""How many peers are tried for each that should take it."""
_QUEUED_MOST: Final = 256
_YOUNG: Final = timedelta(days=1)

Steps: TypeAlias = Generator[tuple[str, Request], Answer | None, None]


@dataclass(frozen=True, slots=True)
class Push:
    """What to offer next.

    Attributes:
        came_from: the items, and whom each of them came from; None where it is this node's own.
        order: the peers, in the order in which they are to be tried.
    """

    came_from: dict[bytes, str | None]
    order: tuple[str, ...]


class Relay:
    """What waits to be pushed.

    Args:
        copies: to how many peers.
    """

    def __init__(self, copies: int = COPIES) -> None:
        self._copies = copies
        self._updates: dict[bytes, str | None] = {}
        self._newcomers: dict[bytes, str | None] = {}

    def __len__(self) -> int:
        return len(self._updates) + len(self._newcomers)

    def publish(self, id_: bytes) -> None:
        """Push a file of this node's own, or one that was put here."""
        self._add(self._updates, id_, None)

    def note(self, parts: Sequence[Whole | Proof], verdicts: Sequence[Verdict], source: str, now: datetime) -> None:
        """Push on what came, where it is to be pushed.

        Args:
            parts: what was offered.
            verdicts: what became of each.
            source: who offered it, as `Standing.url` names it where it is a peer.
            now: the clock, with a zone.
        """
        if len(parts) > PUSHED_AT_ONCE:
            return
        for part, verdict in zip(parts, verdicts, strict=True):
            if isinstance(part, Whole) and verdict.outcome in (Outcome.NEW, Outcome.NEWER) and _is_young(part, now):
                queue = self._newcomers if verdict.outcome is Outcome.NEW else self._updates
                self._add(queue, verdict.id, source)

    def next(self, peers: Iterable[Standing], now: datetime, random: Random) -> Push | None:
        """Take the next push out of the queue; None where nothing waits."""
        if not len(self):
            return None
        came_from: dict[bytes, str | None] = {}
        for queue in (self._updates, self._newcomers):
            while queue and len(came_from) < PUSHED_AT_ONCE:
                id_ = next(iter(queue))
                came_from[id_] = queue.pop(id_)
        return Push(came_from, tuple(peer.url for peer in in_turn(peers, now, random)))

    def steps(self, node: Node, push: Push) -> Steps:
        """Yield whom to ask and what, and be sent the answer; None where there is none."""
        reached = asked = 0
        for url in push.order:
            if reached == self._copies or asked == _TRIES * self._copies:
                return
            body = _offer(node, [id_ for id_, source in push.came_from.items() if source != url])
            if body:
                asked += 1
                answer = yield url, Request(wire.OFFER, body, wire.VERDICTS_BYTES)
                reached += answer is not None and answer.is_good

    def _add(self, queue: dict[bytes, str | None], id_: bytes, source: str | None) -> None:
        queue[id_] = source
        if len(self) > _QUEUED_MOST:
            full = self._newcomers or self._updates
            del full[next(iter(full))]


def _offer(node: Node, ids: Sequence[bytes]) -> bytes:
    """Write the offer; what was superseded since it was queued is left out."""
    return b"".join(wire.write_part(part) for part in node.parts(ids) if not isinstance(part, Blocked | Missing))


def _is_young(part: Whole, now: datetime) -> bool:
    try:
        seal = read_record(part.data.partition(b"\n")[0])
    except ProtocolError:
        return False
    return isinstance(seal, Seal) and now - seal.time < _YOUNG
