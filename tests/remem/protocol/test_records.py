"""Records: every way in which one signed line can be wrong, and what it says where it is right."""

from dataclasses import FrozenInstanceError
from datetime import UTC, datetime

import pytest

from remem.protocol.canonical import JSON
from remem.protocol.errors import ProtocolError
from remem.protocol.records import (
    Confirmation,
    Denial,
    Lesson,
    Revocation,
    Seal,
    Unknown,
    parse_record,
    read_record,
    sign_record,
)

from . import forge
from .forge import (
    HASHES,
    KEY,
    LAST_SEAL,
    OTHER,
    SEAL,
    confirmation,
    denial,
    lesson,
    revocation,
    unknown,
    whole,
    without,
)

SIGNATURE = "0" * 128


def refusal(line: bytes) -> str:
    with pytest.raises(ProtocolError) as caught:
        parse_record(line)
    assert str(caught.value).isascii()
    return caught.value.code


# --- what a record says ---


def test_a_lesson_says_all_its_fields() -> None:
    line = forge.line(whole(lesson(parents=[HASHES[2], HASHES[1]], sealed=True)))
    record = parse_record(line)
    assert isinstance(record, Lesson)
    assert (record.key, record.line, record.sealed, record.type) == (KEY.public, line, True, "lesson")
    assert (record.id, record.text, record.kind) == ("lesson-0", "the build broke 0 times", "error")
    assert (record.seen, record.strength, record.parents) == (2, 1.5, (HASHES[2], HASHES[1]))
    assert record.updated == record.time == datetime(2026, 2, 28, tzinfo=UTC)
    assert record.hash == record.subject


def test_a_confirmation_says_what_and_when() -> None:
    record = parse_record(forge.line(whole(confirmation(3))))
    assert isinstance(record, Confirmation)
    assert (record.type, record.subject, record.time) == ("confirm", HASHES[3], datetime(2026, 2, 27, tzinfo=UTC))


def test_a_revocation_may_give_its_reason() -> None:
    record = parse_record(forge.line(whole(revocation(3))))
    assert isinstance(record, Revocation)
    assert (record.type, record.subject, record.reason) == ("revoke", HASHES[3], "it was wrong")
    silent = parse_record(forge.line(whole(without(revocation(3), "reason"))))
    assert isinstance(silent, Revocation)
    assert silent.reason is None


def test_a_denial_names_a_key_and_its_reason() -> None:
    record = parse_record(forge.line(whole(denial(3))))
    assert isinstance(record, Denial)
    assert (record.type, record.subject, record.reason) == ("deny", f"{3:064x}", "a campaign")


@pytest.mark.parametrize(("number", "last"), [(1, False), (LAST_SEAL - 1, False), (LAST_SEAL, True)])
def test_a_seal_is_the_last_at_one_number_only(number: int, last: bool) -> None:
    record = parse_record(forge.line(whole({**SEAL, "seal": number})))
    assert isinstance(record, Seal)
    assert (record.type, record.number, record.records, record.digest) == ("seal", number, 0, "0" * 64)
    assert record.last is last


def test_an_unknown_type_is_kept_as_it_came() -> None:
    line = forge.line(whole(unknown(3, hash="of no matter", at=None, nested={"a": [1, {"b": 1.50}]})))
    record = parse_record(line)
    assert isinstance(record, Unknown)
    assert (record.type, record.subject, record.time, record.line) == ("unknown", "", None, line)


def test_unknown_fields_are_kept_and_ignored() -> None:
    line = forge.line(whole(confirmation(0, zebra=[None], aardvark={"sig": 1})))
    assert parse_record(line).line == line


def test_a_record_is_frozen() -> None:
    record = parse_record(forge.line(whole(confirmation(3))))
    with pytest.raises(FrozenInstanceError):
        setattr(record, "line", b"{}")  # noqa: B010 -- a checker refuses the plain assignment


