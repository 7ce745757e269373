"""What a hostile peer can make a node store and verify in a night, and whether honest news arrive all the same.

    python tests/bench/bench_flood.py [--keys N]

Keys are free, so the flood is of good files of keys that nobody knows. A memory and a commons meet it, each with
its own budget. That night each is offered all of the flood, asks the hostile peer itself, and then asks an honest peer
that swallowed the flood, and has the updates of keys that the node follows among it. Behind that, one peer tries every
other way to cost a node much, each within a part of the budget, and the ceiling is what these come to for all of it.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import count, islice
from pathlib import Path
from typing import Final, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.table import Bound, report
from remem.protocol.canonical import JSON
from remem.protocol.times import unix_seconds
from remem_gossip import wire
from remem_gossip.budget import Allowance, Budget
from remem_gossip.exchange import Exchange, Request
from remem_gossip.night import MEMORY_BUDGET
from remem_gossip.parts import NO_ID, Proof, Verdict, Whole
from remem_testkit.files import NOW, confirmation, file, full_file, key, lesson, resealed, sentence
from remem_testkit.hostile import free_files
from remem_testkit.nodes import MapNode, Peer, run

COMMONS_BUDGET: Final = Budget(bytes=1 << 30, checks=2_000_000, origins=20_000)
FOLLOWED: Final = 100
PART: Final = 64
"""The costly ways are tried within this part of a memory's budget."""
_SPENT: Final = "a 64th of a memory's budget, spent on"


class Weighed(MapNode):
    """A node that counts the processor's time that it spends on what comes.

    Attributes:
        seconds: of the processor, for taking in.
    """

    seconds: float = 0.0

    def take(self, parts: Sequence[Whole | Proof], source: str, allowance: Allowance) -> list[Verdict]:
        started = time.process_time()
        try:
            return super().take(parts, source, allowance)
        finally:
            self.seconds += time.process_time() - started


@dataclass(frozen=True, slots=True)
class Night:
    """What a night under a flood came to.

    Attributes:
        updated: how many of the followed keys' updates arrived.
        stored: bytes of the flood that are stored.
        newcomers: how many keys of the flood are.
        spent: what the hostile peer cost.
        seconds: of the processor, to take all in.
    """

    updated: int
    stored: int
    newcomers: int
    spent: Budget
    seconds: float


class Cost(NamedTuple):
    """What was moved, what it left behind, and how much work it was."""

    moved: int
    stored: int
    ledger: int
    checks: int
    seconds: float


def flooded(node: Weighed, flood: Sequence[bytes], budget: Budget) -> Night:
    """Let a node have its night under a flood."""
    for number in range(FOLLOWED):
        node.put(said(number, 0))
    before = node.size
    hostile, honest = MapNode("hostile"), MapNode("honest")
    for data in flood:
        hostile.put(data)
        honest.put(data)
    for number in range(FOLLOWED):
        honest.put(said(number, 1))
    peer = Peer(node, budget)
    run(Exchange(hostile, node.name, Allowance(COMMONS_BUDGET), hostile.random, now=NOW), peer, "hostile")
    run(Exchange(node, "hostile", peer.allowance("hostile"), node.random, now=NOW), Peer(hostile, budget), node.name)
    spent, newcomers, stored = peer.allowance("hostile").spent, len(node.files) - FOLLOWED, node.size - before
    run(Exchange(node, "honest", peer.allowance("honest"), node.random, now=NOW), Peer(honest, budget), node.name)
    updated = sum(node.files[key(number).public.hex].data == said(number, 1) for number in range(FOLLOWED))
    return Night(updated, stored, newcomers, spent, node.seconds)


def said(number: int, version: int) -> bytes:
    """Make a version of a followed key's file."""
    return file(key(number), [lesson(sentence(number))], at=NOW + version * timedelta(minutes=1))


def costly_ways() -> Iterator[tuple[str, Iterator[bytes]]]:
    """Make the offers of a peer that wants to cost much, each kind without end."""
    yield "small files", _offers(map(_small, count()))
    yield "full files", _offers(full_file(key(2_000_000 + number)) for number in count())
    yield "full files, the last line forged", _offers(map(_broken, count()))
    yield "long lines that only the strict reader knows", _offers(map(_hard, count()))
    yield "older versions that never were", _offers(map(_never, count()), wire.OFFER_PARTS)
    yield "proofs about free keys", map(_proof, count())


