"""The vectors of a file (PROTOCOL.md, section 6) and of the newest of two (section 7)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .vectors_base import (
    ADA,
    BEN,
    HASH,
    LAST_SEAL,
    NOW,
    NOW_SECONDS,
    Fields,
    Vectors,
    accept,
    by_recipe,
    confirm,
    deny,
    digest,
    joined,
    lesson,
    lesson_hash,
    line,
    refuse,
    revoke,
    seal,
    sealed,
    sealed_lines,
)

OTHER = lesson_hash("error", "another lesson.")
DAY_AHEAD = "2026-12-02T12:00:00Z"
DAY_AND_A_SECOND_AHEAD = "2026-12-02T12:00:01Z"


def _good(comment: str, text: str, seal_: int | None, records: int, now: str = NOW) -> Fields:
    values = {"seal": seal_, "records": records, "digest": digest(text.encode()), "key": ADA.hex}
    return accept(comment, {"now": now, "file": text}, **values)


def _bad(comment: str, text: str, code: str, at: int | None, now: str = NOW) -> Fields:
    return refuse(comment, {"now": now, "file": text}, code, at)


def _sealed(comment: str, records: Sequence[Fields], **changes: Any) -> Fields:
    return _good(comment, sealed(ADA, records, **changes), changes.get("number", NOW_SECONDS), len(records))


def file_vectors() -> Vectors:
    return {**_accepted(), **_limits(), **_counts(), **_bytes(), **_sealing(), **_contents(), **_clock()}


def _accepted() -> Vectors:
    everything = [lesson(), confirm(OTHER), revoke("0" * 32), deny(BEN), {"note": "x"}, {"note": "y"}]
    return {
        "sealed": _sealed("a seal and a lesson", [lesson()]),
        "sealed-with-every-type": _sealed("two records of an unknown type among them", everything),
        "sealed-without-records": _sealed("a key that says nothing any more", []),
        "sealed-over-a-lesson-it-withdraws": _sealed("a lesson and its revocation", [lesson(), revoke()]),
        "sealed-over-a-lesson-it-confirms": _sealed("a file may; it does not count", [lesson(), confirm()]),
        "sealed-with-number-1": _sealed("a seal may lag behind its time without limit", [lesson()], number=1),
        "sealed-long-ago": _sealed("and a file may be old", [lesson()], number=5, at="2001-02-03T04:05:06Z"),
        "sealed-for-good": _sealed("the last seal, over revocations", [revoke(), revoke(OTHER)], number=LAST_SEAL),
        "sealed-for-good-without-records": _sealed("or over nothing", [], number=LAST_SEAL),
        "worked-example": _sealed(
            "the file of section 14",
            [
                lesson(),
                revoke(lesson_hash("error", "the cache is never stale."), reason="It was true of one machine only."),
            ],
        ),
        "draft-0": _good(
            "no seal, and records without at",
            joined([line(ADA, lesson()), line(ADA, {"confirm": OTHER}), line(ADA, {"revoke": "0" * 32})]),
            None,
            3,
        ),
    }


def _parts(lines: Sequence[str], pads: Sequence[int]) -> list[Any]:
    """Describe lines whose field `pad` is so many x, one line of the file after the other."""
    parts: list[Any] = []
    for text, pad in zip(lines, pads, strict=True):
        before, after = text.split("x" * pad) if pad else (text, "")
        parts += [before, {"repeat": "x", "times": pad}, f"{after}\n"] if pad else [f"{text}\n"]
    return parts


def _padded(total: int) -> tuple[list[str], list[int]]:
    """Return the lines of a sealed file of so many bytes, and the length of each line's pad."""
    bare = len(line(ADA, {"a": 10, "pad": "", "sealed": True}))
    pads = [6_900] * 36
    first = len(seal(ADA, [""] * 36)) + 1
    pads.append(total - first - 36 * (bare + 6_900 + 1) - bare - 1)
    lines = sealed_lines(ADA, [{"a": 10 + number, "pad": "x" * pad} for number, pad in enumerate(pads)])
    # The last pad was reckoned with a seal that counts 36 records, which is as long as one that counts 37.
    return [seal(ADA, lines), *lines], [0, *pads]


