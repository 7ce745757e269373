"""GET /commons/index: what is held, in the order of change, in pages, and only what is new."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import httpx
import pytest

from remem.protocol import digest_of
from remem_server.database.engine import writing
from remem_server.files import tokens
from remem_testkit.files import NOW, draft_file, file, key, lesson, sentence
from remem_testkit.server import HandClock, ServedCommons

Ask = Callable[..., httpx.Client]
SECOND = timedelta(seconds=1)


def publish(commons: ServedCommons, ask: Ask, number: int, *, second: int = 0, principal: str | None = None) -> str:
    """Publish a file of a key with a new token, and return the token."""
    token = commons.token(principal=principal)
    data = file(key(number), [lesson(sentence(number))], at=NOW + second * SECOND)
    answer = ask(commons, token).put(f"/commons/{key(number).public.hex}.jsonl", content=data)
    assert answer.status_code in (200, 201), answer.text
    return token


def keys_of(answer: httpx.Response) -> list[int]:
    numbers = {key(number).public.hex: number for number in range(20)}
    return [numbers[entry["key"]] for entry in answer.json()]


def test_an_entry_says_which_file_stands_and_who_answers_for_it(start: Callable[..., ServedCommons], ask: Ask) -> None:
    clock = HandClock(NOW + timedelta(hours=1, microseconds=123))
    commons = start(clock=clock)
    publish(commons, ask, 1, principal="team-a")
    data = draft_file(key(2), [lesson(sentence(2))])
    ask(commons, commons.token(principal="team-b")).put(f"/commons/{key(2).public.hex}.jsonl", content=data)
    sealed, draft = ask(commons).get("/commons/index").json()
    assert sealed == {
        "origin": key(1).public.origin,
        "updated": "2026-03-01T13:00:00Z",
        "records": 1,
        "key": key(1).public.hex,
        "seal": int(NOW.timestamp()),
        "digest": digest_of(file(key(1), [lesson(sentence(1))])),
        "principal": "team-a",
    }
    assert (draft["seal"], draft["digest"], draft["principal"]) == (None, digest_of(data), "team-b")


def test_an_empty_commons_lists_nothing(commons: ServedCommons, ask: Ask) -> None:
    answer = ask(commons).get("/commons/index")
    assert (answer.json(), answer.headers["Remem-Cursor"]) == ([], "0")
    assert "Link" not in answer.headers


def test_pages_follow_each_other_to_the_end_and_miss_nothing(commons: ServedCommons, ask: Ask) -> None:
    for number in range(7):
        publish(commons, ask, number)
    reader = ask(commons)
    url, seen = "/commons/index?limit=3", []
    while url:
        answer = reader.get(url)
        seen.append(keys_of(answer))
        # A relative reference, so that it holds behind any address that a proxy gives the commons.
        further = answer.links.get("next", {}).get("url")
        url = "" if further is None else str(answer.url.join(further))
    assert seen == [[0, 1, 2], [3, 4, 5], [6]]
    again = reader.get("/commons/index", params={"since": answer.headers["Remem-Cursor"]})
    assert (again.json(), again.headers["Remem-Cursor"]) == ([], answer.headers["Remem-Cursor"])


def test_a_page_that_ends_with_the_last_file_has_no_next(commons: ServedCommons, ask: Ask) -> None:
    for number in range(2):
        publish(commons, ask, number)
    assert "Link" not in ask(commons).get("/commons/index?limit=2").headers


def test_since_lists_only_what_changed_in_the_order_of_the_last_change(commons: ServedCommons, ask: Ask) -> None:
    used = [publish(commons, ask, number) for number in range(4)]
    reader = ask(commons)
    cursor = reader.get("/commons/index").headers["Remem-Cursor"]
    for number in (2, 0, 2):
        data = file(key(number), [], at=NOW + (1 + number) * SECOND)
        assert ask(commons, used[number]).put(f"/commons/{key(number).public.hex}.jsonl", content=data).is_success
    changed = reader.get("/commons/index", params={"since": cursor})
    assert keys_of(changed) == [2, 0]
    assert keys_of(reader.get("/commons/index")) == [1, 3, 2, 0]


def test_revoking_a_token_changes_the_index_of_its_key(commons: ServedCommons, ask: Ask) -> None:
    for number in (1, 2):
        publish(commons, ask, number, principal=f"p{number}")
    reader = ask(commons)
    before = reader.get("/commons/index")
    with writing(commons.engine) as connection:
        assert tokens.revoke(connection, 1, NOW)
    after = reader.get("/commons/index", params={"since": before.headers["Remem-Cursor"]})
    assert [(entry["key"], entry["principal"]) for entry in after.json()] == [(key(1).public.hex, None)]
    assert reader.get("/commons/index").headers["ETag"] != before.headers["ETag"]
    with writing(commons.engine) as connection:
        assert tokens.revoke(connection, 1, NOW)
    assert reader.get("/commons/index").headers["ETag"] == after.headers["ETag"]


def test_a_second_token_changes_the_index_when_it_admits_a_key_again(commons: ServedCommons, ask: Ask) -> None:
    publish(commons, ask, 1, principal="first")
    reader = ask(commons)
    before = reader.get("/commons/index").headers
    with writing(commons.engine) as connection:
        tokens.revoke(connection, 1, NOW)
    token = commons.token(principal="first")
    data = file(key(1), [], at=NOW + SECOND)
    assert ask(commons, token).put(f"/commons/{key(1).public.hex}.jsonl", content=data).is_success
    after = reader.get("/commons/index", params={"since": before["Remem-Cursor"]})
    assert [entry["principal"] for entry in after.json()] == ["first"]


def test_the_whole_index_is_not_sent_to_who_has_it(commons: ServedCommons, ask: Ask) -> None:
    token = publish(commons, ask, 1)
    reader = ask(commons)
    for url in ("/commons/index", "/commons/index?since=1", "/commons/index?limit=1"):
        etag = reader.get(url).headers["ETag"]
        again = reader.get(url, headers={"If-None-Match": f'"x", W/{etag}'})
        assert (again.status_code, again.content, again.headers["ETag"]) == (304, b"", etag)
    data = file(key(1), [], at=NOW + SECOND)
    ask(commons, token).put(f"/commons/{key(1).public.hex}.jsonl", content=data)
    assert reader.get("/commons/index", headers={"If-None-Match": etag}).status_code == 200


def test_a_cursor_of_another_history_starts_over(commons: ServedCommons, ask: Ask) -> None:
    publish(commons, ask, 1)
    assert keys_of(ask(commons).get("/commons/index?since=9000")) == [1]


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("since=-1", "since: expected at least 0, got '-1'"),
        ("since=x", "since: expected an integer, got 'x'"),
        ("since=1.5", "since: expected an integer, got '1.5'"),
        ("limit=0", "limit: expected at least 1, got '0'"),
        ("limit=1001", "limit: expected at most 1000, got '1001'"),
        ("limit=", "limit: expected an integer, got ''"),
        (f"since={2**63}", f"since: expected at most {2**63 - 1}, got '{2**63}'"),
        ("since=" + "9" * 5_000, f"since: expected an integer of fewer digits, got '{'9' * 36}..."),
    ],
    ids=lambda value: value[:20],
)
def test_a_parameter_of_another_form_is_refused(commons: ServedCommons, ask: Ask, query: str, said: str) -> None:
    answer = ask(commons).get(f"/commons/index?{query}")
    assert (answer.status_code, answer.json()["code"], answer.json()["detail"]) == (422, "parameter_form", said)
