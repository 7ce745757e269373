"""The state of a lesson by brute force, to compare `lesson_state` with.

Written from the rules and apart from `remem.protocol.state`: no index is kept, every question is asked of all that
was said, and whoever answers for a key is found by joining sets until nothing joins any more.
"""

from collections.abc import Collection, Iterable
from datetime import datetime
from typing import NamedTuple

from remem.protocol.evidence import Policy, Statement
from remem.protocol.state import Reading

Principal = frozenset[str]


class Expected(NamedTuple):
    """What a reading should be, in the words of the wire."""

    state: str
    cause: str
    kind: str | None
    text: str | None
    publishers: tuple[str, ...]
    confirmations: int
    unadmitted: int
    corroborations: int
    last_confirmed: datetime | None
    revokers: tuple[str, ...]

    @classmethod
    def of(cls, reading: Reading) -> "Expected":
        """Put a reading of `lesson_state` in the same words."""
        return cls(
            reading.state.value,
            reading.cause.value,
            reading.kind,
            reading.text,
            reading.publishers,
            reading.confirmations,
            reading.unadmitted,
            reading.corroborations,
            reading.last_confirmed,
            reading.revokers,
        )


def principals(policy: Policy, everyone: Iterable[str]) -> list[Principal]:
    """Return the keys that count, grouped by who answers for them."""
    if policy.open:
        return [frozenset({key}) for key in set(everyone)]
    groups = [{key} for key in policy.followed | {admission.key for admission in policy.admitted}]

    def joined(one: Collection[str], two: Collection[str]) -> bool:
        return any(
            first.key in one
            and second.key in two
            and (first.commons, first.principal) == (second.commons, second.principal)
            for first in policy.admitted
            for second in policy.admitted
        )

    while True:
        pair = next(((one, two) for one in groups for two in groups if one is not two and joined(one, two)), None)
        if pair is None:
            return [frozenset(group) for group in groups]
        groups = [group for group in groups if group not in pair] + [pair[0] | pair[1]]


def expected_reading(
    about: str, said: Iterable[Statement], denials: Iterable[Statement], policy: Policy, now: datetime
) -> Expected:
    """Work out what a lesson is worth, by the rules in their order."""
    # What trusted revokers deny is set aside whole, their own denials of each other included, all in one step.
    gone = {denial.subject for denial in denials if denial.key in policy.revokers}
    heard = [statement for statement in said if statement.subject == about and statement.key not in gone]
    everyone = {statement.key for statement in heard}

    def says(keys: Collection[str], type_: str) -> list[Statement]:
        return [statement for statement in heard if statement.key in keys and statement.type == type_]

    def confirms(keys: Collection[str]) -> list[datetime]:
        # A confirmation without a time, of a draft-0 file, does not count.
        return [statement.time for statement in says(keys, "confirm") if statement.time is not None]

    standing = sorted(key for key in everyone if says({key}, "lesson") and not says({key}, "revoke"))
    shown = says({standing[0]}, "lesson")[0] if standing else None
    groups = principals(policy, everyone)
    # Nobody confirms his own lesson, not even one that he took back.
    counted = [group for group in groups if confirms(group) and not says(group, "lesson")]
    strangers = everyone - {key for group in groups for key in group}
    last = max((time for group in counted for time in confirms(group)), default=None)

    revoking = {key for key in everyone if says({key}, "revoke")}
    turned = [group for group in counted if group & revoking]
    by: set[str] = set()
    if not standing and revoking:
        state, cause, by = "revoked", "withdrawn", revoking
    elif revoking & policy.revokers:
        state, cause, by = "revoked", "revoker", revoking & policy.revokers
    elif len(turned) >= policy.confirmations and len(turned) / len(counted) > 2 / 3:
        state, cause, by = "revoked", "quorum", revoking & frozenset().union(*turned)
    elif len(counted) < policy.confirmations or last is None:
        state, cause = "candidate", "unconfirmed"
    elif last >= now - policy.window:
        state, cause = "common", "confirmed"
    elif last >= now - policy.window - policy.window:
        state, cause = "fading", "lapsed"
    else:
        state, cause = "removed", "expired"
    return Expected(
        state=state,
        cause=cause,
        kind=shown.kind if shown else None,
        text=shown.text if shown else None,
        publishers=tuple(standing),
        confirmations=len(counted),
        unadmitted=sum(1 for key in strangers if confirms({key}) and not says({key}, "lesson")),
        corroborations=len(standing[1:]),
        last_confirmed=last,
        revokers=tuple(sorted(by)),
    )
