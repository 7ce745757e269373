"""`remem-server token`: labels, expiry, states and last use, and what an expired token still does."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import httpx
import pytest
from sqlalchemy import Engine

from remem_server.database.engine import writing
from remem_server.errors import AdminToken, TokenExpired, TokenRevoked
from remem_server.files import tokens
from remem_server.settings import system_clock
from remem_testkit.command import Remem
from remem_testkit.files import NOW, file, key
from remem_testkit.server import HandClock, ServedCommons

Ask = Callable[..., httpx.Client]
Start = Callable[..., ServedCommons]

KEY = key(1).public.hex
PATH = f"/commons/{KEY}.jsonl"


@pytest.fixture
def made(operator: Remem) -> Remem:
    """Return the command, beside a commons that was made."""
    assert operator("migrate").status == 0
    return operator


def moment(text: str) -> datetime:
    return datetime.fromisoformat(text)


# --- made ---


@pytest.mark.parametrize(
    ("given", "until"),
    [("2090-01-31", datetime(2090, 2, 1, tzinfo=UTC)), ("2090-12-31", datetime(2091, 1, 1, tzinfo=UTC))],
)
def test_a_date_is_the_last_day_of_a_token(made: Remem, given: str, until: datetime) -> None:
    assert moment(made("token", "create", "--expires", given, "--json").document["expires"]) == until


def test_days_are_counted_from_now(made: Remem) -> None:
    before = system_clock().replace(microsecond=0)
    until = moment(made("token", "create", "--expires", "90d", "--json").document["expires"])
    assert before <= until - timedelta(days=90) <= system_clock()


@pytest.mark.any_database
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--expires", "soon"), "expected --expires to be a day like 2027-01-31"),
        (("--expires", "0d"), "expected --expires"),
        (("--expires", "-1d"), "expected --expires"),
        (("--expires", "100000d"), "expected --expires"),
        (("--expires", "99999d"), "before the last day of 2099"),
        (("--expires", "2099-12-31"), "before the last day of 2099"),
        (("--expires", "2027-02-30"), "expected --expires"),
        (("--expires", "20270131"), "expected --expires"),
        (("--expires", "9999-12-31"), "expected --expires"),
        (("--expires", "2020-01-01"), "expected --expires to be a day that is not over"),
        (("--admin", "--principal", "ann"), "principal: expected none of an admin token"),
    ],
)
def test_a_token_that_cannot_be_is_refused(made: Remem, words: tuple[str, ...], said: str) -> None:
    ended = made("token", "create", *words)
    assert (ended.status, ended.out) == (2, "")
    assert said in ended.err
    assert made("token", "list", "--json").document == []


# --- listed ---


def test_the_list_tells_label_state_and_last_use(start: Start, ask: Ask, operator: Remem) -> None:
    commons = start(clock=system_clock)
    with writing(commons.engine) as connection:
        long_ago = system_clock() - timedelta(days=400)
        tokens.create(connection, long_ago, tokens.Terms(label="old", expires=long_ago + timedelta(days=1)))
    published = operator("token", "create", "--label", "laptop", "--principal", "ann").out.strip()
    assert operator("token", "create", "--label", "spare", "--expires", "30d").status == 0
    desk = operator("token", "create", "--label", "desk", "--admin").out.strip()
    assert operator("token", "create", "--label", "gone").status == 0
    assert operator("token", "revoke", "5", "--reason", "It was lost.").status == 0
    hour = system_clock().replace(minute=0, second=0, microsecond=0)
    assert ask(commons, published).put(PATH, content=file(key(1), [], at=system_clock())).status_code == 201
    assert ask(commons, desk).get("/admin/tokens").status_code == 200
    rows = operator("token", "list", "--json").document
    assert [(row["id"], row["label"], row["state"], row["admin"]) for row in rows[:3]] == [
        (1, "old", "expired", False),
        (2, "laptop", "bound", False),
        (3, "spare", "unused", False),
    ]
    assert (rows[4]["label"], rows[4]["state"]) == ("gone", "revoked")
    assert moment(rows[1]["used"]) >= hour
    assert moment(rows[1]["used"]).minute == 0
    head, *lines = operator("token", "list").out.splitlines()
    assert head.split() == ["id", "state", "for", "principal", "key", "used", "expires", "label"]
    assert [line.split()[1] for line in lines[:3]] == ["expired", "bound", "unused"]
    assert lines[1].split()[2:5] == ["publishing", "ann", KEY]
    assert lines[3].split()[2:5] == ["acts", "-", "-"]
    journal = operator("journal", "--json").document
    assert [(row["act"], row["subject"], row["reason"]) for row in journal] == [
        ("token create", "token 2 (laptop)", None),
        ("token create", "token 3 (spare)", None),
        ("admin token create", "token 4 (desk)", None),
        ("token create", "token 5 (gone)", None),
        ("token revoke", "token 5 (gone)", "It was lost."),
    ]
    assert {row["who"].partition(" by ")[0] for row in journal} == {"command"}


# --- used ---


def test_an_expired_token_is_refused_for_all_it_was_good_for(start: Start, ask: Ask) -> None:
    clock = HandClock()
    commons = start(private=True, clock=clock)
    with writing(commons.engine) as connection:
        secret, _token = tokens.create(connection, NOW, tokens.Terms(expires=NOW + timedelta(hours=1)))
    client = ask(commons, secret)
    assert client.put(PATH, content=file(key(1), [])).status_code == 201
    clock.advance(timedelta(minutes=59, seconds=59))
    assert client.get("/commons/index").status_code == 200
    clock.advance(timedelta(seconds=1))
    for answer in (client.put(PATH, content=file(key(1), [])), client.get("/commons/index"), client.get(PATH)):
        assert (answer.status_code, answer.json()["code"]) == (401, "token_expired")
        assert answer.headers["WWW-Authenticate"] == 'Bearer error="invalid_token"'


def test_the_key_of_an_expired_token_stays_admitted(start: Start, ask: Ask) -> None:
    clock = HandClock()
    commons = start(clock=clock)
    with writing(commons.engine) as connection:
        secret, token = tokens.create(connection, NOW, tokens.Terms(principal="ann", expires=NOW + timedelta(hours=1)))
    ask(commons, secret).put(PATH, content=file(key(1), []))
    listed = ask(commons).get("/commons/index")
    clock.advance(timedelta(days=1))
    again = ask(commons).get("/commons/index", headers={"If-None-Match": listed.headers["ETag"]})
    assert again.status_code == 304
    assert ask(commons).get("/commons/index").json()[0]["principal"] == "ann"
    with writing(commons.engine) as connection:
        tokens.revoke(connection, token.id, clock())
    assert ask(commons).get("/commons/index").json()[0]["principal"] is None


def test_a_new_token_of_the_same_principal_goes_on(start: Start, ask: Ask) -> None:
    clock = HandClock()
    commons = start(clock=clock)
    with writing(commons.engine) as connection:
        old, _token = tokens.create(connection, NOW, tokens.Terms(principal="ann", expires=NOW + timedelta(hours=1)))
    ask(commons, old).put(PATH, content=file(key(1), []))
    clock.advance(timedelta(days=1))
    assert ask(commons, commons.token()).put(PATH, content=file(key(1), [])).json()["code"] == "token_bound"
    answer = ask(commons, commons.token(principal="ann")).put(PATH, content=file(key(1), [], at=clock()))
    assert answer.json()["outcome"] == "newer"


def test_who_is_revoked_and_expired_is_told_of_the_revocation(engine: Engine) -> None:
    with writing(engine) as connection:
        secret, token = tokens.create(connection, NOW, tokens.Terms(expires=NOW + timedelta(hours=1)))
        assert tokens.check(connection, secret, NOW) == token
        late = NOW + timedelta(hours=2)
        with pytest.raises(TokenExpired):
            tokens.check(connection, secret, late)
        tokens.revoke(connection, token.id, late)
        with pytest.raises(TokenRevoked):
            tokens.check(connection, secret, late)


def test_an_admin_token_claims_no_key(engine: Engine) -> None:
    with writing(engine) as connection:
        _secret, token = tokens.create(connection, NOW, tokens.Terms(admin=True))
    with pytest.raises(AdminToken):
        tokens.claim(token, KEY)


def test_an_earlier_hour_never_takes_the_place_of_a_later_one(engine: Engine) -> None:
    with writing(engine) as connection:
        _secret, token = tokens.create(connection, NOW)
        tokens.note_use(connection, token, NOW + timedelta(hours=3))
        tokens.note_use(connection, token, NOW + timedelta(hours=2))
        assert [one.used for one in tokens.list_all(connection)] == [NOW + timedelta(hours=3)]
