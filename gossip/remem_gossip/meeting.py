"""Meeting peers over the network: the machines of `exchange.py` and `relay.py` here, a peer that is dialled there.

A night, a round and a push each have so many seconds (`spans.py`), and each peer a share of them. None is begun for
which no whole share is left.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Self, TypeVar

from remem.commons.waiting import Patience
from remem_gossip import wire
from remem_gossip.account import Account
from remem_gossip.dial import SMALL_ANSWER, Dial, Reply
from remem_gossip.errors import GossipError
from remem_gossip.exchange import Answer, Exchange, Report, Request
from remem_gossip.failures import TooSlow
from remem_gossip.relay import Steps
from remem_gossip.spans import Span

PUSH_SECONDS: Final = 60.0
"""How long one push may take, to all whom it goes to."""
PUSH_PATIENCE: Final = Patience(connect=3, read=10, whole=20)
"""How long it may take to one of them."""

_TRIES: Final = 3
"""How many peers are tried for each that should answer: where there is no network, none does."""
_TYPES: Final = {wire.RECONCILE: wire.OCTETS, wire.FETCH: wire.JSON, wire.OFFER: wire.LINES}

_P = TypeVar("_P")


@dataclass(frozen=True, slots=True)
class Met:
    """What became of one peer in a night or a round.

    Attributes:
        peer: its address.
        report: what the exchange did, up to its end or to where it broke.
        code: why it broke; None where it came to its end.
        detail: the same in words.
        again: before when it is not tried again.
    """

    peer: str
    report: Report
    code: str | None = None
    detail: str | None = None
    again: datetime | None = None

    @classmethod
    def of(cls, peer: str, report: Report, failure: GossipError | None, again: datetime | None) -> Self:
        """Say how an exchange ended: at its end, or where it failed."""
        if failure is None:
            return cls(peer, report)
        return cls(peer, report, failure.code, str(failure), again)


def meet_some(
    peers: Iterable[_P], meet_one: Callable[[_P, Span], Met], *, exchanges: int, time: Span, share: float
) -> Iterator[Met]:
    """Meet peers until enough took part, as long as that is worth it; one that does not is made up for by another.

    Args:
        peers: in their order.
        meet_one: has an exchange with one, which ends with its span.
        exchanges: how many should take part.
        time: what all of them have together.
        share: how many seconds of that one may take.
    """
    answered = 0
    for tried, peer in enumerate(peers):
        if answered >= exchanges or tried >= _TRIES * exchanges or not time.has_room_for(share):
            return
        met = meet_one(peer, Span(share, within=time))
        # One that takes nothing from this node leaves what it says where it was.
        answered += met.code is None and not met.report.unlisted
        yield met


def meet(exchange: Exchange, dial: Dial, account: Account) -> None:
    """Run an exchange to its end, or to that of its time; its report says what it did, also where it ends early.

    A peer whose whole time is over has not failed if it brought much by then, a file a second: it had more than there
    was time for, and the next exchange goes on.

    Args:
        exchange: what to run.
        dial: the peer.
        account: what the exchange spends, settled behind each answer.

    Raises:
        GossipError: the peer could not be asked, or answered what no peer may, or took too long for what it brought.
    """
    steps = exchange.steps()
    try:
        request = next(steps)
        while True:
            request = steps.send(ask(dial, request))
            account.settle()
    except StopIteration:
        return
    except TooSlow:
        if dial.time.left or sum(exchange.report.taken.values()) < dial.time.seconds:
            raise
    finally:
        steps.close()
        account.settle()


def deliver(push: Steps, ask_one: Callable[[str, Request], Answer | None], time: Span) -> None:
    """Let a push go to its peers, one after the other.

    Args:
        push: says whom to ask what.
        ask_one: asks one; returns None where it does not answer.
        time: what all of them have together.
    """
    try:
        url, request = next(push)
        while time.has_room_for(PUSH_PATIENCE.whole):
            url, request = push.send(ask_one(url, request))
    except StopIteration:
        return
    finally:
        push.close()


def ask(dial: Dial, request: Request) -> Answer:
    """Ask a peer one thing.

    Raises:
        PeerFailed: there is no answer, or none that a peer may give.
    """
    most = max(request.most, SMALL_ANSWER)
    reply = dial.ask("POST", request.path, request.body, _TYPES[request.path], most=most)
    return Answer(reply.status, reply.body, None if reply.status == 200 else _code_of(reply))


def _code_of(reply: Reply) -> str | None:
    """Read the stable code of a refusal, if it is one of a commons."""
    try:
        fields = json.loads(reply.body)
    except (ValueError, RecursionError):
        return None
    code = fields.get("code") if isinstance(fields, Mapping) else None
    return code if isinstance(code, str) and wire.is_code(code) else None
