"""Readable all the way down: one lesson with everything that is held about it, and one file with all that it says.

Every line that is shown is read again from the stored bytes, and its signature verified again. So what is shown
does not rest on what the database remembers of it; where the two differ, the bytes are what counts.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final

from remem.commons.folder import read_file
from remem.errors import RememError
from remem.memory import holdings, lessons, trust
from remem.memory.episodes import Episode, members
from remem.memory.home import Home
from remem.memory.lessons import Lesson as LocalLesson
from remem.protocol import (
    RULES,
    AnyRecord,
    Confirmation,
    Denial,
    Fault,
    Lesson,
    ProtocolError,
    Reading,
    Revocation,
    Seal,
    Statement,
    Version,
    accept,
    judge,
)
from remem.protocol.errors import SignatureInvalid
from remem.protocol.records import read_record, verify_record
from remem.sharing.files import read_held
from remem.sharing.lookup import find_hash
from remem.sharing.readings import Reader, reader
from remem.sharing.reports import Notice
from remem.sleep.lessons_pass import Meeting

# Who published a lesson comes before who said something about it.
_ORDER: Final = (Lesson.type, Confirmation.type, Revocation.type)


@dataclass(frozen=True, slots=True)
class ShownRecord:
    """One line about a lesson, as its signer wrote it.

    Attributes:
        key: who signed it, 64 hex digits.
        origin: the signer's short name.
        line: its number in the signer's file.
        type: `lesson`, `confirm` or `revoke`.
        at: its time.
        text: a lesson's text, or a revocation's reason.
        valid: whether the signature verifies, tried again now.
        fault: why judgement skips it; None where it may count.
        counts: of a confirmation, whether it counts; of any other, None.
        standing: what else there is to say of the signer: `own`, `followed`, `revoker`, `denied`, `admitted`.
        principal: who answers for the signer, by one of its keys; None for a key that does not count.
        via: of a revoker, the commons that named it; None where the owner did.
    """

    key: str
    origin: str
    line: int
    type: str
    at: datetime | None
    text: str | None
    valid: bool
    fault: Fault | None
    counts: bool | None
    standing: tuple[str, ...]
    principal: str | None
    via: str | None


@dataclass(frozen=True, slots=True)
class ShownDenial:
    """A denial of a key that says something about the lesson.

    Attributes:
        key: who signed it.
        denied: the key that it names.
        at: its time.
        reason: why.
        obeyed: whether its signer is trusted as a revoker.
        via: of a revoker, the commons that named it; None where the owner did.
    """

    key: str
    denied: str
    at: datetime | None
    reason: str
    obeyed: bool
    via: str | None


@dataclass(frozen=True, slots=True)
class Receipt:
    """From which key a lesson came, when first, and whether that key took it back."""

    key: str
    at: datetime
    dropped: bool


@dataclass(frozen=True, slots=True)
class ShowReport:
    """A lesson, all the way down.

    Attributes:
        hash: the lesson's.
        reading: what this memory makes of it.
        why: that in words.
        local: the lesson as this memory has it itself.
        records: every held line about it: publications, then confirmations, then revocations, each by signer.
        pending: what this memory says about it and has not shared yet.
        denials: denials of keys that say something about it.
        receipts: whom it came from.
        episodes: of an own lesson, what it was learned from.
        meetings: of a received lesson, the episodes of this memory that resemble it, any of which may confirm it.
        notices: what the owner should look into.
    """

    hash: str
    reading: Reading
    why: str
    local: LocalLesson | None
    records: tuple[ShownRecord, ...]
    pending: tuple[Statement, ...]
    denials: tuple[ShownDenial, ...]
    receipts: tuple[Receipt, ...]
    episodes: tuple[Episode, ...]
    meetings: tuple[Meeting, ...]
    notices: tuple[Notice, ...]


def show(home: Home, db: sqlite3.Connection, reference: str, *, now: datetime) -> ShowReport:
    """Gather everything that is held about one lesson.

    Args:
        home: the memory's home.
        db: its database.
        reference: the lesson's hash, or the beginning of it.
        now: the clock, with a zone.

    Raises:
        RememError: no lesson begins so, or several do.
    """
    lesson = find_hash(db, reference)
    this = reader(db, home.signing_key().public.hex, home.config())
    reading = this.readings(db, [lesson], now)[lesson]
    roles = _roles(db, this)
    named = {one.key: one.via for one in trust.everything(db, "revoker") if not one.declined}
    notices: list[Notice] = []
    lines = _lines_about(home, db, lesson, notices)
    found = [_shown(number, record, this, roles, named, reading) for number, record in lines]
    found.sort(key=lambda record: (_ORDER.index(record.type), record.key))
    said = {(record.key, record.type) for record in found}
    return ShowReport(
        hash=lesson,
        reading=reading,
        why=this.why(reading),
        local=lessons.find_lesson(db, lesson),
        records=tuple(found),
        pending=tuple(own for own in this.own.get(lesson, ()) if (own.key, own.type) not in said),
        denials=tuple(_denials(this, {record.key for record in found}, named)),
        receipts=tuple(
            Receipt(key, at, dropped) for key, (at, dropped) in sorted(holdings.receipts(db, lesson).items())
        ),
        episodes=tuple(members(db, lesson)),
        meetings=tuple(Meeting(*met) for met in lessons.meetings(db, lesson)),
        notices=tuple(notices),
    )


def _lines_about(
    home: Home, db: sqlite3.Connection, lesson: str, notices: list[Notice]
) -> Iterator[tuple[int, AnyRecord]]:
    """Find every line about a lesson in the stored bytes."""
    needle = lesson.encode()
    for key, held in sorted(holdings.holdings(db).items()):
        data = read_held(home.commons_path, held)
        if data is None:
            text = f"the stored file of {key} is missing or changed; the next pull or share brings it back"
            notices.append(Notice("stored_file", text))
            continue
        if needle not in data:
            continue
        for number, line in enumerate(data.split(b"\n"), 1):
            if needle in line:
                record = read_record(line)
                if record.subject == lesson and isinstance(record, (Lesson, Confirmation, Revocation)):
                    yield number, record


def _shown(
    number: int,
    record: AnyRecord,
    this: Reader,
    roles: dict[str, list[str]],
    named: dict[str, str | None],
    reading: Reading,
) -> ShownRecord:
    key = record.key.hex
    try:
        verify_record(record)
        valid = True
    except SignatureInvalid:
        valid = False
    text = record.text if isinstance(record, Lesson) else getattr(record, "reason", None)
    return ShownRecord(
        key=key,
        origin=record.key.origin,
        line=number,
        type=record.type,
        at=record.time,
        text=text,
        valid=valid,
        fault=judge(record),
        counts=key in reading.counted if isinstance(record, Confirmation) else None,
        standing=tuple(roles.get(key, ())),
        principal=this.policy.principal(key),
        via=named.get(key),
    )


def _roles(db: sqlite3.Connection, this: Reader) -> dict[str, list[str]]:
    roles: dict[str, list[str]] = {this.key: ["own"]}
    for one in trust.everything(db):
        if not one.declined:
            roles.setdefault(one.key, []).append("followed" if one.role == "follow" else "revoker")
    for key in sorted({admission.key for admission in this.policy.admitted}):
        roles.setdefault(key, []).append("admitted")
    for key in sorted(this.denied):
        roles.setdefault(key, []).append("denied")
    return roles


def _denials(this: Reader, keys: set[str], named: dict[str, str | None]) -> Iterator[ShownDenial]:
    for denial in sorted(this.denials, key=lambda one: (one.subject, one.key)):
        if denial.subject in keys:
            obeyed = denial.key in this.policy.revokers
            via = named.get(denial.key)
            yield ShownDenial(denial.key, denial.subject, denial.time, denial.text or "", obeyed, via)


# --- one file ---


@dataclass(frozen=True, slots=True)
class CheckedRecord:
    """One line of a file: what it says, and why judgement skips it, if it does."""

    line: int
    type: str
    subject: str
    at: datetime | None
    text: str | None
    fault: Fault | None


@dataclass(frozen=True, slots=True)
class CheckReport:
    """A file, checked as if it had come from a stranger.

    Attributes:
        path: the file.
        size: its bytes.
        code: why acceptance refuses it, as a stable code; None where it is accepted.
        line: the line at fault.
        expected: what the rule asks for.
        got: what is there.
        key: whose file it is.
        origin: the short name of that key.
        version: its seal and digest.
        sealed_at: the time of its seal.
        last: it is sealed with the last seal.
        records: what its lines say, the seal left out.
    """

    path: Path
    size: int
    code: str | None
    line: int | None
    expected: str | None
    got: str | None
    key: str | None = None
    origin: str | None = None
    version: Version | None = None
    sealed_at: datetime | None = None
    last: bool = False
    records: tuple[CheckedRecord, ...] = ()

    @property
    def accepted(self) -> bool:
        """Whether the file may be stored and passed on."""
        return self.code is None


def check_file(path: Path, *, now: datetime) -> CheckReport:
    """Accept and judge a file, as if it had come from a stranger.

    Raises:
        RememError: there is no such file.
    """
    data = read_file(path, RULES.file_bytes)
    if data is None:
        raise RememError(f"expected a file at {path}, got none")
    try:
        file = accept(data, now=now)
    except ProtocolError as error:
        return CheckReport(path, len(data), error.code, error.line, error.expected, error.got)
    first = 1 if file.seal is None else 2
    return CheckReport(
        path,
        len(data),
        None,
        None,
        None,
        None,
        key=file.key.hex,
        origin=file.key.origin,
        version=file.version,
        sealed_at=file.seal.time if isinstance(file.seal, Seal) else None,
        last=file.seal is not None and file.seal.last,
        records=tuple(_checked(number, record) for number, record in enumerate(file.records, first)),
    )


def _checked(number: int, record: AnyRecord) -> CheckedRecord:
    text = record.text if isinstance(record, Lesson) else None
    if isinstance(record, (Revocation, Denial)):
        text = record.reason
    return CheckedRecord(number, record.type, record.subject, record.time, text, judge(record))
