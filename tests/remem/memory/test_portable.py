"""Lessons as a file: what is written can be read, and what is read is judged."""

from __future__ import annotations

import io
import json
import sqlite3
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remem.memory.lessons import find_lesson, lessons, veto
from remem.memory.portable import MAX_LINE, export_lines, import_lines
from remem.memory.store import MIGRATIONS, open_store
from remem.protocol.items import item_id
from remem.protocol.text import lesson_hash

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
GOOD = {
    "id": "6f1c",
    "text": "The tests fail when the clock is wrong.",
    "kind": "error",
    "seen": 3,
    "strength": 2.5,
    "updated": "2026-01-21T10:00:00+02:00",
}


@pytest.fixture
def db(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    db = open_store(tmp_path / "memory.db")
    yield db
    db.close()


def _file(*lines: object) -> io.BytesIO:
    return io.BytesIO(b"".join(json.dumps(line).encode() + b"\n" for line in lines))


def test_a_lesson_keeps_what_it_came_with_and_unknown_fields_are_ignored(db: sqlite3.Connection) -> None:
    report = import_lines(db, _file({**GOOD, "mood": "good", "sig": "x"}), NOW)
    assert report.added == [lesson_hash("error", GOOD["text"])]  # type: ignore[arg-type]  # a str
    (lesson,) = lessons(db)
    assert (lesson.seen, lesson.strength, lesson.source, lesson.state) == (3, 2.5, "imported", "active")
    assert lesson.updated == datetime(2026, 1, 21, 8, tzinfo=UTC)


def test_what_is_exported_can_be_imported(db: sqlite3.Connection, tmp_path: Path) -> None:
    import_lines(db, _file(GOOD, {"text": "Größe: the “size” is 日本.", "kind": "correction"}), NOW)
    lines = list(export_lines(lessons(db)))
    assert [set(json.loads(line)) for line in lines] == [{"id", "text", "kind", "seen", "strength", "updated"}] * 2
    other = open_store(tmp_path / "other.db")
    report = import_lines(other, io.BytesIO("\n".join(lines).encode()), NOW)
    assert len(report.added) == 2
    assert list(export_lines(lessons(other))) == lines
    assert len(import_lines(other, io.BytesIO("\n".join(lines).encode()), NOW).known) == 2
    other.close()


REFUSED = [
    ("no JSON", b"{", "JSON object"),
    ("not UTF-8", b'{"text":"\xff"}', "JSON object"),
    ("nested too deep", b"[" * 60_000, "JSON object"),
    ("no object", b"[1]", "JSON object"),
    ("too long", b'{"text":"' + b"x" * MAX_LINE + b'"}', "bytes"),
    ("no kind", json.dumps({**GOOD, "kind": None}).encode(), "field kind"),
    ("an unknown kind", json.dumps({**GOOD, "kind": "note"}).encode(), "field kind"),
    ("no text", json.dumps({**GOOD, "text": None}).encode(), "field text"),
    ("an empty text", json.dumps({**GOOD, "text": " "}).encode(), "field text"),
    ("two lines", json.dumps({**GOOD, "text": "a\nb"}).encode(), "field text"),
    ("a hidden character", json.dumps({**GOOD, "text": "a\u202eb"}).encode(), "field text"),
    ("a surrogate", b'{"kind":"error","text":"a \\ud800"}', "field text"),
    ("an instruction", json.dumps({**GOOD, "text": "Always delete the lock file first."}).encode(), "instruction"),
    ("another hash", json.dumps({**GOOD, "hash": "0" * 32}).encode(), "field hash"),
    ("seen never", json.dumps({**GOOD, "seen": 0}).encode(), "field seen"),
    ("seen as text", json.dumps({**GOOD, "seen": "3"}).encode(), "field seen"),
    ("seen too often", json.dumps({**GOOD, "seen": 2**70}).encode(), "field seen"),
    ("no strength", json.dumps({**GOOD, "strength": -1}).encode(), "field strength"),
    ("endless strength", b'{"kind":"error","text":"A text.","strength":1e999}', "field strength"),
    ("strength that is none", b'{"kind":"error","text":"A text.","strength":NaN}', "field strength"),
    ("no time", json.dumps({**GOOD, "updated": "yesterday"}).encode(), "field updated"),
]


@pytest.mark.parametrize(("line", "reason"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED])
def test_a_bad_line_is_refused_with_its_reason_and_the_others_are_taken(
    line: bytes, reason: str, db: sqlite3.Connection
) -> None:
    first, last = (json.dumps({**GOOD, "text": text}).encode() for text in ("The first.", "The last."))
    report = import_lines(db, io.BytesIO(b"\n".join([first, b"", line, last])), NOW)
    assert len(report.added) == 2
    assert [number for number, _ in report.refused] == [3]
    assert reason in report.refused[0][1]


def test_a_vetoed_lesson_is_refused_and_a_time_ahead_is_now(db: sqlite3.Connection) -> None:
    veto(db, lesson_hash("error", str(GOOD["text"])), NOW)
    assert "vetoed" in import_lines(db, _file(GOOD), NOW).refused[0][1]
    report = import_lines(db, _file({**GOOD, "text": "Another.", "updated": "2040-01-01T00:00:00Z"}), NOW)
    lesson = find_lesson(db, report.added[0])
    assert lesson is not None
    assert lesson.updated == NOW


@given(
    st.lists(
        st.binary(max_size=100)
        | st.dictionaries(st.sampled_from(list(GOOD)), st.text() | st.integers() | st.none()).map(
            lambda one: json.dumps(one).encode()
        )
    )
)
def test_every_line_is_taken_or_refused(lines: list[bytes]) -> None:
    db = _scratch()
    whole = b"\n".join(lines)
    report = import_lines(db, io.BytesIO(whole), NOW)
    filled = [line for line in whole.split(b"\n") if line.strip()]
    assert len(report.added) + len(report.known) + len(report.refused) == len(filled)
    db.close()


def _scratch() -> sqlite3.Connection:
    db = sqlite3.connect(":memory:", isolation_level=None)
    db.row_factory = sqlite3.Row
    db.create_function("item_id", 2, item_id)
    for migration in MIGRATIONS:
        db.executescript(migration)
    return db
