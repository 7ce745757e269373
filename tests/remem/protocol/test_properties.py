"""What holds of all bytes, edits and orders: nothing is accepted but what its key's owner signed, as it was signed."""

import itertools
from collections.abc import Callable, Iterable
from datetime import timedelta
from functools import reduce
from typing import Any, Final

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from remem.protocol.canonical import JSON
from remem.protocol.errors import Deferred, ProtocolError
from remem.protocol.file import OriginFile, Verified, Version, accept, newest
from remem.protocol.keys import SigningKey
from remem.protocol.records import parse_record

from . import forge
from .forge import (
    KEY,
    LAST_SEAL,
    NOW,
    OTHER,
    SEAL,
    SECONDS,
    confirmation,
    denial,
    join,
    lesson,
    revocation,
    unknown,
    whole,
    without,
)

# --- what one key and another ever signed ---

CONTENTS: Final = [lesson(0, parents=["0f" * 16]), confirmation(1), revocation(2), denial(3), unknown(4)]
TODAY: Final = forge.sealed(CONTENTS)
TOMORROW: Final = forge.sealed([confirmation(1), *CONTENTS[3:], lesson(5)], seal=SECONDS + 1)
SAME_SEAL: Final = forge.sealed(CONTENTS[1:], seal=SECONDS)
BARE: Final = forge.sealed([], seal=SECONDS + 2)
LAST: Final = forge.sealed([revocation(2), revocation(6)], seal=LAST_SEAL)
DRAFT: Final = forge.unsealed([lesson(0), confirmation(1), unknown(4)])
OF_OTHER: Final = forge.sealed([confirmation(1), unknown(4)], OTHER)
SEALED: Final = (TODAY, TOMORROW, SAME_SEAL, BARE, LAST, OF_OTHER)
EVERY: Final = (*SEALED, DRAFT)


def lines_of(*files: bytes) -> list[bytes]:
    return [line for data in files for line in data.split(b"\n")[:-1]]


def accepted(data: bytes, verified: Verified | None = None) -> bool:
    try:
        accept(data, now=NOW, verified=verified)
    except ProtocolError:
        return False
    return True


# --- bytes ---


@given(st.binary(max_size=600))
@example(TODAY)
@example(DRAFT)
def test_any_bytes_come_back_or_raise_a_protocol_error(data: bytes) -> None:
    try:
        file = accept(data, now=NOW)
    except ProtocolError:
        return
    assert file.data == data
    assert join([*([file.seal.line] if file.seal else []), *file.lines]) == data


EDITS: Final = (
    *((f"byte {byte!r}", lambda _old, byte=byte: byte) for byte in (b"\x00", b"\n", b'"', b",", b"0", b"a", b"\xff")),
    *((f"bit {bit}", lambda old, bit=bit: bytes([old[0] ^ 1 << bit])) for bit in range(8)),
    ("nothing", lambda _old: b""),
    ("itself twice", lambda old: old * 2),
    ("a space in front", lambda old: b" " + old),
    ("a quote in front", lambda old: b'"' + old),
    ("a line feed in front", lambda old: b"\n" + old),
)


@pytest.mark.parametrize("edit", [pytest.param(edit, id=name) for name, edit in EDITS])
def test_no_byte_of_a_sealed_file_can_change(edit: Callable[[bytes], bytes]) -> None:
    verified = accept(TODAY, now=NOW).verified
    for at in range(len(TODAY)):
        changed = TODAY[:at] + edit(TODAY[at : at + 1]) + TODAY[at + 1 :]
        if changed != TODAY:
            assert not accepted(changed), at
            assert not accepted(changed, verified), at


@pytest.mark.parametrize("number", range(6))
def test_no_byte_of_a_signed_line_can_change(number: int) -> None:
    line = TODAY.split(b"\n")[number]
    for at, (_name, edit) in itertools.product(range(len(line)), EDITS):
        changed = line[:at] + edit(line[at : at + 1]) + line[at + 1 :]
        if changed != line:
            with pytest.raises(ProtocolError):
                parse_record(changed)


splices = st.tuples(st.integers(0, len(TODAY)), st.integers(0, 200), st.binary(max_size=8))


