"""Whose voice counts here, as the database is asked for it (PROTOCOL.md, sections 9 and 11).

These conditions say what `remem.protocol.evidence` says of a policy, where it would take reading every statement to
ask there.

A key is admitted as long as one of the tokens that are bound to it is not revoked. That a token expires ends the
requests that carry it and nothing else: no admission, and so no count, changes by the passing of time alone.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from sqlalchemy import BindParameter, ColumnElement, Connection, FromClause, Label, and_, bindparam, exists, or_, select

from remem.protocol import Confirmation, Denial, Lesson
from remem_server.database.tables import statements, tokens
from remem_server.lessons.policy import CountingPolicy


class Voice(NamedTuple):
    """What the voice of a key is worth.

    Attributes:
        heard: whether no revoker denies the key.
        counts: whether somebody answers for it, and it is heard.
        principal: who does; None too where every key counts, as its own principal.
    """

    heard: bool
    counts: bool
    principal: str | None


_REVOKERS: Final[BindParameter[str]] = bindparam("revokers", expanding=True)
_PRINCIPAL: Final = (
    select(tokens.c.principal)
    .where(tokens.c.key == bindparam("key"), tokens.c.revoked.is_(None))
    .order_by(tokens.c.id)
    .limit(1)
)
_DENIAL: Final = (
    select(statements.c.key)
    .where(statements.c.type == Denial.type, statements.c.subject == bindparam("key"), statements.c.key.in_(_REVOKERS))
    .limit(1)
)


def voice_of(connection: Connection, policy: CountingPolicy, key: str) -> Voice:
    """Say what the voice of a key is worth."""
    if policy.revokers:
        denial = connection.execute(_DENIAL, {"key": key, "revokers": sorted(policy.revokers)}).first()
        if denial is not None:
            return Voice(heard=False, counts=False, principal=None)
    principal = None if policy.open else connection.execute(_PRINCIPAL, {"key": key}).scalar()
    return Voice(heard=True, counts=policy.open or principal is not None, principal=principal)


def principal_of(key: ColumnElement[str]) -> Label[str | None]:
    """Select the principal of an admitted key, beside the column that names the key."""
    # All of its good tokens have the same; where that was damaged, the first is taken everywhere.
    good = select(tokens.c.principal).where(tokens.c.key == key, tokens.c.revoked.is_(None))
    return good.order_by(tokens.c.id).limit(1).scalar_subquery().label("principal")


def heard(key: ColumnElement[str]) -> ColumnElement[bool]:
    """Ask that no revoker, of those in the parameter `revokers`, denies a key."""
    denial = statements.alias()
    return ~exists().where(denial.c.type == Denial.type, denial.c.subject == key, denial.c.key.in_(_REVOKERS))


def counts(confirmation: FromClause) -> ColumnElement[bool]:
    """Ask that a confirmation counts, whether or not it is the last of its principal.

    Args:
        confirmation: statements, of which it is one.
    """
    said, lesson = confirmation.c, statements.alias()
    published = exists().where(
        lesson.c.subject == said.subject, lesson.c.principal == said.principal, lesson.c.type == Lesson.type
    )
    beside = and_(said.principal.is_not(None), said.time.is_not(None), ~published)
    return and_(said.type == Confirmation.type, or_(said.counts.is_(True), beside))
