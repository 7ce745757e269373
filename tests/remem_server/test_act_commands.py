"""The operator's acts as commands, and `journal`: what they print, how they end, where key and token come from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import httpx
import pytest

from remem.protocol import RULES, lesson_hash
from remem_server.settings import system_clock
from remem_testkit.command import Remem
from remem_testkit.files import file, key, lesson, sentence
from remem_testkit.server import ServedCommons

Start = Callable[..., ServedCommons]

HASH = lesson_hash("error", sentence(1))
KEY = key(1).public.hex
WHY = ("--reason", "It is not so.")


@pytest.fixture
def made(operator: Remem) -> Remem:
    """Return the command, beside a commons that was made."""
    assert operator("migrate").status == 0
    return operator


@pytest.mark.parametrize(
    ("act", "subject", "words", "percent"),
    [("revoke", HASH, "revoked", 0), ("deny", KEY, "denied", 0), ("block", KEY, "blocked", None)],
)
def test_an_act_is_done_told_and_taken_back(
    made: Remem, act: str, subject: str, words: str, percent: int | None
) -> None:
    first = made(act, subject, *WHY)
    assert (first.status, first.out) == (0, "")
    assert first.err.splitlines() == [
        f"remem-server: {subject} is {words}",
        f"remem-server: nothing of it is held here; where that is a typing error, remem-server un{act} takes it back",
    ]
    again = made(act, subject, *WHY, "--json")
    assert again.document == {
        "act": act,
        "subject": subject,
        "outcome": "already",
        "known": False,
        "file_percent": percent,
    }
    assert f"{subject} is {words} already" in again.err
    for outcome, said in (("done", f"is no longer {words}"), ("already", f"was not {words}: nothing is done")):
        back = made(f"un{act}", subject, "--json")
        assert (back.status, back.document["outcome"]) == (0, outcome)
        assert f"{subject} {said}" in back.err
    assert [row["act"] for row in made("journal", "--json").document] == [act, f"un{act}"]


def test_the_journal_is_a_table_that_is_read_on(made: Remem) -> None:
    assert "nothing was done yet" in made("journal").err
    for number in range(3):
        made("revoke", f"{number:032x}", *WHY)
    shown = made("journal", "--limit", "2")
    head, *rows = shown.out.splitlines()
    assert head.split() == ["id", "at", "who", "act", "subject", "reason"]
    assert [row.endswith("It is not so.") for row in rows] == [True, True]
    assert "there is more: --after 2" in shown.err
    assert [row["id"] for row in made("journal", "--after", "2", "--json").document] == [3]
    assert "nothing more was done" in made("journal", "--after", "3").err


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (("revoke", HASH), 2, "--reason"),
        (("revoke", *WHY), 2, "missing argument 'HASH'"),
        (("deny", *WHY), 2, "missing argument 'KEY'"),
        (("revoke", HASH[:5], *WHY), 2, "hash: expected 32 lower-case hex digits"),
        (("deny", HASH, *WHY), 2, "key: expected"),
        (("block", KEY, "--reason", ""), 2, "reason: expected a sentence, got nothing"),
        (("deny", "f" * 64, *WHY), 2, "which is none: a digit of it is wrong"),
        (("revoke", HASH, *WHY, "--to", "http://127.0.0.1:1"), 2, "--to together with --key"),
        (("revoke", HASH, *WHY, "--key", "node.key"), 2, "--to together with --key"),
        (("revoke", HASH, *WHY, "--adopt"), 2, "--to together with --key"),
        (("journal", "--after", "1" + "0" * 30), 2, "--after"),
        (("deny", KEY, *WHY, "--to", "http://127.0.0.1:1", "--key", "x", "--data", "d"), 2, "without --data"),
        (("revoke", HASH, *WHY, "--to", "http://127.0.0.1:1", "--key", "/nowhere/node.key"), 1, "/nowhere/node.key"),
        (("journal", "--limit", "0"), 2, "--limit"),
    ],
)
def test_a_call_that_cannot_be_followed_says_why(made: Remem, words: tuple[str, ...], status: int, said: str) -> None:
    ended = made(*words)
    assert (ended.status, ended.out) == (status, "")
    assert ended.err.startswith("remem-server: error: ")
    assert said in ended.err
    assert made("journal", "--json").document == []


def test_whoever_takes_a_block_back_hears_that_the_file_must_come_again(made: Remem) -> None:
    made("block", KEY, *WHY)
    assert "its file comes back when it is published again" in made("unblock", KEY).err
    assert "comes back" not in made("unblock", KEY).err


def test_what_is_so_already_is_not_said_to_be_a_typing_error(made: Remem) -> None:
    made("revoke", HASH, *WHY)
    assert made("revoke", HASH, *WHY).err == f"remem-server: {HASH} is revoked already\n"


def test_whoever_speaks_in_a_file_that_fills_up_is_told(
    made: Remem, start: Start, monkeypatch: pytest.MonkeyPatch, key_file: Path
) -> None:
    monkeypatch.setattr("remem_server.operator.own_file.RULES", replace(RULES, file_records=5, file_bytes=1_000_000))
    commons = start("elsewhere", clock=system_clock)
    monkeypatch.setenv("REMEM_TOKEN", commons.token())
    there = ("--to", commons.url, "--key", str(key_file))
    for place in ((), there):
        for number in range(3):
            assert "full" not in made("revoke", f"{number:032x}", *WHY, *place).err
        assert "full to 80 %" in made("deny", KEY, *WHY, *place).err
        assert "full to 80 %" in made("deny", KEY, *WHY, *place).err
    assert "full to 80 %" in made("stats").err
    assert made("stats", "--json").document["operator_file_percent"] == 80


def test_what_a_rule_forbids_ends_with_3(start: Start, operator: Remem) -> None:
    node = start().commons.key.public.hex
    ended = operator("block", node, *WHY)
    assert ended.status == 3
    assert "operator_key: expected the key of somebody else" in ended.err


def test_a_commons_that_is_not_there_is_not_made(database: str, operator: Remem, tmp_path: Path) -> None:
    if database == "postgres":
        pytest.skip("a database that is named is there")
    assert operator("revoke", HASH, *WHY).status == 1
    assert not (tmp_path / "data").exists()


def test_a_running_commons_follows_an_act_at_once(start: Start, operator: Remem) -> None:
    commons = start()
    token = {"Authorization": f"Bearer {commons.token()}"}
    httpx.put(f"{commons.url}/commons/{KEY}.jsonl", content=file(key(1), [lesson(sentence(1))]), headers=token)
    assert operator("revoke", HASH, *WHY, "--json").document["known"]
    assert httpx.get(f"{commons.url}/commons/lessons/{HASH}").json()["cause"] == "revoker"
    assert operator("block", KEY, *WHY).status == 0
    assert httpx.get(f"{commons.url}/commons/{KEY}.jsonl").json()["reason"] == "It is not so."


# --- from another machine ---


@pytest.fixture
def key_file(tmp_path: Path) -> Path:
    """Return the file of a key that is on this machine alone."""
    path = tmp_path / "operator.key"
    path.write_text(key(7).seed.hex() + "\n")
    path.chmod(0o600)
    return path


def test_a_key_that_is_elsewhere_signs_there_and_needs_no_database(
    start: Start, operator: Remem, key_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commons = start("elsewhere", operators=(key(7).public.hex,), clock=system_clock)
    there = ("--to", commons.url, "--key", str(key_file))
    monkeypatch.setenv("REMEM_DATABASE_URL", "postgresql+psycopg://nowhere.invalid/none")
    refused = operator("revoke", HASH, *WHY, *there)
    assert (refused.status, refused.out) == (3, "")
    assert "expected a bearer token, got none" in refused.err
    assert refused.err.startswith("remem-server: nothing was signed here with this key before: ")
    assert "hint: the variable REMEM_TOKEN is to hold a token to publish with there; what was signed" in refused.err
    secret = commons.token()
    monkeypatch.setenv("REMEM_TOKEN", secret)
    done = operator("revoke", HASH, *WHY, *there, "--json")
    assert done.document == {
        "act": "revoke",
        "subject": HASH,
        "outcome": "done",
        "key": key(7).public.hex,
        "target": commons.url,
        "obeyed": True,
        "warnings": [],
        "file_percent": 0,
    }
    assert done.err == f"remem-server: {HASH} is revoked\n"
    assert secret not in done.out + done.err
    assert operator("revoke", HASH, *WHY, *there).err == f"remem-server: {HASH} is revoked already\n"
    assert operator("unrevoke", HASH, *there).status == 0
    assert operator("deny", KEY, *WHY, *there).status == 0
    assert operator("undeny", KEY, *there).status == 0
    said = httpx.get(f"{commons.url}/commons/{key(7).public.hex}.jsonl").content
    assert said.count(b"\n") == 1


def test_a_key_that_no_reader_obeys_is_said_to_be_none(
    start: Start, operator: Remem, key_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commons = start("elsewhere", clock=system_clock)
    monkeypatch.setenv("REMEM_TOKEN", commons.token())
    ended = operator("revoke", HASH, *WHY, "--to", commons.url, "--key", str(key_file))
    assert ended.status == 0
    assert "does not name" in ended.err
    assert "REMEM_OPERATORS" in ended.err


def test_a_file_that_was_signed_elsewhere_is_taken_over_where_that_is_said(
    start: Start, operator: Remem, key_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commons = start("elsewhere", clock=system_clock)
    there = ("--to", commons.url, "--key", str(key_file))
    monkeypatch.setenv("REMEM_TOKEN", commons.token())
    assert operator("revoke", HASH, *WHY, *there).status == 0
    # As on a machine that does not know of it.
    key_file.with_name("operator.key.signed").rename(key_file.with_name("away"))
    assert operator("deny", KEY, *WHY, *there).status == 0
    key_file.with_name("away").rename(key_file.with_name("operator.key.signed"))
    refused = operator("undeny", KEY, *there)
    assert (refused.status, refused.out) == (3, "")
    assert "foreign_seal: expected at" in refused.err
    assert "--adopt" in refused.err
    taken = operator("undeny", KEY, *there, "--adopt")
    assert (taken.status, taken.out) == (0, "")
    assert "a file that was signed elsewhere is taken over" in taken.err
    said = httpx.get(f"{commons.url}/commons/{key(7).public.hex}.jsonl").content
    assert said.count(b"\n") == 2


def test_a_commons_that_does_not_answer_is_unreachable(operator: Remem, key_file: Path) -> None:
    ended = operator("revoke", HASH, *WHY, "--to", "http://127.0.0.1:1", "--key", str(key_file))
    assert ended.status == 4


def test_a_key_that_others_may_read_signs_nothing(operator: Remem, key_file: Path) -> None:
    key_file.chmod(0o644)
    ended = operator("revoke", HASH, *WHY, "--to", "http://127.0.0.1:1", "--key", str(key_file))
    assert ended.status == 1
    assert "others may read" in ended.err


@pytest.mark.parametrize("act", ["revoke", "unrevoke", "deny", "undeny", "block", "unblock", "journal"])
def test_help_is_printed(operator: Remem, act: str) -> None:
    ended = operator(act, "--help")
    assert ended.status == 0
    assert ended.out.startswith(f"Usage: remem-server {act} ")
    assert "REMEM_TOKEN" in ended.out or act in ("block", "unblock", "journal")
