"""What a commons says about itself, and what a private one keeps to itself."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from importlib.metadata import version

import httpx
import pytest

from remem.protocol import RULES, PublicKey
from remem_server.database.engine import writing
from remem_server.files import tokens
from remem_server.opening.node import load_key
from remem_testkit.files import NOW, file, key
from remem_testkit.server import ServedCommons

Ask = Callable[..., httpx.Client]
Start = Callable[..., ServedCommons]

PATH = f"/commons/{key(1).public.hex}.jsonl"
READS = [
    PATH,
    "/commons/index",
    "/commons/lessons",
    f"/commons/lessons/{'0' * 32}",
    "/",
    "/docs",
    "/openapi.json",
    "/nothing",
]
# Reading the certificates of the machine takes longer than most tests.
NO_TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
FREE = ["/.well-known/remem", "/healthz", "/readyz"]


def test_a_private_commons_asks_for_a_token_before_it_says_anything(start: Start, ask: Ask) -> None:
    # Who is refused so often is not heard after some of it.
    commons = start(private=True, refusals_per_minute=10**9)
    token = commons.token()
    owner = ask(commons, token)
    # A token that no key is bound to reads as well.
    other = ask(commons, commons.token())
    owner.put(PATH, content=file(key(1), []))
    for path in READS:
        for method in ("GET", "HEAD", "POST"):
            answer = httpx.request(method, commons.url + path, verify=NO_TLS)
            assert answer.status_code == 401, (method, path)
            assert answer.headers["WWW-Authenticate"] == "Bearer"
            assert method != "GET" or answer.json()["code"] == "token_missing"
        stranger = httpx.get(commons.url + path, headers={"Authorization": "Bearer remem_x"}, verify=NO_TLS)
        assert stranger.json()["code"] == "token_unknown"
        for client in (owner, other):
            assert client.get(path).status_code in (200, 307, 404), path


def test_a_revoked_token_reads_nothing_of_a_private_commons(start: Start, ask: Ask) -> None:
    commons = start(private=True)
    client = ask(commons, commons.token())
    assert client.get("/commons/index").status_code == 200
    with writing(commons.engine) as connection:
        tokens.revoke(connection, 1, NOW)
    assert client.get("/commons/index").json()["code"] == "token_revoked"


def test_no_shared_cache_keeps_what_is_private(start: Start, ask: Ask) -> None:
    commons = start(private=True)
    client = ask(commons, commons.token())
    client.put(PATH, content=file(key(1), []))
    for path in (PATH, "/commons/index", "/commons/lessons"):
        assert client.get(path).headers["Cache-Control"] == "private, no-cache"


@pytest.mark.parametrize("options", [{}, {"open": True}, {"private": True}], ids=["token", "open", "private"])
def test_everyone_learns_what_and_how_a_commons_is(start: Start, ask: Ask, options: dict[str, bool]) -> None:
    client = ask(start(**options))
    assert {path: client.get(path).status_code for path in FREE} == dict.fromkeys(FREE, 200)


@pytest.mark.parametrize("options", [{}, {"open": True}, {"private": True}], ids=["token", "open", "private"])
def test_the_descriptor_says_whose_the_commons_is_and_what_it_asks(
    start: Start, ask: Ask, options: dict[str, bool]
) -> None:
    commons = start(operators=(key(9).public.hex,), **options)
    said = ask(commons).get("/.well-known/remem").json()
    node = load_key(commons.settings.data).public.hex
    assert said == {
        "protocol": [1],
        "software": f"remem/{version('remem')}",
        "key": node,
        "operators": [node, key(9).public.hex],
        "open": options.get("open", False),
        "private": options.get("private", False),
        "limits": {"line_bytes": 8_192, "file_bytes": RULES.file_bytes, "file_records": 1_000},
        "confirmations": 3,
        "window_days": 90,
        "peers": [],
    }
    assert PublicKey.parse(node).hex == node


def test_a_commons_whose_database_is_gone_is_alive_and_not_ready(commons: ServedCommons, ask: Ask) -> None:
    client = ask(commons)
    with writing(commons.engine) as connection:
        connection.exec_driver_sql("ALTER TABLE files RENAME TO lost")
    assert client.get("/healthz").status_code == 200
    answer = client.get("/readyz")
    assert (answer.status_code, answer.json()["code"]) == (503, "store_unavailable")
    assert answer.headers["Retry-After"]
    assert "files" not in answer.text


@pytest.mark.any_database
def test_what_is_no_route_is_said_as_a_problem(commons: ServedCommons, ask: Ask) -> None:
    client = ask(commons)
    for path in ("/nothing", "/docs/", "/commons/index/", "/commons", "/docs/oauth2-redirect"):
        answer = client.get(path)
        assert (answer.status_code, answer.json()["code"]) == (404, "route_unknown"), path


@pytest.mark.any_database
@pytest.mark.parametrize("method", ["DELETE", "OPTIONS", "POST"])
def test_a_refused_method_is_told_with_all_that_the_address_knows(start: Start, ask: Ask, method: str) -> None:
    client = ask(start(refusals_per_minute=10**9))
    for path in [*READS[:-1], *FREE]:
        answer = client.request(method, path)
        assert (answer.status_code, answer.json()["code"]) == (405, "method_refused"), path
        assert set(answer.headers["Allow"].split(", ")) == {"GET", "HEAD", *(["PUT"] if path == PATH else [])}


def test_head_is_answered_wherever_get_is(commons: ServedCommons) -> None:
    for path in [*READS[1:], *FREE]:
        get, head = (httpx.request(method, commons.url + path, verify=NO_TLS) for method in ("GET", "HEAD"))
        assert (head.status_code, head.content) == (get.status_code, b""), path
        own = {"date": "", "x-request-id": ""}
        assert {**head.headers, **own} == {**get.headers, **own}
