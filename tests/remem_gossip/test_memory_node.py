"""A memory among nodes: whatever comes, in whatever order and however it is cut, it holds what it should."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from remem.memory import holdings, items, ledger, places, trust
from remem.memory.store import transaction
from remem_gossip import wire
from remem_gossip.answering import answer_fetch, answer_offer, answer_reconcile
from remem_gossip.budget import Allowance, Budget
from remem_gossip.exchange import Answer, Exchange, Report, Request
from remem_gossip.memory_node import MemoryNode, open_memory
from remem_gossip.night import FULL_BUDGET
from remem_gossip.parts import Head, Missing, Outcome, Verdict, Whole
from remem_gossip.taking import claim_of
from remem_testkit.files import NOW, file, key, lesson, revocation, sentence
from remem_testkit.memories import Memory
from remem_testkit.nodes import PLENTY, CutOff, MapNode, Peer, run

Make = Callable[[int], Memory]
SECOND = timedelta(seconds=1)


def said(number: int, version: int = 0, *, texts: Sequence[int] = (0,), pad: int = 0) -> bytes:
    """Make a version of a key's file."""
    contents = [lesson(sentence(text).ljust(pad, ".")) for text in texts]
    return file(key(number), contents, at=NOW + version * SECOND)


def node_of(*files: bytes, name: str = "https://peer.example") -> MapNode:
    node = MapNode(name)
    for data in files:
        node.put(data)
    return node


@contextmanager
def opened(memory: Memory) -> Iterator[MemoryNode]:
    with open_memory(memory.home, memory.db, now=memory.now, random=Random(1)) as node:
        yield node


def meet(memory: Memory, peer: MapNode, *, budget: Budget = PLENTY, cut_after: int | None = None) -> Report:
    """Run one exchange of a memory with a node."""
    with opened(memory) as node:
        exchange = Exchange(node, peer.name, Allowance(budget), Random(1), now=NOW)
        with suppress(CutOff):
            run(exchange, Peer(peer), memory.name, cut_after=cut_after)
        return exchange.report


def offer(memory: Memory, *files: bytes) -> list[Verdict]:
    """Let a memory take in files as they come from a peer."""
    with opened(memory) as node:
        parts = [Whole(claim.id, data) for data in files if (claim := claim_of(data)) is not None]
        return node.take(parts, "https://peer.example", Allowance(PLENTY))


def holds(memory: Memory) -> dict[str, str]:
    """Return the digest of what a memory holds of each key, and which keys spoke twice."""
    proofs = {f"proof {one.key}": "" for one in places.equivocations(memory.db)}
    return {name: held.version.digest for name, held in holdings.holdings(memory.db).items()} | proofs


def own(number: int) -> str:
    return key(number).public.hex


# --- one map ---


def test_two_memories_that_meet_the_same_peer_end_with_one_map(make: Make) -> None:
    one, other, peer = make(1), make(2), node_of(said(10), said(11, 3))
    one.learn(sentence(1))
    one.share(one.home.path.parent)
    other.learn(sentence(2))
    other.share(other.home.path.parent)
    for _night in range(2):
        meet(one, peer)
        meet(other, peer)
    assert holds(one) == holds(other) == peer.map()
    assert set(holds(one)) == {own(1), own(2), own(10), own(11)}
    assert sentence(2) in {text for (text,) in one.db.execute("SELECT text FROM lessons")}


class Answering:
    """A memory that is asked."""

    name = "https://memory.example"

    def __init__(self, memory: Memory) -> None:
        self.memory = memory

    def answer(self, request: Request, source: str) -> Answer:
        with opened(self.memory) as node:
            if request.path == wire.RECONCILE:
                return Answer(200, answer_reconcile(node, request.body))
            if request.path == wire.FETCH:
                return Answer(200, b"".join(answer_fetch(node, request.body)))
            return Answer(200, wire.write_verdicts(answer_offer(node, request.body, source, Allowance(PLENTY))))


