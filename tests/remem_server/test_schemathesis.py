"""Requests made from the documentation: no answer but those that it documents, and no error of the commons.

Schemathesis makes them from `/openapi.json`: parameters at their edges and beyond them, other methods, bodies of other
forms. What it cannot make up is put in: the names, hashes and cursors that the commons holds, signed files, and
signed files a little broken.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from collections.abc import Set as AbstractSet
from datetime import timedelta
from typing import Any, NamedTuple

import httpx
import pytest
import schemathesis
from hypothesis import strategies as st
from schemathesis.config import SchemathesisConfig
from schemathesis.engine import events, from_schema
from sqlalchemy import update

from remem.protocol import lesson_hash
from remem_server.database import tables
from remem_server.database.engine import writing
from remem_server.files import tokens
from remem_server.web.app import create_app
from remem_testkit.crashes import NO_LIMITS
from remem_testkit.files import NOW, confirmation, denial, draft_file, file, key, lesson, revocation, sentence
from remem_testkit.server import ServedCommons

Start = Callable[..., ServedCommons]
Answer = tuple[str, int, str | None]
"""A route, a status, and the code of a refusal."""

MEDIA_TYPE = "application/x-ndjson"
REFUSED = [300, 400, 401, 403, 404, 405, 408, 409, 410, 413, 414, 415, 422]
# Out of reach of whoever revokes a token by a number that it makes up.
OWN_NUMBER = 1_999_999_999
KEYS = range(6)
MOSTLY = 50
HASHES = [lesson_hash("error", sentence(number)) for number in range(8)]


class Way(NamedTuple):
    """A commons, who asks it, which rules of Schemathesis it does not keep, and what it must come to."""

    settings: dict[str, bool]
    token: str | None = None
    # What the schema of a body cannot say is refused all the same.
    breaks: tuple[str, ...] = ("positive_data_acceptance",)
    reaches: AbstractSet[Answer] = frozenset()


READ: set[Answer] = {
    ("GET /commons/index", 200, None),
    ("GET /commons/index", 304, None),
    ("GET /commons/lessons", 200, None),
    ("GET /commons/lessons/{hash}", 200, None),
    ("GET /commons/{name}.jsonl", 200, None),
    ("GET /commons/{name}.jsonl", 304, None),
}
PUBLISHED: set[Answer] = {
    ("PUT /commons/{name}.jsonl", 200, None),
    ("PUT /commons/{name}.jsonl", 201, None),
    ("PUT /commons/{name}.jsonl", 409, "older_file"),
}
ACTED: set[Answer] = {
    (f"POST /admin/{act}", 200, None) for act in ("revoke", "unrevoke", "deny", "undeny", "block", "unblock")
} | {
    ("POST /admin/tokens", 201, None),
    ("POST /admin/tokens/{id}/revoke", 200, None),
    ("GET /admin/journal", 200, None),
}
WAYS = {
    # Whoever shows something that is no bearer token shows none, and none is needed there.
    "open": Way({"open": True}, breaks=("positive_data_acceptance", "ignored_auth"), reaches=READ | PUBLISHED),
    "closed, without a token": Way({}),
    "closed, with a token": Way({}, "publish", reaches=READ | PUBLISHED),
    "closed, with an admin token": Way({}, "admin", reaches=READ | ACTED),
    # It does not even tell strangers which methods a route knows.
    "private, without a token": Way({"private": True}, breaks=("positive_data_acceptance", "unsupported_method")),
    "private, with a token": Way({"private": True}, "publish"),
}


@st.composite
def files(draw: st.DrawFn) -> bytes:
    """Make a file: signed, often newer than what is held, and now and then broken."""
    # A token is bound by its first file, so that most are of one key.
    number = draw(st.sampled_from([MOSTLY] * 9 + [*KEYS, MOSTLY + 1]))
    said = draw(st.lists(st.sampled_from(HASHES), unique=True, max_size=5))
    roles = draw(st.lists(st.integers(0, 3), min_size=len(said), max_size=len(said)))
    at = NOW + timedelta(seconds=draw(st.integers(-1_000, 1_000)))
    contents = [
        [
            lesson(sentence(HASHES.index(hash_)), at=at),
            confirmation(hash_, at=at),
            revocation(hash_, at=at),
            denial(key(role + HASHES.index(hash_)).public.hex, at=at),
        ][role]
        for hash_, role in zip(said, roles, strict=True)
    ]
    make = draw(st.sampled_from([file, file, file, draft_file]))
    data = make(key(number), contents) if make is draft_file else file(key(number), contents, at=at)
    for _ in range(draw(st.sampled_from([0, 0, 0, 1, 2]))):
        place = draw(st.integers(0, max(0, len(data) - 1)))
        cut = draw(st.integers(0, 30))
        data = data[:place] + draw(st.binary(max_size=8)) + data[place + cut :]
    return data


schemathesis.openapi.media_type(MEDIA_TYPE, files())


@st.composite
def improved(draw: st.DrawFn, case: Any, held: dict[str, Any], token: str | None) -> Any:
    """Put into a request what only this commons can know."""
    if not case.meta.generation.mode.is_positive or draw(st.integers(0, 4)) == 0:
        return case
    if token is None and draw(st.integers(0, 4)):
        # A token that is made up would keep most of what a commons does from being asked.
        case.headers.pop("Authorization", None)
    for parameters in (case.path_parameters, case.query):
        for name in list(parameters or ()):
            if name in held and draw(st.booleans()):
                parameters[name] = draw(st.sampled_from(held[name]))
    if case.method == "PUT":
        # Mostly the name that the file itself tells.
        found = re.search(rb'"key":"([0-9a-f]{64})"', bytes(getattr(case.body, "data", case.body)))
        if found and draw(st.integers(0, 4)):
            case.path_parameters["name"] = found[1].decode()
    elif isinstance(case.body, dict):
        for name in held.keys() & case.body.keys():
            case.body[name] = draw(st.sampled_from(held[name]))
    elif draw(st.booleans()):
        case.headers = {**(case.headers or {}), "If-None-Match": draw(st.sampled_from(held["etag"]))}
    return case


@schemathesis.hook
def before_call(_context: schemathesis.HookContext, case: schemathesis.Case[Any], _options: dict[str, Any]) -> None:
    # It learns numbers from the list of tokens too.
    if case.path_parameters.get("id") == OWN_NUMBER:
        case.path_parameters["id"] = 1


@pytest.fixture
def served(start: Start, way: Way, monkeypatch: pytest.MonkeyPatch) -> ServedCommons:
    """Return a commons that holds something of everything."""
    # To look through the environment for a proxy, for each request, is a tenth of all that they cost.
    monkeypatch.setattr("requests.sessions.get_environ_proxies", lambda *_asked, **_more: {})
    commons = start(**NO_LIMITS, **way.settings)
    with httpx.Client(base_url=commons.url, trust_env=False) as client:
        for number in KEYS:
            contents = [confirmation(one) for one in HASHES[:4]] if number else [lesson(sentence(n)) for n in range(8)]
            headers = {"Authorization": f"Bearer {commons.token()}"}
            data = file(key(number), [*contents, revocation(HASHES[5 + number % 3])] if number else contents)
            answer = client.put(f"/commons/{key(number).public.hex}.jsonl", content=data, headers=headers)
            assert answer.status_code == 201, answer.text
    return commons


@pytest.fixture
def token(served: ServedCommons, way: Way) -> Iterator[str | None]:
    """Return the token of who asks, which is good to the end."""
    if way.token is None:
        yield None
        return
    with writing(served.engine) as connection:
        made, kept = tokens.create(connection, NOW, tokens.Terms(admin=way.token == "admin"))
        connection.execute(update(tables.tokens).where(tables.tokens.c.id == kept.id).values(id=OWN_NUMBER))
    yield made
    asked = httpx.get(f"{served.url}/admin/journal", headers=bearer(made), trust_env=False)
    assert asked.status_code == (200 if way.token == "admin" else 403)


def bearer(token: str | None) -> dict[str, str]:
    return {} if token is None else {"Authorization": f"Bearer {token}"}


def held_by(url: str, token: str | None) -> dict[str, Any]:
    """Return values of parameters that mean something to a commons."""
    names = [name for number in KEYS for name in (key(number).public.hex, key(number).public.origin)]
    with httpx.Client(base_url=url, headers=bearer(token), trust_env=False) as client:
        index, page = client.get("/commons/index"), client.get("/commons/lessons", params={"limit": 2})
        etags = [
            answer.headers["ETag"] for answer in (index, client.get(f"/commons/{names[2]}.jsonl")) if answer.is_success
        ]
    return {
        "name": [*names, key(99).public.hex, "0" * 16],
        "hash": [*HASHES, "0" * 32],
        "cursor": [page.json().get("next") or "x"],
        "since": list(range(12)),
        "q": ["module", "BUILD of module 3", "header schema", "nothing", "...", "é" * 400],
        "id": list(range(1, 20)),
        "reason": ["it is wrong", "it never was so", "it is wrong\nand in two lines"],
        "label": ["a memory", "", "x" * 200],
        "principal": ["ada", None, "not one"],
        "key": [key(number).public.hex for number in (0, 1, 2, 50)],
        "expires": ["2026-03-01T12:00:00Z", "2036-01-01T00:00:00+02:00", None],
        "etag": [*etags, "*", "*", 'W/"x", "y"'],
    }


def over(*cases: tuple[str, str]) -> pytest.MarkDecorator:
    """Run a test for these pairs of a database and a way."""
    values = [(database, WAYS[name]) for database, name in cases]
    ids = [f"{name}, {database}" for database, name in cases]
    return pytest.mark.parametrize(("database", "way"), values, ids=ids, indirect=["database"])


def answers_of(
    served: ServedCommons, way: Way, token: str | None, generation: dict[str, Any], phases: dict[str, Any]
) -> set[Answer]:
    """Ask a commons in as many ways as Schemathesis finds, and return what it answered."""
    held = held_by(served.url, token)
    checks: dict[str, Any] = {name: {"enabled": False} for name in way.breaks}
    config = SchemathesisConfig.from_dict(
        {
            "seed": 1,
            "base-url": served.url,
            "continue-on-failure": True,
            "headers": bearer(token),
            "generation": {"deterministic": True, "database": "none", **generation},
            "phases": phases,
            "checks": {"negative_data_rejection": {"expected-statuses": REFUSED}, **checks},
        }
    )
    schema = schemathesis.openapi.from_dict(create_app(served.commons).openapi(), config=config)

    @schema.hook
    def flatmap_case(_context: schemathesis.HookContext, case: schemathesis.Case[Any]) -> st.SearchStrategy[Any]:
        return improved(case, held, token)

    seen: set[Answer] = set()
    wrong: dict[tuple[str, str, str], str] = {}
    for event in from_schema(schema).execute():
        assert not isinstance(event, (events.NonFatalError, events.FatalError)), event
        if isinstance(event, events.ScenarioFinished):
            note(event.recorder, seen, wrong)
    assert not wrong, "\n".join(f"{name}: {said}" for name, said in wrong.items())
    return seen


def note(recorder: Any, seen: set[Answer], wrong: dict[tuple[str, str, str], str]) -> None:
    """Take down what was answered, and what of it was not as it should be."""
    for number, checks in recorder.checks.items():
        asked = recorder.interactions[number]
        if asked.response is not None:
            try:
                code = asked.response.json().get("code")
            except (ValueError, AttributeError):
                code = None
            seen.add((recorder.label, asked.response.status_code, code))
        for check in checks:
            if check.failure_info is not None:
                failure = check.failure_info.failure
                said = f"{asked.request.method} {asked.request.uri} {failure.message}"
                wrong.setdefault((recorder.label, check.name, failure.title), said)


@over(*(("sqlite", name) for name in WAYS), ("postgres", "closed, with an admin token"))
def test_only_documented_answers_are_given(served: ServedCommons, way: Way, token: str | None) -> None:
    seen = answers_of(served, way, token, {"max-examples": 2}, {})
    assert {status for _route, status, _code in seen} >= {200, 401, 405}


@over(
    ("sqlite", "open"),
    ("sqlite", "closed, with a token"),
    ("sqlite", "closed, with an admin token"),
    ("postgres", "open"),
)
def test_whoever_knows_what_is_held_gets_documented_answers(served: ServedCommons, way: Way, token: str | None) -> None:
    phases = {"coverage": {"enabled": False}, "stateful": {"enabled": False}}
    seen = answers_of(served, way, token, {"max-examples": 25, "mode": "positive"}, phases)
    assert way.reaches <= seen, sorted(way.reaches - seen)
