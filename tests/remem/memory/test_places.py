"""Commons that a memory knows, and what they said about whom they admitted."""

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from remem.memory import places
from remem.memory.places import Place
from remem.memory.store import open_store, transaction
from remem.protocol import Admission, Seal, Version, parse_record
from remem_testkit.files import NOW, file, key, lesson, sentence

ONE, TWO = "https://one.example", "https://two.example"


@pytest.fixture
def db(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    made = open_store(tmp_path / "memory.db")
    yield made
    made.close()


def test_a_place_is_known_by_what_was_noted_about_it(db: sqlite3.Connection) -> None:
    assert places.place(db, ONE) == Place(ONE)
    with transaction(db):
        places.meet(db, ONE, ("a", "b"))
        places.meet(db, ONE, ("c",))
        places.note_pulled(db, ONE, "mark", NOW)
        places.note_shared(db, TWO, 7, NOW)
        places.note_own(db, TWO, Version(6, "d"))
    assert places.places(db) == (
        Place(ONE, keys=("a", "b"), bookmark="mark", pulled=NOW),
        Place(TWO, shared=NOW, shared_seal=7, own=Version(6, "d")),
    )
    with transaction(db):
        places.note_own(db, TWO, None)
    assert places.place(db, TWO).own is None


def test_what_is_on_its_way_to_a_place_may_lie_there_until_it_is_known_not_to(db: sqlite3.Connection) -> None:
    with transaction(db):
        places.note_sent(db, ONE, NOW)
    assert places.place(db, ONE) == Place(ONE, shared=NOW)
    with transaction(db):
        places.note_not_there(db, ONE)
    assert places.place(db, ONE) == Place(ONE)
    with transaction(db):
        places.note_shared(db, ONE, 7, NOW)
        places.note_not_there(db, ONE)
    assert places.place(db, ONE) == Place(ONE, shared=NOW, shared_seal=7)


def test_of_a_forgotten_place_only_the_keys_of_first_contact_stay(db: sqlite3.Connection) -> None:
    with transaction(db):
        assert not places.forget(db, ONE)
        for target in (ONE, TWO):
            places.note_pulled(db, target, "mark", NOW)
            places.note_shared(db, target, 7, NOW)
            places.note_own(db, target, Version(6, "d"))
            places.admit(db, target, {"a": "p"}, whole=True)
        places.meet(db, ONE, ("a", "b"))
        assert places.forget(db, ONE)
        assert places.forget(db, TWO)
        assert not places.forget(db, ONE)
    assert places.places(db) == (Place(ONE, keys=("a", "b")),)
    assert names(db) == set()


def names(db: sqlite3.Connection) -> set[tuple[str, str, str]]:
    return {(one.key, one.commons, one.principal) for one in places.admissions(db)}


def test_the_last_word_of_a_place_about_a_key_holds(db: sqlite3.Connection) -> None:
    with transaction(db):
        assert places.admit(db, ONE, {"a": "p", "b": "q", "c": None}, whole=True)
        assert not places.admit(db, ONE, {"a": "p"}, whole=False)
    assert names(db) == {("a", ONE, "p"), ("b", ONE, "q")}
    with transaction(db):
        assert places.admit(db, ONE, {"a": "r", "b": None}, whole=False)
    assert names(db) == {("a", ONE, "r")}
    with transaction(db):
        assert places.admit(db, ONE, {"c": "p"}, whole=True)
    assert names(db) == {("c", ONE, "p")}


def test_places_speak_for_themselves_alone(db: sqlite3.Connection) -> None:
    with transaction(db):
        places.admit(db, ONE, {"a": "p"}, whole=True)
        places.admit(db, TWO, {"a": "q"}, whole=True)
        places.admit(db, TWO, {}, whole=True)
    assert places.admissions(db) == {Admission("a", ONE, "p")}


def test_two_seals_are_kept_once_in_whatever_order_they_came(db: sqlite3.Connection) -> None:
    first, second = (
        parse_record(file(key(1), [lesson(sentence(number))], seal=5).partition(b"\n")[0]) for number in (1, 2)
    )
    assert isinstance(first, Seal)
    assert isinstance(second, Seal)
    with transaction(db):
        places.note_equivocation(db, first, second, NOW)
        places.note_equivocation(db, second, first, NOW)
    (proof,) = places.equivocations(db)
    assert (proof.key, proof.seal) == (key(1).public.hex, 5)
    assert {proof.first, proof.second} == {first.line, second.line}
