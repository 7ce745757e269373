"""Hostile frames against a million items on disk: what the worst of them costs a node.

    python tests/bench/bench_frames.py [--of memory|sqlite|postgres] [--items N] [--cases N] [--seed N]

The set is that of a memory, of a commons over SQLite or of one over PostgreSQL; all of them if not said. First come the
frames that are made to cost the most, of 1 MiB at most; then an honest conversation whose frames have other bytes, as
many cases as asked for. Each goes to the side that answers and to the side that begins, over a set that was just
opened. These are findings, and the run ends with 1 after any of them:

- anything but `BadFrame` is raised;
- an answer is over the frame limit;
- a frame takes more than 200 ms of the processor, PostgreSQL's processes included. One that did is given again, up to
  three times, and the least counts: what else runs on the machine makes it dearer.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.bench_items import HERE, MEMORY, Kept, Meter, Where
from bench.table import Bound, report
from remem.itemset import BLOCK_ITEMS
from remem.protocol.items import Item
from remem_gossip.reconcile import BadFrame, Reconciler, Vector
from remem_testkit.frames import hostile_frames, mutated
from remem_testkit.postgres import DATABASES, start_postgres

FRAME_MOST: Final = 1_048_576
FRAME_LIMIT: Final = 262_144
MILLISECONDS_MOST: Final = 200
ASKED_AGAIN: Final = 3
_START: Final = 1_700_000_000


@dataclass
class Worst:
    """What the frames so far have cost.

    Attributes:
        kept: the set that they go to.
        meter: counts what they cost.
        seconds: of the processor, the most for each kind.
        message: the most bytes that were answered.
        frames: how many there were.
        refused: how many of them were bad.
    """

    kept: Kept
    meter: Meter
    seconds: dict[str, float] = field(default_factory=dict)
    message: int = 0
    frames: int = 0
    refused: int = 0

    def ask(self, kind: str, frame: bytes) -> None:
        """Give a frame to both sides."""
        for is_answering, name in ((True, f"answer: {kind}"), (False, f"begin: {kind}")):
            self.frames += 1
            taken, message = self._taken(frame, is_answering)
            for _ in range(ASKED_AGAIN):
                if 1_000 * taken > MILLISECONDS_MOST:
                    taken = min(taken, self._taken(frame, is_answering)[0])
            self.seconds[name] = max(taken, self.seconds.get(name, 0))
            self.refused += message is None
            self.message = max(self.message, len(message or b""))

    def _taken(self, frame: bytes, is_answering: bool) -> tuple[float, bytes | None]:
        """Return the seconds that a side takes, and what it says; None to a bad frame."""
        started = self.meter.read()
        with self.kept.seen() as stored:
            side = Reconciler(stored, FRAME_LIMIT)
            try:
                message = side.answer(frame) if is_answering else side.reconcile(frame).message or b""
            except BadFrame:
                message = None
        return self.meter.read() - started, message


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    kinds = (MEMORY, *DATABASES)
    options.add_argument("--of", choices=kinds, action="append", help="whose set; all if not given")
    options.add_argument("--items", type=int, default=1_000_000)
    options.add_argument("--cases", type=int, default=500)
    options.add_argument("--seed", type=int, default=1)
    chosen = options.parse_args()
    held = some_items(chosen.seed, chosen.items)
    others = list(mutants(chosen.seed, held, chosen.cases))
    failed = False
    for kind in chosen.of or kinds:
        with ExitStack() as stack:
            scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True)))
            server = start_postgres(scratch / "postgres") if kind == "postgres" else None
            where = Where(scratch, kind, server, BLOCK_ITEMS)
            worst = given(where, held, others)
            try:
                show(kind, worst)
            except SystemExit:
                failed = True
    sys.exit(failed)


def given(where: Where, held: list[Item], others: list[bytes]) -> Worst:
    """Keep a set somewhere, and give it all frames."""
    where.make()
    with where.opened(HERE) as kept:
        with kept.changing() as changing:
            changing.fill(held)
        worst = Worst(kept, Meter(where))
        with kept.seen() as stored:
            made = list(hostile_frames(stored, FRAME_MOST))
        for name, frame in made:
            worst.ask(name, frame)
        for frame in others:
            worst.ask("an honest frame with other bytes", frame)
    return worst


def some_items(seed: int, count: int) -> list[Item]:
    """Make a set whose items share their seconds by threes."""
    source = random.Random(seed)
    return [Item(_START + number // 3, source.randbytes(32)) for number in range(count)]


def mutants(seed: int, held: list[Item], cases: int) -> Iterator[bytes]:
    """Mutate the frames of a conversation with a peer that holds others of these items."""
    source = random.Random(seed)
    peer = Vector(item for item in held if source.random() < 0.99)
    frames = conversation(Reconciler(Vector(held), FRAME_LIMIT), Reconciler(peer, FRAME_LIMIT))
    for _ in range(cases):
        yield mutated(source, source.choice(frames), FRAME_MOST)


def conversation(first: Reconciler, second: Reconciler) -> list[bytes]:
    """Return what two sides say, up to a few messages."""
    said = [first.initiate()]
    while len(said) < 12:
        said.append(second.answer(said[-1]))
        message = first.reconcile(said[-1]).message
        if message is None:
            break
        said.append(message)
    return said


def show(kind: str, worst: Worst) -> None:
    costly = dict(sorted(worst.seconds.items(), key=lambda one: -one[1])[:12])
    report(
        f"{kind}: {worst.frames} frames, {worst.refused} of them bad; those that cost the most",
        costly,
        [
            Bound("the worst frame", 1_000 * max(costly.values()), most=MILLISECONDS_MOST, unit="ms"),
            Bound("the largest answer", worst.message, most=FRAME_LIMIT, unit="B"),
        ],
    )


if __name__ == "__main__":
    main()
