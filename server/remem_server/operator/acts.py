"""What an operator does: takes a lesson back, denies or blocks a key, gives out tokens (PROTOCOL.md, section 11).

- An act is one transaction: the work, and a row of the journal, which says who did what, when and why.
- Whoever acts by a token has a good one at the moment of the act: it is checked in that transaction.
- A revocation and a denial are words of the node's own file, which is stored as every file is, by its one write path.
- A block is this host's own choice: the version of the file stays, its bytes go, and the key says nothing here.
- What is so already is not done again, and not written down.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal, NamedTuple, TypeAlias

from sqlalchemy import Connection, Engine, bindparam, delete, exists, insert, select

from remem.protocol import Confirmation, Lesson, OriginFile, ProtocolError, Verified, accept, newest
from remem_server.database import changes, tables
from remem_server.database.engine import writing
from remem_server.errors import Internal, OlderFile, OperatorKey, TokenIdUnknown
from remem_server.files import items, journal, ledger, store, tokens
from remem_server.files.accept import store_accepted
from remem_server.files.tokens import Terms, Token
from remem_server.lessons.policy import stored_policy
from remem_server.opening.context import Commons
from remem_server.operator.own_file import (
    END_OF_TIME,
    Act,
    Word,
    check_reason,
    checked_key,
    percent_of,
    resealed,
    revised,
    word_of,
)

Done: TypeAlias = Literal["done", "already"]


class Bearer(NamedTuple):
    """Whoever acts by an admin token.

    Attributes:
        secret: the token itself.
    """

    secret: str | None


Who: TypeAlias = str | Bearer
"""Who acts: the name of a person at the commons' own machine, or the bearer of a token."""

_SAID_BY_OTHERS: Final = select(
    exists().where(
        tables.statements.c.type.in_((Lesson.type, Confirmation.type)),
        tables.statements.c.subject == bindparam("subject"),
        tables.statements.c.key != bindparam("but"),
    )
)
_UNBLOCK: Final = delete(tables.blocks).where(tables.blocks.c.key == bindparam("of_key"))


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of an act.

    Attributes:
        act: what was to be done.
        subject: to what: a lesson's hash, or a key.
        outcome: whether it is done now, or was so already.
        known: whether anything of it is held here; where not, the subject may be a typing error.
        file_percent: how full the node's own file is, where the act is a word of it.
    """

    act: str
    subject: str
    outcome: Done
    known: bool
    file_percent: int | None = None


@contextmanager
def _act(engine: Engine, who: Who, now: datetime) -> Iterator[tuple[Connection, str]]:
    """Begin the transaction of an act, with nobody else's beside it; yield it with the name of who acts."""
    with writing(engine) as connection:
        changes.lock(connection)
        yield connection, who if isinstance(who, str) else tokens.check_admin(connection, who.secret, now).name


# --- words of the operator ---


def say(commons: Commons, who: Who, act: Act, subject: str, reason: str | None) -> Outcome:
    """Revoke a lesson or deny a key, or take that back, in the node's own file.

    Raises:
        TokenError: a token is not good.
        AdminNeeded: a token is not for this.
        ParameterForm: the subject or the reason has another form.
        OperatorKey: the key is the operator's own.
        CommonsError: the node's file cannot say it: see `revised`.
    """
    now, word = commons.clock(), word_of(act, subject, reason)
    with _act(commons.engine, who, now) as (connection, name):
        if word.type == "deny" and word.said:
            _refuse_own(connection, commons, word.subject)
        known = _is_known(connection, word, commons.key.public.hex)
        held, verified = _own_file(connection, commons)
        file = revised(commons.key, held, word, now, verified)
        if file is not None:
            if held is not None and not newest(held.version, file.version).takes:
                got = f"got {file.version.seal}: the clock was days ahead once"
                raise OlderFile(f"expected a seal above {held.version.seal}, {got}", held.version)
            store_accepted(connection, file, now)
            journal.write(connection, now, name, act, word.subject, reason)
    stands = file or held
    percent = 0 if stands is None else percent_of(len(stands.data), len(stands.records))
    return Outcome(act, word.subject, "already" if file is None else "done", known, percent)


def reseal(commons: Commons, who: Who) -> bool:
    """Seal the node's own file above any seal that readers can hold of it: after the database was set back.

    Raises:
        TokenError, AdminNeeded: see `say`.

    Returns:
        Whether there is such a file, and it could be.
    """
    now = commons.clock()
    with _act(commons.engine, who, now) as (connection, name):
        held, verified = _own_file(connection, commons)
        file = None if held is None else resealed(commons.key, held, now, verified)
        if file is None:
            return False
        store_accepted(connection, file, now)
        journal.write(connection, now, name, "reseal", file.key.hex, None)
    return True


