"""The vectors of one record (PROTOCOL.md, section 5): every line here is signed anew after it was broken."""

from __future__ import annotations

from typing import Any

from . import curve
from .vectors_base import (
    ADA,
    AT,
    BEN,
    HASH,
    LAST_SEAL,
    NOW_SECONDS,
    Fields,
    Vectors,
    accept,
    confirm,
    deny,
    digest,
    lesson,
    line,
    raw,
    refuse,
    revoke,
    unsigned,
)

SEALED: Fields = {"sealed": True}
SEAL: Fields = {"seal": NOW_SECONDS, "at": AT, "records": 0, "digest": digest(b""), "sealed": True}


def _good(comment: str, fields: Fields, type_: str, **values: Any) -> Fields:
    given = {"line": line(ADA, fields)}
    return accept(comment, given, type=type_, signed_hex=unsigned(ADA, fields).hex(), **values)


def _bad(comment: str, fields: Fields, code: str) -> Fields:
    return refuse(comment, {"line": line(ADA, fields)}, code)


def record_vectors() -> Vectors:
    return {
        **_types(),
        **_kept(),
        **_common(),
        **_of_a_lesson(),
        **_of_others(),
        **_of_a_seal(),
        **_times(),
        **_order(),
    }


def _types() -> Vectors:
    parent = "00112233445566778899aabbccddeeff"
    return {
        "lesson": _good("draft 0 had this line, without a seal", lesson(), "lesson", subject=HASH, time=AT),
        "lesson-sealed": _good("the same in a sealed file", lesson() | SEALED, "lesson", subject=HASH, time=AT),
        "lesson-with-parents": _good("made from another", lesson(parents=[parent]), "lesson", subject=HASH),
        "lesson-at-its-least": _good(
            "seen 1 and strength 0 are the least, and acceptance asks nothing of the text",
            lesson(text="", id="", strength=0, seen=1, hash=parent),
            "lesson",
            subject=parent,
        ),
        "lesson-of-an-unknown-kind": _good("a kind that version 1 does not know", lesson(kind="insight"), "lesson"),
        "lesson-of-a-kind-of-16-letters": _good("the longest kind", lesson(kind="abcdefghijklmnop"), "lesson"),
        "confirmation": _good("a confirmation", confirm() | SEALED, "confirm", subject=HASH, time=AT),
        "confirmation-of-draft-0": _good(
            "without at, in a file without a seal", {"confirm": HASH}, "confirm", subject=HASH, time=None
        ),
        "revocation": _good("without a reason", revoke() | SEALED, "revoke", subject=HASH, time=AT),
        "revocation-with-a-reason": _good(
            "with one", revoke(reason="It was true of one machine only.") | SEALED, "revoke", subject=HASH
        ),
        "revocation-of-draft-0": _good("without at", {"revoke": HASH}, "revoke", subject=HASH, time=None),
        "denial": _good("a denial of a key", deny(BEN) | SEALED, "deny", subject=BEN.hex, time=AT),
        "denial-of-draft-0": _good("without at", deny(BEN, at=None), "deny", subject=BEN.hex, time=None),
        "denial-of-no-point": _good(
            "64 hex digits are enough to be denied", {**deny(BEN), "deny": "0" * 64}, "deny", subject="0" * 64
        ),
        "seal": _good("a seal over nothing", SEAL, "seal", subject=str(NOW_SECONDS), time=AT),
        "seal-of-number-1": _good("the least number", SEAL | {"seal": 1}, "seal", subject="1"),
        "seal-of-the-last-number": _good("the last seal", SEAL | {"seal": LAST_SEAL}, "seal", subject=str(LAST_SEAL)),
        "unknown": _good("no field that names a type", {"note": "x"}, "unknown", subject="", time=None),
        "unknown-sealed": _good("the same in a sealed file", {"note": "x"} | SEALED, "unknown"),
        "nothing-but-what-every-line-carries": _good("the shortest record", {}, "unknown"),
    }


