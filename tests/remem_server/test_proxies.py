"""Addresses: whose a request is, with proxies that are believed and others that are not."""

from __future__ import annotations

import logging
from collections.abc import Callable

import httpx
import pytest

from remem_server.web.addresses import Addresses
from remem_testkit.server import ServedCommons

pytestmark = pytest.mark.any_database

Start = Callable[..., ServedCommons]

NAMED = ("10.0.0.0/8", "127.0.0.1", "fd00::/8")


@pytest.mark.parametrize(
    ("peer", "forwarded", "address"),
    [
        ("192.0.2.1", [], "192.0.2.1"),
        ("192.0.2.1", ["198.51.100.7"], "192.0.2.1"),
        ("127.0.0.1", [], "127.0.0.1"),
        ("127.0.0.1", ["198.51.100.7"], "198.51.100.7"),
        ("127.0.0.1", ["203.0.113.9, 198.51.100.7"], "198.51.100.7"),
        ("127.0.0.1", ["203.0.113.9", "198.51.100.7"], "198.51.100.7"),
        ("127.0.0.1", ["203.0.113.9, 198.51.100.7, 10.1.2.3"], "198.51.100.7"),
        ("127.0.0.1", ["10.1.2.3"], "10.1.2.3"),
        ("127.0.0.1", ["198.51.100.7, nonsense"], "127.0.0.1"),
        ("127.0.0.1", ["198.51.100.7, nonsense, 10.1.2.3"], "10.1.2.3"),
        ("127.0.0.1", [""], "127.0.0.1"),
        ("127.0.0.1", ["," * 10_000], "127.0.0.1"),
        ("127.0.0.1", [", ".join(["198.51.100.7"] * 5_000)], "198.51.100.7"),
        ("::ffff:10.1.1.1", ["198.51.100.7"], "198.51.100.7"),
        ("fd00::1", ["2001:db8:1:2:3:4:5:6"], "2001:db8:1:2::/64"),
        ("2001:db8:1:2:aaaa::1", [], "2001:db8:1:2::/64"),
        ("fe80::1%eth0", [], "fe80::/64"),
        (None, ["198.51.100.7"], "unknown"),
        ("/run/remem.sock", [], "unknown"),
    ],
)
def test_only_a_proxy_that_was_named_speaks_for_others(peer: str | None, forwarded: list[str], address: str) -> None:
    headers = [(b"host", b"commons"), *((b"x-forwarded-for", one.encode()) for one in forwarded)]
    assert Addresses(NAMED).of(peer, headers) == address


def test_a_limit_is_of_those_behind_the_proxy(start: Start) -> None:
    commons = start(reads_per_minute=2, proxies=("127.0.0.1",))

    def ask(forwarded: str) -> int:
        return httpx.get(f"{commons.url}/healthz", headers={"X-Forwarded-For": forwarded}).status_code

    assert [ask("198.51.100.7") for _ in range(3)] == [200, 200, 429]
    assert ask("198.51.100.8") == 200
    # Whatever it writes before the address that the proxy saw.
    assert ask("198.51.100.8, 198.51.100.7") == 429


def test_nobody_escapes_a_limit_by_a_header(start: Start) -> None:
    commons = start(reads_per_minute=2)
    asked = [httpx.get(f"{commons.url}/healthz", headers={"X-Forwarded-For": f"198.51.100.{n}"}) for n in range(3)]
    assert [answer.status_code for answer in asked] == [200, 200, 429]


def test_behind_a_proxy_who_is_refused_too_often_is_refused_at_once_and_others_are_served(start: Start) -> None:
    commons = start(refusals_per_minute=2, proxies=("127.0.0.1",))
    with httpx.Client(base_url=commons.url) as client:
        bad, good = ({"X-Forwarded-For": address} for address in ("198.51.100.7", "198.51.100.8"))
        statuses = [client.request("DELETE", "/healthz", headers=bad).status_code for _ in range(2)]
        assert [*statuses, client.get("/healthz", headers=bad).status_code] == [405, 405, 429]
        assert client.get("/healthz", headers=good).status_code == 200


def test_a_proxy_that_nobody_named_is_told_of_once(start: Start, caplog: pytest.LogCaptureFixture) -> None:
    commons = start()
    with caplog.at_level(logging.WARNING, "remem_server"):
        for _ in range(3):
            httpx.get(f"{commons.url}/healthz", headers={"X-Forwarded-For": "198.51.100.7"})
    assert [record.getMessage().partition(":")[0] for record in caplog.records] == [
        "127.0.0.1 speaks for others, who count as one address"
    ]
    assert "REMEM_PROXIES" in caplog.text
