"""A commons over HTTP: what is sent, what is read, and what a hostile one cannot do."""

import gzip
import itertools
import json
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from remem.commons import BadAnswer, CommonsRefused, commons_at, http
from remem.commons.answers import leads_on, read_etag
from remem.commons.base import INDEX_MOST, LISTED_MOST, UNREADABLE_MOST
from remem.commons.failures import no_connection
from remem.commons.http import HttpCommons
from remem.commons.waiting import Patience
from remem.errors import Unreachable, Usage
from remem.protocol import RULES, Version, accept, digest_of
from remem_testkit.files import NOW, file, key, lesson
from remem_testkit.liars import Liar, answer, lying
from remem_testkit.server import serve

ONE = key(1)
NAME = ONE.public.hex
FILE = file(ONE, [lesson("a build fails")], seal=5)
SECURE = "https://commons.example"
PATH = f"/commons/{NAME}.jsonl"
ENTRY = {"key": NAME, "origin": ONE.public.origin, "seal": 5, "digest": digest_of(FILE), "principal": None}


@pytest.fixture
def liar() -> Iterator[Liar]:
    with lying() as made:
        yield made


@pytest.fixture
def commons(liar: Liar) -> Iterator[HttpCommons]:
    made = HttpCommons(liar.url, patience=Patience(connect=5, read=5, whole=20))
    yield made
    made.close()


def test_a_file_goes_there_and_comes_back_byte_for_byte(tmp_path: Path) -> None:
    with serve(tmp_path) as server:
        token = server.token(principal="p1")
        commons = commons_at(server.url, token)
        assert commons.index(None).entries == ()
        assert commons.put(accept(FILE, now=NOW)).outcome == "new"
        assert commons.put(accept(FILE, now=NOW)).outcome == "unchanged"
        assert commons.get(NAME) == FILE
        assert commons.get(key(2).public.hex) is None
        listing = commons.index(None)
        assert [(entry.key, entry.version, entry.principal) for entry in listing.entries] == [
            (NAME, Version(5, digest_of(FILE)), "p1")
        ]
        assert listing.whole
        assert commons.index(listing.bookmark).unchanged
        descriptor = commons.describe()
        assert descriptor is not None
        assert not descriptor.open
        commons.close()


def test_an_older_file_is_refused_with_what_stands(tmp_path: Path) -> None:
    older = file(ONE, [lesson("a build fails")], seal=4)
    with serve(tmp_path, open=True) as server:
        commons = commons_at(server.url)
        commons.put(accept(FILE, now=NOW))
        with pytest.raises(CommonsRefused) as refused:
            commons.put(accept(older, now=NOW))
        commons.close()
    assert refused.value.code == "older_file"
    assert refused.value.held == Version(5, digest_of(FILE))
    assert refused.value.exit_code == 3


def test_a_refusal_carries_the_code_of_the_commons_and_a_hint(tmp_path: Path) -> None:
    with serve(tmp_path) as server:
        commons = commons_at(server.url)
        with pytest.raises(CommonsRefused) as refused:
            commons.put(accept(FILE, now=NOW))
        commons.close()
    assert refused.value.code == "token_missing"
    assert refused.value.hint == f"ask its operator for a token, then: remem login {server.url}"


def test_no_answer_is_unreachable(liar: Liar) -> None:
    commons = HttpCommons("http://127.0.0.1:1")
    with pytest.raises(Unreachable) as unreachable:
        commons.get(NAME)
    assert unreachable.value.exit_code == 4
    commons.close()


def test_https_where_there_is_no_tls_is_said_in_words(tmp_path: Path) -> None:
    with serve(tmp_path) as server:
        target = server.url.replace("http:", "https:")
        commons = HttpCommons(target)
        with pytest.raises(Unreachable) as unreachable:
            commons.describe()
        commons.close()
    assert unreachable.value.message == f"expected https at {target}, got an answer without TLS"
    assert unreachable.value.hint == "if it has no TLS, its address begins with http://"


