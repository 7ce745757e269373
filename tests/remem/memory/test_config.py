"""The settings: complete without a file, strict about what they do not know, and kept as the owner wrote them."""

from __future__ import annotations

import multiprocessing
from pathlib import Path

import pytest

from remem.errors import RememError
from remem.memory.config import Config, Target, read_config, remove_target, set_target


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "config.toml"


def test_no_file_and_an_empty_one_are_complete_settings(path: Path) -> None:
    assert read_config(path) == Config()
    path.write_text("")
    assert read_config(path) == Config((), 3, 90, open=False, budget_bytes=200_000_000)


def test_all_that_can_be_set(path: Path) -> None:
    path.write_text(
        'budget_bytes = 5\n[policy]\nconfirmations = 2\nwindow_days = 30\nopen = true\n'
        '[[targets]]\naddress = "https://a.example"\ntoken = "t"\n[[targets]]\naddress = "/mnt/b"\n'
    )  # fmt: skip
    targets = (Target("https://a.example", "t"), Target("/mnt/b"))
    assert read_config(path) == Config(targets, 2, 30, open=True, budget_bytes=5)
    assert read_config(path).target("https://a.example").token == "t"
    assert read_config(path).target("https://c.example") == Target("https://c.example")


WRONG = [
    ("not TOML", "x = ", "expected toml"),
    ("an unknown key", "budget = 5", "got budget"),
    ("an unknown key in a table", "[policy]\nconfirmation = 2", "got policy.confirmation"),
    ("an unknown key of a target", '[[targets]]\naddress = "a"\nuser = "b"', "got targets.user"),
    ("a number as text", '[policy]\nconfirmations = "3"', "policy.confirmations: expected a whole number"),
    ("zero", "[policy]\nwindow_days = 0", "policy.window_days: expected a whole number from 1"),
    ("a truth as number", "[policy]\nopen = 1", "policy.open: expected true or false"),
    ("a number as truth", "budget_bytes = true", "budget_bytes: expected a whole number"),
    ("a table that is none", "policy = 3", "policy: expected a table"),
    ("targets that are none", 'targets = "a"', "targets: expected an array of tables"),
    ("a target without an address", "[[targets]]\ntoken = 't'", "targets.address: expected a URL or a folder"),
    (
        "more confirmations than there are",
        "[policy]\nconfirmations = 1000001",
        "policy.confirmations: expected a whole",
    ),
    (
        "a window beyond a century",
        "[policy]\nwindow_days = 36501",
        "policy.window_days: expected a whole number from 1",
    ),
    ("a budget beyond any disk", "budget_bytes = 1000000000000001", "budget_bytes: expected a whole number"),
    ("one table for many targets", "[targets]\naddress = 'a'\ntoken = '12345'", "each under [[targets]]"),
    ("a target that is a token", "targets = ['12345']", "each under [[targets]]"),
    ("an address that is a list", "[[targets]]\naddress = ['12345']", "targets.address: expected a URL or a folder"),
    ("a token that is none", "[[targets]]\naddress = 'a'\ntoken = 12345", "targets.token: expected a string"),
]


@pytest.mark.parametrize(("text", "message"), [row[1:] for row in WRONG], ids=[row[0] for row in WRONG])
def test_what_is_wrong_is_named(text: str, message: str, path: Path) -> None:
    path.write_text(text)
    with pytest.raises(RememError) as caught:
        read_config(path)
    assert message in caught.value.message
    assert "12345" not in caught.value.message
    with pytest.raises(RememError):
        set_target(path, "a", "t")
    assert path.read_text() == text


def test_bytes_that_are_no_text_are_refused(path: Path) -> None:
    path.write_bytes(b"\xff")
    with pytest.raises(RememError, match="UTF-8"):
        read_config(path)


def test_a_change_keeps_comments_and_order_and_the_file_is_the_owners_alone(path: Path) -> None:
    path.write_text("# mine\n[policy]\nwindow_days = 30 # a month\n")
    set_target(path, "https://a.example", "t")
    set_target(path, "/mnt/b", None)
    set_target(path, "https://a.example", "u")
    text = path.read_text()
    assert text.startswith("# mine\n[policy]\nwindow_days = 30 # a month\n")
    assert read_config(path).targets == (Target("https://a.example", "u"), Target("/mnt/b"))
    assert path.stat().st_mode & 0o777 == 0o600
    assert [item.name for item in path.parent.iterdir()] == ["config.toml"]
    set_target(path, "https://a.example", None)
    assert read_config(path).target("https://a.example").token is None
    assert remove_target(path, "https://a.example")
    assert not remove_target(path, "https://a.example")
    assert read_config(path).targets == (Target("/mnt/b"),)


def test_a_token_survives_whatever_it_is_made_of(path: Path) -> None:
    token = "a\"b\\c'd é\n#"
    set_target(path, "x", token)
    assert read_config(path).target("x").token == token


def test_processes_that_add_targets_at_once_lose_none(path: Path) -> None:
    processes = multiprocessing.get_context("spawn")
    writers = [processes.Process(target=_add_targets, args=(path, number)) for number in range(4)]
    for one in writers:
        one.start()
    for one in writers:
        one.join()
    assert {target.address for target in read_config(path).targets} == {
        f"https://{number}-{part}.example" for number in range(4) for part in range(8)
    }


def _add_targets(path: Path, number: int) -> None:
    for part in range(8):
        set_target(path, f"https://{number}-{part}.example", "t")
