"""The peers of a memory: rows of its database (DESIGN section 5).

- The owner adds them, and what the owner pulls from is one of them for as long as that is so. It may be where the
  owner pulls from it; a name with a certificate leads to public addresses all the same.
- What others suggest is shown and never added by itself.
- How a peer behaved is kept beside it, and so is what it cost in a night.
"""

from __future__ import annotations

import ipaddress
import sqlite3
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal, TypeAlias
from urllib.parse import urlsplit

from remem.commons import is_url
from remem.errors import RememError
from remem.memory import places
from remem.memory.store import transaction
from remem.protocol.times import format_time, parse_time
from remem_gossip.account import Account
from remem_gossip.addresses import Allowed, PeerUrl, read_url
from remem_gossip.budget import Budget, night_of
from remem_gossip.choosing import Standing, back_off
from remem_gossip.errors import GossipError

Source: TypeAlias = Literal["owner", "pull"]

# What a peer cost is asked for in its night alone.
_NIGHTS_KEPT: Final = 2
# So that a peer that kept its word for a year cannot live on that for another.
_PROMISES_MOST: Final = 10_000


@dataclass(frozen=True, slots=True)
class Peer:
    """A peer that the owner added.

    Attributes:
        url: its address.
        allowed: what the owner lets it be.
        source: who brought it.
        added: when.
        key: the key that it names, once it was asked.
        tried: when it was last asked for an exchange.
        answered: when it last had one.
        standing: how it behaved.
    """

    url: str
    allowed: Allowed
    source: Source
    added: datetime
    key: str | None
    tried: datetime | None
    answered: datetime | None
    standing: Standing

    @property
    def address(self) -> PeerUrl:
        """Where it is."""
        return read_url(self.url, self.allowed)


_PEER: Final = (
    "SELECT url, key, source, added, allow_private, allow_http, tried, answered, failures, next_try, delivered,"
    " promised FROM peers"
)


def peers(db: sqlite3.Connection) -> tuple[Peer, ...]:
    """Return all peers, in the order of their addresses."""
    return tuple(map(_peer, db.execute(_PEER + " ORDER BY url")))


def known_peers(db: sqlite3.Connection, now: datetime) -> tuple[Peer, ...]:
    """Return the peers of a memory, what it pulls from among them, in the order of their addresses.

    Args:
        db: the memory, with no transaction open.
        now: the clock, with a zone.
    """
    pulled = _pulled(db)
    before = {url for (url,) in db.execute("SELECT url FROM peers WHERE source = 'pull'")}
    known = {url for (url,) in db.execute("SELECT url FROM peers")}
    if before - pulled.keys() or pulled.keys() - known:
        with transaction(db):
            _follow_pulls(db, pulled, now)
    return peers(db)


def _follow_pulls(db: sqlite3.Connection, pulled: Mapping[str, Allowed], now: datetime) -> None:
    """Make peers of what the memory pulls from, and none of what it pulls from no more, unless the owner added it."""
    for (url,) in db.execute("SELECT url FROM peers WHERE source = 'pull'").fetchall():
        if url not in pulled:
            _forget(db, url)
    db.executemany(
        "INSERT INTO peers (url, source, added, allow_private, allow_http) VALUES (?, 'pull', ?, ?, ?)"
        " ON CONFLICT DO NOTHING",
        [(url, format_time(now), allowed.private, allowed.http) for url, allowed in pulled.items()],
    )


def _pulled(db: sqlite3.Connection) -> dict[str, Allowed]:
    """Return the commons that this memory pulls from, and what each may be as a peer."""
    found: dict[str, Allowed] = {}
    for place in places.places(db):
        if place.pulled is None or not is_url(place.target):
            continue
        allowed = _pulled_may(place.target)
        # A commons may be where no peer may.
        with suppress(GossipError):
            found[str(read_url(place.target, allowed))] = allowed
    return found


def _pulled_may(target: str) -> Allowed:
    """Say what a commons may be as a peer because its owner pulls from it."""
    parts = urlsplit(target)
    plain = parts.scheme == "http"
    return Allowed(http=plain, private=plain or is_near(parts.hostname or ""))


