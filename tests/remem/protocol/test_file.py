"""Files: every rule of acceptance by its code and line, what a writer composes, and which of two is the newest."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta, timezone
from hashlib import blake2b

import pytest
from nacl.bindings import crypto_sign_open

from remem.protocol import keys
from remem.protocol.canonical import JSON
from remem.protocol.errors import Deferred, ProtocolError
from remem.protocol.file import Verdict, Verified, Version, accept, compose, newest, topic_of
from remem.protocol.records import Lesson, Revocation, Seal, Unknown
from remem.protocol.times import format_time, unix_seconds

from . import forge
from .forge import (
    HASHES,
    KEY,
    LAST_SEAL,
    NOW,
    OTHER,
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

CONTENTS = [lesson(0), confirmation(1), revocation(2), denial(3), unknown(4), unknown(5)]
FILE = forge.sealed(CONTENTS)
LINES = FILE.split(b"\n")[:-1]


def refusal(data: bytes, now: datetime = NOW) -> tuple[str, int | None]:
    with pytest.raises(ProtocolError) as caught:
        accept(data, now=now)
    assert str(caught.value).isascii()
    return caught.value.code, caught.value.line


def of_key(fields: Mapping[str, JSON]) -> bytes:
    return forge.line(whole({"sealed": True, **fields}))


# --- what is accepted ---


def test_an_accepted_file_keeps_the_bytes_that_came() -> None:
    file = accept(FILE, now=NOW)
    assert file.data == FILE
    assert file.digest == blake2b(FILE, digest_size=32).hexdigest()
    assert (file.key, file.lines) == (KEY.public, tuple(LINES[1:]))
    assert isinstance(file.seal, Seal)
    assert (file.seal.line, file.seal.records) == (LINES[0], 6)
    assert file.version == Version(SECONDS, file.digest)
    assert [record.line for record in file.records] == LINES[1:]
    assert [topic_of(record) for record in file.records] == list(file.topics)
    assert [record.type for record in file.records] == ["lesson", "confirm", "revoke", "deny", "unknown", "unknown"]


def test_a_file_of_draft_0_has_no_seal() -> None:
    data = forge.unsealed([lesson(0), without(confirmation(1), "at"), unknown()])
    file = accept(data, now=NOW)
    assert (file.data, file.seal, file.verified) == (data, None, None)
    assert file.version == Version(None, file.digest)
    assert [record.time is None for record in file.records] == [False, True, True]


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(forge.sealed([]), id="a seal alone"),
        pytest.param(forge.sealed([], seal=1), id="seal 1"),
        pytest.param(forge.sealed([], seal=SECONDS + 86_400), id="a seal a day above its time"),
        pytest.param(forge.sealed([], seal=LAST_SEAL), id="a last seal over nothing"),
        pytest.param(forge.sealed([revocation(1), revocation(2)], seal=LAST_SEAL), id="a last seal over revocations"),
        pytest.param(forge.sealed([confirmation(1), revocation(1)]), id="two types about one lesson"),
        pytest.param(forge.sealed([lesson(1), revocation(revoke=lesson(1)["hash"])]), id="a lesson withdrawn"),
        pytest.param(forge.sealed([denial(1), denial(2)]), id="one type about two keys"),
        pytest.param(forge.sealed([unknown(1), unknown(2)]), id="unknown types say nothing twice"),
        pytest.param(forge.unsealed([revocation(1)]), id="one line of draft 0"),
        pytest.param(forge.unsealed([unknown(n) for n in range(1_000)]), id="1,000 records"),
    ],
)
def test_what_is_accepted(data: bytes) -> None:
    assert accept(data, now=NOW).data == data


# --- what is refused ---


@pytest.mark.parametrize(
    ("data", "code", "line"),
    [
        pytest.param(b"", "file_empty", None, id="no byte"),
        pytest.param(b"x" * 262_145, "file_size", None, id="262,145 bytes"),
        pytest.param(b"x" * 262_143 + b"\n", "line_size", 1, id="262,144 bytes are no fault of the file's"),
        pytest.param(b"\n", "blank_line", 1, id="a blank line alone"),
        pytest.param(FILE + b"\n", "blank_line", 8, id="a blank line behind"),
        pytest.param(b"\n" + FILE, "blank_line", 1, id="a blank line in front"),
        pytest.param(FILE.replace(b"\n", b"\n\n", 1), "blank_line", 2, id="a blank line between"),
        pytest.param(FILE[:-1], "line_end", 7, id="no LF at the end"),
        pytest.param(FILE.replace(b"\n", b"\r\n"), "carriage_return", 1, id="CRLF"),
        pytest.param(FILE[:-1] + b"\r\n", "carriage_return", 7, id="a CR at the end"),
        pytest.param(FILE.replace(b"\n", b"\r"), "carriage_return", 1, id="CR for LF"),
        pytest.param(b"\xef\xbb\xbf" + FILE, "byte_order_mark", 1, id="a byte order mark"),
        pytest.param(b"{}\n" * 1_002, "record_count", None, id="1,002 lines"),
        pytest.param(forge.unsealed([unknown(n) for n in range(1_001)]), "record_count", None, id="1,001 records"),
        pytest.param(join([*LINES[:3], b"{}", *LINES[3:]]), "field_missing", 4, id="a line that is no record"),
        pytest.param(FILE.decode().encode("utf-16"), "line_end", 8, id="UTF-16"),
    ],
)
def test_the_bytes_are_lines(data: bytes, code: str, line: int | None) -> None:
    assert refusal(data) == (code, line)


OTHERS = forge.line(whole({"sealed": True, **confirmation(9)}, OTHER), OTHER)


@pytest.mark.parametrize(
    ("data", "code", "line"),
    [
        pytest.param(join([forge.seal([LINES[1], OTHERS]), LINES[1], OTHERS]), "key_mixed", 3, id="another's line"),
        pytest.param(
            join([forge.seal(LINES[1:], OTHER), *LINES[1:]]), "key_mixed", 2, id="another's seal over all lines"
        ),
        pytest.param(
            forge.unsealed([confirmation(1)]) + forge.unsealed([confirmation(2)], OTHER),
            "key_mixed",
            2,
            id="two files of draft 0",
        ),
        pytest.param(join(LINES[1:]), "unsealed_line", 1, id="the seal cut off"),
        pytest.param(
            forge.unsealed([confirmation(9)]) + join(LINES[1:]), "unsealed_line", 2, id="a line of a sealed file"
        ),
        pytest.param(
            join([forge.seal([bare := forge.line(whole(confirmation(9)))]), bare]),
            "unsealed_line",
            2,
            id="a line of draft 0 under a seal",
        ),
        pytest.param(join([*LINES[1:], LINES[0]]), "unsealed_line", 1, id="the seal at the end"),
        pytest.param(forge.unsealed([confirmation(9)]) + FILE, "seal_place", 2, id="a seal behind a line of draft 0"),
        pytest.param(join([LINES[0], *LINES]), "seal_place", 2, id="the seal twice"),
        pytest.param(join([forge.seal(LINES), *LINES]), "seal_place", 2, id="a seal over a sealed file"),
        pytest.param(
            join([forge.seal([LINES[1], LINES[1]]), LINES[1], LINES[1]]),
            "duplicate_record",
            3,
            id="a line twice under a seal",
        ),
        pytest.param(forge.sealed([unknown(1), unknown(1)]), "duplicate_record", 3, id="an unknown line twice"),
        pytest.param(
            forge.sealed([confirmation(1), unknown(), confirmation(1, at="2026-01-01T00:00:00Z")]),
            "duplicate_record",
            4,
            id="a confirmation at two times",
        ),
        pytest.param(
            forge.sealed([lesson(1), lesson(1, text="another text")]), "duplicate_record", 3, id="one hash, two texts"
        ),
        pytest.param(
            forge.unsealed([without(revocation(1), "reason"), revocation(1)]),
            "duplicate_record",
            2,
            id="a revocation with a reason and without",
        ),
        pytest.param(forge.sealed(CONTENTS, records=5), "seal_records", 1, id="a seal that counts too few"),
        pytest.param(forge.sealed(CONTENTS, records=7), "seal_records", 1, id="a seal that counts too many"),
        pytest.param(forge.sealed(CONTENTS, digest="0" * 64), "seal_digest", 1, id="a seal of other lines"),
        pytest.param(
            forge.sealed([], seal=SECONDS + 86_401), "seal_time", 1, id="a seal a day and a second above its time"
        ),
        pytest.param(forge.sealed([], seal=LAST_SEAL - 1), "seal_time", 1, id="the seal before the last"),
        pytest.param(
            forge.sealed([], seal=SECONDS + 86_401, at="2026-03-01T12:00:00.999999Z"),
            "seal_time",
            1,
            id="a fraction of a second does not round up",
        ),
        pytest.param(
            forge.sealed([revocation(1), lesson(2)], seal=LAST_SEAL), "last_seal_content", 3, id="last: a lesson"
        ),
        pytest.param(forge.sealed([confirmation(1)], seal=LAST_SEAL), "last_seal_content", 2, id="last: confirms"),
        pytest.param(forge.sealed([denial(1)], seal=LAST_SEAL), "last_seal_content", 2, id="last: denies"),
        pytest.param(forge.sealed([unknown(1)], seal=LAST_SEAL), "last_seal_content", 2, id="last: unknown"),
    ],
)
def test_a_file_is_one_statement_of_one_key(data: bytes, code: str, line: int) -> None:
    assert refusal(data) == (code, line)


@pytest.mark.parametrize("number", range(1, 8))
def test_every_signature_counts_the_seals_too(number: int) -> None:
    lines = list(LINES)
    fields = json.loads(lines[number - 1])
    lines[number - 1] = forge.spell({**fields, "sig": OTHER.sign(forge.spell(without(fields, "sig"))).hex()})
    if number > 1:
        lines[0] = forge.seal(lines[1:])
    assert refusal(join(lines)) == ("signature_invalid", number)


# --- the receiver's clock ---

AHEAD = NOW + timedelta(hours=24)
TOO_FAR = "2026-03-02T12:00:00.000001Z"


@pytest.mark.parametrize(
    ("data", "line"),
    [
        pytest.param(forge.sealed([lesson(1), lesson(2, updated=TOO_FAR)]), 3, id="a lesson"),
        pytest.param(forge.sealed([confirmation(1, at=TOO_FAR)]), 2, id="a confirmation"),
        pytest.param(forge.sealed([revocation(1, at=TOO_FAR)]), 2, id="a revocation"),
        pytest.param(forge.sealed([denial(1, at=TOO_FAR)]), 2, id="a denial"),
        pytest.param(forge.sealed([], at=TOO_FAR), 1, id="a seal"),
        pytest.param(forge.sealed([revocation(1, at=TOO_FAR)], seal=LAST_SEAL), 2, id="under a last seal"),
        pytest.param(forge.unsealed([confirmation(1, at=TOO_FAR)]), 1, id="a line of draft 0"),
    ],
)
def test_a_time_over_a_day_ahead_is_deferred_and_may_come_again(data: bytes, line: int) -> None:
    assert refusal(data) == ("deferred", line)
    with pytest.raises(Deferred):
        accept(data, now=NOW)
    assert accept(data, now=NOW + timedelta(microseconds=1)).data == data


def test_a_time_a_day_ahead_is_accepted() -> None:
    accept(forge.sealed([confirmation(1, at=format_time(AHEAD))], at=format_time(AHEAD)), now=NOW)


def test_a_clock_without_a_zone_is_a_mistake_of_the_caller() -> None:
    with pytest.raises(ValueError, match="expected a clock with a zone, got one without"):
        accept(FILE, now=NOW.replace(tzinfo=None))


def test_the_clock_may_be_of_any_zone() -> None:
    elsewhere = NOW.astimezone(timezone(timedelta(hours=-7)))
    data = forge.sealed([confirmation(1, at=format_time(AHEAD))])
    assert accept(data, now=elsewhere).data == data


def test_a_time_of_an_unknown_type_is_no_time() -> None:
    accept(forge.sealed([unknown(1, at="2099-01-01T00:00:00Z"), unknown(2, at="whenever")]), now=NOW)


def test_only_a_file_that_is_good_in_itself_is_deferred() -> None:
    behind = [of_key(confirmation(1, at=TOO_FAR))]
    assert refusal(join([forge.seal(behind), *behind])) == ("deferred", 2)
    assert refusal(join([forge.seal(behind, digest="0" * 64), *behind])) == ("seal_digest", 1)
    assert refusal(join([forge.seal(behind, records=0), *behind])) == ("seal_records", 1)
    forged = [forge.line(whole({"sealed": True, **confirmation(1, at=TOO_FAR)}), OTHER)]
    assert refusal(join([forge.seal(forged), *forged])) == ("signature_invalid", 2)


# --- lines that were verified before ---


def test_a_line_verified_before_is_not_read_again() -> None:
    verified = accept(FILE, now=NOW).verified
    again = accept(forge.sealed([*CONTENTS[1:], confirmation(7)], seal=SECONDS + 1), now=NOW, verified=verified)
    assert [record.subject for record in again.fresh] == [HASHES[7]]
    assert [record.line for record in again.records] == list(again.lines)
    assert again.verified == Verified(KEY.public, dict(zip(again.lines, again.topics, strict=True)))


def test_one_line_changed_costs_two_signatures(monkeypatch: pytest.MonkeyPatch) -> None:
    verified = accept(FILE, now=NOW).verified
    data = forge.sealed([*CONTENTS[:3], denial(9), *CONTENTS[4:]], seal=SECONDS + 1)
    messages: list[bytes] = []

    def count(signed: bytes, key: bytes) -> bytes:
        messages.append(signed)
        return crypto_sign_open(signed, key)

    monkeypatch.setattr(keys, "crypto_sign_open", count)
    accept(data, now=NOW, verified=verified)
    assert [f"{9:064x}".encode() in message for message in messages] == [False, True]


def test_the_clock_is_not_asked_again_about_a_line_verified_before() -> None:
    """A clock that went back defers what is new, and not what the receiver already has."""
    before = NOW - timedelta(days=3)
    verified = accept(FILE, now=NOW).verified
    at = format_time(before)
    again = forge.sealed(CONTENTS, seal=unix_seconds(before), at=at)
    assert refusal(again, now=before)[0] == "deferred"
    assert accept(again, now=before, verified=verified).data == again


def test_the_seal_is_verified_whatever_was_verified_before() -> None:
    fields = json.loads(LINES[0])
    forged = forge.spell({**fields, "sig": "0" * 128})
    verified = Verified(KEY.public, {forged: "seal 1", **dict.fromkeys(LINES[1:], "")})
    with pytest.raises(ProtocolError) as caught:
        accept(join([forged, *LINES[1:]]), now=NOW, verified=verified)
    assert caught.value.code == "signature_invalid"


# --- what a writer composes ---


def test_what_is_composed_is_what_anyone_accepts() -> None:
    data = compose(KEY, CONTENTS, number=SECONDS, at=NOW)
    assert data == FILE
    assert accept(data, now=NOW).version.seal == SECONDS


def test_a_seal_carries_whole_seconds() -> None:
    file = accept(compose(KEY, [], number=5, at=NOW + timedelta(milliseconds=999)), now=NOW)
    assert file.seal is not None
    assert (file.seal.time, file.seal.records, file.lines) == (NOW, 0, ())


@pytest.mark.parametrize(
    ("contents", "number", "at", "message"),
    [
        pytest.param([], 0, NOW, "not a record", id="seal 0"),
        pytest.param([], SECONDS + 86_401, NOW, "a day above its time", id="a seal too high"),
        pytest.param([], LAST_SEAL + 1, NOW, "not a line", id="a seal above the last"),
        pytest.param([lesson(1)], LAST_SEAL, NOW, "revocations only", id="a lesson under the last seal"),
        pytest.param([lesson(1), lesson(1)], 1, NOW, "no two lines equal", id="a lesson twice"),
        pytest.param([confirmation(1, at=TOO_FAR)], 1, NOW, "24 hours ahead", id="a time ahead of the writer"),
        pytest.param([without(confirmation(1), "at")], 1, NOW, '"at"', id="a confirmation without a time"),
        pytest.param([without(json.loads(LINES[0]), "sig", "v", "key", "origin")], 1, NOW, "a seal", id="two seals"),
        pytest.param([lesson(n, id="x" * 900) for n in range(300)], 1, NOW, "262144 bytes", id="too large"),
        pytest.param([], 1, datetime(2100, 1, 1, tzinfo=UTC), "1970 to 2099", id="a clock beyond 2099"),
        pytest.param([], 1, NOW.replace(tzinfo=None), "a zone", id="a clock without a zone"),
    ],
)
def test_what_nobody_would_accept_is_our_own_mistake(
    contents: list[dict[str, JSON]], number: int, at: datetime, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        compose(KEY, contents, number=number, at=at)


def test_withdrawing_leaves_the_revocations() -> None:
    kept = [content for content in CONTENTS if "revoke" in content]
    file = accept(compose(KEY, kept, number=LAST_SEAL, at=NOW), now=NOW)
    assert file.seal is not None
    assert file.seal.last
    assert [type(record) for record in file.records] == [Revocation]


# --- the newest wins ---


@pytest.mark.parametrize(
    ("held", "offered", "verdict"),
    [
        pytest.param(None, Version(1, "a"), Verdict.NEW, id="nothing was held"),
        pytest.param(None, Version(None, "a"), Verdict.NEW, id="nothing was held, draft 0"),
        pytest.param(Version(1, "a"), Version(1, "a"), Verdict.UNCHANGED, id="the same"),
        pytest.param(Version(None, "a"), Version(None, "a"), Verdict.UNCHANGED, id="the same of draft 0"),
        pytest.param(Version(1, "b"), Version(2, "a"), Verdict.NEWER, id="the higher seal"),
        pytest.param(Version(2, "a"), Version(1, "b"), Verdict.OLDER, id="the lower seal"),
        pytest.param(Version(1, "a"), Version(1, "b"), Verdict.EQUIVOCATION_TAKEN, id="the larger digest"),
        pytest.param(Version(1, "b"), Version(1, "a"), Verdict.EQUIVOCATION_LEFT, id="the smaller digest"),
        pytest.param(Version(2, "a"), Version(LAST_SEAL, "a0"), Verdict.NEWER, id="the last seal"),
        pytest.param(Version(LAST_SEAL, "a"), Version(2, "b"), Verdict.OLDER, id="nothing follows the last seal"),
        pytest.param(Version(None, "b"), Version(1, "a"), Verdict.NEWER, id="a seal replaces draft 0"),
        pytest.param(Version(1, "a"), Version(None, "b"), Verdict.OLDER, id="draft 0 never replaces a seal"),
        pytest.param(Version(None, "b"), Version(None, "a"), Verdict.NEWER, id="draft 0 replaces draft 0"),
    ],
)
def test_the_newest_wins(held: Version | None, offered: Version, verdict: Verdict) -> None:
    assert newest(held, offered) is verdict
    assert verdict.takes is (verdict in {Verdict.NEW, Verdict.NEWER, Verdict.EQUIVOCATION_TAKEN})
    assert verdict.equivocation is verdict.name.startswith("EQUIVOCATION")


def test_records_of_a_file_are_of_their_types() -> None:
    first, *_, last = accept(FILE, now=NOW).records
    assert isinstance(first, Lesson)
    assert isinstance(last, Unknown)
