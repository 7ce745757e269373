"""A second implementation of the Remem protocol, written from PROTOCOL.md alone.

It imports nothing of the project and nothing beyond the standard library, which shows that the document is
sufficient: lines, keys, signatures, records, files, the newest of two files, the normal text and the hash of a
lesson, judgement, and the state of a lesson. It is made to be read beside the document, section by section, and not
to be fast. The curve is spelled out because section 3 fixes an equation and not a library.

Two things are not quite in here. The words of the guard (section 8) are no part of the protocol; ``plain_order``
knows a handful, and ``judge`` takes any other guard. And the tables of Unicode are the interpreter's: those of Python
3.11 are the 14.0.0 that the document asks for. Under a later Python, a code point that was assigned since may be
lowered, and may pass as clean; everything about the code points of 14.0.0 comes out the same.
"""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any

JsonObject = dict[str, Any]

LINE_BYTES = 8_192
DEPTH = 8
NUMBER_CHARACTERS = 24
INTEGER_MOST = LAST_SEAL = 2**53 - 1
FILE_RECORDS = 1_000
FILE_BYTES = 262_144
TEXT_CODE_POINTS = 1_000
SEAL_AHEAD_OF_ITS_TIME = 86_400
TIME_AHEAD_OF_RECEIVER = timedelta(hours=24)


class RefusedError(Exception):
    """A broken rule of acceptance: its code and, in a file, the number of the line that broke it."""

    def __init__(self, code: str, line: int | None = None) -> None:
        """Keep both; lines are counted from 1."""
        super().__init__(code if line is None else f"{code} in line {line}")
        self.code = code
        self.line = line


def digest(data: bytes) -> str:
    """Section 1: the digest of bytes."""
    return hashlib.blake2b(data, digest_size=32).hexdigest()


# --- Section 2: a line -----------------------------------------------------------------------------------------------

WHITE = " \t\n"
WORDS: dict[str, bool | None] = {"true": True, "false": False, "null": None}
LIKE_A_NUMBER = re.compile(r"[-+.0-9][-+.0-9A-Za-z]*|NaN|Infinity")
NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?")
NEGATIVE_ZERO = re.compile(r"-0(\.0+)?")
RIGHTLY_SPELLED = re.compile(r'(?:[^"\\\x00-\x1f]|\\["\\btnfr]|\\u00(?:0[0-7be-f]|1[0-9a-f]))*')
SURROGATE = re.compile(r"\\u[Dd][89ABab-f][0-9A-Fa-f]{2}")