def _kept() -> Vectors:
    """Fields that version 1 does not know are kept and ignored, whatever they hold."""
    deep: Fields = {"extra": {"a": [{"b": [[["c", raw("1.50"), None, True, "é"]]]}]}}
    pad = 8_192 - len(line(ADA, lesson(pad="")).encode())
    full = line(ADA, lesson(pad="x" * pad))
    before, after = full.split("x" * pad)
    return {
        "unknown-fields-down-to-depth-8": _good("kept", lesson() | deep, "lesson", subject=HASH),
        "a-number-of-24-characters-in-an-unknown-field": _good(
            "kept", confirm(extra=raw("0.1234567890123456789012")), "confirm"
        ),
        "a-lesson-with-at": _good("at is no field of a lesson", lesson(at="soon"), "lesson", time=AT),
        "a-confirmation-with-updated": _good(
            "updated is no field of a confirmation", confirm(updated=raw("7")), "confirm", time=AT
        ),
        "a-confirmation-with-a-reason": _good("nor is reason", confirm(reason=raw("7")), "confirm"),
        "an-unknown-record-with-at": _good("an unknown type has no time", {"at": "soon"}, "unknown", time=None),
        "a-strength-that-ends-in-zero": _good("1.50 stays 1.50", lesson(strength=raw("1.50")), "lesson"),
        "a-line-of-8192-bytes": accept(
            "exactly at the limit",
            {"line_parts": [before, {"repeat": "x", "times": pad}, after]},
            type="lesson",
            signed_bytes=8_192 - len('"sig":"",') - 128,
        ),
    }


def _common() -> Vectors:
    mixed = curve.encode(curve.IDENTITY).hex()
    return {
        "no-v": _bad("every line carries v", lesson(v=None), "field_missing"),
        "v-2": _bad("another version", lesson(v=2), "version"),
        "v-with-a-fraction": _bad("1.0 is not 1", lesson(v=raw("1.0")), "version"),
        "v-a-string": _bad("a string is not a number", lesson(v="1"), "version"),
        "v-true": _bad("true is not 1", lesson(v=True), "version"),
        "no-key": _bad("every line carries its key", lesson(key=None), "field_missing"),
        "key-a-number": _bad("a key is a string", lesson(key=7), "field_type"),
        "key-in-upper-case": _bad("hex is lower case", lesson(key=ADA.hex.upper()), "key_form"),
        "key-the-identity": _bad("no key is so weak", lesson(key=mixed), "key_invalid"),
        "no-origin": _bad("every line carries its origin", lesson(origin=None), "field_missing"),
        "origin-null": _bad("an origin is a string", lesson(origin=raw("null")), "field_type"),
        "origin-of-another-key": _bad("it is computed from the key", lesson(origin=BEN.origin), "origin_mismatch"),
        "origin-in-upper-case": _bad("hex is lower case", lesson(origin=ADA.origin.upper()), "origin_mismatch"),
        "sealed-false": _bad("true or absent", lesson(sealed=False), "field_value"),
        "sealed-null": _bad("true or absent", lesson(sealed=raw("null")), "field_value"),
        "sealed-1": _bad("1 is not true", lesson(sealed=1), "field_value"),
        "a-lesson-and-a-confirmation": _bad("one type a line", lesson() | confirm(), "record_type"),
        "a-seal-and-a-revocation": _bad("one type a line", SEAL | revoke(), "record_type"),
        "two-types-one-of-them-null": _bad(
            "a field names its type whatever it holds", confirm(deny=raw("null")), "record_type"
        ),
    }


