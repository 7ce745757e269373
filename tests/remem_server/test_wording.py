"""Whatever comes in another form is told in our own words: what was expected, and what came."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import httpx
import pytest
from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from remem_server.files import tokens
from remem_server.operator import acts
from remem_server.settings import Settings
from remem_server.web.routes.admin import FORMS
from remem_server.wording import EXPECTED, place_of, worded
from remem_testkit.server import ServedCommons

Ask = Callable[..., httpx.Client]

SENTENCE = re.compile(r"expected .+, got .+", re.DOTALL)
# One of each kind that JSON has, and of each that a time, a number or a text may be wrong in.
VALUES: tuple[Any, ...] = (
    None,
    True,
    "",
    "x",
    "yes",
    0,
    -1,
    1.5,
    10**30,
    [],
    {},
    "x" * 2_000,
    "2027-02-30",
    "2027-01-31",
    "2027-02-30T00:00:00Z",
    "2027-01-31T12:00:00",
    "9999-12-31T23:59:59-14:00",
)
BODIES = (
    b"",
    b"{",
    b"[]",
    b"1",
    b'"x"',
    b"null",
    b"\xff",
    b'{"reason": "\xff"}',
    b'{"reason": "\\ud800"}',
    b"NaN",
    b"[" * 5_000,
)
TEXTS = ("", "x", "-1", "1.5", "inf", "nan", "9" * 30, "x" * 2_000, "%ff")


def faults(check: Callable[[], object]) -> list[ErrorDetails]:
    try:
        check()
    except ValidationError as error:
        return error.errors()
    return []


def faults_of(form: type[BaseModel]) -> Iterator[ErrorDetails]:
    for body in BODIES:
        yield from faults(partial(form.model_validate_json, body))
    for field in [*form.model_fields, "more"]:
        for value in VALUES:
            yield from faults(partial(form.model_validate_json, json.dumps({field: value})))


def assert_ours(fault: ErrorDetails) -> None:
    assert fault["type"] in {*EXPECTED, "value_error"}, fault
    assert SENTENCE.fullmatch(worded(fault)), worded(fault)
    assert len(worded(fault)) < 200


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.__name__)
def test_every_fault_of_a_body_has_words(form: type[BaseModel]) -> None:
    found = list(faults_of(form))
    assert {"json_invalid", "model_type", "extra_forbidden"} <= {fault["type"] for fault in found}
    for fault in found:
        assert_ours(fault)


def test_every_fault_of_a_setting_has_words(monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    for name in Settings.model_fields:
        for text in TEXTS:
            monkeypatch.setenv(f"REMEM_{name.upper()}", text)
            found += faults(Settings)
        monkeypatch.delenv(f"REMEM_{name.upper()}")
        for value in VALUES:
            found += faults(partial(Settings.model_validate, {name: value}))
    assert {"literal_error", "float_parsing", "bool_parsing"} <= {fault["type"] for fault in found}
    for fault in found:
        assert_ours(fault)


def test_every_fault_of_a_parameter_has_words(commons: ServedCommons, ask: Ask) -> None:
    secret, _token = acts.token_create(commons.engine, "command by the test", commons.clock(), tokens.Terms(admin=True))
    desk = ask(commons, secret)
    told = set()
    for path, operations in desk.get("/openapi.json").json()["paths"].items():
        for parameter in operations.get("get", {}).get("parameters", ()):
            for text in TEXTS:
                filled, asked = re.sub(r"\{\w+\}", "x", path), {parameter["name"]: text}
                answer = desk.get(filled, params=asked if parameter["in"] == "query" else None)
                if answer.status_code == 422:
                    place, _, sentence = answer.json()["detail"].partition(": ")
                    assert place == parameter["name"] or parameter["in"] == "path" or path.count("{")
                    assert SENTENCE.fullmatch(sentence)
                    assert not re.search(r"input|should|unable", sentence), sentence
                    told.add(place)
    assert {"limit", "since", "after", "state", "kind", "cursor", "q", "hash"} <= told


@pytest.mark.parametrize(
    ("loc", "within", "place"),
    [
        ((), 0, ""),
        (("hash",), 0, "hash"),
        (("query", "limit"), 1, "limit"),
        (("operators", 1), 0, "operators.1"),
    ],
)
def test_a_place_names_all_of_its_parts(loc: tuple[str | int, ...], within: int, place: str) -> None:
    fault: ErrorDetails = {"type": "missing", "loc": loc, "msg": "", "input": None}
    assert place_of(fault, within=within) == place
