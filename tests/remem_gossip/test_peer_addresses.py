"""Where a peer may be, and where none may lead this machine."""

from __future__ import annotations

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remem_gossip.addresses import Allowed, PeerUrl, check_addresses, read_url, refused_as
from remem_gossip.failures import AddressRefused, PeerFailed, UrlRefused

NOTHING = Allowed()
ALL = Allowed(http=True, private=True)

REFUSED = {
    "127.0.0.1": "loopback",
    "127.255.255.254": "loopback",
    "::1": "loopback",
    "10.0.0.1": "private",
    "172.16.0.1": "private",
    "172.31.255.255": "private",
    "192.168.1.1": "private",
    "fc00::1": "private",
    "fd12:3456::1": "private",
    "fec0::1": "private",
    "169.254.169.254": "link-local",
    "fe80::1": "link-local",
    "fe80::1%eth0": "link-local",
    "febf::1": "link-local",
    "100.64.0.1": "shared",
    "100.127.255.255": "shared",
    "192.0.2.1": "documentation",
    "198.51.100.7": "documentation",
    "203.0.113.7": "documentation",
    "2001:db8::1": "documentation",
    "3fff::1": "documentation",
    "198.18.0.1": "benchmarking",
    "198.19.255.255": "benchmarking",
    "2001:2::1": "benchmarking",
    "::ffff:127.0.0.1": "IPv4-mapped",
    "::ffff:8.8.8.8": "IPv4-mapped",
    "::127.0.0.1": "translated",
    "::ffff:0:127.0.0.1": "translated",
    "64:ff9b::7f00:1": "translated",
    "64:ff9b::8.8.8.8": "translated",
    "64:ff9b:1::a00:1": "translated",
    "2002:7f00:1::": "6to4",
    "2002:808:808::1": "6to4",
    "192.88.99.1": "6to4",
    "2001::1": "Teredo",
    "2001:0:4136:e378:8000:63bf:3fff:fdd2": "Teredo",
    "192.0.0.1": "reserved",
    "2001:10::1": "reserved",
    "2001:20::1": "reserved",
    "100::1": "reserved",
    "200::1": "reserved",
    "4000::1": "reserved",
    "5f00::1": "reserved",
}
NEVER = {
    "0.0.0.0": "unspecified",
    "0.1.2.3": "unspecified",
    "::": "unspecified",
    "224.0.0.1": "multicast",
    "239.255.255.250": "multicast",
    "ff02::1": "multicast",
    "240.0.0.1": "reserved",
    "255.255.255.255": "reserved",
}
PUBLIC = ["1.1.1.1", "9.255.255.255", "11.0.0.1", "100.63.255.255", "100.128.0.1", "126.0.0.1", "128.0.0.1",
          "172.15.0.1", "172.32.0.1", "192.167.1.1", "192.169.1.1", "223.255.255.255", "2606:4700::1",
          "2a00:1450::1", "2001:200::1", "2003::1"]  # fmt: skip


@pytest.mark.parametrize(("address", "kind"), (REFUSED | NEVER).items())
def test_no_peer_is_at_an_address_that_is_not_public(address: str, kind: str) -> None:
    assert refused_as(ipaddress.ip_address(address), NOTHING) == kind
    with pytest.raises(AddressRefused, match=kind):
        check_addresses([address], NOTHING)


@pytest.mark.parametrize("address", REFUSED)
def test_the_owner_may_allow_a_peer_that_is_near(address: str) -> None:
    assert check_addresses([address], ALL)


@pytest.mark.parametrize("address", NEVER)
def test_nobody_is_at_an_address_of_no_one_or_of_many(address: str) -> None:
    with pytest.raises(AddressRefused):
        check_addresses([address], ALL)


@pytest.mark.parametrize("address", PUBLIC)
def test_a_peer_may_be_at_any_public_address(address: str) -> None:
    assert list(map(str, check_addresses([address], NOTHING))) == [address]


@pytest.mark.parametrize("place", [0, 1, 2])
def test_one_private_address_among_public_ones_refuses_the_name(place: int) -> None:
    found = ["1.1.1.1", "2606:4700::1"]
    found.insert(place, "10.0.0.7")
    with pytest.raises(AddressRefused):
        check_addresses(found, NOTHING)


def test_a_name_with_endless_addresses_is_refused() -> None:
    with pytest.raises(AddressRefused):
        check_addresses((f"1.1.{n // 256}.{n % 256}" for n in range(10_000)), NOTHING)


