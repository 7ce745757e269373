"""The command that looks whether a memory is well: what it finds, and how it ends."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from remem_testkit.command import Ended, Remem
from remem_testkit.files import file, key, lesson, sentence


@pytest.fixture
def pulled(memory: Remem, tmp_path: Path) -> Path:
    """Let the memory pull a file from a folder; return the place of its bytes."""
    folder = tmp_path / "commons"
    folder.mkdir()
    name = key(10).public.hex
    (folder / f"{name}.jsonl").write_bytes(file(key(10), [lesson(sentence(0))]))
    assert memory("login", str(folder)).status == 0
    assert memory("pull").status == 0
    return Path(memory("whoami", "--json").document["home"]) / "commons" / f"{name}.jsonl"


def found(ended: Ended, level: str) -> dict[str, str]:
    return {one["check"]: one["text"] for one in ended.document["findings"] if one["level"] == level}


def test_a_memory_that_is_well_ends_with_0(memory: Remem, pulled: Path) -> None:
    ended = memory("doctor", "--json")
    assert ended.status == 0
    assert ended.document["well"] is True
    assert found(ended, "wrong") == {}
    assert set(found(ended, "ok")) >= {"rights", "key", "database", "files", "items", "targets"}
    assert memory("doctor").out.splitlines()[0].startswith("ok       rights: ")


def let_peers_have_answered(home: Path) -> None:
    with sqlite3.connect(home / "memory.db") as db:
        db.execute("UPDATE peers SET answered = added")


def test_too_few_peers_are_a_warning_and_no_failure(memory: Remem, remem_home: Path) -> None:
    ended = memory("doctor", "--json")
    assert ended.status == 0
    assert "expected at least 3 peers, got 0" in found(ended, "warning")["peers"]
    for path in ("a", "b", "c"):
        assert memory("peers", "add", f"https://commons.example/{path}").status == 0
    let_peers_have_answered(remem_home)
    assert "all 3 peers are on commons.example" in found(memory("doctor", "--json"), "warning")["peers"]
    assert memory("peers", "add", "https://other.example").status == 0
    let_peers_have_answered(remem_home)
    assert "peers" in found(memory("doctor", "--json"), "ok")


def test_a_peer_that_does_not_keep_its_word_is_named(memory: Remem, remem_home: Path) -> None:
    for host in ("a", "b", "c"):
        assert memory("peers", "add", f"https://{host}.example").status == 0
    let_peers_have_answered(remem_home)
    with sqlite3.connect(remem_home / "memory.db") as db:
        db.execute("UPDATE peers SET promised = 50, delivered = 3 WHERE url = 'https://b.example'")
    assert found(memory("doctor", "--json"), "warning") == {
        "peers": "https://b.example delivered 3 of 50 files that it promised"
    }


def test_rights_that_were_too_wide_are_told_and_closed(memory: Remem, remem_home: Path) -> None:
    (remem_home / "config.toml").chmod(0o644)
    ended = memory("doctor", "--json")
    assert ended.status == 0
    assert "was open to others (mode 644)" in found(ended, "warning")["rights"]
    assert (remem_home / "config.toml").stat().st_mode & 0o777 == 0o600
    assert "rights" in found(memory("doctor", "--json"), "ok")


def test_a_target_that_does_not_answer_is_a_warning(memory: Remem, remem_home: Path) -> None:
    (remem_home / "config.toml").write_text('[[targets]]\naddress = "http://127.0.0.1:9"\n')
    ended = memory("doctor", "--json")
    assert ended.status == 0
    assert "targets" in found(ended, "warning")


def test_what_status_warns_of_is_told_too(memory: Remem, pulled: Path, remem_home: Path) -> None:
    text = (remem_home / "config.toml").read_text()
    (remem_home / "config.toml").write_text("budget_bytes = 100\n" + text)
    assert "budget" in found(memory("doctor", "--json"), "warning")


def _lose(pulled: Path, home: Path) -> None:
    pulled.unlink()


def _change(pulled: Path, home: Path) -> None:
    status = pulled.stat()
    pulled.write_bytes(pulled.read_bytes().replace(b"the build", b"the guild"))
    os.utime(pulled, ns=(status.st_atime_ns, status.st_mtime_ns))


def _lose_key(pulled: Path, home: Path) -> None:
    (home / "identity.key").unlink()


def _misspell(pulled: Path, home: Path) -> None:
    (home / "config.toml").write_text("no = 1\n")


def _without_item(pulled: Path, home: Path) -> None:
    with sqlite3.connect(home / "memory.db") as db:
        db.execute("DELETE FROM items")


@pytest.mark.parametrize(
    ("harm", "check"),
    [
        pytest.param(_lose, "files", id="a file is gone"),
        pytest.param(_change, "files", id="a file has other bytes of the same size and time"),
        pytest.param(_lose_key, "key", id="the key is gone"),
        pytest.param(_misspell, "settings", id="a setting that nobody knows"),
        pytest.param(_without_item, "items", id="a file that peers are not told of"),
    ],
)
def test_what_is_wrong_is_named_and_ends_with_1(
    memory: Remem, pulled: Path, remem_home: Path, harm: Callable[[Path, Path], Any], check: str
) -> None:
    harm(pulled, remem_home)
    ended = memory("doctor", "--json")
    assert ended.status == 1
    assert ended.document["well"] is False
    assert set(found(ended, "wrong")) == {check}
    assert "expected nothing wrong, got 1 finding that is" in ended.err
    assert f"wrong    {check}: " in memory("doctor").out


def test_the_items_are_made_anew_where_that_is_asked_for(memory: Remem, pulled: Path, remem_home: Path) -> None:
    _without_item(pulled, remem_home)
    ended = memory("doctor", "--mend")
    assert ended.status == 0
    assert "were made anew" in ended.out
    assert memory("doctor", "--json").document["well"] is True


def test_a_row_that_refers_to_nothing_is_wrong(memory: Remem, pulled: Path, remem_home: Path) -> None:
    with sqlite3.connect(remem_home / "memory.db") as db:
        db.execute("DELETE FROM holdings")
    assert "database" in found(memory("doctor", "--json"), "wrong")


def test_a_database_whose_pages_are_damaged_is_an_error(memory: Remem, pulled: Path, remem_home: Path) -> None:
    data = bytearray((remem_home / "memory.db").read_bytes())
    data[4096 * 3 : 4096 * 9] = b"\xff" * 4096 * 6
    for path in remem_home.glob("memory.db-*"):
        path.unlink()
    (remem_home / "memory.db").write_bytes(data)
    assert memory("doctor").status == 1


def test_the_folder_of_another_program_is_left_alone(remem: Remem, remem_home: Path) -> None:
    remem_home.mkdir(mode=0o755)
    (remem_home / "notes.txt").write_text("mine")
    (remem_home / "notes.txt").chmod(0o644)
    assert remem("doctor").status == 3
    assert remem_home.stat().st_mode & 0o777 == 0o755


def test_without_a_memory_it_says_how_to_make_one(remem: Remem) -> None:
    ended = remem("doctor")
    assert ended.status == 1
    assert "remem init" in ended.err
