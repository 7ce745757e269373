"""The nightly backup, over both databases: it is whole, its owner's alone, and older ones go in their time."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from remem_testkit.postgres import DATABASES, fresh_database
from remem_testkit.programs import postgres_programs
from remem_testkit.server import plain_environment, prepared

SCRIPT = Path(__file__).parents[2] / "deploy" / "backup.sh"
DAY = 86_400


@pytest.fixture(params=DATABASES)
def variables(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[dict[str, str]]:
    """Make a commons, and return the settings of its operator."""
    data = tmp_path / "data"
    path = os.pathsep.join(map(str, (Path(sys.executable).parent, postgres_programs(), os.environ["PATH"])))
    own = {"REMEM_DATA": str(data), "REMEM_BACKUPS": str(tmp_path / "backups"), "PATH": path}
    if request.param == "sqlite":
        with prepared(data):
            pass
        yield own
        return
    with fresh_database() as url:
        with prepared(data, database_url=url):
            pass
        yield {**own, "REMEM_DATABASE_URL": url}


def back_up(variables: dict[str, str]) -> Path:
    done = subprocess.run(
        ["/bin/sh", str(SCRIPT)], env=plain_environment(**variables), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return Path(done.stdout.strip())


def test_a_backup_is_whole_and_its_owners_alone(variables: dict[str, str], tmp_path: Path) -> None:
    made = back_up(variables)
    folder = tmp_path / "backups"
    assert sorted(folder.iterdir()) == sorted([made, folder / "node.key"])
    assert made.read_bytes().startswith(b"PGDMP" if "REMEM_DATABASE_URL" in variables else b"SQLite format 3")
    assert (folder / "node.key").read_bytes() == (tmp_path / "data" / "node.key").read_bytes()
    for path in (folder, *folder.iterdir()):
        assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0


def test_old_backups_go_and_nothing_else_does(variables: dict[str, str], tmp_path: Path) -> None:
    folder = tmp_path / "backups"
    folder.mkdir()
    for name, days in (("commons-old.db", 9), ("commons-young.db", 5), ("letter", 99)):
        (folder / name).touch()
        os.utime(folder / name, (time.time() - days * DAY,) * 2)
    made = back_up({**variables, "REMEM_BACKUP_DAYS": "7"})
    assert {path.name for path in folder.iterdir()} == {made.name, "node.key", "commons-young.db", "letter"}


def test_a_backup_that_fails_says_so_and_looks_like_none(variables: dict[str, str], tmp_path: Path) -> None:
    wrong = {"REMEM_DATABASE_URL": "postgresql+psycopg://127.0.0.1:1/none"} if "REMEM_DATABASE_URL" in variables else {}
    done = subprocess.run(
        ["/bin/sh", str(SCRIPT)],
        env=plain_environment(**{**variables, "REMEM_DATA": str(tmp_path / "absent"), **wrong}),
        capture_output=True,
        check=False,
    )
    assert done.returncode != 0
    assert not list((tmp_path / "backups").glob("commons-*[!t]"))
