"""What the commons answers in JSON, as the models that `/docs` shows. Times are in UTC, digests and keys in hex."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field


class Answer(BaseModel):
    """An answer with exactly these fields."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Held(Answer):
    """Which file of a key stands."""

    seal: int | None = Field(description="The number of its seal; null for a file of draft 0.")
    digest: str


class Problem(Answer):
    """A refusal (RFC 9457). `code` is stable, and says which rule it was."""

    type: Literal["about:blank"] = "about:blank"
    title: str
    status: int
    detail: str
    code: str
    line: int | None = Field(default=None, description="The line of the file that breaks the rule, from 1.")
    expected: str | None = None
    got: str | None = None
    held: Held | None = Field(default=None, description="What stands instead of the file that came.")
    addresses: list[str] | None = Field(default=None, description="Where the files of an origin's keys are.")
    reason: str | None = Field(default=None, description="Why this host does not keep the file of a key.")


class Skipped(Answer):
    """A line that readers skip, though it is stored and served."""

    line: int
    code: str
    expected: str
    got: str


class Published(Answer):
    """A file that was accepted."""

    outcome: Literal["new", "newer", "unchanged", "equivocation"]
    key: str
    origin: str
    seal: int | None
    digest: str
    records: int
    skipped: list[Skipped]


class IndexEntry(Answer):
    """A file, as the index lists it."""

    origin: str
    updated: datetime = Field(description="When this commons took the file.")
    records: int = Field(description="How many records stand behind the seal.")
    key: str
    seal: int | None
    digest: str
    principal: str | None = Field(
        description="Who answers for the key, by a name of this commons; null if not admitted."
    )


class Lesson(Answer):
    """A lesson, and what this commons makes of it."""

    hash: str
    kind: str | None = Field(description="Null while no publication stands, and so is the text.")
    text: str | None
    state: Literal["candidate", "common", "fading", "removed", "revoked"]
    cause: Literal["withdrawn", "revoker", "quorum", "unconfirmed", "confirmed", "lapsed", "expired"]
    why: str
    confirmations: int = Field(description="How many principals' confirmations count.")
    unadmitted: int = Field(description="How many more keys confirm it, and are not admitted.")
    corroborations: int = Field(description="How many further keys publish the same sentence.")
    last_confirmed: datetime | None


class LessonPage(Answer):
    """Some lessons, those worth most first."""

    lessons: list[Lesson]
    next: str | None = Field(description="The cursor of the next page; null at the end.")


class EvidenceItem(Answer):
    """One record about a lesson."""

    key: str
    origin: str
    type: Literal["lesson", "confirm", "revoke", "deny"]
    at: datetime | None
    principal: str | None
    reason: str | None = Field(default=None, description="Of a revocation or a denial, where it gives one.")
    counted: bool | None = Field(default=None, description="Of a confirmation: whether it counts.")
    denies: str | None = Field(default=None, description="Of a denial: the key of which nothing counts.")


class LessonDetail(Lesson):
    """A lesson with the records that are held about it."""

    evidence: list[EvidenceItem]
    complete: bool = Field(description="Whether these are all of the records.")


class VerdictOfOffer(Answer):
    """What became of one part of an offer."""

    id: str = Field(description="Of the item that it is, 64 hex digits; zeros where that cannot be told.")
    verdict: Literal["new", "newer", "known", "older", "refused", "deferred"]
    code: str | None = Field(default=None, description="Why it was refused or deferred.")


class Verdicts(Answer):
    """What became of an offer."""

    verdicts: list[VerdictOfOffer]


class Acted(Answer):
    """What became of an act of the operator."""

    act: Literal["revoke", "unrevoke", "deny", "undeny", "block", "unblock"]
    subject: str = Field(description="A lesson's hash, or a key.")
    outcome: Literal["done", "already"] = Field(
        description="`already` where it was so before; the journal has nothing of it then."
    )
    known: bool = Field(description="Whether anything of the subject is held here; if not, it may be a typing error.")
    file_percent: int | None = Field(
        description="How full the node's own file is; null where the act is no word of it."
    )


class TokenEntry(Answer):
    """What is kept of a token."""

    id: int
    label: str
    state: Literal["unused", "used", "bound", "expired", "revoked"] = Field(
        description="`bound` to a key; `used` is said of admin tokens, which are never bound."
    )
    admin: bool
    principal: str
    key: str | None = Field(description="The key it is bound to.")
    created: datetime
    expires: datetime | None
    used: datetime | None = Field(description="When it was last used: to the hour, or to the day where it only reads.")
    revoked: datetime | None


class TokenMade(TokenEntry):
    """A token that was just made; it cannot be shown again."""

    token: str


class JournalEntry(Answer):
    """An act of the operator, as the journal has it."""

    id: int = Field(description="Its number, which only grows.")
    at: datetime = Field(description="When it was done.")
    who: str
    act: str
    subject: str
    reason: str | None


class JournalPage(Answer):
    """Some of the operator's acts, the oldest first."""

    acts: list[JournalEntry]
    next: int | None = Field(description="Pass it as `after` for the next page; null at the end.")


class Stats(Answer):
    """How much this commons holds."""

    revision: str | None = Field(description="The migration that its tables are of.")
    changes: int = Field(description="The newest cursor of its index.")
    files: int = Field(description="How many keys it knows a file of.")
    held: int = Field(description="How many of these files it has; the others were blocked.")
    blocked: int = Field(description="How many keys are blocked.")
    bytes: int = Field(description="The size of the files that it has.")
    records: int = Field(description="How many records they have, the seals left out.")
    statements: dict[str, int] = Field(description="How many records pass judgement, by type.")
    skipped: int = Field(description="How many judgement skips.")
    lessons: dict[str, int] = Field(description="How many lessons are listed, by state.")
    unlisted: int = Field(description="Of how many more something is said, while no publication stands.")
    principals: int = Field(description="How many parties answer for the keys that are admitted.")
    tokens: dict[str, int] = Field(description="How many tokens there are, by what they are good for.")
    equivocations: int = Field(description="Of how many keys the owner sealed two files with one number.")
    acts: int = Field(description="How many acts of the operator the journal has.")
    operator_file_percent: int = Field(description="How full the fullest file of an operator is, by bytes or records.")
    database_bytes: int = Field(description="What the database takes.")


class SizeLimits(Answer):
    """The sizes that this commons accepts."""

    line_bytes: int
    file_bytes: int
    file_records: int


class Descriptor(Answer):
    """What this commons is."""

    protocol: list[int] = Field(description="The versions of the wire that it speaks.")
    software: str
    key: str = Field(description="The key of this node.")
    operators: list[str] = Field(description="The keys of those who answer for it, the node's first.")
    open: bool = Field(description="Whether anyone may publish.")
    private: bool = Field(description="Whether reading needs a token.")
    limits: SizeLimits
    confirmations: int = Field(description="How many counted confirmations make a lesson common here.")
    window_days: int = Field(description="For how many days the last of them keeps it so.")
    peers: list[str]


class Health(Answer):
    """That the commons is there."""

    status: Literal["ok"] = "ok"
