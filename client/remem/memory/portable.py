"""Lessons as a file of their own, lessons.jsonl: one JSON object a line, unsigned, as draft 0 has it.

A line holds `id, text, kind, seen, strength, updated`. Readers ignore unknown fields. What is read in is judged
like the lesson of a stranger: a text that is no text of the protocol, or an instruction, is refused with its reason;
the other lines are taken. Such a lesson is `imported`: it belongs to no project and never leaves by itself.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import BinaryIO, Final

from remem.memory.lessons import RECEIVED_STRENGTH, Lesson, find_lesson, is_vetoed
from remem.protocol.errors import show
from remem.protocol.guard import instruction
from remem.protocol.text import KNOWN_KINDS, lesson_hash, text_fault
from remem.protocol.times import format_time

MAX_LINE: Final = 65_536
MAX_COUNT: Final = 2**31 - 1


@dataclass(slots=True)
class Imported:
    """What became of a file's lines: lessons that are new, lessons known before, and lines refused with a reason."""

    added: list[str] = field(default_factory=list)
    known: list[str] = field(default_factory=list)
    refused: list[tuple[int, str]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Line:
    kind: str
    text: str
    seen: int
    strength: float
    updated: datetime | None


def export_lines(lessons: Iterable[Lesson]) -> Iterator[str]:
    """Return a line for each lesson, without its end."""
    for lesson in lessons:
        yield json.dumps(
            {
                "id": lesson.id,
                "text": lesson.text,
                "kind": lesson.kind,
                "seen": lesson.seen,
                "strength": lesson.strength,
                "updated": format_time(lesson.updated),
            },
            ensure_ascii=False,
        )


def import_lines(db: sqlite3.Connection, stream: BinaryIO, now: datetime) -> Imported:
    """Take in the lessons of a file; a lesson that is known stays as it is."""
    report = Imported()
    number = 0
    while data := stream.readline(MAX_LINE + 2):
        number += 1
        too_long = len(data) > MAX_LINE and not data.endswith(b"\n")
        while too_long and (rest := stream.readline(MAX_LINE)) and not rest.endswith(b"\n"):
            pass
        if not data.strip():
            continue
        found = f"expected at most {MAX_LINE} bytes, got more" if too_long else _read(data)
        if isinstance(found, str):
            report.refused.append((number, found))
        else:
            _take(db, found, number, now, report)
    return report


def _take(db: sqlite3.Connection, line: _Line, number: int, now: datetime, report: Imported) -> None:
    digest = lesson_hash(line.kind, line.text)
    if is_vetoed(db, digest):
        report.refused.append((number, "the owner has vetoed this lesson"))
    elif find_lesson(db, digest) is not None:
        report.known.append(digest)
    else:
        updated = now if line.updated is None else min(line.updated, now)
        db.execute(
            "INSERT INTO lessons (hash, kind, text, seen, strength, updated, source)"
            " VALUES (?, ?, ?, ?, ?, ?, 'imported')",
            (digest, line.kind, line.text, line.seen, line.strength, format_time(updated)),
        )
        report.added.append(digest)


def _read(data: bytes) -> _Line | str:
    """Read and judge one line; the reason if it is refused."""
    try:
        value = json.loads(data.decode("utf-8-sig"))
    except (ValueError, RecursionError):
        return "expected a JSON object in UTF-8, got something else"
    if not isinstance(value, dict):
        return f"expected a JSON object, got {show(value)}"
    kind, text = value.get("kind"), value.get("text")
    if kind not in KNOWN_KINDS:
        return f"field kind: expected one of {', '.join(KNOWN_KINDS)}, got {show(kind)}"
    if not isinstance(text, str):
        return f"field text: expected a string, got {show(text)}"
    if (fault := text_fault(text)) is not None:
        return f"field text: expected {fault.expected}, got {fault.got}"
    if (order := instruction(text)) is not None:
        return f"field text: expected an observation, got an instruction ({show(order)})"
    if value.get("hash") not in (None, lesson_hash(kind, text)):
        return "field hash: expected the hash of kind and text, got another"
    return _numbers(value, kind, text)


def _numbers(value: dict[str, object], kind: str, text: str) -> _Line | str:
    seen, strength, updated = value.get("seen", 1), value.get("strength", RECEIVED_STRENGTH), value.get("updated")
    if not isinstance(seen, int) or isinstance(seen, bool) or not 1 <= seen <= MAX_COUNT:
        return f"field seen: expected a whole number from 1, got {show(seen)}"
    if not isinstance(strength, (int, float)) or isinstance(strength, bool) or not 0 <= strength <= MAX_COUNT:
        return f"field strength: expected a number from 0, got {show(strength)}"
    moment = None
    if updated is not None:
        moment = _moment(updated)
        if moment is None:
            return f"field updated: expected a time in ISO 8601, got {show(updated)}"
    return _Line(kind, text, seen, float(strength), moment)


def _moment(value: object) -> datetime | None:
    if not isinstance(value, str):
        return None
    try:
        moment = datetime.fromisoformat(value)
        moment = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None
    return moment if 1970 <= moment.year <= 2099 else None
