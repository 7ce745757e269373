"""`/docs` and the codes: every refusal has one class, one status and one line of documentation."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from remem.protocol import ProtocolError
from remem_server import errors
from remem_server.opening.description import DESCRIPTOR_PATH
from remem_server.web import problems
from remem_server.web.app import create_app
from remem_server.web.routes.about import HEALTH_PATH
from remem_testkit.server import prepared

pytestmark = pytest.mark.any_database


def leaves(kind: Any) -> Iterator[Any]:
    below = kind.__subclasses__()
    if not below:
        yield kind
    for one in below:
        yield from leaves(one)


KINDS = [*leaves(errors.CommonsError), *leaves(ProtocolError)]


@pytest.fixture
def documentation(tmp_path: Path) -> Iterator[dict[str, Any]]:
    with prepared(tmp_path / "data") as commons:
        yield create_app(commons).openapi()


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
    assert len(set(names)) == len(names) == 24
    for path, method, operation in operations:
        assert operation["summary"]
        assert operation["description"]
        asks_nothing = path in (DESCRIPTOR_PATH, HEALTH_PATH)
        assert {"500", "429"} <= operation["responses"].keys(), (path, method)
        assert ("503" in operation["responses"]) is not asks_nothing, (path, method)
        if path.startswith("/commons"):
            assert "401" in operation["responses"], (path, method)


def test_a_status_that_nobody_gave_is_our_own_mistake() -> None:
    class Nameless(errors.CommonsError):
        """A refusal that was forgotten."""

        code = "nameless"

    with pytest.raises(AssertionError, match="Nameless"):
        problems.status_of(Nameless)
