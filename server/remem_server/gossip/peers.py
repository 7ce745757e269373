"""The peers of a commons: rows of its database, which its operator adds (DESIGN section 5).

A peer is known by its address, and where it offers something by the key that it signs with, which its description
names. How it behaved is kept beside it. Functions on a connection whose transaction the caller owns.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from sqlalchemy import Connection, RowMapping, bindparam, delete, func, insert, select, update

from remem_gossip.addresses import Allowed, PeerUrl, read_url
from remem_gossip.choosing import Standing, back_off
from remem_server.database.tables import peers, spent

# So that a peer that kept its word for a year cannot live on that for another.
_PROMISES_MOST: Final = 10_000
_ALL: Final = select(peers).order_by(peers.c.url)
_ONE: Final = select(peers).where(peers.c.url == bindparam("url"))
_OF_KEY: Final = select(peers.c.url).where(peers.c.key == bindparam("key")).order_by(peers.c.url).limit(1)
_PUBLISHED: Final = select(peers.c.url).where(peers.c.published).order_by(peers.c.url)
_LAST_TRIED: Final = select(func.max(peers.c.tried))
_CHANGE: Final = update(peers).where(peers.c.url == bindparam("of_url"))
_WORD: Final = _CHANGE.values(
    promised=peers.c.promised + bindparam("more_promised"),
    delivered=peers.c.delivered + bindparam("more_delivered"),
)
_HALVE: Final = _CHANGE.where(peers.c.promised > _PROMISES_MOST).values(
    promised=peers.c.promised / 2, delivered=peers.c.delivered / 2
)


@dataclass(frozen=True, slots=True)
class Peer:
    """A peer of a commons.

    Attributes:
        url: its address.
        key: the key that it signs with; None before it was asked.
        added: when.
        allowed: what the operator lets it be.
        published: whether this commons tells others of it.
        tried: when an exchange with it last began.
        answered: when one last came to its end.
        standing: how it behaved.
    """

    url: str
    key: str | None
    added: datetime
    allowed: Allowed
    published: bool
    tried: datetime | None
    answered: datetime | None
    standing: Standing

    @property
    def address(self) -> PeerUrl:
        """Where it is."""
        return read_url(self.url, self.allowed)


def list_all(connection: Connection) -> list[Peer]:
    """List the peers, in the order of their addresses."""
    return [_peer(row) for row in connection.execute(_ALL).mappings()]


def find(connection: Connection, url: str) -> Peer | None:
    """Find the peer of an address."""
    row = connection.execute(_ONE, {"url": url}).mappings().one_or_none()
    return None if row is None else _peer(row)


def url_of_key(connection: Connection, key: str) -> str | None:
    """Return the address of the peer that signs with a key; None where that is no peer."""
    url: str | None = connection.execute(_OF_KEY, {"key": key}).scalar()
    return url


def published(connection: Connection) -> list[str]:
    """List the peers that others are told of."""
    return list(connection.execute(_PUBLISHED).scalars())


def last_tried(connection: Connection) -> datetime | None:
    """Say when an exchange with any peer last began."""
    tried: datetime | None = connection.execute(_LAST_TRIED).scalar()
    return tried


def add(connection: Connection, url: PeerUrl, allowed: Allowed, now: datetime, *, publish: bool) -> bool:
    """Add a peer, or change what a known one may be; tell whether it is new."""
    terms = {"allow_private": allowed.private, "allow_http": allowed.http, "published": publish}
    if find(connection, str(url)) is not None:
        connection.execute(_CHANGE.values(failures=0, next_try=None), {"of_url": str(url), **terms})
        return False
    nothing = {"failures": 0, "promised": 0, "delivered": 0}
    connection.execute(insert(peers), {"url": str(url), "added": now, **terms, **nothing})
    return True


def remove(connection: Connection, url: str) -> None:
    """Remove a peer, and what it cost."""
    connection.execute(delete(peers).where(peers.c.url == url))
    connection.execute(delete(spent).where(spent.c.account == url))


def note_said(connection: Connection, url: str, key: str, *, own: str) -> str | None:
    """Note that a peer said who it is, which ends its rest; return the address of another that has the key it named."""
    connection.execute(_CHANGE, {"of_url": url, "failures": 0, "next_try": None})
    return note_key(connection, url, key, own=own)


def note_key(connection: Connection, url: str, key: str, *, own: str = "") -> str | None:
    """Note which key a peer names; where another named it before, note nothing and return the address of that one.

    Nothing proves that it has the key. The commons' `own` key may be that of several, which are all the commons itself.
    """
    other = url_of_key(connection, key)
    if key != own and other not in (None, url):
        return other
    connection.execute(_CHANGE, {"of_url": url, "key": key})
    return None


def note_tried(connection: Connection, url: str, now: datetime) -> None:
    """Note that an exchange with a peer begins."""
    connection.execute(_CHANGE, {"of_url": url, "tried": now})


def note_word(connection: Connection, url: str, *, promised: int, delivered: int) -> None:
    """Note how a peer kept its word in an exchange."""
    connection.execute(_WORD, {"of_url": url, "more_promised": promised, "more_delivered": delivered})
    connection.execute(_HALVE, {"of_url": url})


def note_answered(connection: Connection, url: str, now: datetime) -> None:
    """Note that an exchange with a peer came to its end."""
    connection.execute(_CHANGE, {"of_url": url, "answered": now, "failures": 0, "next_try": None})


def note_failed(connection: Connection, url: str, now: datetime) -> datetime | None:
    """Note that a peer did not answer; return when it may be tried again."""
    peer = find(connection, url)
    if peer is None:
        return None
    failures = peer.standing.failures + 1
    again = now + back_off(failures)
    connection.execute(_CHANGE, {"of_url": url, "failures": failures, "next_try": again})
    return again


def _peer(row: RowMapping) -> Peer:
    said: dict[str, Any] = dict(row)
    standing = Standing(
        **{name: said.pop(name) for name in ("failures", "next_try", "promised", "delivered")}, url=said["url"]
    )
    allowed = Allowed(http=said.pop("allow_http"), private=said.pop("allow_private"))
    return Peer(**said, allowed=allowed, standing=standing)
