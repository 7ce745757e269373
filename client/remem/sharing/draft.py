"""What this memory's own file would say: which records leave, and which are held back (PROTOCOL.md, section 10).

- A lesson leaves if this memory made it, or its owner read it in and chose it; if it is an error lesson, or chosen;
  and if every episode of it is from a project that is opted in. One without episodes leaves only if chosen.
- A lesson that this memory reads as revoked leaves only if its owner chose it knowing that (see `taken_back`).
- No text leaves that names a person, a machine or a secret, or that its readers would skip.
- A lesson that this memory revokes leaves as the revocation. Confirmations, revocations and denials leave as they
  were said; a confirmation of a lesson that this file publishes would not count, and stays.
- No time is later than now: a clock that was once ahead must not make every reader wait.
- The order is fixed and signatures are too, so a line about which nothing changed stays the same to the byte.
- A file that would be too large loses its weakest lessons, then its oldest confirmations, and never a revocation
  or denial.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final, TypeAlias

from remem.errors import Refused
from remem.memory import lessons, records
from remem.memory.episodes import members
from remem.memory.lessons import Lesson
from remem.memory.projects import outside, projects
from remem.memory.records import OwnRecord
from remem.protocol import RULES, PublicKey
from remem.protocol.canonical import JSON, encode
from remem.protocol.judgement import judge_lesson
from remem.protocol.text import text_fault
from remem.protocol.times import format_time
from remem.sharing.privacy import Finding, Machine, findings
from remem.sharing.readings import Reader
from remem.sharing.reports import HeldBack, LeftOut, Room
from remem.sharing.taken_back import taken_back

Fields: TypeAlias = dict[str, JSON]

# What a seal takes at most, with its LF: every one of its fields has a bounded length.
SEAL_BYTES: Final = 512
_STRENGTH_DIGITS: Final = 3
_STRENGTH_MOST: Final = 1e12


@dataclass(frozen=True, slots=True)
class Draft:
    """The contents of a file that is not signed yet.

    Attributes:
        contents: the records' own fields, in the order of the lines.
        held_back: lessons and reasons that do not leave, and why.
        left_out: records for which the file has no room.
        room: what the file could still take.
    """

    contents: tuple[Fields, ...]
    held_back: tuple[HeldBack, ...]
    left_out: tuple[LeftOut, ...]
    room: Room


def draft(db: sqlite3.Connection, key: PublicKey, machine: Machine, this: Reader, now: datetime) -> Draft:
    """Put together all that this memory says.

    Args:
        db: the memory.
        key: its own key.
        machine: whose names must not leave.
        this: what it holds, as it reads it.
        now: the clock, with a zone.

    Raises:
        Refused: what is never left out has no room.
    """
    said = records.own_records(db)
    revoked = {record.subject for record in said if record.type == "revoke"}
    leaving, held_back = _leaving(db, revoked, machine, this, now)
    published = {lesson.hash for lesson in leaving}
    spoken, held_reasons = _spoken(
        (record for record in said if record.type != "confirm" or record.subject not in published), key, machine, now
    )
    lines = [_line(key, "lesson", lesson.hash, lesson_fields(lesson, now)) for lesson in leaving]
    weakest = sorted(leaving, key=lambda lesson: (lesson.strength, lesson.updated, lesson.hash))
    # The oldest first: those that no longer count go before any that does.
    oldest = sorted((one for one in said if one.type == "confirm"), key=lambda one: (one.at, one.subject))
    expendable = [LeftOut("lesson", lesson.hash) for lesson in weakest]
    expendable += [LeftOut("confirm", record.subject) for record in oldest]
    return _fit([*lines, *spoken], expendable, (*held_back, *held_reasons))


def draft_of_revocations(db: sqlite3.Connection, key: PublicKey, machine: Machine, now: datetime) -> Draft:
    """Put together the revocations alone, as whoever leaves says them.

    Raises:
        Refused: they have no room.
    """
    said = [record for record in records.own_records(db) if record.type == "revoke"]
    lines, held_back = _spoken(said, key, machine, now)
    return _fit(lines, (), held_back)


# --- what leaves ---


def _leaving(
    db: sqlite3.Connection, revoked: Collection[str], machine: Machine, this: Reader, now: datetime
) -> tuple[list[Lesson], list[HeldBack]]:
    folders = projects(db)
    leaving: list[Lesson] = []
    held_back: list[HeldBack] = []
    ours = [one for source in ("own", "imported") for one in lessons.lessons(db, source=source)]
    against = taken_back(db, this, [lesson for lesson in ours if not lesson.insisted], now)
    for lesson in ours:
        if lesson.hash in revoked:
            continue
        why = _stays(db, lesson, folders) or against.get(lesson.hash) or _unfit(lesson, machine)
        if why is None:
            leaving.append(lesson)
        else:
            held_back.append(why)
    return sorted(leaving, key=lambda lesson: lesson.hash), held_back


def _stays(db: sqlite3.Connection, lesson: Lesson, folders: Sequence[Path]) -> HeldBack | None:
    """Say why a lesson is not its owner's to let go by itself."""
    if lesson.kind != "error" and not lesson.explicit:
        return HeldBack(
            lesson.hash, lesson.text, "kind", (f"only error lessons leave by themselves, this is a {lesson.kind}",)
        )
    episodes = members(db, lesson.hash)
    if not episodes and not lesson.explicit:
        return HeldBack(lesson.hash, lesson.text, "no_episode", ("it was read in, and leaves only if it is chosen",))
    reasons = dict.fromkeys(why for episode in episodes if (why := outside(folders, episode.cwd)) is not None)
    if reasons:
        return HeldBack(lesson.hash, lesson.text, "project", tuple(f"an episode of it {why}" for why in reasons))
    return None


