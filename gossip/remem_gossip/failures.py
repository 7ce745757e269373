"""What may go wrong on the way to a peer, or with what answers there: one family, a stable code for each kind."""

from __future__ import annotations

from typing import ClassVar, Self

from remem_gossip.errors import GossipError


class PeerFailed(GossipError):
    """A peer could not be asked, or did not answer as a peer does."""

    code: ClassVar[str] = "peer_failed"

    @classmethod
    def saying(cls, message: str) -> Self:
        """Make one of a message that says already what was expected and what came."""
        expected, _, got = message.removeprefix("expected ").partition(", got ")
        return cls(expected, got)


class UrlRefused(PeerFailed):
    """An address is no URL that a peer may have."""

    code = "peer_url"


class AddressRefused(PeerFailed):
    """A host's name leads where a peer may not be."""

    code = "peer_address"


class NameUnknown(PeerFailed):
    """A host's name leads nowhere."""

    code = "peer_name"


class NotReached(PeerFailed):
    """There was no connection, or it broke."""

    code = "peer_unreachable"


class TlsFailed(PeerFailed):
    """The other end is not who it should be, or does not speak TLS."""

    code = "peer_tls"


class TooSlow(PeerFailed):
    """A step, or the whole of an exchange of HTTP, took too long."""

    code = "peer_timeout"


class TooLong(PeerFailed):
    """More bytes came than the answer may have, packed or unpacked."""

    code = "peer_answer_size"


class NoAnswer(PeerFailed):
    """What came is no answer of HTTP, or is coded in another way than it says."""

    code = "peer_answer"


class Redirected(PeerFailed):
    """The answer leads elsewhere, where nobody goes."""

    code = "peer_redirect"