@given(st.lists(splices, min_size=1, max_size=3))
def test_no_splice_of_a_sealed_file_is_accepted(places: list[tuple[int, int, bytes]]) -> None:
    data = TODAY
    for start, length, new in places:
        data = data[:start] + new + data[start + length :]
    assume(data != TODAY)
    assert not accepted(data)


@given(st.integers(0, len(TODAY)), st.integers(0, len(TODAY)), st.integers(0, len(TODAY)))
def test_no_part_of_a_sealed_file_can_be_moved_within_it(start: int, end: int, to: int) -> None:
    moved, rest = TODAY[start:end], TODAY[:start] + TODAY[max(start, end) :]
    assert (data := rest[:to] + moved + rest[to:]) == TODAY or not accepted(data)


# --- records ---


@given(st.binary(max_size=300))
def test_any_bytes_are_no_record(data: bytes) -> None:
    with pytest.raises(ProtocolError):
        parse_record(data)


ANY: st.SearchStrategy[Any] = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-(2**60), 2**60), st.floats(), st.text(max_size=8)),
    lambda inner: st.one_of(st.lists(inner, max_size=2), st.dictionaries(st.text(max_size=4), inner, max_size=2)),
    max_leaves=4,
)
FIELD_NAMES = sorted({*lesson(), *confirmation(), *revocation(), *denial(), *SEAL, "parents", "v", "key", "origin"})


@given(
    st.sampled_from([lesson(), lesson(sealed=True), confirmation(), revocation(), denial(), SEAL, unknown()]),
    st.dictionaries(st.sampled_from(FIELD_NAMES), ANY, max_size=2),
    st.sets(st.sampled_from(FIELD_NAMES), max_size=1),
)
def test_a_signed_record_of_any_fields_is_refused_or_comes_back(
    fields: dict[str, JSON], changes: dict[str, JSON], gone: set[str]
) -> None:
    made = without({**whole(fields), **changes}, *gone)
    try:
        line = forge.line(made)
    except UnicodeEncodeError:
        return  # a surrogate, which no bytes spell
    try:
        record = parse_record(line)
    except ProtocolError:
        return
    assert record.line == line


# --- lines ---


def holds(data: bytes) -> bool:
    """Tell whether bytes are what was sealed, or lines of a draft-0 file, which anyone may drop and reorder."""
    return data in SEALED or set(lines_of(data)) <= set(lines_of(DRAFT))


def test_no_choice_and_order_of_a_few_lines_is_accepted_but_whole_files() -> None:
    for length in range(1, 5):
        for chosen in itertools.permutations(lines_of(SAME_SEAL, BARE, LAST, DRAFT[: DRAFT.index(b"\n") + 1]), length):
            assert accepted(data := join(chosen)) == holds(data), chosen


@given(st.permutations(lines_of(TODAY)), st.integers(0, 6))
def test_no_order_and_no_part_of_a_sealed_file_is_accepted(lines: list[bytes], kept: int) -> None:
    data = join(lines[:kept])
    assert accepted(data) is (data == TODAY)


@given(st.lists(st.sampled_from(lines_of(*EVERY)), min_size=1, max_size=8))
@example(lines_of(TODAY)[1:])
@example(lines_of(LAST)[:1] + lines_of(TODAY)[3:4])
@example(lines_of(DRAFT) + lines_of(TODAY)[1:])
@example(lines_of(DRAFT)[::-1])
def test_no_mixing_of_files_is_accepted(lines: list[bytes]) -> None:
    data = join(lines)
    assert not accepted(data) or holds(data)


@pytest.mark.parametrize("data", [TODAY, TOMORROW, SAME_SEAL, LAST], ids=["today", "tomorrow", "same seal", "last"])
@pytest.mark.parametrize("other", EVERY, ids=["today", "tomorrow", "same", "bare", "last", "other's", "draft 0"])
def test_no_seal_fits_the_lines_of_another_file(data: bytes, other: bytes) -> None:
    lines, others = lines_of(data), lines_of(other)
    if data != other:
        assert not accepted(join([lines[0], *others[1:]]))
        assert not accepted(join([lines[0], *others]))
        assert not accepted(join([*lines, others[-1]]))
        assert not accepted(join([*lines[:-1], others[-1]])) or lines[-1] == others[-1]


