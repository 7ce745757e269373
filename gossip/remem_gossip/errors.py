"""What can be wrong with what a peer sends: one family, each kind with a stable code (PROTOCOL.md, section 12)."""

from __future__ import annotations

from typing import ClassVar


class GossipError(Exception):
    """What came from a peer is not what the protocol lets it send.

    Attributes:
        code: a stable code for the kind.
        expected: what was expected.
        got: what came instead.
    """

    code: ClassVar[str]

    def __init__(self, expected: str, got: str) -> None:
        super().__init__(f"expected {expected}, got {got}")
        self.expected = expected
        self.got = got
