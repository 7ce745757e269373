"""Lessons in the memory: how they are named, what they gain, and what the owner's word does."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import pytest

from remem.errors import RememError
from remem.ingest.events import Event
from remem.ingest.sentence import Telling
from remem.memory.episodes import Episode, add_episode, episodes, get_episode, members, unabsorbed
from remem.memory.events import Unread, add_event
from remem.memory.lessons import (
    Lesson,
    absorb_repeats,
    add_meetings,
    add_received,
    add_received_many,
    choose,
    choose_no_more,
    find_lesson,
    found_lesson,
    get_lesson,
    join_lesson,
    lessons,
    meetings,
    raise_strength,
    set_state,
    veto,
)
from remem.memory.store import open_store
from remem.protocol.text import lesson_hash

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
LATER = NOW + timedelta(days=1)
TEXT = "The Edit tool failed: file has not been read yet."


@pytest.fixture
def db(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    db = open_store(tmp_path / "memory.db")
    yield db
    db.close()


def _episode(db: sqlite3.Connection, name: str, at: datetime = NOW, sentence: str | None = TEXT) -> Episode:
    event = Event(kind="error", raw="{}", title=name, at=at)
    add_event(db, event, at)
    stamp = at.strftime("%Y-%m-%dT%H:%M:%SZ")
    episode = add_episode(db, Telling("error", name, sentence), Unread(0, event, event.identity, stamp, stamp))
    return get_episode(db, episode)


def _get(db: sqlite3.Connection, text: str = TEXT) -> Lesson:
    found = find_lesson(db, lesson_hash("error", text))
    assert found is not None
    return found


def test_a_lesson_begins_with_1_and_gains_half_for_each_time_it_is_met(db: sqlite3.Connection) -> None:
    group = [_episode(db, "a"), _episode(db, "b")]
    digest, outcome = found_lesson(db, "error", TEXT, group, NOW)
    assert outcome == "new"
    assert (_get(db).seen, _get(db).strength) == (2, 1.5)
    join_lesson(db, digest, _episode(db, "c"), LATER)
    assert (_get(db).seen, _get(db).strength, _get(db).updated) == (3, 2.0, LATER)
    assert [episode.gist for episode in members(db, digest)] == ["a", "b", "c"] or len(members(db, digest)) == 3
    assert unabsorbed(db) == []


def test_a_repeat_of_an_episode_is_absorbed_once(db: sqlite3.Connection) -> None:
    digest, _ = found_lesson(db, "error", TEXT, [_episode(db, "a"), _episode(db, "b")], NOW)
    _episode(db, "a", LATER)
    assert absorb_repeats(db, LATER) == {digest}
    assert absorb_repeats(db, LATER) == set()
    assert (_get(db).seen, _get(db).strength) == (3, 2.0)


def test_what_says_the_same_is_one_lesson(db: sqlite3.Connection) -> None:
    first, _ = found_lesson(db, "error", TEXT, [_episode(db, "a"), _episode(db, "b")], NOW)
    second, outcome = found_lesson(db, "error", TEXT.upper(), [_episode(db, "c")], LATER)
    assert (first, outcome) == (second, "gained")
    assert _get(db).seen == 3


def test_a_lesson_is_named_by_its_hash_its_id_or_a_beginning_of_it(db: sqlite3.Connection) -> None:
    digest, _ = found_lesson(db, "error", TEXT, [_episode(db, "a")], NOW)
    for reference in (digest, digest[:16], digest[:6], digest[:6].upper()):
        assert get_lesson(db, reference).hash == digest
    add_received(db, digest[:20] + "0" * 12, "error", "Another text.", NOW)
    with pytest.raises(RememError, match="several"):
        get_lesson(db, digest[:6])
    for reference in ("", "0123abcd", "no hex", "%"):
        with pytest.raises(RememError):
            get_lesson(db, reference)
    with pytest.raises(RememError):
        get_episode(db, "zz")


def test_two_lessons_may_share_an_id(db: sqlite3.Connection) -> None:
    assert add_received_many(db, [("ab" * 16, "error", "One."), ("ab" * 8 + "cd" * 8, "error", "Two.")], NOW) == 2


def test_a_received_lesson_is_weak_and_never_replaces_ones_own(db: sqlite3.Connection) -> None:
    digest = lesson_hash("error", TEXT)
    assert add_received(db, digest, "error", TEXT, NOW)
    assert not add_received(db, digest, "error", TEXT, LATER)
    lesson = _get(db)
    assert (lesson.source, lesson.strength, lesson.seen, lesson.received) == ("received", 0.5, 1, NOW)
    other = "The Bash tool failed with exit status 2."
    found_lesson(db, "error", other, [_episode(db, "a")], NOW)
    assert add_received_many(db, [(lesson_hash("error", other), "error", other.upper())], LATER) == 0
    assert (_get(db, other).source, _get(db, other).text, _get(db, other).received) == ("own", other, LATER)


@pytest.mark.parametrize(
    ("met", "source", "outcome"),
    [(-1, "own", "now_own"), (1, "received", "gained")],
    ids=["met before", "met afterwards"],
)
def test_a_received_lesson_that_was_met_before_becomes_ones_own(
    met: int, source: str, outcome: str, db: sqlite3.Connection
) -> None:
    digest = lesson_hash("error", TEXT)
    add_received(db, digest, "error", TEXT, NOW)
    group = [_episode(db, name, NOW + timedelta(hours=met)) for name in ("a", "b")]
    assert found_lesson(db, "error", TEXT, group, LATER) == (digest, outcome)
    lesson = _get(db)
    assert (lesson.source, lesson.seen, lesson.strength) == (source, 3, 1.5)


def test_100_000_received_lessons_are_one_batch(db: sqlite3.Connection) -> None:
    rows = [(f"{number:032x}", "error", f"Text {number}.") for number in range(100_000)]
    db.execute("BEGIN IMMEDIATE")
    assert add_received_many(db, rows, NOW) == 100_000
    assert add_received_many(db, rows, NOW) == 0
    db.execute("COMMIT")
    assert db.execute("SELECT count(*) FROM lessons").fetchone()[0] == 100_000


def test_a_veto_is_for_ever(db: sqlite3.Connection) -> None:
    digest = lesson_hash("error", TEXT)
    veto(db, digest, NOW, "not true")
    assert not add_received(db, digest, "error", TEXT, NOW)
    assert found_lesson(db, "error", TEXT, [_episode(db, "a"), _episode(db, "b")], NOW) == (digest, "absorbed")
    assert _get(db).state == "vetoed"
    before = _get(db)
    assert found_lesson(db, "error", TEXT, [_episode(db, "d")], LATER) == (digest, "absorbed")
    assert not join_lesson(db, digest, _episode(db, "c"), LATER)
    _episode(db, "a", LATER)
    assert absorb_repeats(db, LATER) == set()
    set_state(db, [digest], "active", LATER)
    assert _get(db) == before
    assert lessons(db) == []


def test_what_is_archived_comes_back_when_it_is_met_and_what_is_dropped_does_not(db: sqlite3.Connection) -> None:
    digest, _ = found_lesson(db, "error", TEXT, [_episode(db, "a")], NOW)
    assert set_state(db, [digest], "archived", NOW) == 1
    assert set_state(db, [digest], "archived", NOW) == 0
    assert lessons(db) == []
    assert [lesson.hash for lesson in lessons(db, state=None)] == [digest]
    join_lesson(db, digest, _episode(db, "b"), LATER)
    assert _get(db).state == "active"
    set_state(db, [digest], "dropped", LATER)
    join_lesson(db, digest, _episode(db, "c"), LATER)
    assert (_get(db).state, _get(db).seen) == ("dropped", 2)
    with pytest.raises(ValueError, match="vetoed"):
        set_state(db, [digest], "vetoed", LATER)


def test_the_strongest_come_first_and_can_be_chosen_by_kind_and_source(db: sqlite3.Connection) -> None:
    found_lesson(db, "error", TEXT, [_episode(db, "a"), _episode(db, "b")], NOW)
    add_received(db, "0" * 32, "surprise", "A surprise.", NOW)
    raise_strength(db, ["0" * 32], LATER, 5.0)
    assert [lesson.kind for lesson in lessons(db)] == ["surprise", "error"]
    assert [lesson.kind for lesson in lessons(db, kind="error")] == ["error"]
    assert [lesson.kind for lesson in lessons(db, source="received")] == ["surprise"]
    assert lessons(db)[0].strength == 5.5


def test_a_choice_is_kept_until_it_is_taken_back_and_to_insist_is_more(db: sqlite3.Connection) -> None:
    add_received(db, lesson_hash("error", TEXT), "error", TEXT, NOW)
    found = []
    for act in (choose, partial(choose, insisted=True), choose, choose_no_more):
        act(db, lesson_hash("error", TEXT))
        found.append((_get(db).explicit, _get(db).insisted))
    assert found == [(True, False), (True, True), (True, True), (False, False)]


def test_meetings_are_of_received_lessons_that_are_active(db: sqlite3.Connection) -> None:
    add_received(db, "0" * 32, "error", "A text.", NOW)
    episode = _episode(db, "a", LATER)
    add_meetings(db, [("0" * 32, episode.id, 0.7)])
    add_meetings(db, [("0" * 32, episode.id, 0.7)])
    assert meetings(db) == meetings(db, "0" * 32) == [("0" * 32, episode.id, 0.7)]
    set_state(db, ["0" * 32], "dropped", LATER)
    assert meetings(db) == []


def test_an_event_that_fails_in_another_way_is_another_episode(db: sqlite3.Connection) -> None:
    event = Event(kind="error", raw="{}", title="Bash: x", at=NOW)
    add_event(db, event, NOW)
    stamp = "2026-03-01T12:00:00Z"
    source = Unread(0, event, event.identity, stamp, stamp)
    ids = [add_episode(db, Telling("error", gist, None), source) for gist in ("one", "other", "one")]
    assert ids[0] == ids[2] != ids[1]
    assert {episode.gist: episode.seen for episode in episodes(db)} == {"one": 2, "other": 1}
    assert [episode.id for episode in episodes(db, [ids[1], "none"])] == [ids[1]]


def test_nothing_happens_after_it_was_reported(db: sqlite3.Connection) -> None:
    add_event(db, Event(kind="note", raw="{}", text="x", at=LATER), NOW)
    assert db.execute("SELECT first_at, last_at FROM events").fetchone()[:] == ("2026-03-01T12:00:00Z",) * 2
