"""What the acts of sharing tell: frozen values, which a command shows as words or as JSON.

Texts in them are as they came, from this memory or from strangers; whoever shows them to a person escapes them.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from remem.memory.holdings import Skipped


@dataclass(frozen=True, slots=True)
class Notice:
    """Something that the owner should look into.

    Attributes:
        code: a stable name for it.
        text: what it is.
    """

    code: str
    text: str


@dataclass(frozen=True, slots=True)
class TakenFile:
    """A file that is held now.

    Attributes:
        key: whose it is.
        outcome: `new`, `newer`, `equivocation_taken`, or `restored` where only its bytes had been lost.
        seal: the number of its seal; None in a file of draft 0.
        records: how many records it has, the seal left out.
    """

    key: str
    outcome: str
    seal: int | None
    records: int


@dataclass(frozen=True, slots=True)
class LeftFile:
    """A file that was not taken.

    Attributes:
        name: the key, or what the commons calls it where it names no key.
        code: why, as a stable code.
        detail: what was expected and what came.
    """

    name: str
    code: str
    detail: str


@dataclass(frozen=True, slots=True)
class Stopped:
    """A lesson that no longer counts in this memory, and why: a cause of the protocol, or `denied`."""

    hash: str
    why: str


@dataclass(frozen=True, slots=True)
class PullReport:
    """What a pull did.

    Attributes:
        target: the commons.
        at: when.
        unchanged: the commons had nothing new, and nothing was fetched.
        taken: the files that are held now and were not before.
        current: how many listed files were held already.
        skipped: the records in the taken files that judgement skips, the first thousand of them.
        skipped_count: how many there are in all.
        learned: how many lessons became local candidates.
        corroborated: this memory's own lessons that others publish too.
        stopped: received lessons that no longer count here.
        resumed: received lessons that count again.
        refused: files that acceptance, or this pull, refused.
        deferred: files from a day that has not come; they are asked for again.
        over_budget: how many files had no room.
        pinned: keys of the commons that are trusted as revokers from now on.
        notices: what the owner should look into.
        bytes: how many bytes of files were fetched.
        complete: nothing was left over for the next pull.
        interrupted: why it ended before its end, where it did.
    """

    target: str
    at: datetime
    unchanged: bool
    taken: tuple[TakenFile, ...]
    current: int
    skipped: tuple[Skipped, ...]
    skipped_count: int
    learned: int
    corroborated: tuple[str, ...]
    stopped: tuple[Stopped, ...]
    resumed: tuple[str, ...]
    refused: tuple[LeftFile, ...]
    deferred: tuple[LeftFile, ...]
    over_budget: int
    pinned: tuple[str, ...]
    notices: tuple[Notice, ...]
    bytes: int
    complete: bool
    interrupted: str | None
