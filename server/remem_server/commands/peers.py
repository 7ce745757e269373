"""`remem-server peers` and `gossip`: whom this commons gossips with, and a round among them now."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from random import SystemRandom
from typing import Annotated, Final

import typer

from remem.cli.output import AsJson, emit, progress, table
from remem.errors import RememError
from remem.sharing.escape import printable
from remem_gossip.addresses import Allowed
from remem_gossip.checks import names_of
from remem_gossip.choosing import FEW_PEERS
from remem_gossip.dial import Dial
from remem_gossip.discovery import ASKING_PATIENCE, describe
from remem_gossip.spans import Span
from remem_gossip.words import (
    STANDING_HEADER,
    Checked,
    Own,
    added_words,
    address_of,
    end_checked,
    end_met,
    key_cell,
    met_words,
    noted,
    silent_words,
    spelled,
    standing_cells,
)
from remem_server.commands.common import PROGRAM, Data, made, note, opened, read_database, settings_of
from remem_server.database.engine import writing
from remem_server.gossip import peers as book
from remem_server.gossip import rounds
from remem_server.gossip.peers import Peer
from remem_server.opening.context import Commons

app: Final = typer.Typer(help="The nodes that this commons gossips with.", no_args_is_help=True, rich_markup_mode=None)

Url = Annotated[str, typer.Argument(metavar="URL", help="The address of a commons or of another node.")]
AllowPrivate = Annotated[bool, typer.Option("--allow-private", help="It may be on this machine or in its networks.")]
AllowHttp = Annotated[bool, typer.Option("--allow-http", help="It may be asked without TLS.")]
Publish = Annotated[
    bool, typer.Option("--publish", help="Tell others of it, in the description of this commons, within a minute.")
]


@app.command()
def add(
    url: Url,
    allow_private: AllowPrivate = False,
    allow_http: AllowHttp = False,
    publish: Publish = False,
    data: Data = None,
    as_json: AsJson = False,
) -> None:
    """Gossip with a node from now on, or change what it may be; it is asked who it is, and its offers are taken too."""
    allowed = Allowed(http=allow_http, private=allow_private)
    address = address_of(url, allowed)
    with opened(made(settings_of(data=data))) as commons:
        with writing(commons.engine) as connection:
            is_new = book.add(connection, address, allowed, commons.clock(), publish=publish)
        (checked,), warnings = _check(commons, [_found(commons, str(address))])
        found = _found(commons, str(address))
        names_wanted = commons.settings.private and not commons.settings.names
    emit(_fields(found), as_json, added_words(found.url, is_new=is_new, checked=checked))
    if names_wanted:
        warnings = [*warnings, _NAMES_WANTED]
    for words in (*warnings, *silent_words(checked, f"{PROGRAM} peers check", allowed)):
        note(words)


@app.command()
def remove(url: Url, data: Data = None, as_json: AsJson = False) -> None:
    """Gossip with a node no more."""
    with opened(made(settings_of(data=data))) as commons:
        found = _found(commons, spelled(url))
        with writing(commons.engine) as connection:
            book.remove(connection, found.url)
    emit(_fields(found), as_json, [f"{found.url} is no peer any more"])


@app.command("list")
def list_peers(data: Data = None, as_json: AsJson = False) -> None:
    """List the peers, and how they kept their word."""
    with read_database(made(settings_of(data=data))) as database, database.reads.connect() as connection:
        found = book.list_all(connection)
    rows = [_row(peer) for peer in found]
    emit([_fields(peer) for peer in found], as_json, table(rows, _HEADER) if rows else ["no peer is known yet"])
    if len(set(names_of(found).values())) < FEW_PEERS:
        note(f"with fewer than {FEW_PEERS} peers, what one of them does not tell may never come")


@app.command()
def check(data: Data = None, as_json: AsJson = False) -> None:
    """Ask every peer who it is, and remember the key that it signs with."""
    with opened(made(settings_of(data=data))) as commons:
        with commons.engine.connect() as connection:
            known = book.list_all(connection)
        checked, warnings = _check(commons, known)
    emit(checked, as_json, [one.words for one in checked] or ["no peer is known yet"])
    for words in warnings:
        note(words)
    end_checked(checked)


def gossip(
    peer: Annotated[list[str] | None, typer.Argument(metavar="URL", help="Whom to ask; a few by default.")] = None,
    data: Data = None,
    as_json: AsJson = False,
) -> None:
    """Exchange what is new with some peers now: what this commons lacks comes, and what they lack goes."""
    with opened(made(settings_of(data=data))) as commons:
        only = None if not peer else [_found(commons, spelled(url)) for url in dict.fromkeys(peer)]
        met = rounds.go_round(commons, SystemRandom(), only=only)
        with commons.engine.connect() as connection:
            resting = sum(one.standing.next_try is not None for one in book.list_all(connection))
    emit([asdict(one) for one in met], as_json, [line for one in met for line in met_words(one)])
    end_met(met, named=bool(peer), resting=resting, program=PROGRAM)


def _check(commons: Commons, known: Sequence[Peer]) -> tuple[list[Checked], list[str]]:
    """Ask peers who they are, and note their keys; return what they say, and what to tell of it."""

    def dialling(peer: Peer, time: Span) -> Dial:
        return rounds.dial_peer(commons, peer, time, ASKING_PATIENCE)

    with progress("asking") as bar:
        described = describe(known, dialling, progress=bar)
    before, own = {peer.url: peer.key for peer in known}, Own(commons.key.public.hex, "this commons", PROGRAM)
    with writing(commons.engine) as connection:
        return noted(described, before, own, partial(book.note_said, connection, own=own.key))


def _found(commons: Commons, url: str) -> Peer:
    with commons.engine.connect() as connection:
        found = book.find(connection, url)
    if found is None:
        raise RememError(f"expected a peer of this commons, got {url}", f"{PROGRAM} peers list")
    return found


_NAMES_WANTED: Final = (
    "a private commons knows a peer that reads by what it signed for one of REMEM_NAMES, and that is not set: until it"
    " has every name by which peers reach this commons, they are answered 401"
)
_HEADER: Final = ("peer", "published", "key", *STANDING_HEADER)


def _row(peer: Peer) -> list[str]:
    published = "yes" if peer.published else "no"
    return [printable(peer.url), published, key_cell(peer.key), *standing_cells(peer.standing, peer.answered)]


def _fields(peer: Peer) -> dict[str, object]:
    """Say all of a peer, in one object without another in it."""
    standing, said = asdict(peer.standing), asdict(peer)
    del said["standing"], said["allowed"], standing["url"]
    return {**said, "allow_http": peer.allowed.http, "allow_private": peer.allowed.private, **standing}
