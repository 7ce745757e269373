"""The vectors of what passes between nodes: items, and the bodies of an exchange (PROTOCOL.md, section 16)."""

from __future__ import annotations

import json
from typing import Any, Final

from .vectors_base import (
    ADA,
    BEN,
    NOW_SECONDS,
    Fields,
    Vectors,
    accept,
    digest,
    joined,
    lesson,
    line,
    refuse,
    seal,
    sealed,
)
from .vectors_files import file_vectors

WORKED: Final = str(file_vectors()["worked-example"]["file"])
SMALL: Final = sealed(BEN, [lesson()])
DRAFT: Final = joined([line(ADA, lesson())])
TWICE: Final = (seal(ADA, []), seal(ADA, [], digest=digest(b"another")))
ZEROS: Final = "0" * 64
NAMES: Final = ("0f" * 32, "f0" * 32)
LINE_BYTES: Final = 33_024
REASON_CHARACTERS: Final = 200


def item_id(text: str, key: str) -> str:
    return digest(bytes.fromhex(key + digest(text.encode())))


def proof_id(key: str) -> str:
    return digest(b"equivocation" + bytes.fromhex(key))


# --- items ---


def item_vectors() -> Vectors:
    later = seal(ADA, [], number=NOW_SECONDS - 1), seal(ADA, [], number=NOW_SECONDS - 1, digest=digest(b"another"))
    fraction = sealed(ADA, [lesson()], at="2026-12-01T12:00:00.999999Z")
    return {
        "worked-example": _item("the file of section 14: its whole digest, not its seal's", WORKED),
        "without-records": _item("a seal over nothing", sealed(ADA, [])),
        "of-a-fraction-of-a-second": _item("the time is cut to whole seconds", fraction),
        "of-another-key": _item("the same lesson by another key", SMALL, BEN.hex),
        "of-draft-0": accept("a file without a seal is no item", {"file": DRAFT}, time=None, id=None),
        "proof": _proof("two seals with one number", TWICE),
        "proof-of-another-number": _proof("one item a key, whichever number the proof is of", later),
    }


def _item(comment: str, text: str, key: str = ADA.hex) -> Fields:
    return accept(comment, {"file": text}, time=NOW_SECONDS, id=item_id(text, key))


def _proof(comment: str, seals: tuple[str, str]) -> Fields:
    return accept(comment, {"proof": list(seals)}, time=0, id=proof_id(ADA.hex))


# --- the bodies of an exchange ---


def body_vectors() -> Vectors:
    return {**_questions(), **_answers(), **_bad_answers(), **_offers(), **_heads(), **_verdicts()}


def _lines(*fields: Any) -> str:
    return joined([json.dumps(one, separators=(",", ":"), ensure_ascii=False) for one in fields])


def _file(text: str, size: int | None = None) -> str:
    return _lines({"file": len(text.encode()) if size is None else size}) + text


def _given(form: str, body: str | list[Any], **more: Any) -> Fields:
    return {"form": form, "body" if isinstance(body, str) else "body_parts": body, **more}


def _bad(comment: str, form: str, body: str | list[Any], **more: Any) -> Fields:
    return refuse(comment, _given(form, body, **more), "gossip_body", None)


def _questions() -> Vectors:
    def good(comment: str, **fields: Any) -> Fields:
        asked = json.dumps({"ids": list(NAMES), **fields})
        return accept(comment, _given("question", asked), ids=list(NAMES), heads="heads" in fields)

    def bad(comment: str, fields: Any) -> Fields:
        return _bad(comment, "question", fields if isinstance(fields, str) else json.dumps(fields))

    return {
        "question": good("two items; white space does not matter"),
        "question-for-heads": good("which files they are", heads=True),
        "question-with-an-unknown-field": good("is passed over", more=7),
        "question-for-nothing": bad("at least one", {"ids": []}),
        "question-for-one-twice": bad("each once", {"ids": [NAMES[0], NAMES[0]]}),
        "question-in-capitals": bad("lower case", {"ids": [NAMES[0].upper()]}),
        "question-without-ids": bad("another field", {"id": NAMES[0]}),
        "question-with-a-field-twice": bad("each field once", f'{{"ids":["{NAMES[0]}"],"ids":["{NAMES[1]}"]}}'),
        "question-with-heads-by-a-number": bad("true or false", {"ids": [NAMES[0]], "heads": 1}),
    }


def _whole(text: str, key: str) -> Fields:
    return {"file": item_id(text, key), "bytes": len(text.encode())}


def _answers() -> Vectors:
    proof, whole = _lines({"proof": list(TWICE)}), _file(WORKED)
    blocked, missing = {"id": NAMES[0], "blocked": "spam"}, {"id": NAMES[1], "missing": True}
    parts = [
        _whole(WORKED, ADA.hex),
        {"proof": proof_id(ADA.hex)},
        {"blocked": NAMES[0], "reason": "spam"},
        {"missing": NAMES[1]},
        _whole(SMALL, BEN.hex),
    ]
    around = len(_lines({"id": NAMES[0], "blocked": ""})) - 1
    reasons = [f'{{"id":"{NAMES[0]}","blocked":"', {"repeat": "x", "times": LINE_BYTES - around}, '"}\n']
    long = [{"blocked": NAMES[0], "reason": "x" * REASON_CHARACTERS}]
    unclean = [{"blocked": NAMES[0], "reason": "two lines"}]
    return {
        "answer": accept(
            "one of each", _given("answer", whole + proof + _lines(blocked, missing) + _file(SMALL)), parts=parts
        ),
        "answer-of-nothing": accept("all of it was left out", _given("answer", ""), parts=[]),
        "answer-with-a-proof-that-says-an-id": accept(
            "a proof names itself, and so does a file",
            _given("answer", _lines({"id": NAMES[0], "proof": list(TWICE)})),
            parts=parts[1:2],
        ),
        "answer-with-a-long-reason": accept(
            "a line of 33,024 bytes; of a reason 200 characters count", _given("answer", reasons), parts=long
        ),
        "answer-with-a-longer-line": _bad(
            "33,025 bytes", "answer", [*reasons[:1], {"repeat": "x", "times": LINE_BYTES - around + 1}, reasons[2]]
        ),
        "answer-with-a-reason-of-two-lines": accept(
            "what cannot be shown is a space",
            _given("answer", _lines({"id": NAMES[0], "blocked": "two\nlines"})),
            parts=unclean,
        ),
    }