class _Parser:
    """Reads one line from left to right, and stops at the first thing that is wrong."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def peek(self) -> str:
        """The next character, or nothing at the end."""
        return self.text[self.at : self.at + 1]

    def wrong(self, otherwise: str = "syntax") -> RefusedError:
        """The refusal of what stands here, outside of strings, in the place of something else."""
        here = self.peek()
        if here == "\r":
            return RefusedError("carriage_return")
        return RefusedError("white_space" if here and here in WHITE else otherwise)

    def step(self, *expected: str) -> str:
        """Step over one of the characters that may stand here."""
        here = self.peek()
        if here not in expected:
            raise self.wrong()
        self.at += 1
        return here

    def line(self) -> JsonObject:
        """One object, and nothing before or behind it."""
        if self.peek() != "{":
            raise self.wrong("not_an_object")
        value = self.object(1)
        if self.peek():
            raise self.wrong()
        return value

    def value(self, level: int) -> Any:
        """Any value; an object or an array would be of this level."""
        here = self.peek()
        if here in ("{", "["):
            if level > DEPTH:
                raise RefusedError("depth")
            return self.object(level) if here == "{" else self.array(level)
        if here == '"':
            return self.string()
        if token := LIKE_A_NUMBER.match(self.text, self.at):
            return self.number(token[0])
        for word, value in WORDS.items():
            if self.text.startswith(word, self.at):
                self.at += len(word)
                return value
        raise self.wrong()

    def object(self, level: int) -> JsonObject:
        """An object, whose names ascend; Python compares strings by code points."""
        fields: JsonObject = {}
        self.step("{")
        if self.peek() == "}":
            self.step("}")
            return fields
        end = ""
        while end != "}":
            name = self.string()
            if name in fields:
                raise RefusedError("duplicate_field")
            if fields and name < max(fields):
                raise RefusedError("field_order")
            self.step(":")
            fields[name] = self.value(level + 1)
            end = self.step(",", "}")
        return fields

    def array(self, level: int) -> list[Any]:
        """An array."""
        values: list[Any] = []
        self.step("[")
        if self.peek() == "]":
            self.step("]")
            return values
        end = ""
        while end != "]":
            values.append(self.value(level + 1))
            end = self.step(",", "]")
        return values

    def string(self) -> str:
        """A string in the one spelling that it has."""
        start = self.at
        self.step('"')
        spelled = RIGHTLY_SPELLED.match(self.text, self.at)
        self.at = spelled.end() if spelled else self.at
        if not self.peek():
            raise RefusedError("syntax")
        if self.peek() != '"':
            raise RefusedError("surrogate" if SURROGATE.match(self.text, self.at) else "escape")
        self.at += 1
        return str(json.loads(self.text[start : self.at]))

    def number(self, token: str) -> int | float:
        """A number: an ``int`` without a point, a ``float`` with one."""
        if len(token) > NUMBER_CHARACTERS or not NUMBER.fullmatch(token) or NEGATIVE_ZERO.fullmatch(token):
            raise RefusedError("number_form")
        self.at += len(token)
        if "." in token:
            return float(token)
        if abs(int(token)) > INTEGER_MOST:
            raise RefusedError("number_range")
        return int(token)


def parse_line(line: bytes) -> JsonObject:
    """The object of a line, which comes without its LF."""
    if len(line) > LINE_BYTES:
        raise RefusedError("line_size")
    try:
        text = line.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        raise RefusedError("encoding") from None
    if re.search("[\ud800-\udfff]", text):
        raise RefusedError("surrogate")
    if text.startswith("\ufeff"):
        raise RefusedError("byte_order_mark")
    return _Parser(text).line()


# --- Sections 3 and 4: signatures and keys ---------------------------------------------------------------------------

P = 2**255 - 19
L = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, -1, P) % P

Point = tuple[int, int, int, int]
"""A point as X, Y, Z and T, where x = X/Z, y = Y/Z and x·y = T/Z."""

IDENTITY: Point = (0, 1, 1, 0)
IDENTITY_BYTES = (1).to_bytes(32, "little")


def add(p: Point, q: Point) -> Point:
    """The sum of two points, which may be equal (RFC 8032, section 5.1.4)."""
    a, b = (p[1] - p[0]) * (q[1] - q[0]) % P, (p[1] + p[0]) * (q[1] + q[0]) % P
    c, d = 2 * p[3] * q[3] * D % P, 2 * p[2] * q[2] % P
    e, f, g, h = b - a, d - c, d + c, b + a
    return e * f % P, g * h % P, f * g % P, e * h % P


def combine(s: int, p: Point, k: int, q: Point) -> Point:
    """The point s·p + k·q, bit by bit from the highest."""
    terms = (IDENTITY, p, q, add(p, q))
    total = IDENTITY
    for bit in reversed(range(max(s.bit_length(), k.bit_length()))):
        total = add(add(total, total), terms[(s >> bit & 1) + 2 * (k >> bit & 1)])
    return total


def encode_point(p: Point) -> bytes:
    """The encoding of a point (RFC 8032, section 5.1.2)."""
    inverse = pow(p[2], -1, P)
    x, y = p[0] * inverse % P, p[1] * inverse % P
    return (y | (x & 1) << 255).to_bytes(32, "little")


def decode_point(encoding: bytes) -> Point | None:
    """The point of a canonical encoding (RFC 8032, section 5.1.3), or nothing."""
    number = int.from_bytes(encoding, "little")
    sign, y = number >> 255, number & (2**255 - 1)
    square = (y * y - 1) * pow(D * y * y + 1, -1, P) % P
    x = pow(square, (P + 3) // 8, P)
    if x * x % P != square:
        x = x * pow(2, (P - 1) // 4, P) % P
    if y >= P or x * x % P != square or (x == 0 and sign):
        return None
    x = P - x if x & 1 != sign else x
    return x, y, 1, x * y % P


@lru_cache(maxsize=4096)
def key_point(key: str) -> Point:
    """The point of a key that keeps all rules of section 4."""
    if not re.fullmatch("[0-9a-f]{64}", key):
        raise RefusedError("key_form")
    point = decode_point(bytes.fromhex(key))
    if point is None or encode_point(point) == IDENTITY_BYTES:
        raise RefusedError("key_invalid")
    if encode_point(combine(L, point, 0, IDENTITY)) != IDENTITY_BYTES:
        raise RefusedError("key_invalid")
    return point


BASE = key_point("58" + 31 * "66")


def origin_of(key: str) -> str:
    """The short name of a key."""
    key_point(key)
    return hashlib.sha256(bytes.fromhex(key)).hexdigest()[:16]


def signature_is_valid(key: str, signed: bytes, signature: bytes) -> bool:
    """The one rule: S is reduced, R is not the identity, and the equation holds byte for byte."""
    r, s = signature[:32], int.from_bytes(signature[32:], "little")
    k = int.from_bytes(hashlib.sha512(r + bytes.fromhex(key) + signed).digest(), "little") % L
    x, y, z, t = key_point(key)
    return s < L and r != IDENTITY_BYTES and encode_point(combine(s, BASE, k, (-x, y, z, -t))) == r


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
        if not signature_is_valid(self.key, self.signed, bytes.fromhex(self.fields["sig"])):
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


def _check_lesson(fields: JsonObject) -> None:
    """The fields of a lesson, less its time."""
    _string(fields, "text")
    _string(fields, "hash", HASH)
    kind = _string(fields, "kind", "[a-z]{1,16}")
    if kind.startswith(KNOWN_KINDS) and kind not in KNOWN_KINDS:
        raise RefusedError("field_value")
    _string(fields, "id")
    _number(fields, "seen", 1, int)
    _number(fields, "strength", 0, int, float)
    parents = fields.get("parents", ["0" * 32])
    if not isinstance(parents, list):
        raise RefusedError("field_type")
    if not parents or not all(isinstance(parent, str) and re.fullmatch(HASH, parent) for parent in parents):
        raise RefusedError("field_value")
    if len(set(parents)) < len(parents):
        raise RefusedError("field_value")


def _check_seal(fields: JsonObject) -> None:
    """The fields of a seal, less its time."""
    if "sealed" not in fields:
        raise RefusedError("field_missing")
    _number(fields, "seal", 1, int)
    _number(fields, "records", 0, int)
    _string(fields, "digest", DIGEST)


def read_record(line: bytes) -> Record:
    """A line by sections 2 to 5, its signature not yet verified, in the order of section 5."""
    fields = parse_line(line)
    if "v" not in fields:
        raise RefusedError("field_missing")
    if type(fields["v"]) is not int or fields["v"] != 1:
        raise RefusedError("version")
    key = _string(fields, "key")
    key_point(key)
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
        _check_lesson(fields)
        return Record(line, fields, "lesson", fields["hash"], parse_time(_string(fields, "updated")))
    if name == "seal":
        _check_seal(fields)
        return Record(line, fields, "seal", None, parse_time(_string(fields, "at")))
    subject = _string(fields, name, DIGEST if name == "deny" else HASH)
    if name == "deny" or (name == "revoke" and "reason" in fields):
        _string(fields, "reason")
    time = parse_time(_string(fields, "at")) if "sealed" in fields or "at" in fields else None
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


# --- Section 8: judgement --------------------------------------------------------------------------------------------

LINE_BREAKS = "\n\v\f\r\u0085\u2028\u2029"
UNCLEAN = {"Cn": "text_unassigned", "Cc": "text_control", "Cf": "text_format", "Co": "text_private_use"}
PLAIN_ORDER = re.compile(
    r"(?:^|[.!?:;,] )(?:(?:always|never|do not|don't) |"
    r"(?:add|call|delete|forget|ignore|install|remove|run|set|use) (?:the|an?|all|any|every|this|that|your|it|them)\b)"
    r"|\bplease\b|\b(?:you|the (?:agent|assistant|reader)) (?:must|should|have to|has to|need to|needs to)\b"
)


def plain_order(text: str) -> bool:
    """A guard of few words; every reader may have its own."""
    return PLAIN_ORDER.search(text.lower()) is not None


def unclean(text: str) -> str | None:
    """Why a text is not clean, or nothing."""
    if not re.search(f"[^{WHITE_SPACE}]", text):
        return "text_empty"
    if len(text) > TEXT_CODE_POINTS:
        return "text_long"
    for character in text:
        if character in LINE_BREAKS:
            return "text_lines"
        if code := UNCLEAN.get(unicodedata.category(character)):
            return code
    return None if unicodedata.is_normalized("NFC", text) else "text_not_nfc"


def judge(record: Record, guard: Callable[[str], bool] = plain_order) -> str | None:
    """Why a reader skips an accepted record, or nothing where it passes."""
    fields = record.fields
    if record.type in ("deny", "revoke"):
        return unclean(fields["reason"]) if "reason" in fields else None
    if record.type != "lesson":
        return None
    if fields["kind"] not in KNOWN_KINDS:
        return "kind_unknown"
    if code := unclean(fields["text"]):
        return code
    if fields["hash"] != lesson_hash(fields["kind"], fields["text"]):
        return "hash_mismatch"
    return "instruction" if guard(fields["text"]) else unclean(fields["id"])


# --- Section 9: the state of a lesson --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Policy:
    """A reader's thresholds and trust; an admission is a key, a commons and a name."""

    confirmations: int = 3
    window: timedelta = timedelta(days=90)
    followed: frozenset[str] = frozenset()
    admitted: tuple[tuple[str, str, str], ...] = ()
    revokers: frozenset[str] = frozenset()
    open: bool = False

    def principals(self) -> dict[str, str]:
        """The lowest key of its principal, for each key that has one and is not its own by an open policy."""
        groups = {key: {key} for key in self.followed | {key for key, _, _ in self.admitted}}
        first: dict[tuple[str, str], str] = {}
        for key, commons, name in self.admitted:
            joined = groups[key] | groups[first.setdefault((commons, name), key)]
            groups |= dict.fromkeys(joined, joined)
        return {key: min(group) for key, group in groups.items()}


