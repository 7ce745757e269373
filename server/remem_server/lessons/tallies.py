"""What the statements about each lesson come to, counted from nothing (PROTOCOL.md, section 9).

The table `lessons` has a row for every hash that a statement is about, and it says what `tally_of` says of them all
under the policy that stands in the database. Every statement is marked with what the policy makes of it: see
`database/tables.py`. Changes keep both so by differences: see `following.py`.

All lessons are counted from nothing (`bring_up`) where the operator's policy changed, and where a server of the release
before, which counts nothing, changed a file: `files.counted` is then behind `files.cursor`. It takes short
transactions while the commons is in use: a change in between is right in every row that was counted already, and
the others are counted after it. Where another count begins, perhaps by another policy, this one stops: two could not
agree on one row.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from typing import Final, NamedTuple

from sqlalchemy import Connection, Engine, bindparam, select, update

from remem.protocol import Admission, Confirmation, Denial, Evidence, Lesson, Policy, Statement
from remem.protocol.evidence import Count, Tally, tally_of
from remem_server.database import changes
from remem_server.database.bulk import among, update_rows
from remem_server.database.engine import writing
from remem_server.database.tables import files, lessons, meta, statements
from remem_server.lessons.policy import CountingPolicy, begin_count, end_count, goes_on, is_counted
from remem_server.lessons.rows import ABOUT, NAMED_AT_ONCE, Row, chunks, read_rows, write_rows
from remem_server.lessons.voices import principal_of

STATEMENTS_AT_ONCE: Final = 2_000
"""About how many statements are counted in one transaction: every PUT waits for its lock."""

_STATEMENT: Final = [statements.c[name] for name in Statement.__slots__]
_SAID: Final = select(
    *_STATEMENT, statements.c.principal, statements.c.counts, principal_of(statements.c.key).label("answers")
).where(statements.c.type.in_(ABOUT), among(statements.c.subject, "hashes"))
_DENIALS: Final = select(*_STATEMENT).where(
    statements.c.type == Denial.type, statements.c.key.in_(bindparam("revokers", expanding=True))
)
_SUBJECTS_AFTER: Final = (
    select(statements.c.subject)
    .where(statements.c.subject > bindparam("after"), statements.c.type.in_(ABOUT))
    .order_by(statements.c.subject)
    .limit(bindparam("most"))
)
_ROWS_AFTER: Final = (
    select(lessons.c.hash).where(lessons.c.hash > bindparam("after")).order_by(lessons.c.hash).limit(NAMED_AT_ONCE)
)
_UNCOUNTED: Final = files.c.held & files.c.counted.is_distinct_from(files.c.cursor)


class Mark(NamedTuple):
    """What the policy makes of a statement."""

    principal: str | None
    counts: bool | None


class Marked(NamedTuple):
    """A statement, and how it is marked."""

    key: str
    type: str
    subject: str
    mark: Mark


class Counted(NamedTuple):
    """What some lessons come to.

    Attributes:
        rows: what their rows should say; a hash about which nothing is said has none.
        amiss: the statements that should be marked otherwise than they are, each with how it is marked.
    """

    rows: dict[str, Row]
    amiss: list[tuple[Marked, Mark]]


def counted(connection: Connection, hashes: Collection[str], policy: CountingPolicy) -> Counted:
    """Count some lessons from nothing."""
    said: defaultdict[str, list[Statement]] = defaultdict(list)
    admitted: dict[str, str] = {}
    marked: dict[tuple[str, str, str], Mark] = {}
    for some in chunks(hashes):
        for *fields, principal, counts, answers in connection.execute(_SAID, {"hashes": some}):
            statement = Statement(*fields)
            said[statement.subject].append(statement)
            marked[statement.key, statement.type, statement.subject] = Mark(principal, counts)
            if answers is not None:
                admitted[statement.key] = answers
    whole = _policy(policy, admitted.items())
    keys = {statement.key for about in said.values() for statement in about}
    revokers = {"revokers": sorted(policy.revokers)}
    denials = tuple(Statement(*row) for row in connection.execute(_DENIALS, revokers) if row.subject in keys)
    tallies = {hash_: tally_of(Evidence(hash_, tuple(about), denials), whole) for hash_, about in said.items()}
    denied = {denial.subject for denial in denials}
    answering = {} if policy.open else {key: name for key, name in admitted.items() if key not in denied}
    amiss = [
        (one, stands)
        for hash_, tally in tallies.items()
        for one in _marks(said[hash_], tally, answering)
        if (stands := marked[one.key, one.type, one.subject]) != one.mark
    ]
    return Counted({hash_: _row(tally) for hash_, tally in tallies.items()}, amiss)


def expected(connection: Connection, hashes: Collection[str], policy: CountingPolicy) -> dict[str, Row]:
    """Work out from nothing what the rows of these hashes should say; one about which nothing is said has none."""
    return counted(connection, hashes, policy).rows


def _policy(policy: CountingPolicy, admitted: Iterable[Iterable[str]]) -> Policy:
    admissions = frozenset(Admission(key, "self", principal) for key, principal in admitted)
    return Policy(open=policy.open, admitted=admissions, revokers=policy.revokers)


def _row(tally: Tally) -> Row:
    shown = tally.shown
    row = Row() if shown is None else Row(Count(), shown.key, shown.kind, shown.text, shown.time)
    return row._replace(sums=tally.count._replace(trusted=min(tally.count.trusted, 1)))


def _marks(said: Collection[Statement], tally: Tally, answering: dict[str, str]) -> Iterator[Marked]:
    """Say how the statements about a lesson should be marked."""
    stand, count = set(tally.standing), set(tally.counted)
    counting = [(one.time, one.key) for one in said if one.type == Confirmation.type and one.key in count and one.time]
    # The last of each principal; where every key counts, each is its own.
    last = {answering.get(key, key): key for _time, key in sorted(counting)}
    for one in said:
        principal, counts = answering.get(one.key), None
        if one.type == Lesson.type:
            counts = one.key in stand
        elif one.type == Confirmation.type:
            counts = one.key in count and last[principal or one.key] == one.key
        yield Marked(one.key, one.type, one.subject, Mark(principal, counts))


def hashes_after(connection: Connection, after: str) -> list[str]:
    """List the next hashes that have a row or should have one, in order; none at the end.

    They are as many as are counted at once: by what is said about them, and one alone where that is more.
    """
    wanted = {"after": after, "most": STATEMENTS_AT_ONCE + 1}
    subjects = list(connection.execute(_SUBJECTS_AFTER, wanted).scalars())
    hashes = sorted({*subjects, *connection.execute(_ROWS_AFTER, {"after": after}).scalars()})
    if len(subjects) > STATEMENTS_AT_ONCE:
        # What is said about the last may go on.
        hashes = [hash_ for hash_ in hashes if hash_ < subjects[-1]] or hashes[:1]
    return hashes[:NAMED_AT_ONCE]


def bring_up(engine: Engine, policy: CountingPolicy) -> None:
    """Count all lessons by a policy, unless they are counted by it already."""
    with engine.connect() as connection:
        uncounted = connection.execute(select(files.c.key).where(_UNCOUNTED).limit(1)).first()
        if uncounted is None and is_counted(connection, policy):
            return
    _count_all(engine, policy, anew=False)


def recount(engine: Engine, policy: CountingPolicy) -> None:
    """Count all lessons by a policy from nothing and write every row anew, whatever stands there; take the policy up.

    Where a row was damaged, SQLite's `lesson_words` is to be built again from the rows.
    """
    _count_all(engine, policy, anew=True)


def _count_all(engine: Engine, policy: CountingPolicy, *, anew: bool) -> None:
    with writing(engine) as connection:
        changes.lock(connection)
        # From here on every change is counted by it; that not everything is yet, the next start would see.
        count = begin_count(connection, policy)
        begun = connection.execute(select(meta.c.changes)).scalar_one()
    after: str | None = ""
    while after is not None:
        with writing(engine) as connection:
            changes.lock(connection)
            if not goes_on(connection, count):
                return
            after = _count_some(connection, policy, after, anew=anew)
    with writing(engine) as connection:
        changes.lock(connection)
        if goes_on(connection, count):
            # What a server of the release before changed since then may be counted or not.
            connection.execute(update(files).where(_UNCOUNTED, files.c.cursor <= begun).values(counted=files.c.cursor))
            end_count(connection, policy)


def _count_some(connection: Connection, policy: CountingPolicy, after: str, *, anew: bool) -> str | None:
    """Count the next lessons; return the last of them, None at the end."""
    hashes = hashes_after(connection, after)
    if not hashes:
        return None
    held, (rows, amiss) = read_rows(connection, hashes), counted(connection, hashes, policy)
    marks = [(*one.mark, one.key, one.type, one.subject) for one, _stands in amiss]
    update_rows(connection, statements, Mark._fields, ("key", "type", "subject"), marks)
    write_rows(connection, held, rows, held.keys() - rows.keys(), anew=anew)
    return hashes[-1]
