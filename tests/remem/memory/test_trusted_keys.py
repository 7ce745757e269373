"""Whom a memory trusts: the owner's word, and what first contacts pin."""

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from remem.memory import trust
from remem.memory.store import open_store, transaction
from remem_testkit.files import NOW, key

A, B = key(1).public.hex, key(2).public.hex


@pytest.fixture
def db(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    made = open_store(tmp_path / "memory.db")
    with transaction(made):
        yield made
    made.close()


def test_a_key_is_trusted_in_the_roles_that_it_was_given(db: sqlite3.Connection) -> None:
    trust.add(db, A, "follow", NOW)
    assert trust.pin(db, B, "revoker", "https://one.example", NOW)
    assert trust.trusted(db, "follow") == {A}
    assert trust.trusted(db, "revoker") == {B}
    assert [(one.key, one.role, one.via) for one in trust.everything(db)] == [
        (A, "follow", None),
        (B, "revoker", "https://one.example"),
    ]
    assert [one.key for one in trust.everything(db, "revoker")] == [B]


def test_what_the_owner_removed_is_not_pinned_again(db: sqlite3.Connection) -> None:
    trust.pin(db, A, "revoker", "https://one.example", NOW)
    assert trust.remove(db, A) == ("revoker",)
    assert trust.remove(db, A) == ()
    assert not trust.pin(db, A, "revoker", "https://two.example", NOW)
    assert trust.trusted(db, "revoker") == frozenset()


def test_only_the_owner_takes_that_back(db: sqlite3.Connection) -> None:
    trust.pin(db, A, "revoker", "https://one.example", NOW)
    trust.remove(db, A)
    trust.add(db, A, "revoker", NOW)
    (one,) = trust.everything(db)
    assert (one.declined, one.via) == (False, None)
    assert trust.trusted(db, "revoker") == {A}


def test_removing_one_role_leaves_the_other(db: sqlite3.Connection) -> None:
    trust.add(db, A, "follow", NOW)
    trust.add(db, A, "revoker", NOW)
    assert trust.remove(db, A, ("follow",)) == ("follow",)
    assert trust.trusted(db, "follow") == frozenset()
    assert trust.trusted(db, "revoker") == {A}
