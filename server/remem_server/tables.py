"""The tables of a commons.

`files` and `contents` are the map itself: for each key its newest file, as version and as bytes. `statements`
and `skipped` are what this commons' judgement made of the files, and can be made again from them. Everything
goes by key; an origin only finds keys.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

from sqlalchemy import (
    BigInteger,
    Column,
    DateTime,
    Dialect,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    TypeDecorator,
)


class Moment(TypeDecorator[datetime]):
    """A moment in UTC, with its zone on the way in and out whatever the database keeps."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, _dialect: Dialect) -> datetime | None:
        """Refuse a moment without a zone, and pass it on in UTC."""
        if value is None or value.tzinfo is UTC:
            return value
        if value.tzinfo is None:
            raise ValueError("expected a time with a zone, got one without")
        return value.astimezone(UTC)

    def process_result_value(self, value: datetime | None, _dialect: Dialect) -> datetime | None:
        """Give the moment its zone back."""
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


metadata: Final = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)

_KEY: Final = String(64)
_SUBJECT: Final = String(64)
_TYPE: Final = String(8)

# One row. `changes` counts every change of a file or an admission, and is the newest cursor of the index;
# `judgement` names the rules of judgement that `statements` and `skipped` were made by.
meta: Final = Table(
    "meta",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("changes", BigInteger, nullable=False),
    Column("judgement", String(64), nullable=False),
)

files: Final = Table(
    "files",
    metadata,
    Column("key", _KEY, primary_key=True),
    Column("origin", String(16), nullable=False, index=True),
    Column("seal", BigInteger),
    Column("digest", String(64), nullable=False),
    Column("seal_time", Moment),
    Column("records", Integer, nullable=False),
    Column("size", Integer, nullable=False),
    Column("updated", Moment, nullable=False),
    Column("cursor", BigInteger, nullable=False, unique=True),
)

# Apart from `files`, so that listing and revalidating read no file. `topics` has a line for each line behind
# the seal: the type and subject that it says, empty for a type that is not known.
contents: Final = Table(
    "contents",
    metadata,
    Column("key", _KEY, ForeignKey(files.c.key), primary_key=True),
    Column("data", LargeBinary, nullable=False),
    Column("topics", Text, nullable=False),
)

# What each record that passes judgement says. A file says each type and subject once.
statements: Final = Table(
    "statements",
    metadata,
    Column("key", _KEY, ForeignKey(files.c.key), primary_key=True),
    Column("type", _TYPE, primary_key=True),
    Column("subject", _SUBJECT, primary_key=True),
    Column("time", Moment),
    Column("kind", String(16)),
    Column("text", Text),
    Index(None, "type", "subject"),
)

# Why judgement skips each of the others.
skipped: Final = Table(
    "skipped",
    metadata,
    Column("key", _KEY, ForeignKey(files.c.key), primary_key=True),
    Column("type", _TYPE, primary_key=True),
    Column("subject", _SUBJECT, primary_key=True),
    Column("code", String(32), nullable=False),
    Column("expected", Text, nullable=False),
    Column("got", Text, nullable=False),
)

# The proof that a key's owner sealed two files with one number: both seals, which its owner alone can sign.
equivocations: Final = Table(
    "equivocations",
    metadata,
    Column("key", _KEY, ForeignKey(files.c.key), primary_key=True),
    Column("seal", BigInteger, primary_key=True, autoincrement=False),
    Column("digest_a", String(64), nullable=False),
    Column("digest_b", String(64), nullable=False),
    Column("line_a", LargeBinary, nullable=False),
    Column("line_b", LargeBinary, nullable=False),
)

# A token itself is never stored. An id is never given twice.
tokens: Final = Table(
    "tokens",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("token_hash", String(64), nullable=False, unique=True),
    Column("label", String(100), nullable=False),
    Column("principal", String(64), nullable=False),
    Column("key", _KEY, index=True),
    Column("created", Moment, nullable=False),
    Column("revoked", Moment),
    sqlite_autoincrement=True,
)