def test_two_memories_that_ask_each_other_end_with_one_map(make: Make) -> None:
    one, other = make(1), make(2)
    for number, memory in enumerate((one, other)):
        memory.learn(sentence(number))
        memory.share(memory.home.path.parent)
    offer(one, *(said(number) for number in range(10, 16)), said(20, 1), said(21))
    offer(other, *(said(number) for number in range(13, 19)), said(20), said(21, 1))
    with opened(one) as node:
        exchange = Exchange(node, Answering.name, Allowance(Budget(1 << 30, 1 << 30, 2)), Random(1), now=NOW)
        run(exchange, Answering(other), one.name)
    assert exchange.report.taken == {"new": 2, "newer": 1}
    with opened(one) as node:
        run(Exchange(node, Answering.name, Allowance(PLENTY), Random(1), now=NOW), Answering(other), one.name)
    assert holds(one) == holds(other)
    assert len(holds(one)) == 13


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=15)
@given(
    st.lists(st.tuples(st.integers(10, 16), st.integers(0, 3)), max_size=10),
    st.lists(st.tuples(st.integers(10, 16), st.integers(0, 3)), max_size=10),
    st.integers(0, 6),
)
def test_an_exchange_that_is_cut_anywhere_is_ended_by_the_next(
    tmp_path_factory: pytest.TempPathFactory,
    here: list[tuple[int, int]],
    there: list[tuple[int, int]],
    cut_after: int,
) -> None:
    memory = Memory(tmp_path_factory.mktemp("cut") / "memory", 1)
    offer(memory, *(said(number, version) for number, version in here))
    peer = MapNode("https://peer.example")
    for number, version in sorted(there, key=lambda one: one[1]):
        peer.put(said(number, version))
    meet(memory, peer, cut_after=cut_after)
    assert items.check(memory.db) == []
    meet(memory, peer)
    assert holds(memory) == peer.map()
    newest: dict[int, int] = {}
    for number, version in (*here, *there):
        newest[number] = max(version, newest.get(number, 0))
    assert holds(memory) == node_of(*(said(number, version) for number, version in newest.items())).map()
    assert items.check(memory.db) == []
    memory.close()


@given(st.permutations(range(5)))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=10)
def test_the_order_in_which_versions_come_does_not_matter(
    tmp_path_factory: pytest.TempPathFactory, order: list[int]
) -> None:
    memory = Memory(tmp_path_factory.mktemp("order") / "memory", 1)
    verdicts = offer(memory, *(said(10, version, texts=range(version + 1)) for version in order))
    assert holds(memory) == node_of(said(10, 4, texts=range(5))).map()
    highest = -1
    for version, verdict in zip(order, verdicts, strict=True):
        expected = Outcome.NEW if highest < 0 else Outcome.NEWER if version > highest else Outcome.OLDER
        assert verdict.outcome is expected
        highest = max(highest, version)
    memory.close()


def test_a_lesson_that_was_taken_back_does_not_return_with_an_old_file(make: Make) -> None:
    memory = make(1)
    lesson_of = lesson(sentence(0))
    first = file(key(10), [lesson_of], at=NOW)
    then = file(key(10), [revocation(str(lesson_of["hash"]))], at=NOW + SECOND)
    offer(memory, first)
    assert memory.lesson_state(str(lesson_of["hash"])) == "received active"
    offer(memory, then)
    assert memory.lesson_state(str(lesson_of["hash"])) == "received dropped"
    peer = node_of(first)
    report = meet(memory, peer)
    assert (report.promised, report.skipped) == (0, 1)
    assert memory.lesson_state(str(lesson_of["hash"])) == "received dropped"
    assert peer.map() == holds(memory)


# --- what is taken in, and what is not ---


def test_a_version_that_was_refused_is_not_fetched_again(make: Make) -> None:
    memory = make(1)
    good = said(10)
    broken = good.replace(b'"text":"the', b'"text":"The', 1)
    (verdict,) = offer(memory, broken)
    assert (verdict.outcome, verdict.code) == (Outcome.REFUSED, "signature_invalid")
    claim = claim_of(broken)
    assert claim is not None
    assert ledger.settled(memory.db, [claim.id]) == {claim.id: "signature_invalid"}
    (again,) = offer(memory, broken)
    assert again.code == "refused_before"
    (then,) = offer(memory, good)
    assert then.outcome is Outcome.NEW


