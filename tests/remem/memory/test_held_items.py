"""The items of what is held: whatever comes, goes and is proven, the set is what the files say."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from random import Random

import pytest

from remem.memory import eviction, holdings, items, ledger, places, store
from remem.memory.home import Home
from remem.memory.store import MIGRATIONS, open_store, transaction
from remem.protocol import OriginFile, Seal, accept, parse_record
from remem.protocol.items import Item, item_id, item_of, proof_item
from remem_testkit.files import NOW, confirmation, draft_file, file, key, lesson, sentence
from remem_testkit.memories import Memory

A, B = key(11), key(12)
HASH = "0" * 32


@pytest.fixture
def db(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    made = open_store(tmp_path / "memory.db")
    yield made
    assert items.check(made) == []
    made.close()


def sealed(number: int = 11, seal: int = 5, *, days: int = 0) -> OriginFile:
    at = NOW - timedelta(days=days)
    return accept(file(key(number), [confirmation(HASH, at=at)], seal=seal, at=at), now=NOW)


def take(db: sqlite3.Connection, *files: OriginFile) -> None:
    with transaction(db):
        holdings.take(db, [holdings.judged(one, "here") for one in files], NOW)


def held(db: sqlite3.Connection) -> list[Item]:
    return list(items.itemset(db))


def item(whole: OriginFile) -> Item:
    assert whole.seal is not None
    return item_of(whole.key, whole.seal.time, whole.digest)


def seal_of(whole: OriginFile) -> Seal:
    seal = parse_record(whole.data.partition(b"\n")[0])
    assert isinstance(seal, Seal)
    return seal


def test_a_sealed_file_has_an_item_and_is_found_by_it(db: sqlite3.Connection) -> None:
    first, second = sealed(days=2), sealed(12)
    take(db, first, second)
    assert held(db) == [item(first), item(second)]
    assert [holdings.holding_of(db, one.id) for one in held(db)] == [
        holdings.holding(db, A.public.hex),
        holdings.holding(db, B.public.hex),
    ]
    assert holdings.holding_of(db, bytes(32)) is None
    found = holdings.holding(db, A.public.hex)
    assert found is not None
    assert (found.sealed, found.item) == (NOW - timedelta(days=2), item(first))


def test_a_file_without_a_seal_has_no_item(db: sqlite3.Connection) -> None:
    draft = accept(draft_file(A, [lesson(sentence(0))]), now=NOW)
    take(db, draft)
    assert held(db) == []
    take(db, sealed())
    assert held(db) == [item(sealed())]
    assert ledger.settled(db, [item(sealed()).id]) == {}


def test_what_a_newer_file_replaces_is_superseded(db: sqlite3.Connection) -> None:
    old, new = sealed(seal=5, days=1), sealed(seal=6)
    take(db, old)
    take(db, new)
    assert held(db) == [item(new)]
    assert ledger.settled(db, [item(old).id, item(new).id, bytes(32)]) == {item(old).id: ledger.SUPERSEDED}


def test_the_same_file_again_changes_nothing(db: sqlite3.Connection) -> None:
    take(db, sealed())
    take(db, sealed())
    assert held(db) == [item(sealed())]
    assert ledger.settled(db, [item(sealed()).id]) == {}


def test_what_was_not_wanted_and_comes_in_after_all_is_wanted_again(db: sqlite3.Connection) -> None:
    whole = sealed()
    with transaction(db):
        ledger.note(db, [item(whole).id], "signature_invalid", NOW)
        ledger.note(db, [item(whole).id], ledger.SUPERSEDED, NOW)
    assert ledger.settled(db, [item(whole).id]) == {item(whole).id: "signature_invalid"}
    take(db, whole)
    assert ledger.settled(db, [item(whole).id]) == {}


def test_an_evicted_file_has_no_item_and_may_come_again(db: sqlite3.Connection) -> None:
    take(db, sealed(), sealed(12))
    with transaction(db):
        eviction.evict(db, [A.public.hex])
    assert held(db) == [item(sealed(12))]
    assert ledger.settled(db, [item(sealed()).id]) == {}


def test_a_key_that_spoke_twice_has_one_proof_however_often(db: sqlite3.Connection) -> None:
    with transaction(db):
        for seal in (5, 6):
            first, second = (seal_of(sealed(seal=seal, days=days)) for days in (0, 1))
            places.note_equivocation(db, first, second, NOW)
    assert held(db) == [proof_item(A.public)]
    proof = places.proof_of(db, held(db)[0].id)
    assert proof is not None
    assert (proof.key, proof.seal) == (A.public.hex, 5)
    assert places.proof_of(db, bytes(32)) is None


def test_what_is_undone_leaves_no_item(db: sqlite3.Connection) -> None:
    take(db, sealed())
    db.execute("BEGIN IMMEDIATE")
    holdings.take(db, [holdings.judged(sealed(seal=6), "here"), holdings.judged(sealed(12), "here")], NOW)
    places.note_equivocation(db, seal_of(sealed()), seal_of(sealed(days=1)), NOW)
    assert len(held(db)) == 3
    db.execute("ROLLBACK")
    assert held(db) == [item(sealed())]
    assert ledger.settled(db, [item(sealed()).id]) == {}


def test_what_is_opened_stays_as_it_is_while_another_writes(db: sqlite3.Connection, tmp_path: Path) -> None:
    other = open_store(tmp_path / "memory.db")
    take(db, sealed())
    with items.opened(db) as stored:
        take(other, sealed(seal=6), sealed(12))
        assert (len(stored), stored.item(0)) == (1, item(sealed()))
    with items.opened(db) as stored:
        assert stored.ids(0, len(stored)) == [one.id for one in sorted([item(sealed(seal=6)), item(sealed(12))])]
    other.close()


@pytest.mark.parametrize("seed", range(3))
def test_whatever_comes_and_goes_the_set_is_what_is_held(seed: int, db: sqlite3.Connection) -> None:
    random = Random(seed)
    newest: dict[int, OriginFile] = {}
    for turn in range(60):
        number = random.randrange(8)
        if random.random() < 0.3 and number in newest:
            with transaction(db):
                eviction.evict(db, [newest.pop(number).key.hex])
        else:
            newest[number] = sealed(number, 10 + turn, days=random.randrange(3))
            take(db, newest[number])
        assert held(db) == sorted(map(item, newest.values()))
        assert items.check(db) == []
    before = held(db)
    with transaction(db):
        items.rebuild(db)
    assert held(db) == before


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        ("DELETE FROM items", "expected item"),
        ("UPDATE holdings SET digest = key WHERE seal = 6", "expected what item"),
        ("UPDATE holdings SET item = x'00' WHERE seal = 6", "its item in the row"),
        ("UPDATE items SET sum = zeroblob(32)", "number and sum"),
    ],
)
def test_what_is_wrong_is_told_and_made_right(damage: str, said: str, tmp_path: Path) -> None:
    made = open_store(tmp_path / "memory.db")
    take(made, sealed(), sealed(12, 6))
    made.execute(damage)
    assert any(said in fault for fault in items.check(made))
    with transaction(made):
        items.rebuild(made)
    assert items.check(made) == []
    made.close()


# --- this memory's own file ---


def test_the_own_file_has_an_item_from_the_moment_that_its_seal_is_logged(tmp_path: Path) -> None:
    memory = Memory(tmp_path / "memory", 1)
    (tmp_path / "commons").mkdir()
    memory.learn(sentence(1))
    memory.share(tmp_path / "commons", rehearse=True)
    assert held(memory.db) == []
    seen = []
    for text in (sentence(2), sentence(3)):
        memory.learn(text)
        memory.share(tmp_path / "commons")
        own = holdings.holding(memory.db, memory.name)
        assert own is not None
        assert held(memory.db) == [own.item]
        seen.append(own.item)
    assert seen[0] != seen[1]
    assert items.check(memory.db) == []
    memory.close()


# --- what is not wanted again ---


def test_what_was_superseded_is_forgotten_in_time_and_what_was_refused_is_not(db: sqlite3.Connection) -> None:
    with transaction(db):
        ledger.note(db, [bytes([1]) * 32], ledger.SUPERSEDED, NOW - timedelta(days=91))
        ledger.note(db, [bytes([2]) * 32], ledger.SUPERSEDED, NOW - timedelta(days=89))
        ledger.note(db, [bytes([3]) * 32], "signature_invalid", NOW - timedelta(days=400))
        ledger.prune(db, NOW)
    assert {one[0] for one in ledger.settled(db, [bytes([number]) * 32 for number in (1, 2, 3)])} == {2, 3}


def test_the_ledger_has_an_end_and_the_oldest_go_first(db: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger, "ENTRIES_MOST", 10)
    ids = [bytes([number]) * 32 for number in range(25)]
    with transaction(db):
        for number, one in enumerate(ids):
            ledger.note(db, [one], "signature_invalid", NOW + timedelta(minutes=number))
        ledger.prune(db, NOW)
    assert list(ledger.settled(db, ids)) == ids[15:]


def test_the_lost_bytes_of_a_file_take_its_item_away_until_they_are_back(tmp_path: Path) -> None:
    memory = Memory(tmp_path / "memory", 3)
    whole = sealed()
    take(memory.db, whole)
    with transaction(memory.db):
        items.lose(memory.db, [A.public.hex, B.public.hex])
    assert held(memory.db) == []
    assert items.check(memory.db) == []
    assert whole.seal is not None
    with transaction(memory.db):
        items.find_again(memory.db, whole.seal, whole.digest, NOW)
    assert held(memory.db) == [item(whole)]
    assert items.check(memory.db) == []
    memory.close()


# --- memories of earlier releases ---


@pytest.fixture
def earlier(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a memory whose release knew no items, with two files, one without a seal, and a proof."""
    home = Home.create(tmp_path / "home")
    home.db_path.unlink()
    files = [sealed(11), sealed(12), accept(draft_file(key(13), [lesson(sentence(0))]), now=NOW)]
    with monkeypatch.context() as patch:
        patch.setattr(store, "MIGRATIONS", MIGRATIONS[:2])
        db = open_store(home.db_path)
    for one in files:
        (home.commons_path / f"{one.key.hex}.jsonl").write_bytes(one.data)
        db.execute(
            "INSERT INTO holdings (key, seal, digest, size, records, source, received) VALUES (?, ?, ?, ?, 1, '', ?)",
            (one.key.hex, one.version.seal, one.digest, len(one.data), "2026-03-01T12:00:00Z"),
        )
    db.execute("INSERT INTO refusals VALUES (?, ?, 'seal_digest', '2026-03-01T12:00:00Z')", (B.public.hex, "d" * 64))
    db.execute(
        "INSERT INTO equivocations VALUES (?, 5, ?, ?, '2026-03-01T12:00:00Z')",
        (A.public.hex, seal_of(sealed()).line, seal_of(sealed(days=1)).line),
    )
    db.close()
    return home.path


