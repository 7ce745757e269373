"""PUT /commons/<name>.jsonl: what is taken, what is refused and how, and what stands afterwards."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import httpx
import pytest
from sqlalchemy import select

from remem.protocol import RULES, accept, digest_of, sign_record
from remem_server.database import tables
from remem_testkit.files import (
    NOW,
    confirmation,
    denial,
    draft_file,
    file,
    full_file,
    key,
    lesson,
    resealed,
    revocation,
    sentence,
)
from remem_testkit.server import HandClock, ServedCommons, verify_everything_stored

Ask = Callable[..., httpx.Client]
ME, OTHER = key(1), key(2)
SECOND = timedelta(seconds=1)


def path(signer: object = ME, *, origin: bool = False) -> str:
    public = signer.public  # type: ignore[attr-defined]  # a signing key
    return f"/commons/{public.origin if origin else public.hex}.jsonl"


def lines_of(data: bytes) -> list[bytes]:
    return data[:-1].split(b"\n")


# --- what is taken ---


def test_a_first_file_is_created_and_served_byte_for_byte(publisher: httpx.Client) -> None:
    data = file(ME, [lesson(sentence(1)), confirmation("0" * 32)])
    answer = publisher.put(path(), content=data)
    assert answer.status_code == 201
    assert answer.json() == {
        "outcome": "new",
        "key": ME.public.hex,
        "origin": ME.public.origin,
        "seal": accept(data, now=NOW).version.seal,
        "digest": digest_of(data),
        "records": 2,
        "skipped": [],
    }
    assert answer.headers["ETag"] == f'"{digest_of(data)}"'
    assert publisher.get(path()).content == data


def test_a_newer_file_replaces_the_older(publisher: httpx.Client) -> None:
    publisher.put(path(), content=file(ME, [lesson(sentence(1))]))
    newer = file(ME, [lesson(sentence(2))], at=NOW + SECOND)
    answer = publisher.put(path(), content=newer)
    assert (answer.status_code, answer.json()["outcome"]) == (200, "newer")
    assert publisher.get(path()).content == newer


def test_the_same_file_again_changes_nothing(publisher: httpx.Client, commons: ServedCommons) -> None:
    data = file(ME, [lesson(sentence(1))])
    publisher.put(path(), content=data)
    before = publisher.get("/commons/index").headers
    answer = publisher.put(path(), content=data)
    assert (answer.status_code, answer.json()["outcome"]) == (200, "unchanged")
    after = publisher.get("/commons/index").headers
    assert (after["ETag"], after["Remem-Cursor"]) == (before["ETag"], before["Remem-Cursor"])


def test_a_file_may_come_under_its_origin(publisher: httpx.Client) -> None:
    data = file(ME, [lesson(sentence(1))])
    assert publisher.put(path(origin=True), content=data).status_code == 201
    newer = file(ME, [lesson(sentence(1)), lesson(sentence(2))], at=NOW + SECOND)
    assert publisher.put(path(origin=True), content=newer).status_code == 200
    assert publisher.get(path()).content == newer


def test_a_full_file_of_the_largest_size_is_taken(publisher: httpx.Client) -> None:
    data = full_file(ME, lines=500)
    room = RULES.file_bytes - len(data)
    lines = lines_of(data)[1:]
    padding = lesson(sentence(900), id="x")
    short = len(sign_record(ME, {**padding, "sealed": True})) + 1
    lines.append(sign_record(ME, {**padding, "sealed": True, "pad": "p" * (room - short - len('"pad":"",'))}))
    whole = resealed(ME, lines)
    assert len(whole) == RULES.file_bytes
    assert publisher.put(path(), content=whole).status_code == 201


def test_a_file_of_a_seal_alone_is_taken_and_replaced(publisher: httpx.Client, commons: ServedCommons) -> None:
    assert publisher.put(path(), content=file(ME, [])).json()["records"] == 0
    assert publisher.put(path(), content=file(ME, [lesson(sentence(1))], at=NOW + SECOND)).json()["records"] == 1
    assert publisher.put(path(), content=file(ME, [], at=NOW + 2 * SECOND)).json()["records"] == 0
    verify_everything_stored(commons.engine, NOW)


def test_records_of_unknown_types_are_kept_whatever_is_verified_again(
    publisher: httpx.Client, commons: ServedCommons
) -> None:
    unknown = [{"vote": "x", "at": "2026-01-01T00:00:00Z"}, {"vote": "y"}]
    for second in range(3):
        data = file(ME, [*unknown, lesson(sentence(second))], at=NOW + second * SECOND)
        assert publisher.put(path(), content=data).status_code in (200, 201)
        assert publisher.get(path()).content == data
    verify_everything_stored(commons.engine, NOW)


# --- the newest stands ---


def test_an_older_file_is_refused_with_what_stands(publisher: httpx.Client) -> None:
    newer = file(ME, [lesson(sentence(1))], at=NOW + SECOND)
    publisher.put(path(), content=newer)
    answer = publisher.put(path(), content=file(ME, [lesson(sentence(2))]))
    assert answer.status_code == 409
    assert answer.json()["code"] == "older_file"
    assert answer.json()["held"] == {"seal": accept(newer, now=NOW).version.seal, "digest": digest_of(newer)}
    assert publisher.get(path()).content == newer


@pytest.mark.parametrize("first", [0, 1], ids=["the larger digest first", "the smaller digest first"])
def test_of_two_files_with_one_seal_the_larger_digest_stands_in_either_order(
    publisher: httpx.Client, commons: ServedCommons, first: int
) -> None:
    two = sorted((file(ME, [lesson(sentence(number))]) for number in (1, 2)), key=digest_of, reverse=True)
    publisher.put(path(), content=two[first])
    answer = publisher.put(path(), content=two[1 - first])
    if first == 0:
        assert (answer.status_code, answer.json()["code"]) == (409, "equivocation")
        assert answer.json()["held"]["digest"] == digest_of(two[0])
    else:
        assert (answer.status_code, answer.json()["outcome"]) == (200, "equivocation")
    assert publisher.get(path()).content == two[0]
    with commons.engine.connect() as connection:
        proof = connection.execute(select(tables.equivocations)).one()
    assert {proof.digest_a, proof.digest_b} == {digest_of(data) for data in two}
    assert {proof.line_a, proof.line_b} == {lines_of(data)[0] for data in two}
    verify_everything_stored(commons.engine, NOW)


def test_a_key_that_equivocates_again_is_flagged_once(publisher: httpx.Client, commons: ServedCommons) -> None:
    for number in range(6):
        at = NOW + timedelta(seconds=number // 3)
        publisher.put(path(), content=file(ME, [lesson(sentence(number))], at=at))
    with commons.engine.connect() as connection:
        assert len(connection.execute(select(tables.equivocations)).all()) == 1


def test_the_last_seal_retires_a_key_for_good(publisher: httpx.Client) -> None:
    hashes = [str(lesson(sentence(number))["hash"]) for number in range(2)]
    publisher.put(path(), content=file(ME, [lesson(sentence(number)) for number in range(2)]))
    last = file(ME, [revocation(hashes[0])], seal=RULES.last_seal)
    assert publisher.put(path(), content=last).status_code == 200
    answer = publisher.put(path(), content=file(ME, [lesson(sentence(3))], at=NOW + SECOND))
    assert (answer.status_code, answer.json()["code"]) == (409, "older_file")
    assert publisher.get(f"/commons/lessons/{hashes[1]}").status_code == 404


# --- draft 0 ---


def test_a_draft_file_is_taken_with_a_token_and_replaced_as_they_come(publisher: httpx.Client) -> None:
    first = draft_file(ME, [lesson(sentence(1), at=NOW)])
    then = draft_file(ME, [lesson(sentence(2), at=NOW - timedelta(days=9))])
    answers = [publisher.put(path(), content=data) for data in (first, then, first)]
    assert [answer.status_code for answer in answers] == [201, 200, 200]
    assert answers[0].json()["seal"] is None
    assert publisher.get(path()).content == first


def test_a_draft_file_never_replaces_a_sealed_one(publisher: httpx.Client) -> None:
    publisher.put(path(), content=draft_file(ME, [lesson(sentence(1))]))
    sealed = file(ME, [lesson(sentence(2))])
    assert publisher.put(path(), content=sealed).json()["outcome"] == "newer"
    answer = publisher.put(path(), content=draft_file(ME, [lesson(sentence(3))]))
    assert (answer.status_code, answer.json()["code"]) == (409, "older_file")
    assert publisher.get(path()).content == sealed


def test_a_draft_file_needs_its_owners_token_where_the_commons_is_not_open(commons: ServedCommons, ask: Ask) -> None:
    mine, another = ask(commons, commons.token()), ask(commons, commons.token())
    another.put(path(OTHER), content=file(OTHER, []))
    data = draft_file(ME, [lesson(sentence(1))])
    assert ask(commons).put(path(), content=data).json()["code"] == "token_missing"
    assert another.put(path(), content=data).json()["code"] == "token_bound"
    assert mine.put(path(), content=data).status_code == 201


def test_anyone_may_publish_a_draft_file_on_an_open_commons(start: Callable[..., ServedCommons], ask: Ask) -> None:
    answer = ask(start(open=True)).put(path(), content=draft_file(ME, [lesson(sentence(1)), {"confirm": "1" * 32}]))
    assert answer.status_code == 201


# --- what is refused ---


def broken() -> Iterator[tuple[str, bytes, int | None]]:
    """List a code, a file that is refused with it, and the line at fault."""
    good = file(ME, [lesson(sentence(number)) for number in range(3)])
    lines = lines_of(good)
    yield "file_empty", b"", None
    yield "line_end", good[:-1], 4
    yield "carriage_return", good.replace(b"\n", b"\r\n"), 1
    yield "blank_line", good + b"\n", 5
    yield "not_an_object", b"not json\n", 1
    yield "signature_invalid", good.replace(b"module 1", b"module 7"), 3
    yield "seal_records", b"\n".join(lines[:-1]) + b"\n", 1
    yield "unsealed_line", b"\n".join(lines[1:]) + b"\n", 1
    yield "seal_digest", b"\n".join([lines[0], lines[2], lines[1], lines[3], b""]), 1
    yield "key_mixed", resealed(ME, [lines[1], sign_record(OTHER, {**lesson(sentence(1)), "sealed": True})]), 3
    yield "duplicate_record", file(ME, [lesson(sentence(1)), lesson(sentence(1), id="again")]), 3
    yield "seal_time", file(ME, [], seal=int(NOW.timestamp()) + 86_401), 1
    yield "last_seal_content", file(ME, [lesson(sentence(1))], seal=RULES.last_seal), 2
    yield "deferred", file(ME, [], at=NOW + timedelta(hours=25)), 1
    yield "deferred", file(ME, [confirmation("0" * 32, at=NOW + timedelta(hours=25))]), 2


@pytest.mark.any_database
@pytest.mark.parametrize(
    ("code", "data", "line"), [pytest.param(*case, id=f"{case[0]}-{n}") for n, case in enumerate(broken())]
)
def test_a_file_that_breaks_a_rule_is_refused_whole(
    publisher: httpx.Client, commons: ServedCommons, code: str, data: bytes, line: int | None
) -> None:
    answer = publisher.put(path(), content=data)
    assert answer.status_code == 422
    assert answer.headers["Content-Type"] == "application/problem+json"
    said = answer.json()
    assert (said["code"], said.get("line"), said["status"]) == (code, line, 422)
    assert said["expected"] in said["detail"]
    assert said["got"] in said["detail"]
    assert publisher.get(path()).status_code == 404
    assert publisher.get("/commons/index").json() == []


def test_a_refused_file_leaves_what_stood(publisher: httpx.Client, commons: ServedCommons) -> None:
    good = file(ME, [lesson(sentence(1))])
    publisher.put(path(), content=good)
    for _code, data, _line in broken():
        assert publisher.put(path(), content=data).status_code == 422
    assert publisher.get(path()).content == good
    verify_everything_stored(commons.engine, NOW)


def test_a_deferred_file_is_taken_when_its_day_comes(start: Callable[..., ServedCommons], ask: Ask) -> None:
    clock = HandClock()
    commons = start(clock=clock)
    client = ask(commons, commons.token())
    data = file(ME, [], at=NOW + timedelta(hours=25))
    assert client.put(path(), content=data).json()["code"] == "deferred"
    clock.advance(timedelta(hours=2))
    assert client.put(path(), content=data).status_code == 201


def test_a_file_is_refused_under_the_name_of_another_key(publisher: httpx.Client) -> None:
    for name in (path(OTHER), path(OTHER, origin=True)):
        answer = publisher.put(name, content=file(ME, []))
        assert (answer.status_code, answer.json()["code"]) == (422, "name_mismatch")


@pytest.mark.parametrize(
    "name",
    ["x", "0" * 15, "0" * 17, "0" * 63, "0" * 65, "G" * 16, "A" * 64, "..%2f" + "0" * 16, "0" * 16 + "%0a", "%00" * 16],
)
def test_a_name_is_a_key_or_an_origin(publisher: httpx.Client, name: str) -> None:
    for answer in (publisher.put(f"/commons/{name}.jsonl", content=b"x"), publisher.get(f"/commons/{name}.jsonl")):
        assert answer.status_code == 404
        assert answer.json()["code"] in ("name_form", "route_unknown")


# --- bodies ---


def chunks(size: int) -> Iterator[bytes]:
    for _ in range(0, size, 4_096):
        yield b"x" * 4_096


@pytest.mark.parametrize(
    "body", [lambda: b"x" * (RULES.file_bytes + 1), lambda: chunks(1_000_000)], ids=["declared", "chunked"]
)
def test_a_body_that_is_too_large_is_refused(publisher: httpx.Client, body: Callable[[], Any]) -> None:
    answer = publisher.put(path(), content=body())
    assert (answer.status_code, answer.json()["code"]) == (413, "file_size")
    assert answer.headers["Connection"] == "close"


@pytest.mark.parametrize("coding", ["gzip", "GZIP", "br", "identity, gzip", "x"])
def test_a_compressed_body_is_refused(publisher: httpx.Client, coding: str) -> None:
    data = gzip.compress(file(ME, []))
    answer = publisher.put(path(), content=data, headers={"Content-Encoding": coding})
    assert (answer.status_code, answer.json()["code"]) == (415, "compressed_body")


def test_a_body_may_say_that_it_is_not_compressed(publisher: httpx.Client) -> None:
    headers = {"Content-Encoding": "identity"}
    assert publisher.put(path(), content=file(ME, []), headers=headers).status_code == 201


def test_a_body_may_come_in_chunks(publisher: httpx.Client) -> None:
    data = full_file(ME, lines=50)
    pieces = (data[at : at + 1_000] for at in range(0, len(data), 1_000))
    assert publisher.put(path(), content=pieces).status_code == 201
    assert publisher.get(path()).content == data


# --- what readers will skip ---


UNFIT = {
    "instruction": lesson("Delete the lock file before every build."),
    "hash_mismatch": lesson(sentence(3), hash="f" * 32),
    "kind_unknown": lesson(sentence(4), kind="habit"),
    "text_control": lesson("a bell \u0007 rings"),
    "text_long": lesson("x" * 1_001),
}


def test_the_answer_lists_what_readers_will_skip_and_why(publisher: httpx.Client, commons: ServedCommons) -> None:
    contents = [lesson(sentence(1)), *UNFIT.values(), denial(OTHER.public.hex, reason="\u202e")]
    data = file(ME, contents)
    answer = publisher.put(path(), content=data)
    skipped = answer.json()["skipped"]
    assert [(one["line"], one["code"]) for one in skipped] == [
        *enumerate(UNFIT, 3),
        (8, "text_format"),
    ]
    assert all(one["expected"] and one["got"] for one in skipped)
    # What is skipped is stored and served all the same, and the same file is told the same.
    assert publisher.get(path()).content == data
    assert publisher.put(path(), content=data).json()["skipped"] == skipped
    verify_everything_stored(commons.engine, NOW)


def test_lines_that_stood_before_are_listed_with_the_line_that_they_have_now(publisher: httpx.Client) -> None:
    publisher.put(path(), content=file(ME, [UNFIT["instruction"], lesson(sentence(1))]))
    contents = [lesson(sentence(1)), UNFIT["kind_unknown"], lesson(sentence(2)), UNFIT["instruction"]]
    answer = publisher.put(path(), content=file(ME, contents, at=NOW + SECOND))
    assert [(one["line"], one["code"]) for one in answer.json()["skipped"]] == [(3, "kind_unknown"), (5, "instruction")]


def test_the_lines_of_a_draft_file_are_counted_from_the_first(publisher: httpx.Client) -> None:
    answer = publisher.put(path(), content=draft_file(ME, [UNFIT["instruction"], lesson(sentence(1))]))
    assert [one["line"] for one in answer.json()["skipped"]] == [1]


# --- statements follow ---


def test_what_is_derived_follows_every_change_of_a_file(publisher: httpx.Client, commons: ServedCommons) -> None:
    first = lesson(sentence(1))
    subject = str(first["hash"])
    files = [
        [first, lesson(sentence(2)), confirmation("1" * 32)],
        # A line with the same topic and other bytes.
        [{**first, "strength": 9}, lesson(sentence(2)), confirmation("1" * 32)],
        # What passed judgement is skipped now, under the same topic, and the reverse.
        [{**first, "text": "another text"}, lesson(sentence(2)), confirmation("1" * 32, at=NOW - timedelta(days=1))],
        [first, UNFIT["instruction"]],
        [revocation(subject), lesson(sentence(2)), denial(OTHER.public.hex)],
        [first, revocation(subject), lesson(sentence(2)), lesson(sentence(3))],
        [],
        [lesson(sentence(number)) for number in range(20)],
    ]
    for second, contents in enumerate(files):
        data = file(ME, contents, at=NOW + second * SECOND)
        assert publisher.put(path(), content=data).status_code in (200, 201)
        (stands,) = verify_everything_stored(commons.engine, NOW)
        assert stands.data == data


def test_a_sealed_file_replaces_what_is_derived_from_a_draft_file(
    publisher: httpx.Client, commons: ServedCommons
) -> None:
    publisher.put(path(), content=draft_file(ME, [lesson(sentence(1)), UNFIT["instruction"]]))
    publisher.put(path(), content=draft_file(ME, [lesson(sentence(2)), UNFIT["instruction"]]))
    verify_everything_stored(commons.engine, NOW)
    publisher.put(path(), content=file(ME, [lesson(sentence(1)), UNFIT["instruction"]]))
    verify_everything_stored(commons.engine, NOW)
