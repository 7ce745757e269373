"""What peers say about themselves, and whom they and the local network suggest. The owner adds.

- A description names the node's key, and publishes addresses under `peers`. Whatever it says, at most `SUGGESTED_MOST`
  of them are looked at, and what no peer may have as an address is left out.
- Nobody is asked anything but whom the owner added. All of them together are asked for so many seconds; first those
  that answered lately, since the silent ones may take them all.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Final, Protocol, TypeVar

from remem.commons.base import Descriptor, read_descriptor
from remem.commons.waiting import Patience
from remem.errors import Unreachable
from remem.progress import Progress
from remem_gossip.addresses import Allowed, PeerUrl, read_url
from remem_gossip.choosing import Standing
from remem_gossip.dial import SMALL_ANSWER, Dial
from remem_gossip.errors import GossipError
from remem_gossip.exchange import Refused
from remem_gossip.failures import NoAnswer, TooSlow
from remem_gossip.peers import is_near
from remem_gossip.spans import Span

ASKING_SECONDS: Final = 120.0
"""How long all peers together are asked who they are."""
ASKING_PATIENCE: Final = Patience(connect=5, read=10, whole=10)
"""How long one of them is."""

SUGGESTED_MOST: Final = 100
_DESCRIPTOR: Final = "/.well-known/remem"


class Listed(Protocol):
    """A peer of a memory or of a commons."""

    @property
    def url(self) -> str:
        """Its address."""
        ...

    @property
    def standing(self) -> Standing:
        """How it behaved."""
        ...


_P = TypeVar("_P", bound=Listed)


@dataclass(frozen=True, slots=True)
class Description:
    """What a node says about itself.

    Attributes:
        descriptor: who it is.
        peers: the addresses that it publishes, each in the one spelling.
    """

    descriptor: Descriptor
    peers: tuple[PeerUrl, ...]


@dataclass(frozen=True, slots=True)
class Described:
    """What a peer says about itself, or why it says nothing.

    Attributes:
        peer: its address.
        said: what it says.
        code: why it says nothing.
        detail: the same in words.
    """

    peer: str
    said: Description | None = None
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


def ask_who(dial: Dial) -> Description:
    """Ask a node who it is, and which peers it publishes.

    Raises:
        GossipError: it does not say.
    """
    reply = dial.ask("GET", _DESCRIPTOR, most=SMALL_ANSWER)
    if reply.status != 200:
        raise Refused("a description", f"status {reply.status}")
    try:
        return Description(read_descriptor(reply.body), tuple(_published(reply.body)))
    except Unreachable as error:
        raise NoAnswer.saying(error.message) from error


def describe(
    peers: Sequence[_P],
    dialling: Callable[[_P, Span], Dial],
    *,
    time: Span | None = None,
    progress: Progress | None = None,
) -> list[Described]:
    """Ask peers who they are; what is returned is in their order.

    Args:
        peers: whom to ask.
        dialling: opens the way to one, by `ASKING_PATIENCE`.
        time: what all of them have together, `ASKING_SECONDS` by default.
        progress: told how far it is.
    """
    time = time or Span(ASKING_SECONDS)
    said: dict[str, Described] = {}
    for peer in sorted(peers, key=lambda one: one.standing.failures):
        if progress is not None:
            progress(len(said), len(peers))
        said[peer.url] = _describe(peer, dialling, time)
    return [said[peer.url] for peer in peers]


def _describe(peer: _P, dialling: Callable[[_P, Span], Dial], time: Span) -> Described:
    try:
        if not time.has_room_for(ASKING_PATIENCE.whole):
            raise TooSlow(f"answers of all peers within {time.seconds:g} seconds", "too few to ask this one")
        with closing(dialling(peer, time)) as dial:
            return Described(peer.url, ask_who(dial))
    except GossipError as error:
        return Described(peer.url, code=error.code, detail=str(error))


def suggestions(described: Iterable[Described], near: Iterable[str], known: Collection[str]) -> tuple[Suggestion, ...]:
    """Put together what is not known yet: first what most peers publish.

    Args:
        described: what the peers say.
        near: addresses of the local network.
        known: the addresses of the peers.
    """
    found: dict[PeerUrl, set[str]] = {}
    for one in described:
        for url in () if one.said is None else one.said.peers:
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
