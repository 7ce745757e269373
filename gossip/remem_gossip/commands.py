"""The commands of gossip: `remem gossip` and `remem peers` (DESIGN sections 4 and 5)."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from random import SystemRandom
from typing import TYPE_CHECKING, Annotated, Self

import typer

from remem.cli.memory import clock, opened
from remem.cli.output import AsJson, count, emit, progress, table, warn
from remem.errors import Partly, RememError, Unreachable
from remem.memory.home import Home
from remem.memory.store import transaction
from remem.protocol.times import format_time
from remem.sharing.escape import printable
from remem_gossip.extra import need_library
from remem_gossip.words import address_of, end, spelled

if TYPE_CHECKING:
    # The command starts with every other one: nothing of the network is loaded for that.
    from remem_gossip.discovery import Described
    from remem_gossip.night import NightReport
    from remem_gossip.peers import Peer

peers = typer.Typer(help="The nodes that this memory gossips with.", no_args_is_help=True, rich_markup_mode=None)

Url = Annotated[str, typer.Argument(help="The address of a commons or of another node.")]
AllowPrivate = Annotated[bool, typer.Option("--allow-private", help="It may be on this machine or in its networks.")]
AllowHttp = Annotated[bool, typer.Option("--allow-http", help="It may be asked without TLS.")]


def register(app: typer.Typer) -> None:
    """Add the commands of this group."""
    app.command()(gossip)
    app.add_typer(peers, name="peers")


@contextmanager
def gossiping() -> Iterator[tuple[Home, sqlite3.Connection]]:
    """Open the memory of this environment, where the extra is installed."""
    need_library()
    with opened() as (home, db):
        yield home, db


def gossip(
    peer: Annotated[list[str] | None, typer.Argument(help="Whom to ask; a few at random by default.")] = None,
    as_json: AsJson = False,
) -> None:
    """Exchange what is new with some peers: what this memory lacks comes, and what they lack goes."""
    from remem_gossip.night import gossip as run_night
    from remem_gossip.sleeping import night_words

    random = SystemRandom()
    with gossiping() as (home, db), progress("gossiping") as bar:
        only = None if not peer else list(dict.fromkeys(map(spelled, peer)))
        told = None if bar is None else lambda _peer, done, total: bar(done, total)
        report = run_night(home, db, now=clock(), random=random, only=only, progress=told)
    emit(report, as_json, night_words(report))
    for notice in report.notices:
        warn(f"{notice.code}: {printable(notice.text)}")
    failed = [met for met in report.met if met.code is not None]
    if not report.met:
        raise RememError("expected a peer that may be asked, got none", hint=_no_peer_hint(report))
    if failed and (peer or len(failed) == len(report.met)):
        end(len(failed), len(report.met))


@peers.command()
def add(url: Url, allow_private: AllowPrivate = False, allow_http: AllowHttp = False, as_json: AsJson = False) -> None:
    """Gossip with a node from now on, or change what it may be."""
    from remem_gossip import peers as book
    from remem_gossip.addresses import Allowed

    allowed = Allowed(http=allow_http, private=allow_private)
    with gossiping() as (_home, db):
        address = address_of(url, allowed)
        with transaction(db):
            is_new = book.add(db, address, allowed, clock())
        found = book.find(db, str(address))
    words = "is a peer now" if is_new else "was a peer already"
    emit(found, as_json, [f"{found.url} {words}"])


@peers.command()
def remove(url: Url, as_json: AsJson = False) -> None:
    """Gossip with a node no more."""
    from remem_gossip import peers as book

    with gossiping() as (_home, db):
        book.known_peers(db, clock())
        found = book.find(db, spelled(url))
        if found.source == "pull":
            raise RememError(
                f"expected a peer that you added, got {found.url}, which this memory pulls from",
                hint=f"remem logout {found.url}",
            )
        with transaction(db):
            book.remove(db, found.url)
        stays = any(peer.url == found.url for peer in book.known_peers(db, clock()))
    words = "stays a peer for as long as this memory pulls from it" if stays else "is no peer any more"
    emit(found, as_json, [f"{found.url} {words}"])


@peers.command("list")
def list_peers(as_json: AsJson = False) -> None:
    """List the peers, and how they kept their word."""
    from remem_gossip.peers import known_peers

    with gossiping() as (_home, db):
        found = known_peers(db, clock())
    emit(found, as_json, table([_row(peer) for peer in found], _HEADER) if found else ["no peer is known yet"])


@peers.command()
def check(as_json: AsJson = False) -> None:
    """Ask every peer who it is."""
    from remem_gossip import peers as book

    with gossiping() as (home, db):
        known = book.known_peers(db, clock())
        described = _describe(home, known)
        with transaction(db):
            for one in described:
                if one.said is not None:
                    book.note_key(db, one.peer, one.said.key)
    emit(
        [Checked.of(one) for one in described],
        as_json,
        [_described_words(one) for one in described] or ["no peer is known yet"],
    )
    for peer, one in zip(known, described, strict=True):
        if one.said is not None and peer.key not in (None, one.said.key):
            warn(f"{printable(peer.url)} names key {one.said.key}, and named {peer.key} before")
    _tell_silent(described)


@peers.command()
def discover(
    lan: Annotated[bool, typer.Option("--lan", help="Ask the local network too, by multicast DNS.")] = False,
    seconds: Annotated[float, typer.Option(min=0.1, max=60, help="For how long to listen there.")] = 3.0,
    as_json: AsJson = False,
) -> None:
    """Suggest nodes: what the peers publish, and with --lan what the local network has. None is added by itself."""
    from remem_gossip.discovery import suggestions
    from remem_gossip.peers import known_peers

    with gossiping() as (home, db):
        known = known_peers(db, clock())
        described = _describe(home, known)
        near = _listen(seconds) if lan else []
    found = suggestions(described, near, [peer.url for peer in known])
    words = [
        f"remem peers add {printable(' '.join((one.url, *one.needs)))}"
        f"  # {'published by ' + printable(', '.join(one.by)) if one.by else 'in the local network'}"
        for one in found
    ]
    emit(found, as_json, words or ["nobody suggests a node that is not a peer already"])
    for one in described:
        if one.code is not None:
            warn(_described_words(one))


def _listen(seconds: float) -> list[str]:
    from remem_gossip.lan import find

    with progress("listening"):
        return find(seconds)


def _describe(home: Home, known: Sequence[Peer]) -> list[Described]:
    from remem_gossip.discovery import describe
    from remem_gossip.night import dial_peer

    key, config = home.signing_key(), home.config()
    found = []
    with progress("asking") as bar:
        for done, peer in enumerate(known):
            if bar is not None:
                bar(done, len(known))
            found.append(describe(peer, lambda one: dial_peer(one, key, config.target(one.url).token)))
    return found


@dataclass(frozen=True, slots=True)
class Checked:
    """What a peer says about itself, or why it says nothing."""

    peer: str
    key: str | None
    open: bool | None
    code: str | None
    detail: str | None

    @classmethod
    def of(cls, one: Described) -> Self:
        """Cut a description down to what is printed."""
        said = one.said
        key, is_open = (None, None) if said is None else (said.key, said.open)
        return cls(one.peer, key, is_open, one.code, one.detail)


def _described_words(one: Described) -> str:
    if one.said is None:
        return f"{printable(one.peer)}: {one.code}: {printable(one.detail or '')}"
    return (
        f"{printable(one.peer)}: key {one.said.key}, {'open to everyone' if one.said.open else 'takes files by token'}"
    )


def _tell_silent(described: Sequence[Described]) -> None:
    silent = sum(one.code is not None for one in described)
    if silent:
        kind = Unreachable if silent == len(described) else Partly
        raise kind(f"expected every peer to answer, got {count(silent, 'peer that did not', 'peers that did not')}")


_HEADER = ("peer", "from", "answered", "kept", "failures", "next try")


def _row(peer: Peer) -> Sequence[str]:
    standing = peer.standing
    kept = f"{standing.delivered} of {standing.promised}" if standing.promised else "-"
    answered = "never" if peer.answered is None else format_time(peer.answered)
    again = "now" if standing.next_try is None else format_time(standing.next_try)
    return (
        printable(peer.url),
        "you" if peer.source == "owner" else "pull",
        answered,
        kept,
        f"{standing.failures}",
        again,
    )


def _no_peer_hint(report: NightReport) -> str:
    return "remem peers list" if report.resting else "remem peers add https://…"
