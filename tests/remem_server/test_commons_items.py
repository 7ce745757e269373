"""The items of a commons follow what it holds, whoever changes it, and however many do."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from hashlib import blake2b
from pathlib import Path
from random import Random
from typing import Any

import pytest
from sqlalchemy import Connection, Engine, delete, func, insert, select, update

from remem.itemset import BLOCK_ITEMS, Head
from remem.protocol import accept
from remem.protocol.items import Item, item_of, proof_item
from remem.protocol.times import unix_seconds
from remem_server.database import changes, tables
from remem_server.database.engine import writing
from remem_server.files import items, ledger, store
from remem_server.files.accept import accept_file
from remem_server.upkeep.audit_items import audit_items
from remem_server.upkeep.backups import recount
from remem_testkit.files import NOW, draft_file, file, key, lesson, sentence
from remem_testkit.server import prepared

Place = Callable[[str], dict[str, Any]]


def said(number: int, version: int = 0, text: int = 0) -> bytes:
    return file(key(number), [lesson(sentence(text))], at=NOW + timedelta(seconds=version))


def put(engine: Engine, *files: bytes) -> None:
    for data in files:
        name = accept(data, now=NOW + timedelta(days=1)).key.hex
        accept_file(engine, data, name=name, secret=None, token_needed=False, now=NOW + timedelta(days=1))


def item(data: bytes) -> Item:
    made = accept(data, now=NOW + timedelta(days=1))
    assert made.seal is not None
    return item_of(made.key, made.seal.time, made.digest)


def held(engine: Engine) -> list[Item]:
    with engine.connect() as connection:
        assert list(audit_items(connection)) == []
        return list(items.itemset(connection))


def unwanted(engine: Engine) -> dict[bytes, str]:
    with engine.connect() as connection:
        return {row.id: row.code for row in connection.execute(select(tables.ledger))}


def test_an_item_follows_its_file_and_what_is_superseded_is_not_wanted_again(engine: Engine) -> None:
    put(engine, said(1), said(2), draft_file(key(3), [lesson(sentence(1))]))
    assert held(engine) == sorted([item(said(1)), item(said(2))])
    put(engine, said(1, 5), said(2, 3), said(2))
    assert held(engine) == sorted([item(said(1, 5)), item(said(2, 3))])
    assert unwanted(engine) == dict.fromkeys([item(said(1)).id, item(said(2)).id], ledger.SUPERSEDED)
    put(engine, said(3, 9))
    assert item(said(3, 9)) in held(engine)


def test_a_newer_file_of_a_small_commons_is_one_block_written(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    put(engine, said(1), said(2))
    written: list[int] = []
    plain = items.Blocks.put

    def noted(blocks: items.Blocks, head: Head, packed: bytes) -> None:
        written.append(head.size)
        plain(blocks, head, packed)

    monkeypatch.setattr(items.Blocks, "put", noted)
    put(engine, said(1, 5), said(3), said(3))
    assert written == [2, 3]
    assert held(engine) == sorted([item(said(1, 5)), item(said(2)), item(said(3))])


def test_a_key_that_spoke_twice_has_one_item_more_and_one_proof(engine: Engine) -> None:
    one, other = sorted((said(1, 0, 1), said(1, 0, 2)), key=lambda data: item(data).id)
    put(engine, one, other, said(1, 7, 1), said(1, 7, 2))
    assert held(engine)[0] == proof_item(key(1).public)
    assert len(held(engine)) == 2
    with engine.connect() as connection:
        assert connection.execute(select(func.count()).select_from(tables.equivocations)).scalar_one() == 1
        assert connection.execute(select(func.count()).select_from(tables.proofs)).scalar_one() == 1


def as_before(connection: Connection, data: bytes) -> None:
    """Store a file as a server of the release before does, which knows nothing of items."""
    made = accept(data, now=NOW + timedelta(days=1))
    assert made.seal is not None
    changes.lock(connection)
    cursor = changes.next_change(connection)
    row = {
        "origin": made.key.origin,
        "seal": made.seal.number,
        "digest": made.digest,
        "seal_time": made.seal.time,
        "records": len(made.lines),
        "size": len(made.data),
        "updated": NOW,
        "cursor": cursor,
        "counted": cursor,
    }
    name = made.key.hex
    known = connection.execute(select(tables.files.c.key).where(tables.files.c.key == name)).one_or_none()
    if known is None:
        connection.execute(insert(tables.files), {"key": name, **row})
    else:
        connection.execute(update(tables.files).where(tables.files.c.key == name), row)
        connection.execute(delete(tables.contents).where(tables.contents.c.key == name))
    topics = "\n".join(made.topics)
    connection.execute(insert(tables.contents), {"key": name, "data": made.data, "topics": topics})


@pytest.mark.parametrize("at_once", [True, False], ids=["all in order anew", "one after the other"])
def test_files_without_their_item_are_given_it_by_the_next_start(
    tmp_path: Path, place: Place, monkeypatch: pytest.MonkeyPatch, at_once: bool
) -> None:
    monkeypatch.setattr(items, "REBUILD_FROM", 1 if at_once else 1_000)
    with prepared(tmp_path / "data", open=True, **place("data")) as commons:
        put(commons.engine, *(said(number) for number in range(5)))
        with writing(commons.engine) as connection:
            # New ones, newer ones, and a proof.
            for data in (said(3, 8), said(7), said(8)):
                as_before(connection, data)
            twice = {"key": key(0).public.hex, "seal": 5, "digest_a": "a" * 64, "digest_b": "b" * 64}
            lines = {name: said(0, 5, text).partition(b"\n")[0] for name, text in (("line_a", 1), ("line_b", 2))}
            connection.execute(insert(tables.equivocations), {**twice, **lines})
        # What this release then puts finds its way beside that.
        put(commons.engine, said(7, 9), said(3, 9), said(4, 9))
        with commons.engine.connect() as connection:
            assert {finding.code for finding in audit_items(connection)} <= {"item", "items"}
    expected = [said(0), said(1), said(2), said(3, 9), said(4, 9), said(7, 9), said(8)]
    with prepared(tmp_path / "data", open=True, **place("data")) as commons:
        assert held(commons.engine) == sorted([*map(item, expected), proof_item(key(0).public)])
        items.catch_up(commons.engine)


def test_eight_writers_at_once_leave_the_items_of_what_stands(engine: Engine) -> None:
    """Each of them changes the newest block, and old ones by superseding what others wrote."""
    rounds, writers = 12, 8
    files = [said(number, version) for version in range(rounds) for number in range(writers * 2)]
    put(engine, *files[: writers * 2])
    shares = [files[start::writers] for start in range(writers)]
    for share in shares:
        Random(5).shuffle(share)
    with ThreadPoolExecutor(writers) as pool:
        for done in [pool.submit(put, engine, *share) for share in shares]:
            done.result()
    assert held(engine) == sorted(item(said(number, rounds - 1)) for number in range(writers * 2))


def test_a_set_of_a_million_is_opened_by_its_heads_alone(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    number = 20 * BLOCK_ITEMS + 7
    with writing(engine) as connection:
        seconds = unix_seconds(NOW)
        made = [Item(seconds + n, blake2b(b"%d" % n, digest_size=32).digest()) for n in range(number)]
        items.itemset(connection).fill(made)
    read: list[bytes] = []
    plain = items.Blocks.read

    def noted(blocks: items.Blocks, starts: Sequence[bytes]) -> Mapping[bytes, bytes]:
        read.extend(starts)
        return plain(blocks, starts)

    monkeypatch.setattr(items.Blocks, "read", noted)
    with items.opened(engine) as storage:
        assert len(storage) == number
        assert storage.sum(0, number) == sum(int.from_bytes(one.id, "little") for one in made) % 2**256
        assert not read
        assert storage.item(number - 1) == made[-1]
        assert len(read) == 1


def test_a_finding_tells_where_the_items_are_others_than_what_is_held(engine: Engine) -> None:
    put(engine, *(said(number) for number in range(4)))
    with writing(engine) as connection:
        items.itemset(connection).discard(item(said(0)))
        connection.execute(delete(tables.versions).where(tables.versions.c.key == key(1).public.hex))
        ledger.note(connection, item(said(2)).id, ledger.SUPERSEDED, NOW)
    with engine.connect() as connection:
        found = {(finding.code, finding.subject) for finding in audit_items(connection)}
    assert found == {
        ("items", key(0).public.hex),
        ("item", key(1).public.hex),
        ("ledger", key(2).public.hex),
    }


def test_what_was_noted_long_ago_is_forgotten(engine: Engine) -> None:
    with writing(engine) as connection:
        ledger.note(connection, bytes(32), "syntax", NOW)
        ledger.note(connection, bytes([1]) * 32, "syntax", NOW + timedelta(days=1))
        ledger.forget_old(connection, NOW + ledger.KEPT + timedelta(hours=1))
    assert unwanted(engine) == {bytes([1]) * 32: "syntax"}


def test_a_start_gives_no_item_to_a_file_whose_block_was_taken_back(engine: Engine) -> None:
    put(engine, said(1), said(2))
    name = key(1).public.hex
    with writing(engine) as connection:
        changes.lock(connection)
        store.drop(connection, name)
        items.let_go(connection, name)
    items.catch_up(engine)
    assert held(engine) == [item(said(2))]
    put(engine, said(1))
    assert held(engine) == sorted([item(said(1)), item(said(2))])


def test_a_recount_makes_the_items_anew_whatever_became_of_them(engine: Engine) -> None:
    put(engine, *(said(number) for number in range(5)))
    with writing(engine) as connection:
        connection.execute(delete(tables.items))
    recount(engine, NOW)
    assert held(engine) == sorted(item(said(number)) for number in range(5))
