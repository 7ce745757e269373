"""A flood of free keys, as `tests/bench/bench_flood.py` has by the ten thousand."""

from __future__ import annotations

from datetime import timedelta

import pytest

from remem_gossip.budget import Allowance, Budget
from remem_testkit.files import NOW, file, key, lesson, sentence
from remem_testkit.hostile import free_files
from remem_testkit.nodes import MapNode, Peer, meet

BUDGET = Budget(bytes=1 << 20, checks=2_000, origins=50)


def said(number: int, version: int) -> bytes:
    return file(key(number), [lesson(sentence(version))], at=NOW + version * timedelta(minutes=1))


def node_with(version: int, *others: bytes, room: int = 1 << 40) -> MapNode:
    node = MapNode(room=room)
    for number in range(20):
        node.put(said(number, version))
    for data in others:
        node.put(data)
    return node


@pytest.fixture(scope="module")
def flood() -> list[bytes]:
    return list(free_files(0, 400, NOW))


@pytest.mark.parametrize("room", [40_000, 1 << 40], ids=["a memory", "a commons"])
def test_updates_come_through_a_flood_the_same_night(flood: list[bytes], room: int) -> None:
    node, honest = node_with(0, room=room), node_with(1, *flood)
    peer = Peer(node, BUDGET)
    meet(node_with(0, *flood), peer)
    assert len(node.files) <= 20 + BUDGET.origins
    meet(node, Peer(honest), Allowance(BUDGET))
    assert len(node.files) <= 20 + 2 * BUDGET.origins
    assert node.size <= max(room, 0)
    assert all(node.files[key(number).public.hex].data == said(number, 1) for number in range(20))


def test_strangers_share_one_budget(flood: list[bytes]) -> None:
    node = MapNode()
    peer = Peer(node, BUDGET, Budget(bytes=1 << 20, checks=2_000, origins=10), listed={"listed"})
    for number in range(5):
        hostile = MapNode(f"stranger {number}")
        for data in flood[20 * number : 20 * number + 20]:
            hostile.put(data)
        meet(hostile, peer)
    assert len(node.files) == 10


def test_a_proof_comes_through_a_flood(flood: list[bytes]) -> None:
    one, other = sorted(file(key(0), [lesson(sentence(text))], seal=7) for text in (1, 2))
    node, honest = MapNode(), MapNode()
    for data in (other, *flood):
        honest.put(data)
    meet(_holding(one), Peer(honest))
    node.put(other)
    meet(node, Peer(honest), Allowance(BUDGET))
    assert key(0).public.hex in node.proofs


def test_a_flood_is_offered_a_little_at_first(flood: list[bytes]) -> None:
    report = meet(node_with(0, *flood), Peer(node_with(0), BUDGET))
    assert report.stand_there == BUDGET.origins
    assert report.offered <= 3 * BUDGET.origins


def _holding(data: bytes) -> MapNode:
    node = MapNode()
    node.put(data)
    return node
