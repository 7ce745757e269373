"""What a request to a peer may take, and where it may lead: real sockets, on loopback."""

from __future__ import annotations

import gzip
import itertools
import socket
import ssl
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

import pytest

from remem.commons.waiting import Patience
from remem_gossip import failures
from remem_gossip.addresses import Allowed, read_url
from remem_gossip.dial import SMALL_ANSWER, Dial, Reply
from remem_gossip.failures import PeerFailed
from remem_gossip.network import Resolve
from remem_gossip.signatures import verify
from remem_gossip.spans import Span
from remem_testkit.echoes import Secure, echoing, secured
from remem_testkit.files import NOW, key
from remem_testkit.liars import Liar, answer, lying
from remem_testkit.ticks import Ticks

NEAR = Allowed(http=True, private=True)
PATIENT = Patience(connect=20, read=20, whole=60)
PATH = "/gossip/fetch"
MOST = 100_000


def dial(
    url: str,
    *,
    allowed: Allowed = NEAR,
    patience: Patience = PATIENT,
    resolve: Resolve | None = None,
    certificates: ssl.SSLContext | None = None,
    token: str | None = None,
    time: Span | None = None,
) -> Dial:
    return Dial(
        read_url(url, Allowed(http=True, private=True)),
        key(1),
        lambda: NOW,
        allowed=allowed,
        patience=patience,
        resolve=resolve,
        certificates=certificates,
        token=token,
        time=time,
    )


def ask(url: str, *, most: int = MOST, body: bytes = b"{}", **settings: object) -> Reply:
    with closing(dial(url, **settings)) as peer:  # type: ignore[arg-type] # handed on as they come
        return peer.ask("POST", PATH, body, "application/json", most=most)


@pytest.fixture
def liar() -> Iterator[Liar]:
    with lying() as made:
        yield made


def port_of(url: str) -> int:
    return int(url.rsplit(":", 1)[1])


def leading(*addresses: str) -> Resolve:
    return lambda _host, _port: addresses


@pytest.fixture
def secure(tmp_path: Path) -> Iterator[Secure]:
    with secured("node.example", tmp_path) as made:
        yield made


# --- what goes and comes ---


def test_a_request_is_answered_with_status_headers_and_body(liar: Liar) -> None:
    liar.say(PATH, b"so", Content_Type="application/x-ndjson", X_Odd="1")
    reply = ask(liar.url)
    assert (reply.status, reply.body) == (200, b"so")
    assert (reply.headers["content-type"], reply.headers["x-odd"]) == ("application/x-ndjson", "1")


def test_each_request_is_signed_for_the_host_of_the_url(liar: Liar) -> None:
    liar.say("/base" + PATH, b"")
    name = f"http://node.example:{port_of(liar.url)}/base"
    ask(name, resolve=leading("127.0.0.1"), token="t0ken")
    first, *lines = liar.asked[0].split("\r\n")
    headers = [(name, value) for name, _, value in (line.partition(": ") for line in lines)]
    assert first == f"POST /base{PATH} HTTP/1.1"
    assert ("Host", f"node.example:{port_of(liar.url)}") in headers
    assert ("Authorization", "Bearer t0ken") in headers
    found = verify("POST", "/base" + PATH, headers, NOW)
    found.check(b"{}")
    assert found.key == key(1).public


def test_a_refusal_is_an_answer(liar: Liar) -> None:
    liar.say(PATH, b'{"code":"not_a_peer"}', "403 Forbidden")
    assert ask(liar.url).status == 403
    liar.say(PATH, b"", "503 Service Unavailable", Retry_After="7")
    assert ask(liar.url).headers["retry-after"] == "7"


def test_a_compressed_answer_is_unpacked(liar: Liar) -> None:
    body = b"so " * 10_000
    liar.say(PATH, gzip.compress(body), Content_Encoding="gzip")
    assert ask(liar.url).body == body


