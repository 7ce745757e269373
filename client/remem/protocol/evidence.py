"""Evidence: what a reader holds about a lesson, and what it comes to under a policy (PROTOCOL.md, section 9).

A statement is what one judged record says; the policy says whose word counts. The time plays no part here: it
does in `state.py`, which makes a state of a tally. Everything is pure, and in whatever order statements come their
tally is the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cached_property
from typing import NamedTuple

from remem.protocol.file import OriginFile
from remem.protocol.judgement import judge
from remem.protocol.records import AnyRecord, Confirmation, Denial, Lesson, Revocation
from remem.protocol.rules import RULES


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


class Count(NamedTuple):
    """What the statements about a lesson come to, in the numbers that the rules ask for.

    Attributes:
        standing: how many publications stand.
        revoking: how many keys revoke it.
        trusted: how many of them the policy obeys as revokers.
        confirmations: how many principals' confirmations count.
        turned: how many of these principals revoke it too.
        last_confirmed: the time of the last counted confirmation.
        unadmitted: how many more keys confirm it that do not count under the policy; no rule asks for it.
    """

    standing: int = 0
    revoking: int = 0
    trusted: int = 0
    confirmations: int = 0
    turned: int = 0
    last_confirmed: datetime | None = None
    unadmitted: int = 0


@dataclass(frozen=True, slots=True)
class Tally:
    """Who says what of a lesson, under a policy and whatever the time.

    Tallies of the statements of different principals add up: no principal has a say in what another's come to.

    Attributes:
        standing: the keys whose publication stands, in order.
        shown: the publication of the lowest of them, None while none stands.
        revoking: the keys that revoke it.
        trusted: those of them that the policy obeys.
        turned: those of them whose principals' confirmations count.
        counted: the keys whose confirmation counts.
        count: what it comes to in numbers.
    """

    standing: tuple[str, ...]
    shown: Statement | None
    revoking: frozenset[str]
    trusted: frozenset[str]
    turned: frozenset[str]
    counted: tuple[str, ...]
    count: Count


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


def tally_of(evidence: Evidence, policy: Policy) -> Tally:
    """Work out who says what of a lesson."""
    heard = _hear(evidence, policy)
    standing = tuple(sorted(heard.lessons.keys() - heard.revoking))
    counted: dict[str, datetime] = {}
    counted_keys: list[str] = []
    unadmitted = 0
    if heard.confirmations:
        published = {policy.principal(key) for key in heard.lessons}
        for key, time in heard.confirmations.items():
            principal = policy.principal(key)
            if principal is None:
                unadmitted += key not in heard.lessons
            elif principal not in published:
                counted[principal] = max(time, counted.get(principal, time))
                counted_keys.append(key)
    revoking = frozenset(heard.revoking)
    trusted = revoking & policy.revokers
    turned = frozenset(key for key in revoking if policy.principal(key) in counted) if counted else frozenset[str]()
    count = Count(
        standing=len(standing),
        revoking=len(revoking),
        trusted=len(trusted),
        confirmations=len(counted),
        turned=len({policy.principal(key) for key in turned}),
        last_confirmed=max(counted.values(), default=None),
        unadmitted=unadmitted,
    )
    shown = heard.lessons[standing[0]] if standing else None
    return Tally(standing, shown, revoking, trusted, turned, tuple(counted_keys), count)


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