def _unfit(lesson: Lesson, machine: Machine) -> HeldBack | None:
    """Say why the text of a lesson must not leave, or would not arrive."""
    if found := findings(lesson.text, machine):
        return HeldBack(lesson.hash, lesson.text, "privacy", _words(found))
    if (fault := judge_lesson(lesson.kind, lesson.text, lesson.hash)) is not None:
        return HeldBack(lesson.hash, lesson.text, fault.code, (f"expected {fault.expected}, got {fault.got}",))
    return None


def _spoken(
    said: Iterable[OwnRecord], key: PublicKey, machine: Machine, now: datetime
) -> tuple[list[_Line], list[HeldBack]]:
    lines: list[_Line] = []
    held_back: list[HeldBack] = []
    for record in said:
        fields: Fields = {record.type: record.subject, "at": format_time(min(record.at, now))}
        if record.reason is not None:
            fields["reason"] = record.reason
            if found := findings(record.reason, machine):
                held_back.append(HeldBack(record.subject, record.reason, "privacy", _words(found)))
                if record.type != "revoke":
                    continue
                # A revocation matters more than its reason, which may be missing.
                del fields["reason"]
        lines.append(_line(key, record.type, record.subject, fields))
    return lines, held_back


def lesson_fields(lesson: Lesson, now: datetime) -> Fields:
    """Spell a lesson as the fields of its record, with no time later than now."""
    strength = round(min(lesson.strength, _STRENGTH_MOST), _STRENGTH_DIGITS)
    fields: Fields = {
        "id": lesson.id,
        "text": lesson.text,
        "kind": lesson.kind,
        "seen": lesson.seen,
        # No fraction that is not meant.
        "strength": int(strength) if strength.is_integer() else strength,
        "updated": format_time(min(lesson.updated, now)),
        "hash": lesson.hash,
    }
    return {**fields, "parents": list(lesson.parents)} if lesson.parents else fields


def check_reason(reason: str, machine: Machine) -> None:
    """Refuse a reason that its readers would skip, or that must not leave.

    Raises:
        Refused: it is no text of the protocol, or names a person, a machine or a secret.
    """
    if (fault := text_fault(reason)) is not None:
        raise Refused(f"expected the reason to be {fault.expected}, got {fault.got}")
    if found := findings(reason, machine):
        names = ", ".join(dict.fromkeys(one.rule for one in found))
        raise Refused(f"expected a reason that names no person, machine or secret, got one with: {names}")


def _words(found: Iterable[Finding]) -> tuple[str, ...]:
    return tuple(f"{one.rule}: {one.what}" for one in found)


# --- what fits ---


@dataclass(frozen=True, slots=True)
class _Line:
    """A record that is not signed yet: what may stand once in a file, its fields, and its bytes with the LF."""

    name: LeftOut
    fields: Fields
    size: int


def _line(key: PublicKey, kind: str, subject: str, fields: Fields) -> _Line:
    whole: Fields = {**fields, "v": RULES.version, "key": key.hex, "origin": key.origin, "sealed": True}
    return _Line(LeftOut(kind, subject), fields, len(encode({**whole, "sig": "0" * 128})) + 1)


def _fit(lines: Sequence[_Line], expendable: Sequence[LeftOut], held_back: Sequence[HeldBack]) -> Draft:
    """Leave out of the expendable lines, in their order, what has no room."""
    sizes = {line.name: line.size for line in lines}
    records_left = RULES.file_records - len(sizes)
    bytes_left = RULES.file_bytes - SEAL_BYTES - sum(sizes.values())
    left_out: list[LeftOut] = []
    for name in expendable:
        if records_left >= 0 and bytes_left >= 0:
            break
        if name in sizes:
            records_left, bytes_left = records_left + 1, bytes_left + sizes[name]
            left_out.append(name)
    if records_left < 0 or bytes_left < 0:
        over = f"{max(0, -records_left)} records and {max(0, -bytes_left)} bytes more"
        raise Refused(
            f"expected at most {RULES.file_records} records in {RULES.file_bytes} bytes, got {over}",
            "only revocations and denials are left, and none of them is left out",
        )
    gone = frozenset(left_out)
    contents = tuple(line.fields for line in lines if line.name not in gone)
    return Draft(contents, tuple(held_back), tuple(left_out), Room(records_left, bytes_left))
