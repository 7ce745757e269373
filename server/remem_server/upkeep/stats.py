"""How much a commons holds, counted in one moment.

Everything is counted from the tables when it is asked for, and nothing is kept: on a large commons it takes a few
seconds.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

from sqlalchemy import (
    ColumnElement,
    Connection,
    FromClause,
    Label,
    case,
    func,
    literal,
    select,
    text,
)

from remem.protocol import RULES, Confirmation, Denial, Lesson, Revocation, State
from remem_server.answers import Stats
from remem_server.database.engine import Database, is_postgres
from remem_server.database.tables import acts, blocks, equivocations, files, lessons, meta, skipped, statements, tokens
from remem_server.lessons.policy import stored_policy
from remem_server.lessons.search import GRADE_CANDIDATE, GRADE_REVOKED, places_of
from remem_server.opening.migrate import revision_of
from remem_server.operator.own_file import percent_of

_HELD: Final = select(
    func.count(), func.coalesce(func.sum(files.c.size), 0), func.coalesce(func.sum(files.c.records), 0)
).where(files.c.held)
_PRINCIPALS: Final = select(func.count(tokens.c.principal.distinct())).where(
    tokens.c.key.is_not(None), tokens.c.revoked.is_(None)
)
_TYPES: Final = (Lesson.type, Confirmation.type, Revocation.type, Denial.type)
_TOKEN_STATES: Final = ("unused", "bound", "admin", "expired", "revoked")


def stats_of(database: Database, now: datetime) -> Stats:
    """Count what a commons holds, where it is only read."""
    revision = revision_of(database.reads)
    with database.reads.connect() as connection:
        held, size, records = connection.execute(_HELD).one()
        return Stats(
            revision=revision,
            changes=connection.execute(select(meta.c.changes)).scalar_one(),
            files=_count(connection, files),
            held=held,
            blocked=_count(connection, blocks),
            bytes=int(size),
            records=int(records),
            statements=_by(connection, _TYPES, statements.c.type.label("type")),
            skipped=_count(connection, skipped),
            lessons=lessons_by_state(connection, now),
            unlisted=_count(connection, lessons, lessons.c.place.is_(None)),
            principals=connection.execute(_PRINCIPALS).scalar_one(),
            tokens=_by(connection, _TOKEN_STATES, _token_state(now)),
            equivocations=_count(connection, equivocations),
            acts=_count(connection, acts),
            operator_file_percent=_operator_file_percent(connection),
            database_bytes=_database_bytes(connection),
        )


def lessons_by_state(connection: Connection, now: datetime) -> dict[str, int]:
    """Count the lessons of which a publication stands, by what each is worth at this moment."""
    confirmed, place = lessons.c.last_confirmed, lessons.c.place
    state = case(
        (place >= places_of(GRADE_REVOKED)[0], literal(State.REVOKED.value)),
        (place >= places_of(GRADE_CANDIDATE)[0], literal(State.CANDIDATE.value)),
        (confirmed >= now - RULES.window, literal(State.COMMON.value)),
        (confirmed >= now - 2 * RULES.window, literal(State.FADING.value)),
        else_=literal(State.REMOVED.value),
    )
    return _by(connection, [one.value for one in State], state.label("state"), place.is_not(None))


def _operator_file_percent(connection: Connection) -> int:
    policy = stored_policy(connection)
    # Before the first start that serves there is no policy, and the node may have spoken.
    keys = {connection.execute(select(meta.c.node)).scalar_one(), *(() if policy is None else policy.revokers)} - {None}
    found = connection.execute(select(files.c.size, files.c.records).where(files.c.key.in_(keys)))
    return max((percent_of(size, records) for size, records in found), default=0)


def _token_state(now: datetime) -> Label[str]:
    return case(
        (tokens.c.revoked.is_not(None), literal("revoked")),
        (tokens.c.expires <= now, literal("expired")),
        (tokens.c.admin, literal("admin")),
        (tokens.c.key.is_not(None), literal("bound")),
        else_=literal("unused"),
    ).label("state")


def _count(connection: Connection, table: FromClause, *only: ColumnElement[bool]) -> int:
    number: int = connection.execute(select(func.count()).select_from(table).where(*only)).scalar_one()
    return number


def _by(
    connection: Connection, names: tuple[str, ...] | list[str], name: Label[str], *only: ColumnElement[bool]
) -> dict[str, int]:
    """Count rows by a name, the names of which there is none too."""
    query = select(name, func.count()).where(*only).group_by(name)
    found = dict(connection.execute(query).all())
    return {one: found.get(one, 0) for one in names}


def _database_bytes(connection: Connection) -> int:
    sizes = {
        True: "SELECT pg_database_size(current_database())",
        False: "SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()",
    }
    size: int = connection.execute(text(sizes[is_postgres(connection)])).scalar_one()
    return size