def test_http_where_there_is_tls_is_said_in_words(liar: Liar, commons: HttpCommons) -> None:
    # What a server of TLS 1.2 says to whoever does not speak it.
    liar.answers[PATH] = b"\x15\x03\x01\x00\x02\x02\x46"
    with pytest.raises(BadAnswer) as bad:
        commons.get(NAME)
    assert bad.value.message == f"expected an answer from {liar.url}, got something that is no HTTP"
    assert bad.value.hint == "if it has TLS, its address begins with https://"


def test_a_connection_that_is_closed_without_an_answer_is_said_in_words(liar: Liar, commons: HttpCommons) -> None:
    liar.answers[PATH] = b""
    with pytest.raises(BadAnswer) as bad:
        commons.get(NAME)
    assert bad.value.message == (
        f"expected an answer from {liar.url}, got server disconnected without sending a response"
    )


def certificate_failure(why: str) -> ssl.SSLError:
    error = ssl.SSLCertVerificationError(1, "certificate verify failed")
    error.verify_message = why
    return error


def tls_failure(reason: str | None) -> ssl.SSLError:
    error = ssl.SSLError(1, "[SSL] some words (_ssl.c:1006)")
    if reason is not None:
        error.reason = reason
    return error


FAILURES = {
    "a certificate of nobody known": (
        certificate_failure("self-signed certificate"),
        f"expected a certificate that is good for {SECURE}, got one that is not: self-signed certificate",
    ),
    "a certificate of another host": (
        certificate_failure("Hostname mismatch, certificate is not valid for 'x'."),
        (
            f"expected a certificate that is good for {SECURE},"
            " got one that is not: hostname mismatch, certificate is not valid for 'x'"
        ),
    ),
    "an alert": (
        tls_failure("TLSV1_ALERT_PROTOCOL_VERSION"),
        f"expected https at {SECURE}, got a failure of TLS: tlsv1 alert protocol version",
    ),
    "no reason": (tls_failure(None), f"expected https at {SECURE}, got a failure of TLS: no reason"),
    "no TLS": (tls_failure("RECORD_LAYER_FAILURE"), f"expected https at {SECURE}, got an answer without TLS"),
    "something else": (OSError(111, "Connection refused"), f"expected an answer from {SECURE}, got connection refused"),
}


@pytest.mark.parametrize(("cause", "message"), FAILURES.values(), ids=FAILURES.keys())
def test_a_failure_to_connect_is_said_in_words(cause: OSError, message: str) -> None:
    error = OSError(str(cause))
    error.__cause__ = cause
    assert no_connection(SECURE, error).message == message


ENDLESS = itertools.repeat(b"x" * 65_536)
NOTHINGS = itertools.repeat(b"\x00\x00\x00\xff\xff" * 10_000)
BOMB = gzip.compress(b"x" * 50_000_000)