def test_a_file_from_a_day_that_has_not_come_is_neither_stored_nor_remembered(make: Make) -> None:
    memory = make(1)
    ahead = file(key(10), [lesson(sentence(0))], at=NOW + timedelta(days=3))
    (verdict,) = offer(memory, ahead)
    assert verdict.outcome is Outcome.DEFERRED
    assert holds(memory) == {}
    memory.later(days=3)
    (verdict,) = offer(memory, ahead)
    assert verdict.outcome is Outcome.NEW


def test_two_files_of_one_number_are_a_proof_that_travels_on(make: Make) -> None:
    memory = make(1)
    first, second = (file(key(10), [lesson(sentence(number))], seal=77, at=NOW) for number in range(2))
    offer(memory, first, second)
    assert f"proof {own(10)}" in holds(memory)
    peer = node_of(said(12))
    meet(memory, peer)
    assert peer.map() == holds(memory)
    third = make(2)
    meet(third, peer)
    assert holds(third) == peer.map()
    with opened(third) as node:
        assert node.has_proof(own(10))
        assert not node.has_proof(own(12))


def test_a_proof_that_comes_by_itself_is_told(make: Make) -> None:
    memory, peer = make(1), node_of()
    first, second = (file(key(10), [lesson(sentence(number))], seal=77, at=NOW) for number in range(2))
    meet_with(peer, first, second)
    with opened(memory) as node:
        exchange = Exchange(node, peer.name, Allowance(PLENTY), Random(1), now=NOW)
        run(exchange, Peer(peer), memory.name)
        assert [notice.code for notice in node.notices] == ["equivocation"]


def meet_with(peer: MapNode, *files: bytes) -> None:
    parts = [Whole(claim.id, data) for data in files if (claim := claim_of(data)) is not None]
    peer.take(parts, "someone", Allowance(PLENTY))


# --- scope and budget ---


def test_the_budget_of_bytes_holds_whatever_peers_bring(make: Make) -> None:
    memory = make(1)
    size = len(said(10, pad=900))
    memory.home.config_path.write_text(f"budget_bytes = {3 * size + 10}\n")
    peer = node_of(*(said(number, pad=900) for number in range(10, 30)))
    report = meet(memory, peer)
    held = holdings.holdings(memory.db)
    assert len(held) == 3
    assert sum(one.size for one in held.values()) <= 3 * size + 10
    assert report.waiting == 17
    # What is held is kept up to date all the same, and a trusted key has room.
    name = min(held)
    number = next(number for number in range(10, 30) if own(number) == name)
    offer(memory, said(number, 5, pad=900))
    with transaction(memory.db):
        trust.add(memory.db, own(40), "follow", NOW)
    (verdict,) = offer(memory, said(40))
    assert verdict.outcome is Outcome.NEW


def test_a_full_memory_fetches_no_newcomer_for_nothing(make: Make) -> None:
    memory = make(1)
    size = len(said(10, pad=900))
    memory.home.config_path.write_text(f"budget_bytes = {3 * size + 10}\n")
    peer = node_of(*(said(number, pad=900) for number in range(10, 90)))
    meet(memory, peer, budget=FULL_BUDGET)
    assert len(holds(memory)) == 3
    number = next(number for number in range(10, 90) if own(number) in holds(memory))
    peer.put(said(number, 7, pad=900))
    with opened(memory) as node:
        assert node.is_full
    report = meet(memory, peer, budget=FULL_BUDGET)
    assert (report.promised, report.taken, report.lacked) == (1, {"newer": 1}, 78)
    assert report.received < 78 * 500


def test_an_admitted_newcomer_takes_the_room_of_one_that_does_not_count(make: Make) -> None:
    memory = make(1)
    size = len(said(10, pad=900))
    memory.home.config_path.write_text(f"budget_bytes = {2 * size + 10}\n")
    offer(memory, said(10, pad=900), said(11, pad=900))
    with transaction(memory.db):
        places.admit(memory.db, "https://commons.example", {own(12): "somebody"}, whole=True)
    (verdict,) = offer(memory, said(12, pad=900))
    assert verdict.outcome is Outcome.NEW
    assert set(holds(memory)) == {own(11), own(12)}
    (verdict,) = offer(memory, said(13, pad=900))
    assert (verdict.outcome, verdict.code) == (Outcome.DEFERRED, "no_room")


