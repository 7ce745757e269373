"""Records: what one signed line says (PROTOCOL.md, section 5).

A record is parsed once, from the bytes that arrived, and keeps them: `line` is what is stored, served and
verified, and nobody spells another's record again. Unknown fields and unknown types are kept that way too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import ClassVar, Final, TypeAlias

from remem.protocol.canonical import JSON, encode, parse_line
from remem.protocol.errors import (
    FieldMissing,
    FieldType,
    FieldValue,
    OriginMismatch,
    ProtocolError,
    RecordType,
    SignatureForm,
    SignatureInvalid,
    SignaturePlace,
    WireVersion,
    show,
)
from remem.protocol.keys import PublicKey, SigningKey
from remem.protocol.rules import RULES
from remem.protocol.text import KNOWN_KINDS
from remem.protocol.times import parse_time

_HEX_32: Final = re.compile(r"[0-9a-f]{32}")
_HEX_64: Final = re.compile(r"[0-9a-f]{64}")
_HEX_128: Final = re.compile(r"[0-9a-f]{128}")
_KIND: Final = re.compile(r"[a-z]{1,16}")
_SIGNATURE_FIELD: Final = b'"sig":"'


@dataclass(frozen=True, slots=True, kw_only=True)
class _Signed:
    """What every line carries: its key, its exact bytes without the LF, and whether it is sealed."""

    type: ClassVar[str]
    key: PublicKey
    line: bytes
    sealed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Lesson(_Signed):
    """A lesson: one sentence that a memory learned from a surprise."""

    type: ClassVar[str] = "lesson"
    id: str
    text: str
    kind: str
    seen: int
    strength: float
    updated: datetime
    hash: str
    parents: tuple[str, ...] = ()

    @property
    def subject(self) -> str:
        """The lesson's hash: what may stand once in a file."""
        return self.hash

    @property
    def time(self) -> datetime:
        """When the lesson last changed."""
        return self.updated


@dataclass(frozen=True, slots=True, kw_only=True)
class Confirmation(_Signed):
    """A confirmation: the lesson of this hash came true in the memory that signs."""

    type: ClassVar[str] = "confirm"
    subject: str
    time: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Revocation(_Signed):
    """A revocation: the lesson of this hash is taken back, by whoever signs."""

    type: ClassVar[str] = "revoke"
    subject: str
    time: datetime | None
    reason: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Denial(_Signed):
    """A denial: whoever trusts the signer as a revoker counts nothing of the key that it names."""

    type: ClassVar[str] = "deny"
    subject: str
    time: datetime | None
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Seal(_Signed):
    """A seal: the first line of a file, which makes all its lines one statement."""

    type: ClassVar[str] = "seal"
    number: int
    time: datetime
    records: int
    digest: str

    @property
    def subject(self) -> str:
        """The seal's number."""
        return str(self.number)

    @property
    def last(self) -> bool:
        """Whether this is the last seal, which retires the key."""
        return self.number == RULES.last_seal


@dataclass(frozen=True, slots=True, kw_only=True)
class Unknown(_Signed):
    """A record of a type that version 1 does not know: kept, served and otherwise ignored."""

    type: ClassVar[str] = "unknown"
    subject: str = field(default="", init=False)
    time: datetime | None = field(default=None, init=False)


Record: TypeAlias = Lesson | Confirmation | Revocation | Denial | Unknown
AnyRecord: TypeAlias = Record | Seal


def parse_record(line: bytes) -> AnyRecord:
    """Read and verify one line, without its LF (PROTOCOL.md, sections 2 to 5).

    Raises:
        ProtocolError: the line breaks a rule, or its signature does not verify.
    """
    record = read_record(line)
    verify_record(record)
    return record


