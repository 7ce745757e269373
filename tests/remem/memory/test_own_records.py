"""What a memory says itself, every seal that it made, and every lesson that it let go."""

import sqlite3
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from remem.memory import lessons, records
from remem.memory.records import OwnRecord
from remem.memory.store import open_store, transaction
from remem.protocol import RULES, Lesson, Version, accept, lesson_hash
from remem_testkit.files import NOW, file, key, lesson, sentence

HASH = lesson_hash("error", sentence(1))


@pytest.fixture
def db(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    made = open_store(tmp_path / "memory.db")
    with transaction(made):
        yield made
    made.close()


def test_a_record_is_said_once_and_can_be_said_anew(db: sqlite3.Connection) -> None:
    later = NOW + timedelta(days=1)
    records.put_record(db, OwnRecord("confirm", HASH, NOW, None, "episode"))
    records.put_record(db, OwnRecord("revoke", HASH, NOW, "it was wrong"))
    records.put_record(db, OwnRecord("confirm", HASH, later))
    assert records.own_records(db) == (
        OwnRecord("confirm", HASH, later, None, "episode"),
        OwnRecord("revoke", HASH, NOW, "it was wrong"),
    )
    assert records.own_records(db, "0" * 32) == ()


def test_the_newest_seal_is_the_highest_and_the_last_one_retires(db: sqlite3.Connection) -> None:
    assert records.newest_seal(db) is None
    for number in (5, 9, 7):
        records.log_seal(db, Version(number, f"d{number}"), NOW)
    records.log_seal(db, Version(9, "d9"), NOW)
    assert records.newest_seal(db) == Version(9, "d9")
    assert records.own_seals(db) == {Version(number, f"d{number}") for number in (5, 7, 9)}
    assert not records.is_retired(db)
    records.log_seal(db, Version(RULES.last_seal, "d"), NOW)
    assert records.is_retired(db)


def test_what_left_once_is_remembered(db: sqlite3.Connection) -> None:
    records.log_published(db, ["a", "b"], NOW)
    records.log_published(db, ["b", "c"], NOW)
    assert records.published(db) == {"a", "b", "c"}


def restored(db: sqlite3.Connection, seen: int = 2) -> lessons.Lesson | None:
    (record,) = accept(file(key(1), [lesson(sentence(1), seen=seen)]), now=NOW).records
    assert isinstance(record, Lesson)
    records.restore_lesson(db, record)
    return lessons.find_lesson(db, HASH)


def test_a_published_lesson_is_made_ones_own_again(db: sqlite3.Connection) -> None:
    made = restored(db, seen=7)
    assert made is not None
    assert (made.source, made.state, made.explicit, made.seen, made.strength) == ("own", "active", True, 7, 1.5)


def test_a_received_copy_becomes_ones_own_and_a_veto_stays(db: sqlite3.Connection) -> None:
    lessons.add_received(db, HASH, "error", sentence(1), NOW + timedelta(days=1))
    made = restored(db)
    assert made is not None
    assert made.source == "own"
    lessons.veto(db, HASH, NOW)
    assert restored(db) is not None
    assert lessons.find_lesson(db, HASH).state == "vetoed"  # type: ignore[union-attr]


def test_a_vetoed_sentence_is_not_restored(db: sqlite3.Connection) -> None:
    lessons.veto(db, HASH, NOW)
    assert restored(db) is None
