"""`/admin/`: who may act over HTTP, what is asked in which form, and what is answered."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from threading import Event
from time import sleep
from typing import Any

import httpx
import pytest
from sqlalchemy import update

from remem.protocol import RULES, lesson_hash
from remem.protocol.times import unix_seconds
from remem_server.database import tables
from remem_server.database.engine import writing
from remem_server.files import journal, tokens
from remem_server.operator import acts
from remem_server.web.routes.admin import BODY_MOST, _check
from remem_testkit.files import NOW, draft_file, file, key, lesson, revocation, sentence
from remem_testkit.server import HandClock, ServedCommons

Ask = Callable[..., httpx.Client]
Start = Callable[..., ServedCommons]

HASH = lesson_hash("error", sentence(1))
KEY = key(1).public.hex
REASON = "It is not so."
POSTS = ("revoke", "unrevoke", "deny", "undeny", "block", "unblock", "tokens", "tokens/1/revoke")
GETS = ("tokens", "journal", "stats")


def admin_token(commons: ServedCommons, label: str = "desk", **options: Any) -> str:
    secret, _token = acts.token_create(
        commons.engine, "command by the test", commons.clock(), tokens.Terms(label, admin=True, **options)
    )
    return secret


@pytest.fixture
def desk(commons: ServedCommons, ask: Ask) -> httpx.Client:
    """Return a client of `commons` with an admin token, its first."""
    return ask(commons, admin_token(commons))


def lesson_body(**more: Any) -> dict[str, Any]:
    return {"hash": HASH, "reason": REASON, **more}


def key_body(**more: Any) -> dict[str, Any]:
    return {"key": KEY, "reason": REASON, **more}


# --- who ---


@pytest.mark.parametrize(("method", "path"), [*(("POST", one) for one in POSTS), *(("GET", one) for one in GETS)])
def test_nobody_acts_without_a_good_admin_token(commons: ServedCommons, ask: Ask, method: str, path: str) -> None:
    revoked = admin_token(commons)
    with writing(commons.engine) as connection:
        tokens.revoke(connection, 1, NOW)
    expired = admin_token(commons, expires=NOW + timedelta(seconds=1))
    assert isinstance(commons.clock, HandClock)
    commons.clock.advance(timedelta(seconds=1))
    for secret, status, code in (
        (None, 401, "token_missing"),
        ("remem_x", 401, "token_unknown"),
        (revoked, 401, "token_revoked"),
        (expired, 401, "token_expired"),
        (commons.token(), 403, "admin_needed"),
    ):
        answer = ask(commons, secret).request(method, f"/admin/{path}", content=b"{" if method == "POST" else None)
        assert (answer.status_code, answer.json()["code"]) == (status, code)
        assert ("WWW-Authenticate" in answer.headers) is (status == 401)


@pytest.mark.parametrize("end", ["revoked", "expired"])
@pytest.mark.parametrize("path", POSTS)
def test_a_token_that_ends_while_a_body_is_on_its_way_does_nothing_any_more(
    commons: ServedCommons, ask: Ask, path: str, end: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    let_in = Event()

    def check(*asked: Any) -> tokens.Token:
        found = _check(*asked)
        let_in.set()
        return found

    monkeypatch.setattr("remem_server.web.routes.admin._check", check)
    stolen = admin_token(commons, label="stolen", expires=NOW + timedelta(hours=1))
    spare = ask(commons, commons.token())
    bodies = {"revoke": lesson_body(), "unrevoke": lesson_body(), "tokens": {"admin": True}, "tokens/1/revoke": {}}
    body = json.dumps(bodies.get(path, key_body())).encode()

    def slow() -> Iterator[bytes]:
        yield body[:-1]
        assert let_in.wait(30)
        if end == "expired":
            assert isinstance(commons.clock, HandClock)
            commons.clock.advance(timedelta(hours=1))
        else:
            acts.token_revoke(commons.engine, "command by the test", NOW, 1, None)
        yield body[-1:]

    answer = ask(commons, stolen).post(f"/admin/{path}", content=slow())
    assert (answer.status_code, answer.json()["code"]) == (401, f"token_{end}")
    with commons.engine.connect() as connection:
        done = [row.act for row in journal.read_after(connection, 0, 100)]
        assert [token.admin for token in tokens.list_all(connection)] == [True, False]
    assert done == ["admin token create", *(["token revoke"] if end == "revoked" else [])]
    assert spare.get("/commons/index").json() == []


def test_an_admin_token_publishes_nothing(commons: ServedCommons, start: Start, ask: Ask) -> None:
    for place in (commons, start("open", open=True)):
        answer = ask(place, admin_token(place)).put(f"/commons/{KEY}.jsonl", content=file(key(1), []))
        assert (answer.status_code, answer.json()["code"]) == (403, "admin_token")
        assert ask(place).get(f"/commons/{KEY}.jsonl").status_code == 404


def test_on_a_private_commons_an_admin_token_reads_too(start: Start, ask: Ask) -> None:
    commons = start(private=True)
    desk = ask(commons, admin_token(commons))
    assert desk.get("/commons/index").status_code == 200
    assert desk.get("/admin/stats").status_code == 200
    reader = ask(commons, commons.token())
    assert reader.get("/commons/index").status_code == 200
    assert reader.get("/admin/stats").json()["code"] == "admin_needed"
    assert ask(commons).get("/admin/stats").json()["code"] == "token_missing"


# --- acts ---


def test_each_act_is_done_once_and_told(commons: ServedCommons, desk: httpx.Client, publisher: httpx.Client) -> None:
    publisher.put(f"/commons/{KEY}.jsonl", content=file(key(1), [lesson(sentence(1))]))
    for act, body in (
        ("revoke", lesson_body()),
        ("deny", key_body()),
        ("block", key_body()),
        ("unblock", {"key": KEY}),
        ("undeny", {"key": KEY, "reason": None}),
        ("unrevoke", {"hash": HASH}),
    ):
        subject = body.get("hash", KEY)
        known = (act, subject) != ("unrevoke", HASH)
        percent = None if "block" in act else 0
        done = {"act": act, "subject": subject, "outcome": "done", "known": known, "file_percent": percent}
        answers = [desk.post(f"/admin/{act}", json=body) for _ in range(2)]
        assert [answer.json() for answer in answers] == [done, {**done, "outcome": "already"}]
        assert {answer.status_code for answer in answers} == {200}
    rows = desk.get("/admin/journal").json()["acts"]
    assert {row["who"] for row in rows[-6:]} == {"token 1 (desk)"}
    assert [(row["act"], row["reason"]) for row in rows[-6:]] == [
        ("revoke", REASON),
        ("deny", REASON),
        ("block", REASON),
        ("unblock", None),
        ("undeny", None),
        ("unrevoke", None),
    ]
    assert datetime.fromisoformat(rows[-1]["at"]) == NOW


@pytest.mark.any_database
@pytest.mark.parametrize(
    ("path", "body", "said"),
    [
        ("revoke", b"", "hash: expected a value, got none"),
        ("revoke", b"{", "body: expected JSON, got something else at line 1 column 1"),
        ("revoke", b"[]", "body: expected an object, got a list"),
        ("revoke", b"\xff", "body: expected JSON"),
        ("revoke", b"[" * 5_000, "body: expected JSON"),
        ("revoke", b" " * (BODY_MOST + 1), "body: expected at most 16384 bytes"),
        ("revoke", lesson_body(hash=HASH[1:]), "hash: expected 32 lower-case hex digits"),
        ("revoke", lesson_body(hash=5), "hash: expected a text, got 5"),
        ("revoke", {"hash": HASH}, "reason: expected a value, got none"),
        ("revoke", lesson_body(reason=None), "reason: expected"),
        ("revoke", lesson_body(reason="a\u202eb"), "reason: expected"),
        ("revoke", lesson_body(more=1), "more: expected no such field, got 1"),
        ("revoke", key_body(), "hash: expected"),
        ("deny", key_body(key=HASH), "key: expected"),
        ("block", key_body(key="0" * 64), "key: expected"),
        ("block", {"key": KEY}, "reason: expected"),
        ("tokens", {"label": "a\nb"}, "label: expected"),
        ("tokens", {"label": "x" * 101}, "label: expected"),
        ("tokens", {"principal": "a b"}, "principal: expected"),
        ("tokens", {"principal": "a", "admin": True}, "principal: expected none"),
        ("tokens", {"expires": "2026-03-01T12:00:00Z"}, "expires: expected a time later than now"),
        ("tokens", {"expires": "2027-03-01T12:00:00"}, "expires: expected a time with a zone"),
        ("tokens", {"expires": "tomorrow"}, "expires: expected a time like 2027-01-31T12:00:00Z"),
        ("tokens", {"expires": "9999-12-31T23:59:59-14:00"}, "expires: expected a time from 1970 to 2099"),
        ("tokens", {"expires": "0001-01-01T00:00:00+14:00"}, "expires: expected a time from 1970 to 2099"),
        ("tokens", {"expires": "2100-01-01T00:00:00+00:01", "label": "x" * 101}, "label: expected"),
        ("tokens", {"expires": "2099-12-31T23:59:59-00:01"}, "expires: expected a time from 1970 to 2099"),
        ("tokens", {"expires": 4_102_444_800}, "expires: expected"),
        ("tokens", {"admin": "true"}, "admin: expected true or false, got 'true'"),
        ("tokens/1/revoke", {"reason": "a\nb"}, "reason: expected"),
        ("tokens/x/revoke", {}, "id: expected an integer"),
        ("tokens/0/revoke", {}, "id: expected at least 1"),
        (f"tokens/{2**31}/revoke", {}, "id: expected at most"),
    ],
)
def test_what_is_asked_in_another_form_is_refused(desk: httpx.Client, path: str, body: Any, said: str) -> None:
    given = {"content": body} if isinstance(body, bytes) else {"json": body}
    answer = desk.post(f"/admin/{path}", **given)
    assert (answer.status_code, answer.json()["code"]) == (422, "parameter_form")
    assert answer.json()["detail"].startswith(said)
    assert [row["act"] for row in desk.get("/admin/journal").json()["acts"]] == ["admin token create"]


def test_a_body_that_never_ends_is_cut_off(start: Start, ask: Ask) -> None:
    commons = start()

    def endless() -> Iterator[bytes]:
        while True:
            yield b" " * 4_096

    desk = ask(commons, admin_token(commons))
    assert desk.post("/admin/revoke", content=endless()).json()["code"] == "parameter_form"


def test_what_an_act_may_not_be_done_to_is_refused(commons: ServedCommons, desk: httpx.Client) -> None:
    node = commons.commons.key.public.hex
    for act in ("deny", "block"):
        answer = desk.post(f"/admin/{act}", json=key_body(key=node))
        assert (answer.status_code, answer.json()["code"]) == (409, "operator_key")


@pytest.mark.parametrize(
    ("seal", "code", "status"),
    [(RULES.last_seal, "key_retired", 409), (unix_seconds(NOW) + 172_800, "older_file", 409)],
    ids=["retired", "far ahead"],
)
def test_a_node_that_cannot_speak_says_so(
    commons: ServedCommons, desk: httpx.Client, publisher: httpx.Client, seal: int, code: str, status: int
) -> None:
    node = commons.commons.key
    ahead = timedelta(seconds=0 if seal == RULES.last_seal else 86_400)
    data = file(node, [revocation(HASH)], seal=seal, at=NOW + ahead)
    assert publisher.put(f"/commons/{node.public.hex}.jsonl", content=data).status_code == 201
    answer = desk.post("/admin/revoke", json=lesson_body(hash="0" * 32))
    assert (answer.status_code, answer.json()["code"]) == (status, code)


def test_a_node_whose_file_is_full_says_so(commons: ServedCommons, desk: httpx.Client, publisher: httpx.Client) -> None:
    node = commons.commons.key
    long = file(node, [revocation(f"{number:032x}", reason="x" * 120) for number in range(564)])
    assert publisher.put(f"/commons/{node.public.hex}.jsonl", content=long).status_code == 201
    answer = desk.post("/admin/revoke", json=lesson_body(reason="x" * 120))
    assert (answer.status_code, answer.json()["code"]) == (409, "operator_file_full")


def test_a_node_with_a_file_of_draft_0_says_so(start: Start, ask: Ask) -> None:
    commons = start(open=True)
    node = commons.commons.key
    data = draft_file(node, [revocation(HASH)])
    assert ask(commons).put(f"/commons/{node.public.hex}.jsonl", content=data).status_code == 201
    answer = ask(commons, admin_token(commons)).post("/admin/revoke", json=lesson_body(hash="0" * 32))
    assert (answer.status_code, answer.json()["code"]) == (422, "unsealed_line")


# --- tokens ---


def test_tokens_are_made_listed_and_revoked(commons: ServedCommons, desk: httpx.Client, ask: Ask) -> None:
    until = NOW + timedelta(days=90)
    made = desk.post("/admin/tokens", json={"label": "ann", "principal": "team-a", "expires": until.isoformat()})
    assert made.status_code == 201
    one = made.json()
    publisher = ask(commons, one.pop("token"))
    assert (one["id"], one["label"], one["principal"], one["state"], one["admin"]) == (
        2,
        "ann",
        "team-a",
        "unused",
        False,
    )
    assert datetime.fromisoformat(one["expires"]) == until
    assert publisher.put(f"/commons/{KEY}.jsonl", content=file(key(1), [])).status_code == 201
    listed = desk.get("/admin/tokens").json()
    assert [(row["id"], row["state"], row["key"]) for row in listed] == [(1, "used", None), (2, "bound", KEY)]
    assert datetime.fromisoformat(listed[1]["used"]) == NOW
    assert not any("token" in row or "token_hash" in row for row in listed)
    revoked = desk.post("/admin/tokens/2/revoke", json={"reason": "Ann left."})
    assert (revoked.json()["state"], revoked.json()["label"]) == ("revoked", "ann")
    assert desk.post("/admin/tokens/2/revoke", json={}).json() == revoked.json()
    assert publisher.put(f"/commons/{KEY}.jsonl", content=file(key(1), [])).json()["code"] == "token_revoked"
    assert desk.get("/commons/index").json()[0]["principal"] is None
    assert [(row["act"], row["subject"], row["reason"]) for row in desk.get("/admin/journal").json()["acts"]] == [
        ("admin token create", "token 1 (desk)", None),
        ("token create", "token 2 (ann)", None),
        ("token revoke", "token 2 (ann)", "Ann left."),
    ]


def test_who_has_nothing_to_say_sends_no_body(desk: httpx.Client) -> None:
    made = desk.post("/admin/tokens")
    assert (made.status_code, made.json()["label"]) == (201, "")
    assert desk.post(f"/admin/tokens/{made.json()['id']}/revoke").json()["state"] == "revoked"


def test_an_admin_token_may_make_another_and_revoke_itself(
    commons: ServedCommons, desk: httpx.Client, ask: Ask
) -> None:
    made = desk.post("/admin/tokens", json={"admin": True}).json()
    other = ask(commons, made["token"])
    assert other.get("/admin/stats").json()["tokens"]["admin"] == 2
    assert other.post(f"/admin/tokens/{made['id']}/revoke", json={}).json()["state"] == "revoked"
    assert other.get("/admin/stats").json()["code"] == "token_revoked"


def test_a_number_that_no_token_has_is_unknown(desk: httpx.Client) -> None:
    answer = desk.post("/admin/tokens/99/revoke", json={})
    assert (answer.status_code, answer.json()["code"]) == (404, "token_id_unknown")


# --- looking ---


def test_the_log_is_read_page_by_page(desk: httpx.Client) -> None:
    for number in range(5):
        desk.post("/admin/revoke", json=lesson_body(hash=f"{number:032x}"))
    found: list[str] = []
    after: int | None = 0
    while after is not None:
        page = desk.get("/admin/journal", params={"after": after, "limit": 2}).json()
        found += [row["subject"] for row in page["acts"]]
        after = page["next"]
    assert found == ["token 1 (desk)", *(f"{number:032x}" for number in range(5))]
    assert desk.get("/admin/journal", params={"after": 2**62}).json() == {"acts": [], "next": None}


@pytest.mark.any_database
@pytest.mark.parametrize("query", ["after=-1", "after=x", "limit=0", "limit=1001", f"after={2**63}"])
def test_a_page_of_another_form_is_refused(desk: httpx.Client, query: str) -> None:
    assert desk.get(f"/admin/journal?{query}").json()["code"] == "parameter_form"


def test_what_is_held_is_counted(commons: ServedCommons, desk: httpx.Client, publisher: httpx.Client) -> None:
    publisher.put(f"/commons/{KEY}.jsonl", content=file(key(1), [lesson(sentence(1))]))
    desk.post("/admin/block", json=key_body(key=key(5).public.hex))
    counted = desk.get("/admin/stats").json()
    assert (counted["files"], counted["held"], counted["blocked"], counted["acts"]) == (1, 1, 1, 2)
    assert counted["lessons"]["candidate"] == 1


# --- the last use ---


def used(commons: ServedCommons, number: int) -> datetime | None:
    with commons.engine.connect() as connection:
        found = tokens.find(connection, number)
    assert found is not None
    return found.used


def test_a_use_that_reads_is_noted_once_a_day_and_behind_the_answer(start: Start, ask: Ask) -> None:
    clock = HandClock(NOW + timedelta(minutes=30))
    commons = start(private=True, clock=clock)
    reader = ask(commons, commons.token())
    for hours, day in ((0, 0), (1, 0), (22, 0), (1, 1), (23, 1), (1, 2)):
        clock.advance(timedelta(hours=hours))
        assert reader.get("/commons/index").status_code == 200
        # It comes behind the answer, so it may take a moment.
        for _ in range(1_000):
            if used(commons, 1) == NOW + timedelta(days=day):
                break
            sleep(0.01)
        assert used(commons, 1) == NOW + timedelta(days=day)


def test_a_database_that_cannot_be_written_keeps_no_reader_out(start: Start, ask: Ask) -> None:
    commons = start(private=True)
    reader = ask(commons, commons.token())
    with writing(commons.engine) as connection:
        # Whoever writes holds the lock for as long as this is open.
        connection.execute(update(tables.tokens).values(label="held"))
        assert reader.get("/commons/index").status_code == 200
    assert used(commons, 1) in (None, NOW)


def test_a_publication_notes_the_hour(start: Start, ask: Ask) -> None:
    clock = HandClock(NOW + timedelta(minutes=59))
    commons = start(clock=clock)
    publisher = ask(commons, commons.token())
    path = f"/commons/{KEY}.jsonl"
    publisher.put(path, content=file(key(1), []))
    assert used(commons, 1) == NOW
    clock.advance(timedelta(minutes=1))
    publisher.put(path, content=file(key(1), []))
    assert used(commons, 1) == NOW + timedelta(hours=1)
    publisher.put(path, content=b"nonsense\n")
    assert used(commons, 1) == NOW + timedelta(hours=1)
