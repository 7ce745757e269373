"""The file that a key of the operator speaks in: how a word gets into it and out of it (PROTOCOL.md, section 10).

- A word is a revocation or a denial. It passes judgement, or no reader would hear it.
- A revocation takes the place of a lesson of the same hash. Every other line stays as it is, to the byte.
- The new seal is above the one that stands, and the number of a second where it can be.
- A database that was set back has lost seals that readers hold. The file is then sealed a day above the clock: no burst
  of acts comes so far, and the acts of another day still go above it.
- Nothing is left out of a full file: what the operator says is kept for as long as it is meant. The last of its room is
  for denials, which answer a flood of lessons where revocations do not.

Pure: bytes and `now` in, bytes out, on the commons' own machine and on any other that has the key.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from typing import Final, Literal, NamedTuple, TypeAlias

from remem.protocol import (
    RULES,
    OriginFile,
    ProtocolError,
    PublicKey,
    SigningKey,
    Verified,
    accept,
    digest_of,
    newest,
    sign_record,
)
from remem.protocol.canonical import JSON
from remem.protocol.errors import FileSize, KeyInvalid, RecordCount, UnsealedLine, show
from remem.protocol.text import text_fault
from remem.protocol.times import format_time, unix_seconds
from remem.sharing.seal import next_seal
from remem_server.errors import KeyRetired, OperatorFileFull, ParameterForm

Act: TypeAlias = Literal["revoke", "unrevoke", "deny", "undeny"]
"""What an operator does by a word."""

# What stands was accepted when it came, whatever the clock said.
END_OF_TIME: Final = datetime.max.replace(tzinfo=UTC)

REASON_BYTES: Final = 1_000
ROOM_FOR_DENIALS: Final = 16_384
NEARLY_FULL: Final = 80
"""From how many hundredths on an operator is told that a file fills up."""

_HASH: Final = re.compile(r"[0-9a-f]{32}")


class Word(NamedTuple):
    """A revocation or a denial, to be said or to be taken back.

    Attributes:
        type: `revoke` or `deny`.
        subject: of what: a lesson's hash, or a key.
        said: whether the file is to say it.
        reason: why it is said.
    """

    type: Literal["revoke", "deny"]
    subject: str
    said: bool
    reason: str | None = None

    @property
    def topic(self) -> str:
        """The type and subject that stand once in a file."""
        return f"{self.type} {self.subject}"


def word_of(act: Act, subject: str, reason: str | None) -> Word:
    """Read what an operator wants.

    Raises:
        ParameterForm: the subject or the reason has another form.
    """
    check_reason(reason)
    if act in ("deny", "undeny"):
        return Word("deny", checked_key(subject), act == "deny", reason)
    if not _HASH.fullmatch(subject):
        raise ParameterForm(f"hash: expected 32 lower-case hex digits, got {show(subject)}")
    return Word("revoke", subject, act == "revoke", reason)


def checked_key(text: str) -> str:
    """Read the key that an act is about.

    Raises:
        ParameterForm: it is none.
    """
    try:
        return PublicKey.parse(text).hex
    except KeyInvalid as error:
        raise ParameterForm(f"key: expected a key, got {show(text)}, which is none: a digit of it is wrong") from error
    except ProtocolError as error:
        raise ParameterForm(f"key: expected {error.expected}, got {show(text)}") from error


def check_reason(reason: str | None) -> None:
    """Refuse a reason that readers would skip, or that takes the room of many others.

    Raises:
        ParameterForm: it is one.
    """
    if reason == "":
        raise ParameterForm("reason: expected a sentence, got nothing")
    if reason is not None and (fault := text_fault(reason)) is not None:
        raise ParameterForm(f"reason: expected {fault.expected}, got {fault.got}")
    if reason is not None and (size := len(reason.encode())) > REASON_BYTES:
        raise ParameterForm(f"reason: expected at most {REASON_BYTES} bytes, got {size}")


def revised(
    key: SigningKey,
    held: OriginFile | None,
    word: Word,
    now: datetime,
    verified: Verified | None = None,
    seals: Collection[int] = (),
) -> OriginFile | None:
    """Make the next file of a key: with a word, or without it.

    Args:
        key: the operator's key.
        held: the file of it that stands.
        word: what is to be said or taken back.
        now: the writer's clock.
        verified: lines that need no second verification.
        seals: numbers of further seals of the key, which the new one is to be above too.

    Raises:
        KeyRetired: the key withdrew for good.
        OperatorFileFull: one more record has no room.
        UnsealedLine: the file that stands has no seal.

    Returns:
        The file; None where the one that stands says so already.
    """
    if held is not None and held.seal is None:
        raise UnsealedLine("a file of this key with a seal", "one of draft 0, which is replaced by hand")
    check_not_retired(held)
    stands = [] if held is None else list(zip(held.topics, held.lines, strict=True))
    if (word.topic in (topic for topic, _line in stands)) is word.said:
        return None
    gone = (word.topic, f"lesson {word.subject}") if word.said else (word.topic,)
    lines = [line for topic, line in stands if topic not in gone]
    if word.said:
        fields: dict[str, JSON] = {word.type: word.subject, "at": format_time(now)}
        lines.append(_sign(key, fields if word.reason is None else {**fields, "reason": word.reason}))
    made = _made(key, lines, (*seals, *_numbers(held)), now, verified)
    if word.type == "revoke" and word.said and len(made.data) > RULES.file_bytes - ROOM_FOR_DENIALS:
        got = f"got a file of {len(made.data)} bytes, whose last {ROOM_FOR_DENIALS} are for denials"
        raise OperatorFileFull(f"expected room for one more revocation, {got}")
    return made


def united(
    key: SigningKey, ours: OriginFile, other: OriginFile, now: datetime, seals: Collection[int] = ()
) -> OriginFile:
    """Make a file that says all that two sealed ones of a key say; the other itself, where it is newer and whole.

    Args:
        key: the operator's key.
        ours: the file that goes first where both say the same.
        other: the other.
        now: the writer's clock.
        seals: numbers of further seals of the key.

    Raises:
        OperatorFileFull: there is no room for all of it.
    """
    if set(ours.lines) <= set(other.lines) and newest(ours.version, other.version).takes:
        return other
    said = {*ours.topics, *other.topics} - {""}
    stands = list(zip(ours.topics, ours.lines, strict=True))
    known = {*ours.lines, *(topic for topic in ours.topics if topic)}
    stands += (pair for pair in zip(other.topics, other.lines, strict=True) if known.isdisjoint(pair))
    # A revocation stands in the place of its lesson.
    lines = [line for topic, line in stands if _in_its_place(topic) not in said]
    verified = Verified(key.public, {line: topic for topic, line in stands})
    return _made(key, lines, (*seals, *_numbers(ours), *_numbers(other)), now, verified)


def resealed(key: SigningKey, held: OriginFile, now: datetime, verified: Verified | None = None) -> OriginFile | None:
    """Make a file that says the same, under a seal that is above any that readers can hold.

    Args:
        key: the operator's key.
        held: the file of it that stands.
        now: the writer's clock.
        verified: lines that need no second verification.

    Returns:
        The file; None where the one that stands has no seal, is the last of its key, or is days ahead of the clock.
    """
    if held.seal is None or held.seal.last:
        return None
    ahead = unix_seconds(now) + RULES.seal_ahead_of_its_time - 1
    made = _made(key, held.lines, (ahead, held.seal.number), now, verified)
    return made if newest(held.version, made.version).takes else None


def percent_of(size: int, records: int) -> int:
    """Tell how full a file is, in hundredths: by its bytes or by its records, whichever is nearer to the end."""
    return max(size * 100 // RULES.file_bytes, records * 100 // RULES.file_records)


def check_not_retired(file: OriginFile | None) -> None:
    """Refuse to follow a key's last file.

    Raises:
        KeyRetired: it is one.
    """
    if file is not None and file.seal is not None and file.seal.last:
        raise KeyRetired("expected a key that may still speak, got one that withdrew for good")


def _in_its_place(topic: str) -> str | None:
    """Name the revocation that stands in the place of a lesson; None for anything else."""
    return f"revoke {topic.removeprefix('lesson ')}" if topic.startswith("lesson ") else None


def _numbers(file: OriginFile | None) -> tuple[int, ...]:
    return () if file is None or file.seal is None else (file.seal.number,)


def _sign(key: SigningKey, fields: Mapping[str, JSON]) -> bytes:
    return sign_record(key, {**fields, "sealed": True})


def _made(
    key: SigningKey, lines: Sequence[bytes], seals: Collection[int], now: datetime, verified: Verified | None
) -> OriginFile:
    """Seal some lines, above these numbers."""
    seal = next_seal(now, seals)
    behind = b"".join(line + b"\n" for line in lines)
    fields: dict[str, JSON] = {
        "seal": seal.number,
        "at": format_time(seal.at),
        "records": len(lines),
        "digest": digest_of(behind),
    }
    try:
        return accept(_sign(key, fields) + b"\n" + behind, now=now, verified=verified)
    except (FileSize, RecordCount) as error:
        got = f"got a file that is full: {error.got}"
        raise OperatorFileFull(f"expected room for {len(lines)} records, {got}") from error
