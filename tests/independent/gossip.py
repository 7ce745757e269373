"""What passes between nodes: items, and the bodies of an exchange (PROTOCOL.md, section 16)."""

from __future__ import annotations

import json
import re
from typing import Any

from independent.files import FILE_BYTES, LAST_SEAL, digest, read_record
from independent.lines import JsonObject, RefusedError

IDS = 4_096
PARTS = 256
LINE_BYTES = 33_024
REASON_CHARACTERS = 200
KINDS = {"file", "proof", "blocked", "missing"}
VERDICTS = ("new", "newer", "known", "older", "refused", "deferred")


# --- Items -----------------------------------------------------------------------------------------------------------


def item_of_file(data: bytes) -> tuple[int, str] | None:
    """The item of a file: the time of its seal in whole seconds, and the id; a file without a seal has none."""
    seal = read_record(data[: data.index(b"\n")])
    if seal.type != "seal" or seal.time is None:
        return None
    return int(seal.time.replace(microsecond=0).timestamp()), file_id(seal.key, data)


def file_id(key: str, data: bytes) -> str:
    """The id of a file: the key's 32 bytes, and the 32 of the digest of the whole file."""
    return digest(bytes.fromhex(key + digest(data)))


def proof_id(key: str) -> str:
    """The id of the proof that a key spoke twice, at time 0."""
    return digest(b"equivocation" + bytes.fromhex(key))


# --- JSON ------------------------------------------------------------------------------------------------------------


def _expect(good: bool) -> None:
    """What is not as the section says makes a body bad."""
    if not good:
        raise RefusedError("gossip_body")


def _object(data: bytes) -> JsonObject:
    """One object; no field twice."""

    def once(pairs: list[tuple[str, Any]]) -> JsonObject:
        _expect(len(dict(pairs)) == len(pairs))
        return dict(pairs)

    try:
        fields = json.loads(data.decode(), object_pairs_hook=once)
    except ValueError:
        raise RefusedError("gossip_body") from None
    _expect(isinstance(fields, dict))
    return dict(fields)


def _digits(value: object) -> str:
    """An id or a key."""
    _expect(isinstance(value, str) and re.fullmatch("[0-9a-f]{64}", value) is not None)
    return str(value)


def _number(value: object, most: int) -> int:
    """An integer from 1 on; ``type`` and not ``isinstance``, for true is no number."""
    _expect(type(value) is int)
    assert isinstance(value, int)
    _expect(1 <= value <= most)
    return value


# --- Fetching and offering -------------------------------------------------------------------------------------------


def read_question(body: bytes) -> JsonObject:
    """Which items are asked for, and whether only their heads are."""
    fields = _object(body)
    ids, heads = fields.get("ids"), fields.get("heads", False)
    _expect(isinstance(ids, list) and 1 <= len(ids) <= IDS and isinstance(heads, bool))
    names = [_digits(one) for one in fields["ids"]]
    _expect(len(set(names)) == len(names))
    return {"ids": names, "heads": heads}


def read_answer(body: bytes) -> list[JsonObject]:
    """The parts of an answer: files, proofs, and what stands for one."""
    parts: list[JsonObject] = []
    while body:
        line, body = _line(body)
        fields = _object(line)
        _expect(len(KINDS & fields.keys()) == 1)
        if "file" in fields:
            size = _number(fields["file"], FILE_BYTES)
            parts.append(_file(body[:size], size))
            body = body[size:]
        else:
            parts.append(_other(fields))
    return parts


def read_offer(body: bytes) -> list[JsonObject]:
    """The parts of an offer: files and proofs alone, one at least."""
    parts = read_answer(body)
    _expect(1 <= len(parts) <= PARTS and all({"file", "proof"} & part.keys() for part in parts))
    return parts


def read_heads(body: bytes) -> list[JsonObject]:
    """Which files the items are."""
    heads = []
    while body:
        line, body = _line(body)
        fields = _object(line)
        head = {name: _digits(fields.get(name)) for name in ("id", "key")}
        numbers = {"seal": LAST_SEAL, "size": FILE_BYTES}
        heads.append({**head, **{name: _number(fields.get(name), most) for name, most in numbers.items()}})
    return heads


def read_verdicts(body: bytes, offered: int) -> list[JsonObject]:
    """What became of each part of an offer."""
    verdicts = _object(body).get("verdicts")
    if not isinstance(verdicts, list) or len(verdicts) != offered:
        raise RefusedError("gossip_body")
    return [_verdict(one) for one in verdicts]


def _verdict(fields: object) -> JsonObject:
    if not isinstance(fields, dict):
        raise RefusedError("gossip_body")
    code = fields.get("code")
    _expect(fields.get("verdict") in VERDICTS)
    _expect(code is None or (isinstance(code, str) and re.fullmatch("[a-z0-9_]{1,64}", code) is not None))
    return {"id": _digits(fields.get("id")), "verdict": fields["verdict"], "code": code}


def _line(body: bytes) -> tuple[bytes, bytes]:
    """The first line, and what is behind it."""
    line, end, rest = body.partition(b"\n")
    _expect(end == b"\n" and len(line) <= LINE_BYTES)
    return line, rest


def _file(data: bytes, size: int) -> JsonObject:
    """A file names itself by the key of its seal; whether it is one is for acceptance to say."""
    _expect(len(data) == size and data.endswith(b"\n"))
    return {"file": file_id(_key_of_seal(data.partition(b"\n")[0]), data), "bytes": size}


def _other(fields: JsonObject) -> JsonObject:
    """A proof, which names itself too, or why there is no file."""
    if "proof" in fields:
        seals = fields["proof"]
        _expect(isinstance(seals, list) and len(seals) == 2 and all(isinstance(one, str) for one in seals))
        first, second = (_key_of_seal(one.encode()) for one in seals)
        _expect(first == second)
        return {"proof": proof_id(first)}
    name = _digits(fields.get("id"))
    if "missing" in fields:
        _expect(fields["missing"] is True)
        return {"missing": name}
    reason = fields["blocked"]
    _expect(isinstance(reason, str))
    shown = "".join(one if one.isprintable() else " " for one in reason[:REASON_CHARACTERS])
    return {"blocked": name, "reason": shown}


def _key_of_seal(line: bytes) -> str:
    fields = _object(line)
    _expect("seal" in fields)
    return _digits(fields.get("key"))