def _of_a_lesson() -> Vectors:
    one = "00112233445566778899aabbccddeeff"
    missing = ("hash", "id", "kind", "seen", "strength", "updated")
    types: dict[str, Fields] = {
        "text-null": {"text": raw("null")},
        "id-a-number": {"id": 7},
        "kind-a-list": {"kind": ["error"]},
        "seen-with-a-fraction": {"seen": raw("2.0")},
        "seen-true": {"seen": True},
        "seen-a-string": {"seen": "2"},
        "strength-a-string": {"strength": "1.5"},
        "strength-true": {"strength": True},
        "updated-a-number": {"updated": NOW_SECONDS},
        "hash-a-number": {"hash": 7},
        "parents-a-string": {"parents": one},
        "parents-null": {"parents": raw("null")},
    }
    values: dict[str, Fields] = {
        "seen-0": {"seen": 0},
        "strength-below-0": {"strength": raw("-0.5")},
        "hash-in-upper-case": {"hash": HASH.upper()},
        "hash-of-31-digits": {"hash": HASH[:31]},
        "kind-that-begins-with-a-known-one": {"kind": "errors"},
        "kind-that-begins-with-correction": {"kind": "corrections"},
        "kind-that-begins-with-surprise": {"kind": "surprised"},
        "kind-with-a-capital": {"kind": "Error"},
        "kind-of-17-letters": {"kind": "abcdefghijklmnopq"},
        "kind-of-no-letter": {"kind": ""},
        "kind-with-a-line-feed-behind-it": {"kind": "insight\n"},
        "parents-empty": {"parents": []},
        "parents-twice": {"parents": [one, one]},
        "parents-of-another-form": {"parents": [one, one.upper()]},
        "parents-of-another-type": {"parents": [one, 7]},
    }
    return {
        **{
            f"lesson-without-{name}": _bad("a lesson has it", lesson() | {name: None}, "field_missing")
            for name in missing
        },
        **{
            f"lesson-{name}": _bad("of another JSON type", lesson(**change), "field_type")
            for name, change in types.items()
        },
        **{
            f"lesson-{name}": _bad("of a value that is refused", lesson(**change), "field_value")
            for name, change in values.items()
        },
    }


def _of_others() -> Vectors:
    return {
        "confirmation-of-no-hash": _bad("32 hex digits", confirm("abc"), "field_value"),
        "confirmation-of-a-number": _bad("a hash is a string", {"confirm": 7, "at": AT}, "field_type"),
        "confirmation-sealed-without-at": _bad("only draft 0 may lack it", {"confirm": HASH} | SEALED, "field_missing"),
        "confirmation-at-null": _bad("absent is not null", confirm(at=raw("null")), "field_type"),
        "revocation-of-no-hash": _bad("32 hex digits", revoke(HASH.upper()), "field_value"),
        "revocation-sealed-without-at": _bad("only draft 0 may lack it", {"revoke": HASH} | SEALED, "field_missing"),
        "revocation-with-a-reason-of-another-type": _bad("a reason is a string", revoke(reason=7), "field_type"),
        "denial-of-an-origin": _bad("a denial names a whole key", {**deny(BEN), "deny": BEN.origin}, "field_value"),
        "denial-without-a-reason": _bad("a denial says why", deny(BEN, reason=None), "field_missing"),
        "denial-with-a-reason-of-another-type": _bad("a reason is a string", deny(BEN, reason=7), "field_type"),
        "denial-of-draft-0-with-a-false-at": _bad("absent or a time", deny(BEN, at="soon"), "time_form"),
        "revocation-of-draft-0-with-a-false-at": _bad("absent or a time", revoke(at="soon"), "time_form"),
        "denial-sealed-without-at": _bad("only draft 0 may lack it", deny(BEN, at=None) | SEALED, "field_missing"),
    }


def _of_a_seal() -> Vectors:
    cases: dict[str, tuple[Fields, str]] = {
        "without-sealed": ({"sealed": None}, "field_missing"),
        "without-at": ({"at": None}, "field_missing"),
        "without-records": ({"records": None}, "field_missing"),
        "without-digest": ({"digest": None}, "field_missing"),
        "of-number-0": ({"seal": 0}, "field_value"),
        "of-a-fraction": ({"seal": raw("1.0")}, "field_type"),
        "of-a-string": ({"seal": "1"}, "field_type"),
        "with-records-below-0": ({"records": -1}, "field_value"),
        "with-records-of-a-fraction": ({"records": raw("0.0")}, "field_type"),
        "with-a-digest-of-32-digits": ({"digest": HASH}, "field_value"),
    }
    return {
        f"seal-{name}": _bad("a seal has all its fields, each of its form", SEAL | change, code)
        for name, (change, code) in cases.items()
    }