# --- lines that were verified before ---


def outcome(data: bytes, verified: Verified | None) -> tuple[object, ...]:
    """Everything that anyone can see of an acceptance."""
    try:
        file = accept(data, now=NOW, verified=verified)
    except ProtocolError as error:
        return type(error), error.line, error.expected, error.got
    return file.data, file.digest, file.key, file.seal, file.lines, file.topics, file.records


KNOWN: Final[tuple[Verified | None, ...]] = tuple(accept(data, now=NOW).verified for data in EVERY)


def assert_the_same(data: bytes) -> None:
    alone = outcome(data, None)
    for verified in KNOWN:
        assert outcome(data, verified) == alone


# The owner of the key, who may be malicious, seals whatever he likes.
PARTS: Final = [
    *lines_of(TODAY, TOMORROW, LAST, DRAFT, OF_OTHER),
    forge.line(whole({"sealed": True, **confirmation(7)})),
    forge.line(whole({"sealed": True, **confirmation(1, at="2026-02-01T00:00:00Z")})),  # a known topic at another time
    forge.line(whole({"sealed": True, **confirmation(8, at="2099-01-01T00:00:00Z")})),  # to be deferred
    forge.line(whole({"sealed": True, **confirmation(1)}), OTHER),  # a known line under another's signature
    forge.line(whole(confirmation(1))),  # a known line of no sealed file
    forge.spell({**whole({"sealed": True, **confirmation(9)}), "sig": "0" * 128}),
    b"{}",
]


@given(
    st.lists(st.one_of(st.sampled_from(lines_of(TODAY)[1:]), st.sampled_from(PARTS)), max_size=6),
    st.sampled_from([KEY, KEY, KEY, OTHER]),
    st.sampled_from([{}, {}, {}, {"seal": LAST_SEAL}, {"seal": 1}, {"records": 1}, {"digest": "0" * 64}]),
)
@example(lines_of(TODAY)[1:2] * 2 + [b"{}"], KEY, {})
@example(lines_of(TODAY)[5:6] * 2, KEY, {})
@example(lines_of(TODAY)[:2], KEY, {})
@example(lines_of(TODAY)[1:], OTHER, {})
@example(lines_of(TODAY)[1:], KEY, {"seal": LAST_SEAL})
@example(lines_of(TODAY)[3:4], KEY, {"seal": LAST_SEAL})
@example(lines_of(TODAY)[:0:-1], KEY, {})
@example([*lines_of(TODAY)[1:], forge.line(whole(confirmation(8)))], KEY, {})
def test_what_was_verified_before_changes_nothing_whatever_the_owner_seals(
    lines: list[bytes], key: SigningKey, changes: dict[str, JSON]
) -> None:
    assert_the_same(join([forge.seal(lines, key, **changes), *lines]))
    assert_the_same(join(lines))


@given(st.lists(splices, max_size=2), st.sampled_from(SEALED))
def test_what_was_verified_before_changes_nothing_whatever_a_carrier_edits(
    places: list[tuple[int, int, bytes]], data: bytes
) -> None:
    for start, length, new in places:
        data = data[:start] + new + data[start + length :]
    assert_the_same(data)


@given(st.lists(st.sampled_from(lines_of(*EVERY)), max_size=8))
def test_what_was_verified_before_changes_nothing_whatever_a_carrier_mixes(lines: list[bytes]) -> None:
    assert_the_same(join(lines))


def test_what_was_verified_before_helps_no_file_of_draft_0_and_no_other_key() -> None:
    mine = accept(TODAY, now=NOW).verified
    assert mine is not None
    theirs = Verified(OTHER.public, mine.topics)
    for number in range(1, 6):
        forged = forge.spell({**whole({"sealed": True, **confirmation(9)}), "sig": "0" * 128})
        lines = [*lines_of(TODAY)[1:number], forged]
        lax = Verified(KEY.public, {**mine.topics, forged: "confirm x"})
        assert not accepted(join(lines), lax)
        assert not accepted(join([forge.seal(lines, OTHER), *lines]), lax)
        assert not accepted(join([forge.seal(lines), *lines]), Verified(OTHER.public, lax.topics))
    assert outcome(TODAY, theirs) == outcome(TODAY, None)


