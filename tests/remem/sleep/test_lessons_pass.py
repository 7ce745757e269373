"""The lessons pass: what founds a lesson, what joins one, and what has met one of somebody else."""

from __future__ import annotations

import json
import math
import sqlite3
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from remem.ingest.events import Event, parse_event
from remem.ingest.sentence import Telling, read_event
from remem.memory.episodes import add_episode, episodes, get_episode, members, unabsorbed
from remem.memory.events import Unread, add_event, mark_read, unread
from remem.memory.lessons import Lesson, add_received, find_lesson, lessons, meetings, set_state, veto
from remem.memory.store import open_store, transaction
from remem.protocol.text import lesson_hash
from remem.sleep.embed import cosine
from remem.sleep.lessons_pass import LessonsReport, came_after, lessons_pass, likeness
from remem.sleep.linkage import JOIN

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
DAY = timedelta(days=1)
LOCK = "Exit code 128\nfatal: could not lock the index file"
MERGE = "Exit code 1\nCONFLICT (content): Merge conflict in {}"
MERGED = "The Bash tool failed with exit status 1: conflict (content): merge conflict in a file."


@pytest.fixture
def db(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    db = open_store(tmp_path / "memory.db")
    yield db
    db.close()


def _tell(db: sqlite3.Connection, now: datetime = NOW, **fields: str) -> None:
    event = {"kind": "error", **fields}
    with transaction(db):
        add_event(db, parse_event(json.dumps(event)), now)
        for source in list(unread(db)):
            reading = read_event(source.event)
            if reading is not None:
                add_episode(db, reading, source)
            mark_read(db, [source.number])


def _pass(db: sqlite3.Connection, now: datetime = NOW) -> LessonsReport:
    with transaction(db):
        return lessons_pass(db, now)


def _texts(db: sqlite3.Connection) -> list[str]:
    return [lesson.text for lesson in lessons(db)]


def _lesson(db: sqlite3.Connection, text: str, kind: str = "error") -> Lesson:
    found = find_lesson(db, lesson_hash(kind, text))
    assert found is not None
    return found


def test_one_error_is_no_lesson_and_a_second_one_makes_it(db: sqlite3.Connection) -> None:
    _tell(db, title="Bash: merge", happened=MERGE.format("a.py"))
    assert _pass(db).new == []
    _tell(db, title="Bash: rebase", happened=MERGE.format("b.go"))
    report = _pass(db)
    assert report.new == [lesson_hash("error", MERGED)]
    assert (_lesson(db, MERGED).seen, _lesson(db, MERGED).strength) == (2, 1.5)


def test_one_event_that_is_repeated_counts_as_repeated(db: sqlite3.Connection) -> None:
    for minute in range(2):
        _tell(db, NOW + timedelta(minutes=minute), title="Bash: merge", happened=MERGE.format("a.py"))
    assert len(episodes(db)) == 1
    assert _pass(db).new == [lesson_hash("error", MERGED)]


def test_a_call_that_fails_in_two_ways_has_repeated_neither(db: sqlite3.Connection) -> None:
    _tell(db, title="Bash: x", happened=MERGE.format("a.py"))
    _tell(db, title="Bash: x", happened=LOCK)
    assert len(episodes(db)) == 2
    assert _pass(db).new == []


def test_one_correction_is_a_lesson_and_one_surprise_is_none(db: sqlite3.Connection) -> None:
    _tell(db, kind="correction", said="don't run the integration tests")
    _tell(db, kind="surprise", happened="The cache directory is missing on the first run")
    assert len(_pass(db).new) == 1
    assert [lesson.kind for lesson in lessons(db)] == ["correction"]
    _tell(db, kind="surprise", session="2", happened="The cache directory is missing on the first run")
    assert len(_pass(db).new) == 1
    assert sorted(lesson.kind for lesson in lessons(db)) == ["correction", "surprise"]


def test_what_resembles_a_lesson_joins_it_and_other_kinds_do_not(db: sqlite3.Connection) -> None:
    for title in ("Bash: a", "Bash: b"):
        _tell(db, title=title, happened=MERGE.format("a.py"))
    _pass(db)
    _tell(db, NOW + DAY, title="Bash: c", happened=MERGE.format("c.rs"))
    _tell(db, NOW + DAY, kind="surprise", happened="Merge conflict in the content")
    report = _pass(db, NOW + DAY)
    assert (report.new, report.gained) == ([], [lesson_hash("error", MERGED)])
    assert (_lesson(db, MERGED).seen, _lesson(db, MERGED).strength, _lesson(db, MERGED).updated) == (3, 2.0, NOW + DAY)
    assert [episode.kind for episode in unabsorbed(db)] == ["surprise"]


def test_joining_goes_by_the_average_of_a_lessons_episodes_and_not_by_their_centroid(
    db: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Two members that lie wide apart, and two that lie in their middle direction: one far off it, one not so far.
    places = {"one": (1, 0.53, 0), "two": (1, -0.53, 0), "far": (1, 0, 1.3), "near": (1, 0, 1.1)}
    monkeypatch.setattr("remem.sleep.lessons_pass.embed", lambda gist: unit(*places[gist]) if gist in places else {})
    for name in ("one", "two"):
        _place(db, name)
    (digest,) = _pass(db).new
    _place(db, "far")
    _pass(db)
    assert [episode.gist for episode in unabsorbed(db)] == ["far"]
    assert cosine(unit(1, 0, 0), unit(*places["far"])) >= JOIN
    db.execute("DELETE FROM episodes WHERE gist = 'far'")
    _place(db, "near")
    _pass(db)
    assert sorted(episode.gist for episode in members(db, digest)) == ["near", "one", "two"]


def unit(*values: float) -> dict[int, float]:
    length = math.hypot(*values)
    return {dimension: value / length for dimension, value in enumerate(values) if value}


def _place(db: sqlite3.Connection, name: str) -> None:
    event = Event(kind="error", raw="{}", title=name, at=NOW)
    with transaction(db):
        add_event(db, event, NOW)
        source = Unread(0, event, event.identity, "2026-03-01T12:00:00Z", "2026-03-01T12:00:00Z")
        add_episode(db, Telling("error", name, MERGED), source)


def test_a_pass_without_news_changes_nothing(db: sqlite3.Connection) -> None:
    for title in ("Bash: a", "Bash: b"):
        _tell(db, title=title, happened=MERGE.format("a.py"))
    _tell(db, kind="correction", said="don't run the integration tests")
    _pass(db)
    before = "\n".join(db.iterdump())
    report = _pass(db, NOW + DAY)
    assert report == LessonsReport()
    assert "\n".join(db.iterdump()) == before


def test_the_order_in_which_events_came_does_not_matter(tmp_path: Path) -> None:
    told = [
        {"title": f"Bash: {number}", "happened": text, "at": f"2026-02-{number + 1:02}T00:00:00Z"}
        for number, text in enumerate([LOCK, MERGE.format("a.py"), LOCK, MERGE.format("b.go"), LOCK])
    ]
    found = []
    for name, order in (("a", told), ("b", told[::-1])):
        db = open_store(tmp_path / name)
        for fields in order:
            _tell(db, NOW, **fields)
        _pass(db)
        found.append([(lesson.text, lesson.seen, lesson.strength) for lesson in lessons(db)])
        db.close()
    assert found[0] == found[1]
    assert len(found[0]) == 2


def test_the_text_is_the_sentence_that_most_of_the_episodes_have(db: sqlite3.Connection) -> None:
    _tell(db, title="Read: a", happened="Exit code 2\nfatal: could not lock the index file")
    for title in ("Bash: a", "Bash: b"):
        _tell(db, title=title, happened=LOCK)
    _pass(db)
    assert _texts(db) == ["The Bash tool failed with exit status 128, and git reported: could not lock the index file."]


def test_what_says_nothing_founds_no_lesson(db: sqlite3.Connection) -> None:
    for title in ("Bash: a", "Bash: b"):
        _tell(db, title=title, happened="Exit code 1\nfalconry zuqaxi wobbled")
    assert _pass(db).new == []
    assert len(unabsorbed(db)) == 2


def test_a_vetoed_lesson_never_comes_back_and_keeps_what_resembles_it(db: sqlite3.Connection) -> None:
    for title in ("Bash: a", "Bash: b"):
        _tell(db, title=title, happened=MERGE.format("a.py"))
    _pass(db)
    veto(db, lesson_hash("error", MERGED), NOW)
    for title in ("Bash: c", "Bash: d"):
        _tell(db, title=title, happened="Exit code 1\nCONFLICT (modify/delete): Merge conflict in x.py (content)")
    assert _pass(db) == LessonsReport()
    assert lessons(db) == []
    assert unabsorbed(db) == []


# --- lessons of others ---


def _receive(db: sqlite3.Connection, text: str, at: datetime) -> str:
    digest = lesson_hash("error", text)
    assert add_received(db, digest, "error", text, at)
    return digest


def test_an_episode_that_came_after_a_lesson_of_somebody_else_has_met_it(db: sqlite3.Connection) -> None:
    other = "git reported a merge conflict in the content."
    digest = _receive(db, other, NOW)
    _tell(db, NOW + DAY, title="Bash: a", happened=MERGE.format("a.py"))
    (meeting,) = _pass(db, NOW + DAY).meetings
    episode = get_episode(db, meeting.episode)
    assert (meeting.lesson, round(likeness(episode, other), 9)) == (digest, meeting.likeness)
    assert meeting.likeness >= 0.5
    assert meetings(db) == [(digest, episode.id, meeting.likeness)]
    assert _pass(db, NOW + DAY).meetings == []
    # The pass confirms nothing, and the lesson is as weak as it was.
    assert _lesson(db, other).strength == 0.5


def test_an_episode_that_came_before_or_resembles_nothing_has_not(db: sqlite3.Connection) -> None:
    _tell(db, NOW - DAY, title="Bash: a", happened=MERGE.format("a.py"))
    _receive(db, "git reported a merge conflict in the content.", NOW)
    _tell(db, NOW + DAY, title="Bash: b", happened=LOCK)
    # It happened before, and was only told afterwards.
    _tell(db, NOW + DAY, title="Bash: c", happened=MERGE.format("a.py"), at="2026-02-28T00:00:00Z")
    assert _pass(db, NOW + DAY).meetings == []


def test_within_one_second_the_order_still_counts(db: sqlite3.Connection) -> None:
    text = "git reported a merge conflict in the content."
    before, received, after = (NOW + timedelta(milliseconds=ms) for ms in (100, 200, 300))
    _tell(db, before, title="Bash: a", happened=MERGE.format("a.py"))
    _receive(db, text, received)
    _tell(db, after, title="Bash: b", happened=MERGE.format("b.py"))
    _tell(db, after, title="Bash: c", happened=MERGE.format("b.py"), at="2026-03-01T12:00:00Z")
    lesson = _lesson(db, text)
    assert [came_after(episode, lesson) for episode in sorted(episodes(db), key=lambda one: one.recorded)] == [
        False, True, True,
    ]  # fmt: skip
    assert len(_pass(db, after).meetings) == 2


def test_a_lesson_that_was_dropped_or_is_of_another_kind_is_not_met(db: sqlite3.Connection) -> None:
    digest = _receive(db, "git reported a merge conflict in the content.", NOW)
    add_received(db, "0" * 32, "surprise", "git reported a merge conflict in the content.", NOW)
    set_state(db, [digest], "dropped", NOW)
    _tell(db, NOW + DAY, title="Bash: a", happened=MERGE.format("a.py"))
    assert _pass(db, NOW + DAY).meetings == []


def test_the_same_sentence_found_afterwards_strengthens_the_received_lesson_and_leaves_it_received(
    db: sqlite3.Connection,
) -> None:
    _receive(db, MERGED, NOW)
    for title in ("Bash: a", "Bash: b"):
        _tell(db, NOW + DAY, title=title, happened=MERGE.format("a.py"))
    report = _pass(db, NOW + DAY)
    assert report.new == []
    assert len(report.meetings) == 2
    lesson = _lesson(db, MERGED)
    assert (lesson.source, lesson.seen, lesson.strength) == ("received", 3, 1.5)
    assert (report.gained, report.now_own) == ([lesson.hash], [])


def test_a_received_lesson_that_this_memory_had_met_by_itself_is_told_as_its_own_now(db: sqlite3.Connection) -> None:
    _tell(db, NOW - DAY, title="Bash: a", happened=MERGE.format("a.py"))
    digest = _receive(db, MERGED, NOW)
    _tell(db, NOW + DAY, title="Bash: b", happened=MERGE.format("a.py"))
    report = _pass(db, NOW + DAY)
    assert (report.new, report.now_own, report.gained) == ([], [digest], [])
    assert _lesson(db, MERGED).source == "own"
    assert _pass(db, NOW + DAY) == LessonsReport()
