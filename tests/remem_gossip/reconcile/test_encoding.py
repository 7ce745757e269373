"""Messages as bytes: what is written is read, and nothing else is."""

from __future__ import annotations

from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remem.protocol.items import INFINITY, Item
from remem_gossip.reconcile.encoding import (
    END,
    BadFrame,
    Bound,
    Reader,
    Writer,
    bound_between,
    fingerprint_of,
    write_number,
)

IDS = st.binary(min_size=32, max_size=32)
ITEMS = st.builds(Item, st.integers(0, INFINITY - 1), IDS)
CLOSE = st.builds(
    Item, st.integers(0, 2), st.builds(lambda n, end: bytes(n) + end[n:], st.integers(0, 31), IDS)
)  # ids that begin alike


def _read_all(reader: Reader) -> None:
    while not reader.is_done:
        reader.bound()
        match reader.mode():
            case 1:
                reader.fingerprint()
            case 2:
                reader.ids()


def _head(hexed: str) -> tuple[Bound, int]:
    reader = Reader(bytes.fromhex(hexed))
    reader.version()
    return reader.bound(), reader.mode()


@pytest.mark.parametrize(
    ("number", "written"),
    [
        pytest.param(0, "00", id="zero-is-one-byte"),
        pytest.param(127, "7f", id="127-is-the-last-of-one-byte"),
        pytest.param(128, "8100", id="the-most-significant-digit-comes-first"),
        pytest.param(300, "822c", id="each-digit-but-the-last-has-the-high-bit"),
        pytest.param(2**64 - 1, "81ffffffffffffffff7f", id="64-bits-are-ten-digits"),
    ],
)
def test_a_number_has_one_spelling(number: int, written: str) -> None:
    assert write_number(number).hex() == written


@given(st.lists(ITEMS, min_size=1, max_size=20).map(sorted), st.integers(0, 32))
def test_bounds_that_ascend_come_back(items: list[Item], length: int) -> None:
    bounds = sorted(
        {Bound(Item(item.time, item.id[:length].ljust(32, b"\0")), length) for item in items}, key=lambda one: one.item
    )
    writer = Writer()
    for bound in bounds:
        writer.skip(bound)
    writer.skip(END)
    reader = Reader(writer.message)
    reader.version()
    read = []
    while not reader.is_done:
        read.append(reader.bound())
        assert reader.mode() == 0
    assert read == [*bounds, END]


@given(st.lists(ITEMS | CLOSE, min_size=2, max_size=2, unique=True).map(sorted))
def test_a_bound_between_two_items_is_the_shortest_that_separates_them(pair: list[Item]) -> None:
    before, behind = pair
    (time, name), length = bound_between(before, behind)
    assert before < Item(time, name) <= behind
    assert (time, name[:length]) == (behind.time, behind.id[:length])
    if before.time == behind.time:
        assert behind.id[: length - 1].ljust(32, b"\0") <= before.id
    else:
        assert length == 0


def test_a_fingerprint_is_of_the_little_endian_sum_and_the_count() -> None:
    ids = [bytes([255] * 32), bytes([2] + [0] * 31)]
    total = sum(int.from_bytes(one, "little") for one in ids)
    expected = sha256(bytes([1] + [0] * 31) + b"\x02").digest()[:16]
    assert fingerprint_of(total, 2) == expected
    assert fingerprint_of(total - 2**256, 2) == expected


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        pytest.param("61 8000 00 00", "without a leading zero", id="a-number-with-a-leading-zero"),
        pytest.param("61 82808080808080808000 00 00", "64 bits", id="a-number-of-65-bits"),
        pytest.param("61 ffffffffffffffffffff00 00 00", "64 bits", id="a-number-of-eleven-digits"),
        pytest.param("61 ff", "a number", id="a-number-that-does-not-end"),
        pytest.param("61 01", "a number", id="a-bound-without-a-length"),
        pytest.param("61 01 21" + "00" * 33 + "00", "at most 32 bytes", id="an-id-of-33-bytes"),
        pytest.param("61 01 02 aa", "2 more bytes", id="an-id-that-does-not-end"),
        pytest.param("61 00 01 aa 00", "infinity alone", id="an-id-at-infinity"),
        pytest.param("61 00 01 00 00", "infinity alone", id="a-zero-id-at-infinity"),
        pytest.param("61 81ffffffffffffffff7f 00 00 02 00 00", "before infinity", id="a-sum-that-reaches-infinity"),
        pytest.param("61 00 00 00 01 00 00", "before infinity", id="a-time-behind-infinity"),
        pytest.param("61 05 01 bb 00 01 01 aa 00", "not before the last", id="an-id-that-descends"),
        pytest.param("61 05 01 bb 00 01 00 00", "not before the last", id="a-prefix-that-descends"),
        pytest.param("61 00 00", "a number", id="no-mode"),
        pytest.param("61 00 00 03", "a mode of 0, 1 or 2", id="an-unknown-mode"),
        pytest.param("61 00 00 01" + "00" * 15, "16 more bytes", id="half-a-fingerprint"),
        pytest.param("61 00 00 02 01" + "00" * 31, "32 more bytes", id="half-an-id"),
        pytest.param("61 00 00 02 81ffffffffffffffff7f", "more bytes of the message, got 0", id="a-list-of-2^64-ids"),
    ],
)
def test_what_no_writer_writes_is_refused(written: str, expected: str) -> None:
    reader = Reader(bytes.fromhex(written))
    reader.version()
    with pytest.raises(BadFrame, match=expected) as caught:
        _read_all(reader)
    assert caught.value.code == "frame"
    assert str(caught.value).startswith("expected ")


@pytest.mark.parametrize("written", ["", "00", "5f", "70", "ff"])
def test_what_has_no_version_is_refused(written: str) -> None:
    with pytest.raises(BadFrame, match=r"expected (a version|1 more byte of)"):
        Reader(bytes.fromhex(written)).version()


def test_the_same_bound_twice_is_good() -> None:
    reader = Reader(bytes.fromhex("05 01 bb 00 01 01 bb 00 00 00 00 00 00 00".replace(" ", "")))
    read = []
    while not reader.is_done:
        read.append((reader.bound(), reader.mode()))
    assert read[0] == read[1]
    assert read[2:] == [(END, 0), (END, 0)]


def test_a_message_is_read_from_a_time_of_zero() -> None:
    assert _head("61 0a 00 00".replace(" ", "")) == (Bound(Item(9, bytes(32)), 0), 0)
