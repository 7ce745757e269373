"""`remem-server peers` and `gossip`: whom this commons gossips with, and a round among them now."""

from __future__ import annotations

from contextlib import closing
from dataclasses import asdict, dataclass
from random import SystemRandom
from typing import Annotated, Final

import typer

from remem.cli.output import AsJson, emit, table
from remem.errors import RememError
from remem.protocol.times import format_time
from remem.sharing.escape import printable
from remem_gossip.addresses import Allowed
from remem_gossip.choosing import FEW_PEERS
from remem_gossip.errors import GossipError
from remem_gossip.words import address_of, end, met_words, spelled
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
Publish = Annotated[bool, typer.Option("--publish", help="Tell others of it, in the description of this commons.")]


@app.command()
def add(
    url: Url,
    allow_private: AllowPrivate = False,
    allow_http: AllowHttp = False,
    publish: Publish = False,
    data: Data = None,
    as_json: AsJson = False,
) -> None:
    """Gossip with a node from now on, or change what it may be; its offers are taken too."""
    allowed = Allowed(http=allow_http, private=allow_private)
    address = address_of(url, allowed)
    with opened(made(settings_of(data=data))) as commons:
        with writing(commons.engine) as connection:
            is_new = book.add(connection, address, allowed, commons.clock(), publish=publish)
        checked = _check(commons, _found(commons, str(address)))
        found = _found(commons, str(address))
    emit(_fields(found), as_json, [f"{found.url} {'is a peer now' if is_new else 'was a peer already'}"])
    if checked.code is not None:
        note(f"it does not say who it is now: {checked.code}: {printable(checked.detail or '')}")
        note(f"what it offers is taken once it did: {PROGRAM} peers check")


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
    if len(found) < FEW_PEERS:
        note(f"with fewer than {FEW_PEERS} peers, what one of them does not tell may never come")


@dataclass(frozen=True, slots=True)
class Checked:
    """What a peer says about itself, or why it says nothing."""

    peer: str
    key: str | None = None
    code: str | None = None
    detail: str | None = None


@app.command()
def check(data: Data = None, as_json: AsJson = False) -> None:
    """Ask every peer who it is, and remember the key that it signs with."""
    with opened(made(settings_of(data=data))) as commons:
        with commons.engine.connect() as connection:
            found = book.list_all(connection)
        checked = [_check(commons, peer) for peer in found]
    emit(
        [asdict(one) for one in checked], as_json, [_checked_words(one) for one in checked] or ["no peer is known yet"]
    )
    end(sum(one.code is not None for one in checked), len(checked))


def gossip(
    peer: Annotated[list[str] | None, typer.Argument(metavar="URL", help="Whom to ask; a few by default.")] = None,
    data: Data = None,
    as_json: AsJson = False,
) -> None:
    """Exchange what is new with some peers now: what this commons lacks comes, and what they lack goes."""
    with opened(made(settings_of(data=data))) as commons:
        only = None if not peer else [_found(commons, spelled(url)) for url in dict.fromkeys(peer)]
        met = rounds.go_round(commons, SystemRandom(), only=only)
    emit([asdict(one) for one in met], as_json, [line for one in met for line in met_words(one)])
    if not met:
        raise RememError("expected a peer that may be asked, got none", f"{PROGRAM} peers list")
    end(sum(one.code is not None for one in met), len(met) if only is None else max(2, len(met)))


def _check(commons: Commons, peer: Peer) -> Checked:
    try:
        with closing(rounds.dial_peer(commons, peer)) as dial:
            return Checked(peer.url, rounds.learn_key(commons, peer, dial))
    except GossipError as error:
        return Checked(peer.url, code=error.code, detail=str(error))


def _checked_words(one: Checked) -> str:
    if one.code is not None:
        return f"{printable(one.peer)}: {one.code}: {printable(one.detail or '')}"
    return f"{printable(one.peer)}: key {one.key}"


def _found(commons: Commons, url: str) -> Peer:
    with commons.engine.connect() as connection:
        found = book.find(connection, url)
    if found is None:
        raise RememError(f"expected a peer of this commons, got {url}", f"{PROGRAM} peers list")
    return found


_HEADER: Final = ("peer", "key", "published", "answered", "kept", "failures", "next try")


def _row(peer: Peer) -> list[str]:
    standing = peer.standing
    return [
        printable(peer.url),
        "not known yet" if peer.key is None else peer.key[:16],
        "yes" if peer.published else "no",
        "never" if peer.answered is None else format_time(peer.answered),
        f"{standing.delivered} of {standing.promised}" if standing.promised else "-",
        f"{standing.failures}",
        "now" if standing.next_try is None else format_time(standing.next_try),
    ]


def _fields(peer: Peer) -> dict[str, object]:
    """Say all of a peer, in one object without another in it."""
    standing, said = asdict(peer.standing), asdict(peer)
    del said["standing"], said["allowed"], standing["url"]
    return {**said, "allow_http": peer.allowed.http, "allow_private": peer.allowed.private, **standing}
