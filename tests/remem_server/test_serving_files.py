"""GET and HEAD /commons/<name>.jsonl: the bytes, content codings, and conditional requests."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from datetime import timedelta

import httpx
import pytest
from sqlalchemy import update

from remem.protocol import digest_of
from remem_server.database import tables
from remem_server.web.routes.files import matches
from remem_server.web.zipping import accepts_gzip
from remem_testkit.files import NOW, file, full_file, key, lesson, sentence
from remem_testkit.server import ServedCommons

pytestmark = pytest.mark.any_database

ME, OTHER = key(1), key(2)
PATH = f"/commons/{ME.public.hex}.jsonl"
DATA = full_file(ME, lines=40)
PLAIN, ZIPPED = f'"{digest_of(DATA)}"', f'"{digest_of(DATA)}-gzip"'


@pytest.fixture
def reader(publisher: httpx.Client, commons: ServedCommons, ask: Callable[..., httpx.Client]) -> httpx.Client:
    """Return a client without a token, of a commons that holds one file."""
    publisher.put(PATH, content=DATA)
    return ask(commons)


@pytest.mark.parametrize("name", [ME.public.hex, ME.public.origin], ids=["key", "origin"])
def test_anyone_reads_the_bytes_by_key_or_by_origin(reader: httpx.Client, name: str) -> None:
    answer = reader.get(f"/commons/{name}.jsonl")
    assert (answer.status_code, answer.content) == (200, DATA)
    assert answer.headers["ETag"] == PLAIN
    assert answer.headers["Content-Type"] == "application/x-ndjson"
    assert answer.headers["Vary"] == "Accept-Encoding"
    assert answer.headers["Cache-Control"] == "no-cache"
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert "Content-Encoding" not in answer.headers
    assert "Access-Control-Allow-Origin" not in answer.headers


def test_the_bytes_are_compressed_for_who_accepts_it_under_an_etag_of_their_own(reader: httpx.Client) -> None:
    url = reader.base_url.join(PATH)
    with httpx.stream("GET", url, headers={"Accept-Encoding": "gzip, deflate"}) as answer:
        raw = b"".join(answer.iter_raw())
    assert answer.headers["Content-Encoding"] == "gzip"
    assert answer.headers["ETag"] == ZIPPED
    assert answer.headers["Vary"] == "Accept-Encoding"
    assert int(answer.headers["Content-Length"]) == len(raw) < len(DATA)
    assert gzip.decompress(raw) == DATA


@pytest.mark.parametrize("coding", ["identity", "gzip"])
@pytest.mark.parametrize(
    ("asked", "status"),
    [
        ("{same}", 304),
        ("W/{same}", 304),
        ('"x", {same}', 304),
        ('"x" ,W/{same}', 304),
        ("*", 304),
        ("{other}", 200),
        ('"x"', 200),
        ('"x", "y"', 200),
        ("", 200),
        ("{bare}", 200),
    ],
)
def test_who_has_the_file_in_the_coding_that_it_asks_for_gets_304(
    reader: httpx.Client, coding: str, asked: str, status: int
) -> None:
    same, other = (PLAIN, ZIPPED) if coding == "identity" else (ZIPPED, PLAIN)
    headers = {
        "Accept-Encoding": coding,
        "If-None-Match": asked.format(same=same, other=other, bare=same.strip('"')),
    }
    for method in ("GET", "HEAD"):
        answer = reader.request(method, PATH, headers=headers)
        assert answer.status_code == status
        assert answer.headers["ETag"] == same
        assert answer.headers["Vary"] == "Accept-Encoding"
        assert answer.headers["Cache-Control"] == "no-cache"
        if status == 304:
            assert answer.content == b""


def test_a_new_file_answers_an_old_etag_with_its_bytes(reader: httpx.Client, publisher: httpx.Client) -> None:
    newer = file(ME, [lesson(sentence(1))], at=NOW + timedelta(seconds=1))
    publisher.put(PATH, content=newer)
    answer = reader.get(PATH, headers={"If-None-Match": PLAIN})
    assert (answer.status_code, answer.headers["ETag"]) == (200, f'"{digest_of(newer)}"')


@pytest.mark.parametrize("coding", ["identity", "gzip"])
def test_head_says_what_get_would_and_sends_nothing(reader: httpx.Client, coding: str) -> None:
    head = reader.head(PATH, headers={"Accept-Encoding": coding})
    get = reader.get(PATH, headers={"Accept-Encoding": coding})
    assert (head.status_code, head.content) == (200, b"")
    left_out = {"date", "x-request-id"}
    if coding == "gzip":
        left_out |= {"content-length", "transfer-encoding"}
    said, would = (
        {name: value for name, value in answer.headers.items() if name not in left_out} for answer in (head, get)
    )
    assert said == would


def test_a_file_that_is_not_held_is_404(reader: httpx.Client) -> None:
    for name in (OTHER.public.hex, OTHER.public.origin):
        answer = reader.get(f"/commons/{name}.jsonl")
        assert (answer.status_code, answer.json()["code"]) == (404, "file_unknown")
        assert reader.head(f"/commons/{name}.jsonl").status_code == 404


def test_an_origin_of_two_keys_answers_300_with_both_and_each_key_its_own(
    reader: httpx.Client, publisher: httpx.Client, commons: ServedCommons, ask: Callable[..., httpx.Client]
) -> None:
    # Two keys of one origin cost 2^32 work, so the second one is made to have it in the database.
    other = file(OTHER, [])
    ask(commons, commons.token()).put(f"/commons/{OTHER.public.hex}.jsonl", content=other)
    with commons.engine.begin() as connection:
        forged = update(tables.files).where(tables.files.c.key == OTHER.public.hex)
        connection.execute(forged.values(origin=ME.public.origin))
    answer = reader.get(f"/commons/{ME.public.origin}.jsonl")
    assert (answer.status_code, answer.json()["code"]) == (300, "origin_collision")
    addresses = answer.json()["addresses"]
    assert addresses == sorted(f"{one.public.hex}.jsonl" for one in (ME, OTHER))
    assert {reader.get(f"/commons/{address}").content for address in addresses} == {DATA, other}
    # Who publishes may still use the origin: the file says whose it is.
    newer = file(ME, [lesson(sentence(1))], at=NOW + timedelta(seconds=1))
    assert publisher.put(f"/commons/{ME.public.origin}.jsonl", content=newer).status_code == 200
    assert reader.get(PATH).content == newer


@pytest.mark.parametrize(
    ("header", "accepted"),
    [
        ("", False),
        ("identity", False),
        ("gzip", True),
        ("GZIP", True),
        ("x-gzip", True),
        ("deflate, gzip;q=0.5", True),
        ("gzip;q=0", False),
        ("gzip; q=0.0, *", False),
        ("*", True),
        ("*;q=0", False),
        ("br, *;q=0.1", True),
        ("gzip;q=x", False),
        ("notgzip", False),
    ],
)
def test_compression_is_negotiated(header: str, *, accepted: bool) -> None:
    assert accepts_gzip(header) is accepted


def test_without_if_none_match_nothing_matches() -> None:
    assert not matches(None, '"x"')