def _own_file(connection: Connection, commons: Commons) -> tuple[OriginFile | None, Verified | None]:
    """Read the node's own file, and the lines of it that need no second verification."""
    key = commons.key.public.hex
    stands = store.snapshot(connection, key)
    if stands is None:
        return None, None
    try:
        return accept(store.data_of(connection, key), now=END_OF_TIME, verified=stands.verified), stands.verified
    except ProtocolError as error:
        raise Internal(f"expected the node's own file as it was stored, got a damaged one: {error}") from error


def _is_known(connection: Connection, word: Word, node: str) -> bool:
    if word.type == "deny":
        return store.version_of(connection, word.subject) is not None
    return bool(connection.execute(_SAID_BY_OTHERS, {"subject": word.subject, "but": node}).scalar_one())


# --- blocks ---


def block(commons: Commons, who: Who, subject: str, reason: str) -> Outcome:
    """Keep nothing of a key's file but its version, now and from now on.

    Raises:
        TokenError, AdminNeeded: see `say`.
        ParameterForm: the key or the reason has another form.
        OperatorKey: the key is the operator's own.
    """
    now, key = commons.clock(), checked_key(subject)
    check_reason(reason)
    with _act(commons.engine, who, now) as (connection, name):
        _refuse_own(connection, commons, key)
        known = store.version_of(connection, key) is not None
        if store.block_reason(connection, key) is not None:
            return Outcome("block", key, "already", known)
        connection.execute(insert(tables.blocks), {"key": key, "reason": reason, "at": now})
        store.drop(connection, key)
        journal.write(connection, now, name, "block", key, reason)
    return Outcome("block", key, "done", known)


def unblock(commons: Commons, who: Who, subject: str, reason: str | None) -> Outcome:
    """Let the file of a key come again: the same that was there, or a newer one.

    Raises:
        TokenError, AdminNeeded: see `say`.
        ParameterForm: the key or the reason has another form.
    """
    now, key = commons.clock(), checked_key(subject)
    check_reason(reason)
    with _act(commons.engine, who, now) as (connection, name):
        known = store.version_of(connection, key) is not None
        if connection.execute(_UNBLOCK, {"of_key": key}).rowcount == 0:
            return Outcome("unblock", key, "already", known)
        items.let_go(connection, key)
        ledger.forget_blocked(connection)
        journal.write(connection, now, name, "unblock", key, reason)
    return Outcome("unblock", key, "done", known)


def _refuse_own(connection: Connection, commons: Commons, key: str) -> None:
    policy = stored_policy(connection)
    if key in commons.operators or (policy is not None and key in policy.revokers):
        raise OperatorKey(f"expected the key of somebody else, got {key}, which answers for this commons")


# --- tokens ---


def token_create(engine: Engine, who: Who, now: datetime, terms: Terms) -> tuple[str, Token]:
    """Make a token, and return it with what is kept of it.

    Raises:
        TokenError, AdminNeeded: see `say`.
        ParameterForm: see `Terms.check`.
    """
    with _act(engine, who, now) as (connection, name):
        secret, token = tokens.create(connection, now, terms)
        act = "admin token create" if terms.admin else "token create"
        journal.write(connection, now, name, act, token.name, None)
    return secret, token


def first_token(engine: Engine, who: str, now: datetime) -> str | None:
    """Make a token for a commons that never had one; None where it had."""
    with _act(engine, who, now) as (connection, name):
        if tokens.any_made(connection):
            return None
        secret, token = tokens.create(connection, now, Terms("first token"))
        journal.write(connection, now, name, "token create", token.name, None)
    return secret


def token_revoke(engine: Engine, who: Who, now: datetime, number: int, reason: str | None) -> Token:
    """Revoke a token for good, a second time without effect.

    Raises:
        TokenError, AdminNeeded: see `say`.
        ParameterForm: the reason has another form.
        TokenIdUnknown: there is no such token.
    """
    check_reason(reason)
    with _act(engine, who, now) as (connection, name):
        token = tokens.find(connection, number)
        if token is None:
            raise TokenIdUnknown(f"expected the id of a token, got {number}")
        if token.revoked is not None:
            return token
        revoked = tokens.revoke(connection, number, now)
        assert revoked is not None
        journal.write(connection, now, name, "token revoke", revoked.name, reason)
    return revoked
