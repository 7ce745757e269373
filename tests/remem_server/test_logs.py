"""The log: one line for each request, with what an operator needs and nothing that is anybody's own business."""

from __future__ import annotations

import io
import json
import logging
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from remem_server.web.logs import Log, _Seldom, open_log
from remem_testkit.files import file, key, lesson
from remem_testkit.server import ServedCommons, spawn
from remem_testkit.wire import connected

pytestmark = pytest.mark.any_database

Ask = Callable[..., httpx.Client]
Start = Callable[..., ServedCommons]

ME = key(1)
PATH = f"/commons/{ME.public.hex}.jsonl"
DATA = file(ME, [lesson("a secret sentence about a build")])


@pytest.fixture
def written() -> io.StringIO:
    return io.StringIO()


@pytest.fixture
def commons(start: Start, written: io.StringIO) -> ServedCommons:
    """Return a commons that logs to the test."""
    return start(log=Log("json", written))


def lines(written: io.StringIO, number: int) -> list[dict[str, Any]]:
    """Wait for so many lines, the last of which may be written behind the answer, and return them."""
    while written.getvalue().count("\n") < number:
        pass
    return [json.loads(line) for line in written.getvalue().splitlines()]


def test_a_request_is_a_line_and_the_answer_carries_its_id(
    commons: ServedCommons, ask: Ask, written: io.StringIO
) -> None:
    client = ask(commons, commons.token())
    answers = [
        client.put(PATH, content=DATA),
        client.get(PATH),
        client.head(PATH),
        client.get("/commons/index?limit=5"),
        client.get(f"/commons/lessons/{'0' * 32}"),
        client.get("/nowhere/secret"),
        httpx.head(f"{commons.url}/healthz"),
        client.delete(PATH),
    ]
    found = lines(written, len(answers))
    assert [(line["method"], line["route"], line["status"], line.get("code")) for line in found] == [
        ("PUT", "/commons/{name}.jsonl", 201, None),
        ("GET", "/commons/{name}.jsonl", 200, None),
        ("HEAD", "/commons/{name}.jsonl", 200, None),
        ("GET", "/commons/index", 200, None),
        ("GET", "/commons/lessons/{hash}", 404, "lesson_unknown"),
        ("GET", "none", 404, "route_unknown"),
        ("HEAD", "/healthz", 200, None),
        ("DELETE", "/commons/{name}.jsonl", 405, "method_refused"),
    ]
    assert [line["id"] for line in found] == [answer.headers["X-Request-Id"] for answer in answers]
    assert all(re.fullmatch(r"[0-9a-f]{16}", line["id"]) for line in found)
    assert [found[0]["bytes_in"], found[1]["bytes_out"]] == [len(DATA)] * 2
    assert all(line["ms"] >= 0 and line["level"] == "info" and line["at"] for line in found)
    assert not any("address" in line for line in found)


def test_no_line_says_who_reads_what(commons: ServedCommons, ask: Ask, written: io.StringIO) -> None:
    token = commons.token()
    client = ask(commons, token)
    client.put(PATH, content=DATA)
    client.get(PATH, headers={"Cookie": "secret"})
    client.get("/commons/lessons?q=secret")
    client.get("/commons/zz.jsonl")
    lines(written, 4)
    for never in (token, "secret", ME.public.hex, ME.public.origin, "zz", "127.0.0.1"):
        assert never not in written.getvalue()


def test_an_address_is_told_where_the_operator_may_have_to_act(start: Start, ask: Ask, written: io.StringIO) -> None:
    commons = start(log=Log("json", written), reads_per_minute=1)
    client = ask(commons)
    client.put(PATH, content=DATA)
    client.get("/healthz")
    client.get("/healthz")
    found = lines(written, 3)
    assert [(line["status"], line.get("code"), line.get("address")) for line in found] == [
        (401, "token_missing", "127.0.0.1"),
        (200, None, None),
        (429, "too_many_requests", "127.0.0.1"),
    ]


def test_an_error_of_our_own_is_a_line_too(
    commons: ServedCommons, ask: Ask, written: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_arguments: object) -> None:
        raise RuntimeError("a fault")

    monkeypatch.setattr("remem_server.files.store.index", fail)
    assert ask(commons).get("/commons/index").status_code == 500
    (line,) = lines(written, 1)
    assert (line["route"], line["status"], line["code"]) == ("/commons/index", 500, "internal")


def test_a_client_that_goes_away_is_a_line(commons: ServedCommons, written: io.StringIO) -> None:
    head = f"PUT {PATH} HTTP/1.1\r\nAuthorization: Bearer {commons.token()}\r\nContent-Length: 9\r\n\r\n"
    with connected(commons.url) as opened:
        opened.sendall(head.encode() + b"1234")
    (line,) = lines(written, 1)
    assert (line["status"], line["code"]) == (400, "body_incomplete")


def test_a_log_that_cannot_be_written_keeps_nobody_from_reading(start: Start, ask: Ask, written: io.StringIO) -> None:
    client = ask(start(log=Log("json", written)))
    written.close()
    assert client.get("/healthz").status_code == 200


@pytest.fixture
def logger_of_all() -> Iterator[logging.Logger]:
    """Return the root of all loggers, and put it back as it was."""
    root = logging.getLogger()
    handlers, level = root.handlers, root.level
    yield root
    root.handlers = handlers
    root.setLevel(level)


@pytest.mark.usefixtures("logger_of_all")
def test_what_libraries_tell_goes_the_same_way(capsys: pytest.CaptureFixture[str]) -> None:
    log = open_log("json")
    logging.getLogger("uvicorn.error").warning("a %s request", "strange")
    try:
        raise ValueError("a fault")
    except ValueError:
        logging.getLogger("remem_server").exception("it failed")
    log.request(id="0")
    told = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert [(line["event"], line["level"]) for line in told] == [
        ("a strange request", "warning"),
        ("it failed", "error"),
        ("request", "info"),
    ]
    assert told[0]["logger"] == "uvicorn.error"
    assert "ValueError: a fault" in told[1]["exception"]


@pytest.mark.parametrize("form", ["json", "console"])
def test_a_commons_writes_in_the_form_that_is_set(tmp_path: Path, form: str) -> None:
    with spawn(tmp_path / "data", REMEM_LOG_FORMAT=form) as commons:
        name = httpx.get(f"{commons.url}/healthz").headers["X-Request-Id"]
        status, noted = commons.end()
    assert status == 0
    (line,) = noted.splitlines()
    if form == "json":
        assert json.loads(line)["id"] == name
    else:
        assert f"id={name} method=GET route=/healthz status=200" in line


def test_the_pool_tells_of_an_outage_once_and_on_one_line() -> None:
    seldom = _Seldom()

    def line(words: str, *arguments: object) -> logging.LogRecord:
        return logging.LogRecord("psycopg.pool", logging.WARNING, "", 0, words, arguments, None)

    first = line("error connecting in %r: %s", "read", "refused\n\tis it there?")
    assert seldom.filter(first)
    assert first.getMessage() == "error connecting in 'read': refused is it there?"
    assert not seldom.filter(line("error connecting in %r: %s", "write", "refused"))
    assert seldom.filter(line("discarding broken connection: %s", "x"))
