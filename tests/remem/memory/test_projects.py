"""Projects: nothing leaves that is not in one, and which one an event is in goes by parts of paths."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from remem.errors import RememError
from remem.memory.projects import add_project, outside, project_of, projects, remove_project
from remem.memory.store import open_store

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.fixture
def db(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    db = open_store(tmp_path / "memory.db")
    yield db
    db.close()


def test_a_project_is_opted_in_once_by_its_resolved_path_and_out_again(db: sqlite3.Connection, tmp_path: Path) -> None:
    real = tmp_path / "real"
    real.mkdir()
    (tmp_path / "link").symlink_to(real)
    assert add_project(db, tmp_path / "link", NOW) == real
    assert add_project(db, tmp_path / "x" / ".." / "real", NOW) == real
    assert projects(db) == (real,)
    assert remove_project(db, tmp_path / "link")
    assert not remove_project(db, real)
    assert projects(db) == ()


def test_a_project_that_is_gone_can_still_be_opted_out(db: sqlite3.Connection, tmp_path: Path) -> None:
    (tmp_path / "gone").mkdir()
    add_project(db, tmp_path / "gone", NOW)
    (tmp_path / "gone").rmdir()
    assert remove_project(db, tmp_path / "gone")


@pytest.mark.parametrize("name", ["missing", "file"])
def test_what_is_no_folder_is_no_project(name: str, db: sqlite3.Connection, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(RememError, match="expected a folder"):
        add_project(db, tmp_path / name, NOW)


PLACES = [
    ("the folder itself", "/w/app", "/w/app"),
    ("a folder in it", "/w/app/src/deep", "/w/app"),
    ("the innermost of two", "/w/app/sub/x", "/w/app/sub"),
    ("a name that only begins so", "/w/app-two", None),
    ("the folder above", "/w", None),
    ("dots that lead out", "/w/app/../other", None),
    ("dots that lead in", "/w/other/../app/x", "/w/app"),
    ("no absolute path", "app/src", None),
    ("no path", None, None),
    ("an empty path", "", None),
    ("a path of another system", "C:\\w\\app", None),
    ("a path that cannot be", "/w/app\x00/x", None),
]


@pytest.mark.parametrize(("cwd", "expected"), [row[1:] for row in PLACES], ids=[row[0] for row in PLACES])
def test_an_event_belongs_to_the_innermost_project_that_contains_it(cwd: str | None, expected: str | None) -> None:
    found = project_of([Path("/w/app"), Path("/w/app/sub"), Path("/v")], cwd)
    assert found == (None if expected is None else Path(expected))


OUTSIDE = [
    ("no path", None, "names no folder"),
    ("an empty path", "", "names no folder"),
    ("no absolute path", "app/src", "names a folder by no absolute path"),
    ("another folder", "/w/other", "is from a folder that is in no project that is opted in"),
    ("a folder of a project", "/w/app/src", None),
]


@pytest.mark.parametrize(("cwd", "why"), [row[1:] for row in OUTSIDE], ids=[row[0] for row in OUTSIDE])
def test_why_something_is_in_no_project_is_said(cwd: str | None, why: str | None) -> None:
    assert outside([Path("/w/app")], cwd) == why


def test_a_link_out_of_a_project_is_not_in_it(tmp_path: Path) -> None:
    (tmp_path / "app").mkdir()
    (tmp_path / "other").mkdir()
    (tmp_path / "app" / "link").symlink_to(tmp_path / "other")
    assert project_of([tmp_path / "app"], str(tmp_path / "app" / "link")) is None
    assert project_of([tmp_path / "other"], str(tmp_path / "app" / "link")) == tmp_path / "other"
