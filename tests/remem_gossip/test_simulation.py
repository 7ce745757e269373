"""Nights among a few nodes, some of them hostile; `tests/bench/bench_nights.py` has a hundred, and more of them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace

import pytest

from remem.protocol import accept
from remem_testkit.files import NOW, file, key, lesson, revocation, sentence
from remem_testkit.simulation import Plan, Simulation
from remem_testkit.watched import Traffic, Watched

SMALL = Plan(
    honest=15, memories=5, hostile=10, listed=14, news=12, published=0.4, partition=range(2, 9), backup=(3, 9), seed=2
)
NIGHTS_MOST = 12


@dataclass(frozen=True)
class World:
    """Nights that passed until all agreed; `Watched.check` fails before that where any node goes back."""

    simulation: Simulation
    nights: int | None


@pytest.fixture(scope="module", params=[True, False], ids=["with pushes", "without pushes"])
def world(request: pytest.FixtureRequest) -> World:
    simulation = Simulation(replace(SMALL, pushes=request.param))
    return World(simulation, simulation.run(NIGHTS_MOST))


def test_all_honest_nodes_come_to_hold_one_map(world: World) -> None:
    assert world.nights is not None
    first, *others = (member.node.map() for member in world.simulation.members.values())
    assert all(other == first for other in others)
    assert any(name.startswith("proof ") for name in first), "the key that spoke twice is proven to have"


def test_the_node_that_was_put_back_speaks_again(world: World) -> None:
    member = world.simulation.members[f"node {SMALL.honest // 2}"]
    assert member.latest is not None
    assert member.node.files[member.signer.public.hex].digest == member.latest


def test_what_honest_nodes_promise_they_deliver(world: World) -> None:
    traffic = world.simulation.traffic
    assert traffic.promised > 100
    assert traffic.delivered == traffic.promised


def test_waste_is_bounded(world: World) -> None:
    traffic = world.simulation.traffic
    assert traffic.moved <= 4 * traffic.needed
    assert traffic.fetched_again <= 0.4 * traffic.fetched


def test_those_that_are_caught_in_lies_sink(world: World) -> None:
    shares = world.simulation.shares
    first, last = sum(shares[:6], Counter()), sum(shares[-6:], Counter())
    caught = ("hollow", "wrong ids", "forged lines", "endless", "garbage")
    before, behind = (sum(week[kind] for kind in caught) / week.total() for week in (first, last))
    assert behind < 0.75 * before


def test_the_same_seed_makes_the_same_nights() -> None:
    plan = replace(SMALL, honest=6, memories=2, hostile=4, news=3, partition=range(0), backup=(0, 2))
    one, other = Simulation(plan), Simulation(plan)
    assert one.run(2) == other.run(2)
    assert one.traffic == other.traffic
    assert [member.node.map() for member in one.members.values()] == [
        member.node.map() for member in other.members.values()
    ]


def test_going_back_is_noticed() -> None:
    node, text, name = Watched("node", lambda: NOW, Traffic(), seed=0), lesson(sentence(1)), key(1).public.hex
    node.put(file(key(1), [revocation(str(text["hash"]))], seal=2))
    node.check()
    node.files[name] = accept(file(key(1), [text], seal=1), now=NOW)
    with pytest.raises(AssertionError, match="went back"):
        node.check()
    node.files[name] = accept(file(key(1), [text], seal=3), now=NOW)
    with pytest.raises(AssertionError, match="forgot what"):
        node.check()
