"""Reconciliation of sets that differ in more than one exchange takes: what is newest is found all the same."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from random import Random
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remem.protocol.items import ID_BYTES, INFINITY, Item
from remem_gossip.reconcile import Differences, Endless, Limits, Passes, Reach, Reconciler, Storage, Vector
from remem_gossip.reconcile.encoding import END, SKIP, START, Bound, Reader, Writer
from remem_gossip.reconcile.negentropy import FRAME_LEAST
from remem_gossip.reconcile.passes import Found, merged

from .worlds_of_items import Arithmetic, items_by_seed, talk

DAY: Final = 86_400
NOW: Final = 1_800_000_000
SMALL: Final = Reach(rounds=16, differences=400)
PLENTY: Final = 1 << 40

WORLDS = st.builds(
    items_by_seed,
    seed=st.integers(0, 2**32),
    both=st.integers(0, 400),
    first=st.integers(0, 60),
    second=st.integers(0, 60),
    seconds=st.sampled_from([1, 3, 1_000, 10**9]),
)


def spread(count: int, seed: int, days: int = 1_000) -> list[Item]:
    """Make items of so many days before now."""
    random = Random(seed)
    return [Item(NOW - random.randrange(days * DAY), random.randbytes(ID_BYTES)) for _ in range(count)]


def ids(items: Iterable[Item]) -> set[bytes]:
    return {item.id for item in items}


@dataclass
class Talked:
    """What an exchange of passes found, and what it took."""

    found: Differences = field(default_factory=lambda: Differences([], [], []))
    trips: int = 0
    received: int = 0
    longest: int = 0
    sent: int = 0

    @property
    def need(self) -> list[bytes]:
        return [*chain.from_iterable(self.found.newest), *self.found.others]


def pass_over(
    own: Storage, answer: Callable[[bytes], bytes], reach: Reach = SMALL, most: int = PLENTY, seed: int = 0
) -> Talked:
    """Run the passes of one exchange."""

    @contextmanager
    def opened() -> Iterator[Storage]:
        yield own

    talked = Talked()
    left = partial(_left, talked, most)
    messages = Passes(opened, left, Random(seed), now=NOW, frame_limit=FRAME_LEAST, reach=reach).messages()
    try:
        message = next(messages)
        while True:
            talked.trips += 1
            talked.sent += len(message)
            came = answer(message)
            talked.received += len(came)
            talked.longest = max(talked.longest, len(came))
            message = messages.send(came)
    except StopIteration as end:
        talked.found = end.value
    return talked


def _left(talked: Talked, most: int) -> int:
    return most - talked.received


def other(items: Iterable[Item]) -> Callable[[bytes], bytes]:
    return Reconciler(Vector(items), FRAME_LEAST).answer


# --- the message that begins later ---


@given(WORLDS, st.integers(0, 10**9), st.sampled_from([0, FRAME_LEAST]), st.sampled_from([0, FRAME_LEAST]))
def test_what_is_older_than_the_beginning_is_skipped_and_nothing_else(
    world: tuple[list[Item], list[Item]], after: int, limit: int, other_limit: int
) -> None:
    first, second = world
    since = 1_700_000_000 + after
    talked = talk(Reconciler(Vector(first), limit), Reconciler(Vector(second), other_limit), since=since)
    lately = ({item.id for item in items if item.time >= since} for items in world)
    mine, theirs = lately
    assert (talked.have, talked.need) == (mine - theirs, theirs - mine)


@given(WORLDS)
def test_a_beginning_at_no_time_is_the_plain_one(world: tuple[list[Item], list[Item]]) -> None:
    side = Reconciler(Vector(world[0]))
    assert side.initiate(0) == side.initiate()


@pytest.mark.parametrize("since", [1, NOW, INFINITY - 1], ids=["first second", "now", "last second"])
def test_the_first_range_is_skipped_up_to_the_time(since: int) -> None:
    reader = Reader(Reconciler(Vector([])).initiate(since))
    reader.version()
    assert (reader.bound(), reader.mode()) == (Bound(Item(since, START.item.id), 0), SKIP)
    assert reader.bound() == END


# --- passes ---


def test_sets_that_are_equal_take_one_trip() -> None:
    own = spread(5_000, 1)
    talked = pass_over(Vector(own), other(own))
    assert (talked.trips, talked.found) == (1, Differences([], [[]], []))
    assert talked.sent + talked.received <= 400


@given(WORLDS)
def test_what_one_pass_finds_to_the_end_needs_no_other(world: tuple[list[Item], list[Item]]) -> None:
    first, second = world
    talked = pass_over(Vector(first), other(second), Reach())
    assert (len(talked.found.newest), talked.found.others) == (1, [])
    assert set(talked.found.have) == ids(first) - ids(second)
    assert set(talked.need) == ids(second) - ids(first)


@pytest.mark.parametrize("ahead", [-DAY, 0, 3_600], ids=["of yesterday", "of now", "of the next hour"])
@pytest.mark.parametrize("one_in", [10_000, 100, 3], ids=["very few", "few", "many"])
def test_a_side_that_holds_few_of_very_many_finds_the_newest_first(ahead: int, one_in: int) -> None:
    every = spread(20_000, 1)
    own = every[::one_in]
    update = Item(NOW + ahead, b"\x07" * ID_BYTES)
    talked = pass_over(Vector(own), other([*every, update]))
    assert update.id in talked.found.newest[0]
    assert talked.trips <= SMALL.rounds
    assert len(talked.need) < 2 * SMALL.differences


def test_what_came_while_this_side_was_away_for_a_week_is_among_the_newest() -> None:
    every = [item for item in spread(20_000, 1) if item.time < NOW - 8 * DAY]
    own = every[::100]
    update = Item(NOW - 7 * DAY, b"\x07" * ID_BYTES)
    assert update.id in pass_over(Vector(own), other([*every, update])).found.newest[1]


def test_a_side_that_holds_very_many_finds_the_newest_of_few() -> None:
    own = spread(20_000, 1)
    update = Item(NOW, b"\x07" * ID_BYTES)
    talked = pass_over(Vector(own), other([*own[::100], update]), Reach(rounds=16, differences=2_000))
    assert update.id in talked.found.newest[0]
    assert len(talked.found.have) <= 2_000
    newest = sorted(own, reverse=True)[:20]
    assert set(talked.found.have[:30]) >= ids(newest) - ids(own[::100]), (
        "what the other side lacks goes from the newest on"
    )


def test_what_the_limit_of_own_items_left_out_is_told() -> None:
    many = Arithmetic(1_000)
    answer = Reconciler(Vector([])).answer(Reconciler(many).initiate())
    steps = [Reconciler(many, 0, Limits(own=own)).reconcile(answer) for own in (1_000, 999)]
    assert [(len(step.have), step.message, step.is_cut) for step in steps] == [(1_000, None, False), (999, None, True)]


def test_a_pass_finds_no_more_than_its_part_of_what_the_other_side_lacks() -> None:
    talked = pass_over(Arithmetic(1_000), Reconciler(Vector([])).answer, Reach(rounds=16, differences=100))
    assert 50 <= len(talked.found.have) <= 100


@pytest.mark.parametrize("held", [0, 200], ids=["nothing", "a little"])
def test_night_by_night_all_of_a_much_larger_set_is_found(held: int) -> None:
    every = {item.id: item for item in spread(3_000, 2)}
    own = dict(list(every.items())[:held])
    for night in range(60):
        talked = pass_over(Vector(own.values()), other(every.values()), seed=night)
        assert not talked.found.have
        own |= {one: every[one] for one in talked.need}
        if own.keys() == every.keys():
            break
    assert own.keys() == every.keys()


def test_passes_begin_somewhere_else_each_night_so_that_a_full_side_sees_everything_in_time() -> None:
    every = spread(3_000, 3)
    seen: set[bytes] = set()
    for night in range(200):
        seen.update(pass_over(Vector(every[::100]), other(every), seed=night).need)
    assert len(seen) > len(every) * 9 // 10


# --- against whoever means no good ---


class Babbler:
    """One that has something new to say each time, and never an end."""

    def __init__(self, ids_at_once: int) -> None:
        self._ids = ids_at_once
        self._random = Random(1)
        self.messages: list[bytes] = []

    def __call__(self, message: bytes) -> bytes:
        self.messages.append(message)
        out = Writer()
        bound = Bound(Item(NOW - 2_000 * DAY, START.item.id), 0)
        out.ids(bound, [self._random.randbytes(ID_BYTES) for _ in range(self._ids)])
        out.fingerprint(END, self._random.randbytes(16))
        return out.message


@pytest.mark.parametrize("ids_at_once", [1, 30, 3_000], ids=["a drop", "some", "more than fits"])
def test_an_endless_side_gets_no_more_rounds_and_differences_than_all_passes_have(ids_at_once: int) -> None:
    talked = pass_over(Vector(spread(2_000, 1)), Babbler(ids_at_once))
    assert talked.trips <= SMALL.rounds
    assert len(talked.need) <= SMALL.differences + 4 * ids_at_once


@pytest.mark.parametrize("most", [10_000, 100_000, 1_000_000])
def test_passes_leave_a_part_of_the_bytes_to_what_comes_behind_them(most: int) -> None:
    talked = pass_over(Vector(spread(2_000, 1)), Babbler(30), Reach(rounds=10**6, differences=10**6), most)
    assert talked.received <= most * 15 // 16 + 4 * talked.longest


def test_the_first_pass_leaves_rounds_to_the_others() -> None:
    babbler = Babbler(1)
    pass_over(Vector(spread(2_000, 1)), babbler)
    begun = sum(_skips_first(message) for message in babbler.messages)
    assert begun == 3


def test_a_side_that_teaches_nothing_is_left() -> None:
    with pytest.raises(Endless, match="something to learn in 8 rounds"):
        pass_over(Vector(spread(2_000, 1)), Babbler(0), Reach(rounds=64))


def test_nothing_is_done_where_no_bytes_are_left() -> None:
    assert pass_over(Vector(spread(100, 1)), Babbler(1), most=0).trips == 0


# --- what passes found ---


def found(have: list[int], need: list[int]) -> Found:
    mine, theirs = (dict.fromkeys(bytes([number] * ID_BYTES) for number in numbers) for numbers in (have, need))
    return Found(mine, theirs)


def names(some: list[bytes]) -> list[int]:
    return [one[0] for one in some]


def test_what_passes_found_is_put_together_with_each_id_once() -> None:
    whole = merged([found([8, 9], [21]), found([7, 8, 9], [22, 21])], [found([1, 2, 8], [22, 23, 24])])
    assert names(whole.have) == [9, 8, 7, 2, 1]
    assert [names(some) for some in whole.newest] == [[21], [22]]
    assert names(whole.others) == [23, 24]


def test_what_each_side_seems_to_lack_is_left_out() -> None:
    whole = merged([found([8], [21])], [found([1, 21], [8, 22])])
    assert (names(whole.have), whole.newest, names(whole.others)) == ([1], [[]], [22])


def _skips_first(message: bytes) -> bool:
    reader = Reader(message)
    reader.version()
    bound = reader.bound()
    # The Babbler's own list ends before all items, so no later message skips up to one of them.
    return reader.mode() == SKIP and bound.item.time > NOW - 1_500 * DAY