def test_a_resolver_that_answers_no_address_is_refused() -> None:
    with pytest.raises(AddressRefused):
        check_addresses(["commons.example"], NOTHING)


@given(st.ip_addresses())
def test_what_is_refused_here_is_nothing_that_the_language_takes_for_public(address: object) -> None:
    assert isinstance(address, ipaddress.IPv4Address | ipaddress.IPv6Address)
    if refused_as(address, NOTHING) is None:
        assert address.is_global
        assert not address.is_multicast


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("https://commons.example", PeerUrl("https", "commons.example", 443, "")),
        ("https://Commons.Example.:443/", PeerUrl("https", "commons.example", 443, "")),
        ("HTTPS://commons.example:8443/a/b/", PeerUrl("https", "commons.example", 8443, "/a/b")),
        ("https://1.1.1.1", PeerUrl("https", "1.1.1.1", 443, "")),
        ("https://[2606:4700:0::1]:444", PeerUrl("https", "2606:4700::1", 444, "")),
        ("https://bücher.example", PeerUrl("https", "xn--bcher-kva.example", 443, "")),
        ("https://commons_a.example", PeerUrl("https", "commons_a.example", 443, "")),
    ],
)
def test_a_url_is_read_from_any_spelling(text: str, url: PeerUrl) -> None:
    assert read_url(text, NOTHING) == url
    assert read_url(str(url), NOTHING) == url


def test_the_authority_leaves_out_the_port_of_the_scheme() -> None:
    spelled = {
        "https://a.example:443": "a.example",
        "https://a.example:80": "a.example:80",
        "http://a.example:80": "a.example",
        "http://a.example:443": "a.example:443",
        "http://[::1]:8080": "[::1]:8080",
    }
    assert {text: read_url(text, ALL).authority for text in spelled} == spelled


@pytest.mark.parametrize(
    "text",
    [
        "",
        "commons.example",
        "ftp://commons.example",
        "file:///etc/passwd",
        "https:commons.example",
        "https://",
        "https://:443",
        "https://user@commons.example",
        "https://user:word@commons.example",
        "https://@commons.example",
        "https://good.example\\@evil.example",
        "https://commons.example/?a",
        "https://commons.example?",
        "https://commons.example/#a",
        "https://commons.example#",
        "https://commons.example:0",
        "https://commons.example:65536",
        "https://commons.example:-1",
        "https://commons.example:+443",
        "https://commons.example:4e2",
        "https://commons.example/a b",
        "https://commons.example/a\n",
        "\thttps://commons.example",
        "https://commons.example/%2e%2e/admin",
        "https://commons.example/../admin",
        "https://commons.example/a/./b",
        "https://commons.example//a",
        "https://commons.example/a;b",
        "https://127.1",
        "https://2130706433",
        "https://0x7f000001",
        "https://0x7f.1",
        "https://127.0.0.1.",
        "https://0177.0.0.1",
        "https://1.2.3.4.5",
        "https://127。0。0。1",
        "https://a.0x",
        "https://[fe80::1%25eth0]",
        "https://[::1",
        "https://[v1.a]",
        "https://-a.example",
        "https://a..example",
        "https://.example",
        "https://" + "a" * 64 + ".example",
        "https://" + "a." * 130 + "example",
        "https://" + "ü" * 300 + ".example",
        "https://a.example/" + "a" * 2_048,
        "https://a\u202eb.example",
    ],
)
def test_what_is_no_url_of_a_peer_is_refused(text: str) -> None:
    with pytest.raises(UrlRefused) as caught:
        read_url(text, Allowed(private=True))
    assert caught.value.code == "peer_url"


def test_http_is_for_those_that_the_owner_allows_it() -> None:
    with pytest.raises(UrlRefused):
        read_url("http://commons.example", NOTHING)
    assert read_url("http://commons.example", Allowed(http=True)).scheme == "http"


@pytest.mark.parametrize("host", ["127.0.0.1", "[::1]", "192.168.0.1", "[::ffff:127.0.0.1]", "0.0.0.0"])
def test_an_ip_address_in_a_url_is_checked_at_once(host: str) -> None:
    with pytest.raises(AddressRefused):
        read_url(f"https://{host}", NOTHING)


@given(st.text(max_size=60).map("https://".__add__) | st.text(max_size=60))
def test_any_text_is_a_url_or_a_failure(text: str) -> None:
    try:
        url = read_url(text, NOTHING)
    except PeerFailed:
        return
    assert read_url(str(url), NOTHING) == url