def test_a_long_body_goes_whole_and_one_connection_serves_many_requests() -> None:
    with echoing() as (url, opened), closing(dial(url)) as peer:
        for size in (0, 1, 8 * 1_048_576):
            assert peer.ask("POST", PATH, b"x" * size, most=100).body == str(size).encode()
        assert opened == [1]


def test_a_kept_connection_that_was_closed_is_made_again() -> None:
    with echoing(requests=1) as (url, opened), closing(dial(url)) as peer:
        for _ in range(3):
            assert peer.ask("POST", PATH, b"abc", most=100).body == b"3"
        assert sum(opened) == 3


# --- where it leads ---


def test_a_name_may_not_lead_to_this_machine(liar: Liar) -> None:
    liar.say(PATH, b"secret")
    for addresses in (
        ("127.0.0.1",),
        ("::1",),
        ("::ffff:127.0.0.1",),
        ("1.1.1.1", "127.0.0.1"),
        ("127.0.0.1", "1.1.1.1"),
    ):
        with pytest.raises(failures.AddressRefused):
            ask(f"http://node.example:{port_of(liar.url)}", allowed=Allowed(http=True), resolve=leading(*addresses))
    assert liar.asked == []


def test_localhost_is_resolved_and_refused_like_any_name(liar: Liar) -> None:
    with pytest.raises(failures.AddressRefused):
        ask(f"http://localhost:{port_of(liar.url)}", allowed=Allowed(http=True))
    liar.say(PATH, b"so")
    assert ask(f"http://localhost:{port_of(liar.url)}").body == b"so"
    assert len(liar.asked) == 1


def test_a_name_is_resolved_once_whatever_it_leads_to_later() -> None:
    asked: list[str] = []

    def rebinding(host: str, _port: int) -> Sequence[str]:
        asked.append(host)
        return ["127.0.0.1"] if len(asked) == 1 else ["127.0.0.2"]

    with (
        echoing(requests=1) as (url, opened),
        closing(dial(f"http://node.example:{port_of(url)}", resolve=rebinding)) as peer,
    ):
        for _ in range(3):
            peer.ask("POST", PATH, b"", most=100)
    assert asked == ["node.example"]
    assert sum(opened) == 3


def test_the_next_address_is_tried_where_one_takes_no_connection(liar: Liar) -> None:
    liar.say(PATH, b"so")
    url = f"http://node.example:{port_of(liar.url)}"
    assert ask(url, resolve=leading("127.0.0.2", "127.0.0.1")).body == b"so"
    with pytest.raises(failures.NotReached, match=r"127|refused"):
        ask(url, resolve=leading("127.0.0.2", "127.0.0.3"))


@pytest.mark.parametrize(
    "resolve",
    [
        pytest.param(leading(), id="to nothing"),
        pytest.param(lambda *_: (_ for _ in ()).throw(socket.gaierror(-2, "unknown")), id="to an error"),
        pytest.param(lambda *_: (_ for _ in ()).throw(UnicodeError("label too long")), id="to no name at all"),
    ],
)
def test_a_name_that_leads_nowhere_is_a_failure(resolve: Resolve) -> None:
    with pytest.raises(failures.NameUnknown):
        ask("http://node.example", resolve=resolve)


def test_a_resolver_that_never_answers_is_given_up() -> None:
    never = threading.Event()

    def waits(_host: str, _port: int) -> Sequence[str]:
        never.wait(60)
        return ["127.0.0.1"]

    try:
        with pytest.raises(failures.TooSlow):
            ask("http://node.example", resolve=waits, patience=Patience(connect=0.1, read=20, whole=60))
    finally:
        never.set()


@pytest.mark.parametrize(
    "status", ["301 Moved Permanently", "302 Found", "307 Temporary Redirect", "308 Permanent Redirect"]
)
def test_no_redirect_is_followed(liar: Liar, status: str) -> None:
    liar.say("/elsewhere", b"secret")
    liar.say(PATH, b"", status, Location="/elsewhere")
    with pytest.raises(failures.Redirected):
        ask(liar.url)
    assert liar.paths == [PATH]


