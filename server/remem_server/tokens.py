"""Tokens: who may publish, and for whom (PROTOCOL.md, section 11).

- A token is 256 random bits, shown once and stored as a hash.
- It is bound to the first key whose file comes to stand by it, in the transaction of that publication, and never
  to another. A file that stands already binds nothing: files are public, and anyone can send one again.
- It gives that key its principal: an opaque name for whoever answers for the key. The token that is bound first
  decides it for good: another is good for the key only if its operator made it with the same principal.
- A key whose tokens are all revoked is no longer admitted.

Functions on a connection whose transaction the caller owns.
"""

from __future__ import annotations

import hmac
import re
import secrets
from dataclasses import dataclass, replace
from datetime import datetime
from hashlib import sha256
from typing import Final

from sqlalchemy import (
    ColumnElement,
    Connection,
    Label,
    bindparam,
    func,
    insert,
    select,
    update,
)

from remem.protocol import PublicKey
from remem_server.changes import touch
from remem_server.errors import TokenBound, TokenMissing, TokenRevoked, TokenUnknown
from remem_server.tables import tokens

PRINCIPAL_FORM: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
LABEL_CHARACTERS: Final = 100

# What marks a token as one of ours where it does not belong, in a log or in a repository.
_PREFIX: Final = "remem_"
_TOKEN_BYTES: Final = 32
_PRINCIPAL_BYTES: Final = 8


@dataclass(frozen=True, slots=True)
class Token:
    """What is kept of a token.

    Attributes:
        id: its number here.
        label: the operator's own note.
        principal: the name it gives to whoever answers for its key.
        key: the key it is bound to, 64 hex digits; None before its first use.
        created: when it was made.
        revoked: when it was revoked, None while it is good.
    """

    id: int
    label: str
    principal: str
    key: str | None
    created: datetime
    revoked: datetime | None


_COLUMNS: Final = [tokens.c[name] for name in Token.__slots__]
_BY_HASH: Final = select(*_COLUMNS, tokens.c.token_hash).where(tokens.c.token_hash == bindparam("token_hash"))
# Any token of a key will do: none is bound to it that has another principal than the first.
_FIRST_PRINCIPAL: Final = select(tokens.c.principal).where(tokens.c.key == bindparam("key")).limit(1)


def create(
    connection: Connection, *, now: datetime, label: str = "", principal: str | None = None
) -> tuple[str, Token]:
    """Make a token, and return it with what is kept of it: it cannot be shown again.

    Raises:
        ValueError: the label or the principal has another form.
    """
    if len(label) > LABEL_CHARACTERS or not label.isprintable():
        raise ValueError(f"expected a label of at most {LABEL_CHARACTERS} printable characters, got {label!a}")
    if principal is None:
        principal = secrets.token_hex(_PRINCIPAL_BYTES)
    elif not PRINCIPAL_FORM.fullmatch(principal):
        raise ValueError(f"expected a principal of 1 to 64 letters, digits, '.', '_', '-', got {principal!a}")
    secret = _PREFIX + secrets.token_urlsafe(_TOKEN_BYTES)
    row = {"token_hash": _hash(secret), "label": label, "principal": principal, "created": now}
    number = connection.execute(insert(tokens).returning(tokens.c.id), row).scalar_one()
    return secret, Token(number, label, principal, None, now, None)


def list_all(connection: Connection) -> list[Token]:
    """List the tokens, the oldest first."""
    return [Token(*row) for row in connection.execute(select(*_COLUMNS).order_by(tokens.c.id))]


def any_made(connection: Connection) -> bool:
    """Tell whether a token was ever made here."""
    return connection.execute(select(func.count()).select_from(tokens)).scalar_one() > 0


def revoke(connection: Connection, number: int, now: datetime) -> Token | None:
    """Revoke a token for good, a second time without effect; None where there is no token of this number."""
    row = connection.execute(select(*_COLUMNS).where(tokens.c.id == number)).one_or_none()
    if row is None:
        return None
    token = Token(*row)
    if token.revoked is not None:
        return token
    connection.execute(update(tokens).where(tokens.c.id == number).values(revoked=now))
    if token.key is not None:
        touch(connection, token.key)
    return replace(token, revoked=now)


def check(connection: Connection, secret: str | None) -> Token:
    """Return the good token that a request carries.

    Raises:
        TokenMissing: it carries none.
        TokenUnknown: it was not made here.
        TokenRevoked: it was revoked.
    """
    if secret is None:
        raise TokenMissing("expected a bearer token, got none")
    token_hash = _hash(secret)
    row = connection.execute(_BY_HASH, {"token_hash": token_hash}).one_or_none()
    if row is None or not hmac.compare_digest(row.token_hash, token_hash):
        raise TokenUnknown("expected a token that was made here, got another")
    if row.revoked is not None:
        raise TokenRevoked("expected a token that is good, got one that was revoked")
    return Token(*row[:-1])


def claim(token: Token, name: str) -> None:
    """Refuse a token that is bound to another key than the one of this name.

    Args:
        token: a good token.
        name: a key, or an origin, before the file is there to say whose it is.

    Raises:
        TokenBound: the token is another key's.
    """
    if token.key is not None and name not in (token.key, PublicKey.parse(token.key).origin):
        raise TokenBound(f"expected the token of {name}, got one that is bound to another key")


def is_own(connection: Connection, token: Token, key: str) -> bool:
    """Tell whether a good token is the key's own: bound to it, or of the principal that the key has.

    Raises:
        TokenBound: the token is another key's, or the key another principal's, were its tokens all revoked.
    """
    claim(token, key)
    if token.key is not None:
        return True
    principal = connection.execute(_FIRST_PRINCIPAL, {"key": key}).scalar()
    if principal not in (None, token.principal):
        raise TokenBound(f"expected a token of the principal that {key} has, got one of another")
    return principal is not None


def bind(connection: Connection, token: Token, key: str) -> None:
    """Bind a good token to the key whose file came to stand by it, which admits the key."""
    if token.key is None:
        connection.execute(update(tokens).where(tokens.c.id == token.id).values(key=key))
        touch(connection, key)


def principal_of(key: ColumnElement[str]) -> Label[str | None]:
    """Select the principal of an admitted key, beside the column that names the key."""
    # Of any of its good tokens: they all have the same.
    good = select(tokens.c.principal).where(tokens.c.key == key, tokens.c.revoked.is_(None)).limit(1)
    return good.scalar_subquery().label("principal")


def _hash(secret: str) -> str:
    return sha256(secret.encode("utf-8", "surrogateescape")).hexdigest()