def _limits() -> Vectors:
    fit, fit_pads = _padded(262_144)
    over, over_pads = _padded(262_145)
    text = joined(fit)
    return {
        "of-262144-bytes": accept(
            "exactly at the limit",
            {"now": NOW, "file_parts": _parts(fit, fit_pads)},
            seal=NOW_SECONDS,
            records=37,
            digest=digest(text.encode()),
            key=ADA.hex,
        ),
        "of-262145-bytes": refuse(
            "a byte more, and otherwise right", {"now": NOW, "file_parts": _parts(over, over_pads)}, "file_size"
        ),
        "of-262146-bytes-with-cr-lf": refuse(
            "the size comes first", {"now": NOW, "file_parts": [{"repeat": "\r\n", "times": 131_073}]}, "file_size"
        ),
    }


def _counts() -> Vectors:
    many: Fields = {"seed": ADA.seed.hex(), "times": 1_000, "counter": "n"}
    alike: Fields = {"seed": ADA.seed.hex(), "times": 1_000, "number": NOW_SECONDS, "at": NOW}

    def held(comment: str, recipe: Fields, number: int | None) -> Fields:
        values = {"seal": number, "records": 1_000, "digest": digest(by_recipe(**recipe).encode()), "key": ADA.hex}
        return accept(comment, {"now": NOW, "file_recipe": recipe}, **values)

    def over(comment: str, recipe: Fields) -> Fields:
        return refuse(comment, {"now": NOW, "file_recipe": recipe | {"times": 1_001}}, "record_count")

    def none(count: int) -> Fields:
        return {"now": NOW, "file_parts": [{"repeat": "x\n", "times": count}]}

    return {
        "of-1000-records": held("exactly at the limit", many, None),
        "of-1001-records": over("a record more", many),
        "of-1000-records-that-say-nothing": held(
            "a seal and 1,000 lines of 260 bytes, which differ in their signatures alone", alike, NOW_SECONDS
        ),
        "of-1001-records-that-say-nothing": over("a record more, and 1,487 bytes are left", alike),
        "of-1002-lines": refuse("counted before any line is read", none(1_002), "record_count"),
        "of-1001-lines-that-are-no-records": refuse("a seal may be among 1,001", none(1_001), "not_an_object", 1),
    }


def _bytes() -> Vectors:
    text = sealed(ADA, [lesson(), confirm(OTHER)])
    first, second, third = text.splitlines()
    in_a_string = joined([first, second.replace("lock", "lo\rck"), third])
    return {
        "of-no-byte": _bad("a file has a line", "", "file_empty", None),
        "without-the-last-lf": _bad("the last line ends too", text[:-1], "line_end", 3),
        "with-a-blank-line": _bad("between two lines", joined([first, "", second, third]), "blank_line", 2),
        "with-a-blank-line-at-its-end": _bad("two LF at the end", f"{text}\n", "blank_line", 4),
        "of-one-lf": _bad("a blank line and no other", "\n", "blank_line", 1),
        "with-cr-lf": _bad("lines end in LF alone", text.replace("\n", "\r\n"), "carriage_return", 1),
        "with-a-cr-in-a-string": _bad("a file holds no CR anywhere", in_a_string, "carriage_return", 2),
        "with-a-byte-order-mark": _bad("UTF-8 needs none", f"\ufeff{text}", "byte_order_mark", 1),
        "in-latin-1": refuse(
            "the third line is not UTF-8",
            {"now": NOW, "file_hex": text.replace(OTHER, "é").encode("latin-1").hex()},
            "encoding",
            3,
        ),
        "with-a-line-that-is-not-json": _bad("the line is named", joined([first, second, third[:-1]]), "syntax", 3),
        "with-a-long-line": refuse(
            "the size of a line is a rule of its own",
            {"now": NOW, "file_parts": [f"{first}\n", {"repeat": "x", "times": 8_193}, f"\n{third}\n"]},
            "line_size",
            2,
        ),
        "with-a-broken-record": _bad("the line is named", sealed(ADA, [lesson(), lesson(seen=0)]), "field_value", 3),
    }


