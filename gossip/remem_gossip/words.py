"""What the commands of a memory and of a commons say about peers, and how they read their addresses: in one way.

Nothing of the network is loaded before it is needed: a command starts with every other one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from remem.cli.output import count
from remem.errors import Partly, Unreachable, Usage
from remem.protocol.times import format_time
from remem.sharing.escape import printable

if TYPE_CHECKING:
    from remem_gossip.addresses import Allowed, PeerUrl
    from remem_gossip.meeting import Met


def spelled(url: str) -> str:
    """Spell the address of a peer in the one way.

    Raises:
        Usage: no peer may have such an address.
    """
    from remem_gossip.addresses import Allowed

    return str(address_of(url, Allowed(http=True, private=True)))


def address_of(url: str, allowed: Allowed) -> PeerUrl:
    """Read the address of a peer.

    Raises:
        Usage: this peer may not have such an address; the hint names the option that would let it, if one would.
    """
    from remem_gossip.addresses import read_url
    from remem_gossip.failures import PeerFailed

    try:
        return read_url(url, allowed)
    except PeerFailed as error:
        raise Usage(str(error), _hint(error.code, url, allowed)) from error


def met_words(met: Met) -> Iterator[str]:
    """Say what became of one peer."""
    done = met.report
    if met.code is None or done.taken or done.offered:
        came = f"{count(done.taken.get('new', 0), 'new file')} and {done.taken.get('newer', 0)} newer came"
        went = f", {done.stand_there} of {done.offered} that went stand there" if done.offered else ""
        yield f"{printable(met.peer)}: {came}{went}"
    if done.waiting:
        yield f"  {count(done.waiting, 'file')} can wait for another night"
    if done.unlisted:
        yield "  it takes files from its own peers alone; what came from it is kept"
    for code, number in sorted(done.refused.items()):
        yield f"  {count(number, 'file')} refused: {code}"
    if met.code is not None:
        later = "" if met.again is None else f"; not asked again before {format_time(met.again)}"
        yield f"{printable(met.peer)}: {met.code}: {printable(met.detail or '')}{later}"


def end(silent: int, asked: int) -> None:
    """End with the status that says how many of the peers did not answer.

    Raises:
        Unreachable: none of them did.
        Partly: some of them did not.
    """
    if silent:
        kind = Unreachable if silent == asked else Partly
        raise kind(f"expected every peer to answer, got {count(silent, 'peer that did not', 'peers that did not')}")


def _hint(code: str, url: str, allowed: Allowed) -> str | None:
    if code == "peer_address" and not allowed.private:
        return "--allow-private lets this peer be on this machine or in its networks"
    if url.startswith("http://") and not allowed.http:
        return "--allow-http lets this peer be asked without TLS"
    return None
