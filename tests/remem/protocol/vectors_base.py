"""What the generator of the vectors is made of: keys from fixed seeds, and lines and files spelled by hand.

Nothing here imports `remem`: lines are spelled by the standard library's JSON, signed by PyNaCl or, where no library
would, by curve arithmetic, and hashed by hashlib, so a vector is a second opinion on the package and never its echo.
What a vector expects is written out beside it; only hashes, digests, signatures and the bytes that were signed are
worked out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import blake2b, sha256, sha512
from typing import Any, Final, TypeAlias

from nacl.signing import SigningKey

from . import curve

Fields: TypeAlias = dict[str, Any]
Vectors: TypeAlias = dict[str, Fields]

NOW: Final = "2026-12-01T12:00:00Z"
NOW_SECONDS: Final = 1_796_126_400
AT: Final = "2026-11-20T09:30:00Z"
LAST_SEAL: Final = 2**53 - 1

_RAW: Final = re.compile('"@raw ([^@]*)@"')


@dataclass(frozen=True)
class Key:
    """A key of the vectors, made from a seed that is written in this file."""

    seed: bytes

    @property
    def raw(self) -> bytes:
        return bytes(SigningKey(self.seed).verify_key)

    @property
    def hex(self) -> str:
        return self.raw.hex()

    @property
    def origin(self) -> str:
        return sha256(self.raw).hexdigest()[:16]

    @property
    def scalar(self) -> int:
        """The secret number of the key (RFC 8032, section 5.1.5), for signatures that no library makes."""
        number = int.from_bytes(sha512(self.seed).digest()[:32], "little")
        return number & ((1 << 254) - 8) | 1 << 254

    def sign(self, message: bytes) -> str:
        return SigningKey(self.seed).sign(message).signature.hex()


ADA: Final = Key(bytes(range(32)))
BEN, CLEO, DAN, EVE, FAY, GIL, HAL, IDA, JON = (Key(bytes([number]) * 32) for number in range(1, 10))


def spell(fields: Mapping[str, Any]) -> str:
    """Spell an object as its one line; `raw("1.50")` stands for that spelling of a number."""
    text = json.dumps(fields, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return _RAW.sub(r"\1", text)


def raw(spelling: str) -> str:
    return f"@raw {spelling}@"


def whole(key: Key, fields: Mapping[str, Any]) -> Fields:
    """Add what every line carries; a field set to None is left out, so that a line can lack it."""
    fields = {"v": 1, "key": key.hex, "origin": key.origin, **fields}
    return {name: value for name, value in fields.items() if value is not None}


def unsigned(key: Key, fields: Mapping[str, Any]) -> bytes:
    """Return the bytes that are signed: the line without its signature."""
    return spell(whole(key, fields)).encode()


def line(key: Key, fields: Mapping[str, Any], *, sig: str | None = None) -> str:
    """Spell and sign a record; `sig` puts another text in the signature's place."""
    signature = key.sign(unsigned(key, fields)) if sig is None else sig
    return spell(whole(key, {**fields, "sig": signature}))


def digest(data: bytes) -> str:
    return blake2b(data, digest_size=32).hexdigest()


def joined(lines: Sequence[str]) -> str:
    return "".join(f"{text}\n" for text in lines)


def sealed_lines(key: Key, records: Sequence[Mapping[str, Any]]) -> list[str]:
    return [line(key, {**fields, "sealed": True}) for fields in records]


def seal(key: Key, behind: Sequence[str], **changes: Any) -> str:
    """Spell the seal of some lines; `changes` replaces fields of it, `number` its number."""
    fields: Fields = {
        "at": "2026-12-01T12:00:00Z",
        "digest": digest(joined(behind).encode()),
        "records": len(behind),
        "seal": changes.pop("number", NOW_SECONDS),
        "sealed": True,
    }
    return line(key, fields | changes)


def sealed(key: Key, records: Sequence[Mapping[str, Any]], /, **changes: Any) -> str:
    """Return the text of a sealed file."""
    behind = sealed_lines(key, records)
    return joined([seal(key, behind, **changes), *behind])


# --- files of so many records that a vector holds the recipe ---


def counted(key: Key, counter: str, times: int) -> list[str]:
    """Spell so many records of draft 0, of an unknown type, that differ in a counter from 0 on."""
    return [line(key, {counter: number}) for number in range(times)]


def alike(key: Key, times: int) -> list[str]:
    """Spell so many of the shortest sealed records, which differ in their signatures alone.

    No library signs so: the secret number behind R, which RFC 8032 takes from the seed and the message, counts from 1.
    """
    message = unsigned(key, {"sealed": True})
    lines, point = [], curve.IDENTITY
    for secret in range(1, times + 1):
        point = curve.add(point, curve.BASE)
        first = curve.encode(point)
        second = (secret + curve.challenge(first, key.raw, message) * key.scalar) % curve.L
        lines.append(line(key, {"sealed": True}, sig=(first + second.to_bytes(32, "little")).hex()))
    return lines


@cache
def by_recipe(seed: str, times: int, **how: Any) -> str:
    """Return the text of a file by its recipe: of draft 0 with a `counter`, or sealed with `number` and `at`."""
    key = Key(bytes.fromhex(seed))
    if "counter" in how:
        return joined(counted(key, how["counter"], times))
    behind = alike(key, times)
    return joined([seal(key, behind, **how), *behind])


# --- records, by their own fields ---

TEXT: Final = "The build fails when the lock file is stale."


def lesson_hash(kind: str, normal: str) -> str:
    """Return the hash of a kind and a text that is in its normal form already."""
    return blake2b((kind + normal).encode(), digest_size=16).hexdigest()


HASH: Final = lesson_hash("error", TEXT.lower())


def lesson(text: str = TEXT, **changes: Any) -> Fields:
    """Return the fields of a lesson; its hash is right where lower-casing makes the text normal."""
    kind = changes.get("kind", "error")
    fields: Fields = {
        "hash": lesson_hash(str(kind), text.lower()),
        "id": "l1",
        "kind": "error",
        "seen": 2,
        "strength": 1.5,
        "text": text,
        "updated": AT,
    }
    return fields | changes


def confirm(subject: str = HASH, **changes: Any) -> Fields:
    return {"confirm": subject, "at": AT} | changes


def revoke(subject: str = HASH, **changes: Any) -> Fields:
    return {"revoke": subject, "at": AT} | changes


def deny(key: Key, **changes: Any) -> Fields:
    fields = {"deny": key.hex, "at": AT, "reason": "This key published a hundred lessons in one hour."}
    return fields | changes


# --- the vectors themselves ---


def accept(comment: str, given: Mapping[str, Any], **values: Any) -> Fields:
    return {"comment": comment, **given, "expect": {"accept": values}}


def refuse(comment: str, given: Mapping[str, Any], code: str, at: int | None = None) -> Fields:
    expect: Fields = {"error": code}
    if at is not None:
        expect["line"] = at
    return {"comment": comment, **given, "expect": expect}


def skip(comment: str, given: Mapping[str, Any], code: str) -> Fields:
    return {"comment": comment, **given, "expect": {"skipped": code}}
