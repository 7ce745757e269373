"""What the tests of the commons share: commons on loopback, and clients that hold them to their documentation.

Every answer that a client of `ask` gets is compared with `/openapi.json`: its status must be documented for its
route, a refusal must carry a code that is documented for that status, and JSON must be of the documented model.
"""

from __future__ import annotations

import os
import re
import ssl
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import Any

import httpx
import pytest
from pydantic import TypeAdapter
from sqlalchemy import Engine

from remem.cli.run import run
from remem_server import answers
from remem_server.commands.common import PROGRAM
from remem_server.commands.main import app
from remem_server.web.app import create_app
from remem_testkit.command import Ended, Remem
from remem_testkit.postgres import DATABASES, made_database
from remem_testkit.server import HandClock, ServedCommons, lay_tables, prepared, serve

# Reading the certificates of the machine takes longer than most tests.
_NO_TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
_JSON = ("application/json", "application/problem+json")
_OF_NO_ROUTE = ("route_unknown", "method_refused")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run what asks for a commons over each database, unless it is marked as having nothing to do with one."""
    chosen = any("database" in mark.args[0] for mark in metafunc.definition.iter_markers("parametrize"))
    if "database" in metafunc.fixturenames and not chosen:
        one = metafunc.definition.get_closest_marker("any_database") is not None
        metafunc.parametrize("database", DATABASES[:1] if one else DATABASES, indirect=True)


@pytest.fixture
def database(request: pytest.FixtureRequest) -> str:
    """Return the name of a database: `pytest_generate_tests` says which."""
    name: str = request.param
    return name


@pytest.fixture
def place(database: str) -> Iterator[Callable[[str], dict[str, Any]]]:
    """Return a function from the name of a commons to the settings that say where its database is."""
    with ExitStack() as stack:

        @cache
        def place(name: str) -> dict[str, Any]:
            return {"database_url": stack.enter_context(made_database())} if database == "postgres" else {}

        yield place


@pytest.fixture
def engine(tmp_path: Path, database: str, place: Callable[[str], dict[str, Any]]) -> Iterator[Engine]:
    """Return the database of a new commons that nothing serves."""
    if database == "sqlite":
        lay_tables(tmp_path / "data")
    with prepared(tmp_path / "data", **place("data")) as made:
        yield made.engine


@pytest.fixture
def start(
    tmp_path: Path, database: str, place: Callable[[str], dict[str, Any]]
) -> Iterator[Callable[..., ServedCommons]]:
    """Return a function that starts a commons with settings of the test."""
    with ExitStack() as stack:

        def start(name: str = "data", **options: Any) -> ServedCommons:
            if database == "sqlite" and not (tmp_path / name).exists():
                lay_tables(tmp_path / name)
            return stack.enter_context(serve(tmp_path / name, **{"clock": HandClock(), **place(name), **options}))

        yield start


@pytest.fixture
def commons(start: Callable[..., ServedCommons]) -> ServedCommons:
    """Return a commons with the settings that it has by default."""
    return start()


@pytest.fixture
def ask() -> Iterator[Callable[..., httpx.Client]]:
    """Return a function that makes a client of a commons, with a token or without."""
    _documentation()
    with ExitStack() as stack:

        def ask(commons: ServedCommons, token: str | None = None) -> httpx.Client:
            headers = {"Accept-Encoding": "identity"}
            if token is not None:
                headers["Authorization"] = f"Bearer {token}"
            hooks = {"response": [_check_documented]}
            made = httpx.Client(base_url=commons.url, headers=headers, event_hooks=hooks, timeout=60, verify=_NO_TLS)
            return stack.enter_context(made)

        yield ask


@pytest.fixture
def publisher(commons: ServedCommons, ask: Callable[..., httpx.Client]) -> httpx.Client:
    """Return a client of `commons` with a new token."""
    return ask(commons, commons.token())


@pytest.fixture
def operator(
    tmp_path: Path,
    place: Callable[[str], dict[str, Any]],
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> Remem:
    """Run `remem-server` with these words in this process, where the commons `data` of a test is its own."""
    for name in [name for name in os.environ if name.startswith("REMEM_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("REMEM_DATA", str(tmp_path / "data"))
    for name, value in place("data").items():
        monkeypatch.setenv(f"REMEM_{name.upper()}", value)

    def command(*words: str) -> Ended:
        monkeypatch.setattr(sys, "argv", [PROGRAM, *words])
        capfd.readouterr()
        status = run(app, PROGRAM)
        return Ended(status, *capfd.readouterr())

    return command


@cache
def _documentation() -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder, prepared(Path(folder)) as commons:
        return create_app(commons).openapi()


def _check_documented(response: httpx.Response) -> None:
    response.read()
    said = response.json() if response.headers.get("content-type") in _JSON and response.content else None
    if isinstance(said, dict) and said.get("code") in _OF_NO_ROUTE:
        return
    path = response.request.url.path
    for template, operations in _documentation()["paths"].items():
        if re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", template), path):
            documented = operations[response.request.method.lower()]["responses"][str(response.status_code)]
            break
    else:
        assert path in ("/", "/docs", "/openapi.json"), f"{path} is not documented"
        return
    if path == "/metrics" or path.startswith("/admin/"):
        assert response.headers["Cache-Control"] == "no-store"
    if said is None:
        return
    content = documented["content"][response.headers["content-type"]]["schema"]
    if response.status_code >= 300:
        assert f"`{said['code']}`" in documented["description"], f"{said['code']} is not documented"
    _model_of(content).validate_json(response.content)


def _model_of(schema: dict[str, Any]) -> TypeAdapter[Any]:
    is_list = schema.get("type") == "array"
    model: Any = getattr(answers, (schema["items"] if is_list else schema)["$ref"].rpartition("/")[2])
    return TypeAdapter(list[model] if is_list else model)
