"""`remem-server` as a program: what it prints, where, and how it ends.

What serves, and what could wait for another, is a process of its own. To start one takes half a second, so the other
commands run in this process, as `__main__` runs them.
"""

from __future__ import annotations

import fcntl
import io
import json
import os
import re
import signal
import socket
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any
from unittest.mock import patch

import httpx
import pytest
from sqlalchemy import make_url

import remem
from remem.cli.run import run as run_app
from remem_server.commands.common import PROGRAM
from remem_server.commands.main import app
from remem_server.settings import DEFAULT_PORT
from remem_testkit.files import file, key
from remem_testkit.postgres import fresh_database
from remem_testkit.server import operator_command, plain_environment, spawn


def run(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a command in this process."""
    output, errors = io.StringIO(), io.StringIO()
    with (
        patch.dict(os.environ, plain_environment(**variables), clear=True),
        patch.object(sys, "argv", [PROGRAM, *arguments]),
        redirect_stdout(output),
        redirect_stderr(errors),
    ):
        status = run_app(app, PROGRAM)
    return subprocess.CompletedProcess(arguments, status, output.getvalue(), errors.getvalue())


def run_process(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a command as a process of its own."""
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


def served_and_ended(*arguments: str) -> tuple[str, str]:
    """Start a commons and end it; return its address, and what it noted."""
    process = subprocess.Popen(
        operator_command("serve", "--port", "0", *arguments),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=plain_environment(),
    )
    assert process.stdout is not None
    url = process.stdout.readline().split()[1]
    process.send_signal(signal.SIGTERM)
    output, notes = process.communicate(timeout=60)
    assert (process.returncode, output) == (0, "")
    assert "Traceback" not in notes
    return url, notes


def test_a_later_start_says_how_to_make_another_token(data: str) -> None:
    made = told("token", "create", "--data", data)
    url, notes = served_and_ended("--data", data)
    assert f"remem-server token create --data {data}" in notes
    assert f"remem login {url}, then remem share {url}" in notes
    assert made["token"] not in notes


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
    assert key(1).public.hex not in errors
    assert len(errors.splitlines()) == 4


@contextmanager
def usual_port_taken() -> Iterator[None]:
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            taken.bind(("127.0.0.1", DEFAULT_PORT))
            taken.listen()
        except OSError:
            # Something else has it already, which is as good.
            pass
        yield


def test_where_the_usual_port_is_taken_a_free_one_will_do_for_a_person_who_looks(data: str) -> None:
    ours, terminal = os.openpty()
    with usual_port_taken(), os.fdopen(ours, "rb", 0) as screen:
        process = subprocess.Popen(
            operator_command("serve", "--data", data), stdout=terminal, stderr=subprocess.PIPE, env=plain_environment()
        )
        os.close(terminal)
        try:
            url = screen.readline().split()[1].decode()
            assert not url.endswith(f":{DEFAULT_PORT}")
            assert httpx.get(f"{url}/healthz").status_code == 200
        finally:
            process.send_signal(signal.SIGTERM)
            _output, notes = process.communicate(timeout=60)
    assert f"port {DEFAULT_PORT} is taken, so this is {url.rpartition(':')[2]}".encode() in notes


def test_where_the_usual_port_is_taken_and_nobody_looks_it_is_a_failure(data: str) -> None:
    with usual_port_taken():
        assert_fails(run_process("serve", "--data", data), 1, said=f"port {DEFAULT_PORT}")


def test_a_port_that_was_asked_for_and_is_taken_is_a_failure(data: str) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        assert_fails(run_process("serve", "--data", data, "--port", port), 1, said=f"port {port}")
        assert_fails(run_process("serve", "--data", data, REMEM_PORT=port), 1, said=f"port {port}")


def test_a_first_start_that_fails_makes_no_token_that_nobody_saw(tmp_path: Path) -> None:
    data = tmp_path / "data"
    failed = run_process("serve", "--data", str(data), "--host", "192.0.2.1", "--port", "0")
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
    ("name", "value", "hint"),
    [
        ("PORT", "x", "--port or the variable REMEM_PORT sets it"),
        ("BODY_SECONDS", "0", "the variable REMEM_BODY_SECONDS sets it"),
    ],
    ids=["an option too", "a variable alone"],
)
def test_who_gave_a_wrong_setting_is_told_where_it_comes_from(tmp_path: Path, name: str, value: str, hint: str) -> None:
    ran = run("serve", "--data", str(tmp_path / "data"), **{f"REMEM_{name}": value})
    assert ran.stderr.splitlines()[1] == f"remem-server: hint: {hint}"