def _sealing() -> Vectors:
    text = sealed(ADA, [lesson(), confirm(OTHER)])
    first, second, third = text.splitlines()
    earlier = line(ADA, {**lesson(seen=1), "sealed": True})
    bare = line(ADA, lesson())
    mixed = [bare, third]
    number = NOW_SECONDS + 86_400
    day = DAY_AHEAD
    for_good: dict[str, Fields] = {
        "lesson": lesson(),
        "confirmation": confirm(),
        "denial": deny(BEN),
        "note": {"note": "x"},
    }
    return {
        "with-its-seal-cut-off": _bad("sealed lines need a seal", joined([second, third]), "unsealed_line", 1),
        "with-a-sealed-line-and-no-seal": _bad("one such line is enough", joined([bare, third]), "unsealed_line", 2),
        "with-an-unsealed-line-behind-its-seal": _bad(
            "every line of a sealed file says so", joined([seal(ADA, mixed), *mixed]), "unsealed_line", 2
        ),
        "with-its-seal-second": _bad("a seal comes first", joined([second, first, third]), "unsealed_line", 1),
        "of-draft-0-with-a-seal-second": _bad("a seal comes first", joined([bare, first]), "seal_place", 2),
        "with-two-seals": _bad("there is one", joined([seal(ADA, [first]), first]), "seal_place", 2),
        "with-a-line-dropped": _bad("the seal counts two", joined([first, second]), "seal_records", 1),
        "with-a-line-added": _bad(
            "the seal counts two",
            joined([first, second, third, *sealed_lines(ADA, [revoke(OTHER)])]),
            "seal_records",
            1,
        ),
        "with-two-lines-swapped": _bad("the digest sees the order", joined([first, third, second]), "seal_digest", 1),
        "with-a-line-of-another-day": _bad(
            "signed by the key, for another file", joined([first, earlier, third]), "seal_digest", 1
        ),
        "sealed-a-day-above-its-time": _sealed("exactly at the limit", [lesson()], number=number),
        "sealed-a-day-and-a-second-above-its-time": _bad(
            "one more", sealed(ADA, [lesson()], number=number + 1), "seal_time", 1
        ),
        "sealed-by-whole-seconds": _bad(
            "a fraction of the time is rounded down",
            sealed(ADA, [lesson()], number=number + 1, at="2026-12-01T12:00:00.999999Z"),
            "seal_time",
            1,
        ),
        "sealed-just-below-the-last-seal": _bad(
            "only the last seal is exempt", sealed(ADA, [revoke()], number=LAST_SEAL - 1), "seal_time", 1
        ),
        "sealed-two-days-above-the-clock": _sealed(
            "a day above a time that is a day ahead", [lesson()], number=number + 86_400, at=day
        ),
        **{
            f"sealed-for-good-over-a-{name}": _bad(
                "revocations only", sealed(ADA, [revoke(), fields], number=LAST_SEAL), "last_seal_content", 3
            )
            for name, fields in for_good.items()
        },
    }


def _contents() -> Vectors:
    again = lesson(text=lesson()["text"].upper(), hash=HASH)
    two_keys = [line(ADA, lesson()), line(BEN, lesson())]
    sealed_by_two = [*sealed_lines(ADA, [lesson()]), *sealed_lines(BEN, [lesson()])]
    broken = sealed(ADA, [lesson(), confirm(OTHER)]).replace("lock", "lick")
    return {
        "of-two-keys": _bad("a file is one key's", joined(two_keys), "key_mixed", 2),
        "of-two-keys-under-one-seal": _bad(
            "a file is one key's", joined([seal(ADA, sealed_by_two), *sealed_by_two]), "key_mixed", 3
        ),
        "with-a-lesson-twice": _bad("one hash, two spellings", sealed(ADA, [lesson(), again]), "duplicate_record", 3),
        "with-a-confirmation-twice": _bad(
            "one hash, two times", sealed(ADA, [confirm(), confirm(at=NOW)]), "duplicate_record", 3
        ),
        "with-a-revocation-twice": _bad(
            "one hash, two reasons", sealed(ADA, [revoke(), revoke(reason="Twice.")]), "duplicate_record", 3
        ),
        "with-a-denial-twice": _bad("one key", sealed(ADA, [deny(BEN), deny(BEN, at=NOW)]), "duplicate_record", 3),
        "with-an-unknown-line-twice": _bad(
            "no two lines are equal", sealed(ADA, [{"note": "x"}, {"note": "x"}]), "duplicate_record", 3
        ),
        "of-draft-0-with-a-line-twice": _bad(
            "the rule holds without a seal", joined([line(ADA, lesson())] * 2), "duplicate_record", 2
        ),
        "with-a-false-signature-and-then-a-broken-record": _bad(
            "every line is read before any signature is verified",
            sealed(ADA, [lesson(), lesson(seen=0)]).replace("lock", "lick"),
            "field_value",
            3,
        ),
        "with-a-lesson-twice-under-a-seal-that-counts-one": _bad(
            "what is said twice is named before what the seal says",
            sealed(ADA, [lesson(), again], records=1),
            "duplicate_record",
            3,
        ),
        "with-a-line-dropped-and-a-false-signature": _bad(
            "the seal is read before any signature is verified",
            joined(broken.splitlines()[:2]),
            "seal_records",
            1,
        ),
        "with-a-signature-that-is-false": _bad("one byte of a text changed", broken, "signature_invalid", 2),
    }