def _times() -> Vectors:
    good = {
        "with-an-offset-of-zero": "2026-11-20T09:30:00+00:00",
        "with-one-digit-of-a-second": "2026-11-20T09:30:00.5Z",
        "with-six-digits-of-a-second": "2026-11-20T09:30:00.123456+00:00",
        "the-first": "1970-01-01T00:00:00Z",
        "the-last": "2099-12-31T23:59:59.999999Z",
        "on-a-leap-day": "2028-02-29T00:00:00Z",
    }
    bad = {
        "without-a-zone": "2026-11-20T09:30:00",
        "with-another-offset": "2026-11-20T10:30:00+01:00",
        "with-a-negative-zero-offset": "2026-11-20T09:30:00-00:00",
        "with-a-small-z": "2026-11-20T09:30:00z",
        "with-a-small-t": "2026-11-20t09:30:00Z",
        "with-a-space": "2026-11-20 09:30:00Z",
        "without-seconds": "2026-11-20T09:30Z",
        "a-day-only": "2026-11-20",
        "with-seven-digits-of-a-second": "2026-11-20T09:30:00.1234567Z",
        "with-a-point-and-no-digit": "2026-11-20T09:30:00.Z",
        "with-a-comma": "2026-11-20T09:30:00,5Z",
        "on-a-day-that-does-not-exist": "2026-02-30T00:00:00Z",
        "on-a-leap-day-of-another-year": "2027-02-29T00:00:00Z",
        "in-month-13": "2026-13-01T00:00:00Z",
        "at-hour-24": "2026-11-20T24:00:00Z",
        "at-minute-60": "2026-11-20T09:60:00Z",
        "at-second-60": "2026-12-31T23:59:60Z",
        "before-1970": "1969-12-31T23:59:59Z",
        "after-2099": "2100-01-01T00:00:00Z",
        "with-digits-of-another-script": "２０２６-11-20T09:30:00Z",
        "with-a-line-feed-behind-it": "2026-11-20T09:30:00Z\n",
    }
    return {
        **{
            f"time-{name}": _good("a time of the protocol", confirm(at=text), "confirm", time=text)
            for name, text in good.items()
        },
        **{
            f"time-{name}": _bad("no time of the protocol", confirm(at=text), "time_form") for name, text in bad.items()
        },
        "time-of-a-lesson": _bad("updated follows the same rule", lesson(updated="yesterday"), "time_form"),
        "time-of-a-seal": _bad("and so does the seal", SEAL | {"at": "yesterday"}, "time_form"),
    }


def _order() -> Vectors:
    """Lines of two faults, of which the one that is read first names the code."""
    two_types = lesson() | confirm()
    cases: dict[str, tuple[Fields, str]] = {
        "v-before-key": (lesson(v=2, key=7), "version"),
        "key-before-origin": (lesson(key=7, origin=None), "field_type"),
        "origin-before-sealed": (lesson(origin=BEN.origin, sealed=False), "origin_mismatch"),
        "sealed-before-the-type": (two_types | {"sealed": False}, "field_value"),
        "id-before-seen": (lesson(id=7, seen=0), "field_type"),
        "updated-before-hash": (lesson(updated="soon", hash=7), "time_form"),
        "hash-before-parents": (lesson(hash=7, parents=[]), "field_type"),
        "at-before-the-reason": (deny(BEN, at="soon", reason=7), "time_form"),
        "sealed-before-the-number-of-a-seal": (SEAL | {"sealed": None, "seal": "1"}, "field_missing"),
        "at-of-a-seal-before-its-digest": (SEAL | {"at": "soon", "digest": 7}, "time_form"),
    }
    comment = "what is read first names the code"
    return {
        **{f"order-{name}": _bad(comment, fields, code) for name, (fields, code) in cases.items()},
        "order-the-type-before-sig": refuse(comment, {"line": line(ADA, two_types, sig="0")}, "record_type"),
        "order-sig-before-the-fields": refuse(comment, {"line": line(ADA, lesson(seen=0), sig="0")}, "signature_form"),
        "order-the-fields-before-the-signature": refuse(
            comment, {"line": line(ADA, lesson(seen=0), sig="00" * 64)}, "field_value"
        ),
    }
