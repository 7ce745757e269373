"""What passes between two nodes about one item: its file, or why there is none (PROTOCOL.md, section 16).

An item names a version of a key's file, or the proof that a key spoke twice. Values only: `wire.py` says how they are
written.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final, TypeAlias

NO_ID: Final = bytes(32)
"""Stands for the id of what could not be told."""


@dataclass(frozen=True, slots=True)
class Whole:
    """A file, byte for byte.

    Attributes:
        id: the item's id.
        data: the file.
    """

    id: bytes
    data: bytes


@dataclass(frozen=True, slots=True)
class Proof:
    """Two seals of one number by one key.

    Attributes:
        id: the item's id.
        seals: both lines, each without its LF.
    """

    id: bytes
    seals: tuple[bytes, bytes]


@dataclass(frozen=True, slots=True)
class Blocked:
    """A file that a host does not keep, for a reason of its own; the version counts as held there."""

    id: bytes
    reason: str


@dataclass(frozen=True, slots=True)
class Missing:
    """A version that does not stand any more."""

    id: bytes


@dataclass(frozen=True, slots=True)
class Head:
    """Which file an item names, as its holder says.

    Attributes:
        id: the item's id.
        key: whose file it is, 64 hex digits.
        seal: the number of its seal.
        size: its bytes.
    """

    id: bytes
    key: str
    seal: int
    size: int


Part: TypeAlias = Whole | Proof | Blocked | Missing


class Outcome(Enum):
    """What became of an offered file or proof."""

    NEW = "new"
    NEWER = "newer"
    KNOWN = "known"
    OLDER = "older"
    REFUSED = "refused"
    DEFERRED = "deferred"

    @property
    def stands(self) -> bool:
        """Whether it is what the receiver holds from now on."""
        return self in (Outcome.NEW, Outcome.NEWER, Outcome.KNOWN)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of one offered part.

    Attributes:
        id: the id of the item that it is; `NO_ID` where that could not be told.
        outcome: what became of it.
        code: why it was refused or deferred.
    """

    id: bytes
    outcome: Outcome
    code: str | None = None
