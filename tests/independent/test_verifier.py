"""Every vector gets its verdict from a second implementation, written from PROTOCOL.md alone.

It is the modules beside this one: `lines`, `ed25519`, `files`, `readings` and `gossip`, made to be read beside the
document, section by section, and not to be fast. They import nothing of the project and nothing beyond the standard
library, and this module nothing of the project, which shows that the document is sufficient.
"""

from __future__ import annotations

import hashlib
import json
import unicodedata
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from nacl.signing import SigningKey

from independent import ed25519, files, gossip, readings
from independent.lines import RefusedError, parse_line

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
    return file_by_recipe(**vector[f"{name}_recipe"])


def file_by_recipe(seed: str, times: int, **how: Any) -> bytes:
    """Records of an unknown type: unsealed and with a counter, or sealed and different in their signatures alone."""
    pair = SigningKey(bytes.fromhex(seed))
    key = pair.verify_key.encode().hex()
    whole = {"key": key, "origin": files.origin_of(key), "v": 1}
    if "counter" in how:
        return b"".join(_signed(pair, whole | {how["counter"]: number}) for number in range(times))
    whole |= {"sealed": True}
    hashed = hashlib.sha512(bytes.fromhex(seed)).digest()
    secret = int.from_bytes(hashed[:32], "little") & (1 << 254) - 8 | 1 << 254
    records, point = b"", ed25519.IDENTITY
    for number in range(1, times + 1):
        point = ed25519.add(point, ed25519.BASE)
        first = ed25519.encode_point(point)
        challenge = hashlib.sha512(first + bytes.fromhex(key) + _spelled(whole)).digest()
        second = (number + int.from_bytes(challenge, "little") * secret) % ed25519.L
        records += _spelled(whole | {"sig": (first + second.to_bytes(32, "little")).hex()}) + b"\n"
    seal = {"seal": how["number"], "at": how["at"], "records": times, "digest": files.digest(records)}
    return _signed(pair, whole | seal) + records


def _spelled(fields: JsonObject) -> bytes:
    return json.dumps(fields, separators=(",", ":"), sort_keys=True).encode()


def _signed(pair: SigningKey, fields: JsonObject) -> bytes:
    return _spelled(fields | {"sig": pair.sign(_spelled(fields)).signature.hex()}) + b"\n"


def line(vector: JsonObject) -> JsonObject:
    """A line by section 2 alone."""
    return {"value": parse_line(given(vector, "line"))}


def record(vector: JsonObject) -> JsonObject:
    """A line by itself; the vectors want the time as it is spelled, and the number of a seal as its subject."""
    found = files.accept_line(given(vector, "line"))
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
    return {"origin": files.origin_of(vector["key"])}


def file(vector: JsonObject) -> JsonObject:
    """A file by section 6."""
    found = files.accept_file(given(vector, "file"), files.parse_time(vector["now"]))
    return {"seal": found.seal, "records": len(found.records), "digest": found.digest, "key": found.key}


def newest(vector: JsonObject) -> JsonObject:
    """Two versions by section 7."""
    held, offered = vector["held"], vector["offered"]
    before = None if held is None else (held["seal"], held["digest"])
    return {"verdict": files.newest(before, (offered["seal"], offered["digest"]))}


def text(vector: JsonObject) -> JsonObject:
    """A text by section 5."""
    kind, given_text = vector["kind"], vector["text"]
    return {"normal": files.normal_text(given_text), "hash": files.lesson_hash(kind, given_text)}


def judgement(vector: JsonObject) -> JsonObject:
    """A record by section 8."""
    return {"skipped": readings.judge(files.accept_line(given(vector, "line")))}


def state(vector: JsonObject) -> JsonObject:
    """A lesson by section 9, from files or from records that are taken to pass judgement."""
    now = files.parse_time(vector["now"])
    trust = vector["policy"]
    policy = readings.Policy(
        confirmations=trust.get("confirmations", 3),
        window=timedelta(days=trust.get("window_days", 90)),
        followed=frozenset(trust.get("followed", ())),
        admitted=tuple((one["key"], one["commons"], one["principal"]) for one in trust.get("admitted", ())),
        revokers=frozenset(trust.get("revokers", ())),
        open=trust.get("open", False),
    )
    if "files" in vector:
        records = readings.evidence(files.accept_file(one.encode(), now) for one in vector["files"])
    else:
        records = [
            files.Record(
                line=b"",
                fields=one,
                type=one["type"],
                subject=one["subject"],
                time=None if one["time"] is None else files.parse_time(one["time"]),
            )
            for one in vector["statements"]
        ]
    reading = readings.read_lesson(vector["hash"], records, policy, now)
    last = reading.last_confirmed
    spelled = None if last is None else last.isoformat().replace("+00:00", "Z")
    return vars(reading) | {"last_confirmed": spelled}


def event(vector: JsonObject) -> JsonObject:
    """Two states by section 9."""
    return {"event": readings.event(vector["before"], vector["after"])}


def seal(vector: JsonObject) -> JsonObject:
    """The numbers of a writer's seals by section 10."""
    number, at = readings.next_seal(files.parse_time(vector["now"]), vector["found"])
    return {"seal": number, "at": at.isoformat().replace("+00:00", "Z")}


def item(vector: JsonObject) -> JsonObject:
    """The item of a file or of a proof, by section 16."""
    if "proof" in vector:
        seals = [files.accept_line(one.encode()) for one in vector["proof"]]
        return {"time": 0, "id": gossip.proof_id(seals[0].key)}
    time, name = gossip.item_of_file(given(vector, "file")) or (None, None)
    return {"time": time, "id": name}


def body(vector: JsonObject) -> JsonObject:
    """What passes in an exchange, by section 16."""
    data = given(vector, "body")
    match vector["form"]:
        case "question":
            return gossip.read_question(data)
        case "answer":
            return {"parts": gossip.read_answer(data)}
        case "offer":
            return {"parts": gossip.read_offer(data)}
        case "heads":
            return {"heads": gossip.read_heads(data)}
    return {"verdicts": gossip.read_verdicts(data, vector["offered"])}


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
    "event": event,
    "seal": seal,
    "item": item,
    "body": body,
}


def verdict(kind: str, vector: JsonObject) -> JsonObject:
    """What the verifier makes of a vector, in the form of ``expect``."""
    try:
        found = READERS[kind](vector)
    except RefusedError as error:
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