def read_record(line: bytes) -> AnyRecord:
    """Read one line without judging its signature: for bytes that were verified before.

    Raises:
        ProtocolError: the line breaks a rule of its form.
    """
    fields = parse_line(line)
    _check_version(fields)
    key = PublicKey.parse(_string(fields, "key"))
    if (origin := _string(fields, "origin")) != key.origin:
        raise OriginMismatch(f"origin {key.origin}, which is the key's", show(origin))
    sealed = "sealed" in fields
    if sealed and fields["sealed"] is not True:
        raise FieldValue('"sealed" to be true', show(fields["sealed"]))
    types = _READERS.keys() & fields.keys()
    if len(types) > 1:
        raise RecordType("one type of record", " and ".join(sorted(types)))
    _check_signature_place(fields, line)
    if not types:
        return Unknown(key=key, line=line, sealed=sealed)
    return _READERS[types.pop()](fields, key, line, sealed)


def verify_record(record: AnyRecord) -> None:
    """Verify the signature of a record over the bytes that arrived (PROTOCOL.md, section 3).

    Raises:
        SignatureInvalid: it is not the key's signature of these bytes.
    """
    line = record.line
    start = line.index(_SIGNATURE_FIELD)
    digits = start + len(_SIGNATURE_FIELD)
    end = digits + 128
    # Behind the signature stand its quote and a comma, since "v" sorts behind "sig".
    if not record.key.verify(line[:start] + line[end + 2 :], bytes.fromhex(line[digits:end].decode())):
        raise SignatureInvalid("a signature of this line by its key", "one that does not verify")


def sign_record(key: SigningKey, fields: Mapping[str, JSON]) -> bytes:
    """Sign a record: add `v`, `key`, `origin` and `sig`, and return its line without the LF.

    Raises:
        ValueError: the fields make no record of the protocol.
    """
    if taken := {"v", "key", "origin", "sig"} & fields.keys():
        raise ValueError(f"expected the record's own fields, got {', '.join(sorted(taken))}")
    whole = {**fields, "v": RULES.version, "key": key.public.hex, "origin": key.public.origin}
    signature = key.sign(encode(whole)).hex()
    line = encode({**whole, "sig": signature})
    try:
        read_record(line)
    except ProtocolError as error:
        raise ValueError(f"not a record of the protocol: {error}") from error
    return line


# --- one check a field ---


def _check_version(fields: Mapping[str, JSON]) -> None:
    if "v" not in fields:
        raise FieldMissing('a field "v"', "none")
    if type(fields["v"]) is not int or fields["v"] != RULES.version:
        raise WireVersion(f'"v" to be {RULES.version}', show(fields["v"]))


def _check_signature_place(fields: Mapping[str, JSON], line: bytes) -> None:
    times = line.count(_SIGNATURE_FIELD)
    signature = fields.get("sig")
    if times != 1 or not isinstance(signature, str):
        where = "in the line's own object" if isinstance(signature, str) else "no text of that name there"
        raise SignaturePlace('"sig" once, in the line\'s own object', f"{times} in the line, {where}")
    if not _HEX_128.fullmatch(signature):
        raise SignatureForm("a signature of 128 lower-case hex digits", show(signature))


def _missing(name: str) -> FieldMissing:
    return FieldMissing(f'a field "{name}"', "none")


def _string(fields: Mapping[str, JSON], name: str) -> str:
    value = fields.get(name)
    if isinstance(value, str):
        return value
    if name not in fields:
        raise _missing(name)
    raise FieldType(f'"{name}" to be a string', show(value))


def _hex(fields: Mapping[str, JSON], name: str, form: re.Pattern[str] = _HEX_32, digits: int = 32) -> str:
    value = _string(fields, name)
    if not form.fullmatch(value):
        raise FieldValue(f'"{name}" to be {digits} lower-case hex digits', show(value))
    return value


def _integer(fields: Mapping[str, JSON], name: str, least: int) -> int:
    value = fields.get(name)
    if type(value) is not int:
        if name not in fields:
            raise _missing(name)
        raise FieldType(f'"{name}" to be an integer without a fraction', show(value))
    if value < least:
        raise FieldValue(f'"{name}" to be at least {least}', str(value))
    return value