# --- what is refused ---


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        pytest.param(without(whole(lesson()), "v"), "field_missing", id="no version"),
        pytest.param(whole(lesson(v=2)), "version", id="version 2"),
        pytest.param(whole(lesson(v=0)), "version", id="version 0"),
        pytest.param(whole(lesson(v="1")), "version", id="a version in quotes"),
        pytest.param(whole(lesson(v=1.0)), "version", id="a version with a fraction"),
        pytest.param(whole(lesson(v=True)), "version", id="true is not 1"),
        pytest.param(whole(lesson(v=None)), "version", id="null is no version"),
        pytest.param(without(whole(lesson()), "key"), "field_missing", id="no key"),
        pytest.param(whole(lesson(key=1)), "field_type", id="a key that is a number"),
        pytest.param(whole(lesson(key="")), "key_form", id="an empty key"),
        pytest.param(whole(lesson(key=KEY.public.hex.upper())), "key_form", id="a key in upper case"),
        pytest.param(whole(lesson(key="01" + "00" * 31)), "key_invalid", id="the identity as a key"),
        pytest.param(without(whole(lesson()), "origin"), "field_missing", id="no origin"),
        pytest.param(whole(lesson(origin=OTHER.public.origin)), "origin_mismatch", id="another's origin"),
        pytest.param(whole(lesson(origin=KEY.public.origin.upper())), "origin_mismatch", id="an origin in upper case"),
        pytest.param(whole(lesson(origin=KEY.public.origin[:15])), "origin_mismatch", id="an origin cut short"),
        pytest.param(whole(lesson(sealed=False)), "field_value", id="sealed and false"),
        pytest.param(whole(lesson(sealed=1)), "field_value", id="sealed and 1"),
        pytest.param(whole(lesson(sealed="true")), "field_value", id="sealed and a string"),
        pytest.param(whole(lesson(sealed=None)), "field_value", id="sealed and null"),
        pytest.param(whole(unknown(sealed=False)), "field_value", id="an unknown type is sealed or not too"),
        pytest.param(whole({**lesson(), **confirmation()}), "record_type", id="a lesson and a confirmation"),
        pytest.param(whole({**revocation(), **confirmation()}), "record_type", id="a revocation and a confirmation"),
        pytest.param(whole({**SEAL, **denial()}), "record_type", id="a seal and a denial"),
        pytest.param(whole(confirmation(text=None)), "record_type", id="a type's field counts whatever its value"),
    ],
)
def test_what_every_line_carries_is_checked(fields: dict[str, JSON], code: str) -> None:
    assert refusal(forge.line(fields)) == code


MISSING = [
    *((lesson(), name) for name in ("kind", "hash", "id", "seen", "strength", "updated")),
    (denial(), "reason"),
    (confirmation(sealed=True), "at"),
    (revocation(sealed=True), "at"),
    (denial(sealed=True), "at"),
    *((SEAL, name) for name in ("at", "records", "digest", "sealed")),
]


@pytest.mark.parametrize(
    ("fields", "name"), [pytest.param(*case, id=f"{min(case[0])}… without {case[1]}") for case in MISSING]
)
def test_a_record_has_all_the_fields_of_its_type(fields: dict[str, JSON], name: str) -> None:
    parse_record(forge.line(whole(fields)))
    assert refusal(forge.line(whole(without(fields, name)))) == "field_missing"


