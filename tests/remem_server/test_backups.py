"""Backups of SQLite, and the numbers of a commons that was set back."""

from __future__ import annotations

import sqlite3
import stat
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select, update

from remem.errors import RememError
from remem_server.commands.common import PROGRAM
from remem_server.database import tables
from remem_server.database.engine import DATABASE_NAME, is_postgres, writing
from remem_server.opening.context import Commons
from remem_server.opening.node import KEY_NAME
from remem_server.settings import system_clock
from remem_server.upkeep import backups
from remem_server.upkeep.audit import audit
from remem_testkit.command import Remem
from remem_testkit.files import NOW, file, key, lesson, sentence
from remem_testkit.filled import fill, filled_commons, put
from remem_testkit.server import prepared

AT = NOW + timedelta(hours=2)


@pytest.fixture
def filled(tmp_path: Path) -> Iterator[Commons]:
    with filled_commons(tmp_path / "data", "sqlite") as made:
        yield made


@pytest.fixture
def kept(tmp_path: Path, place: Callable[[str], dict[str, Any]]) -> Iterator[Commons]:
    with prepared(tmp_path / "data", **place("data")) as made:
        fill(made)
        yield made


def rows(database: Path) -> dict[str, list[Any]]:
    """Return everything that a database has."""
    with closing(sqlite3.connect(database)) as connection:
        names = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return {name: connection.execute(f"SELECT * FROM {name}").fetchall() for name in names if "_words" not in name}


def test_a_backup_has_all_of_the_database_in_one_file(filled: Commons, tmp_path: Path) -> None:
    target = tmp_path / "copy.db"
    assert backups.back_up(filled.settings.data, target) == target.stat().st_size
    assert rows(target) == rows(filled.settings.data / DATABASE_NAME)
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    assert sorted(path.name for path in tmp_path.iterdir()) == ["copy.db", "data"]


def test_a_file_that_is_there_is_not_overwritten(filled: Commons, tmp_path: Path) -> None:
    target = tmp_path / "copy.db"
    target.write_text("mine")
    with pytest.raises(RememError, match="expected a new file"):
        backups.back_up(filled.settings.data, target)
    assert target.read_text() == "mine"


def test_a_file_that_came_meanwhile_is_not_overwritten(filled: Commons, tmp_path: Path) -> None:
    target = tmp_path / "copy.db"

    def write(_done: int, _all: int) -> None:
        target.write_text("mine")

    with pytest.raises(FileExistsError):
        backups.back_up(filled.settings.data, target, write)
    assert target.read_text() == "mine"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["copy.db", "data"]