@dataclass(frozen=True)
class Reading:
    """What a reader shows of a lesson."""

    state: str
    cause: str
    revokers: list[str]
    kind: str | None
    text: str | None
    publishers: list[str]
    confirmations: int
    unadmitted: int
    corroborations: int
    last_confirmed: datetime | None


def evidence(files: Iterable[File], guard: Callable[[str], bool] = plain_order) -> list[Record]:
    """What the newest file of every key says, less what fails judgement."""
    held: dict[str, File] = {}
    for file in files:
        before = held.get(file.key)
        verdict = newest((before.seal, before.digest) if before else None, (file.seal, file.digest))
        if verdict in ("new", "newer", "equivocation_taken"):
            held[file.key] = file
    return [record for file in held.values() for record in file.records if judge(record, guard) is None]


def read_lesson(lesson: str, records: Iterable[Record], policy: Policy, now: datetime) -> Reading:
    """The reading of the lesson of a hash, from records that pass judgement."""
    said = list(records)
    denied = {record.subject for record in said if record.type == "deny" and record.key in policy.revokers}
    about = [r for r in said if r.type != "deny" and r.subject == lesson and r.key not in denied]
    published = {record.key: record.fields for record in about if record.type == "lesson"}
    revoking = {record.key for record in about if record.type == "revoke"}
    standing = sorted(published.keys() - revoking)

    named = policy.principals()
    principal: Callable[[str], str | None] = (lambda key: key) if policy.open else named.get
    barred = {principal(key) for key in published}
    counted: dict[str, datetime] = {}
    unadmitted: set[str] = set()
    for record in about:
        if record.type != "confirm" or record.time is None:
            continue
        who = principal(record.key)
        if who is None:
            unadmitted |= {record.key} - published.keys()
        elif who not in barred:
            counted[who] = max(record.time, counted.get(who, record.time))
    last = max(counted.values(), default=None)
    turned = {key for key in revoking if principal(key) in counted}
    turns = len({principal(key) for key in turned})

    revokers: set[str] = set()
    if revoking and not standing:
        state, cause, revokers = "revoked", "withdrawn", revoking
    elif revoking & policy.revokers:
        state, cause, revokers = "revoked", "revoker", revoking & policy.revokers
    elif turns >= policy.confirmations and 3 * turns > 2 * len(counted):
        state, cause, revokers = "revoked", "quorum", turned
    elif last is None or len(counted) < policy.confirmations:
        state, cause = "candidate", "unconfirmed"
    elif now - last <= policy.window:
        state, cause = "common", "confirmed"
    elif now - last <= 2 * policy.window:
        state, cause = "fading", "lapsed"
    else:
        state, cause = "removed", "expired"
    shown = published[standing[0]] if standing else {}
    return Reading(
        state, cause, sorted(revokers), shown.get("kind"), shown.get("text"), standing,
        len(counted), len(unadmitted), max(len(standing) - 1, 0), last,
    )  # fmt: skip
