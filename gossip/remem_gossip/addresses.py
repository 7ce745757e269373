"""Where a peer may be: which URLs it may have, and which IP addresses its name may lead to. Pure.

- Names and URLs of peers come from others too, so none may make this machine ask itself or its neighbours.
- A peer is at a public unicast address. An IPv6 address that carries an IPv4 address in it (mapped, 6to4, Teredo,
  translated) is none, since what it leads to is known to whoever translates.
- What the owner allows a peer, and no other, is http, and every address that one host may have.
- A URL has a scheme, a host, a port and a path, each in one spelling, and nothing else. What a resolver might read as
  an IPv4 address in another spelling is no name.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, TypeAlias
from urllib.parse import SplitResult, urlsplit

from remem.protocol.errors import show
from remem_gossip.failures import AddressRefused, UrlRefused

Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address

URL_CHARACTERS: Final = 2_048
HOST_CHARACTERS: Final = 253
ADDRESSES_MOST: Final = 64

_PORTS: Final = {"https": 443, "http": 80}
_LABEL: Final = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?")
# A last label that is a number makes the whole an IPv4 address to many a resolver.
_NUMBER: Final = re.compile(r"[0-9]+|0x[0-9a-f]*")
_PATH: Final = re.compile(r"(?:/[A-Za-z0-9._~-]+)*")

# The registries of special addresses of IANA, in the order in which they are looked through.
_NEVER: Final = (
    ("unspecified", "0.0.0.0/8", "::/128"),
    ("multicast", "224.0.0.0/4", "ff00::/8"),
    ("reserved", "240.0.0.0/4"),
)
_SPECIAL: Final = (
    ("loopback", "127.0.0.0/8", "::1/128"),
    ("private", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7", "fec0::/10"),
    ("link-local", "169.254.0.0/16", "fe80::/10"),
    ("shared", "100.64.0.0/10"),
    ("documentation", "192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24", "2001:db8::/32", "3fff::/20"),
    ("benchmarking", "198.18.0.0/15", "2001:2::/48"),
    ("IPv4-mapped", "::ffff:0:0/96"),
    ("translated", "64:ff9b::/96", "64:ff9b:1::/48", "::ffff:0:0:0/96", "::/96"),
    ("6to4", "2002::/16", "192.88.99.0/24"),
    ("Teredo", "2001::/32"),
    ("reserved", "192.0.0.0/24", "2001::/23"),
)
_PUBLIC_IPV6: Final = ipaddress.ip_network("2000::/3")

_Kinds: TypeAlias = tuple[tuple[str, tuple[ipaddress.IPv4Network | ipaddress.IPv6Network, ...]], ...]


def _networks(kinds: Iterable[tuple[str, ...]]) -> _Kinds:
    return tuple((kind, tuple(map(ipaddress.ip_network, networks))) for kind, *networks in kinds)


_NEVER_NETWORKS: Final = _networks(_NEVER)
_SPECIAL_NETWORKS: Final = _networks(_SPECIAL)


@dataclass(frozen=True, slots=True)
class Allowed:
    """What the owner lets one peer be, beyond what any may be.

    Attributes:
        http: without TLS.
        private: anywhere, on this machine and in its networks too.
    """

    http: bool = False
    private: bool = False


@dataclass(frozen=True, slots=True)
class PeerUrl:
    """The address of a peer.

    Attributes:
        scheme: `https` or `http`.
        host: a name in ASCII, or an IP address without brackets.
        port: its port.
        path: what stands before the paths of the routes; empty, or it begins with a slash and does not end in one.
    """

    scheme: str
    host: str
    port: int
    path: str

    @property
    def authority(self) -> str:
        """The host, and its port where that is not the scheme's own."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS[self.scheme] else f"{host}:{self.port}"

    def __str__(self) -> str:
        return f"{self.scheme}://{self.authority}{self.path}"


