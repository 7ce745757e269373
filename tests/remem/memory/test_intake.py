"""Taking in events: each line counts once, whatever is appended, repeated or cut short meanwhile."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from remem.memory import intake as module
from remem.memory.events import counts
from remem.memory.home import Home
from remem.memory.intake import GRACE, take_in_file, take_in_inbox, unread_bytes

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.fixture
def home(remem_home: Path) -> Home:
    return Home.create(remem_home)


@pytest.fixture
def db(home: Home) -> Iterator[sqlite3.Connection]:
    db = home.connect()
    yield db
    db.close()


def _note(text: str, **fields: str) -> bytes:
    return json.dumps({"kind": "note", "text": text, **fields}).encode() + b"\n"


def _texts(db: sqlite3.Connection) -> list[str]:
    return sorted(json.loads(row[0])["text"] for row in db.execute("SELECT raw FROM occurrences"))


def test_the_inbox_is_taken_and_each_line_counts_once(home: Home, db: sqlite3.Connection) -> None:
    home.inbox_path.write_bytes(_note("a") + b"nonsense\n" + _note("b"))
    intake = take_in_inbox(home, db, NOW)
    assert (intake.new, intake.repeated, intake.known) == (2, 0, 0)
    assert [(number, error.code) for number, error in intake.rejected] == [(2, "event_syntax")]
    assert not home.inbox_path.exists()
    assert take_in_inbox(home, db, NOW).new == 0
    assert _texts(db) == ["a", "b"]
    assert db.execute("SELECT count(*) FROM rejected").fetchone()[0] == 1


def test_lines_without_a_time_that_say_the_same_are_repeats_and_not_one_line_read_twice(
    home: Home, db: sqlite3.Connection
) -> None:
    for minute in range(3):
        home.inbox_path.write_bytes(_note("a"))
        take_in_inbox(home, db, NOW + timedelta(minutes=minute))
    row = db.execute("SELECT seen, first_at, last_at FROM events").fetchone()
    assert tuple(row) == (3, "2026-03-01T12:00:00Z", "2026-03-01T12:02:00Z")


def test_a_line_appended_to_the_file_that_was_taken_is_not_lost(home: Home, db: sqlite3.Connection) -> None:
    home.inbox_path.write_bytes(_note("a"))
    with home.inbox_path.open("ab") as agent:
        take_in_inbox(home, db, NOW)
        agent.write(_note("b"))
    home.inbox_path.write_bytes(_note("c"))
    take_in_inbox(home, db, NOW + timedelta(minutes=1))
    assert _texts(db) == ["a", "b", "c"]
    assert len(home.taken_inboxes()) == 2
    take_in_inbox(home, db, NOW + GRACE)
    take_in_inbox(home, db, NOW + 2 * GRACE)
    assert home.taken_inboxes() == []
    assert _texts(db) == ["a", "b", "c"]


def test_a_line_that_is_half_written_waits_for_its_rest(home: Home, db: sqlite3.Connection) -> None:
    line = _note("half")
    home.inbox_path.write_bytes(_note("a") + b"\n\n" + line[:10])
    with home.inbox_path.open("ab") as agent:
        assert take_in_inbox(home, db, NOW).rejected == []
        agent.write(line[10:])
    assert take_in_inbox(home, db, NOW).new == 1
    assert _texts(db) == ["a", "half"]


def test_a_last_line_without_an_end_counts_if_it_is_an_event(home: Home, db: sqlite3.Connection) -> None:
    home.inbox_path.write_bytes(_note("a") + _note("b").rstrip())
    take_in_inbox(home, db, NOW)
    assert _texts(db) == ["a", "b"]
    take_in_inbox(home, db, NOW + GRACE)
    assert _texts(db) == ["a", "b"]


def test_a_last_line_that_never_got_its_rest_is_told_in_the_end(home: Home, db: sqlite3.Connection) -> None:
    home.inbox_path.write_bytes(_note("a") + b'{"kind":')
    assert take_in_inbox(home, db, NOW).rejected == []
    assert [error.code for _, error in take_in_inbox(home, db, NOW + GRACE).rejected] == ["event_syntax"]
    assert home.taken_inboxes() == []


BAD = [b"nonsense\n", b'{"kind":"note"}\n', b"\xff\xfe\n", b'{"kind":' + b"x" * 200_000 + b"\n"]


def _rejected(home: Home) -> list[bytes]:
    return [path.read_bytes() for path in home.rejected_files()]


def test_lines_that_are_no_events_are_kept_as_they_came(home: Home, db: sqlite3.Connection) -> None:
    home.inbox_path.write_bytes(_note("a") + BAD[0] + b"\n" + _note("b") + BAD[1] + BAD[2])
    with home.inbox_path.open("ab") as agent:
        assert [number for number, _error in take_in_inbox(home, db, NOW).rejected] == [2, 5, 6]
        agent.write(_note("c") + BAD[3] + b"the end")
    assert [number for number, _error in take_in_inbox(home, db, NOW).rejected] == [8]
    assert _rejected(home) == []
    assert [number for number, _error in take_in_inbox(home, db, NOW + GRACE).rejected] == [9]
    assert home.taken_inboxes() == []
    assert _rejected(home) == [b"".join(BAD) + b"the end"]
    assert home.rejected_files()[0].stat().st_mode & 0o777 == 0o600
    assert _texts(db) == ["a", "b", "c"]


def test_what_was_rejected_can_be_mended_and_taken_in(home: Home, db: sqlite3.Connection) -> None:
    home.inbox_path.write_bytes(_note("a") + b'{"kind":"note","txt":"b"}\n')
    for hours in range(3):
        take_in_inbox(home, db, NOW + hours * GRACE)
    (path,) = home.rejected_files()
    path.write_bytes(path.read_bytes().replace(b"txt", b"text"))
    assert take_in_file(db, path, NOW).new == 1
    assert _texts(db) == ["a", "b"]


@pytest.mark.parametrize("step", ["fsync", "unlink"])
def test_a_crash_while_bad_lines_are_put_aside_loses_none(
    step: str, home: Home, db: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    home.inbox_path.write_bytes(_note("a") + b"".join(BAD))
    take_in_inbox(home, db, NOW)

    def crash(*_arguments: object, **_named: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(os if step == "fsync" else Path, step, crash)
        with pytest.raises(KeyboardInterrupt):
            take_in_inbox(home, db, NOW + GRACE)
    take_in_inbox(home, db, NOW + GRACE)
    assert _rejected(home) == [b"".join(BAD)]
    assert home.taken_inboxes() == []
    # What the owner has removed does not come back.
    home.rejected_files()[0].unlink()
    take_in_inbox(home, db, NOW + 2 * GRACE)
    assert _rejected(home) == []


def test_only_what_was_not_taken_in_yet_is_unread(home: Home, db: sqlite3.Connection) -> None:
    assert unread_bytes(home, db) == 0
    home.inbox_path.write_bytes(_note("a") + b"{")
    assert unread_bytes(home, db) == len(_note("a")) + 1
    take_in_inbox(home, db, NOW)
    assert unread_bytes(home, db) == 1
    home.inbox_path.write_bytes(_note("b"))
    assert unread_bytes(home, db) == 1 + len(_note("b"))
    take_in_inbox(home, db, NOW + GRACE)
    assert unread_bytes(home, db) == 0


@pytest.mark.parametrize("step", ["take_inbox", "add_events", "note_batch"])
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_crash_at_any_step_loses_nothing_and_doubles_nothing(
    step: str, when: str, home: Home, db: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    home.inbox_path.write_bytes(_note("a") + _note("b"))
    owner = Home if step == "take_inbox" else module
    real = getattr(owner, step)

    def crash(*args: object, **kwargs: object) -> object:
        if when == "after":
            real(*args, **kwargs)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(owner, step, crash)
        with pytest.raises(KeyboardInterrupt):
            take_in_inbox(home, db, NOW)
    for hours in range(4):
        take_in_inbox(home, db, NOW + hours * GRACE)
    assert _texts(db) == ["a", "b"]
    assert db.execute("SELECT max(seen) FROM events").fetchone()[0] == 1
    assert home.taken_inboxes() == []


def test_an_empty_or_missing_inbox_is_nothing(home: Home, db: sqlite3.Connection) -> None:
    assert take_in_inbox(home, db, NOW).new == 0
    home.inbox_path.write_bytes(b"")
    assert take_in_inbox(home, db, NOW).new == 0
    assert take_in_inbox(home, db, NOW + GRACE).new == 0


def test_the_same_file_taken_in_again_changes_nothing(db: sqlite3.Connection, tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_bytes(_note("a") + _note("a", at="2026-02-01T00:00:00Z") + _note("b") + b"{\n")
    first = take_in_file(db, path, NOW)
    assert (first.new, first.repeated, first.known, len(first.rejected)) == (2, 1, 0, 1)
    again = take_in_file(db, path, NOW + timedelta(days=1))
    assert (again.new, again.repeated, again.known) == (0, 0, 3)
    # A file that has grown is another one, and what has a time is known.
    path.write_bytes(_note("a", at="2026-02-01T00:00:00Z") + _note("c"))
    grown = take_in_file(db, path, NOW + timedelta(days=1))
    assert (grown.new, grown.repeated, grown.known) == (1, 0, 1)


def test_of_the_shared_events_none_is_lost(db: sqlite3.Connection, shared_dir: Path) -> None:
    path = shared_dir / "events" / "events.jsonl"
    intake = take_in_file(db, path, NOW)
    assert (intake.new, intake.repeated, intake.rejected) == (109, 8, [])
    assert counts(db) == {"correction": 27, "error": 82}
    assert db.execute("SELECT sum(seen) FROM events").fetchone()[0] == 117
    raws = [row[0] for row in db.execute("SELECT raw FROM occurrences ORDER BY number")]
    assert raws == path.read_text().splitlines()
