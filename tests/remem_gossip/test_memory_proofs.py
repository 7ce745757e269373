"""Proofs that keys spoke twice, as a memory among nodes keeps them: no peer fills it with them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from random import Random

from remem.memory import holdings, places
from remem.protocol.items import proof_item
from remem_gossip.budget import Allowance, Budget
from remem_gossip.exchange import Exchange, Report
from remem_gossip.memory_node import MemoryNode, open_memory
from remem_gossip.parts import NO_ID, Outcome, Proof, Verdict, Whole
from remem_testkit.files import NOW, file, key, lesson, sentence
from remem_testkit.memories import Memory
from remem_testkit.nodes import PLENTY, MapNode, Peer, run

Make = Callable[[int], Memory]


def said(number: int, version: int = 0, *, text: int = 0, seal: int | None = None) -> bytes:
    """Make a version of a key's file."""
    return file(key(number), [lesson(sentence(text))], seal=seal, at=NOW + timedelta(seconds=version))


def own(number: int) -> str:
    return key(number).public.hex


def proof_of(number: int) -> Proof:
    first, second = (said(number, text=text, seal=77).split(b"\n", 1)[0] for text in range(2))
    return Proof(proof_item(own(number)).id, (first, second))


@contextmanager
def opened(memory: Memory) -> Iterator[MemoryNode]:
    with open_memory(memory.home, memory.db, now=memory.now, random=Random(1)) as node:
        yield node


def take(memory: Memory, *parts: bytes | Proof) -> list[Verdict]:
    """Let a memory take in files and proofs as they come from a peer."""
    with opened(memory) as node:
        whole = [part if isinstance(part, Proof) else Whole(NO_ID, part) for part in parts]
        return node.take(whole, "https://peer.example", Allowance(PLENTY))


def meet(memory: Memory, peer: MapNode, *, origins: int = 1_000) -> Report:
    """Run one exchange of a memory with a node."""
    with opened(memory) as node:
        exchange = Exchange(node, peer.name, Allowance(Budget(1 << 30, 1 << 30, origins)), Random(1), now=NOW)
        run(exchange, Peer(peer), memory.name)
        return exchange.report


def test_one_proof_of_a_key_is_kept_however_often_it_spoke_twice(make: Make) -> None:
    memory = make(1)
    for seal in range(77, 87):
        take(memory, *(said(10, text=text, seal=seal) for text in range(2)))
    (proof,) = places.equivocations(memory.db)
    assert (proof.key, proof.seal) == (own(10), 77)


def test_proofs_about_keys_without_a_file_take_a_small_part_of_the_budget(make: Make) -> None:
    memory = make(1)
    take(memory, said(10))
    size = sum(map(len, proof_of(20).seals))
    memory.home.config_path.write_text(f"budget_bytes = {16 * 3 * size + 100}\n")
    for code in ("no_room", "refused_before"):
        verdicts = take(memory, *(proof_of(number) for number in range(20, 30)))
        loose = {one.key for one in places.equivocations(memory.db)}
        assert loose == {own(20), own(21), own(22)}
        assert {verdict.code for verdict in verdicts[3:]} == {code}
    assert [one.outcome for one in take(memory, proof_of(10), proof_of(31))] == [Outcome.NEW, Outcome.DEFERRED]
    take(memory, said(20))
    (verdict,) = take(memory, proof_of(32))
    assert verdict.outcome is Outcome.NEW, "a proof about a key of which a file is held counts no more"


def test_a_proof_that_had_no_room_is_not_fetched_again_before_a_file_of_its_key_comes(make: Make) -> None:
    memory, peer = make(1), MapNode("https://peer.example")
    memory.home.config_path.write_text("budget_bytes = 100000\n")
    for number in range(100, 160):
        peer.take([proof_of(number)], "someone", Allowance(PLENTY))
    lacked = [meet(memory, peer) for _night in range(2)]
    kept = {one.key for one in places.equivocations(memory.db)}
    assert (lacked[0].promised, lacked[1].promised) == (60, 0)
    waiting = next(number for number in range(100, 160) if own(number) not in kept)
    peer.put(said(waiting))
    assert meet(memory, peer).promised == 1
    assert meet(memory, peer).promised == 1
    assert own(waiting) in {one.key for one in places.equivocations(memory.db)}


def test_proofs_that_a_peer_makes_by_the_hundred_cost_it_its_newcomers(make: Make) -> None:
    memory, peer = make(1), MapNode("https://peer.example")
    peer.put(said(10, 5))
    take(memory, said(10))
    for number in range(100, 160):
        peer.take([proof_of(number)], "someone", Allowance(PLENTY))
    report = meet(memory, peer, origins=5)
    assert len(places.equivocations(memory.db)) == 5
    assert report.waiting == 55
    assert holdings.holdings(memory.db)[own(10)].version == peer.files[own(10)].version


def test_strangers_that_spoke_twice_are_one_notice(make: Make) -> None:
    with opened(make(1)) as node:
        node.take([proof_of(number) for number in range(20, 30)], "peer", Allowance(PLENTY))
        (notice,) = node.notices
        assert (notice.code, notice.text[-4:]) == ("equivocation", ": 10")
