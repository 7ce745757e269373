"""Tokens: who may publish, and for whom (PROTOCOL.md, section 11).

- A token is 256 random bits, shown once and stored as a hash.
- It is bound to the first key whose file comes to stand by it, in the transaction of that publication, and never
  to another. A file that stands already binds nothing, since files are public and anyone can send one again, but a
  token that takes the place of another: of the principal that the key has.
- It gives that key its principal: an opaque name for whoever answers for the key. The token that is bound first
  decides it for good: another is good for the key only if its operator made it with the same principal.
- A key whose tokens are all revoked is no longer admitted.
- A token may expire: from then on it is refused, and the key it is bound to stays admitted, so that nothing a reader
  counts changes by time alone.
- An admin token does the operator's acts, under `/admin/`, and publishes nothing; any other does none of them.
- When a token was last used is kept to the hour, and where it only reads, to the day: reading is not to become writing.

Functions on a connection whose transaction the caller owns.
"""

from __future__ import annotations

import hmac
import re
import secrets
from dataclasses import dataclass, replace
from datetime import datetime
from hashlib import sha256
from typing import Final, Literal, TypeAlias

from sqlalchemy import (
    Connection,
    bindparam,
    func,
    insert,
    select,
    update,
)

from remem.protocol import PublicKey
from remem.protocol.errors import show
from remem.protocol.times import format_time
from remem_server.database import changes
from remem_server.database.tables import tokens
from remem_server.errors import (
    AdminNeeded,
    AdminToken,
    ParameterForm,
    TokenBound,
    TokenExpired,
    TokenMissing,
    TokenRevoked,
    TokenUnknown,
)
from remem_server.lessons import following

PRINCIPAL_FORM: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
LABEL_CHARACTERS: Final = 100

# What marks a token as one of ours where it does not belong, in a log or in a repository.
_PREFIX: Final = "remem_"
_TOKEN_BYTES: Final = 32
_PRINCIPAL_BYTES: Final = 8

