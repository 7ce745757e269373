"""What a frame can make a node do, over a million items: counted, not timed."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from random import Random
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remem.protocol.items import Item
from remem_gossip.reconcile import LIMITS, BadFrame, Limits, Reconciler, Vector
from remem_gossip.reconcile.encoding import END, FINGERPRINT, SKIP, Reader, fingerprint_of
from remem_testkit.frames import hostile_frames, mutated

from .worlds_of_items import Arithmetic, items_by_seed

FRAME_LIMIT: Final = 4_096
MOST: Final = 60_000


WORLDS = st.integers(0, 2**32).map(lambda seed: items_by_seed(seed=seed, both=300, first=20, second=20, seconds=50))


@pytest.fixture(scope="module")
def frames() -> dict[str, bytes]:
    return dict(hostile_frames(Arithmetic(1_000_000), MOST))


@pytest.mark.parametrize("is_answering", [True, False], ids=["on the side that answers", "on the side that begins"])
def test_a_hostile_frame_makes_a_node_do_no_more_than_its_limits(frames: dict[str, bytes], is_answering: bool) -> None:
    for name, frame in frames.items():
        storage = Arithmetic(1_000_000)
        side = Reconciler(storage, FRAME_LIMIT)
        try:
            if is_answering:
                assert len(side.answer(frame)) <= FRAME_LIMIT, name
            else:
                step = side.reconcile(frame)
                assert len(step.message or b"") <= FRAME_LIMIT, name
                assert len(step.have) <= LIMITS.own, name
                assert len(step.need) <= MOST // 32, name
        except BadFrame:
            assert name in ("a number that does not end", "a list of 2^64 ids")
        # A range is found and summed; a part is summed and lies between two items.
        assert storage.calls <= 3 * LIMITS.ranges + 100, name
        assert storage.summed <= 2 * len(storage), name
        assert storage.listed <= (FRAME_LIMIT // 32 if is_answering else LIMITS.own), name


def test_ranges_behind_the_limit_are_answered_by_one_fingerprint() -> None:
    storage = Arithmetic(1_000_000)
    frame = dict(hostile_frames(storage, MOST))["a range for each item, right"]
    answer = Reconciler(storage, 0, Limits(ranges=100)).answer(frame)
    reader = Reader(answer)
    reader.version()
    skipped, mode = reader.bound(), reader.mode()
    assert (skipped.item.time, mode) == (storage.item(100).time, SKIP)
    assert (reader.bound(), reader.mode()) == (END, FINGERPRINT)
    assert reader.fingerprint() == fingerprint_of(storage.sum(100, 1_000_000), 999_900)
    assert reader.is_done


@given(st.binary(max_size=200))
def test_any_bytes_are_a_message_or_a_bad_frame(data: bytes) -> None:
    _ask(b"\x61" + data)
    _ask(data)


@given(WORLDS, st.integers(0, 2**32))
def test_a_message_with_other_bytes_is_a_message_or_a_bad_frame(
    world: tuple[list[Item], list[Item]], seed: int
) -> None:
    random = Random(seed)
    first, second = (Reconciler(Vector(items)) for items in world)
    frame = first.initiate()
    for _ in range(random.randrange(3)):
        frame = second.answer(frame)
        frame = first.reconcile(frame).message or frame
    for _ in range(20):
        _ask(mutated(random, frame, MOST), world[1])


def _ask(frame: bytes, items: Sequence[Item] = ()) -> None:
    side = Reconciler(Vector(items), FRAME_LIMIT)
    with suppress(BadFrame):
        assert len(side.answer(frame)) <= FRAME_LIMIT
    try:
        step = side.reconcile(frame)
    except BadFrame:
        return
    assert len(step.message or b"") <= FRAME_LIMIT
    assert set(step.have) <= {item.id for item in items}
    assert len(step.need) <= len(frame) // 32
