"""Records, files and the newest of two (PROTOCOL.md, sections 4 to 7)."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from independent import ed25519
from independent.lines import INTEGER_MOST, JsonObject, RefusedError, parse_line

LAST_SEAL = INTEGER_MOST
FILE_RECORDS = 1_000
FILE_BYTES = 262_144
SEAL_AHEAD_OF_ITS_TIME = 86_400
TIME_AHEAD_OF_RECEIVER = timedelta(hours=24)


def digest(data: bytes) -> str:
    """Section 1: the digest of bytes."""
    return hashlib.blake2b(data, digest_size=32).hexdigest()


# --- Section 4: key and origin ---------------------------------------------------------------------------------------


def check_key(key: str) -> None:
    """Refuse a key that breaks a rule."""
    if not re.fullmatch("[0-9a-f]{64}", key):
        raise RefusedError("key_form")
    if ed25519.key_point(bytes.fromhex(key)) is None:
        raise RefusedError("key_invalid")


def origin_of(key: str) -> str:
    """The short name of a key."""
    check_key(key)
    return hashlib.sha256(bytes.fromhex(key)).hexdigest()[:16]


# --- Section 5: records ----------------------------------------------------------------------------------------------

TYPES = {"text": "lesson", "confirm": "confirm", "revoke": "revoke", "deny": "deny", "seal": "seal"}
KNOWN_KINDS = ("error", "correction", "surprise")
HASH = "[0-9a-f]{32}"
DIGEST = "[0-9a-f]{64}"
ANYTHING = "(?s:.*)"
TIME = re.compile(
    r"((?:19[7-9]|20[0-9])[0-9]-[0-9]{2}-[0-9]{2}T(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9])"
    r"(?:\.([0-9]{1,6}))?(?:Z|\+00:00)"
)
WHITE_SPACE = "\t\n\v\f\r \u0085\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
"""The 25 code points, as the inside of a class of regular expressions."""


@dataclass(frozen=True)
class Record:
    """One line that was read. The subject is the hash or key that it speaks of; a seal has none."""

    line: bytes
    fields: JsonObject
    type: str
    subject: str | None
    time: datetime | None

    @property
    def key(self) -> str:
        """The key that says it."""
        return str(self.fields["key"])

    @property
    def signed(self) -> bytes:
        """The signed bytes: those of the line less the 137 of the signature."""
        before, behind = self.line.split(b'"sig":"')
        return before + behind[130:]

    def check_signature(self) -> None:
        """Refuse a signature that does not verify."""
        signature = bytes.fromhex(self.fields["sig"])
        if not ed25519.signature_is_valid(bytes.fromhex(self.key), self.signed, signature):
            raise RefusedError("signature_invalid")


def parse_time(value: str) -> datetime:
    """A time of the one profile."""
    if not (match := TIME.fullmatch(value)):
        raise RefusedError("time_form")
    try:
        second = datetime.fromisoformat(match[1])
    except ValueError:
        raise RefusedError("time_form") from None
    return second.replace(microsecond=int((match[2] or "").ljust(6, "0")), tzinfo=UTC)


def _string(fields: JsonObject, name: str, form: str = ANYTHING, code: str = "field_value") -> str:
    """A field that is a string of a form."""
    if name not in fields:
        raise RefusedError("field_missing")
    if not isinstance(fields[name], str):
        raise RefusedError("field_type")
    if not re.fullmatch(form, fields[name]):
        raise RefusedError(code)
    return str(fields[name])


def _number(fields: JsonObject, name: str, least: int, *kinds: type) -> None:
    """A field that is a number of a least value; ``type`` and not ``isinstance``, for true is no number."""
    if name not in fields:
        raise RefusedError("field_missing")
    if type(fields[name]) not in kinds:
        raise RefusedError("field_type")
    if fields[name] < least:
        raise RefusedError("field_value")


def _lesson(fields: JsonObject) -> tuple[str, datetime]:
    """The hash and the time of a lesson; its fields are read in the order of the table, as those of all types are."""
    _string(fields, "id")
    _string(fields, "text")
    kind = _string(fields, "kind", "[a-z]{1,16}")
    if kind.startswith(KNOWN_KINDS) and kind not in KNOWN_KINDS:
        raise RefusedError("field_value")
    _number(fields, "seen", 1, int)
    _number(fields, "strength", 0, int, float)
    updated = parse_time(_string(fields, "updated"))
    subject = _string(fields, "hash", HASH)
    parents = fields.get("parents", ["0" * 32])
    if not isinstance(parents, list):
        raise RefusedError("field_type")
    if not parents or not all(isinstance(parent, str) and re.fullmatch(HASH, parent) for parent in parents):
        raise RefusedError("field_value")
    if len(set(parents)) < len(parents):
        raise RefusedError("field_value")
    return subject, updated


def _seal(fields: JsonObject) -> datetime:
    """The time of a seal."""
    if "sealed" not in fields:
        raise RefusedError("field_missing")
    _number(fields, "seal", 1, int)
    at = parse_time(_string(fields, "at"))
    _number(fields, "records", 0, int)
    _string(fields, "digest", DIGEST)
    return at


def read_record(line: bytes) -> Record:
    """A line by sections 2 to 5, its signature not yet verified, in the order of section 5."""
    fields = parse_line(line)
    if "v" not in fields:
        raise RefusedError("field_missing")
    if type(fields["v"]) is not int or fields["v"] != 1:
        raise RefusedError("version")
    key = _string(fields, "key")
    check_key(key)
    _string(fields, "origin", origin_of(key), "origin_mismatch")
    if fields.get("sealed", True) is not True:
        raise RefusedError("field_value")
    named = [name for name in TYPES if name in fields]
    if len(named) > 1:
        raise RefusedError("record_type")
    if line.count(b'"sig":"') != 1 or not isinstance(fields.get("sig"), str):
        raise RefusedError("signature_place")
    _string(fields, "sig", "[0-9a-f]{128}", "signature_form")
    if not named:
        return Record(line, fields, "unknown", None, None)
    name = named[0]
    if name == "text":
        return Record(line, fields, "lesson", *_lesson(fields))
    if name == "seal":
        return Record(line, fields, "seal", None, _seal(fields))
    subject = _string(fields, name, DIGEST if name == "deny" else HASH)
    time = parse_time(_string(fields, "at")) if "sealed" in fields or "at" in fields else None
    if name == "deny" or (name == "revoke" and "reason" in fields):
        _string(fields, "reason")
    return Record(line, fields, TYPES[name], subject, time)


def accept_line(line: bytes) -> Record:
    """A line by itself: read, and last its signature verified."""
    record = read_record(line)
    record.check_signature()
    return record


def normal_text(text: str) -> str:
    """The normal text: lower case one by one, and single spaces for white space."""
    return re.sub(f"[{WHITE_SPACE}]+", " ", "".join(character.lower() for character in text)).strip(" ")


def lesson_hash(kind: str, text: str) -> str:
    """The hash by which a lesson is known everywhere."""
    return hashlib.blake2b((kind + normal_text(text)).encode(), digest_size=16).hexdigest()


# --- Section 6: a file -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class File:
    """An accepted file: the number of its seal or nothing, its records less the seal, its digest."""

    key: str
    seal: int | None
    records: tuple[Record, ...]
    digest: str


def _split(data: bytes) -> list[bytes]:
    """Step 1: the bytes are lines."""
    if not data:
        raise RefusedError("file_empty")
    if len(data) > FILE_BYTES:
        raise RefusedError("file_size")
    if b"\r" in data:
        raise RefusedError("carriage_return", data[: data.index(b"\r")].count(b"\n") + 1)
    *lines, rest = data.split(b"\n")
    if rest:
        raise RefusedError("line_end", len(lines) + 1)
    if b"" in lines:
        raise RefusedError("blank_line", lines.index(b"") + 1)
    if len(lines) > FILE_RECORDS + 1:
        raise RefusedError("record_count")
    return lines


def _read(lines: list[bytes]) -> list[Record]:
    """Step 2: each line by itself and beside those before it."""
    records: list[Record] = []
    for number, line in enumerate(lines, 1):
        try:
            record = read_record(line)
        except RefusedError as error:
            raise RefusedError(error.code, number) from None
        records.append(record)
        if record.type == "seal" and number > 1:
            raise RefusedError("seal_place", number)
        if record.key != records[0].key:
            raise RefusedError("key_mixed", number)
        if ("sealed" in record.fields) != (records[0].type == "seal"):
            raise RefusedError("unsealed_line", number)
        if line in lines[: number - 1]:
            raise RefusedError("duplicate_record", number)
    return records


def _check_whole(lines: list[Record]) -> None:
    """Step 3: the records as a whole, and what the seal says of them."""
    sealed = lines[0].type == "seal"
    records = list(enumerate(lines, 1))[sealed:]
    if len(records) > FILE_RECORDS:
        raise RefusedError("record_count")
    said: set[tuple[str, str]] = set()
    for number, record in records:
        if record.subject is not None and (record.type, record.subject) in said:
            raise RefusedError("duplicate_record", number)
        said.add((record.type, record.subject or ""))
    if not sealed or (time := lines[0].time) is None:
        return
    seal = lines[0].fields
    if seal["records"] != len(records):
        raise RefusedError("seal_records", 1)
    if seal["seal"] == LAST_SEAL:
        for number, record in records:
            if record.type != "revoke":
                raise RefusedError("last_seal_content", number)
    elif seal["seal"] > int(time.replace(microsecond=0).timestamp()) + SEAL_AHEAD_OF_ITS_TIME:
        raise RefusedError("seal_time", 1)


def accept_file(data: bytes, now: datetime) -> File:
    """The acceptance of a file, in six steps."""
    lines = _read(_split(data))
    _check_whole(lines)
    for number, record in enumerate(lines, 1):
        try:
            record.check_signature()
        except RefusedError as error:
            raise RefusedError(error.code, number) from None
    sealed = lines[0].type == "seal"
    if sealed and lines[0].fields["digest"] != digest(data[data.index(b"\n") + 1 :]):
        raise RefusedError("seal_digest", 1)
    for number, record in enumerate(lines, 1):
        if record.time is not None and record.time - now > TIME_AHEAD_OF_RECEIVER:
            raise RefusedError("deferred", number)
    return File(lines[0].key, lines[0].fields["seal"] if sealed else None, tuple(lines[sealed:]), digest(data))


# --- Section 7: the newest wins --------------------------------------------------------------------------------------

Version = tuple[int | None, str]
"""The number of a file's seal, or none, and the digest of its bytes."""


def newest(held: Version | None, offered: Version) -> str:
    """What becomes of an accepted file, by versions alone."""
    if held is None:
        return "new"
    if held[1] == offered[1]:
        return "unchanged"
    if offered[0] is None:
        return "newer" if held[0] is None else "older"
    if held[0] is None or offered[0] > held[0]:
        return "newer"
    if offered[0] < held[0]:
        return "older"
    return "equivocation_taken" if offered[1] > held[1] else "equivocation_left"
