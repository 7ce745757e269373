"""The home: its identity is made once, it is the owner's alone, and another program's folder is left alone."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from remem.errors import Refused, RememError
from remem.memory.home import Home, home_path, tighten


def _snapshot(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_new_home_has_everything_and_is_the_owners_alone(tmp_path: Path) -> None:
    home = Home.create(tmp_path / "deep" / "home")
    assert {path.name for path in home.path.iterdir()} >= {"identity.key", "memory.db", "config.toml", "commons"}
    assert home.path.stat().st_mode & 0o777 == 0o700
    assert home.commons_path.stat().st_mode & 0o777 == 0o700
    for path in (home.key_path, home.db_path, home.config_path):
        assert path.stat().st_mode & 0o777 == 0o600
    assert not [path for path in home.path.iterdir() if path.name.startswith(".")]


def test_a_home_that_is_there_stays_as_it_is(tmp_path: Path) -> None:
    home = Home.create(tmp_path / "home")
    key = home.key_path.read_bytes()
    origin = home.signing_key().public.origin
    again = Home.create(tmp_path / "home")
    assert again.key_path.read_bytes() == key
    assert Home.open(tmp_path / "home").signing_key().public.origin == origin


def test_two_homes_have_two_keys(tmp_path: Path) -> None:
    keys = {Home.create(tmp_path / name).signing_key().public.hex for name in ("a", "b")}
    assert len(keys) == 2


MAKER = "import sys; from pathlib import Path; from remem.memory.home import Home; Home.create(Path(sys.argv[1]))"


def test_processes_that_make_one_home_at_once_agree_on_its_key(tmp_path: Path) -> None:
    path = tmp_path / "home"
    makers = [
        subprocess.Popen([sys.executable, "-c", MAKER, str(path)], stderr=subprocess.PIPE, text=True) for _ in range(4)
    ]
    ended = [(maker.communicate(timeout=60)[1], maker.returncode) for maker in makers]
    assert ended == [("", 0)] * 4
    assert len(Home.open(path).key_path.read_text().strip()) == 64
    assert not [item for item in path.iterdir() if item.name.startswith(".")]


def test_a_half_made_home_is_completed(tmp_path: Path) -> None:
    home = Home.create(tmp_path / "home")
    key = home.key_path.read_bytes()
    for path in (home.db_path, home.config_path, *home.path.glob("memory.db-*")):
        path.unlink()
    home.commons_path.rmdir()
    Home.create(home.path)
    assert home.key_path.read_bytes() == key
    assert home.db_path.exists()
    assert home.commons_path.is_dir()


def test_a_memory_without_its_key_is_not_given_a_new_one(tmp_path: Path) -> None:
    home = Home.create(tmp_path / "home")
    home.key_path.unlink()
    with pytest.raises(Refused, match="without one"):
        Home.create(home.path)
    assert not home.key_path.exists()
    with pytest.raises(Refused, match="got no file"):
        Home.open(home.path).signing_key()


def test_an_empty_folder_and_one_with_only_an_inbox_become_a_home(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert Home.create(tmp_path / "empty").key_path.exists()
    (tmp_path / "early").mkdir()
    (tmp_path / "early" / "inbox.jsonl").write_text('{"kind":"note","text":"x"}\n')
    assert Home.create(tmp_path / "early").inbox_path.read_text() == '{"kind":"note","text":"x"}\n'


def _foreign_files(folder: Path) -> None:
    (folder / "notes.txt").write_text("mine")


def _foreign_key(folder: Path) -> None:
    (folder / "identity.key").write_text("-----BEGIN PRIVATE KEY-----\n")


def _foreign_database(folder: Path) -> None:
    db = sqlite3.connect(folder / "memory.db")
    db.execute("CREATE TABLE memories (x)")
    db.commit()
    db.close()


def _foreign_database_with_a_key(folder: Path) -> None:
    _foreign_database(folder)
    (folder / "identity.key").write_text("ab" * 32)


@pytest.mark.parametrize(
    "make",
    [_foreign_files, _foreign_key, _foreign_database, _foreign_database_with_a_key],
    ids=["other files", "another kind of key", "another database", "another database beside a key"],
)
def test_a_folder_of_another_program_is_refused_and_left_alone(make: object, tmp_path: Path) -> None:
    assert callable(make)
    make(tmp_path)
    before = _snapshot(tmp_path)
    for act in (Home.create, Home.open):
        with pytest.raises(Refused):
            act(tmp_path).connect()
    assert _snapshot(tmp_path) == before


def test_a_file_in_the_place_of_the_home_is_refused(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("x")
    with pytest.raises(Refused, match="got a file"):
        Home.create(tmp_path / "home")


def test_a_missing_home_says_how_to_make_one(tmp_path: Path) -> None:
    with pytest.raises(RememError, match="got none") as caught:
        Home.open(tmp_path / "home")
    assert caught.value.hint == "run `remem init`"
    assert not (tmp_path / "home").exists()


def test_what_is_open_to_others_is_closed_and_told(tmp_path: Path) -> None:
    home = Home.create(tmp_path / "home")
    home.key_path.chmod(0o644)
    home.path.chmod(0o755)
    found = tighten(home)
    assert len(found) == 2
    assert "644" in " ".join(found)
    assert home.key_path.stat().st_mode & 0o777 == 0o600
    assert home.path.stat().st_mode & 0o777 == 0o700
    assert tighten(home) == []


def test_spare_files_of_processes_that_died_are_removed_an_hour_later(tmp_path: Path) -> None:
    home = Home.create(tmp_path / "home")
    old, fresh = home.path / ".config.toml.12345", home.path / ".identity.key.0123456789abcdef"
    for spare in (old, fresh):
        spare.write_text("secret")
    os.utime(old, (0, 0))
    Home.open(home.path)
    assert not old.exists()
    assert fresh.exists()
    assert home.config_path.exists()


def test_the_home_is_named_by_the_environment_or_lies_in_the_users_home(tmp_path: Path) -> None:
    assert home_path({"REMEM_HOME": str(tmp_path)}) == tmp_path
    assert home_path({}) == Path.home() / ".remem"
    assert home_path({"REMEM_HOME": ""}) == Path.home() / ".remem"