@pytest.mark.parametrize(
    ("arguments", "variables", "said"),
    [
        (["--open", "--private"], {}, "open or private"),
        (["--port", "70000"], {}, "port: expected at most 65535, got '70000'"),
        (["--port", "x"], {}, "port: expected an integer, got 'x'"),
        (["--nonsense"], {}, "--nonsense"),
        ([], {"REMEM_PORT": "x"}, "port: expected an integer, got 'x'"),
        ([], {"REMEM_PORT": "-1"}, "port: expected at least 0, got '-1'"),
        ([], {"REMEM_OPEN": "perhaps"}, "open: expected true or false, got 'perhaps'"),
        ([], {"REMEM_BODY_SECONDS": "x"}, "body_seconds: expected a number, got 'x'"),
        ([], {"REMEM_OPERATORS": "abc"}, "operators: expected a key of 64 lower-case hex digits, got 'abc'"),
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
    assert_fails(run_process("serve", "--data", data, "--port", "0"), 1, said="others may read")


def test_tokens_are_made_listed_and_revoked(data: str) -> None:
    first = run_process("token", "create", "--data", data)
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
        ["id", "state"],
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
        (["token", "revoke", "x"], 2, "got 'x'", True),
        (["token", "revoke", "1.5"], 2, "got '1.5'", True),
        (["token", "revoke", "9" * 30], 2, "expected the id of a token", True),
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
    assert "REMEM_DATABASE_URL" in ran.stderr.splitlines()[1]
    assert not (tmp_path / "elsewhere").exists()


def test_a_file_that_is_no_database_is_a_failure(data: str) -> None:
    for name in ("commons.db", "commons.db-wal", "commons.db-shm"):
        (Path(data) / name).unlink(missing_ok=True)
    (Path(data) / "commons.db").write_bytes(b"something else" * 1_000)
    assert_fails(run("token", "list", "--data", data), 1, said="not a database", hint=False)


def test_migrate_may_run_twice_and_says_the_revision(data: str) -> None:
    assert run("migrate", "--data", data).stdout == ""
    assert told("migrate", "--data", data) == {"data": data, "revision": "0003"}


def test_a_revoked_token_is_told_as_in_the_list(data: str) -> None:
    told("token", "create", "--data", data, "--label", "laptop")
    revoked = told("token", "revoke", "1", "--data", data)
    assert revoked["revoked"] is not None
    assert [revoked] == told("token", "list", "--data", data)
    # Again, it keeps the time of the first.
    assert told("token", "revoke", "1", "--data", data) == revoked
    assert "token 1 was revoked before: nothing is done" in run("token", "revoke", "1", "--data", data).stderr


def test_words_and_json_name_a_token_alike(data: str) -> None:
    told("token", "create", "--data", data)
    (listed,) = told("token", "list", "--data", data)
    head, row = run("token", "list", "--data", data).stdout.splitlines()
    assert head.split()[0] == "id"
    assert row.split()[0] == str(listed["id"])
    assert "ID" in run("token", "revoke", "--help").stdout


# --- only read ---

READS = [["audit"], ["stats"], ["journal"], ["token", "list"]]


@pytest.mark.parametrize("command", READS, ids=" ".join)
def test_a_command_that_only_reads_waits_for_nobody(data: str, command: list[str]) -> None:
    with (Path(data) / "lock").open("a") as lock, closing(sqlite3.connect(Path(data) / "commons.db")) as writer:
        fcntl.flock(lock, fcntl.LOCK_EX)
        writer.isolation_level = None
        writer.execute("BEGIN IMMEDIATE")
        assert run_process(*command, "--data", data).returncode == 0


@pytest.mark.parametrize("command", READS, ids=" ".join)
def test_a_command_that_only_reads_migrates_nothing(data: str, command: list[str]) -> None:
    with closing(sqlite3.connect(Path(data) / "commons.db", isolation_level=None)) as ours:
        ours.execute("UPDATE alembic_version SET version_num = '0001'")
    ran = run(*command, "--data", data)
    assert_fails(ran, 1, said="expected a database of this release, got one of revision 0001")
    assert ran.stderr.splitlines()[1] == f"remem-server: hint: remem-server migrate --data {data}"
    with closing(sqlite3.connect(Path(data) / "commons.db")) as after:
        assert after.execute("SELECT version_num FROM alembic_version").fetchall() == [("0001",)]


def test_an_export_of_a_commons_that_never_started_makes_no_key(data: str, tmp_path: Path) -> None:
    assert_fails(run("export", str(tmp_path / "out"), "--data", data), 1, said="got one that never started")
    assert not (tmp_path / "out").exists()
    assert not (Path(data) / "node.key").exists()


# --- a database of PostgreSQL ---


@pytest.mark.parametrize("name", ["DATABASE_URL", "REPLICA_URL"])
@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("mysql://remem:secret@127.0.0.1/remem", "expected a URL that begins with postgresql+psycopg://"),
        ("postgresql+psycopg://127.0.0.1:abc/secret", "expected postgresql+psycopg://USER:PASSWORD@HOST:PORT/NAME"),
        ("postgresql+psycopg://remem:secret@127.0.0.1:65536/x", "USER:PASSWORD@HOST:PORT/NAME"),
        ("postgresql+psycopg://[::1/secret", "USER:PASSWORD@HOST:PORT/NAME"),
        ("postgresql+psycopg://127.0.0.1/x?secret=1", "USER:PASSWORD@HOST:PORT/NAME"),
        ("postgresql+psycopg://remem:pass@secret@127.0.0.1/x", "each in a password written %40"),
    ],
)
def test_a_url_that_cannot_be_read_is_told_without_what_is_in_it(
    tmp_path: Path, name: str, url: str, said: str
) -> None:
    variables = {"REMEM_DATABASE_URL": "postgresql+psycopg:///remem", f"REMEM_{name}": url}
    ran = run("migrate", "--data", str(tmp_path / "data"), **variables)
    assert_fails(ran, 2, said=f"{name.lower()}: ")
    assert said in ran.stderr
    assert "secret" not in ran.stderr
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize("command", [["migrate"], ["serve", "--port", "0"], ["token", "list"]], ids=" ".join)
@pytest.mark.parametrize(
    ("place", "said"),
    [
        ("remem:secret@127.0.0.1:1/remem", "refused"),
        ("remem:secret@nowhere.invalid/remem", "nowhere.invalid"),
        ("/?service=none-of-ours", "none-of-ours"),
    ],
    ids=["nothing listens", "no such host", "no such service"],
)
def test_a_database_that_cannot_be_reached_is_one_line_and_its_cause(
    tmp_path: Path, command: list[str], place: str, said: str
) -> None:
    ran = run(*command, "--data", str(tmp_path / "data"), REMEM_DATABASE_URL=f"postgresql+psycopg://{place}")
    assert_fails(ran, 1, said=said)
    assert "REMEM_DATABASE_URL" in ran.stderr.splitlines()[1]
    assert "secret" not in ran.stderr