def _bad_answers() -> Vectors:
    def bad(comment: str, body: str) -> Fields:
        return _bad(comment, "answer", body)

    size = len(SMALL.encode())
    of_two = _lines({"proof": [TWICE[0], seal(BEN, [])]})
    return {
        "answer-with-a-file-cut-short": bad("fewer bytes than it says", _file(SMALL, size + 1)),
        "answer-with-a-file-that-goes-on": bad("it does not end in LF", _file(SMALL, size - 1)),
        "answer-with-a-file-of-no-bytes": bad("at least one", _lines({"file": 0})),
        "answer-with-a-file-of-draft-0": bad("it has no seal", _file(DRAFT)),
        "answer-with-two-things-at-once": bad("one a line", _lines({"id": NAMES[0], "blocked": "a", "missing": True})),
        "answer-with-nothing-in-a-line": bad("none of the four", _lines({"id": NAMES[0]})),
        "answer-with-half-a-proof": bad("two lines", _lines({"proof": [TWICE[0]]})),
        "answer-with-a-proof-of-two-keys": bad("seals of one key", of_two),
        "answer-with-an-id-in-capitals": bad("lower case", _lines({"id": NAMES[1].upper(), "missing": True})),
        "answer-with-a-blank-line": bad("no object", _lines({"id": NAMES[1], "missing": True}) + "\n"),
        "answer-without-an-end": bad("the last line has an LF too", _lines({"id": NAMES[1], "missing": True})[:-1]),
    }


def _offers() -> Vectors:
    proof = _lines({"proof": list(TWICE)})
    whole = [{"proof": proof_id(ADA.hex)}, _whole(SMALL, BEN.hex)]
    return {
        "offer": accept("a proof and a file", _given("offer", proof + _file(SMALL)), parts=whole),
        "offer-of-nothing": _bad("at least one part", "offer", ""),
        "offer-of-257-parts": _bad("one too many", "offer", [{"repeat": proof, "times": 257}]),
        "offer-of-what-is-missing": _bad("files and proofs alone", "offer", _lines({"id": NAMES[0], "missing": True})),
        "offer-with-one-part-that-is-bad": _bad("all of it is refused", "offer", _file(SMALL) + _file(DRAFT)),
    }


def _heads() -> Vectors:
    small = {"id": item_id(SMALL, BEN.hex), "key": BEN.hex, "seal": NOW_SECONDS, "size": len(SMALL.encode())}
    large = {"id": item_id(WORKED, ADA.hex), "key": ADA.hex, "seal": NOW_SECONDS, "size": len(WORKED.encode())}

    def bad(comment: str, **changes: Any) -> Fields:
        return _bad(comment, "heads", _lines(large, {**small, **changes}))

    return {
        "heads": accept("which files they are", _given("heads", _lines(small, large)), heads=[small, large]),
        "heads-of-nothing": accept("none of them is a file", _given("heads", ""), heads=[]),
        "heads-with-seal-0": bad("from 1", seal=0),
        "heads-with-a-seal-in-a-string": bad("a number", seal=str(NOW_SECONDS)),
        "heads-with-too-large-a-file": bad("262,145 bytes", size=262_145),
        "heads-with-an-origin": bad("a key", key=BEN.origin),
    }


def _verdicts() -> Vectors:
    said: list[Fields] = [
        *({"id": NAMES[0], "verdict": one, "code": None} for one in ("new", "newer", "known", "older")),
        {"id": NAMES[1], "verdict": "older", "code": "equivocation_left"},
        {"id": ZEROS, "verdict": "refused", "code": "gossip_proof"},
        {"id": NAMES[1], "verdict": "deferred", "code": "over_budget"},
    ]
    sent = [{name: value for name, value in one.items() if value is not None} for one in said]

    def given(verdicts: Any, offered: int) -> Fields:
        return _given("verdicts", json.dumps({"verdicts": verdicts}), offered=offered)

    def bad(comment: str, verdicts: Any, offered: int = 1) -> Fields:
        return refuse(comment, given(verdicts, offered), "gossip_body", None)

    return {
        "verdicts": accept("every verdict; a code where there is one", given(sent, len(said)), verdicts=said),
        "verdicts-of-another-number": bad("one for each part", sent[:1], 2),
        "verdicts-with-another-word": bad("none of the six", [{"id": NAMES[0], "verdict": "taken"}]),
        "verdicts-with-a-code-in-capitals": bad("a to z, 0 to 9, _", [{**sent[0], "code": "BLOCKED"}]),
        "verdicts-without-an-id": bad("64 digits", [{"verdict": "new"}]),
    }