def test_nothing_of_the_surroundings_is_used(liar: Liar, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    monkeypatch.setenv("NO_PROXY", "")
    monkeypatch.setenv("SSL_CERT_FILE", "/nowhere")
    liar.say(PATH, b"so")
    assert ask(liar.url).body == b"so"


# --- how long it takes ---

HASTY = Patience(connect=5, read=0.3, whole=20)
SHORT = Patience(connect=5, read=5, whole=0.6)


def trickle(pieces: Iterator[bytes] | Sequence[bytes], seconds: float) -> Iterator[bytes]:
    for piece in pieces:
        yield piece
        time.sleep(seconds)


def test_a_peer_that_says_nothing_is_given_up() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent, pytest.raises(failures.TooSlow):
        ask(f"http://127.0.0.1:{silent.getsockname()[1]}", patience=HASTY)


def test_a_head_that_trickles_in_is_given_up_as_a_whole(liar: Liar) -> None:
    liar.answers[PATH] = trickle((bytes([byte]) for byte in itertools.cycle(b"X-Odd: 1\r\n")), 0.05)
    with pytest.raises((failures.TooSlow, failures.NoAnswer)):
        ask(liar.url, patience=SHORT)
    liar.answers[PATH] = trickle(itertools.chain([b"HTTP/1.1 200 OK\r\n"], itertools.repeat(b"X-Odd: 1\r\n")), 0.05)
    with pytest.raises(failures.TooSlow):
        ask(liar.url, patience=SHORT)


def test_a_body_that_trickles_in_is_given_up_as_a_whole(liar: Liar) -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n"
    liar.answers[PATH] = trickle(itertools.chain([head], itertools.repeat(b"x")), 0.05)
    with pytest.raises(failures.TooSlow):
        ask(liar.url, patience=SHORT)


def test_all_that_is_asked_of_a_peer_ends_together_in_the_midst_of_an_answer_too(liar: Liar) -> None:
    ticks = Ticks()

    def trickling(_head: str) -> Iterator[bytes]:
        yield b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n"
        for _second in range(10):
            ticks.advance(30)
            yield b"x"

    liar.say("/quick", b"so")
    liar.answers[PATH] = trickling  # type: ignore[assignment] # its pieces, made when they are asked for
    patience = Patience(connect=20, read=20, whole=1_000)
    with closing(dial(liar.url, patience=patience, time=Span(200, clock=ticks))) as peer:
        assert peer.ask("GET", "/quick", most=10).body == b"so"
        with pytest.raises(failures.TooSlow, match="within 200 seconds"):
            peer.ask("POST", PATH, b"{}", most=MOST)
        with pytest.raises(failures.TooSlow, match="within 200 seconds"):
            peer.ask("GET", "/quick", most=10)
    assert liar.paths == ["/quick", PATH]


@pytest.mark.parametrize(
    ("patience", "seconds", "words"),
    [
        pytest.param(HASTY, 60, r"expected the next step within 0.3 seconds, got none", id="a step"),
        pytest.param(SHORT, 60, r"expected a whole answer within 0.6 seconds, got none", id="an answer"),
        pytest.param(SHORT, 0.4, r"expected all that was asked to be answered within 0.4 seconds, got less", id="all"),
    ],
)
def test_what_took_too_long_is_said_with_how_long_it_may_take(patience: Patience, seconds: float, words: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent, pytest.raises(failures.TooSlow, match=words):
        ask(f"http://127.0.0.1:{silent.getsockname()[1]}", patience=patience, time=Span(seconds))


def test_a_peer_that_reads_nothing_is_given_up() -> None:
    with socket.create_server(("127.0.0.1", 0)) as deaf, pytest.raises(failures.TooSlow):
        ask(f"http://127.0.0.1:{deaf.getsockname()[1]}", body=b"x" * 32_000_000, patience=HASTY)


def test_a_peer_that_never_shakes_hands_is_given_up() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent, pytest.raises(failures.TooSlow):
        ask(f"https://127.0.0.1:{silent.getsockname()[1]}", patience=Patience(connect=0.3, read=5, whole=20))


# --- how much comes ---


def endless(piece: bytes) -> Iterator[bytes]:
    return itertools.repeat(piece)


HEAD = b"HTTP/1.1 200 OK\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    ("first", "pieces"),
    [
        pytest.param(HEAD + b"\r\n", b"x" * 10_000, id="a body without an end"),
        pytest.param(HEAD + b"Content-Length: 1000000000000\r\n\r\n", b"x" * 10_000, id="a body of a terabyte"),
        pytest.param(CHUNKED, b"2710\r\n" + b"x" * 10_000 + b"\r\n", id="pieces without an end"),
        pytest.param(CHUNKED, b"1\r\nx\r\n" * 1_000, id="small pieces without an end"),
        pytest.param(CHUNKED, b"1;" + b"y" * 1_000 + b"\r\nx\r\n", id="pieces that say much of themselves"),
        pytest.param(
            b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 100 Continue\r\n\r\n" * 1_000, id="heads without an end"
        ),
        pytest.param(CHUNKED + b"0\r\n", b"X-Odd: 1\r\n" * 1_000, id="a trailer without an end"),
    ],
)
def test_an_answer_without_an_end_is_cut(liar: Liar, first: bytes, pieces: bytes) -> None:
    liar.answers[PATH] = itertools.chain([first], endless(pieces))
    with pytest.raises((failures.TooLong, failures.NoAnswer)) as caught:
        ask(liar.url)
    assert caught.value.code in ("peer_answer_size", "peer_answer")


def test_a_head_without_an_end_is_cut(liar: Liar) -> None:
    liar.answers[PATH] = itertools.chain([HEAD], endless(b"X-Odd: 1\r\n" * 1_000))
    with pytest.raises((failures.TooLong, failures.NoAnswer)):
        ask(liar.url)


def test_a_body_may_be_as_long_as_asked_for_and_no_longer(liar: Liar) -> None:
    liar.say(PATH, b"x" * MOST)
    assert len(ask(liar.url).body) == MOST
    liar.say(PATH, b"x" * (MOST + 1))
    with pytest.raises(failures.TooLong):
        ask(liar.url)


def test_a_body_may_come_in_many_pieces_and_not_byte_by_byte(liar: Liar) -> None:
    pieces = [b"%x\r\n%b\r\n" % (210, b"x" * 210)] * 4_096
    liar.answers[PATH] = CHUNKED + b"".join(pieces) + b"0\r\n\r\n"
    assert len(ask(liar.url, most=8_388_608).body) == 210 * 4_096
    liar.answers[PATH] = CHUNKED + b"1\r\nx\r\n" * 200_000 + b"0\r\n\r\n"
    with pytest.raises(failures.TooLong):
        ask(liar.url, most=8_388_608)


def test_a_refusal_is_short(liar: Liar) -> None:
    liar.say(PATH, b"x" * SMALL_ANSWER, "403 Forbidden")
    assert len(ask(liar.url).body) == SMALL_ANSWER
    liar.say(PATH, b"x" * (SMALL_ANSWER + 1), "403 Forbidden")
    with pytest.raises(failures.TooLong):
        ask(liar.url)


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(gzip.compress(b"\0" * 50_000_000), id="zeros"),
        pytest.param(gzip.compress(b"\0" * (MOST + 1)), id="one byte too many"),
    ],
)
def test_a_body_that_unpacks_to_more_is_cut(liar: Liar, body: bytes) -> None:
    liar.say(PATH, body, Content_Encoding="gzip")
    with pytest.raises(failures.TooLong):
        ask(liar.url)