def test_a_database_that_lets_nobody_in_is_one_line_and_its_cause(tmp_path: Path) -> None:
    with fresh_database() as url:
        named = make_url(url).set(username="nobody-of-ours", password="secret")
        variables = {"REMEM_DATABASE_URL": named.render_as_string(hide_password=False)}
        ran = run("migrate", "--data", str(tmp_path / "data"), **variables)
    assert_fails(ran, 1, said="nobody-of-ours")
    assert "secret" not in ran.stderr


# --- a folder of its own ---


@pytest.mark.parametrize("command", ["serve", "migrate"])
def test_the_files_of_another_program_are_named_and_left_alone(tmp_path: Path, command: str) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    ran = run(command, "--data", str(tmp_path))
    assert_fails(ran, 3, said=f"expected a commons or an empty folder at {tmp_path}, got notes.txt")
    assert [found.name for found in tmp_path.iterdir()] == ["notes.txt"]


@pytest.mark.parametrize("arguments", [["migrate"], ["token", "list"]], ids=" ".join)
def test_the_database_of_another_program_is_refused_and_left_alone(tmp_path: Path, arguments: list[str]) -> None:
    with closing(sqlite3.connect(tmp_path / "commons.db")) as theirs:
        theirs.execute("CREATE TABLE cows (name)")
    before = (tmp_path / "commons.db").read_bytes()
    assert_fails(run(*arguments, "--data", str(tmp_path)), 3, said="got commons.db")
    assert [found.name for found in tmp_path.iterdir()] == ["commons.db"]
    assert (tmp_path / "commons.db").read_bytes() == before


