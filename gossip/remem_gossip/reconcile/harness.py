"""One side of a reconciliation, line by line: a test tool, to compare this implementation with others.

- `item,<seconds>,<64 hex>` adds an item, and `seal` ends the items; neither is answered.
- `initiate` makes this the side that begins, and is answered by `msg,<hex>`.
- `msg,<hex>` is a message of the other side. Who does not begin answers `msg,<hex>`. Who begins answers `have,<64 hex>`
  for each id that the other side lacks, `need,<64 hex>` for each that this side lacks, and then `msg,<hex>` or `done`.

Every line out is flushed. The variable FRAMESIZELIMIT has the frame limit; without it, or with 0, there is none.
There are no other limits, since a test may be as large as it likes.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from typing import Final

from remem.protocol.items import Item
from remem_gossip.errors import GossipError
from remem_gossip.reconcile.negentropy import Limits, Reconciler
from remem_gossip.reconcile.vector import Vector

_NO_LIMITS: Final = Limits(ranges=sys.maxsize, own=sys.maxsize)


def answers(lines: Iterable[str], frame_limit: int = 0) -> Iterator[str]:
    """Answer lines by lines, each as soon as it is due.

    Raises:
        BadFrame: a message is none.
        ValueError: a line is none of the harness, or comes where it cannot.
    """
    items: list[Item] = []
    side: Reconciler | None = None
    begins = False
    for line in lines:
        command, *fields = line.strip().split(",")
        match command, fields, side:
            case "", [], _:
                continue
            case "item", [seconds, name], None:
                items.append(Item(int(seconds), bytes.fromhex(name)))
            case "seal", [], None:
                side = Reconciler(Vector(items), frame_limit, _NO_LIMITS)
            case "initiate", [], Reconciler() if not begins:
                begins = True
                yield f"msg,{side.initiate().hex()}"
            case "msg", [message], Reconciler():
                given = bytes.fromhex(message)
                yield from _learned(side, given) if begins else [f"msg,{side.answer(given).hex()}"]
            case _:
                raise ValueError(f"expected item, seal, then initiate or msg, got {line.strip()[:80]!r}")


def _learned(side: Reconciler, message: bytes) -> Iterator[str]:
    step = side.reconcile(message)
    yield from (f"have,{one.hex()}" for one in step.have)
    yield from (f"need,{one.hex()}" for one in step.need)
    yield "done" if step.message is None else f"msg,{step.message.hex()}"


def main() -> int:
    """Answer standard input on standard output; the exit status is 1 where it cannot be answered."""
    try:
        for line in answers(sys.stdin, int(os.environ.get("FRAMESIZELIMIT") or 0)):
            sys.stdout.write(f"{line}\n")
            sys.stdout.flush()
    except (GossipError, ValueError) as error:
        sys.stderr.write(f"remem: error: {error}\n")
        return 1
    return 0
