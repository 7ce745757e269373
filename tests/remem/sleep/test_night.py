"""A night: from the inbox to lessons, again and again, and cut short wherever it is."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from remem.memory.events import counts
from remem.memory.home import Home
from remem.memory.lessons import lessons
from remem.sleep import night
from remem.sleep.night import machine_names, sleep

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
DAY = timedelta(days=1)
EVENTS = [
    {"kind": "error", "title": "Bash: a", "happened": "Exit code 1\nfatal: not a git repository"},
    {"kind": "error", "title": "Bash: b", "happened": "Exit code 1\nfatal: not a git repository"},
    {"kind": "correction", "said": "don't run the integration tests", "agent_did": "Let me run all tests"},
    {"kind": "note", "text": "a note"},
]


@pytest.fixture
def home(remem_home: Path) -> Home:
    return Home.create(remem_home)


@pytest.fixture
def db(home: Home) -> Iterator[sqlite3.Connection]:
    db = home.connect()
    yield db
    db.close()


def _report(home: Home, *events: object) -> None:
    with home.inbox_path.open("a") as inbox:
        inbox.writelines(json.dumps(event) + "\n" for event in events)


def test_a_night_goes_from_the_inbox_to_lessons(home: Home, db: sqlite3.Connection) -> None:
    _report(home, *EVENTS)
    told: list[tuple[str, int, int]] = []
    report = sleep(home, db, NOW, lambda *step: told.append(step))
    assert (report.intake.new, report.events, report.episodes, len(report.lessons.new)) == (4, 4, 3, 2)
    assert {lesson.text for lesson in lessons(db)} == {
        "The Bash tool failed with exit status 1, and git reported: not a git repository.",
        (
            "The person corrected the agent after it offered to run all tests; "
            "they asked it not to run the integration tests."
        ),
    }
    assert told[-1] == ("lessons", 1, 1)
    assert all(0 <= done <= total for _, done, total in told)


def test_a_night_without_news_changes_nothing(home: Home, db: sqlite3.Connection) -> None:
    _report(home, *EVENTS)
    sleep(home, db, NOW)
    before = "\n".join(db.iterdump())
    report = sleep(home, db, NOW + DAY)
    assert (report.intake.new, report.events, report.episodes) == (0, 0, 0)
    assert "\n".join(db.iterdump()) == before


@pytest.mark.parametrize("step", ["take_in_inbox", "_episodes_pass", "lessons_pass", "mark_read", "add_episode"])
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_night_that_is_cut_short_is_finished_by_the_next(
    step: str, when: str, home: Home, db: sqlite3.Connection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = Home.create(tmp_path / "whole")
    whole = other.connect()
    _report(other, *EVENTS)
    sleep(other, whole, NOW)

    _report(home, *EVENTS)
    real = getattr(night, step)

    def crash(*args: object, **kwargs: object) -> object:
        if when == "after":
            real(*args, **kwargs)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(night, step, crash)
        with pytest.raises(KeyboardInterrupt):
            sleep(home, db, NOW)
    sleep(home, db, NOW)
    found = [[(one.hash, one.seen, one.strength) for one in lessons(store)] for store in (db, whole)]
    assert found[0] == found[1]
    assert counts(db) == counts(whole)
    whole.close()


def test_what_this_machine_is_called_is_in_no_sentence(
    home: Home, db: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("socket.gethostname", lambda: "Kernel")
    monkeypatch.setattr("getpass.getuser", lambda: "parser")
    assert {"Kernel", "parser"} <= machine_names()
    assert not {"root", "user", "localhost", ""} & machine_names()
    text = "Exit code 1\nerror: the kernel could not open the file for the parser"
    _report(home, *({"kind": "error", "title": f"Bash: {name}", "happened": text} for name in "ab"))
    sleep(home, db, NOW)
    assert [lesson.text for lesson in lessons(db)] == [
        "The Bash tool failed with exit status 1: the X could not open the file for the X."
    ]


def test_ten_thousand_events_are_one_night(home: Home, db: sqlite3.Connection) -> None:
    verbs = "open read write parse merge push lock index fetch build".split()
    nouns = "file branch token module query socket buffer schema cursor record".split()
    _report(
        home,
        *(
            {
                "kind": "error",
                "title": f"Bash: {number}",
                "happened": f"Exit code {number % 200 + 1}\n"
                f"error: cannot {verbs[number % 10]} the {nouns[number // 10 % 10]}"
                f" of the {nouns[number // 100 % 10]}",
            }
            for number in range(10_000)
        ),
    )
    report = sleep(home, db, NOW)
    assert report.episodes == 10_000
    assert sum(lesson.seen for lesson in lessons(db)) == 10_000


def test_the_lessons_of_the_shared_events(home: Home, db: sqlite3.Connection, shared_dir: Path) -> None:
    shutil.copyfile(shared_dir / "events" / "events.jsonl", home.inbox_path)
    report = sleep(home, db, NOW)
    assert (report.events, report.intake.new, report.intake.repeated) == (117, 109, 8)
    kinds = [lesson.kind for lesson in lessons(db)]
    # Three of the corrections are one that was told three times.
    assert kinds.count("correction") == 25
    assert kinds.count("error") == 15
    seen = {lesson.text: lesson.seen for lesson in lessons(db, kind="error")}
    assert seen["The Edit tool failed: file has not been read yet."] == 2
    assert seen["The Read tool failed: file does not exist."] == 7
    assert sleep(home, db, NOW + DAY).lessons.gained == []
