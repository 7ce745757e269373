"""What the commands of a memory and of a commons say about peers, and how they read their addresses: in one way.

A peer that names another key than before, or one that another peer named, is warned of wherever it is asked who it is.

Nothing of the network is loaded before it is needed: a command starts with every other one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Final, NamedTuple, Self

from remem.cli.output import count
from remem.errors import Partly, RememError, Unreachable, Usage
from remem.protocol.times import format_time
from remem.sharing.escape import printable

if TYPE_CHECKING:
    from remem_gossip.addresses import Allowed, PeerUrl
    from remem_gossip.choosing import Standing
    from remem_gossip.discovery import Described
    from remem_gossip.meeting import Met

STANDING_HEADER: Final = ("answered", "kept", "failures", "next try")
_HTTP: Final = "--allow-http lets this peer be asked without TLS"
_PRIVATE: Final = "--allow-private lets this peer be on this machine or in its networks"


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
        raise Usage(str(error), _hint(url, allowed)) from error


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


class Own(NamedTuple):
    """Whoever asks peers who they are: its key, what it is called, and its program."""

    key: str
    name: str
    program: str


@dataclass(frozen=True, slots=True)
class Checked:
    """What `peers check` prints of a peer: what it says about itself, or why it says nothing."""

    peer: str
    key: str | None
    open: bool | None
    code: str | None
    detail: str | None

    @classmethod
    def of(cls, one: Described) -> Self:
        """Cut a description down to what is printed."""
        said = None if one.said is None else one.said.descriptor
        key, is_open = (None, None) if said is None else (said.key, said.open)
        return cls(one.peer, key, is_open, one.code, one.detail)

    @property
    def words(self) -> str:
        """The same in a line."""
        if self.code is not None:
            return f"{printable(self.peer)}: {self.code}: {printable(self.detail or '')}"
        takes = "open to everyone" if self.open else "takes files of those it knows"
        return f"{printable(self.peer)}: key {self.key}, {takes}"

    def key_words(self, before: str | None, own: Own, other: str | None) -> str | None:
        """Say what the owner should know of the key that it named, if anything.

        Args:
            before: the key that it named before.
            own: who asked.
            other: the address of another peer that named that key before, so that this one is not known by it.
        """
        if self.key == own.key:
            return f"{printable(self.peer)}: it is {own.name} itself, and an exchange with it moves nothing"
        if other is not None:
            moved = f"if the node moved: {own.program} peers remove {printable(other)}"
            named = f"{printable(self.peer)} names key {self.key}, which {printable(other)} named before"
            return f"{named}: it is not known by it; {moved}"
        if before not in (None, self.key):
            return f"{printable(self.peer)} names key {self.key}, and named {before} before"
        return None


def noted(
    described: Iterable[Described],
    before: Mapping[str, str | None],
    own: Own,
    note_said: Callable[[str, str], str | None],
) -> tuple[list[Checked], list[str]]:
    """Note what peers say; return what `peers check` prints of each, and what to warn of.

    Args:
        described: what they say about themselves.
        before: the key that each of them named before.
        own: who asked.
        note_said: notes that an address named a key; returns the address of another that named it before.
    """
    checked = [Checked.of(one) for one in described]
    words = [
        one.key_words(before[one.peer], own, note_said(one.peer, one.key)) for one in checked if one.key is not None
    ]
    return checked, [line for line in words if line is not None]


def added_words(url: str, *, is_new: bool, checked: Checked) -> list[str]:
    """Say that a peer was added, and who it is, where it said so."""
    words = f"{printable(url)} {'is a peer now' if is_new else 'was a peer already'}"
    return [words] if checked.code is not None else [words, checked.words]


def silent_words(checked: Checked, command: str, allowed: Allowed) -> list[str]:
    """Say what it means that a peer which is added did not say who it is; nothing where it did.

    Args:
        checked: what came of asking it.
        command: asks it again.
        allowed: what it may be.
    """
    if checked.code is None:
        return []
    silent = f"it did not say who it is: {checked.words}; what it offers is taken once it does: {command}"
    return [silent, _PRIVATE] if checked.code == "peer_address" and not allowed.private else [silent]


def key_cell(key: str | None) -> str:
    """Say in a cell of a table which key a peer has."""
    return "not known yet" if key is None else key[:16]


def standing_cells(standing: Standing, answered: datetime | None) -> list[str]:
    """Say in cells of a table how a peer behaved."""
    return [
        "never" if answered is None else format_time(answered),
        f"{standing.delivered} of {standing.promised}" if standing.promised else "-",
        f"{standing.failures}",
        "now" if standing.next_try is None else format_time(standing.next_try),
    ]


def end_checked(checked: Sequence[Checked]) -> None:
    """End as a check does: every peer should have said who it is.

    Raises:
        Unreachable, Partly: none of them did, or some did not.
    """
    _end(sum(one.code is not None for one in checked), len(checked), "say who it is")


def end_met(met: Sequence[Met], *, named: bool, resting: int, program: str) -> None:
    """End as exchanges do: those that were named should have answered, or any of those that were not.

    Args:
        met: what became of each that was asked.
        named: whether these were named.
        resting: how many are left alone for now.
        program: asks them by its command `gossip`.

    Raises:
        Unreachable, Partly: none of them did, or may be asked now, or some that were named did not.
        RememError: there is no peer.
    """
    if not met and resting:
        got = count(resting, "peer that is left alone for a while", "peers that are left alone for a while")
        raise Unreachable(f"expected a peer that answered lately, got {got}", f"{program} gossip URL asks it anyway")
    if not met:
        raise RememError("expected a peer, got none", f"{program} peers add https://…")
    silent = sum(one.code is not None for one in met)
    if named or silent == len(met):
        _end(silent, len(met))


def _end(silent: int, asked: int, what: str = "take part") -> None:
    if silent:
        kind = Unreachable if silent == asked else Partly
        raise kind(f"expected every peer to {what}, got {count(silent, 'peer that did not', 'peers that did not')}")


def _hint(url: str, allowed: Allowed) -> str | None:
    """Name the options that would let a peer have an address; None where it has no form that any of them would."""
    from remem_gossip.addresses import Allowed, read_url
    from remem_gossip.failures import PeerFailed

    try:
        address = read_url(url, Allowed(http=True, private=True))
    except PeerFailed:
        return None
    needs = [_HTTP] if address.scheme == "http" and not allowed.http else []
    try:
        read_url(url, Allowed(http=True, private=allowed.private))
    except PeerFailed:
        needs.append(_PRIVATE)
    return "; ".join(needs) or None
