"""A file: everything one key says, as one statement (PROTOCOL.md, sections 6 and 7).

`accept` is the only door: who holds an `OriginFile` holds bytes that passed every rule of acceptance.
Acceptance asks nothing about the content; what a reader makes of a record is judgement.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from functools import cached_property
from hashlib import blake2b
from typing import cast

from remem.protocol.canonical import JSON
from remem.protocol.errors import (
    BlankLine,
    CarriageReturn,
    Deferred,
    DuplicateRecord,
    FileEmpty,
    FileSize,
    KeyMixed,
    LastSealContent,
    LineEnd,
    ProtocolError,
    RecordCount,
    SealDigest,
    SealPlace,
    SealRecords,
    SealTime,
    UnsealedLine,
)
from remem.protocol.keys import PublicKey, SigningKey
from remem.protocol.records import AnyRecord, Record, Seal, Unknown, read_record, sign_record, verify_record
from remem.protocol.rules import RULES
from remem.protocol.times import format_time, unix_seconds


@dataclass(frozen=True, slots=True)
class Version:
    """Which of a key's files: its seal's number (None in a file of draft 0) and its digest."""

    seal: int | None
    digest: str


@dataclass(frozen=True, slots=True)
class Verified:
    """Lines of one key's sealed file that were accepted before, each with its topic; no clock defers them again."""

    key: PublicKey
    topics: Mapping[bytes, str]


@dataclass(frozen=True)
class OriginFile:
    """An accepted file.

    Attributes:
        data: the bytes as they arrived.
        digest: BLAKE2b-256 of `data`, 64 hex digits; versions and ETags go by it.
        key: whose file it is.
        seal: its first line, or None in a file of draft 0.
        lines: the other lines, each without its LF.
        topics: for each line the type and subject that may stand once in a file.
        fresh: the records that this acceptance read, which leaves out lines verified before.
    """

    data: bytes
    digest: str
    key: PublicKey
    seal: Seal | None
    lines: tuple[bytes, ...]
    topics: tuple[str, ...]
    fresh: tuple[Record, ...]

    @property
    def version(self) -> Version:
        """Which of the key's files this is."""
        return Version(None if self.seal is None else self.seal.number, self.digest)

    @property
    def verified(self) -> Verified | None:
        """What the acceptance of this key's next file need not verify again."""
        return None if self.seal is None else Verified(self.key, dict(zip(self.lines, self.topics, strict=True)))

    @cached_property
    def records(self) -> tuple[Record, ...]:
        """Every record behind the seal, in the order of the lines."""
        if len(self.fresh) == len(self.lines):
            return self.fresh
        read: dict[bytes, AnyRecord] = {record.line: record for record in self.fresh}
        return tuple(cast("Record", read.get(line) or read_record(line)) for line in self.lines)


class Verdict(Enum):
    """What a holder does with an accepted file beside the one it holds (PROTOCOL.md, section 7)."""

    NEW = "new"
    NEWER = "newer"
    UNCHANGED = "unchanged"
    OLDER = "older"
    EQUIVOCATION_TAKEN = "equivocation_taken"
    EQUIVOCATION_LEFT = "equivocation_left"

    @property
    def takes(self) -> bool:
        """Whether the offered file replaces what is held."""
        return self in (Verdict.NEW, Verdict.NEWER, Verdict.EQUIVOCATION_TAKEN)

    @property
    def equivocation(self) -> bool:
        """Whether the key's owner sealed two files with one number."""
        return self in (Verdict.EQUIVOCATION_TAKEN, Verdict.EQUIVOCATION_LEFT)


def newest(held: Version | None, offered: Version) -> Verdict:
    """Decide between the held and the offered version of one key (PROTOCOL.md, section 7)."""
    if held is None:
        return Verdict.NEW
    if held.digest == offered.digest:
        return Verdict.UNCHANGED
    if held.seal == offered.seal and held.seal is not None:
        taken = offered.digest > held.digest
        return Verdict.EQUIVOCATION_TAKEN if taken else Verdict.EQUIVOCATION_LEFT
    # Files of draft 0 replace each other as they come, and never a sealed one.
    held_number, offered_number = held.seal or 0, offered.seal or 0
    return Verdict.NEWER if offered_number >= held_number else Verdict.OLDER


def digest_of(data: bytes) -> str:
    """The BLAKE2b-256 of some bytes, as 64 hex digits."""
    return blake2b(data, digest_size=32).hexdigest()


def accept(data: bytes, *, now: datetime, verified: Verified | None = None) -> OriginFile:
    """Accept a file, or say which rule it breaks (PROTOCOL.md, section 6).

    Args:
        data: the whole file.
        now: the receiver's clock, with a zone.
        verified: lines that need no second verification; used only for a sealed file of the same key.

    Raises:
        Deferred: only the clock is against it; the same file may come again later.
        ProtocolError: the file breaks a rule.
        ValueError: the clock has no zone.
    """
    if now.tzinfo is None:
        raise ValueError("expected a clock with a zone, got one without")
    # 1. The bytes are lines.
    lines = _split(data)
    # 2. Each line is a record, all of one key, under one seal or none.
    first = _read(lines[0], 1)
    seal = first if isinstance(first, Seal) else None
    behind = lines if seal is None else lines[1:]
    known = verified.topics if verified and seal and verified.key == seal.key else {}
    fresh = _read_fresh(behind, first, known)
    # 3. The file says nothing twice, and no more than its seal counts.
    topics = tuple(known[line] if line in known else topic_of(fresh[line]) for line in behind)
    _check_once(topics, seal)
    if seal is not None:
        _check_seal(seal, topics)
    # 4. Every signature verifies, the seal's whatever is known.
    for number, line in enumerate(lines, 1):
        if number == 1 or line not in known:
            _verify(fresh.get(line) or first, number)
    # 5. The seal's digest is that of what follows.
    if seal is not None and digest_of(data[len(seal.line) + 1 :]) != seal.digest:
        raise SealDigest(f"lines behind the seal with digest {seal.digest}", "other lines", line=1)
    # 6. No record is of a day that has not come; last, so that only a file good in itself is deferred.
    _check_clock(lines, {lines[0]: first, **fresh}, now)
    return OriginFile(
        data,
        digest_of(data),
        first.key,
        seal,
        tuple(behind),
        topics,
        cast("tuple[Record, ...]", tuple(fresh.values())),
    )