@pytest.mark.parametrize("fields", [confirmation(), revocation(), denial()], ids=["confirm", "revoke", "deny"])
def test_only_draft_0_knows_no_time(fields: dict[str, JSON]) -> None:
    assert parse_record(forge.line(whole(without(fields, "at")))).time is None
    assert refusal(forge.line(whole(without({**fields, "sealed": True}, "at")))) == "field_missing"
    assert refusal(forge.line(whole({**fields, "at": None}))) == "field_type"


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        pytest.param(lesson(text=1), "field_type", id="a text that is a number"),
        pytest.param(lesson(text=None), "field_type", id="a text that is null"),
        pytest.param(lesson(id=1), "field_type", id="an id that is a number"),
        pytest.param(lesson(kind=["error"]), "field_type", id="a kind in an array"),
        pytest.param(lesson(kind=""), "field_value", id="an empty kind"),
        pytest.param(lesson(kind="Error"), "field_value", id="a kind in upper case"),
        pytest.param(lesson(kind="errors"), "field_value", id="a kind that begins with a known one"),
        pytest.param(lesson(kind="surprisee"), "field_value", id="another that begins with a known one"),
        pytest.param(lesson(kind="a" * 17), "field_value", id="a kind of 17 letters"),
        pytest.param(lesson(kind="a-b"), "field_value", id="a kind with a mark"),
        pytest.param(lesson(kind="error\n"), "field_value", id="a kind with a line feed"),
        pytest.param(lesson(seen=0), "field_value", id="seen 0 times"),
        pytest.param(lesson(seen=-1), "field_value", id="seen -1 times"),
        pytest.param(lesson(seen=1.0), "field_type", id="seen with a fraction"),
        pytest.param(lesson(seen=True), "field_type", id="seen true"),
        pytest.param(lesson(seen="1"), "field_type", id="seen in quotes"),
        pytest.param(lesson(strength=-1), "field_value", id="a negative strength"),
        pytest.param(lesson(strength=-0.5), "field_value", id="a negative strength with a fraction"),
        pytest.param(lesson(strength=True), "field_type", id="a strength of true"),
        pytest.param(lesson(strength="1"), "field_type", id="a strength in quotes"),
        pytest.param(lesson(strength=None), "field_type", id="a strength of null"),
        pytest.param(lesson(updated="2026-02-28"), "time_form", id="a day for a time"),
        pytest.param(lesson(updated=0), "field_type", id="a time in seconds"),
        pytest.param(lesson(hash=HASHES[0][:-1]), "field_value", id="a hash of 31 digits"),
        pytest.param(lesson(hash=HASHES[0] + "0"), "field_value", id="a hash of 33 digits"),
        pytest.param(lesson(hash="A" * 32), "field_value", id="a hash in upper case"),
        pytest.param(lesson(hash=0), "field_type", id="a hash that is a number"),
        pytest.param(lesson(parents=[]), "field_value", id="no parents in an array"),
        pytest.param(lesson(parents=None), "field_type", id="parents that are null"),
        pytest.param(lesson(parents=HASHES[0]), "field_type", id="parents that are a string"),
        pytest.param(lesson(parents={}), "field_type", id="parents that are an object"),
        pytest.param(lesson(parents=[HASHES[0], HASHES[0]]), "field_value", id="a parent twice"),
        pytest.param(lesson(parents=[HASHES[0], 1]), "field_value", id="a parent that is a number"),
        pytest.param(lesson(parents=["x"]), "field_value", id="a parent that is no hash"),
        pytest.param(confirmation(confirm=1), "field_type", id="a confirmation of a number"),
        pytest.param(confirmation(confirm=None), "field_type", id="a confirmation of null"),
        pytest.param(confirmation(confirm="x"), "field_value", id="a confirmation of no hash"),
        pytest.param(confirmation(confirm="0" * 64), "field_value", id="a confirmation of a key"),
        pytest.param(revocation(revoke="x"), "field_value", id="a revocation of no hash"),
        pytest.param(revocation(reason=None), "field_type", id="a reason that is null"),
        pytest.param(revocation(reason=1), "field_type", id="a reason that is a number"),
        pytest.param(denial(deny=HASHES[0]), "field_value", id="a denial of a hash"),
        pytest.param(denial(reason=None), "field_type", id="a denial's reason that is null"),
        pytest.param({**SEAL, "seal": 0}, "field_value", id="seal 0"),
        pytest.param({**SEAL, "seal": -1}, "field_value", id="seal -1"),
        pytest.param({**SEAL, "seal": 1.0}, "field_type", id="a seal with a fraction"),
        pytest.param({**SEAL, "seal": "1"}, "field_type", id="a seal in quotes"),
        pytest.param({**SEAL, "seal": LAST_SEAL + 1}, "number_range", id="a seal above the last"),
        pytest.param({**SEAL, "records": -1}, "field_value", id="-1 records"),
        pytest.param({**SEAL, "records": 1.0}, "field_type", id="records with a fraction"),
        pytest.param({**SEAL, "digest": "0" * 63}, "field_value", id="a digest of 63 digits"),
        pytest.param({**SEAL, "digest": "F" * 64}, "field_value", id="a digest in upper case"),
        pytest.param({**SEAL, "at": "now"}, "time_form", id="a seal at no time"),
    ],
)
def test_a_field_of_another_form_is_refused(fields: dict[str, JSON], code: str) -> None:
    assert refusal(forge.line(whole(fields))) == code


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param(lesson(text="", id=""), id="acceptance asks nothing of a text"),
        pytest.param(lesson(hash=HASHES[0]), id="nor that the hash is the text's"),
        pytest.param(lesson(kind="praise"), id="a kind that nobody knows"),
        pytest.param(lesson(kind="erro"), id="the beginning of a known kind"),
        pytest.param(lesson(strength=0), id="a strength of 0"),
        pytest.param(lesson(strength=10), id="a strength without a fraction"),
        pytest.param(denial(deny="f" * 64), id="the denial of a key that is no point"),
        pytest.param({**SEAL, "records": 10_000}, id="a seal of more records than a file may have"),
    ],
)
def test_what_acceptance_lets_pass(fields: dict[str, JSON]) -> None:
    line = forge.line(whole(fields))
    assert parse_record(line).line == line


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("1970-01-01T00:00:00Z", datetime(1970, 1, 1, tzinfo=UTC)),
        ("2099-12-31T23:59:59.999999Z", datetime(2099, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)),
        ("2024-02-29T12:00:00+00:00", datetime(2024, 2, 29, 12, tzinfo=UTC)),
        ("2026-01-02T03:04:05.5Z", datetime(2026, 1, 2, 3, 4, 5, 500_000, tzinfo=UTC)),
        ("2026-01-02T03:04:05.000001+00:00", datetime(2026, 1, 2, 3, 4, 5, 1, tzinfo=UTC)),
    ],
)
def test_a_time_is_read(text: str, moment: datetime) -> None:
    assert parse_record(forge.line(whole(confirmation(at=text)))).time == moment


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="nothing"),
        pytest.param("1969-12-31T23:59:59Z", id="before 1970"),
        pytest.param("2100-01-01T00:00:00Z", id="after 2099"),
        pytest.param("2026-02-29T00:00:00Z", id="a day that does not exist"),
        pytest.param("2026-13-01T00:00:00Z", id="a month that does not exist"),
        pytest.param("2026-00-01T00:00:00Z", id="month 0"),
        pytest.param("2026-01-01T24:00:00Z", id="hour 24"),
        pytest.param("2026-01-01T00:60:00Z", id="minute 60"),
        pytest.param("2016-12-31T23:59:60Z", id="a leap second"),
        pytest.param("2026-01-01T00:00:00", id="no zone"),
        pytest.param("2026-01-01T00:00:00+01:00", id="another zone"),
        pytest.param("2026-01-01T00:00:00-00:00", id="a zone of minus nothing"),
        pytest.param("2026-01-01T00:00:00z", id="a zone in lower case"),
        pytest.param("2026-01-01t00:00:00Z", id="a lower-case t"),
        pytest.param("2026-01-01 00:00:00Z", id="a space for the T"),
        pytest.param("2026-01-01T00:00:00.Z", id="an empty fraction"),
        pytest.param("2026-01-01T00:00:00.0000000Z", id="seven digits of a fraction"),
        pytest.param("2026-01-01T00:00:00,5Z", id="a comma for the point"),
        pytest.param("2026-01-01T00:00Z", id="no seconds"),
        pytest.param("20260101T000000Z", id="the basic form"),
        pytest.param("2026-W01-1T00:00:00Z", id="a week"),
        pytest.param("+2026-01-01T00:00:00Z", id="a sign"),
        pytest.param("２026-01-01T00:00:00Z", id="a wide digit"),
        pytest.param("2026-01-01T00:00:00Z\n", id="a line feed behind"),
    ],
)
def test_a_time_in_another_form_is_refused(text: str) -> None:
    assert refusal(forge.line(whole(confirmation(at=text)))) == "time_form"


