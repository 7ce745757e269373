"""An exchange over the network: the machine of `exchange.py` on one side, a peer that is dialled on the other."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from remem_gossip import wire
from remem_gossip.dial import SMALL_ANSWER, Dial, Reply
from remem_gossip.exchange import Answer, Exchange, Report, Request
from remem_gossip.failures import TooSlow

OCTETS: Final = "application/octet-stream"
LINES: Final = "application/x-ndjson"
JSON: Final = "application/json"

EXCHANGE_SECONDS: Final = 600.0
"""How long one peer may keep a night: each answer may come slowly, but not all of them."""

_TYPES: Final = {wire.RECONCILE: OCTETS, wire.FETCH: JSON, wire.OFFER: LINES}


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


def meet(exchange: Exchange, dial: Dial, seconds: float = EXCHANGE_SECONDS) -> None:
    """Run an exchange to its end; its report says what it did, also where it ends early.

    Args:
        exchange: what to run.
        dial: the peer.
        seconds: behind so many no further question is asked.

    Raises:
        GossipError: the peer could not be asked, or answered what no peer may, or took too long.
    """
    end = time.monotonic() + seconds
    steps = exchange.steps()
    try:
        request = next(steps)
        while True:
            if time.monotonic() > end:
                raise TooSlow(f"an exchange of at most {seconds:g} seconds", "a longer one")
            request = steps.send(ask(dial, request))
    except StopIteration:
        return
    finally:
        steps.close()


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
