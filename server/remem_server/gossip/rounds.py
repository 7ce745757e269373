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

from remem.commons.base import read_descriptor
from remem.errors import Unreachable
from remem_gossip.choosing import EXCHANGES_A_NIGHT, in_turn
from remem_gossip.dial import SMALL_ANSWER, Dial
from remem_gossip.errors import GossipError
from remem_gossip.exchange import Exchange
from remem_gossip.failures import NoAnswer
from remem_gossip.meeting import Met, meet
from remem_server.database.engine import is_postgres, writing
from remem_server.files import ledger
from remem_server.gossip import peers, spending
from remem_server.gossip.node import ServerNode
from remem_server.gossip.peers import Peer
from remem_server.opening.context import Commons
from remem_server.opening.description import DESCRIPTOR_PATH
from remem_server.opening.migrate import GOSSIP_LOCK_NAME

# Any number will do, as long as nothing else in the database takes it.
_LOCK: Final = 0x72656D656D + 2

Dialling: TypeAlias = Callable[[Commons, Peer], Dial]


def dial_peer(commons: Commons, peer: Peer) -> Dial:
    """Open the way to a peer over the network."""
    return Dial(peer.address, commons.key, commons.clock, allowed=peer.allowed)


def ask_key(dial: Dial) -> str:
    """Ask a peer which key it signs with.

    Raises:
        GossipError: it does not say.
    """
    reply = dial.ask("GET", DESCRIPTOR_PATH, most=SMALL_ANSWER)
    if reply.status != 200:
        raise NoAnswer("a description", f"status {reply.status}")
    try:
        return read_descriptor(reply.body).key
    except Unreachable as error:
        raise NoAnswer("a description", error.message) from error


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
    dialling: Dialling = dial_peer,
    told: Callable[[Met], None] | None = None,
) -> list[Met]:
    """Have exchanges with some peers.

    Args:
        commons: whose peers.
        random: chooses whom to ask.
        only: whom to ask, whether or not they are to rest; some at random otherwise.
        exchanges: with how many; one that does not answer is made up for by another.
        dialling: opens the way to a peer.
        told: told of each exchange once it is over.
    """
    now = commons.clock()
    with writing(commons.engine) as connection:
        spending.forget_old(connection, now)
        ledger.forget_old(connection, now)
        known = {peer.url: peer for peer in peers.list_all(connection)}
    ready = list(only) if only is not None else []
    if only is None:
        ready += [known[one.url] for one in in_turn([peer.standing for peer in known.values()], now, random)]
    else:
        exchanges = len(ready)
    met: list[Met] = []
    for peer in ready:
        # One that takes nothing from this commons leaves what it says where it was.
        if sum(one.code is None and not one.report.unlisted for one in met) >= exchanges:
            break
        met.append(_meet(commons, peer, random, dialling))
        if told is not None:
            told(met[-1])
    return met


def _meet(commons: Commons, peer: Peer, random: Random, dialling: Dialling) -> Met:
    """Have an exchange with one peer, and note how it behaved."""
    now = commons.clock()
    with writing(commons.engine) as connection:
        peers.note_tried(connection, peer.url, now)
        allowance = spending.allowance(connection, peer.url, spending.budget_of_peer(commons.settings), now)
    before, failure = allowance.spent, None
    exchange = Exchange(ServerNode(commons, random), peer.url, allowance, random)
    try:
        with closing(dialling(commons, peer)) as dial:
            if peer.key is None:
                learn_key(commons, peer, dial)
            meet(exchange, dial)
    except GossipError as error:
        failure = error
    report, again = exchange.report, None
    with writing(commons.engine) as connection:
        spending.note(connection, peer.url, before, allowance.spent, now)
        if failure is None:
            kept = {"promised": report.promised, "delivered": report.delivered}
            peers.note_answered(connection, peer.url, **kept, now=commons.clock())
        else:
            again = peers.note_failed(connection, peer.url, commons.clock())
    if failure is None:
        return Met(peer.url, report)
    return Met(peer.url, report, failure.code, str(failure), again)


def learn_key(commons: Commons, peer: Peer, dial: Dial) -> str:
    """Ask a peer for its key, and remember it.

    Raises:
        GossipError: it does not say.
    """
    key = ask_key(dial)
    if key != peer.key:
        with writing(commons.engine) as connection:
            peers.note_key(connection, peer.url, key)
    return key
