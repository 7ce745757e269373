"""`/docs` and the codes: every refusal has one class, one status and one line of documentation."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine

from remem.protocol import ProtocolError
from remem_server import errors, problems
from remem_server.app import create_app
from remem_testkit.server import make_settings


def leaves(kind: Any) -> Iterator[Any]:
    below = kind.__subclasses__()
    if not below:
        yield kind
    for one in below:
        yield from leaves(one)


KINDS = [*leaves(errors.CommonsError), *leaves(ProtocolError)]


@pytest.fixture
def documentation(engine: Engine) -> dict[str, Any]:
    assert engine.url.database is not None
    return create_app(make_settings(Path(engine.url.database).parent), engine).openapi()


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.code)
def test_every_refusal_has_a_status_and_says_what_it_is(kind: Any) -> None:
    assert 300 <= problems.status_of(kind) <= 503
    assert kind.__doc__
    assert kind.code.replace("_", "").isalnum()


def test_no_two_refusals_share_a_code() -> None:
    codes = [kind.code for kind in KINDS]
    assert len(set(codes)) == len(codes)


def test_every_reference_of_the_documentation_leads_somewhere(documentation: dict[str, Any]) -> None:
    schemas = documentation["components"]["schemas"]

    def references(node: object) -> Iterator[str]:
        if isinstance(node, dict):
            if "$ref" in node:
                yield node["$ref"]
            for value in node.values():
                yield from references(value)
        elif isinstance(node, list):
            for value in node:
                yield from references(value)

    found = set(references(documentation))
    assert "#/components/schemas/Problem" in found
    assert {name.rpartition("/")[2] for name in found} <= schemas.keys()
    # The framework's own answer to a wrong parameter is never given.
    assert "HTTPValidationError" not in schemas


def test_every_route_is_documented_once_and_says_what_it_may_refuse(documentation: dict[str, Any]) -> None:
    operations = [
        (path, method, operation)
        for path, methods in documentation["paths"].items()
        for method, operation in methods.items()
    ]
    names = [operation["operationId"] for _path, _method, operation in operations]
    assert len(set(names)) == len(names) == 9
    for path, method, operation in operations:
        assert operation["summary"]
        assert operation["description"]
        assert {"500", "503"} <= operation["responses"].keys(), (path, method)
        if path.startswith("/commons"):
            assert "401" in operation["responses"], (path, method)


def test_a_status_that_nobody_gave_is_our_own_mistake() -> None:
    class Nameless(errors.CommonsError):
        """A refusal that was forgotten."""

        code = "nameless"

    with pytest.raises(AssertionError, match="Nameless"):
        problems.status_of(Nameless)
