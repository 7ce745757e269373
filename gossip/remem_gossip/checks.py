"""What `remem doctor` looks at in a memory's peers: whether a few lies or failures could be all that it hears.

- Peers count by the keys that they name, however often one is listed. One whose key is not known counts by its
  address, and all names and addresses of loopback are one host.
- The memory itself is no peer of its own.
"""

from __future__ import annotations

import ipaddress
import sqlite3
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Final, Protocol

from remem.memory.home import Home
from remem.sharing.health import Finding
from remem_gossip.addresses import PeerUrl
from remem_gossip.choosing import FEW_PEERS
from remem_gossip.extra import is_installed
from remem_gossip.peers import Peer, known_peers

_CHECK: Final = "peers"
_WORD_POOR: Final = 0.5
_THIS_MACHINE: Final = "this machine"
_OTHERS: Final = "remem peers discover suggests others"


class Placed(Protocol):
    """A peer of a memory or of a commons."""

    @property
    def url(self) -> str:
        """Its address."""
        ...

    @property
    def key(self) -> str | None:
        """The key that it names, once it was asked."""
        ...

    @property
    def address(self) -> PeerUrl:
        """Where it is."""
        ...


def check_peers(home: Home, db: sqlite3.Connection, *, now: datetime) -> Sequence[Finding]:
    """Look at the peers of a memory; none of them is asked."""
    found = list(_findings(known_peers(db, now), home.signing_key().public.hex))
    return found or [Finding(_CHECK, "ok", f"{FEW_PEERS} peers or more, on different hosts")]


def _findings(known: Sequence[Peer], own: str) -> Iterator[Finding]:
    if not is_installed():
        yield Finding(_CHECK, "warning", "gossip needs a library that is missing", "pip install 'remem[gossip]'")
    names = names_of(known)
    others = [peer for peer in known if names[peer.url] != own]
    for peer in known:
        if peer not in others:
            text = f"{peer.url} is this memory itself, and is not counted"
            yield Finding(_CHECK, "warning", text, f"remem peers remove {peer.url}")
    number = len({names[peer.url] for peer in others})
    if number < FEW_PEERS:
        text = f"expected at least {FEW_PEERS} peers, got {number}: what they hold back nobody else tells"
        yield Finding(_CHECK, "warning", text, "remem peers add URL; remem peers discover suggests some")
    hosts = {_host(peer) for peer in others}
    if number > 1 and len(hosts) == 1:
        text = f"all {number} peers are on {hosts.pop()}: one failure takes all of them away"
        yield Finding(_CHECK, "warning", text, _OTHERS)
    keys = _keys_of(known)
    silent = [peer.url for peer in others if _is_silent(peer, keys[peer.url])]
    if silent:
        text = f"expected every peer to answer when it was last asked, got nothing of {', '.join(silent)}"
        yield Finding(_CHECK, "warning", text, "remem peers check")
    for peer in others:
        if peer.standing.word < _WORD_POOR:
            kept = f"{peer.standing.delivered} of {peer.standing.promised}"
            yield Finding(_CHECK, "warning", f"{peer.url} delivered {kept} files that it promised")


def _is_silent(peer: Peer, key: str | None) -> bool:
    """Tell whether a peer did not answer the last time, or never: whoever is added is asked then, and has a key."""
    never = peer.source == "owner" and key is None and peer.answered is None
    return never or peer.standing.failures > 0


def names_of(known: Sequence[Placed]) -> dict[str, str]:
    """Name the peer of each address by its key, or by its place, so that each has one name however often it is listed.

    A place whose key is known by one spelling of it has that key by the others too.
    """
    keys = _keys_of(known)
    return {peer.url: keys[peer.url] or _place(peer) for peer in known}


def _keys_of(known: Sequence[Placed]) -> dict[str, str | None]:
    at = {_place(peer): peer.key for peer in known if peer.key is not None}
    return {peer.url: peer.key or at.get(_place(peer)) for peer in known}


def _place(peer: Placed) -> str:
    return f"{_host(peer)} {peer.address.port} {peer.address.path}"


def _host(peer: Placed) -> str:
    host = peer.address.host
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        is_loopback = host == "localhost" or host.endswith(".localhost")
    else:
        is_loopback = (getattr(address, "ipv4_mapped", None) or address).is_loopback
    return _THIS_MACHINE if is_loopback else host