# --- the signature and its place ---


def edited(old: bytes, new: bytes) -> bytes:
    line = forge.line(whole(confirmation(zebra={"a": "b"})))
    assert line.count(old) == 1
    return line.replace(old, new)


@pytest.mark.parametrize(
    ("line", "code"),
    [
        pytest.param(forge.spell(whole(confirmation())), "signature_place", id="no signature"),
        pytest.param(forge.spell(whole(confirmation(sig=None))), "signature_place", id="a signature of null"),
        pytest.param(forge.spell(whole(confirmation(sig=1))), "signature_place", id="a number"),
        pytest.param(forge.spell(whole(confirmation(sig=[SIGNATURE]))), "signature_place", id="in an array"),
        pytest.param(forge.spell(whole(confirmation(sig={"sig": SIGNATURE}))), "signature_place", id="in itself"),
        pytest.param(forge.spell(whole(confirmation(zebra={"sig": SIGNATURE}))), "signature_place", id="only nested"),
        pytest.param(forge.line(whole(confirmation(zebra={"sig": SIGNATURE}))), "signature_place", id="nested as well"),
        pytest.param(forge.line(whole(confirmation(zebra={"sig": ""}))), "signature_place", id="nested and empty"),
        pytest.param(
            forge.line(whole({**confirmation(), 'a"sig': "x"})), "signature_place", id="at the end of another name"
        ),
        pytest.param(edited(b'"sig":', b'"SIG":'), "field_order", id="in upper case"),
        pytest.param(
            forge.spell(whole(confirmation(SIG=SIGNATURE))), "signature_place", id="in upper case and in order"
        ),
        pytest.param(edited(b'"sig":', b'"\\u0073ig":'), "escape", id="escaped"),
        pytest.param(edited(b'"sig":', b'"sig":"","sig":'), "duplicate_field", id="twice"),
        pytest.param(edited(b'"sig":', b'"sig" :'), "white_space", id="with a space"),
        pytest.param(forge.spell(whole(confirmation(sig=""))), "signature_form", id="an empty one"),
        pytest.param(forge.spell(whole(confirmation(sig="0" * 127))), "signature_form", id="127 digits"),
        pytest.param(forge.spell(whole(confirmation(sig="0" * 129))), "signature_form", id="129 digits"),
        pytest.param(forge.spell(whole(confirmation(sig="A" * 128))), "signature_form", id="upper-case digits"),
        pytest.param(forge.spell(whole(confirmation(sig="é" * 128))), "signature_form", id="no digits"),
        pytest.param(forge.spell(whole(confirmation(sig=SIGNATURE))), "signature_invalid", id="of nothing"),
        pytest.param(forge.line(whole(confirmation()), OTHER), "signature_invalid", id="another's"),
    ],
)
def test_the_signature_stands_once_and_is_the_keys(line: bytes, code: str) -> None:
    assert refusal(line) == code