@pytest.mark.parametrize(
    "said",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"SSH-2.0-OpenSSH_9.9\r\n", id="another protocol"),
        pytest.param(b"HTTP/1.1 abc\r\n\r\n", id="no status"),
        pytest.param(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n", id="an upgrade"),
        pytest.param(b"HTTP/1.1 999 So\r\nContent-Length: 0\r\n\r\n", id="a status of its own"),
        pytest.param(HEAD + b"Content-Length: 10\r\n\r\nabc", id="a body that is cut"),
        pytest.param(HEAD + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\nab", id="two lengths"),
        pytest.param(HEAD + b"X-Odd: 1\r\n", id="a head that is cut"),
        pytest.param(CHUNKED + b"zz\r\n", id="a piece of no size"),
        pytest.param(answer(b"abc", headers={"Content-Encoding": "br"}), id="a coding that was not asked for"),
        pytest.param(answer(b"abc", headers={"Content-Encoding": "gzip"}), id="gzip that is none"),
        pytest.param(answer(gzip.compress(b"abc")[:-4], headers={"Content-Encoding": "gzip"}), id="gzip that is cut"),
        pytest.param(answer(gzip.compress(b"a") * 2, headers={"Content-Encoding": "gzip"}), id="gzip twice"),
    ],
)
def test_what_is_no_answer_is_a_failure(liar: Liar, said: bytes) -> None:
    liar.answers[PATH] = said
    with pytest.raises(failures.NoAnswer) as caught:
        ask(liar.url)
    assert caught.value.code == "peer_answer"
    assert "got expected" not in str(caught.value)


