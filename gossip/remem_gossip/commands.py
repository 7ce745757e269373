"""The commands of gossip: `remem gossip` and `remem peers` (DESIGN sections 4 and 5)."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from random import SystemRandom
from typing import TYPE_CHECKING, Annotated

import typer

from remem.cli.memory import clock, opened
from remem.cli.output import AsJson, emit, progress, table, warn
from remem.errors import RememError
from remem.memory import places
from remem.memory.home import Home
from remem.memory.store import transaction
from remem.sharing.escape import printable
from remem_gossip.extra import need_library
from remem_gossip.words import (
    STANDING_HEADER,
    Checked,
    Own,
    added_words,
    address_of,
    end_checked,
    end_met,
    key_cell,
    noted,
    silent_words,
    spelled,
    standing_cells,
)

if TYPE_CHECKING:
    # The command starts with every other one: nothing of the network is loaded for that.
    from remem_gossip.dial import Dial
    from remem_gossip.discovery import Described
    from remem_gossip.peers import Peer
    from remem_gossip.spans import Span

peers = typer.Typer(help="The nodes that this memory gossips with.", no_args_is_help=True, rich_markup_mode=None)

Url = Annotated[str, typer.Argument(metavar="URL", help="The address of a commons or of another node.")]
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
    peer: Annotated[list[str] | None, typer.Argument(metavar="URL", help="Whom to ask; a few by default.")] = None,
    as_json: AsJson = False,
) -> None:
    """Exchange what is new with some peers: what this memory lacks comes, and what they lack goes."""
    from remem_gossip.night import gossip as run_night
    from remem_gossip.sleeping import night_words

    random = SystemRandom()
    with gossiping() as (home, db), progress("gossiping") as bar:
        only = None if not peer else list(dict.fromkeys(map(spelled, peer)))
        report = run_night(home, db, now=clock(), random=random, only=only, progress=bar)
    emit(report, as_json, night_words(report))
    for notice in report.notices:
        warn(f"{notice.code}: {printable(notice.text)}")
    end_met(report.met, named=bool(peer), resting=len(report.resting), program="remem")


@peers.command()
def add(url: Url, allow_private: AllowPrivate = False, allow_http: AllowHttp = False, as_json: AsJson = False) -> None:
    """Gossip with a node from now on, or change what it may be; it is asked who it is."""
    from remem_gossip import peers as book
    from remem_gossip.addresses import Allowed

    allowed = Allowed(http=allow_http, private=allow_private)
    with gossiping() as (home, db):
        address = address_of(url, allowed)
        with transaction(db):
            is_new = book.add(db, address, allowed, clock())
        (checked,), warnings = _check(home, db, [book.find(db, str(address))])
        found = book.find(db, str(address))
    emit(found, as_json, added_words(found.url, is_new=is_new, checked=checked))
    for words in (*warnings, *silent_words(checked, "remem peers check", allowed)):
        warn(words)


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
            stays = book.remove(db, found.url)
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
    """Ask every peer who it is, and remember the key that it signs with."""
    from remem_gossip.peers import known_peers

    with gossiping() as (home, db):
        checked, warnings = _check(home, db, known_peers(db, clock()))
    emit(checked, as_json, [one.words for one in checked] or ["no peer is known yet"])
    for words in warnings:
        warn(words)
    end_checked(checked)


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
            warn(Checked.of(one).words)


def _listen(seconds: float) -> list[str]:
    from remem_gossip.lan import find

    with progress("listening"):
        return find(seconds)


def _check(home: Home, db: sqlite3.Connection, known: Sequence[Peer]) -> tuple[list[Checked], list[str]]:
    """Ask peers who they are, and note their keys; return what they say, and what to warn of."""
    from remem_gossip import peers as book

    described, own = _describe(home, known), Own(home.signing_key().public.hex, "this memory", "remem")
    with transaction(db):
        for one in described:
            if one.said is not None:
                places.note_private(db, one.peer, is_private=one.said.descriptor.private)
        before = {peer.url: peer.key for peer in known}
        return noted(described, before, own, partial(book.note_said, db, own=own.key))


def _describe(home: Home, known: Sequence[Peer]) -> list[Described]:
    from remem_gossip.discovery import ASKING_PATIENCE, describe
    from remem_gossip.night import dial_peer

    key, config = home.signing_key(), home.config()

    def dialling(peer: Peer, time: Span) -> Dial:
        return dial_peer(peer, key, config.target(peer.url).token, time, ASKING_PATIENCE)

    with progress("asking") as bar:
        return describe(known, dialling, progress=bar)


_HEADER = ("peer", "from", "key", *STANDING_HEADER)


def _row(peer: Peer) -> Sequence[str]:
    source = "you" if peer.source == "owner" else "pull"
    return (printable(peer.url), source, key_cell(peer.key), *standing_cells(peer.standing, peer.answered))