def test_a_signature_in_a_string_is_no_second_one() -> None:
    line = forge.line(whole(confirmation(zebra='"sig":"')))
    assert parse_record(line).line == line
    assert line.count(b"sig") == 2


@pytest.mark.parametrize("before", ["", '"', "\\", '\\"', ",", '{"'])
def test_a_string_cannot_look_like_a_signature(before: str) -> None:
    line = forge.line(whole(confirmation(r=f'{before}"sig":"{SIGNATURE}",')))
    assert parse_record(line).line == line


def test_the_signed_bytes_are_the_line_without_its_signature() -> None:
    line = forge.line(whole(confirmation()))
    start = line.index(b'"sig":"')
    signed = line[:start] + line[start + 137 :]
    assert signed == forge.spell(whole(confirmation()))
    assert KEY.public.verify(signed, bytes.fromhex(line[start + 7 : start + 135].decode()))


def test_reading_judges_the_form_and_leaves_the_signature() -> None:
    line = forge.spell(whole(confirmation(sig=SIGNATURE)))
    assert read_record(line).line == line
    assert refusal(line) == "signature_invalid"


# --- signing ---

ROOM = 8_192 - len(forge.spell(whole(lesson(text=""))))


@pytest.mark.parametrize(
    "fields",
    [lesson(), lesson(parents=[HASHES[0]], sealed=True), confirmation(), revocation(), denial(), unknown(), SEAL],
    ids=["lesson", "merged lesson", "confirm", "revoke", "deny", "unknown", "seal"],
)
def test_what_we_sign_is_what_anyone_reads(fields: dict[str, JSON]) -> None:
    line = sign_record(KEY, fields)
    assert line == forge.line(whole(fields))
    assert parse_record(line).line == line


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        pytest.param(lesson(v=1), "got v", id="a version of the caller's"),
        pytest.param(lesson(sig=SIGNATURE, key=""), "got key, sig", id="a key and a signature of the caller's"),
        pytest.param(without(lesson(), "hash"), "field", id="a lesson without its hash"),
        pytest.param(lesson(strength=1e-9), "not a line", id="a strength that needs an exponent"),
        pytest.param(lesson(text="x" * 9_000), "not a line", id="a text that is too long for a line"),
        pytest.param(lesson(text="x" * ROOM), "8192 bytes", id="a text that leaves no room for the signature"),
        pytest.param(confirmation(zebra={"sig": "x"}), "not a record", id="a second signature"),
        pytest.param({**SEAL, "seal": 0}, "not a record", id="seal 0"),
    ],
)
def test_what_makes_no_record_is_our_own_mistake(fields: dict[str, JSON], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        sign_record(KEY, fields)
