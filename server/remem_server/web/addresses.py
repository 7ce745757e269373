"""Whose request it is, as far as an address tells.

- The address is the peer's own, unless the peer is a proxy that the operator named: then it is the last one of
  `X-Forwarded-For` that is not such a proxy's too. Whatever stands before that one, anybody can have written.
- An address of IPv6 is its network of 64 bits, since whoever has one address of it has them all.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Final

_log: Final = logging.getLogger("remem_server")
_FORWARDED: Final = b"x-forwarded-for"
# Nobody stands behind more proxies.
_HOPS_MOST: Final = 16
_KNOWN_MOST: Final = 4_096
_NETWORK_BITS: Final = 64
# What a peer has that is no address, such as one on a socket of the file system.
UNKNOWN: Final = "unknown"


class Addresses:
    """Says whose a request is.

    Args:
        proxies: the addresses and networks of proxies that are believed.
    """

    def __init__(self, proxies: Sequence[str]) -> None:
        self._networks = [ip_network(one) for one in proxies]
        self._told = False
        self.is_proxy = lru_cache(_KNOWN_MOST)(self._is_proxy)

    def of(self, peer: str | None, headers: Iterable[tuple[bytes, bytes]]) -> str:
        """Return the address that a request counts for.

        Args:
            peer: the address that the connection comes from.
            headers: those of the request.
        """
        if peer is None:
            return UNKNOWN
        if not self.is_proxy(peer):
            if not self._told and _is_near(peer):
                self._tell(peer, headers)
            return counted(peer)
        believed = peer
        named = b",".join(value for name, value in headers if name == _FORWARDED).decode("latin-1")
        for hop in reversed(named.rsplit(",", _HOPS_MOST)[-_HOPS_MOST:]):
            if counted(hop.strip()) == UNKNOWN:
                break
            believed = hop.strip()
            if not self.is_proxy(believed):
                break
        return counted(believed)

    def _is_proxy(self, address: str) -> bool:
        found = _parse(address)
        return found is not None and any(found in network for network in self._networks)

    def _tell(self, peer: str, headers: Iterable[tuple[bytes, bytes]]) -> None:
        """Say once that somebody speaks for others and is not believed: all of them count as one."""
        if any(name == _FORWARDED for name, _value in headers):
            self._told = True
            _log.warning(
                "%s speaks for others, who count as one address: if it is your proxy, name it in REMEM_PROXIES", peer
            )


@lru_cache(_KNOWN_MOST)
def counted(address: str) -> str:
    """Return what an address counts as: itself, or its network."""
    found = _parse(address)
    if found is None:
        return UNKNOWN
    return str(found) if found.version == 4 else str(ip_network((found, _NETWORK_BITS), strict=False))


@lru_cache(_KNOWN_MOST)
def _is_near(address: str) -> bool:
    found = _parse(address)
    return found is not None and found.is_private


def _parse(address: str) -> IPv4Address | IPv6Address | None:
    try:
        found = ip_address(address.partition("%")[0])
    except ValueError:
        return None
    return getattr(found, "ipv4_mapped", None) or found
