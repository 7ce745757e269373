"""What the acts of sharing tell: frozen values, which a command shows as words or as JSON.

Texts in them are as they came, from this memory or from strangers; whoever shows them to a person escapes them.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from remem.memory.holdings import Skipped
from remem.protocol import Version


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
        pinned: keys of the commons that are trusted as revokers since this memory began to pull from it.
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


# --- share ---


@dataclass(frozen=True, slots=True)
class HeldBack:
    """A text that does not leave.

    Attributes:
        subject: the lesson's hash, or what a reason is about.
        text: the text.
        code: the rule: `kind`, `no_episode`, `project`, `revoked`, `privacy`, or a code of judgement.
        reasons: why, in words.
    """

    subject: str
    text: str
    code: str
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A record for which the file has no room: its type, and what it is about."""

    type: str
    subject: str


@dataclass(frozen=True, slots=True)
class Room:
    """What the own file could still take."""

    records: int
    bytes: int


@dataclass(frozen=True, slots=True)
class TargetResult:
    """What became of the file at one target.

    Attributes:
        target: the commons.
        outcome: `new`, `newer`, `unchanged` or `equivocation` as it says; `superseded` where it holds a still newer
            file of this memory; `refused`; `unreachable`; `ready` in a rehearsal, where nothing was sent.
        code: of a refusal, its code.
        detail: of a refusal or of no answer, what was said.
        skipped: how many records its readers will skip, as far as it says so.
        hint: of a refusal or of no answer, what helps, where something does.
    """

    target: str
    outcome: str
    code: str | None = None
    detail: str | None = None
    skipped: int = 0
    hint: str | None = None

    @property
    def ok(self) -> bool:
        """Whether the target holds what this memory says now."""
        return self.outcome not in ("refused", "unreachable")


@dataclass(frozen=True, slots=True)
class ShareReport:
    """What a share did, or would do.

    Attributes:
        at: when.
        rehearsed: nothing was sent and nothing changed.
        version: the seal and digest of the file.
        data: its exact bytes.
        renewed: it is another file than the last one; else the same bytes go out again.
        lessons: how many lessons it has.
        confirmations: how many confirmations.
        revocations: how many revocations.
        denials: how many denials.
        held_back: texts that did not leave.
        left_out: records for which there was no room.
        room: what the file could still take.
        adopted: the files of this memory's own key, made elsewhere, that were taken over.
        results: what became of it, target by target.
        notices: what the owner should look into.
    """

    at: datetime
    rehearsed: bool
    version: Version
    data: bytes
    renewed: bool
    lessons: int
    confirmations: int
    revocations: int
    denials: int
    held_back: tuple[HeldBack, ...]
    left_out: tuple[LeftOut, ...]
    room: Room
    adopted: tuple[Version, ...]
    results: tuple[TargetResult, ...]
    notices: tuple[Notice, ...]


# --- places, single lessons, and trust ---


@dataclass(frozen=True, slots=True)
class ForgetReport:
    """A place that this memory goes to no more.

    Attributes:
        target: the commons.
        token: whether a token for it was kept; it is gone now.
        shared: when this memory's file was last put there, where it lies still; None if it never was.
        revokers: keys that were pinned there as revokers, and are trusted still.
        stopped: received lessons that no longer count here, since those whom it admitted do not.
        resumed: received lessons that count again, for the same reason.
    """

    target: str
    token: bool
    shared: datetime | None
    revokers: tuple[str, ...]
    stopped: tuple[Stopped, ...]
    resumed: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ConfirmReport:
    """A confirmation: the lesson, the episode that it rests on, its time, and how alike the two are.

    `renewed` is false where a confirmation of the same day or a later one had been said before.
    """

    hash: str
    text: str
    episode: str
    at: datetime
    likeness: float
    renewed: bool


@dataclass(frozen=True, slots=True)
class RevokeReport:
    """A revocation: of which lesson, in which words, whether it was this memory's own, and whether it stopped here."""

    hash: str
    text: str | None
    source: str | None
    at: datetime
    reason: str | None
    stopped: bool


@dataclass(frozen=True, slots=True)
class TrustReport:
    """A change of trust: the key, its roles, and what the change did to received lessons."""

    key: str
    roles: tuple[str, ...]
    stopped: tuple[Stopped, ...]
    resumed: tuple[str, ...]
