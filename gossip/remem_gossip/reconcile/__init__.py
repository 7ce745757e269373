"""Reconciliation: how two nodes find what each lacks of the other's items, in few and small messages.

Negentropy, version 1, byte for byte as its reference implementations send it (PROTOCOL.md, section 16). Pure: a store
is given as a `Storage`, messages go in and out as bytes, and a message that is none raises `BadFrame` and nothing else.
`python -m remem_gossip.reconcile` is one side of it on standard input and output, to compare with other programs.
"""

from remem_gossip.reconcile.encoding import BadFrame
from remem_gossip.reconcile.negentropy import LIMITS, Limits, Reconciler, Step
from remem_gossip.reconcile.passes import REACH, Differences, Endless, Passes, Reach
from remem_gossip.reconcile.storage import Storage
from remem_gossip.reconcile.vector import Vector

__all__ = [
    "LIMITS",
    "REACH",
    "BadFrame",
    "Differences",
    "Endless",
    "Limits",
    "Passes",
    "Reach",
    "Reconciler",
    "Step",
    "Storage",
    "Vector",
]
