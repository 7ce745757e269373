"""The state of a lesson: what a reader makes of all it holds (PROTOCOL.md, section 9).

`lesson_state` is pure and total: two readers with the same files and the same policy agree, whatever the
order in which the files came. A state is never stored as truth and never sent.

`TRANSITIONS` says how one reading may follow another, and is what PROTOCOL.md's table and diagram show.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import Final

from remem.protocol.evidence import Count, Evidence, Policy, tally_of

NAMED_MOST: Final = 5
"""How many keys a line on the rule that gave a state names at most."""


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
        revoking = len(self.revokers)
        count = Count(revoking=revoking, confirmations=self.confirmations, last_confirmed=self.last_confirmed)
        return explain(self.cause, count, self.revokers)


def explain(cause: Cause, count: Count, revokers: Sequence[str]) -> str:
    """Say in one line which rule gave a state.

    Args:
        cause: the rule.
        count: what it went by.
        revokers: the keys whose revocations gave the state, in order; of a lesson that was withdrawn the first
            `NAMED_MOST` are enough.
    """
    said = f"{count.confirmations} counted confirmation{'' if count.confirmations == 1 else 's'}"
    last = "" if count.last_confirmed is None else f", the last on {count.last_confirmed.date()}"
    match cause:
        case Cause.WITHDRAWN:
            return f"no publication stands and {_named(revokers, count.revoking)} revokes it"
        case Cause.REVOKER:
            return f"revoked by {_named(revokers, len(revokers))}, whom this reader trusts as a revoker"
        case Cause.QUORUM:
            return f"more than two thirds of its {count.confirmations} confirmers revoke it"
        case Cause.UNCONFIRMED:
            return f"{said}, too few to be common"
        case Cause.CONFIRMED:
            return said + last
        case Cause.LAPSED:
            return f"{said}{last}, longer ago than the window"
        case Cause.EXPIRED:
            return f"{said}{last}, longer ago than twice the window"


def _named(keys: Sequence[str], number: int) -> str:
    first = ", ".join(key[:16] for key in keys[:NAMED_MOST])
    return f"{first} and {number - NAMED_MOST} more" if number > NAMED_MOST else first


def lesson_state(evidence: Evidence, policy: Policy, now: datetime) -> Reading:
    """Work out what a lesson is worth (PROTOCOL.md, section 9).

    Args:
        evidence: the judged statements of the newest file of every key.
        policy: the reader's thresholds and trust.
        now: the reader's clock, with a zone.
    """
    tally = tally_of(evidence, policy)
    count, shown = tally.count, tally.shown
    state, cause = rule(count, policy, now)
    by = {Cause.WITHDRAWN: tally.revoking, Cause.REVOKER: tally.trusted, Cause.QUORUM: tally.turned}
    return Reading(
        hash=evidence.hash,
        state=state,
        cause=cause,
        kind=shown.kind if shown else None,
        text=shown.text if shown else None,
        publishers=tally.standing,
        confirmations=count.confirmations,
        counted=tuple(sorted(tally.counted)),
        unadmitted=count.unadmitted,
        corroborations=max(0, count.standing - 1),
        last_confirmed=count.last_confirmed,
        revokers=tuple(sorted(by.get(cause, ()))),
    )


def rule(count: Count, policy: Policy, now: datetime) -> tuple[State, Cause]:
    """Apply the rules of a state in their order: the first that holds gives it (PROTOCOL.md, section 9).

    Args:
        count: what the statements about the lesson come to.
        policy: the reader's thresholds.
        now: the reader's clock, with a zone.
    """
    if count.revoking and not count.standing:
        return State.REVOKED, Cause.WITHDRAWN
    if count.trusted:
        return State.REVOKED, Cause.REVOKER
    if count.turned >= policy.confirmations and 3 * count.turned > 2 * count.confirmations:
        return State.REVOKED, Cause.QUORUM
    if count.last_confirmed is None or count.confirmations < policy.confirmations:
        return State.CANDIDATE, Cause.UNCONFIRMED
    age = now - count.last_confirmed
    if age <= policy.window:
        return State.COMMON, Cause.CONFIRMED
    if age <= 2 * policy.window:
        return State.FADING, Cause.LAPSED
    return State.REMOVED, Cause.EXPIRED


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