TokenState: TypeAlias = Literal["unused", "used", "bound", "expired", "revoked"]
"""What a token is good for: `used` is said of admin tokens, which are never bound."""


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
        expires: from when on it is refused; None if never.
        used: when it was last used, or some time before: see `note_use`.
        admin: whether it is for the operator's acts, and publishes nothing.
    """

    id: int
    label: str
    principal: str
    key: str | None
    created: datetime
    revoked: datetime | None
    expires: datetime | None = None
    used: datetime | None = None
    admin: bool = False

    @property
    def name(self) -> str:
        """What the token is called where its work is told."""
        return f"token {self.id} ({self.label})" if self.label else f"token {self.id}"

    def state(self, now: datetime) -> TokenState:
        """Say what the token is good for at a moment."""
        if self.revoked is not None:
            return "revoked"
        if self.expires is not None and self.expires <= now:
            return "expired"
        if self.admin:
            return "unused" if self.used is None else "used"
        return "unused" if self.key is None else "bound"


@dataclass(frozen=True, slots=True)
class Terms:
    """What a token is to be made for.

    Attributes:
        label: the operator's own note.
        principal: who answers for its key; random if not given. An admin token has no key.
        expires: from when on it is refused.
        admin: whether it is for the operator's acts, and publishes nothing.
    """

    label: str = ""
    principal: str | None = None
    expires: datetime | None = None
    admin: bool = False

    def check(self, now: datetime) -> None:
        """Refuse terms that cannot be met.

        Raises:
            ParameterForm: the label or the principal has another form, or the token would never be good.
        """
        label, principal, expires = self.label, self.principal, self.expires
        if len(label) > LABEL_CHARACTERS or not label.isprintable():
            raise ParameterForm(f"label: expected at most {LABEL_CHARACTERS} printable characters, got {show(label)}")
        if self.admin and principal is not None:
            raise ParameterForm(f"principal: expected none of an admin token, which has no key, got {show(principal)}")
        if principal is not None and not PRINCIPAL_FORM.fullmatch(principal):
            raise ParameterForm(f"principal: expected 1 to 64 letters, digits, '.', '_', '-', got {show(principal)}")
        if expires is not None and expires <= now:
            raise ParameterForm(f"expires: expected a time later than now, got {format_time(expires)}")


_ANY: Final = Terms()
_COLUMNS: Final = [tokens.c[name] for name in Token.__slots__]
# Another server may have noted a later hour meanwhile.
_USE: Final = (
    update(tokens)
    .where(tokens.c.id == bindparam("of_id"), tokens.c.used.is_(None) | (tokens.c.used < bindparam("hour")))
    .values(used=bindparam("hour"))
)
_BY_HASH: Final = select(*_COLUMNS, tokens.c.token_hash).where(tokens.c.token_hash == bindparam("token_hash"))
# Any token of a key will do: none is bound to it that has another principal than the first.
_FIRST_PRINCIPAL: Final = select(tokens.c.principal).where(tokens.c.key == bindparam("key")).limit(1)


def create(connection: Connection, now: datetime, terms: Terms = _ANY) -> tuple[str, Token]:
    """Make a token, and return it with what is kept of it: it cannot be shown again.

    Args:
        connection: a transaction that writes.
        now: this commons' clock.
        terms: what it is for.

    Raises:
        ParameterForm: see `Terms.check`.
    """
    terms.check(now)
    secret = _PREFIX + secrets.token_urlsafe(_TOKEN_BYTES)
    kept = {
        "label": terms.label,
        "principal": terms.principal or secrets.token_hex(_PRINCIPAL_BYTES),
        "created": now,
        "expires": terms.expires,
        "admin": terms.admin,
    }
    made = insert(tokens).returning(*_COLUMNS)
    return secret, Token(*connection.execute(made, {"token_hash": _hash(secret), **kept}).one())


def list_all(connection: Connection) -> list[Token]:
    """List the tokens, the oldest first."""
    return [Token(*row) for row in connection.execute(select(*_COLUMNS).order_by(tokens.c.id))]


def find(connection: Connection, number: int) -> Token | None:
    """Find the token of a number."""
    row = connection.execute(select(*_COLUMNS).where(tokens.c.id == number)).one_or_none()
    return None if row is None else Token(*row)


def any_made(connection: Connection) -> bool:
    """Tell whether a token was ever made here."""
    return connection.execute(select(func.count()).select_from(tokens)).scalar_one() > 0


def revoke(connection: Connection, number: int, now: datetime) -> Token | None:
    """Revoke a token for good, a second time without effect; None where there is no token of this number."""
    changes.lock(connection)
    token = find(connection, number)
    if token is None or token.revoked is not None:
        return token
    gone = update(tokens).where(tokens.c.id == number).values(revoked=now)
    if token.key is None:
        connection.execute(gone)
    else:
        with following.admission(connection, token.key):
            connection.execute(gone)
        changes.touch(connection, token.key)
    return replace(token, revoked=now)


def check(connection: Connection, secret: str | None, now: datetime) -> Token:
    """Return the good token that a request carries.

    Raises:
        TokenMissing: it carries none.
        TokenUnknown: it was not made here.
        TokenRevoked: it was revoked.
        TokenExpired: its time is over.
    """
    if secret is None:
        raise TokenMissing("expected a bearer token, got none")
    token_hash = _hash(secret)
    row = connection.execute(_BY_HASH, {"token_hash": token_hash}).one_or_none()
    if row is None or not hmac.compare_digest(row.token_hash, token_hash):
        raise TokenUnknown("expected a token that was made here, got another")
    if row.revoked is not None:
        raise TokenRevoked("expected a token that is good, got one that was revoked")
    token = Token(*row[:-1])
    if token.expires is not None and token.expires <= now:
        raise TokenExpired(f"expected a token that is good, got one that expired at {format_time(token.expires)}")
    return token


def check_admin(connection: Connection, secret: str | None, now: datetime) -> Token:
    """Return the good admin token that a request carries.

    Raises:
        TokenError: see `check`.
        AdminNeeded: the token is none for the operator's acts.
    """
    token = check(connection, secret, now)
    if not token.admin:
        raise AdminNeeded("expected an admin token, got another")
    return token


def note_use(connection: Connection, token: Token, now: datetime) -> None:
    """Note in which hour a good token was last used."""
    hour = now.replace(minute=0, second=0, microsecond=0)
    if token.used is None or token.used < hour:
        connection.execute(_USE, {"of_id": token.id, "hour": hour})


def claim(token: Token, name: str) -> None:
    """Refuse a token that publishes nothing, or is bound to another key than the one of this name.

    Args:
        token: a good token.
        name: a key, or an origin, before the file is there to say whose it is.

    Raises:
        AdminToken: the token is for the operator's acts.
        TokenBound: the token is another key's.
    """
    if token.admin:
        raise AdminToken("expected a token to publish with, got one for the operator's acts")
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
        with following.admission(connection, key):
            connection.execute(update(tokens).where(tokens.c.id == token.id).values(key=key))
        changes.touch(connection, key)


def _hash(secret: str) -> str:
    return sha256(secret.encode("utf-8", "surrogateescape")).hexdigest()