def topic_of(record: AnyRecord) -> str:
    """Name what may stand once in a file: the type and subject; empty for a record of an unknown type."""
    return "" if isinstance(record, Unknown) else f"{record.type} {record.subject}"


def compose(key: SigningKey, contents: Sequence[Mapping[str, JSON]], *, number: int, at: datetime) -> bytes:
    """Sign and seal a file (PROTOCOL.md, section 6).

    Args:
        key: the writer's key.
        contents: the records' own fields, one mapping a record.
        number: the seal's number.
        at: the writer's clock, which the seal carries in whole seconds.

    Raises:
        ValueError: the contents make no file that anyone would accept.
    """
    lines = [sign_record(key, {**fields, "sealed": True}) for fields in contents]
    behind = b"".join(line + b"\n" for line in lines)
    seal: dict[str, JSON] = {
        "seal": number,
        "at": format_time(at),
        "records": len(lines),
        "digest": digest_of(behind),
        "sealed": True,
    }
    data = sign_record(key, seal) + b"\n" + behind
    try:
        accept(data, now=at)
    except ProtocolError as error:
        raise ValueError(f"not a file of the protocol: {error}") from error
    return data


def _split(data: bytes) -> list[bytes]:
    if not data:
        raise FileEmpty("at least one line", "no byte")
    if len(data) > RULES.file_bytes:
        raise FileSize(f"at most {RULES.file_bytes} bytes", f"{len(data)} bytes")
    if (at := data.find(b"\r")) >= 0:
        raise CarriageReturn("no carriage return", f"one at byte {at}", line=data.count(b"\n", 0, at) + 1)
    if not data.endswith(b"\n"):
        raise LineEnd("LF behind the last line", "the end of the file", line=data.count(b"\n") + 1)
    lines = data[:-1].split(b"\n")
    if b"" in lines:
        raise BlankLine("no blank line", "one", line=lines.index(b"") + 1)
    if len(lines) > RULES.file_records + 1:
        raise RecordCount(f"at most {RULES.file_records} records", f"{len(lines)} lines")
    return lines


def _read(line: bytes, number: int) -> AnyRecord:
    try:
        return read_record(line)
    except ProtocolError as error:
        error.at_line(number)
        raise


def _verify(record: AnyRecord, number: int) -> None:
    try:
        verify_record(record)
    except ProtocolError as error:
        error.at_line(number)
        raise


def _read_fresh(behind: Sequence[bytes], first: AnyRecord, known: Mapping[bytes, str]) -> dict[bytes, AnyRecord]:
    """Read the lines behind the seal that were not verified before, and check that each belongs here."""
    sealed = isinstance(first, Seal)
    records: dict[bytes, AnyRecord] = {}
    seen: set[bytes] = set()
    for number, line in enumerate(behind, 2 if sealed else 1):
        if line in seen:
            raise DuplicateRecord("no two lines equal", "the same line again", line=number)
        seen.add(line)
        if line in known:
            continue
        record = first if number == 1 else _read(line, number)
        if isinstance(record, Seal):
            raise SealPlace("a seal in the first line only", "another seal", line=number)
        if record.key != first.key:
            raise KeyMixed(f"key {first.key.hex} in every line", record.key.hex, line=number)
        if record.sealed != sealed:
            expected = '"sealed":true in every line of a sealed file' if sealed else "a seal as the first line"
            raise UnsealedLine(expected, "a line without it" if sealed else 'a line with "sealed":true', line=number)
        records[line] = record
    return records


def _check_once(topics: Sequence[str], seal: Seal | None) -> None:
    if len(topics) > RULES.file_records:
        raise RecordCount(f"at most {RULES.file_records} records", f"{len(topics)}")
    seen: set[str] = set()
    for number, topic in enumerate(topics, 1 if seal is None else 2):
        # Records of unknown types say nothing that version 1 could compare.
        if topic and topic in seen:
            raise DuplicateRecord("each type and subject once", topic, line=number)
        seen.add(topic)


def _check_seal(seal: Seal, topics: Sequence[str]) -> None:
    if seal.records != len(topics):
        raise SealRecords(f"{seal.records} records behind the seal", str(len(topics)), line=1)
    if seal.last:
        for number, topic in enumerate(topics, 2):
            if not topic.startswith("revoke "):
                raise LastSealContent("revocations only under the last seal", topic or "an unknown type", line=number)
    elif seal.number > (most := unix_seconds(seal.time) + RULES.seal_ahead_of_its_time):
        raise SealTime(f"a seal of at most {most}, a day above its time", str(seal.number), line=1)


def _check_clock(lines: Sequence[bytes], records: Mapping[bytes, AnyRecord], now: datetime) -> None:
    for number, line in enumerate(lines, 1):
        time = records[line].time if line in records else None
        if time is not None and time - now > RULES.time_ahead_of_receiver:
            got = f"{format_time(time)} at {format_time(now)}"
            raise Deferred("a time at most 24 hours ahead of the receiver's clock", got, line=number)