def read_url(text: str, allowed: Allowed) -> PeerUrl:
    """Read the URL of a peer, in any spelling.

    Raises:
        UrlRefused: it is none that this peer may have.
        AddressRefused: its host is an IP address where this peer may not be.
    """
    if "@" in text:
        # Not shown: most often it stands behind a password.
        raise UrlRefused("a URL without a user", "one with '@' in it")
    parts = _split(text)
    if parts.scheme not in _PORTS or (parts.scheme == "http" and not allowed.http):
        raise UrlRefused("a URL that begins with https://" + (" or http://" if allowed.http else ""), show(text))
    if "?" in text or "#" in text:
        raise UrlRefused("a URL without a query and a fragment", show(text))
    path = parts.path.rstrip("/")
    if not _PATH.fullmatch(path) or not {".", ".."}.isdisjoint(path.split("/")):
        raise UrlRefused("a path of plain names", show(parts.path))
    try:
        host, port = parts.hostname, parts.port
    except ValueError:
        raise UrlRefused("a port from 1 to 65535", show(parts.netloc)) from None
    if port == 0 or not host or ("[" in parts.netloc) is not (":" in host):
        raise UrlRefused("a host, and a port from 1 to 65535", show(parts.netloc))
    return PeerUrl(parts.scheme, _read_host(host, allowed), port or _PORTS[parts.scheme], path)


def check_addresses(found: Iterable[str], allowed: Allowed) -> list[Address]:
    """Check all addresses that a name leads to; one that is refused refuses the name.

    Raises:
        AddressRefused: a peer may not be at one of them, or there are too many.
    """
    addresses: dict[Address, None] = {}
    for text in found:
        address = _read_address(text)
        if address is None:
            raise AddressRefused("an IP address", show(text))
        kind = refused_as(address, allowed)
        if kind is not None:
            raise AddressRefused("a public address", f"{address}, which is {kind}")
        addresses[address] = None
        if len(addresses) > ADDRESSES_MOST:
            raise AddressRefused(f"at most {ADDRESSES_MOST} addresses of a name", "more")
    return list(addresses)


def refused_as(address: Address, allowed: Allowed) -> str | None:
    """Say what kind of address it is, if this peer may not be at one of that kind."""
    never = _kind_of(address, _NEVER_NETWORKS)
    if never is not None or allowed.private:
        return never
    kind = _kind_of(address, _SPECIAL_NETWORKS)
    if kind is None and address.version == 6 and address not in _PUBLIC_IPV6:
        return "reserved"
    return kind


def _kind_of(address: Address, kinds: _Kinds) -> str | None:
    return next((kind for kind, networks in kinds if any(address in network for network in networks)), None)


def _split(text: str) -> SplitResult:
    if len(text) > URL_CHARACTERS:
        raise UrlRefused(f"a URL of at most {URL_CHARACTERS} characters", f"{len(text)}")
    # A URL of two spellings to two readers is how a check is got around.
    if not text.isprintable() or any(character in text for character in " \\%"):
        raise UrlRefused("a URL of printable characters without spaces, backslashes and percent signs", show(text))
    try:
        return urlsplit(text)
    except ValueError:
        raise UrlRefused("a URL like https://commons.example", show(text)) from None


def _read_host(host: str, allowed: Allowed) -> str:
    address = _read_address(host)
    if address is not None:
        check_addresses([host], allowed)
        return str(address)
    name = host if host.isascii() else _encode(host)
    labels = name.lower().removesuffix(".").split(".")
    if len(name) > HOST_CHARACTERS or not all(map(_LABEL.fullmatch, labels)) or _NUMBER.fullmatch(labels[-1]):
        raise UrlRefused("the name of a host, or its IP address", show(host))
    return ".".join(labels)


def _read_address(text: str) -> Address | None:
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return None
    return address


def _encode(host: str) -> str:
    """Spell a name in ASCII, as resolvers know it."""
    # It is read with every command, and names that need it are rare.
    import idna

    try:
        return idna.encode(host, uts46=True).decode() if len(host) <= HOST_CHARACTERS else host
    except idna.IDNAError:
        raise UrlRefused("the name of a host", show(host)) from None
