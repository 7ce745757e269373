"""A host's own choice: what it answers for a key that it blocks, and how the key comes back."""

from __future__ import annotations

from collections.abc import Callable

import httpx
import pytest
from sqlalchemy import func, select

from remem.protocol import State, digest_of, lesson_hash
from remem.protocol.times import unix_seconds
from remem_server.database import tables
from remem_server.errors import OperatorKey, ParameterForm
from remem_server.files import store
from remem_server.operator import acts
from remem_server.upkeep.audit import audit
from remem_testkit.files import NOW, confirmation, file, key, lesson, sentence
from remem_testkit.server import ServedCommons

Ask = Callable[..., httpx.Client]
WHO = "command by the test"
REASON = "It is spam."
OURS = key(1).public
HASH = lesson_hash("error", sentence(1))
PATH = f"/commons/{OURS.hex}.jsonl"
FIRST, SECOND = (
    file(key(1), [lesson(sentence(1))]),
    file(key(1), [lesson(sentence(1)), lesson(sentence(2))], seal=unix_seconds(NOW) + 1),
)


def rows(commons: ServedCommons, name: str) -> int:
    table = tables.metadata.tables[name]
    with commons.engine.connect() as connection:
        return connection.execute(select(func.count()).select_from(table).where(table.c.key == OURS.hex)).scalar_one()


def block(commons: ServedCommons, reason: str = REASON) -> acts.Outcome:
    return sound(commons, acts.block(commons.commons, WHO, OURS.hex, reason))


def unblock(commons: ServedCommons) -> acts.Outcome:
    return sound(commons, acts.unblock(commons.commons, WHO, OURS.hex, None))


def sound(commons: ServedCommons, done: acts.Outcome) -> acts.Outcome:
    """Audit everything that is stored."""
    assert list(audit(commons.engine, commons.clock(), node=commons.commons.key.public.hex)) == []
    return done


@pytest.mark.parametrize("name", [OURS.hex, OURS.origin], ids=["by key", "by origin"])
@pytest.mark.parametrize("method", ["GET", "HEAD"])
@pytest.mark.parametrize("condition", [None, "*", "the same"])
def test_a_blocked_file_is_gone_whatever_the_condition(
    commons: ServedCommons, publisher: httpx.Client, name: str, method: str, condition: str | None
) -> None:
    etag = publisher.put(PATH, content=FIRST).headers["ETag"]
    block(commons)
    headers = {} if condition is None else {"If-None-Match": etag if condition == "the same" else condition}
    answer = publisher.request(method, f"/commons/{name}.jsonl", headers=headers)
    assert answer.status_code == 410
    assert answer.headers["Cache-Control"] == "no-store"
    if method == "GET":
        assert (answer.json()["code"], answer.json()["reason"]) == ("blocked", REASON)


def test_the_version_stays_and_the_rest_goes(commons: ServedCommons, publisher: httpx.Client) -> None:
    skipped = lesson(sentence(3), hash="0" * 32)
    publisher.put(PATH, content=file(key(1), [lesson(sentence(1)), skipped]))
    with commons.engine.connect() as connection:
        before = store.version_of(connection, OURS.hex)
    assert all(rows(commons, name) for name in ("contents", "statements", "skipped"))
    assert block(commons) == acts.Outcome("block", OURS.hex, "done", known=True)
    with commons.engine.connect() as connection:
        assert store.version_of(connection, OURS.hex) == before
    assert not any(rows(commons, name) for name in ("contents", "statements", "skipped"))


def test_the_index_and_the_lessons_leave_it_out(commons: ServedCommons, publisher: httpx.Client, ask: Ask) -> None:
    publisher.put(PATH, content=FIRST)
    other = ask(commons, commons.token())
    other.put(f"/commons/{key(2).public.hex}.jsonl", content=file(key(2), [confirmation(HASH)]))
    listed = publisher.get("/commons/index")
    assert publisher.get(f"/commons/lessons/{HASH}").json()["text"] == sentence(1)
    block(commons)
    again = publisher.get("/commons/index", headers={"If-None-Match": listed.headers["ETag"]})
    assert [entry["key"] for entry in again.json()] == [key(2).public.hex]
    assert publisher.get("/commons/lessons").json()["lessons"] == []
    assert publisher.get(f"/commons/lessons/{HASH}").json()["text"] is None
    # Who goes on from where it was is told nothing of it either.
    since = publisher.get(f"/commons/index?since={listed.headers['Remem-Cursor']}")
    assert since.json() == []
    assert publisher.get("/commons/index", headers={"If-None-Match": again.headers["ETag"]}).status_code == 304


def test_what_a_blocked_key_confirmed_counts_no_more(commons: ServedCommons, ask: Ask) -> None:
    other = ask(commons, commons.token())
    other.put(f"/commons/{key(9).public.hex}.jsonl", content=file(key(9), [lesson(sentence(1))]))
    for number in (1, 2, 3):
        client = ask(commons, commons.token())
        client.put(f"/commons/{key(number).public.hex}.jsonl", content=file(key(number), [confirmation(HASH)]))
    assert other.get(f"/commons/lessons/{HASH}").json()["state"] == State.COMMON.value
    block(commons)
    seen = other.get(f"/commons/lessons/{HASH}").json()
    assert (seen["state"], seen["confirmations"]) == (State.CANDIDATE.value, 2)