def is_near(host: str) -> bool:
    """Tell whether a host says by itself that it may be on this machine or in its networks: an address, or this one."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")
    return True


def find(db: sqlite3.Connection, url: str) -> Peer:
    """Return the peer of this address.

    Raises:
        RememError: there is none.
    """
    row = db.execute(_PEER + " WHERE url = ?", (url,)).fetchone()
    if row is None:
        raise RememError(f"expected a peer of this memory, got {url}", "remem peers list")
    return _peer(row)


def add(db: sqlite3.Connection, url: PeerUrl, allowed: Allowed, now: datetime) -> bool:
    """Add a peer for the owner, or change what a known one may be; tell whether it is new.

    The caller owns the transaction.
    """
    known = db.execute("SELECT 1 FROM peers WHERE url = ?", (str(url),)).fetchone()
    db.execute(
        "INSERT INTO peers (url, source, added, allow_private, allow_http) VALUES (?, 'owner', ?, ?, ?)"
        " ON CONFLICT (url) DO UPDATE SET source = 'owner', allow_private = excluded.allow_private,"
        " allow_http = excluded.allow_http, failures = 0, next_try = NULL",
        (str(url), format_time(now), allowed.private, allowed.http),
    )
    return known is None


def remove(db: sqlite3.Connection, url: str) -> bool:
    """Remove a peer for the owner; tell whether it stays one, with what is known of it, since it is pulled from.

    The caller owns the transaction.
    """
    allowed = _pulled(db).get(url)
    if allowed is None:
        _forget(db, url)
        return False
    db.execute(
        "UPDATE peers SET source = 'pull', allow_private = ?, allow_http = ? WHERE url = ?",
        (allowed.private, allowed.http, url),
    )
    return True


def _forget(db: sqlite3.Connection, url: str) -> None:
    db.execute("DELETE FROM peers WHERE url = ?", (url,))
    db.execute("DELETE FROM spent WHERE peer = ?", (url,))


def note_said(db: sqlite3.Connection, url: str, key: str, *, own: str) -> str | None:
    """Note that a peer said who it is, which ends its rest; return the address of another that has the key it named."""
    db.execute("UPDATE peers SET failures = 0, next_try = NULL WHERE url = ?", (url,))
    return note_key(db, url, key, own=own)


def note_key(db: sqlite3.Connection, url: str, key: str, *, own: str = "") -> str | None:
    """Note which key a peer names; where another named it before, note nothing and return the address of that one.

    Nothing proves that it has the key. The memory's `own` key may be that of several, which are all the memory itself.
    """
    if key != own:
        other = db.execute("SELECT url FROM peers WHERE key = ? AND url <> ?", (key, url)).fetchone()
        if other is not None:
            return str(other[0])
    db.execute("UPDATE peers SET key = ? WHERE url = ?", (key, url))
    return None


def note_word(db: sqlite3.Connection, url: str, *, promised: int, delivered: int) -> None:
    """Note how a peer kept its word in an exchange."""
    db.execute(
        "UPDATE peers SET promised = promised + ?, delivered = delivered + ? WHERE url = ?", (promised, delivered, url)
    )
    db.execute(
        "UPDATE peers SET promised = promised / 2, delivered = delivered / 2 WHERE url = ? AND promised > ?",
        (url, _PROMISES_MOST),
    )


def note_answered(db: sqlite3.Connection, url: str, now: datetime) -> None:
    """Note that a peer had an exchange to its end."""
    at = format_time(now)
    db.execute("UPDATE peers SET tried = ?, answered = ?, failures = 0, next_try = NULL WHERE url = ?", (at, at, url))


def note_failed(db: sqlite3.Connection, url: str, now: datetime) -> datetime:
    """Note that a peer did not answer; return when it may be tried again."""
    failures = 1 + int(db.execute("SELECT failures FROM peers WHERE url = ?", (url,)).fetchone()[0])
    again = now + back_off(failures)
    db.execute(
        "UPDATE peers SET tried = ?, failures = ?, next_try = ? WHERE url = ?",
        (format_time(now), failures, format_time(again), url),
    )
    return again


def account(db: sqlite3.Connection, url: str, budget: Budget, now: datetime) -> Account:
    """Open an account for tonight: that of a peer, or of all that are none; settled where no transaction is open."""

    def add(more: Budget) -> Budget:
        if more == Budget():
            return spent(db, url, now)
        with transaction(db):
            _add_spent(db, url, more, now)
            return spent(db, url, now)

    return Account(budget, add)


def spent(db: sqlite3.Connection, url: str, now: datetime) -> Budget:
    """Return what an account cost tonight."""
    row = db.execute(
        "SELECT bytes, checks, origins FROM spent WHERE peer = ? AND night = ?", (url, night_of(now))
    ).fetchone()
    return Budget() if row is None else Budget(*row)


def _add_spent(db: sqlite3.Connection, url: str, more: Budget, now: datetime) -> None:
    night = night_of(now)
    db.execute("DELETE FROM spent WHERE night <= ?", (night - _NIGHTS_KEPT,))
    db.execute(
        "INSERT INTO spent (peer, night, bytes, checks, origins) VALUES (?, ?, ?, ?, ?)"
        " ON CONFLICT (peer, night) DO UPDATE SET bytes = bytes + excluded.bytes,"
        " checks = checks + excluded.checks, origins = origins + excluded.origins",
        (url, night, more.bytes, more.checks, more.origins),
    )


def _peer(row: sqlite3.Row) -> Peer:
    url, key, source, added, private, http, tried, answered, failures, next_try, delivered, promised = row
    standing = Standing(url, failures, _moment(next_try), promised, delivered)
    allowed = Allowed(http=bool(http), private=bool(private))
    return Peer(url, allowed, source, parse_time(added), key, _moment(tried), _moment(answered), standing)


def _moment(text: str | None) -> datetime | None:
    return None if text is None else parse_time(text)
