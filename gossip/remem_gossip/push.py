"""The push behind every `remem share`: the own file goes to a few peers at once, so that news needs no night.

A small offer, with no reconciliation before it. What does not arrive now travels by the exchanges of the night, so
nothing here waits long, no peer is blamed, and nothing fails. Where the file has no target, this is all that it has,
and what becomes of it is told in any case.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from random import Random
from typing import TYPE_CHECKING, Final

from remem.cli.added import Told
from remem.cli.output import count
from remem.commons.waiting import Patience
from remem.memory import places
from remem.memory.home import Home
from remem.sharing.reports import ShareReport
from remem_gossip.choosing import in_turn
from remem_gossip.errors import GossipError
from remem_gossip.extra import is_installed
from remem_gossip.peers import Peer, known_peers
from remem_gossip.spans import Span

if TYPE_CHECKING:
    from remem_gossip.dial import Dial
    from remem_gossip.exchange import Answer

COPIES: Final = 3
SECONDS: Final = 10.0
"""How long it may take: whoever shared waits for its end."""
PATIENCE: Final = Patience(connect=2, read=3, whole=3)
"""How long it may take to one peer."""

_ASKED: Final = ("peer that was asked", "peers that were asked")
_NOT_A_PEER: Final = "not_a_peer"
_UNLISTED: Final = ("takes files from its own peers alone", "take files from their own peers alone")
_LATER: Final = "it goes to peers with a later remem sleep or remem gossip"


@dataclass(frozen=True, slots=True)
class Pushed:
    """What a push did.

    Attributes:
        stands: the peers where the file stands now.
        asked: the peers that were asked.
        why: of those where it does not stand, the code of what they answered, or of why there was no answer.
    """

    stands: tuple[str, ...]
    asked: tuple[str, ...]
    why: Mapping[str, str]

    @property
    def words(self) -> str:
        """The same in a line."""
        words = [f"pushed: stands at {len(self.stands)} of {count(len(self.asked), *_ASKED)}"]
        for code, number in sorted(Counter(self.why.values()).items()):
            not_listed = code == _NOT_A_PEER
            words.append(count(number, *_UNLISTED) if not_listed else f"{number} did not take it: {code}")
        return "; ".join(words)


def after_share(
    home: Home, db: sqlite3.Connection, report: ShareReport, *, now: datetime, random: Random
) -> Told | None:
    """Push the file that was just shared; None where no peer lacks it, and where it lies at private places alone."""
    # Where it was just put it need not be pushed.
    there, own = {result.target for result in report.results if result.ok}, home.signing_key().public.hex
    peers = [peer for peer in known_peers(db, now) if peer.url not in there and peer.key != own]
    if not peers or places.OWN in places.private_sources(db):
        return None
    # Where it has no target, whoever shared it has to know what becomes of it.
    later = None if report.results else _LATER
    if not is_installed():
        return None if later is None else Told(None, warnings=(f"{later}: pip install 'remem[gossip]'",))
    ordered = [one.url for one in in_turn([peer.standing for peer in peers], now, random)]
    if not ordered:
        return None if later is None else Told(None, (f"no peer may be asked now: {later}",))
    pushed = push(home, {peer.url: peer for peer in peers}, ordered, report.data)
    return Told(pushed, (pushed.words,))


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
    time = Span(SECONDS)
    opened = _dialling(home, time)
    stands: list[str] = []
    why: dict[str, str] = {}
    for url in order:
        if len(stands) == COPIES or not time.has_room_for(PATIENCE.whole):
            break
        try:
            with closing(opened(peers[url])) as dial:
                code = _refusal(ask(dial, request))
        except GossipError as error:
            code = error.code
        if code is None:
            stands.append(url)
        else:
            why[url] = code
    return Pushed(tuple(stands), tuple(url for url in order if url in why or url in stands), why)


def _refusal(answer: Answer) -> str | None:
    """Return the code of why the file does not stand; None where it does."""
    from remem_gossip import wire

    if not answer.is_good:
        return answer.code or f"http_{answer.status}"
    verdict = wire.read_verdicts(answer.body, 1)[0]
    return None if verdict.outcome.stands else verdict.code or verdict.outcome.value


def _dialling(home: Home, time: Span) -> Callable[[Peer], Dial]:
    from remem_gossip.night import dial_peer

    key, config = home.signing_key(), home.config()
    return lambda peer: dial_peer(peer, key, config.target(peer.url).token, time, PATIENCE)