def test_a_backup_that_fails_leaves_nothing(filled: Commons, tmp_path: Path) -> None:
    def stop(_done: int, _all: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        backups.back_up(filled.settings.data, tmp_path / "copy.db", stop)
    assert [path.name for path in tmp_path.iterdir()] == ["data"]


def test_a_backup_is_of_one_moment_and_comes_to_an_end_under_writers(
    filled: Commons, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backups, "_PAGES", 1)
    before = rows(filled.settings.data / DATABASE_NAME)
    steps: list[int] = []

    def write(done: int, _all: int) -> None:
        # Every fourth page a file comes: a copy that began again each time would never end.
        steps.append(done)
        if len(steps) % 4 == 0 and len(steps) < 400:
            put(filled, file(key(1_000 + len(steps)), [lesson(sentence(len(steps)))]))

    backups.back_up(filled.settings.data, tmp_path / "copy.db", write)
    assert len(steps) == steps[-1]
    assert rows(tmp_path / "copy.db") == before
    assert rows(filled.settings.data / DATABASE_NAME) != before


def test_a_writer_does_not_wait_for_a_backup(filled: Commons, tmp_path: Path) -> None:
    wrote = threading.Event()

    def write(_done: int, _all: int) -> None:
        if not wrote.is_set():
            put(filled, file(key(99), []))
            wrote.set()

    backups.back_up(filled.settings.data, tmp_path / "copy.db", write)
    assert wrote.is_set()


def test_a_database_that_is_damaged_is_no_backup(filled: Commons, tmp_path: Path) -> None:
    filled.engine.dispose()
    database = filled.settings.data / DATABASE_NAME
    data = bytearray(database.read_bytes())
    # The head of a page in the middle.
    data[4_096 * 10 : 4_096 * 10 + 64] = b"\xff" * 64
    database.write_bytes(data)
    with pytest.raises((RememError, sqlite3.DatabaseError)):
        backups.back_up(filled.settings.data, tmp_path / "copy.db")
    assert not (tmp_path / "copy.db").exists()


def test_the_command_says_what_a_backup_needs(operator: Remem, kept: Commons, tmp_path: Path) -> None:
    target = tmp_path / "copy.db"
    ended = operator("backup", str(target), "--json")
    if is_postgres(kept.engine):
        assert (ended.status, ended.out) == (1, "")
        assert f"{PROGRAM}: hint: pg_dump --format=custom " in ended.err
        return
    assert ended.document == {"file": str(target), "bytes": target.stat().st_size}
    assert KEY_NAME in ended.err
    ended = operator("backup", str(target))
    assert ended.status == 1
    assert ended.err.startswith(f"{PROGRAM}: error: expected a new file, got ")


def test_the_command_numbers_anew(operator: Remem, kept: Commons) -> None:
    before = count_of(kept)
    ended = operator("recount", "--json")
    assert ended.status == 0
    assert ended.document == {"changes": count_of(kept), "resealed": True}
    assert count_of(kept) > before
    assert "what was revoked or denied after the backup is said no more" in ended.err
    assert list(audit(kept.engine, system_clock())) == []


# --- numbers ---


def cursors(commons: Commons) -> dict[str, int]:
    with commons.engine.connect() as connection:
        found = connection.execute(select(tables.files.c.key, tables.files.c.cursor).order_by(tables.files.c.cursor))
        return {row.key: row.cursor for row in found}


def count_of(commons: Commons) -> int:
    with commons.engine.connect() as connection:
        return int(connection.execute(select(tables.meta.c.changes)).scalar_one())


def test_every_number_is_beyond_all_that_were_given_and_in_the_same_order(kept: Commons) -> None:
    before, counted = cursors(kept), count_of(kept)
    last = backups.recount(kept.engine, AT)
    after = cursors(kept)
    assert list(after) == list(before)
    assert min(after.values()) > max(counted, int(AT.timestamp()) * 1_000_000)
    assert count_of(kept) == last == max(after.values())
    assert list(audit(kept.engine, AT)) == []
    put(kept, file(key(99), []))
    assert max(cursors(kept).values()) == last + 1


def test_a_second_time_they_go_up_again_whatever_the_clock_says(kept: Commons) -> None:
    first = backups.recount(kept.engine, AT)
    second = backups.recount(kept.engine, datetime(2020, 1, 1, tzinfo=AT.tzinfo))
    assert min(cursors(kept).values()) > first
    assert second > first
    assert list(audit(kept.engine, AT)) == []


def test_a_commons_without_a_file_has_nothing_to_number(tmp_path: Path, place: Callable[[str], dict[str, Any]]) -> None:
    with prepared(tmp_path / "data", **place("data")) as commons:
        assert backups.recount(commons.engine, AT) == 0
        assert list(audit(commons.engine, AT)) == []


def test_a_recount_that_was_cut_short_is_seen_by_the_next_start(
    kept: Commons, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: Callable[[str], dict[str, Any]]
) -> None:
    def stop(*_arguments: object) -> None:
        raise KeyboardInterrupt

    with writing(kept.engine) as connection:
        connection.execute(update(tables.lessons).values(standing=9))
    monkeypatch.setattr("remem_server.lessons.tallies.hashes_after", stop)
    with pytest.raises(KeyboardInterrupt):
        backups.recount(kept.engine, AT)
    monkeypatch.undo()
    with prepared(tmp_path / "data", **place("data")) as again:
        assert list(audit(again.engine, AT)) == []


def test_a_recount_goes_on_beside_writers(kept: Commons) -> None:
    failed: list[Exception] = []

    def write(number: int) -> None:
        try:
            for step in range(10):
                said = [lesson(sentence(step)), lesson(sentence(100 + number))]
                put(kept, file(key(200 + number), said, seal=step + 1))
        except Exception as error:  # noqa: BLE001 - told below
            failed.append(error)

    writers = [threading.Thread(target=write, args=(number,)) for number in range(3)]
    for writer in writers:
        writer.start()
    backups.recount(kept.engine, AT)
    for writer in writers:
        writer.join()
    assert failed == []
    assert list(audit(kept.engine, AT)) == []