def _clock() -> Vectors:
    far = "2099-01-01T00:00:00Z"
    late = DAY_AND_A_SECOND_AHEAD
    half, just_before = "2026-12-01T12:00:00.5Z", "2026-12-01T12:00:00.499999Z"
    halves = joined([line(ADA, confirm(at="2026-12-02T12:00:00.5Z"))])
    return {
        "a-day-ahead": _sealed(
            "exactly 24 hours", [lesson(updated=DAY_AHEAD), confirm(OTHER, at=DAY_AHEAD)], at=DAY_AHEAD
        ),
        "a-lesson-too-far-ahead": _bad("a second more", sealed(ADA, [lesson(updated=late)]), "deferred", 2),
        "a-confirmation-too-far-ahead": _bad(
            "a second more", sealed(ADA, [lesson(), confirm(OTHER, at=late)]), "deferred", 3
        ),
        "a-revocation-too-far-ahead": _bad("a second more", sealed(ADA, [revoke(at=late)]), "deferred", 2),
        "a-denial-too-far-ahead": _bad("a second more", sealed(ADA, [deny(BEN, at=late)]), "deferred", 2),
        "a-seal-too-far-ahead": _bad("a second more", sealed(ADA, [lesson()], at=late), "deferred", 1),
        "a-microsecond-too-far-ahead": _bad(
            "fractions count here", sealed(ADA, [confirm(at="2026-12-02T12:00:00.000001Z")]), "deferred", 2
        ),
        "half-a-second-ahead": _good("one digit behind the point is a tenth of a second", halves, None, 1, half),
        "half-a-second-too-far-ahead": _bad("by a microsecond of the clock", halves, "deferred", 1, just_before),
        "of-draft-0-too-far-ahead": _bad(
            "the rule holds without a seal", joined([line(ADA, confirm(at=late))]), "deferred", 1
        ),
        "the-last-seal-too-far-ahead": _bad(
            "the last seal is exempt from the rule of its number only",
            sealed(ADA, [revoke()], number=LAST_SEAL, at=late),
            "deferred",
            1,
        ),
        "an-unknown-record-far-ahead": _sealed("an unknown type has no time", [{"at": far, "note": "x"}]),
        "a-time-of-another-type-far-ahead": _sealed("updated is no field of a confirmation", [confirm(updated=far)]),
        "far-ahead-and-broken": _bad(
            "what is broken is refused, not deferred",
            sealed(ADA, [lesson(updated=far)]).replace("lock", "lick"),
            "signature_invalid",
            2,
        ),
    }


def newest_vectors() -> Vectors:
    small, large = "11" * 32, "ee" * 32
    cases: dict[str, tuple[str, tuple[int | None, str] | None, tuple[int | None, str], str]] = {
        "the-first": ("nothing is held", None, (5, small), "new"),
        "the-first-of-draft-0": ("nothing is held", None, (None, small), "new"),
        "a-higher-seal": ("the higher seal wins", (5, large), (6, small), "newer"),
        "a-lower-seal": ("whatever came last", (6, small), (5, large), "older"),
        "the-same-file": ("one seal, one digest", (5, small), (5, small), "unchanged"),
        "equivocation-by-a-larger-digest": ("the larger digest wins", (5, small), (5, large), "equivocation_taken"),
        "equivocation-by-a-smaller-digest": ("the larger digest stays", (5, large), (5, small), "equivocation_left"),
        "the-last-seal": ("nothing is above it", (NOW_SECONDS, large), (LAST_SEAL, small), "newer"),
        "behind-the-last-seal": ("nothing comes behind it", (LAST_SEAL, small), (NOW_SECONDS, large), "older"),
        "equivocation-of-the-last-seal": (
            "the rule is the same",
            (LAST_SEAL, small),
            (LAST_SEAL, large),
            "equivocation_taken",
        ),
        "a-seal-over-draft-0": ("a sealed file replaces one without", (None, large), (1, small), "newer"),
        "draft-0-over-a-seal": ("and never the other way", (1, small), (None, large), "older"),
        "draft-0-over-draft-0": ("without a seal the last to come stands", (None, large), (None, small), "newer"),
        "the-same-file-of-draft-0": ("one digest", (None, small), (None, small), "unchanged"),
    }
    return {
        name: accept(comment, {"held": _version(held), "offered": _version(offered)}, verdict=verdict)
        for name, (comment, held, offered, verdict) in cases.items()
    }


def _version(version: tuple[int | None, str] | None) -> Fields | None:
    return None if version is None else {"seal": version[0], "digest": version[1]}