def _strength(fields: Mapping[str, JSON]) -> float:
    value = fields.get("strength")
    if type(value) is not float and type(value) is not int:
        if "strength" not in fields:
            raise _missing("strength")
        raise FieldType('"strength" to be a number', show(value))
    if value < 0:
        raise FieldValue('"strength" to be at least 0', show(value))
    return float(value)


def _kind(fields: Mapping[str, JSON]) -> str:
    kind = _string(fields, "kind")
    if kind in KNOWN_KINDS:
        return kind
    # The hash runs the kind and the text together, so no kind may begin with another.
    if not _KIND.fullmatch(kind) or kind.startswith(KNOWN_KINDS):
        raise FieldValue('"kind" to be 1 to 16 letters a to z that begin with no known kind', show(kind))
    return kind


def _parents(fields: Mapping[str, JSON]) -> tuple[str, ...]:
    if "parents" not in fields:
        return ()
    value = fields["parents"]
    if not isinstance(value, list):
        raise FieldType('"parents" to be an array', show(value))
    parents = tuple(item for item in value if isinstance(item, str) and _HEX_32.fullmatch(item))
    if not parents or len(parents) != len(value) or len(set(parents)) != len(parents):
        raise FieldValue('"parents" to be hashes, at least one and none twice', show(value))
    return parents


def _time(fields: Mapping[str, JSON], sealed: bool) -> datetime | None:
    # Draft 0 knew no time of a record; only its files, which have no seal, may lack it.
    if "at" not in fields and not sealed:
        return None
    return parse_time(_string(fields, "at"))


# --- one reader a type ---


def _read_lesson(fields: Mapping[str, JSON], key: PublicKey, line: bytes, sealed: bool) -> Lesson:
    return Lesson(
        key=key,
        line=line,
        sealed=sealed,
        id=_string(fields, "id"),
        text=_string(fields, "text"),
        kind=_kind(fields),
        seen=_integer(fields, "seen", 1),
        strength=_strength(fields),
        updated=parse_time(_string(fields, "updated")),
        hash=_hex(fields, "hash"),
        parents=_parents(fields),
    )


def _read_confirmation(fields: Mapping[str, JSON], key: PublicKey, line: bytes, sealed: bool) -> Confirmation:
    subject, time = _hex(fields, "confirm"), _time(fields, sealed)
    return Confirmation(key=key, line=line, sealed=sealed, subject=subject, time=time)


def _read_revocation(fields: Mapping[str, JSON], key: PublicKey, line: bytes, sealed: bool) -> Revocation:
    subject, time = _hex(fields, "revoke"), _time(fields, sealed)
    reason = _string(fields, "reason") if "reason" in fields else None
    return Revocation(key=key, line=line, sealed=sealed, subject=subject, time=time, reason=reason)


def _read_denial(fields: Mapping[str, JSON], key: PublicKey, line: bytes, sealed: bool) -> Denial:
    subject, time = _hex(fields, "deny", _HEX_64, 64), _time(fields, sealed)
    reason = _string(fields, "reason")
    return Denial(key=key, line=line, sealed=sealed, subject=subject, time=time, reason=reason)


def _read_seal(fields: Mapping[str, JSON], key: PublicKey, line: bytes, sealed: bool) -> Seal:
    if not sealed:
        raise FieldMissing('a field "sealed" in a seal', "none")
    return Seal(
        key=key,
        line=line,
        sealed=sealed,
        number=_integer(fields, "seal", 1),
        time=parse_time(_string(fields, "at")),
        records=_integer(fields, "records", 0),
        digest=_hex(fields, "digest", _HEX_64, 64),
    )


_READERS: Final[Mapping[str, Callable[[Mapping[str, JSON], PublicKey, bytes, bool], AnyRecord]]] = {
    "text": _read_lesson,
    "confirm": _read_confirmation,
    "revoke": _read_revocation,
    "deny": _read_denial,
    "seal": _read_seal,
}
