"""The push behind every `remem share`: the own file goes to a few peers at once, so that news needs no night.

A small offer, with no reconciliation before it. What does not arrive now travels by the exchanges of the night, so
nothing here waits long, no peer is blamed, and nothing fails.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Collection, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass
from datetime import datetime
from random import Random
from typing import TYPE_CHECKING, Final

from remem.cli.added import Told
from remem.memory.home import Home
from remem.sharing.reports import ShareReport
from remem_gossip.choosing import in_turn
from remem_gossip.errors import GossipError
from remem_gossip.extra import is_installed
from remem_gossip.peers import Peer, known_peers

if TYPE_CHECKING:
    from remem_gossip.dial import Dial

COPIES: Final = 3
SECONDS: Final = 5.0
"""Behind so many no further peer is tried."""
_CONNECT_SECONDS: Final = 2.0
_ANSWER_SECONDS: Final = 5.0


@dataclass(frozen=True, slots=True)
class Pushed:
    """What a push did.

    Attributes:
        stands: the peers where the file stands now.
        asked: the peers that were asked.
    """

    stands: tuple[str, ...]
    asked: tuple[str, ...]


def after_share(
    home: Home, db: sqlite3.Connection, report: ShareReport, *, now: datetime, random: Random
) -> Told | None:
    """Push the file that was just shared; None where there is no peer that lacks it."""
    # Where it was just put it need not be pushed.
    there = {result.target for result in report.results if result.ok}
    peers = [peer for peer in known_peers(db, now) if peer.url not in there]
    if not peers or not is_installed():
        return None
    ordered = [one.url for one in in_turn([peer.standing for peer in peers], now, random)]
    if not ordered:
        return None
    pushed = push(home, {peer.url: peer for peer in peers}, ordered, report.data)
    return Told(pushed, (f"pushed: stands at {len(pushed.stands)} of {len(pushed.asked)} peers that were asked",))


def push(home: Home, peers: Mapping[str, Peer], order: Collection[str], data: bytes) -> Pushed:
    """Offer a file to a few peers.

    Args:
        home: whose key signs.
        peers: by their addresses.
        order: the addresses, in the order in which they are tried.
        data: the file.
    """
    from remem_gossip import wire
    from remem_gossip.exchange import Request
    from remem_gossip.meeting import ask
    from remem_gossip.parts import NO_ID, Whole

    request = Request(wire.OFFER, wire.write_part(Whole(NO_ID, data)), wire.VERDICTS_BYTES)
    opened = _dialling(home)
    end = time.monotonic() + SECONDS
    stands: list[str] = []
    asked: list[str] = []
    for url in order:
        if len(stands) == COPIES or time.monotonic() > end:
            break
        asked.append(url)
        with suppress(GossipError), closing(opened(peers[url])) as dial:
            answer = ask(dial, request)
            if answer.is_good and wire.read_verdicts(answer.body, 1)[0].outcome.stands:
                stands.append(url)
    return Pushed(tuple(stands), tuple(asked))


def _dialling(home: Home) -> Callable[[Peer], Dial]:
    from remem.commons.waiting import Patience
    from remem_gossip.night import dial_peer

    key, config = home.signing_key(), home.config()
    patience = Patience(connect=_CONNECT_SECONDS, read=_ANSWER_SECONDS, whole=_ANSWER_SECONDS)
    return lambda peer: dial_peer(peer, key, config.target(peer.url).token, patience)
