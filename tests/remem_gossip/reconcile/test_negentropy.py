"""Reconciliation of any two sets, over any storage, within any frame limit."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remem.protocol.items import INFINITY, Item
from remem_gossip.reconcile import BadFrame, Limits, Reconciler, Vector
from remem_gossip.reconcile.negentropy import FRAME_LEAST

from .worlds_of_items import Arithmetic, items_by_seed, talk

WORLDS = st.builds(
    items_by_seed,
    seed=st.integers(0, 2**32),
    both=st.integers(0, 600),
    first=st.integers(0, 80),
    second=st.integers(0, 80),
    seconds=st.sampled_from([1, 3, 1_000, 10**9]),
)
FRAME_LIMITS = st.sampled_from([0, FRAME_LEAST, FRAME_LEAST + 1, 5_000, 262_144])


@given(WORLDS, FRAME_LIMITS, FRAME_LIMITS)
def test_the_side_that_begins_learns_what_each_lacks(
    world: tuple[list[Item], list[Item]], first_limit: int, second_limit: int
) -> None:
    first, second = world
    talked = talk(Reconciler(Vector(first), first_limit), Reconciler(Vector(second), second_limit))
    assert talked.have == {item.id for item in first} - {item.id for item in second}
    assert talked.need == {item.id for item in second} - {item.id for item in first}
    assert not first_limit or max(talked.sent) <= first_limit
    assert not second_limit or max(talked.received) <= second_limit


@given(WORLDS, st.integers(20, 200))
def test_limits_cost_trips_but_lose_nothing(world: tuple[list[Item], list[Item]], ranges: int) -> None:
    first, second = world
    limits = Limits(ranges=ranges)
    talked = talk(Reconciler(Vector(first), 0, limits), Reconciler(Vector(second), 0, limits))
    assert talked.have == {item.id for item in first} - {item.id for item in second}
    assert talked.need == {item.id for item in second} - {item.id for item in first}


@given(WORLDS, st.integers(0, 300))
def test_a_limit_of_own_items_leaves_differences_and_invents_none(
    world: tuple[list[Item], list[Item]], own: int
) -> None:
    first, second = world
    talked = talk(Reconciler(Vector(first), 0, Limits(own=own)), Reconciler(Vector(second)))
    assert talked.have <= {item.id for item in first} - {item.id for item in second}
    assert talked.need <= {item.id for item in second} - {item.id for item in first}


@given(WORLDS)
def test_equal_sets_take_one_trip_and_few_bytes(world: tuple[list[Item], list[Item]]) -> None:
    first, _ = world
    talked = talk(Reconciler(Vector(first)), Reconciler(Vector(first[::-1])))
    assert (len(talked.sent), talked.have, talked.need) == (1, set(), set())
    assert max(talked.sent) <= (1_100 if len(first) < 32 else 16 * (1 + 10 + 33 + 1 + 16))
    assert len(first) < 32 or talked.received == [1]


@given(WORLDS)
def test_an_answer_depends_on_nothing_but_items_and_message(world: tuple[list[Item], list[Item]]) -> None:
    first, second = world
    message = Reconciler(Vector(first)).initiate()
    used = Reconciler(Vector(second))
    used.answer(message)
    assert used.answer(message) == Reconciler(Vector(second)).answer(message)


def test_the_newest_differences_of_a_large_set_take_three_trips() -> None:
    first, second = items_by_seed(seed=1, both=65_536, first=100, second=100, seconds=10**7, is_newest=True)
    talked = talk(Reconciler(Vector(first), 262_144), Reconciler(Vector(second), 262_144))
    assert (len(talked.have), len(talked.need)) == (100, 100)
    assert len(talked.sent) <= 3
    assert sum(talked.sent) + sum(talked.received) <= 40_000


def test_another_version_is_answered_by_the_byte_of_this_one() -> None:
    side = Reconciler(Vector([]))
    assert side.answer(bytes.fromhex("62aabbcc")) == b"\x61"
    assert side.answer(bytes.fromhex("60")) == b"\x61"


def test_an_answer_of_another_version_is_refused() -> None:
    with pytest.raises(BadFrame, match="expected version 0x61, got 0x62"):
        Reconciler(Vector([])).reconcile(b"\x62")


def test_nothing_to_say_ends_it() -> None:
    assert Reconciler(Vector([])).reconcile(b"\x61").message is None


def test_an_item_that_comes_twice_in_a_list_is_needed_once() -> None:
    listed = b"\x61\x00\x00\x02\x03" + bytes([7] * 32) * 3
    assert Reconciler(Vector([])).reconcile(listed).need == [bytes([7] * 32)]


@pytest.mark.parametrize("limit", [-1, 1, 4_095])
def test_a_frame_limit_is_none_or_at_least_4096(limit: int) -> None:
    with pytest.raises(ValueError, match="expected a frame limit of 0 or at least 4096, got"):
        Reconciler(Vector([]), limit)


@pytest.mark.parametrize(
    "items",
    [
        pytest.param([Item(1, bytes(32))] * 2, id="an-item-twice"),
        pytest.param([Item(INFINITY, bytes(32))], id="an-item-at-infinity"),
        pytest.param([Item(-1, bytes(32))], id="an-item-before-1970"),
        pytest.param([Item(1, bytes(31))], id="a-short-id"),
    ],
)
def test_what_is_no_set_of_items_is_not_stored(items: list[Item]) -> None:
    with pytest.raises(ValueError, match=r"^expected "):
        Vector(items)


@given(st.integers(0, 3_000), st.integers(0, 3_000))
def test_a_storage_is_asked_from_left_to_right_and_for_no_item_often(count: int, other: int) -> None:
    storage = Arithmetic(count)
    answer = Reconciler(storage).answer(Reconciler(Arithmetic(other)).initiate())
    assert storage.found == sorted(storage.found)
    assert storage.summed <= 2 * count
    assert 32 * storage.listed < len(answer)


@pytest.mark.parametrize("count", [0, 1, 31, 32, 33, 1_000])
def test_any_storage_of_the_same_items_says_the_same(count: int) -> None:
    plain = Vector([Arithmetic(count).item(index) for index in range(count)])
    assert Reconciler(plain).initiate() == Reconciler(Arithmetic(count)).initiate()
