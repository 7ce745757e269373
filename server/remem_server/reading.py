"""This commons' own reading of the lessons it holds (PROTOCOL.md, section 9).

A reading is worked out when it is asked for, from the statements of the files that stand and the clock, by the
one function that every reader uses. The policy is the operator's: keys count that this commons admitted by
token, or all where it is open; and the revokers are its operators.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import chain
from typing import Final, NamedTuple

from sqlalchemy import Connection, bindparam, select

from remem.protocol import (
    Admission,
    Confirmation,
    Denial,
    Evidence,
    Lesson,
    Policy,
    Reading,
    Revocation,
    State,
    Statement,
    lesson_state,
    normal_text,
)
from remem_server.tables import statements
from remem_server.tokens import principal_of

SCANNED_MOST: Final = 1_000

_STATEMENT: Final = [statements.c[name] for name in ("key", "type", "subject", "time", "kind", "text")]
_HASHES: Final = (
    select(statements.c.subject)
    .distinct()
    .where(statements.c.type == Lesson.type, statements.c.subject > bindparam("after"))
    .order_by(statements.c.subject)
    .limit(bindparam("most"))
)
_ABOUT: Final = (
    select(*_STATEMENT, principal_of(statements.c.key))
    .where(
        statements.c.type.in_([Lesson.type, Confirmation.type, Revocation.type]),
        # These alone, and no span of hashes: in between may lie any number that nobody published.
        statements.c.subject.in_(bindparam("lessons", expanding=True)),
    )
    .order_by(statements.c.subject, statements.c.key, statements.c.type)
)
_DENIALS: Final = (
    select(*_STATEMENT, principal_of(statements.c.key))
    .where(statements.c.type == Denial.type, statements.c.key.in_(bindparam("revokers", expanding=True)))
    .order_by(statements.c.key, statements.c.subject)
)


class Said(NamedTuple):
    """One record about a lesson.

    Attributes:
        statement: what it says.
        principal: who answers for its key here; None for a key that is not admitted.
        counted: of a confirmation, whether it counts.
    """

    statement: Statement
    principal: str | None
    counted: bool | None = None


class Wanted(NamedTuple):
    """Which lessons are wanted; None leaves the choice open.

    Attributes:
        state: only lessons in this state.
        kind: only lessons of this kind.
        text: only lessons whose text holds this, whatever its case and white space.
    """

    state: State | None = None
    kind: str | None = None
    text: str | None = None

    def fits(self, reading: Reading) -> bool:
        """Tell whether a reading with a standing publication is wanted."""
        return (
            self.state in (None, reading.state)
            and self.kind in (None, reading.kind)
            and (self.text is None or normal_text(self.text) in normal_text(reading.text or ""))
        )


@dataclass(frozen=True, slots=True)
class Page:
    """Some lessons in the order of their hashes, and the hash to go on after; None at the end."""

    readings: tuple[Reading, ...]
    after: str | None


@dataclass(frozen=True, slots=True)
class Reader:
    """How this commons reads: see `Policy`, of which the admissions are looked up as they are needed."""

    open: bool
    revokers: frozenset[str]

    def lesson(self, connection: Connection, lesson: str, now: datetime) -> tuple[Reading, list[Said]] | None:
        """Read one lesson, with its evidence; None where nothing is held about it."""
        about = _about(connection, [lesson])[lesson]
        if not about:
            return None
        denials = self._denials(connection)
        policy = self._policy(about)
        reading = lesson_state(_evidence(lesson, about, denials), policy, now)
        return reading, _marked(about, denials, reading)

    def page(self, connection: Connection, wanted: Wanted, after: str, most: int, now: datetime) -> Page:
        """Read the next lessons of which a publication stands.

        A page ends early where it would read too many lessons to find those that are wanted.
        """
        scanned = most if wanted == Wanted() else SCANNED_MOST
        hashes = connection.execute(_HASHES, {"after": after, "most": scanned + 1}).scalars().all()
        more, hashes = len(hashes) > scanned, hashes[:scanned]
        if not hashes:
            return Page((), None)
        about = _about(connection, hashes)
        denials = self._denials(connection)
        policy = self._policy(chain.from_iterable(about.values()))
        found: list[Reading] = []
        for lesson in hashes:
            reading = lesson_state(_evidence(lesson, about[lesson], denials), policy, now)
            if reading.publishers and wanted.fits(reading):
                found.append(reading)
                if len(found) == most and (more or lesson != hashes[-1]):
                    return Page(tuple(found), lesson)
        return Page(tuple(found), hashes[-1] if more else None)

    def _policy(self, about: Iterable[Said]) -> Policy:
        admitted = {Admission(said.statement.key, "self", said.principal) for said in about if said.principal}
        return Policy(open=self.open, admitted=frozenset(admitted), revokers=self.revokers)

    def _denials(self, connection: Connection) -> list[Said]:
        rows = connection.execute(_DENIALS, {"revokers": sorted(self.revokers)})
        return [Said(Statement(*row[:-1]), row[-1]) for row in rows]


def _about(connection: Connection, lessons: Sequence[str]) -> Mapping[str, list[Said]]:
    about: defaultdict[str, list[Said]] = defaultdict(list)
    for row in connection.execute(_ABOUT, {"lessons": lessons}):
        about[row.subject].append(Said(Statement(*row[:-1]), row.principal))
    return about


def _evidence(lesson: str, about: Sequence[Said], denials: Sequence[Said]) -> Evidence:
    return Evidence(lesson, tuple(said.statement for said in about), tuple(denial.statement for denial in denials))


def _marked(about: Sequence[Said], denials: Sequence[Said], reading: Reading) -> list[Said]:
    """Mark the confirmations that count, and add the denials that take something out of the count."""
    marked = [
        said._replace(counted=said.statement.key in reading.counted)
        if said.statement.type == Confirmation.type
        else said
        for said in about
    ]
    keys = {said.statement.key for said in about}
    return marked + [denial for denial in denials if denial.statement.subject in keys]
