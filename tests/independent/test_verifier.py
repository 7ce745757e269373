"""Every vector gets its verdict from a second implementation, written from PROTOCOL.md alone.

It imports nothing of the project, and neither does this module, which shows that the document is sufficient.
"""

from __future__ import annotations

import json
import unicodedata
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from nacl.signing import SigningKey

from independent import verifier

if TYPE_CHECKING:
    from collections.abc import Callable

JsonObject = dict[str, Any]

VECTORS = Path(__file__).parents[1] / "vectors"
UNICODE_14 = unicodedata.unidata_version == "14.0.0"
DEPENDS_ON_UNICODE_14 = ["judgement/an-emoji-of-unicode-15", "text/letters-of-a-later-unicode"]
"""Code points that a later Unicode assigns; an earlier one than 14.0.0 comes with no Python that can run this."""


def given(vector: JsonObject, name: str) -> bytes:
    """The bytes of a vector, whichever way they are given."""
    if name in vector:
        return str(vector[name]).encode()
    if f"{name}_hex" in vector:
        return bytes.fromhex(vector[f"{name}_hex"])
    if f"{name}_parts" in vector:
        parts = vector[f"{name}_parts"]
        return "".join(part if isinstance(part, str) else part["repeat"] * part["times"] for part in parts).encode()
    return b"".join(records_by_recipe(**vector[f"{name}_recipe"]))


def records_by_recipe(seed: str, counter: str, times: int) -> list[bytes]:
    """Unsealed records of an unknown type that differ in a counter from 0 on."""
    pair = SigningKey(bytes.fromhex(seed))
    key = pair.verify_key.encode().hex()
    lines = []
    for number in range(times):
        fields = {"key": key, counter: number, "origin": verifier.origin_of(key), "v": 1}
        signature = pair.sign(json.dumps(fields, separators=(",", ":"), sort_keys=True).encode()).signature.hex()
        lines.append(json.dumps(fields | {"sig": signature}, separators=(",", ":"), sort_keys=True).encode() + b"\n")
    return lines


def line(vector: JsonObject) -> JsonObject:
    """A line by section 2 alone."""
    return {"value": verifier.parse_line(given(vector, "line"))}


def record(vector: JsonObject) -> JsonObject:
    """A line by itself; the vectors want the time as it is spelled, and the number of a seal as its subject."""
    found = verifier.accept_line(given(vector, "line"))
    spelled = found.fields.get("updated" if found.type == "lesson" else "at")
    subject = str(found.fields["seal"]) if found.type == "seal" else found.subject or ""
    return {
        "type": found.type,
        "subject": subject,
        "time": spelled if found.time is not None else None,
        "signed_hex": found.signed.hex(),
        "signed_bytes": len(found.signed),
    }


def key(vector: JsonObject) -> JsonObject:
    """A key by section 4."""
    return {"origin": verifier.origin_of(vector["key"])}


def file(vector: JsonObject) -> JsonObject:
    """A file by section 6."""
    found = verifier.accept_file(given(vector, "file"), verifier.parse_time(vector["now"]))
    return {"seal": found.seal, "records": len(found.records), "digest": found.digest, "key": found.key}


def newest(vector: JsonObject) -> JsonObject:
    """Two versions by section 7."""
    held, offered = vector["held"], vector["offered"]
    before = None if held is None else (held["seal"], held["digest"])
    return {"verdict": verifier.newest(before, (offered["seal"], offered["digest"]))}


def text(vector: JsonObject) -> JsonObject:
    """A text by section 5."""
    kind, given_text = vector["kind"], vector["text"]
    return {"normal": verifier.normal_text(given_text), "hash": verifier.lesson_hash(kind, given_text)}


def judgement(vector: JsonObject) -> JsonObject:
    """A record by section 8."""
    return {"skipped": verifier.judge(verifier.accept_line(given(vector, "line")))}


def state(vector: JsonObject) -> JsonObject:
    """A lesson by section 9, from files or from records that are taken to pass judgement."""
    now = verifier.parse_time(vector["now"])
    trust = vector["policy"]
    policy = verifier.Policy(
        confirmations=trust.get("confirmations", 3),
        window=timedelta(days=trust.get("window_days", 90)),
        followed=frozenset(trust.get("followed", ())),
        admitted=tuple((one["key"], one["commons"], one["principal"]) for one in trust.get("admitted", ())),
        revokers=frozenset(trust.get("revokers", ())),
        open=trust.get("open", False),
    )
    if "files" in vector:
        records = verifier.evidence(verifier.accept_file(one.encode(), now) for one in vector["files"])
    else:
        records = [
            verifier.Record(
                line=b"",
                fields=one,
                type=one["type"],
                subject=one["subject"],
                time=None if one["time"] is None else verifier.parse_time(one["time"]),
            )
            for one in vector["statements"]
        ]
    reading = verifier.read_lesson(vector["hash"], records, policy, now)
    last = reading.last_confirmed
    spelled = None if last is None else last.isoformat().replace("+00:00", "Z")
    return vars(reading) | {"last_confirmed": spelled}


READERS: dict[str, Callable[[JsonObject], JsonObject]] = {
    "line": line,
    "signature": record,
    "key": key,
    "record": record,
    "file": file,
    "newest": newest,
    "text": text,
    "judgement": judgement,
    "state": state,
}


def verdict(kind: str, vector: JsonObject) -> JsonObject:
    """What the verifier makes of a vector, in the form of ``expect``."""
    try:
        found = READERS[kind](vector)
    except verifier.RefusedError as error:
        return {"error": error.code} if error.line is None else {"error": error.code, "line": error.line}
    if found.get("skipped"):
        return found
    wanted = vector["expect"].get("accept", {})
    return {"accept": {name: value for name, value in found.items() if name in wanted}}


def paths() -> list[Any]:
    """Every vector, named as the document names it."""
    names = [path.relative_to(VECTORS).with_suffix("").as_posix() for path in sorted(VECTORS.glob("*/*.json"))]
    skip = pytest.mark.skipif(not UNICODE_14, reason="the verdict needs the tables of Unicode 14.0.0")
    return [pytest.param(name, marks=skip if name in DEPENDS_ON_UNICODE_14 else (), id=name) for name in names]


def test_no_kind_of_vector_is_missing_or_empty() -> None:
    """An empty folder would pass unseen, and so would a kind that nothing reads."""
    folders = {folder.name: list(folder.glob("*.json")) for folder in VECTORS.iterdir() if folder.is_dir()}
    assert set(folders) == set(READERS)
    assert all(folders.values())


@pytest.mark.parametrize("name", paths())
def test_the_verifier_gives_the_vector_its_verdict(name: str) -> None:
    """Accepted with every value, refused with the code and the line, or skipped with the code."""
    vector = json.loads((VECTORS / f"{name}.json").read_text(encoding="utf-8"))
    found = verdict(name.split("/", maxsplit=1)[0], vector)
    # As text, so that 1, 1.0 and true are three things.
    assert json.dumps(found, sort_keys=True) == json.dumps(vector["expect"], sort_keys=True)


@pytest.mark.parametrize("name", DEPENDS_ON_UNICODE_14)
def test_what_depends_on_the_tables_is_a_vector(name: str) -> None:
    """A name that no vector has would skip nothing and tell nobody."""
    assert (VECTORS / f"{name}.json").is_file()
