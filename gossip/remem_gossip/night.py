"""A memory's night among its peers: a few exchanges, with those that answer (DESIGN section 5).

One that does not answer is made up for by another, as long as that is worth it and the night is long enough. Whatever
goes wrong with a peer is told and noted of it, and the night goes on.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from random import Random
from typing import Final, TypeAlias

from remem.commons.waiting import Patience
from remem.memory.home import Home
from remem.memory.store import transaction
from remem.progress import Progress
from remem.protocol import SigningKey
from remem.sharing.reports import Notice
from remem_gossip import peers as book
from remem_gossip.budget import Budget
from remem_gossip.choosing import EXCHANGES_A_NIGHT, in_turn
from remem_gossip.dial import Dial
from remem_gossip.errors import GossipError
from remem_gossip.exchange import Exchange
from remem_gossip.meeting import Met, meet, meet_some
from remem_gossip.memory_node import MemoryNode, open_memory
from remem_gossip.peers import Peer
from remem_gossip.spans import Span

MEMORY_BUDGET: Final = Budget(bytes=64 * 1_048_576, checks=200_000, origins=1_000)
"""What one peer may cost a memory in a night."""

FULL_BUDGET: Final = replace(MEMORY_BUDGET, origins=50)
"""The same where newcomers hardly have room: so they are looked at by their heads, and not fetched for nothing."""

NIGHT_SECONDS: Final = 600.0
"""How long a night may take: whoever has it behind a sleep waits for its end."""

PEER_SECONDS: Final = 180.0
"""How much of that one peer may take."""

Dialling: TypeAlias = Callable[[Peer, SigningKey, str | None, Span], Dial]


@dataclass(frozen=True, slots=True)
class NightReport:
    """What a night among peers did.

    Attributes:
        met: the peers that were asked, in their order.
        resting: peers that are left alone for now.
        learned: how many lessons became local candidates.
        notices: what the owner should look into.
    """

    met: tuple[Met, ...]
    resting: tuple[str, ...]
    learned: int
    notices: tuple[Notice, ...]


def gossip(
    home: Home,
    db: sqlite3.Connection,
    *,
    now: datetime,
    random: Random,
    only: Sequence[str] | None = None,
    exchanges: int = EXCHANGES_A_NIGHT,
    time: Span | None = None,
    dialling: Dialling | None = None,
    progress: Progress | None = None,
) -> NightReport:
    """Have exchanges with some peers.

    Args:
        home: the memory's home.
        db: its database, with no transaction open.
        now: the clock, with a zone.
        random: chooses whom to ask.
        only: the addresses to ask, whether or not they are to rest; some at random otherwise.
        exchanges: with how many peers; one that does not answer is made up for by another.
        time: what it may take: `NIGHT_SECONDS`, or for those that were named a share for each.
        dialling: opens the way to a peer, in place of the network.
        progress: told how far it is.
    """
    own = home.signing_key().public.hex
    others = {peer.url: peer for peer in book.known_peers(db, now) if peer.key != own}
    if only is None:
        ready = [others[one.url] for one in in_turn([peer.standing for peer in others.values()], now, random)]
        time = time or Span(NIGHT_SECONDS)
    else:
        ready = [book.find(db, url) for url in only]
        exchanges, time = len(ready), time or Span()
    met: list[Met] = []
    with open_memory(home, db, now=now, random=random) as node:
        night = _Night(home, db, node, now, random, dialling or dial_peer)
        for one in meet_some(ready, night.meet, exchanges=exchanges, time=time, share=PEER_SECONDS):
            met.append(one)
            if progress is not None:
                progress(min(len(met), exchanges), exchanges)
        resting = [url for url, peer in others.items() if only is None and peer not in ready]
        return NightReport(tuple(met), tuple(resting), node.effects.learned, node.notices)


class _Night:
    """What the exchanges of a night share."""

    def __init__(
        self, home: Home, db: sqlite3.Connection, node: MemoryNode, now: datetime, random: Random, dialling: Dialling
    ) -> None:
        self._db, self._node, self._now, self._random, self._dialling = db, node, now, random, dialling
        self._key, self._config = home.signing_key(), home.config()

    def meet(self, peer: Peer, time: Span) -> Met:
        """Have an exchange with one peer, and note how it behaved."""
        account = book.account(self._db, peer.url, self._budget(), self._now)
        exchange = Exchange(self._node, peer.url, account, self._random, now=self._now)
        failure: GossipError | None = None
        try:
            with closing(self._dialling(peer, self._key, self._config.target(peer.url).token, time)) as dial:
                meet(exchange, dial, account)
        except GossipError as error:
            failure = error
        report, again = exchange.report, None
        with transaction(self._db):
            book.note_word(self._db, peer.url, promised=report.promised, delivered=report.delivered)
            if failure is None:
                book.note_answered(self._db, peer.url, self._now)
            else:
                again = book.note_failed(self._db, peer.url, self._now)
        return Met.of(peer.url, report, failure, again)

    def _budget(self) -> Budget:
        return FULL_BUDGET if self._node.is_full else MEMORY_BUDGET


def dial_peer(peer: Peer, key: SigningKey, token: str | None, time: Span, patience: Patience | None = None) -> Dial:
    """Open the way to a peer over the network."""
    return Dial(
        peer.address,
        key,
        lambda: datetime.now(UTC),
        allowed=peer.allowed,
        token=token,
        patience=patience,
        time=time,
    )