def test_after_a_failure_the_peer_can_be_asked_again(liar: Liar) -> None:
    with closing(dial(liar.url)) as peer:
        for _ in range(3):
            liar.say(PATH, b"x" * (MOST + 1))
            with pytest.raises(failures.TooLong):
                peer.ask("POST", PATH, most=MOST)
            liar.say(PATH, b"so")
            assert peer.ask("POST", PATH, most=MOST).body == b"so"


def test_a_port_where_nobody_listens_is_a_failure() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with pytest.raises(failures.NotReached):
        ask(f"http://127.0.0.1:{port}")


# --- TLS ---


def test_tls_is_with_the_name_of_the_url(secure: Secure) -> None:
    reply = ask(f"https://node.example:{secure.port}", resolve=leading("127.0.0.1"), certificates=secure.trusted)
    assert reply.body == b"2"
    assert secure.names == ["node.example"]


@pytest.mark.parametrize("host", ["other.example", "127.0.0.1", "node.example.evil"])
def test_a_certificate_for_another_name_is_refused(secure: Secure, host: str) -> None:
    with pytest.raises(failures.TlsFailed) as caught:
        ask(f"https://{host}:{secure.port}", resolve=leading("127.0.0.1"), certificates=secure.trusted)
    assert caught.value.code == "peer_tls"


def test_a_certificate_of_no_authority_is_refused(secure: Secure) -> None:
    with pytest.raises(failures.TlsFailed):
        ask(f"https://node.example:{secure.port}", resolve=leading("127.0.0.1"))


def test_the_surroundings_name_no_authority(secure: Secure, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(secure.authority))
    with pytest.raises(failures.TlsFailed):
        ask(f"https://node.example:{secure.port}", resolve=leading("127.0.0.1"))


def test_plain_http_behind_https_is_a_failure_of_tls() -> None:
    def refuse(plain: socket.socket) -> socket.socket:
        plain.sendall(answer(b"", "400 Bad Request"))
        return plain

    with echoing(wrap=refuse) as (url, _opened), pytest.raises(failures.TlsFailed):
        ask(url.replace("http:", "https:"))


def test_every_failure_is_one_family_with_codes_of_their_own() -> None:
    kinds = [kind for kind in vars(failures).values() if isinstance(kind, type) and issubclass(kind, PeerFailed)]
    assert len({kind.code for kind in kinds}) == len(kinds)
