"""The database: its owner, its schema, and several processes that write at once."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from remem.errors import Refused
from remem.memory import store
from remem.memory.store import MIGRATIONS, open_store, transaction


def _schema(db: sqlite3.Connection) -> list[tuple[str, str]]:
    return [(row[0], row[1]) for row in db.execute("SELECT name, sql FROM sqlite_schema ORDER BY name")]


def test_a_new_database_has_the_newest_schema_and_is_the_owners_alone(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    db = open_store(path)
    assert db.execute("PRAGMA user_version").fetchone()[0] == len(MIGRATIONS)
    assert db.execute("PRAGMA journal_mode").fetchone()[0] == "wal"
    # 2 is FULL: what is committed outlives a power cut.
    assert db.execute("PRAGMA synchronous").fetchone()[0] == 2
    assert db.execute("PRAGMA foreign_keys").fetchone()[0] == 1
    with transaction(db):
        db.execute("INSERT INTO vetoes (hash, at) VALUES ('a', 'b')")
    assert {oct(item.stat().st_mode & 0o777) for item in tmp_path.iterdir()} == {"0o600"}
    db.close()


@pytest.mark.parametrize("version", range(len(MIGRATIONS)))
def test_a_database_of_every_earlier_schema_is_migrated_in_place(
    version: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, new = tmp_path / "old.db", tmp_path / "new.db"
    with monkeypatch.context() as patch:
        patch.setattr(store, "MIGRATIONS", MIGRATIONS[:version])
        db = open_store(old)
        assert db.execute("PRAGMA user_version").fetchone()[0] == version
        db.close()
    migrated, made = open_store(old), open_store(new)
    assert _schema(migrated) == _schema(made)
    migrated.close()
    made.close()


def test_a_migration_that_fails_leaves_the_schema_before_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "memory.db"
    open_store(path).close()
    monkeypatch.setattr(store, "MIGRATIONS", (*MIGRATIONS, "CREATE TABLE more (x);\nCREATE TABLE vetoes (x);"))
    with pytest.raises(sqlite3.OperationalError):
        open_store(path)
    monkeypatch.undo()
    db = open_store(path)
    assert not [name for name, _ in _schema(db) if name == "more"]
    db.close()


def test_a_newer_schema_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    db = open_store(path)
    db.execute("PRAGMA user_version = 99")
    db.close()
    with pytest.raises(Refused, match="got schema 99") as caught:
        open_store(path)
    assert caught.value.hint is not None
    assert "update" in caught.value.hint


def test_a_database_of_another_program_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    db = sqlite3.connect(path)
    db.execute("CREATE TABLE theirs (x)")
    db.commit()
    db.close()
    before = path.read_bytes()
    with pytest.raises(Refused, match="another program"):
        open_store(path)
    assert path.read_bytes() == before


def test_a_file_that_is_no_database_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    path.write_text("this is not a database, and long enough that nobody takes it for an empty one" * 20)
    with pytest.raises(Refused, match="no database"):
        open_store(path)
    assert path.read_text().startswith("this is not")


def test_a_transaction_that_fails_leaves_nothing(tmp_path: Path) -> None:
    db = open_store(tmp_path / "memory.db")
    with pytest.raises(sqlite3.IntegrityError), transaction(db):
        db.executemany("INSERT INTO vetoes (hash, at) VALUES (?, 'b')", [("a",), ("a",)])
    assert db.execute("SELECT count(*) FROM vetoes").fetchone()[0] == 0
    assert not db.in_transaction
    db.close()


WRITER = """
import json, sys
from datetime import UTC, datetime
from pathlib import Path
from remem.ingest.events import parse_event
from remem.memory.events import add_event
from remem.memory.store import open_store, transaction

name, path = sys.argv[1], Path(sys.argv[2])
print("ready", flush=True)
sys.stdin.readline()
db = open_store(path)
for number in range(60):
    own = {"kind": "note", "text": f"{name} {number}", "agent": name}
    shared = {"kind": "error", "title": "Bash: x", "happened": f"{name} {number}"}
    with transaction(db):
        add_event(db, parse_event(json.dumps(own)), datetime.now(UTC))
        add_event(db, parse_event(json.dumps(shared)), datetime.now(UTC))
db.close()
"""


def test_four_processes_that_write_at_once_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, f"writer-{number}", str(path)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ},
        )
        for number in range(4)
    ]  # fmt: skip
    # All of them make the database, migrate it and write at the same time.
    for writer in writers:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "ready\n"
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.write("go\n")
        writer.stdin.flush()
    ended = [(writer.communicate(timeout=120)[1], writer.returncode) for writer in writers]
    assert ended == [("", 0)] * 4
    db = open_store(path)
    assert db.execute("SELECT count(*) FROM events WHERE kind = 'note'").fetchone()[0] == 4 * 60
    assert db.execute("SELECT seen FROM events WHERE kind = 'error'").fetchall()[0][0] == 4 * 60
    assert db.execute("SELECT count(*) FROM occurrences").fetchone()[0] == 2 * 4 * 60
    assert db.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
    db.close()
