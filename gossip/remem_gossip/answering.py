"""The side of an exchange that is asked: one function for each route (PROTOCOL.md, section 16).

It keeps nothing between two requests. What it may be made to compute is bounded by the reconciliation's own limits and
by the caps of `wire.py`; what it may be made to store, by the allowance of whoever offers.
"""

from __future__ import annotations

from collections.abc import Iterator

from remem_gossip import wire
from remem_gossip.budget import Allowance
from remem_gossip.node import Node
from remem_gossip.parts import Verdict
from remem_gossip.reconcile import Reconciler


def answer_reconcile(node: Node, message: bytes) -> bytes:
    """Answer a message of reconciliation.

    Raises:
        BadFrame: it is none.
    """
    with node.items() as storage:
        return Reconciler(storage, wire.FRAME_BYTES).answer(message)


def answer_fetch(node: Node, body: bytes) -> Iterator[bytes]:
    """Answer what is asked for, piece by piece, as far as the cap of an answer goes.

    Raises:
        BadBody: the question has another form; before the first piece.
    """
    asked = wire.read_fetch(body)
    return _heads(node, asked.ids) if asked.heads else _parts(node, asked.ids)


def answer_offer(node: Node, body: bytes, source: str, allowance: Allowance) -> list[Verdict]:
    """Take in what is offered.

    Args:
        node: this side.
        body: the offer.
        source: who offers.
        allowance: what that may still cost tonight.

    Raises:
        BadBody: it has another form; nothing of it was taken then.
    """
    verdicts: list[Verdict] = []
    try:
        verdicts = node.take(wire.read_offer(body), source, allowance)
    finally:
        # What has another form came all the same. Charged behind what it brought, which may have been the last.
        allowance.charge(size=len(body))
    return verdicts


def _parts(node: Node, ids: tuple[bytes, ...]) -> Iterator[bytes]:
    left = wire.FETCH_BYTES
    for part in node.parts(ids):
        piece = wire.write_part(part)
        left -= len(piece)
        if left < 0:
            return
        yield piece


def _heads(node: Node, ids: tuple[bytes, ...]) -> Iterator[bytes]:
    return map(wire.write_head, node.heads(ids))
