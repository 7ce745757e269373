"""`remem-server` as a program: what it prints, where, and how it ends."""

from __future__ import annotations

import json
import re
import signal
import socket
import stat
import subprocess
from pathlib import Path
from typing import Any

import httpx
import pytest

from remem_server.settings import DEFAULT_PORT
from remem_testkit.files import file, key
from remem_testkit.server import operator_command, plain_environment, spawn


def run(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        operator_command(*arguments),
        env=plain_environment(**variables),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def told(*arguments: str, **variables: str) -> Any:
    """Run a command that prints JSON."""
    ran = run(*arguments, "--json", **variables)
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


@pytest.fixture
def data(tmp_path: Path) -> str:
    """Return a data folder that was made."""
    assert run("migrate", "--data", str(tmp_path / "data")).returncode == 0
    return str(tmp_path / "data")


def assert_fails(ran: subprocess.CompletedProcess[str], status: int, *, said: str, hint: bool = True) -> None:
    assert ran.returncode == status, ran.stderr
    assert ran.stdout == ""
    lines = ran.stderr.splitlines()
    assert lines[0].startswith("remem-server: error: ")
    assert said in lines[0]
    assert len(lines) == (2 if hint else 1), ran.stderr
    if hint:
        assert lines[1].startswith("remem-server: hint: ")


def test_the_first_start_prints_an_address_and_a_token_once(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with spawn(data) as commons:
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+", commons.url)
        assert [line.split()[0] for line in commons.output] == ["serving", "token"]
        headers = {"Authorization": f"Bearer {commons.token}"}
        url = f"{commons.url}/commons/{key(1).public.hex}.jsonl"
        assert httpx.put(url, content=file(key(1), []), headers=headers).status_code == 201
        status, _errors = commons.end(signal.SIGINT)
        assert status == 0
    assert stat.S_IMODE((data / "node.key").stat().st_mode) == 0o600
    with spawn(data) as commons:
        assert commons.token is None
        assert [line.split()[0] for line in commons.output] == ["serving"]
        assert commons.end(signal.SIGTERM)[0] == 0


def test_a_later_start_says_how_to_make_another_token(data: str) -> None:
    made = told("token", "create", "--data", data)
    process = subprocess.Popen(
        operator_command("serve", "--port", "0", "--data", data),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=plain_environment(),
    )
    assert process.stdout is not None
    url = process.stdout.readline().split()[1]
    process.send_signal(signal.SIGTERM)
    output, errors = process.communicate(timeout=60)
    assert process.returncode == 0
    assert output == ""
    assert f"remem-server token create --data {data}" in errors
    assert f"remem login {url}" in errors
    assert f"remem share {url}" in errors
    assert made["token"] not in errors
    assert "Traceback" not in errors


def test_a_token_or_a_text_never_reaches_the_log(tmp_path: Path) -> None:
    with spawn(tmp_path / "data") as commons:
        headers = {"Authorization": f"Bearer {commons.token}"}
        for path in (f"/commons/{key(1).public.hex}.jsonl", "/commons/zz.jsonl"):
            httpx.put(commons.url + path, content=file(key(1), [{"vote": "a secret text"}]), headers=headers)
            httpx.get(commons.url + path, headers=headers)
        _status, errors = commons.end()
    assert commons.token is not None
    assert commons.token not in errors
    assert "secret" not in errors
    assert errors == ""


def test_where_the_usual_port_is_taken_a_free_one_will_do(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            taken.bind(("127.0.0.1", DEFAULT_PORT))
            taken.listen()
        except OSError:
            # Something else has it already, which is as good.
            pass
        with spawn(tmp_path / "data", []) as commons:
            assert not commons.url.endswith(f":{DEFAULT_PORT}")
            assert httpx.get(f"{commons.url}/healthz").status_code == 200


def test_a_port_that_was_asked_for_and_is_taken_is_a_failure(data: str) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        assert_fails(run("serve", "--data", data, "--port", port), 1, said=f"port {port}")
        assert_fails(run("serve", "--data", data, REMEM_PORT=port), 1, said=f"port {port}")


def test_a_first_start_that_fails_makes_no_token_that_nobody_saw(tmp_path: Path) -> None:
    data = tmp_path / "data"
    failed = run("serve", "--data", str(data), "--host", "192.0.2.1", "--port", "0")
    assert_fails(failed, 1, said="192.0.2.1")
    with spawn(data) as commons:
        assert commons.token is not None


def test_settings_come_from_the_environment_and_options_win(tmp_path: Path) -> None:
    data = tmp_path / "data"
    variables = {"REMEM_OPEN": "true", "REMEM_OPERATORS": f"{key(8).public.hex}, {key(9).public.hex}"}
    for arguments, is_open in ((["--port", "0"], True), (["--port", "0", "--closed"], False)):
        with spawn(data, arguments, **variables) as commons:
            said = httpx.get(f"{commons.url}/.well-known/remem").json()
            assert said["open"] is is_open
            assert said["operators"][1:] == [key(8).public.hex, key(9).public.hex]


@pytest.mark.parametrize(
    ("arguments", "variables", "said"),
    [
        (["--open", "--private"], {}, "open or private"),
        (["--port", "70000"], {}, "port"),
        (["--port", "x"], {}, "--port"),
        (["--nonsense"], {}, "--nonsense"),
        ([], {"REMEM_PORT": "x"}, "port"),
        ([], {"REMEM_OPEN": "perhaps"}, "open"),
        ([], {"REMEM_OPERATORS": "abc"}, "operators"),
        (["extra"], {}, "extra"),
    ],
)
def test_a_call_that_it_does_not_know_ends_with_2(
    tmp_path: Path, arguments: list[str], variables: dict[str, str], said: str
) -> None:
    ran = run("serve", "--data", str(tmp_path / "data"), *arguments, **variables)
    assert_fails(ran, 2, said=said)
    assert not (tmp_path / "data").exists()


def test_a_key_that_others_may_read_is_a_failure(data: str) -> None:
    (Path(data) / "node.key").write_text("0" * 64)
    (Path(data) / "node.key").chmod(0o644)
    assert_fails(run("serve", "--data", data, "--port", "0"), 1, said="others may read")


def test_tokens_are_made_listed_and_revoked(data: str) -> None:
    first = run("token", "create", "--data", data)
    assert re.fullmatch(r"remem_[\w-]{43}\n", first.stdout)
    assert "token 1, principal " in first.stderr
    second = told("token", "create", "--data", data, "--label", "laptop", "--principal", "team-a")
    assert (second["id"], second["label"], second["principal"], second["key"]) == (2, "laptop", "team-a", None)
    assert run("token", "revoke", "1", "--data", data).returncode == 0
    assert run("token", "revoke", "1", "--data", data).returncode == 0
    listed = told("token", "list", "--data", data)
    assert [(one["id"], one["revoked"] is None) for one in listed] == [(1, False), (2, True)]
    assert all("token" not in one and "token_hash" not in one for one in listed)
    shown = run("token", "list", "--data", data).stdout
    assert [line.split()[:2] for line in shown.splitlines()] == [
        ["number", "state"],
        ["1", "revoked"],
        ["2", "unused"],
    ]
    assert first.stdout.strip() not in shown


def test_a_running_commons_follows_the_tokens_at_once(tmp_path: Path) -> None:
    data = str(tmp_path / "data")
    with spawn(tmp_path / "data") as commons:
        made = told("token", "create", "--data", data, "--principal", "team-a")
        headers = {"Authorization": f"Bearer {made['token']}"}
        url = f"{commons.url}/commons/{key(1).public.hex}.jsonl"
        assert httpx.put(url, content=file(key(1), []), headers=headers).status_code == 201
        assert told("token", "list", "--data", data)[1]["key"] == key(1).public.hex
        assert "bound" in run("token", "list", "--data", data).stdout
        assert run("token", "revoke", str(made["id"]), "--data", data).returncode == 0
        assert httpx.put(url, content=file(key(1), []), headers=headers).json()["code"] == "token_revoked"


@pytest.mark.parametrize(
    ("arguments", "status", "said", "hint"),
    [
        (["token", "revoke", "9"], 1, "got 9", True),
        (["token", "revoke", "x"], 2, "number", True),
        (["token", "create", "--principal", "a b"], 2, "principal", False),
        (["token", "create", "--label", "a\nb"], 2, "label", False),
        (["token", "nonsense"], 2, "nonsense", True),
    ],
)
def test_what_cannot_be_done_with_a_token_is_said(
    data: str, arguments: list[str], status: int, said: str, *, hint: bool
) -> None:
    assert_fails(run(*arguments, "--data", data), status, said=said, hint=hint)


@pytest.mark.parametrize("arguments", [["create"], ["list"], ["revoke", "1"]])
def test_tokens_of_a_commons_that_is_not_there_are_none(tmp_path: Path, arguments: list[str]) -> None:
    ran = run("token", *arguments, "--data", str(tmp_path / "elsewhere"))
    assert_fails(ran, 1, said="no database there")
    assert not (tmp_path / "elsewhere").exists()


def test_a_file_that_is_no_database_is_a_failure(data: str) -> None:
    for name in ("commons.db", "commons.db-wal", "commons.db-shm"):
        (Path(data) / name).unlink(missing_ok=True)
    (Path(data) / "commons.db").write_bytes(b"something else" * 1_000)
    assert_fails(run("token", "list", "--data", data), 1, said="not a database", hint=False)


def test_migrate_may_run_twice(data: str) -> None:
    assert run("migrate", "--data", data).returncode == 0


@pytest.mark.parametrize("arguments", [["--help"], ["serve", "--help"], ["migrate", "--help"], ["token", "--help"]])
def test_help_is_printed(arguments: list[str]) -> None:
    ran = run(*arguments)
    assert ran.returncode == 0
    assert "Usage: " in ran.stdout