def ceiling(offers: Iterator[bytes], budget: Budget) -> Cost:
    """Offer until nothing more is taken, and return what it came to."""
    node = Weighed("node")
    node.put(said(0, 1))
    before = node.size
    peer, moved = Peer(node, budget), 0
    while peer.allowance("hostile").is_open:
        body = next(offers)
        moved += len(body)
        peer.answer(Request(wire.OFFER, body, wire.VERDICTS_BYTES), "hostile")
    proofs = sum(len(line) for pair in node.proofs.values() for line in pair)
    checks = peer.allowance("hostile").spent.checks
    return Cost(moved, node.size - before + proofs, len(node.ledger), checks, node.seconds)


def main() -> None:
    """Flood both, and print what it came to."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--keys", type=int, default=30_000)
    chosen = options.parse_args()
    flood = list(free_files(0, chosen.keys, NOW))
    bounds: list[Bound] = []
    for name, budget, room in (("memory", MEMORY_BUDGET, 200 << 20), ("commons", COMMONS_BUDGET, 1 << 40)):
        night = flooded(Weighed(name, room=room), flood, budget)
        print(
            f"a {name} under {len(flood):,} free keys: {night.newcomers:,} stored in {night.stored / 1e6:.1f} MB, "
            f"{night.spent.checks:,} checks, {night.spent.bytes / 1e6:.1f} MB moved, {night.seconds:.1f} s of CPU"
        )
        bounds += [
            Bound(f"updates at a {name} the same night", 100 * night.updated / FOLLOWED, least=100, unit="%"),
            Bound(f"newcomers at a {name}", night.newcomers, most=budget.origins, unit="n"),
            Bound(f"bytes stored at a {name}", night.stored, most=budget.bytes, unit="B"),
        ]
    bounds += costs()
    report("one hostile peer, one night", {}, bounds)


def costs() -> list[Bound]:
    """Try the costly ways, print what each comes to, and what that makes of the whole budgets."""
    whole = MEMORY_BUDGET
    part = Budget(whole.bytes // PART, whole.checks // PART, whole.origins // PART)
    print(f"{_SPENT:<48} {'moved':>9} {'stored':>9} {'ledger':>7} {'checks':>7} {'CPU':>8}")
    bounds, worst = [], 0.0
    for name, offers in costly_ways():
        cost = ceiling(offers, part)
        moved, stored, ledger, checks, seconds = cost
        print(f"  {name:<46} {moved:>9,} {stored:>9,} {ledger:>7,} {checks:>7,} {seconds:>6.2f} s")
        worst = max(worst, cost.seconds * min(part.bytes / cost.moved, 1))
        # The offer that goes beyond is the last, and it may be a whole one.
        bounds.append(Bound(f"moved: {name}", cost.moved, most=part.bytes + wire.OFFER_BYTES, unit="B"))
        bounds.append(Bound(f"ledger: {name}", cost.ledger, most=part.checks, unit="n"))
    commons = worst * PART * COMMONS_BUDGET.bytes / whole.bytes
    print("the ceiling of one hostile peer and night, whatever it sends:")
    print(f"  a memory stores {whole.bytes >> 20:,} MiB of it and works on it for {worst * PART:,.0f} s of CPU")
    print(f"  a commons stores {COMMONS_BUDGET.bytes >> 20:,} MiB of it and works on it for {commons:,.0f} s of CPU")
    return [*bounds, Bound("CPU for the whole budget of a memory", worst * PART, most=120, unit="s")]


def _offers(files: Iterator[bytes], parts: int = 16) -> Iterator[bytes]:
    while True:
        yield b"".join(wire.write_part(Whole(NO_ID, data)) for data in islice(files, parts))


def _small(number: int) -> bytes:
    return next(free_files(number, 1, NOW))


def _broken(number: int) -> bytes:
    """Seal 505 lines of which the last has another's signature."""
    signer = key(4_000_000 + number)
    *lines, last, other = full_file(signer).split(b"\n")[1:-1]
    signature, wrong = (line.split(b'"sig":"')[1][:128] for line in (last, other))
    return resealed(signer, [*lines, last.replace(signature, wrong)])


def _hard(number: int) -> bytes:
    """Make lines of an unknown type, of which each takes the strict reader as long as may be."""
    ones: list[JSON] = [[1] * 3_500]
    return file(key(5_000_000 + number), [{"other": ones, "number": line} for line in range(31)])


def _never(number: int) -> bytes:
    return b'{"key":"%s","number":%d,"seal":1}\n' % (key(0).public.hex.encode(), number)


def _proof(number: int) -> bytes:
    signer, seal = key(3_000_000 + number), unix_seconds(NOW)
    said_twice = (file(signer, [confirmation(f"{one:032x}")], seal=seal) for one in (1, 2))
    first, second = (data.split(b"\n", 1)[0] for data in said_twice)
    return wire.write_part(Proof(NO_ID, (first, second)))


if __name__ == "__main__":
    main()