def test_the_first_start_makes_the_folders_that_are_missing(tmp_path: Path) -> None:
    with spawn(tmp_path / "some" / "where" / "data") as commons:
        assert commons.token is not None
    assert stat.S_IMODE((tmp_path / "some" / "where" / "data").stat().st_mode) == 0o700


# --- beyond loopback ---


@pytest.mark.parametrize(
    ("host", "here", "login"),
    [
        ("127.0.0.1", "127.0.0.1", "127.0.0.1"),
        ("localhost", "127.0.0.1", "127.0.0.1"),
        ("0.0.0.0", "127.0.0.1", "<this host>"),
    ],
)
def test_a_commons_that_other_machines_reach_asks_for_tls_in_front(data: str, host: str, here: str, login: str) -> None:
    told("token", "create", "--data", data)
    url, notes = served_and_ended("--data", data, "--host", host)
    assert url.startswith(f"http://{here}:")
    port = url.rpartition(":")[2]
    assert f"remem login http://{login}:{port}, then remem share http://{login}:{port}" in notes
    assert ("plain HTTP" in notes) is ("TLS" in notes) is (login != here)
    assert "0.0.0.0" not in notes


# --- help ---


@pytest.mark.parametrize("flag", ["-h", "--help"])
@pytest.mark.parametrize(
    "command",
    [[], ["serve"], ["migrate"], ["token"], ["token", "create"], ["token", "list"], ["token", "revoke"]],
    ids=lambda words: " ".join(words) or "alone",
)
def test_help_is_printed(command: list[str], flag: str) -> None:
    ran = run(*command, flag)
    assert ran.returncode == 0
    assert ran.stdout.startswith(f"Usage: {' '.join(['remem-server', *command])} ")


@pytest.mark.parametrize("command", [[], ["token"]], ids=["alone", "token"])
def test_a_group_that_is_called_alone_answers_with_its_help(command: list[str]) -> None:
    ran = run(*command)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr.strip() == run(*command, "--help").stdout.strip()


@pytest.mark.parametrize("how", [run, run_process], ids=["here", "as a process"])
def test_the_version_is_printed(how: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    ran = how("--version")
    assert (ran.returncode, ran.stdout) == (0, f"remem-server {remem.__version__}\n")