# --- the clock ---


@given(st.sampled_from([-1, 0, 1, 23, 24, 25]), st.sampled_from([-1, 0, 1]), st.integers(-3, 30))
def test_a_deferred_file_is_accepted_once_its_time_has_come(hours: int, microseconds: int, later: int) -> None:
    time = NOW + timedelta(hours=hours, microseconds=microseconds)
    at = time.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    data = forge.sealed([confirmation(1, at=at)])
    clock = NOW + timedelta(hours=later)
    if time - clock > timedelta(hours=24):
        with pytest.raises(Deferred):
            accept(data, now=clock)
    else:
        assert accept(data, now=clock).version == accept(data, now=clock + timedelta(days=9_999)).version


# --- merging ---

versions = st.builds(
    Version, st.one_of(st.none(), st.integers(1, 4), st.just(LAST_SEAL)), st.sampled_from("0123").map(lambda c: c * 64)
)
# A digest is of all bytes, so no two versions of one key share it.
sealed_versions = versions.filter(lambda version: version.seal is not None)
maps = st.dictionaries(st.sampled_from("abc"), sealed_versions)


def keep(held: Version | None, offered: Version) -> Version:
    """Keep one of two versions as a holder does."""
    return offered if held is None or newest(held, offered).takes else held


def merge(one: dict[str, Version], two: dict[str, Version]) -> dict[str, Version]:
    return {**one, **{key: keep(one.get(key), version) for key, version in two.items()}}


def consistent(*all_maps: Iterable[tuple[str, Version]]) -> bool:
    """Tell whether no digest stands for two files of one key."""
    seals: dict[tuple[str, str], int | None] = {}
    return all(
        seals.setdefault((key, version.digest), version.seal) == version.seal
        for each in all_maps
        for key, version in each
    )


@given(maps, maps, maps)
def test_merging_sealed_files_is_commutative_associative_and_idempotent(
    one: dict[str, Version], two: dict[str, Version], three: dict[str, Version]
) -> None:
    assume(consistent(one.items(), two.items(), three.items()))
    assert merge(one, two) == merge(two, one)
    assert merge(merge(one, two), three) == merge(one, merge(two, three))
    assert merge(one, one) == one
    assert merge(merge(one, two), two) == merge(one, two)


@given(st.lists(sealed_versions, min_size=1, max_size=6), st.randoms())
def test_the_newest_of_sealed_files_is_the_same_in_any_order(several: list[Version], random: object) -> None:
    assume(consistent([("a", version) for version in several]))
    best = max(several, key=lambda version: (version.seal or 0, version.digest))
    for order in itertools.islice(itertools.permutations(several), 24):
        assert reduce(keep, order) == best


@given(st.lists(versions, min_size=1, max_size=7))
def test_with_draft_0_among_them_the_best_seal_wins_or_else_the_last_to_come(several: list[Version]) -> None:
    assume(consistent([("a", version) for version in several]))
    seals = [version for version in several if version.seal is not None]
    expected = max(seals, key=lambda version: (version.seal or 0, version.digest)) if seals else several[-1]
    assert reduce(keep, several) == expected


@given(versions, versions, versions)
def test_merging_is_associative_and_idempotent_with_draft_0_too(one: Version, two: Version, three: Version) -> None:
    assume(consistent([("a", version) for version in (one, two, three)]))
    assert keep(keep(one, two), three) == keep(one, keep(two, three))
    assert keep(one, one) == one
    both_of_draft_0 = one.seal is None and two.seal is None and one != two
    assert (keep(one, two) == keep(two, one)) is not both_of_draft_0


def test_real_files_merge_like_their_versions() -> None:
    def take(held: OriginFile | None, data: bytes) -> OriginFile:
        offered = accept(data, now=NOW, verified=held.verified if held else None)
        return offered if held is None or newest(held.version, offered.version).takes else held

    for several in itertools.permutations([TODAY, TOMORROW, SAME_SEAL, BARE, DRAFT], 3):
        held: OriginFile | None = None
        for data in several:
            held = take(held, data)
        assert held is not None
        assert held.version == reduce(keep, (accept(data, now=NOW).version for data in several))
