"""A commons behind nginx and behind Caddy, as deploy/proxy configures them: real programs, before a real commons."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from random import Random

import httpx
import pytest

from remem.protocol import digest_of, lesson_hash
from remem_gossip.account import Account
from remem_gossip.addresses import Allowed, read_url
from remem_gossip.budget import Budget
from remem_gossip.dial import Dial
from remem_gossip.exchange import Exchange
from remem_gossip.meeting import meet
from remem_server.database.engine import writing
from remem_server.gossip import peers
from remem_testkit.files import NOW, file, full_file, key, lesson
from remem_testkit.fronts import ELSEWHERE, FRONTS, INSIDE, OUTSIDE, Front, fronted
from remem_testkit.nodes import PLENTY, MapNode
from remem_testkit.server import ServedCommons, serve

TEXT = "the import of yaml fails on a machine without a compiler"
LATER = NOW + timedelta(minutes=1)
WAITS = {
    "nginx": {"header_timeout 10s": "header_timeout 1s", "body_timeout 10s": "body_timeout 1s"},
    "caddy": {"read_header 10s": "read_header 1s", "read_body 30s": "read_body 1s"},
}
ADDRESS = f"/commons/{key(1).public.hex}.jsonl"


@pytest.fixture(scope="module", params=FRONTS)
def front_name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedCommons]:
    with serve(tmp_path_factory.mktemp("data"), proxies=("127.0.0.1",)) as commons:
        yield commons


@pytest.fixture(scope="module")
def front(front_name: str, served: ServedCommons, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Front]:
    with fronted(front_name, served.url, tmp_path_factory.mktemp(front_name)) as front:
        yield front


@pytest.fixture(scope="module")
def token(served: ServedCommons) -> str:
    return served.token()


@pytest.fixture(scope="module")
def published(front: Front, token: str) -> bytes:
    """Publish a file through the proxy."""
    data = file(key(1), [lesson(TEXT)])
    with front.client(token=token) as client:
        assert client.put(ADDRESS, content=data).status_code in (200, 201)
    return data


@pytest.mark.parametrize("coding", ["identity", "gzip"])
def test_a_file_comes_as_it_was_published_and_is_revalidated_by_its_etag(
    front: Front, published: bytes, coding: str
) -> None:
    with front.client() as client:
        client.headers["Accept-Encoding"] = coding
        came = client.get(ADDRESS)
        assert came.content == published
        assert came.headers.get("Content-Encoding", "identity") == coding
        again = client.get(ADDRESS, headers={"If-None-Match": came.headers["ETag"]})
    assert (again.status_code, again.content) == (304, b"")
    assert again.headers["ETag"] == came.headers["ETag"]


def test_the_index_is_revalidated_by_its_etag(front: Front, published: bytes) -> None:
    with front.client() as client:
        etag = client.get("/commons/index").headers["ETag"]
        assert client.get("/commons/index", headers={"If-None-Match": etag}).status_code == 304


def test_what_changed_is_there_with_the_next_request(front_name: str, tmp_path: Path) -> None:
    (tmp_path / "front").mkdir()
    with (
        serve(tmp_path / "data") as served,
        fronted(front_name, served.url, tmp_path / "front") as front,
        front.client(token=served.token()) as client,
    ):
        for number, at in enumerate((NOW, LATER)):
            data = file(key(1), [lesson(f"{TEXT}, case {number}", at=NOW)], at=at)
            assert client.put(ADDRESS, content=data).status_code == 201 - number
            assert client.get(ADDRESS).content == data
            assert client.get("/commons/index").json()[0]["digest"] == digest_of(data)


def test_answers_about_lessons_are_kept_by_nginx_alone_and_none_that_came_for_a_token(
    front: Front, token: str, published: bytes
) -> None:
    with front.client() as anyone, front.client(token=token) as bearer:
        asked = [client.get("/commons/lessons", params={"q": "yaml"}) for client in (anyone, anyone, bearer)]
        assert [answer.json()["lessons"][0]["text"] for answer in asked] == [TEXT] * 3
        first, second, third = (answer.headers.get("X-Cache") for answer in asked)
        assert "X-Cache" not in anyone.get(ADDRESS).headers
    if front.name == "nginx":
        # However long the test was held up between the two.
        assert second in ("HIT", "STALE", "UPDATING", "EXPIRED")
        assert (first, third) == ("MISS", "BYPASS")
    else:
        assert (first, second, third) == (None, None, None)


def test_a_delivery_network_may_keep_lessons_for_seconds_and_no_refusal(
    front: Front, token: str, published: bytes
) -> None:
    with front.client() as anyone, front.client(token=token) as bearer:
        one = f"/commons/lessons/{lesson_hash('error', TEXT)}"
        for path in ("/commons/lessons", one):
            came = anyone.get(path)
            assert came.headers["CDN-Cache-Control"] == "max-age=5, stale-while-revalidate=30"
            # Readers themselves revalidate.
            assert "no-cache" in came.headers["Cache-Control"]
            assert "CDN-Cache-Control" not in bearer.get(path).headers
        for path in (ADDRESS, "/commons/index", f"/commons/lessons/{'0' * 32}"):
            assert "CDN-Cache-Control" not in anyone.get(path).headers


def test_a_body_that_is_too_large_is_refused_by_the_commons_or_before_it(front: Front, token: str) -> None:
    with front.client(token=token) as client:
        little = client.put(ADDRESS, content=b"x" * 262_145)
        much = client.put(ADDRESS, content=b"x" * 300_000)
    # Caddy passes a body on while it comes, also where the commons has ended the connection by then; before 2.7 it
    # gives its own limit out as a failure of the commons.
    too_large = (413,) if front.name == "nginx" else (413, 502)
    assert little.status_code in too_large
    assert little.status_code == 502 or little.json()["code"] == "file_size"
    assert much.status_code in too_large
    assert front.name != "nginx" or b"file_size" not in much.content


def test_nodes_exchange_whole_files_both_ways_through_it(front: Front, served: ServedCommons, published: bytes) -> None:
    signer, allowed = key(900), Allowed(http=True, private=True)
    with writing(served.engine) as connection:
        url = "http://127.0.0.1:9"
        peers.add(connection, read_url(url, allowed), allowed, NOW, publish=False)
        peers.note_key(connection, url, signer.public.hex)
    node = MapNode()
    # Three full files are more than a file may have; each proxy has its own here, so that none is known before.
    brought = [node.put(full_file(key(100 * (1 + FRONTS.index(front.name)) + number))) for number in range(3)]
    account = Account(PLENTY, lambda _more: Budget())
    exchange = Exchange(node, front.url, account, Random(0), now=NOW)
    dial = Dial(read_url(front.url, allowed), signer, lambda: NOW, allowed=allowed, certificates=front.trust)
    with closing(dial):
        meet(exchange, dial, account)
    assert exchange.report.sent > 300_000
    assert exchange.report.stand_there == len(brought)
    assert node.files[key(1).public.hex].data == published
    with front.client() as client:
        for one in brought:
            assert client.get(f"/commons/{one.key.hex}.jsonl").content == one.data


def test_an_offer_that_is_too_large_is_refused_by_the_commons_or_before_it(front: Front, token: str) -> None:
    with front.client(token=token) as client:
        little = client.post("/gossip/offer", content=b"x" * 8_388_609)
        much = client.post("/gossip/offer", content=b"x" * 8_500_000)
    # The commons refuses it by its length, and ends the connection while the proxy may still be passing it on.
    assert little.status_code in (422, 502)
    assert little.status_code != 422 or little.json()["code"] == "gossip_body"
    assert much.status_code in ((413,) if front.name == "nginx" else (413, 422, 502))
    assert front.name != "nginx" or b"gossip_body" not in much.content


def hidden(front: Front, address: str, path: str) -> int:
    """Ask for a path as it is spelled."""
    with front.client(address) as client:
        request = client.build_request("GET", "/")
        request.url = request.url.copy_with(raw_path=path.encode())
        return client.send(request).status_code


@pytest.mark.parametrize(
    "path",
    ["/metrics", "/metrics?x=1", "/%6detrics", "//metrics", "/commons/../metrics", "/commons/%2e%2e/metrics",
     "/admin/journal", "/admin/", "/%61dmin/journal", "//admin/journal", "/docs/../admin/journal"],
)  # fmt: skip
def test_what_is_the_operators_is_not_reached_from_outside(front: Front, path: str) -> None:
    assert hidden(front, OUTSIDE, path) == 403


@pytest.mark.parametrize(("path", "status"), [("/metrics", 200), ("/admin/journal", 401)])
def test_what_is_the_operators_is_reached_from_inside(front: Front, path: str, status: int) -> None:
    assert hidden(front, INSIDE, path) == status


def test_the_commons_counts_by_the_clients_address_whatever_it_claims(front_name: str, tmp_path: Path) -> None:
    (tmp_path / "front").mkdir()
    with (
        serve(tmp_path / "data", proxies=(INSIDE,), reads_per_minute=5) as served,
        fronted(front_name, served.url, tmp_path / "front") as front,
        front.client(OUTSIDE) as greedy,
        front.client(ELSEWHERE) as modest,
    ):
        came = [greedy.get("/.well-known/remem") for _ in range(8)]
        assert came[0].status_code == 200
        assert came[-1].status_code == 429
        assert int(came[-1].headers["Retry-After"]) > 0
        claimed = greedy.get("/.well-known/remem", headers={"X-Forwarded-For": "203.0.113.7"})
        assert claimed.status_code == 429
        assert modest.get("/.well-known/remem").status_code == 200


@pytest.mark.parametrize(
    "begun",
    [
        pytest.param(b"GET / HTTP/1.1\r\nHost: local", id="a-head"),
        pytest.param(
            b"PUT %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\nx" % ADDRESS.encode(), id="a-body"
        ),
    ],
)
def test_what_never_comes_to_its_end_is_given_up(
    front_name: str, served: ServedCommons, tmp_path: Path, begun: bytes
) -> None:
    with fronted(front_name, served.url, tmp_path, WAITS[front_name]) as front, front.connected() as opened:
        opened.sendall(begun)
        came = b""
        while more := opened.recv(65_536):
            came += more
    assert b" 200 " not in came


def test_who_comes_without_tls_is_led_to_it(front: Front) -> None:
    came = httpx.get(f"{front.plain_url}/commons/index?since=1")
    assert came.status_code == 308
    assert came.next_request is not None
    led = came.next_request.url
    assert (led.scheme, led.host, led.raw_path) == ("https", "localhost", b"/commons/index?since=1")
