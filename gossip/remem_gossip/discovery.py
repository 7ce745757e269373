"""Suggestions of peers: from the descriptors of known ones, and from the local network. The owner adds.

A descriptor publishes addresses under `peers`. Whatever it says, at most `SUGGESTED_MOST` of it are looked at, and
what no peer may have as an address is left out. Nobody is asked anything but whom the owner added.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from remem.commons.base import Descriptor, read_descriptor
from remem.errors import Unreachable
from remem_gossip.addresses import Allowed, PeerUrl, read_url
from remem_gossip.errors import GossipError
from remem_gossip.peers import Peer, is_near

if TYPE_CHECKING:
    from remem_gossip.dial import Dial

SUGGESTED_MOST: Final = 100
_DESCRIPTOR: Final = "/.well-known/remem"


@dataclass(frozen=True, slots=True)
class Described:
    """What a peer says about itself, or why it says nothing.

    Attributes:
        peer: its address.
        said: who it is.
        peers: the addresses that it publishes, each in the one spelling.
        code: why it says nothing.
        detail: the same in words.
    """

    peer: str
    said: Descriptor | None = None
    peers: tuple[PeerUrl, ...] = ()
    code: str | None = None
    detail: str | None = None


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A node that the owner might add.

    Attributes:
        url: its address.
        by: the peers that publish it; empty for one of the local network.
        needs: the options of `remem peers add` without which it could not be asked.
    """

    url: str
    by: tuple[str, ...]
    needs: tuple[str, ...]


def describe(peer: Peer, dialling: Callable[[Peer], Dial]) -> Described:
    """Ask a peer who it is, and which peers it publishes."""
    from remem_gossip.dial import SMALL_ANSWER

    try:
        with closing(dialling(peer)) as dial:
            reply = dial.ask("GET", _DESCRIPTOR, most=SMALL_ANSWER)
    except GossipError as error:
        return Described(peer.url, code=error.code, detail=str(error))
    if reply.status != 200:
        return Described(peer.url, code="peer_refused", detail=f"expected a descriptor, got status {reply.status}")
    try:
        said = read_descriptor(reply.body)
    except Unreachable as error:
        return Described(peer.url, code="peer_answer", detail=error.message)
    return Described(peer.url, said, tuple(_published(reply.body)))


def suggestions(described: Iterable[Described], near: Iterable[str], known: Collection[str]) -> tuple[Suggestion, ...]:
    """Put together what is not known yet: first what most peers publish.

    Args:
        described: what the peers say.
        near: addresses of the local network.
        known: the addresses of the peers.
    """
    found: dict[PeerUrl, set[str]] = {}
    for one in described:
        for url in one.peers:
            found.setdefault(url, set()).add(one.peer)
    for url in _read(near):
        found.setdefault(url, set())
    ordered = sorted(found.items(), key=lambda pair: (-len(pair[1]), str(pair[0])))
    return tuple(Suggestion(str(url), tuple(sorted(by)), _needs(url)) for url, by in ordered if str(url) not in known)


def _published(body: bytes) -> Iterator[PeerUrl]:
    fields = json.loads(body)
    listed = fields.get("peers") if isinstance(fields, Mapping) else None
    return _read(listed[:SUGGESTED_MOST] if isinstance(listed, list) else ())


def _read(urls: Iterable[object]) -> Iterator[PeerUrl]:
    for url in urls:
        if isinstance(url, str):
            try:
                yield read_url(url, Allowed(http=True, private=True))
            except GossipError:
                continue


def _needs(url: PeerUrl) -> tuple[str, ...]:
    try:
        read_url(str(url), Allowed(http=True))
        private = url.host == "localhost" or (url.scheme == "http" and is_near(url.host))
    except GossipError:
        private = True
    return (*(["--allow-http"] if url.scheme == "http" else []), *(["--allow-private"] if private else []))
