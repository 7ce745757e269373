"""The state of a lesson: what a reader makes of all it holds (PROTOCOL.md, section 9).

`lesson_state` is pure and total: two readers with the same files and the same policy agree, whatever the
order in which the files came. A state is never stored as truth and never sent.

`TRANSITIONS` says how one reading may follow another, and is what PROTOCOL.md's table and diagram show.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import Enum
from functools import cached_property
from typing import Final, NamedTuple

from remem.protocol.file import OriginFile
from remem.protocol.judgement import judge
from remem.protocol.records import AnyRecord, Confirmation, Denial, Lesson, Revocation
from remem.protocol.rules import RULES


class State(Enum):
    """What a lesson is worth to a reader."""

    CANDIDATE = "candidate"
    COMMON = "common"
    FADING = "fading"
    REMOVED = "removed"
    REVOKED = "revoked"


class StateEvent(Enum):
    """What moved a lesson from one state to another."""

    CONFIRMED = "confirmed"
    LAPSED = "lapsed"
    EXPIRED = "expired"
    DISCOUNTED = "discounted"
    REVOKED = "revoked"
    REINSTATED = "reinstated"


TRANSITIONS: Final[Mapping[tuple[State, StateEvent], State]] = {
    (State.CANDIDATE, StateEvent.CONFIRMED): State.COMMON,
    (State.CANDIDATE, StateEvent.LAPSED): State.FADING,
    (State.CANDIDATE, StateEvent.EXPIRED): State.REMOVED,
    (State.CANDIDATE, StateEvent.REVOKED): State.REVOKED,
    (State.COMMON, StateEvent.LAPSED): State.FADING,
    (State.COMMON, StateEvent.EXPIRED): State.REMOVED,
    (State.COMMON, StateEvent.DISCOUNTED): State.CANDIDATE,
    (State.COMMON, StateEvent.REVOKED): State.REVOKED,
    (State.FADING, StateEvent.CONFIRMED): State.COMMON,
    (State.FADING, StateEvent.EXPIRED): State.REMOVED,
    (State.FADING, StateEvent.DISCOUNTED): State.CANDIDATE,
    (State.FADING, StateEvent.REVOKED): State.REVOKED,
    (State.REMOVED, StateEvent.CONFIRMED): State.COMMON,
    (State.REMOVED, StateEvent.LAPSED): State.FADING,
    (State.REMOVED, StateEvent.DISCOUNTED): State.CANDIDATE,
    (State.REMOVED, StateEvent.REVOKED): State.REVOKED,
    (State.REVOKED, StateEvent.REINSTATED): State.CANDIDATE,
    (State.REVOKED, StateEvent.CONFIRMED): State.COMMON,
    (State.REVOKED, StateEvent.LAPSED): State.FADING,
    (State.REVOKED, StateEvent.EXPIRED): State.REMOVED,
}
"""How a reading may follow another; a pair that is missing here cannot happen."""


class Cause(Enum):
    """The rule that gave a state."""

    WITHDRAWN = "withdrawn"
    REVOKER = "revoker"
    QUORUM = "quorum"
    UNCONFIRMED = "unconfirmed"
    CONFIRMED = "confirmed"
    LAPSED = "lapsed"
    EXPIRED = "expired"


@dataclass(frozen=True, slots=True)
class Statement:
    """What one record that passed judgement says, as a reader indexes it.

    Attributes:
        key: who says it, 64 hex digits.
        type: `lesson`, `confirm`, `revoke` or `deny`.
        subject: the lesson's hash, or the denied key.
        time: its `at` or `updated`; None only in a file of draft 0.
        kind: a lesson's kind.
        text: a lesson's text, or the reason of a revocation or denial.
    """

    key: str
    type: str
    subject: str
    time: datetime | None
    kind: str | None = None
    text: str | None = None


@dataclass(frozen=True, slots=True)
class Evidence:
    """All that a reader holds about one lesson: the statements of the newest file of every key.

    Attributes:
        hash: the lesson's.
        statements: the lessons, confirmations and revocations of that hash, each of them judged.
        denials: the denials that the reader holds; those of keys it does not trust change nothing.
    """

    hash: str
    statements: tuple[Statement, ...]
    denials: tuple[Statement, ...] = ()

    @classmethod
    def of_files(cls, lesson: str, files: Iterable[OriginFile]) -> Evidence:
        """Gather the evidence about the lesson of this hash from the newest file of every key."""
        said = [statement for file in files for statement in statements(file)]
        about = tuple(statement for statement in said if statement.subject == lesson)
        return cls(lesson, about, tuple(statement for statement in said if statement.type == Denial.type))


class Admission(NamedTuple):
    """That a commons admitted a key by token, under an opaque name for whoever answers for the key."""

    key: str
    commons: str
    principal: str


@dataclass(frozen=True)
class Policy:
    """A reader's own thresholds and trust.

    Attributes:
        confirmations: N, the counted confirmations that make a lesson common.
        window: W, how long the last confirmation keeps it common.
        open: whether every key counts, as its own principal.
        followed: the keys that the owner follows.
        admitted: the admissions that the reader learned from the commons it pulls from.
        revokers: the keys whose revocations and denials the reader obeys.
    """

    confirmations: int = RULES.confirmations
    window: timedelta = RULES.window
    open: bool = False
    followed: frozenset[str] = frozenset()
    admitted: frozenset[Admission] = frozenset()
    revokers: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        """Refuse thresholds under which no lesson could ever be common."""
        if self.confirmations < 1 or self.window <= timedelta(0):
            raise ValueError(f"expected thresholds above 0, got {self.confirmations} and {self.window}")

    def principal(self, key: str) -> str | None:
        """Name whoever answers for a key, by one of its keys; None where the key does not count."""
        return key if self.open else self._principals.get(key)

    @cached_property
    def _principals(self) -> Mapping[str, str]:
        """The principal of every key that counts: keys joined by any shared commons and name are one."""
        parent = {key: key for key in self.followed} | {admission.key: admission.key for admission in self.admitted}

        def root(key: str) -> str:
            while parent[key] != key:
                parent[key] = parent[parent[key]]
                key = parent[key]
            return key

        first: dict[tuple[str, str], str] = {}
        for admission in sorted(self.admitted):
            one = root(first.setdefault((admission.commons, admission.principal), admission.key))
            other = root(admission.key)
            parent[max(one, other)] = min(one, other)
        return {key: root(key) for key in parent}


@dataclass(frozen=True, slots=True)
class Reading:
    """What a reader makes of one lesson.

    Attributes:
        hash: the lesson's.
        state: what it is worth.
        cause: the rule that gave the state.
        kind: its kind, None while no publication stands.
        text: its text in the spelling of the lowest standing key, None while no publication stands.
        publishers: the keys whose publication stands, in order.
        confirmations: how many principals' confirmations count.
        counted: the keys whose confirmation counts, in order.
        unadmitted: how many more keys confirm it that do not count under the policy.
        corroborations: how many further keys publish the same sentence.
        last_confirmed: the time of the last counted confirmation.
        revokers: the keys whose revocations gave the state, in order.
    """

    hash: str
    state: State
    cause: Cause
    kind: str | None
    text: str | None
    publishers: tuple[str, ...]
    confirmations: int
    counted: tuple[str, ...]
    unadmitted: int
    corroborations: int
    last_confirmed: datetime | None
    revokers: tuple[str, ...] = ()

    @property
    def why(self) -> str:
        """One line on the rule that gave the state."""
        count = f"{self.confirmations} counted confirmation{'' if self.confirmations == 1 else 's'}"
        last = "" if self.last_confirmed is None else f", the last on {self.last_confirmed:%Y-%m-%d}"
        by = ", ".join(key[:16] for key in self.revokers)
        return {
            Cause.WITHDRAWN: f"no publication stands and {by} revokes it",
            Cause.REVOKER: f"revoked by {by}, whom this reader trusts as a revoker",
            Cause.QUORUM: f"more than two thirds of its {self.confirmations} confirmers revoke it",
            Cause.UNCONFIRMED: f"{count}, too few to be common",
            Cause.CONFIRMED: count + last,
            Cause.LAPSED: f"{count}{last}, longer ago than the window",
            Cause.EXPIRED: f"{count}{last}, longer ago than twice the window",
        }[self.cause]


@dataclass(slots=True)
class _Heard:
    """The evidence about one lesson, sorted by what it says, without the keys that are denied."""

    lessons: dict[str, Statement] = field(default_factory=dict)
    confirmations: dict[str, datetime] = field(default_factory=dict)
    revoking: set[str] = field(default_factory=set)


def statement_of(record: AnyRecord) -> Statement | None:
    """Index what a record says, whatever judgement thinks of it; None for a seal or an unknown type."""
    match record:
        case Lesson():
            return Statement(record.key.hex, record.type, record.hash, record.updated, record.kind, record.text)
        case Confirmation():
            return Statement(record.key.hex, record.type, record.subject, record.time)
        case Revocation() | Denial():
            return Statement(record.key.hex, record.type, record.subject, record.time, None, record.reason)
        case _:
            return None


def statements(file: OriginFile) -> list[Statement]:
    """List what the records of a file say, those that judgement skips left out."""
    said = (statement_of(record) for record in file.records if judge(record) is None)
    return [statement for statement in said if statement is not None]


def lesson_state(evidence: Evidence, policy: Policy, now: datetime) -> Reading:
    """Work out what a lesson is worth (PROTOCOL.md, section 9).

    Args:
        evidence: the judged statements of the newest file of every key.
        policy: the reader's thresholds and trust.
        now: the reader's clock, with a zone.
    """
    heard = _hear(evidence, policy)
    standing = sorted(key for key in heard.lessons if key not in heard.revoking)
    published = {policy.principal(key) for key in heard.lessons}
    counted: dict[str, datetime] = {}
    counted_keys: list[str] = []
    unadmitted = 0
    for key, time in heard.confirmations.items():
        principal = policy.principal(key)
        if principal is None:
            unadmitted += key not in heard.lessons
        elif principal not in published:
            counted[principal] = max(time, counted.get(principal, time))
            counted_keys.append(key)
    last = max(counted.values(), default=None)
    state, cause, revokers = _rule(heard, policy, bool(standing), counted, last, now)
    shown = heard.lessons[standing[0]] if standing else None
    return Reading(
        hash=evidence.hash,
        state=state,
        cause=cause,
        kind=shown.kind if shown else None,
        text=shown.text if shown else None,
        publishers=tuple(standing),
        confirmations=len(counted),
        counted=tuple(sorted(counted_keys)),
        unadmitted=unadmitted,
        corroborations=max(0, len(standing) - 1),
        last_confirmed=last,
        revokers=tuple(sorted(revokers)),
    )


def event_between(before: Reading, after: Reading) -> StateEvent | None:
    """Name what moved a lesson between two readings of it; None where the state is the same."""
    if before.state is after.state:
        return None
    if after.state is State.CANDIDATE:
        return StateEvent.REINSTATED if before.state is State.REVOKED else StateEvent.DISCOUNTED
    return {
        State.COMMON: StateEvent.CONFIRMED,
        State.FADING: StateEvent.LAPSED,
        State.REMOVED: StateEvent.EXPIRED,
        State.REVOKED: StateEvent.REVOKED,
    }[after.state]


def _hear(evidence: Evidence, policy: Policy) -> _Heard:
    # All trusted denials apply in one step: two revokers who deny each other have one outcome.
    denied = {denial.subject for denial in evidence.denials if denial.key in policy.revokers}
    heard = _Heard()
    for statement in evidence.statements:
        if statement.key in denied or statement.subject != evidence.hash:
            continue
        if statement.type == Lesson.type:
            heard.lessons[statement.key] = statement
        elif statement.type == Revocation.type:
            heard.revoking.add(statement.key)
        elif statement.type == Confirmation.type and statement.time is not None:
            heard.confirmations[statement.key] = statement.time
    return heard


def _rule(
    heard: _Heard,
    policy: Policy,
    stands: bool,
    counted: Mapping[str, datetime],
    last: datetime | None,
    now: datetime,
) -> tuple[State, Cause, set[str]]:
    """Apply the rules in their order: the first that holds gives the state."""
    if heard.revoking and not stands:
        return State.REVOKED, Cause.WITHDRAWN, heard.revoking
    if trusted := heard.revoking & policy.revokers:
        return State.REVOKED, Cause.REVOKER, trusted
    turned = {key for key in heard.revoking if policy.principal(key) in counted}
    turned_principals = {policy.principal(key) for key in turned}
    if len(turned_principals) >= policy.confirmations and 3 * len(turned_principals) > 2 * len(counted):
        return State.REVOKED, Cause.QUORUM, turned
    if last is None or len(counted) < policy.confirmations:
        return State.CANDIDATE, Cause.UNCONFIRMED, set()
    age = now - last
    if age <= policy.window:
        return State.COMMON, Cause.CONFIRMED, set()
    if age <= 2 * policy.window:
        return State.FADING, Cause.LAPSED, set()
    return State.REMOVED, Cause.EXPIRED, set()
