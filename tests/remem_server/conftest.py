"""What the tests of the commons share: commons on loopback, and clients that hold them to their documentation.

Every answer that a client of `ask` gets is compared with `/openapi.json`: its status must be documented for its
route, a refusal must carry a code that is documented for that status, and JSON must be of the documented model.
"""

from __future__ import annotations

import re
import ssl
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

from remem_server import answers
from remem_server.app import create_app
from remem_testkit.server import HandClock, ServedCommons, make_settings, prepared, serve

# Reading the certificates of the machine takes longer than most tests.
_NO_TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
_JSON = ("application/json", "application/problem+json")
_OF_NO_ROUTE = ("route_unknown", "method_refused")


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    """Return the database of a new commons that nothing serves."""
    with prepared(tmp_path / "data") as made:
        yield made


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., ServedCommons]]:
    """Return a function that starts a commons with settings of the test."""
    with ExitStack() as stack:

        def start(name: str = "data", **options: Any) -> ServedCommons:
            return stack.enter_context(serve(tmp_path / name, **{"clock": HandClock(), **options}))

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


@cache
def _documentation() -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder, prepared(Path(folder)) as engine:
        return create_app(make_settings(Path(folder)), engine).openapi()


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
