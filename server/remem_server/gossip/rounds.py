"""A round among the peers of a commons: a few exchanges, with those that answer (DESIGN section 5).

Of several servers over one database, one at a time does it. What an exchange brings is stored as it comes, so it may
break at any point.
"""

from __future__ import annotations

import fcntl
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from random import Random
from typing import Final, TypeAlias

from sqlalchemy import text

from remem.commons.waiting import Patience
from remem_gossip.choosing import EXCHANGES_A_NIGHT, in_turn
from remem_gossip.dial import Dial
from remem_gossip.discovery import ask_who
from remem_gossip.errors import GossipError
from remem_gossip.exchange import Exchange
from remem_gossip.meeting import Met, meet, meet_some
from remem_gossip.spans import Span
from remem_server.database.engine import is_postgres, writing
from remem_server.files import ledger
from remem_server.gossip import peers, spending
from remem_server.gossip.node import ServerNode
from remem_server.gossip.peers import Peer
from remem_server.opening.context import Commons
from remem_server.opening.migrate import GOSSIP_LOCK_NAME

# Any number will do, as long as nothing else in the database takes it.
_LOCK: Final = 0x72656D656D + 2

ROUND_SECONDS: Final = 1_800.0
"""How long a round may take."""

PEER_SECONDS: Final = 600.0
"""How much of that one peer may take: a commons takes in far more of one than a memory."""

Dialling: TypeAlias = Callable[[Commons, Peer, Span], Dial]


def dial_peer(commons: Commons, peer: Peer, time: Span, patience: Patience | None = None) -> Dial:
    """Open the way to a peer over the network."""
    return Dial(peer.address, commons.key, commons.clock, allowed=peer.allowed, patience=patience, time=time)


@contextmanager
def alone(commons: Commons) -> Iterator[bool]:
    """Tell whether no other process is in a round, and keep the others out if so."""
    if is_postgres(commons.engine):
        with commons.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            mine: bool = connection.execute(text("SELECT pg_try_advisory_lock(:lock)"), {"lock": _LOCK}).scalar_one()
            try:
                yield mine
            finally:
                if mine:
                    connection.execute(text("SELECT pg_advisory_unlock(:lock)"), {"lock": _LOCK})
        return
    with (commons.settings.data / GOSSIP_LOCK_NAME).open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True


def go_round(
    commons: Commons,
    random: Random,
    *,
    only: Sequence[Peer] | None = None,
    exchanges: int = EXCHANGES_A_NIGHT,
    time: Span | None = None,
    dialling: Dialling = dial_peer,
    told: Callable[[Met], None] | None = None,
) -> list[Met]:
    """Have exchanges with some peers.

    Args:
        commons: whose peers.
        random: chooses whom to ask.
        only: whom to ask, whether or not they are to rest; some at random otherwise.
        exchanges: with how many; one that does not answer is made up for by another.
        time: what it may take: `ROUND_SECONDS`, or for those that were named a share for each.
        dialling: opens the way to a peer.
        told: told of each exchange once it is over.
    """
    now, own = commons.clock(), commons.key.public.hex
    with writing(commons.engine) as connection:
        spending.forget_old(connection, now)
        ledger.forget_old(connection, now)
        known = {peer.url: peer for peer in peers.list_all(connection) if peer.key != own}
    if only is None:
        ready = [known[one.url] for one in in_turn([peer.standing for peer in known.values()], now, random)]
        time = time or Span(ROUND_SECONDS)
    else:
        ready, exchanges, time = list(only), len(only), time or Span()

    met: list[Met] = []
    meeting = _Round(commons, random, dialling)
    for one in meet_some(ready, meeting.meet, exchanges=exchanges, time=time, share=PEER_SECONDS):
        met.append(one)
        if told is not None:
            told(one)
    return met


class _Round:
    """What the exchanges of a round share."""

    def __init__(self, commons: Commons, random: Random, dialling: Dialling) -> None:
        self._commons, self._random, self._dialling = commons, random, dialling
        self._budget = spending.budget_of_peer(commons.settings)

    def meet(self, peer: Peer, time: Span) -> Met:
        """Have an exchange with one peer, and note how it behaved."""
        commons, now = self._commons, self._commons.clock()
        with writing(commons.engine) as connection:
            peers.note_tried(connection, peer.url, now)
        account = spending.account(commons.engine, peer.url, self._budget, now)
        exchange = Exchange(ServerNode(commons, self._random), peer.url, account, self._random, now=now)
        failure: GossipError | None = None
        try:
            with closing(self._dialling(commons, peer, time)) as dial:
                if peer.key is None:
                    self._learn_key(peer, dial)
                meet(exchange, dial, account)
        except GossipError as error:
            failure = error
        report, again = exchange.report, None
        with writing(commons.engine) as connection:
            peers.note_word(connection, peer.url, promised=report.promised, delivered=report.delivered)
            if failure is None:
                peers.note_answered(connection, peer.url, commons.clock())
            elif not time.is_ended:
                # Else this server ends, which is no fault of the peer's.
                again = peers.note_failed(connection, peer.url, commons.clock())
        return Met.of(peer.url, report, failure, again)

    def _learn_key(self, peer: Peer, dial: Dial) -> None:
        """Ask a peer for its key, and remember it.

        Raises:
            GossipError: it does not say.
        """
        key = ask_who(dial).descriptor.key
        with writing(self._commons.engine) as connection:
            peers.note_key(connection, peer.url, key, own=self._commons.key.public.hex)
