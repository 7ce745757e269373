"""Counting all lessons from nothing: when a start does it, and what may happen meanwhile."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import Connection, Engine, update

from remem.protocol import (
    accept,
)
from remem_server.database import changes, tables
from remem_server.database.engine import writing
from remem_server.database.tables import files
from remem_server.files import store, tokens
from remem_server.files.accept import accept_file, store_accepted
from remem_server.files.judging import judge_records
from remem_server.lessons import rows as lesson_rows
from remem_server.lessons import tallies
from remem_server.lessons.policy import CountingPolicy, is_counted, stored_policy
from remem_server.lessons.rows import read_rows
from remem_testkit.counting import CLOSED, DAY, HASHES, OPEN, TEXTS, CountedCommons, empty
from remem_testkit.files import NOW, confirmation, file, key, lesson


class CutShort(Exception):
    """The process ended."""


def test_a_count_that_was_cut_short_is_made_again_by_the_next_start(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    empty(engine)
    commons = CountedCommons(engine)
    for who in (3, 4, 5):
        commons.put(who, [lesson(TEXTS[who - 3]), confirmation(HASHES[4 - who])], None)
    monkeypatch.setattr(tallies, "NAMED_AT_ONCE", 1)
    done: list[int] = []

    def ends(*arguments: Any, **options: Any) -> None:
        if done:
            raise CutShort
        done.append(1)
        lesson_rows.write_rows(*arguments, **options)

    with monkeypatch.context() as patch:
        patch.setattr(tallies, "write_rows", ends)
        with pytest.raises(CutShort):
            tallies.bring_up(engine, OPEN)
    with engine.connect() as connection:
        assert stored_policy(connection) == OPEN
    # Whoever publishes in between is no sign that all was counted.
    for who in (3, 4, 5):
        commons.put(who, [lesson(TEXTS[who - 3])], None)
    tallies.bring_up(engine, OPEN)
    commons.check()


def test_what_is_published_while_all_is_counted_is_counted_once(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    empty(engine)
    commons = CountedCommons(engine)
    for who in (3, 4, 5):
        commons.put(who, [lesson(TEXTS[who - 3]), confirmation(HASHES[4 - who])], None)
    monkeypatch.setattr(tallies, "NAMED_AT_ONCE", 1)
    plain = tallies.hashes_after

    def interrupted(connection: Connection, after: str) -> list[str]:
        # On the connection of the count itself: it stands for a writer that had the lock just before.
        signer = key(6)
        told = [confirmation(hash_) for hash_ in HASHES[: len(steps)]]
        offered = accept(file(signer, told, at=NOW + DAY + timedelta(seconds=len(steps))), now=NOW + DAY)
        store_accepted(connection, offered, NOW)
        steps.append(after)
        return plain(connection, after)

    steps: list[str] = []
    monkeypatch.setattr(tallies, "hashes_after", interrupted)
    tallies.bring_up(engine, OPEN)
    monkeypatch.undo()
    assert len(steps) == len(HASHES) + 1
    commons.check()


@pytest.mark.parametrize("most", [1, 2, 3, 5, 100])
def test_no_more_statements_than_a_bound_are_counted_at_once_but_all_about_one_lesson(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    empty(engine)
    commons = CountedCommons(engine)
    for who, about in enumerate((HASHES, HASHES[:2], HASHES[1:2], HASHES[1:2]), 3):
        commons.put(who, [confirmation(hash_) for hash_ in about], None)
    said = {hash_: {0: 2, 1: 4}.get(number, 1) for number, hash_ in enumerate(HASHES)}
    monkeypatch.setattr(tallies, "STATEMENTS_AT_ONCE", most)
    pages: list[list[str]] = [[""]]
    with engine.connect() as connection:
        while page := tallies.hashes_after(connection, pages[-1][-1]):
            pages.append(page)
    assert [hash_ for page in pages[1:] for hash_ in page] == sorted(HASHES)
    assert all(len(page) == 1 or sum(said[hash_] for hash_ in page) <= most for page in pages[1:])


@pytest.mark.parametrize("other", [CLOSED, OPEN], ids=["by another policy", "by the same policy"])
def test_of_two_counts_at_once_the_one_that_began_first_stops(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, other: CountingPolicy
) -> None:
    empty(engine)
    commons = CountedCommons(engine)
    for who in (3, 4, 5):
        commons.put(who, [lesson(TEXTS[who - 3]), confirmation(HASHES[4 - who])], None)
    monkeypatch.setattr(tallies, "NAMED_AT_ONCE", 1)
    plain, looked = writing, list[Engine]()

    def overtaken(engine: Engine) -> Any:
        looked.append(engine)
        # Behind the first lesson.
        if len(looked) == 3:
            tallies.recount(engine, other)
            looked.append(engine)
            ended.append(len(looked))
        return plain(engine)

    ended: list[int] = []
    monkeypatch.setattr(tallies, "writing", overtaken)
    tallies.bring_up(engine, OPEN)
    monkeypatch.undo()
    assert ended == [len(looked)]
    with engine.connect() as connection:
        assert stored_policy(connection) == other
        assert is_counted(connection, other)
    commons.check()


def publish_as_before(connection: Connection, who: int, contents: list[dict[str, Any]]) -> None:
    """Publish another file of a key as a server of the release before does: it knows nothing of counting."""
    offered = accept(file(key(who), contents, at=NOW + 2 * DAY), now=NOW + 2 * DAY)
    cursor = changes.next_change(connection)
    row = {"digest": offered.digest, "seal": offered.version.seal, "cursor": cursor}
    connection.execute(update(files).where(files.c.key == offered.key.hex).values(row))
    content = {"data": offered.data, "topics": "\n".join(offered.topics)}
    connection.execute(update(tables.contents).where(tables.contents.c.key == offered.key.hex).values(content))
    store.rejudge(connection, offered.key.hex, judge_records(offered.records))


def test_what_a_server_of_the_release_before_changed_is_counted_by_the_next_start(engine: Engine) -> None:
    empty(engine)
    commons = CountedCommons(engine)
    commons.put(3, [lesson(TEXTS[0])], None)
    commons.put(4, [confirmation(HASHES[0])], None)
    with writing(engine) as connection:
        publish_as_before(connection, 4, [lesson(TEXTS[1]), confirmation(HASHES[2])])
    # A change that is counted does not hide one that was not.
    with writing(engine) as connection:
        changes.lock(connection)
        offered = accept(file(key(4), [lesson(TEXTS[1])], at=NOW + 3 * DAY), now=NOW + 3 * DAY)
        store_accepted(connection, offered, NOW)
    with pytest.raises(AssertionError):
        commons.check()
    tallies.bring_up(engine, CLOSED)
    commons.check()


def test_what_a_server_of_the_release_before_changes_while_all_is_counted_is_counted_by_the_next_start(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    empty(engine)
    commons = CountedCommons(engine)
    commons.put(3, [lesson(TEXTS[0])], None)
    plain = tallies.hashes_after

    def interrupted(connection: Connection, after: str) -> list[str]:
        found = plain(connection, after)
        if not found:
            publish_as_before(connection, 3, [lesson(TEXTS[1])])
        return found

    with monkeypatch.context() as patch:
        patch.setattr(tallies, "hashes_after", interrupted)
        tallies.bring_up(engine, OPEN)
    with pytest.raises(AssertionError):
        commons.check()
    tallies.bring_up(engine, OPEN)
    commons.check()


def test_an_expired_token_still_admits_its_key(engine: Engine) -> None:
    empty(engine)
    with writing(engine) as connection:
        secret, _token = tokens.create(connection, NOW, tokens.Terms(expires=NOW + DAY))
    data = file(key(3), [confirmation(HASHES[0])])
    accept_file(engine, data, name=key(3).public.hex, secret=secret, token_needed=True, now=NOW)
    tallies.recount(engine, CLOSED)
    with engine.connect() as connection:
        assert read_rows(connection, HASHES)[HASHES[0]].row.sums.confirmations == 1
