"""Items: their hashes, their order, and their 40 bytes."""

from __future__ import annotations

from datetime import UTC, datetime
from hashlib import blake2b

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remem.protocol.items import INFINITY, PACKED_BYTES, Item, item_of, pack, proof_item, unpack
from remem.protocol.keys import SigningKey

KEY = SigningKey.from_seed(bytes(31) + b"\x07").public
DIGEST = "5a" * 32
AT = datetime(2026, 1, 31, 12, 0, 0, tzinfo=UTC)

ITEMS = st.builds(Item, st.integers(0, INFINITY), st.binary(min_size=32, max_size=32))


def test_an_id_is_the_blake2b_of_key_and_digest() -> None:
    expected = blake2b(KEY.raw + bytes.fromhex(DIGEST), digest_size=32).digest()
    assert item_of(KEY, AT, DIGEST) == Item(1_769_860_800, expected)


def test_a_key_may_be_given_by_its_hex_digits() -> None:
    assert item_of(KEY.hex, AT, DIGEST) == item_of(KEY, AT, DIGEST)
    assert proof_item(KEY.hex) == proof_item(KEY)


def test_an_item_has_whole_seconds() -> None:
    assert item_of(KEY, AT.replace(microsecond=999_999), DIGEST).time == item_of(KEY, AT, DIGEST).time


def test_the_proof_of_a_key_has_one_item_at_the_beginning_of_time() -> None:
    assert proof_item(KEY) == Item(0, blake2b(b"equivocation" + KEY.raw, digest_size=32).digest())


def test_an_id_does_not_change() -> None:
    assert item_of("00" * 32, AT, "ff" * 32).id.hex() == (
        "630103aa73dc529ce4282c76dbc5f2260b15175b35284ba16d34ac513a2cdf7c"
    )
    assert proof_item("00" * 32).id.hex() == "2798fce215a6def7bf55904dfba85893bfd119a5e3334b24c81c74583d3064f9"


@given(ITEMS)
def test_a_packed_item_comes_back(item: Item) -> None:
    packed = pack(item)
    assert len(packed) == PACKED_BYTES
    assert unpack(packed) == item


@given(ITEMS, ITEMS)
def test_packed_items_sort_as_items(one: Item, other: Item) -> None:
    assert (pack(one) < pack(other)) == (one < other)


@pytest.mark.parametrize(
    "item",
    [
        pytest.param(Item(0, bytes(31)), id="an-id-too-short"),
        pytest.param(Item(0, bytes(33)), id="an-id-too-long"),
        pytest.param(Item(-1, bytes(32)), id="a-time-before-1970"),
        pytest.param(Item(2**64, bytes(32)), id="a-time-beyond-64-bits"),
    ],
)
def test_what_is_no_item_is_not_packed(item: Item) -> None:
    with pytest.raises(ValueError, match=r"^expected "):
        pack(item)


@pytest.mark.parametrize("size", [0, 39, 41])
def test_an_item_of_another_size_is_not_read(size: int) -> None:
    with pytest.raises(ValueError, match=r"^expected an item of 40 bytes, got"):
        unpack(bytes(size))