def test_a_memory_of_an_earlier_release_gets_its_items_when_it_is_opened(earlier: Path) -> None:
    db = Home.open(earlier).connect()
    assert held(db) == [proof_item(A.public), *sorted([item(sealed(11)), item(sealed(12))])]
    assert places.proof_of(db, proof_item(A.public).id) is not None
    assert items.check(db) == []
    refused = item_id(B.public, "d" * 64)
    assert ledger.settled(db, [refused]) == {refused: "seal_digest"}
    db.close()


@pytest.mark.parametrize("loss", [b"", None, sealed(11, 6).data])
def test_a_file_whose_bytes_are_lost_gets_its_item_when_they_are_back(loss: bytes | None, earlier: Path) -> None:
    home = Home.open(earlier)
    path = home.commons_path / f"{A.public.hex}.jsonl"
    whole = path.read_bytes()
    if loss is None:
        path.unlink()
    else:
        path.write_bytes(loss)
    db = home.connect()
    assert held(db) == [proof_item(A.public), item(sealed(12))]
    assert items.check(db) == []
    db.close()
    path.write_bytes(whole)
    db = home.connect()
    assert item(sealed(11)) in held(db)
    db.close()


def test_a_file_that_replaces_one_of_an_earlier_release_has_its_item_all_the_same(earlier: Path) -> None:
    home = Home.open(earlier)
    (home.commons_path / f"{A.public.hex}.jsonl").unlink()
    db = home.connect()
    take(db, sealed(11, 6))
    with transaction(db):
        eviction.evict(db, [B.public.hex])
    assert held(db) == [proof_item(A.public), item(sealed(11, 6))]
    assert items.check(db) == []
    db.close()
