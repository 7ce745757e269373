"""Tokens: who may publish, whose key a token is, and what a revoked one is worth."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from hashlib import sha256

import httpx
import pytest
from sqlalchemy import Engine, select

from remem_server.database import tables
from remem_server.database.engine import writing
from remem_server.errors import ParameterForm
from remem_server.files import tokens
from remem_server.files.accept import accept_file
from remem_testkit.files import NOW, draft_file, file, key, lesson, sentence
from remem_testkit.server import ServedCommons

Ask = Callable[..., httpx.Client]
Start = Callable[..., ServedCommons]


def put(client: httpx.Client, number: int, *, name: str | None = None, body: bytes | None = None) -> httpx.Response:
    signer = key(number)
    data = file(signer, [lesson(sentence(number))]) if body is None else body
    return client.put(f"/commons/{name or signer.public.hex}.jsonl", content=data)


def revoke(commons: ServedCommons, number: int) -> None:
    with writing(commons.engine) as connection:
        assert tokens.revoke(connection, number, NOW)


def test_without_a_token_nobody_publishes(commons: ServedCommons, ask: Ask) -> None:
    answer = put(ask(commons), 1)
    assert (answer.status_code, answer.json()["code"]) == (401, "token_missing")
    assert answer.headers["WWW-Authenticate"] == "Bearer"


@pytest.mark.parametrize(
    ("header", "code"),
    [
        ("Bearer remem_x", "token_unknown"),
        ("Bearer", "token_missing"),
        ("Basic eDp5", "token_missing"),
        ("remem_x", "token_missing"),
        ("Bearer \xe9", "token_unknown"),
        ("Bearer " + "x" * 5_000, "token_unknown"),
    ],
)
def test_what_is_no_token_of_this_commons_is_refused(commons: ServedCommons, ask: Ask, header: str, code: str) -> None:
    client = ask(commons)
    answer = client.put(
        f"/commons/{key(1).public.hex}.jsonl",
        content=file(key(1), []),
        headers={b"authorization": header.encode("latin-1")},
    )
    assert (answer.status_code, answer.json()["code"]) == (401, code)


def test_the_scheme_is_named_in_any_case(commons: ServedCommons, ask: Ask) -> None:
    client = ask(commons)
    client.headers["Authorization"] = f"bearer {commons.token()}"
    assert put(client, 1).status_code == 201


def test_a_token_is_bound_to_the_first_key_that_publishes(commons: ServedCommons, ask: Ask) -> None:
    client = ask(commons, commons.token())
    assert put(client, 1).status_code == 201
    for name in (key(2).public.hex, key(2).public.origin):
        answer = put(client, 2, name=name)
        assert (answer.status_code, answer.json()["code"]) == (403, "token_bound")
    assert put(client, 1).status_code == 200
    assert put(client, 1, name=key(1).public.origin).status_code == 200


def test_a_refused_file_binds_no_token(commons: ServedCommons, ask: Ask) -> None:
    held = file(key(1), [], seal=1_000)
    accept_file(commons.engine, held, name=key(1).public.hex, secret=None, token_needed=False, now=NOW)
    second = ask(commons, commons.token())
    assert put(second, 1, body=b"x\n").status_code == 422
    assert put(second, 1, body=file(key(1), [], seal=999)).status_code == 409
    assert put(second, 2).status_code == 201


def test_a_revoked_token_publishes_nothing_and_admits_nobody(commons: ServedCommons, ask: Ask) -> None:
    client = ask(commons, commons.token(principal="p"))
    put(client, 1)
    revoke(commons, 1)
    answer = put(client, 1)
    assert (answer.status_code, answer.json()["code"]) == (401, "token_revoked")
    (entry,) = ask(commons).get("/commons/index").json()
    assert entry["principal"] is None
    # The file itself stays: revoking a token takes nothing back.
    assert ask(commons).get(f"/commons/{key(1).public.hex}.jsonl").status_code == 200


def principal(commons: ServedCommons, ask: Ask) -> str | None:
    (entry,) = ask(commons).get("/commons/index").json()
    found: str | None = entry["principal"]
    return found


@pytest.mark.parametrize("open_to_all", [False, True], ids=["by token", "open"])
def test_a_file_that_stands_already_binds_no_token(start: Start, ask: Ask, *, open_to_all: bool) -> None:
    commons = start(open=open_to_all)
    held = file(key(1), [lesson(sentence(1))])
    accept_file(commons.engine, held, name=key(1).public.hex, secret=None, token_needed=False, now=NOW)
    stranger = ask(commons, commons.token(principal="stranger"))
    assert put(stranger, 1, body=held).json()["outcome"] == "unchanged"
    assert principal(commons, ask) is None
    assert put(ask(commons, commons.token(principal="owner")), 1, body=newer(1)).json()["outcome"] == "newer"
    assert principal(commons, ask) == "owner"
    # The stranger's token is still free.
    assert put(stranger, 2).status_code == 201


def newer(seconds: int) -> bytes:
    return file(key(1), [lesson(sentence(1))], at=NOW + timedelta(seconds=seconds))


@pytest.mark.parametrize("revoked", [False, True], ids=["good", "revoked"])
@pytest.mark.parametrize("body", [newer(0), newer(1)], ids=["the same file", "a newer file"])
def test_a_key_that_has_a_token_takes_none_of_another_principal(
    commons: ServedCommons, ask: Ask, body: bytes, *, revoked: bool
) -> None:
    spare = commons.token(principal="stranger")
    assert put(ask(commons, commons.token(principal="owner")), 1, body=newer(0)).status_code == 201
    if revoked:
        revoke(commons, 2)
    answer = put(ask(commons, spare), 1, body=body)
    assert (answer.status_code, answer.json()["code"]) == (403, "token_bound")
    assert principal(commons, ask) == (None if revoked else "owner")
    assert ask(commons).get(f"/commons/{key(1).public.hex}.jsonl").content == newer(0)


@pytest.mark.parametrize(("body", "outcome"), [(newer(0), "unchanged"), (newer(1), "newer")])
def test_an_operator_admits_a_key_again_by_a_token_of_its_principal(
    commons: ServedCommons, ask: Ask, body: bytes, outcome: str
) -> None:
    put(ask(commons, commons.token(principal="owner")), 1, body=newer(0))
    revoke(commons, 1)
    assert principal(commons, ask) is None
    stranger = ask(commons, commons.token(principal="stranger"))
    assert put(stranger, 1, body=body).json()["code"] == "token_bound"
    assert principal(commons, ask) is None
    again = ask(commons, commons.token(principal="owner"))
    assert put(again, 1, body=body).json()["outcome"] == outcome
    assert principal(commons, ask) == "owner"
    # It is this key's from now on, and the stranger's is still free.
    assert put(again, 2).json()["code"] == "token_bound"
    assert put(stranger, 3).status_code == 201


def test_an_older_file_binds_no_token_of_its_principal(commons: ServedCommons, ask: Ask) -> None:
    put(ask(commons, commons.token(principal="owner")), 1, body=newer(1))
    spare = ask(commons, commons.token(principal="owner"))
    assert put(spare, 1, body=newer(0)).json()["code"] == "older_file"
    assert put(spare, 2).status_code == 201


def test_a_key_keeps_the_principal_of_the_token_that_was_bound_first(commons: ServedCommons, ask: Ask) -> None:
    earlier = commons.token(principal="stranger")
    assert put(ask(commons, commons.token(principal="owner")), 1, body=newer(0)).status_code == 201
    assert put(ask(commons, commons.token(principal="owner")), 1, body=newer(1)).status_code == 200
    put(ask(commons, earlier), 1, body=newer(2))
    seen = [principal(commons, ask)]
    for number in (2, 3):
        revoke(commons, number)
        seen.append(principal(commons, ask))
    assert seen == ["owner", "owner", None]


def test_a_file_of_draft_0_replaces_another_by_its_keys_own_token_alone(commons: ServedCommons, ask: Ask) -> None:
    first, second = (draft_file(key(1), [lesson(sentence(number))]) for number in (1, 2))
    accept_file(commons.engine, first, name=key(1).public.hex, secret=None, token_needed=False, now=NOW)
    stranger, owner = (ask(commons, commons.token(principal=name)) for name in ("stranger", "owner"))
    for client in (stranger, owner):
        answer = put(client, 1, body=second)
        assert (answer.status_code, answer.json()["code"]) == (403, "token_bound")
    assert put(stranger, 1, body=first).json()["outcome"] == "unchanged"
    assert principal(commons, ask) is None
    # A seal shows that it is newer.
    assert put(owner, 1, body=newer(0)).json()["outcome"] == "newer"
    assert principal(commons, ask) == "owner"


def test_the_token_that_a_file_of_draft_0_bound_replaces_it(commons: ServedCommons, ask: Ask) -> None:
    owner = ask(commons, commons.token(principal="owner"))
    for number in (1, 2, 1):
        assert put(owner, 1, body=draft_file(key(1), [lesson(sentence(number))])).is_success
    assert principal(commons, ask) == "owner"


def test_on_an_open_commons_a_file_of_draft_0_that_replaces_another_binds_no_token(start: Start, ask: Ask) -> None:
    commons = start(open=True)
    stranger = ask(commons, commons.token(principal="stranger"))
    put(ask(commons), 1, body=draft_file(key(1), [lesson(sentence(1))]))
    assert put(stranger, 1, body=draft_file(key(1), [lesson(sentence(2))])).json()["outcome"] == "newer"
    assert principal(commons, ask) is None
    assert put(stranger, 2).status_code == 201


def test_on_an_open_commons_a_token_that_comes_is_checked_all_the_same(start: Start, ask: Ask) -> None:
    commons = start(open=True)
    assert put(ask(commons), 1).status_code == 201
    assert put(ask(commons, "remem_x"), 1).json()["code"] == "token_unknown"
    client = ask(commons, commons.token(principal="p"))
    assert put(client, 1, body=newer(1)).json()["outcome"] == "newer"
    assert put(client, 2).json()["code"] == "token_bound"
    (entry,) = ask(commons).get("/commons/index").json()
    assert entry["principal"] == "p"


def test_of_two_keys_that_use_a_token_at_once_one_gets_it(commons: ServedCommons, ask: Ask) -> None:
    for number in range(0, 40, 4):
        token = commons.token()
        clients = [ask(commons, token) for _ in range(4)]
        with ThreadPoolExecutor(4) as threads:
            answers = list(threads.map(put, clients, range(number, number + 4)))
        assert sorted(answer.status_code for answer in answers) == [201, 403, 403, 403]
    with commons.engine.connect() as connection:
        held = set(connection.execute(select(tables.files.c.key)).scalars())
        bound = set(connection.execute(select(tables.tokens.c.key)).scalars())
    assert len(held) == 10
    assert held == bound


def test_a_token_is_kept_as_a_hash_alone(engine: Engine) -> None:
    with writing(engine) as connection:
        secret, token = tokens.create(connection, NOW, tokens.Terms(label="laptop"))
        row = connection.execute(select(tables.tokens)).one()
        assert tokens.check(connection, secret, NOW) == token
    assert row.token_hash == sha256(secret.encode()).hexdigest()
    assert secret not in str(row)
    assert len(secret) >= 43
    assert len(token.principal) == 16


@pytest.mark.parametrize("principal", ["", "a b", "-x", ".x", "x" * 65, "é", "a\n"])
def test_a_principal_is_a_plain_name(engine: Engine, principal: str) -> None:
    with writing(engine) as connection, pytest.raises(ParameterForm, match="principal: expected"):
        tokens.create(connection, NOW, tokens.Terms(principal=principal))


@pytest.mark.parametrize("label", ["x" * 101, "a\nb", "\u202e"])
def test_a_label_can_be_printed(engine: Engine, label: str) -> None:
    with writing(engine) as connection, pytest.raises(ParameterForm, match="label: expected"):
        tokens.create(connection, NOW, tokens.Terms(label=label))


def test_a_number_is_never_given_twice(engine: Engine) -> None:
    with writing(engine) as connection:
        made = [tokens.create(connection, NOW)[1].id for _ in range(3)]
        connection.execute(tables.tokens.delete())
        made.append(tokens.create(connection, NOW)[1].id)
    assert made == [1, 2, 3, 4]