@pytest.mark.parametrize("data", [FIRST, SECOND], ids=["the same", "a newer one"])
def test_a_blocked_key_publishes_nothing(commons: ServedCommons, publisher: httpx.Client, data: bytes) -> None:
    publisher.put(PATH, content=FIRST)
    block(commons)
    for name in (OURS.hex, OURS.origin):
        answer = publisher.put(f"/commons/{name}.jsonl", content=data)
        assert (answer.status_code, answer.json()["code"], answer.json()["reason"]) == (410, "blocked", REASON)
    assert rows(commons, "contents") == 0


def test_a_block_is_said_before_the_body_is_read(commons: ServedCommons, ask: Ask) -> None:
    block(commons)
    answer = ask(commons, commons.token()).put(PATH, content=b"x" * 300_000)
    assert (answer.status_code, answer.json()["code"]) == (410, "blocked")


def test_a_key_that_never_came_can_be_blocked(commons: ServedCommons, publisher: httpx.Client) -> None:
    assert block(commons) == acts.Outcome("block", OURS.hex, "done", known=False)
    assert publisher.get(PATH).json()["code"] == "blocked"
    assert publisher.put(PATH, content=FIRST).json()["code"] == "blocked"
    assert publisher.get(f"/commons/{OURS.origin}.jsonl").json()["code"] == "file_unknown"
    unblock(commons)
    assert publisher.get(PATH).json()["code"] == "file_unknown"
    assert publisher.put(PATH, content=FIRST).status_code == 201


@pytest.mark.parametrize(
    ("data", "outcome"), [(FIRST, "unchanged"), (SECOND, "newer")], ids=["the same", "a newer one"]
)
def test_behind_a_block_the_same_file_or_a_newer_one_comes_back(
    commons: ServedCommons, publisher: httpx.Client, data: bytes, outcome: str
) -> None:
    publisher.put(PATH, content=FIRST)
    cursor = int(publisher.get("/commons/index").headers["Remem-Cursor"])
    block(commons)
    assert unblock(commons) == acts.Outcome("unblock", OURS.hex, "done", known=True)
    for name in (OURS.hex, OURS.origin):
        assert publisher.get(f"/commons/{name}.jsonl").json()["code"] == "file_unknown"
    assert publisher.get("/commons/index").json() == []
    answer = publisher.put(PATH, content=data)
    assert (answer.status_code, answer.json()["outcome"]) == (200, outcome)
    assert publisher.get(PATH).content == data
    assert publisher.get(f"/commons/lessons/{HASH}").json()["text"] == sentence(1)
    listed = publisher.get(f"/commons/index?since={cursor}")
    assert [entry["key"] for entry in listed.json()] == [OURS.hex]


def test_behind_a_block_an_older_file_is_still_older(commons: ServedCommons, publisher: httpx.Client) -> None:
    publisher.put(PATH, content=SECOND)
    block(commons)
    unblock(commons)
    assert publisher.put(PATH, content=FIRST).json()["code"] == "older_file"
    assert publisher.get(PATH).json()["code"] == "file_unknown"


@pytest.mark.parametrize("larger_comes", [True, False], ids=["larger", "smaller"])
def test_behind_a_block_another_file_of_the_same_seal_is_weighed_by_its_digest(
    commons: ServedCommons, publisher: httpx.Client, *, larger_comes: bool
) -> None:
    smaller, larger = sorted((file(key(1), [lesson(sentence(number))]) for number in (1, 2)), key=digest_of)
    publisher.put(PATH, content=smaller if larger_comes else larger)
    block(commons)
    unblock(commons)
    answer = publisher.put(PATH, content=larger if larger_comes else smaller)
    assert answer.status_code == (200 if larger_comes else 409)
    assert publisher.get(PATH).status_code == (200 if larger_comes else 404)


def test_what_is_so_already_is_not_done_again(commons: ServedCommons) -> None:
    assert block(commons).outcome == "done"
    assert block(commons, "Another reason.").outcome == "already"
    assert unblock(commons).outcome == "done"
    assert unblock(commons).outcome == "already"


def test_the_operators_keys_are_not_blocked(start: Callable[..., ServedCommons]) -> None:
    commons = start(operators=(key(8).public.hex,))
    for name in (commons.commons.key.public.hex, key(8).public.hex):
        with pytest.raises(OperatorKey, match=name):
            acts.block(commons.commons, WHO, name, REASON)


@pytest.mark.parametrize(
    ("subject", "reason", "said"),
    [
        ("0" * 63, REASON, "key: expected"),
        ("F" * 64, REASON, "key: expected"),
        (OURS.origin, REASON, "key: expected"),
        (OURS.hex, "", "reason: expected"),
        (OURS.hex, "two\nlines", "reason: expected"),
        (OURS.hex, "x" * 1_001, "reason: expected"),
    ],
)
def test_a_block_of_another_form_is_refused(commons: ServedCommons, subject: str, reason: str, said: str) -> None:
    with pytest.raises(ParameterForm, match=said):
        acts.block(commons.commons, WHO, subject, reason)