def test_trusted_keys_are_wanted_first_then_updates_then_admitted_newcomers_then_others(make: Make) -> None:
    memory = make(1)
    offer(memory, said(10))
    with transaction(memory.db):
        trust.add(memory.db, own(11), "follow", NOW)
        trust.add(memory.db, own(12), "revoker", NOW)
        places.admit(memory.db, "https://commons.example", {own(13): "somebody"}, whole=True)
    seal = int(NOW.timestamp()) + 9
    heads = [Head(bytes([number]) * 32, own(number), seal, 100) for number in (1, 10, 11, 12, 13, 14, 15)]
    with opened(memory) as node:
        wanted = [one[0] for one in node.wanted(heads, 2)]
        assert wanted[:5] == [1, 12, 11, 10, 13]
        assert len(wanted) == 6
        assert [one[0] for one in node.wanted(heads, 0)] == [1, 12, 11, 10]
        stale = [Head(bytes([10]) * 32, own(10), 1, 100)]
        assert node.wanted(stale, 2) == []


def test_updates_come_in_through_a_flood_of_keys(make: Make) -> None:
    memory = make(1)
    offer(memory, said(10))
    peer = node_of(said(10, 5), *(said(number) for number in range(100, 160)))
    report = meet(memory, peer, budget=Budget(bytes=1 << 30, checks=1 << 30, origins=10))
    assert holds(memory)[own(10)] == peer.map()[own(10)]
    assert report.taken == {"new": 10, "newer": 1}


# --- the own file ---


def test_a_file_of_the_own_key_that_was_made_elsewhere_is_a_notice_and_stays_out(make: Make) -> None:
    memory = make(1)
    memory.learn(sentence(1))
    memory.share(memory.home.path.parent)
    before = holds(memory)
    peer = node_of(said(1, 500))
    for _night in range(2):
        with opened(memory) as node:
            run(Exchange(node, peer.name, Allowance(PLENTY), Random(1), now=NOW), Peer(peer), memory.name)
            (notice,) = node.notices
        assert notice.code == "foreign_seal"
        assert "https://peer.example --adopt" in notice.text
    assert holds(memory) == before


def test_no_notice_is_made_of_what_this_memory_made_itself(make: Make) -> None:
    memory = make(1)
    memory.learn(sentence(1))
    memory.share(memory.home.path.parent)
    (old,) = memory.held_files().values()
    memory.later(hours=1)
    memory.learn(sentence(2))
    memory.share(memory.home.path.parent)
    peer = node_of(old)
    with opened(memory) as node:
        run(Exchange(node, peer.name, Allowance(PLENTY), Random(1), now=NOW), Peer(peer), memory.name)
        assert node.notices == ()
    assert peer.map() == holds(memory)


# --- what is lost ---


def test_lost_bytes_come_back_from_a_peer(make: Make) -> None:
    memory, peer = make(1), node_of(said(10), said(11))
    meet(memory, peer)
    path = memory.home.commons_path / f"{own(10)}.jsonl"
    path.unlink()
    claim = claim_of(said(10))
    assert claim is not None
    with opened(memory) as node:
        assert list(node.parts([claim.id])) == [Missing(claim.id)]
    assert items.check(memory.db) == []
    meet(memory, peer)
    assert path.read_bytes() == said(10)
    assert items.check(memory.db) == []
    assert meet(memory, peer).promised == 0


def test_bytes_that_are_there_again_are_an_item_again_when_the_memory_is_opened(make: Make) -> None:
    memory, peer = make(1), node_of(said(10))
    meet(memory, peer)
    path = memory.home.commons_path / f"{own(10)}.jsonl"
    path.unlink()
    with opened(memory):
        pass
    path.write_bytes(said(10))
    memory.close()
    memory.open(memory.home.path)
    assert meet(memory, peer).promised == 0
    assert len(list(items.itemset(memory.db))) == 1