LIES = {
    "a redirect is not followed": (answer(b"", "307 Temporary Redirect", {"Location": "/elsewhere"}), "redirect"),
    "a body that is too long": (answer(b"x" * (RULES.file_bytes + 1)), "answer_size"),
    "a body without an end": (itertools.chain([b"HTTP/1.1 200 OK\r\n\r\n"], ENDLESS), "answer_size"),
    "a body that is cut short": (answer(FILE)[:-10], "answer_form"),
    "a body that unpacks to more than any file": (answer(BOMB, headers={"Content-Encoding": "gzip"}), "answer_size"),
    "a body that is no gzip": (answer(FILE, headers={"Content-Encoding": "gzip"}), "answer_form"),
    "gzip that is cut short": (answer(gzip.compress(FILE)[:-9], headers={"Content-Encoding": "gzip"}), "answer_form"),
    "bytes behind gzip": (answer(gzip.compress(FILE) + b"x", headers={"Content-Encoding": "gzip"}), "answer_form"),
    "a second gzip": (answer(gzip.compress(FILE) * 2, headers={"Content-Encoding": "gzip"}), "answer_form"),
    "gzip that unpacks to nothing without an end": (
        itertools.chain([b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n", gzip.compress(b"")[:10]], NOTHINGS),
        "answer_size",
    ),
    "a coding that nobody asked for": (answer(FILE, headers={"Content-Encoding": "br"}), "answer_form"),
    "something that is not HTTP": (b"SSH-2.0-OpenSSH_9.2\r\n", "answer_form"),
    "a status that means nothing here": (answer(FILE, "206 Partial Content"), "answer_form"),
}


@pytest.mark.parametrize(("bytes_", "code"), LIES.values(), ids=LIES.keys())
def test_a_bad_answer_has_a_code(liar: Liar, commons: HttpCommons, bytes_: object, code: str) -> None:
    liar.answers[PATH] = bytes_  # type: ignore[assignment]
    with pytest.raises(BadAnswer) as bad:
        commons.get(NAME)
    assert bad.value.code == code
    assert "/elsewhere" not in liar.paths


def test_compressed_bytes_come_out_as_they_were(liar: Liar, commons: HttpCommons) -> None:
    liar.say(PATH, gzip.compress(FILE), Content_Encoding="gzip")
    assert commons.get(NAME) == FILE


def test_a_kept_connection_that_was_closed_is_opened_again(liar: Liar, commons: HttpCommons) -> None:
    liar.answers[PATH] = answer(FILE, headers={"Connection": "keep-alive"})
    for _time in range(20):
        assert commons.get(NAME) == FILE


def test_a_head_that_trickles_in_ends_with_the_exchange(liar: Liar) -> None:
    enough = threading.Event()

    def trickle() -> Iterator[bytes]:
        yield b"HTTP/1.1 200 OK\r\n"
        while not enough.wait(0.05):
            yield b"X-More: 1\r\n"

    liar.answers[PATH] = trickle()
    commons = HttpCommons(liar.url, patience=Patience(connect=5, read=5, whole=0.5))
    with pytest.raises(Unreachable, match="no end within"):
        commons.get(NAME)
    with pytest.raises(Unreachable, match="none before"):
        commons.get(NAME)
    enough.set()


INDEXES = {
    "no JSON": (b"<html>", "answer_form"),
    "no array": (b'{"key":1}', "answer_form"),
    "a nest of arrays": (b"[" * 100_000, "answer_form"),
    "a number of 10,000 digits": (b"[" + b"9" * 10_000 + b"]", "answer_form"),
    "more than an index may be": (b"[" + b" " * INDEX_MOST + b"]", "answer_size"),
    "more values than an index may have": (b"[" + b"[]," * 10 * LISTED_MOST + b"[]]", "answer_size"),
}


@pytest.mark.parametrize(("body", "code"), INDEXES.values(), ids=INDEXES.keys())
def test_garbage_for_an_index_is_a_bad_answer(liar: Liar, commons: HttpCommons, body: bytes, code: str) -> None:
    liar.say("/commons/index", body)
    with pytest.raises(BadAnswer) as bad:
        commons.index(None)
    assert bad.value.code == code


@pytest.mark.parametrize(
    "entry",
    [
        7,
        {**ENTRY, "key": NAME.upper()},
        {**ENTRY, "key": NAME[:16]},
        {**ENTRY, "digest": None},
        {**ENTRY, "seal": 2**53},
        {**ENTRY, "seal": True},
        {**ENTRY, "seal": "5"},
        {**ENTRY, "principal": 5},
        {**ENTRY, "principal": "two\nlines"},
        {**ENTRY, "principal": "p" * 129},
        {**ENTRY, "principal": "\ud800"},
    ],
)
def test_garbage_for_an_entry_is_listed_and_the_others_are_read(
    liar: Liar, commons: HttpCommons, entry: object
) -> None:
    liar.say("/commons/index", json.dumps([entry, ENTRY]).encode())
    listing = commons.index(None)
    assert [one.key for one in listing.entries] == [NAME]
    assert [one.code for one in listing.unreadable] == ["index_entry"]


def test_pages_follow_the_cursor_and_never_the_link(liar: Liar, commons: HttpCommons) -> None:
    page = json.dumps([ENTRY]).encode()
    link = '<https://elsewhere.example/commons/index?since=1>; rel="next"'
    liar.say("/commons/index", page, ETag='"a"', Remem_Cursor="1", Link=link)
    liar.say("/commons/index?since=1", page, ETag='"a"', Remem_Cursor="2")
    listing = commons.index(None)
    assert len(listing.entries) == 2
    assert liar.paths == ["/commons/index", "/commons/index?since=1"]
    liar.say("/commons/index?since=2", b"", "304 Not Modified")
    assert commons.index(listing.bookmark).unchanged
    assert 'if-none-match: "a"' in liar.asked[-1].lower()


def test_pages_that_go_in_circles_are_a_bad_answer(liar: Liar, commons: HttpCommons) -> None:
    for path in ("/commons/index", "/commons/index?since=1"):
        liar.say(path, json.dumps([ENTRY]).encode(), Remem_Cursor="1", Link='<x>; rel="next"')
    with pytest.raises(BadAnswer) as bad:
        commons.index(None)
    assert bad.value.code == "index_loop"


def endless_index(liar: Liar, pages: int, body: bytes) -> None:
    """Serve an index whose every page promises another."""
    for number in range(pages):
        path = f"/commons/index?since={number}" if number else "/commons/index"
        liar.say(path, body, Remem_Cursor=str(number + 1), Link='<x>; rel="next"')


ENDS = {
    "after so many pages": ("PAGES_MOST", 3, 3),
    "after so many bytes": ("LISTING_BYTES", len(json.dumps([ENTRY])) + 1, 2),
}


@pytest.mark.parametrize(("bound", "most", "asked"), ENDS.values(), ids=ENDS.keys())
def test_a_listing_without_an_end_is_cut_and_goes_on_next_time(
    liar: Liar, commons: HttpCommons, monkeypatch: pytest.MonkeyPatch, bound: str, most: int, asked: int
) -> None:
    monkeypatch.setattr(http, bound, most)
    endless_index(liar, 10, json.dumps([ENTRY]).encode())
    listing = commons.index(None)
    assert (len(liar.asked), len(listing.entries)) == (asked, asked)
    assert listing.more
    assert not listing.whole
    commons.index(listing.bookmark)
    assert liar.paths[asked] == f"/commons/index?since={asked}"


def test_a_listing_is_cut_when_its_time_is_over(liar: Liar) -> None:
    endless_index(liar, 10, json.dumps([ENTRY]).encode())
    commons = HttpCommons(liar.url, patience=Patience(listing=0))
    assert commons.index(None).more
    assert len(liar.asked) == 1
    commons.close()


def test_a_page_without_an_entry_ends_a_listing(liar: Liar, commons: HttpCommons) -> None:
    endless_index(liar, 10, b"[]")
    assert commons.index(None).more
    assert len(liar.asked) == 1


def test_what_is_no_entry_is_named_up_to_a_number_and_counted_beyond(liar: Liar, commons: HttpCommons) -> None:
    liar.say("/commons/index", json.dumps([ENTRY] + [7] * 150_000).encode())
    listing = commons.index(None)
    assert len(listing.entries) == 1
    *named, rest = listing.unreadable
    assert len(named) == UNREADABLE_MOST
    assert (rest.code, rest.detail) == ("unreadable_more", "expected names of files, got 149900 more that are none")


LINKS = {
    "a next page": ('<x>; rel="next"', True),
    "a next page without quotes": ("<x>;rel=next", True),
    "a next page among others": ('<a,b>; rel="prev", <y>; title=t; rel="last next"', True),
    "another page": ('<x>; rel="prev"', False),
    "a page called next": ("<next>; rel=prev; title=next", False),
    "no link": ("", False),
    "many that begin and do not end": ("<" * 1_024, False),
}


@pytest.mark.parametrize(("link", "more"), LINKS.values(), ids=LINKS.keys())
def test_a_link_tells_whether_there_is_more(link: str, more: bool) -> None:
    assert leads_on(link) is more


def test_a_link_that_is_too_long_is_a_bad_answer(liar: Liar, commons: HttpCommons) -> None:
    liar.say("/commons/index", json.dumps([ENTRY]).encode(), Remem_Cursor="1", Link="<" * 1_025)
    with pytest.raises(BadAnswer) as bad:
        commons.index(None)
    assert bad.value.code == "answer_form"


@pytest.mark.parametrize("etag", ['"\xe9"', '"a b"', '"\x7f"', "", '"' + "a" * 256, None])
def test_an_etag_that_cannot_be_sent_back_is_none(etag: str | None) -> None:
    assert read_etag(etag) is None
    assert read_etag('W/"a"') == 'W/"a"'


def test_a_strange_etag_is_not_kept_and_one_that_was_is_not_sent(liar: Liar, commons: HttpCommons) -> None:
    page = json.dumps([ENTRY]).encode()
    liar.answers["/commons/index"] = answer(page, headers={"ETag": "@"}).replace(b"@", b'"\xe9"')
    assert commons.index(None).bookmark is None
    assert commons.index('{"etag": "\\u00e9", "since": null}').whole
    assert "if-none-match" not in liar.asked[-1].lower()


@pytest.mark.parametrize("target", ["http://a..b", "http://.", "http://xn--", f"http://{'a' * 300}"])
def test_a_host_that_is_none_is_unreachable_in_one_line(target: str) -> None:
    commons = commons_at(target)
    with pytest.raises(Unreachable) as unreachable:
        commons.describe()
    assert unreachable.value.message.startswith(f"expected an answer from {target}, got ")
    assert "\n" not in unreachable.value.message
    commons.close()


def test_a_commons_that_was_set_back_is_listed_anew(liar: Liar, commons: HttpCommons) -> None:
    liar.say("/commons/index", json.dumps([ENTRY]).encode(), Remem_Cursor="9", ETag='"a"')
    bookmark = commons.index(None).bookmark
    liar.say("/commons/index?since=9", b"[]", Remem_Cursor="3", ETag='"b"')
    liar.say("/commons/index", json.dumps([ENTRY]).encode(), Remem_Cursor="3", ETag='"b"')
    listing = commons.index(bookmark)
    assert listing.whole
    assert [one.key for one in listing.entries] == [NAME]


def test_a_host_that_only_serves_files_has_no_descriptor_and_may_have_no_cursor(
    liar: Liar, commons: HttpCommons
) -> None:
    assert commons.describe() is None
    liar.say("/commons/index", json.dumps([ENTRY]).encode())
    listing = commons.index(None)
    assert listing.whole
    assert listing.bookmark is None


@pytest.mark.parametrize("missing", ["404 Not Found", "403 Forbidden"])
def test_a_host_may_have_its_files_beside_the_index_at_its_address(
    liar: Liar, commons: HttpCommons, missing: str
) -> None:
    for path in ("/.well-known/remem", "/commons/index"):
        liar.say(path, b"<html>", missing)
    assert commons.describe() is None
    liar.say("/index", json.dumps([ENTRY]).encode(), ETag='"one"')
    liar.say(f"/{NAME}.jsonl", FILE)
    listing = commons.index(None)
    assert listing.whole
    assert [entry.key for entry in listing.entries] == [NAME]
    assert commons.get(NAME) == FILE
    liar.say("/index", b"", "304 Not Modified")
    assert commons.index(listing.bookmark).unchanged


@pytest.mark.parametrize("page", [None, b"<html>", b'{"key":1}'], ids=["nothing", "a page", "an object"])
def test_a_place_without_an_index_is_no_commons(liar: Liar, commons: HttpCommons, page: bytes | None) -> None:
    if page is not None:
        liar.say("/index", page)
    with pytest.raises(BadAnswer) as bad:
        commons.index(None)
    assert bad.value.code == "no_commons"


DESCRIPTORS = {
    "of another version": ({"protocol": [2], "key": NAME}, "protocol_version"),
    "without a key": ({"protocol": [1]}, "key_form"),
    "with a key that is none": ({"protocol": [1], "key": "00" * 32}, "key_invalid"),
    "with operators that are no keys": ({"protocol": [1], "key": NAME, "operators": ["x"]}, "key_form"),
    "that is no object": ([1], "answer_form"),
}


@pytest.mark.parametrize(("fields", "code"), DESCRIPTORS.values(), ids=DESCRIPTORS.keys())
def test_a_descriptor_is_read_or_refused(liar: Liar, commons: HttpCommons, fields: object, code: str) -> None:
    liar.say("/.well-known/remem", json.dumps(fields).encode())
    with pytest.raises(BadAnswer) as bad:
        commons.describe()
    assert bad.value.code == code


def test_a_problem_without_sense_still_is_a_refusal(liar: Liar, commons: HttpCommons) -> None:
    for body in (b"<html>", b"[1]", b'{"code":"NOT A CODE","detail":5,"held":{"seal":"x"}}', b"[" * 60_000):
        liar.say(PATH, body, "403 Forbidden")
        with pytest.raises(CommonsRefused) as refused:
            commons.get(NAME)
        assert refused.value.code == "http_403"


def test_a_token_goes_to_its_target_and_into_no_message(liar: Liar) -> None:
    secret = "remem_s3cret"
    commons = HttpCommons(liar.url, secret)
    liar.answers[PATH] = answer(b"", "302 Found", {"Location": "http://127.0.0.1:1/x"})
    with pytest.raises(BadAnswer) as bad:
        commons.get(NAME)
    assert f"authorization: bearer {secret}" in liar.asked[0].lower()
    assert len(liar.asked) == 1
    assert secret not in f"{bad.value} {bad.value.hint} {vars(bad.value)}"
    commons.close()
    with pytest.raises(Usage) as usage:
        HttpCommons(liar.url, "two words")
    assert "two words" not in str(usage.value)


def test_plain_http_beyond_this_machine_is_warned_of() -> None:
    assert HttpCommons("http://127.0.0.1:9").warnings == ()
    assert HttpCommons("http://localhost").warnings == ()
    assert HttpCommons("http://[::1]:9").warnings == ()
    (warning,) = HttpCommons("http://commons.example", "token").warnings
    assert "token" in warning


SPELLINGS = {
    "the scheme and the host in small letters": ("HTTPS://Commons.Example/", "https://commons.example"),
    "a usual port left out": ("https://commons.example:443/a/", "https://commons.example/a"),
    "another port kept": ("http://127.0.0.1:7363", "http://127.0.0.1:7363"),
    "an address of version 6 in brackets": ("http://[::1]:80", "http://[::1]"),
}


@pytest.mark.parametrize(("written", "spelled"), SPELLINGS.values(), ids=SPELLINGS.keys())
def test_a_url_has_one_spelling(written: str, spelled: str) -> None:
    assert commons_at(written).target == spelled


@pytest.mark.parametrize(
    "written",
    [
        "ftp://commons.example",
        "https://",
        "https://user:word@commons.example",
        "https://commons.example/?a=b",
        "https://commons.example/#a",
        "https://commons.example:port",
        "https://commons.example/a b",
        "https://[::1",
        "file:///tmp",
        "https://commons.example/" + "a" * 70_000,
        "",
        "a\0b",
    ],
)
def test_what_is_no_target_is_a_usage_error(written: str) -> None:
    with pytest.raises(Usage) as usage:
        commons_at(written)
    assert usage.value.exit_code == 2


def test_a_name_without_a_scheme_is_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert commons_at("commons.example").target == str(tmp_path / "commons.example")
    assert commons_at("./a/../b").target == str(tmp_path / "b")
