"""The tables of a commons.

`files` and `contents` are the map itself: for each key its newest file, as version and as bytes. `statements`
and `skipped` are what this commons' judgement made of the files, and can be made again from them. Everything
goes by key; an origin only finds keys.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final

from sqlalchemy import (
    BigInteger,
    Boolean,
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
    text,
)
from sqlalchemy.dialects.postgresql import TSVECTOR, VARCHAR
from sqlalchemy.types import TypeEngine

# As long as 2026-01-31 12:00:00.000000.
_SPELLED: Final = 26


class Moment(TypeDecorator[datetime]):
    """A moment in UTC, with its zone on the way in and out whatever the database keeps: SQLite keeps a text."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def bind_processor(self, dialect: Dialect) -> Callable[[datetime | None], datetime | str | None]:
        """Refuse a moment without a zone, and pass it on in UTC."""
        return spelled if dialect.name == "sqlite" else _in_utc

    def result_processor(self, dialect: Dialect, _coltype: object) -> Callable[[Any], datetime | None]:
        """Give the moment its zone back."""
        return _read if dialect.name == "sqlite" else _in_utc


def spelled(moment: datetime | None) -> str | None:
    """Spell a moment as SQLite keeps it."""
    in_utc = _in_utc(moment)
    return None if in_utc is None else in_utc.isoformat(" ", "microseconds")[:_SPELLED]


def _in_utc(moment: datetime | None) -> datetime | None:
    if moment is None or moment.tzinfo is UTC:
        return moment
    if moment.tzinfo is None:
        raise ValueError("expected a time with a zone, got one without")
    return moment.astimezone(UTC)


def _read(text_: str | None) -> datetime | None:
    return None if text_ is None else datetime.fromisoformat(f"{text_}+00:00")


metadata: Final = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)


def _name(length: int) -> TypeEngine[str]:
    """Make the type of names: they are ordered by their bytes, whatever language the database speaks."""
    return String(length).with_variant(VARCHAR(length, collation="C"), "postgresql")


_KEY: Final = _name(64)
_SUBJECT: Final = _name(64)
_TYPE: Final = _name(8)
# SQLite numbers the rows of a table by a column of this type alone.
_NUMBER: Final = BigInteger().with_variant(Integer, "sqlite")

# One row. `changes` counts every change of a file or an admission, and is the newest cursor of the index;
# `judgement` names the rules of judgement that `statements` and `skipped` were made by, `policy` the operator's
# that `lessons` were counted by. `node` is the key of the node, which all servers of a commons share.
meta: Final = Table(
    "meta",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("changes", BigInteger, nullable=False),
    Column("judgement", _name(64), nullable=False),
    Column("policy", Text),
    Column("node", _KEY),
)

# Of a blocked key the row stays, without contents and statements: `held` says whether the bytes are here.
# `counted` is the cursor of the last change that `lessons` has taken in; a server of the release before leaves it
# behind.
files: Final = Table(
    "files",
    metadata,
    Column("key", _KEY, primary_key=True),
    Column("origin", _name(16), nullable=False, index=True),
    Column("seal", BigInteger),
    Column("digest", _name(64), nullable=False),
    Column("seal_time", Moment),
    Column("records", Integer, nullable=False),
    Column("size", Integer, nullable=False),
    Column("updated", Moment, nullable=False),
    Column("cursor", BigInteger, nullable=False, unique=True),
    Column("held", Boolean, nullable=False, server_default=text("true")),
    Column("counted", BigInteger),
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
# The last two are what the operator's policy makes of it, kept as `lessons` is; a server of the release before leaves
# them empty. `principal` is who answers for it: for the publication, confirmation or revocation of a key that is
# admitted and that no revoker denies, where not every key counts. `counts` tells of a publication whether it stands,
# and of a confirmation whether it is the one by which its principal counts: the last, and of one time that of the
# highest key.
statements: Final = Table(
    "statements",
    metadata,
    Column("key", _KEY, ForeignKey(files.c.key), primary_key=True),
    Column("type", _TYPE, primary_key=True),
    Column("subject", _SUBJECT, primary_key=True),
    Column("time", Moment),
    Column("kind", _name(16)),
    Column("text", Text),
    Column("principal", _name(64)),
    Column("counts", Boolean),
    # What is said of a lesson, and the publication that is shown. There is one index for every statement: subjects are
    # hashes, so each index costs a page for every line that is published.
    Index(None, "subject", "type", "counts", "key"),
    # The last confirmation that counts, and what a principal says of a lesson.
    Index(
        "ix_statements_confirmed",
        "subject",
        "time",
        sqlite_where=text("type = 'confirm' AND counts = 1"),
        postgresql_where=text("type = 'confirm' AND counts"),
    ),
    Index(
        "ix_statements_principal",
        "subject",
        "principal",
        "type",
        "time",
        "key",
        sqlite_where=text("principal IS NOT NULL"),
        postgresql_where=text("principal IS NOT NULL"),
    ),
)

# What all statements about a lesson come to, under the operator's policy: `standing` publications that stand,
# `revoking` keys that revoke it, `trusted` where a revoker is among them, `confirmations` principals whose
# confirmations count, `turned` those of them that revoke it too, `unadmitted` further keys that confirm it,
# `last_confirmed` the time of the last confirmation that counts. Kind, text and `updated` are of the publication of
# the key `shown`, and `words` are what a search goes by; `place` is where the lesson stands in a list. All of these
# are null while no publication stands.
# SQLite keeps the words once more in the full-text table `lesson_words`, which `lessons/rows.py` writes with the rows.
lessons: Final = Table(
    "lessons",
    metadata,
    Column("id", _NUMBER, primary_key=True, autoincrement=False),
    Column("hash", _name(32), nullable=False, unique=True),
    Column("shown", _KEY),
    Column("kind", _name(16)),
    Column("text", Text),
    Column("updated", Moment),
    Column("words", TSVECTOR().with_variant(Text, "sqlite")),
    Column("place", BigInteger, unique=True),
    Column("standing", Integer, nullable=False),
    Column("revoking", Integer, nullable=False),
    Column("trusted", Boolean, nullable=False),
    Column("confirmations", Integer, nullable=False),
    Column("turned", Integer, nullable=False),
    Column("unadmitted", Integer, nullable=False),
    Column("last_confirmed", Moment),
)

# Keys whose files this host does not keep, for a reason of its own.
blocks: Final = Table(
    "blocks",
    metadata,
    Column("key", _KEY, primary_key=True),
    Column("reason", Text, nullable=False),
    Column("at", Moment, nullable=False),
)

# What the operator did. The database itself refuses to change or to delete a row, and one that is not the last.
acts: Final = Table(
    "acts",
    metadata,
    Column("id", _NUMBER, primary_key=True),
    Column("at", Moment, nullable=False),
    Column("who", _name(200), nullable=False),
    Column("act", _name(32), nullable=False),
    Column("subject", _name(200), nullable=False),
    Column("reason", Text),
    sqlite_autoincrement=True,
)

# How often something was done within a span of time that ends at `expires` (Unix seconds), for all servers of a
# commons.
counters: Final = Table(
    "counters",
    metadata,
    Column("name", _name(200), primary_key=True),
    Column("count", BigInteger, nullable=False),
    Column("expires", BigInteger, nullable=False),
)

# Why judgement skips each of the others.
skipped: Final = Table(
    "skipped",
    metadata,
    Column("key", _KEY, ForeignKey(files.c.key), primary_key=True),
    Column("type", _TYPE, primary_key=True),
    Column("subject", _SUBJECT, primary_key=True),
    Column("code", _name(32), nullable=False),
    Column("expected", Text, nullable=False),
    Column("got", Text, nullable=False),
)

# The proof that a key's owner sealed two files with one number: both seals, which its owner alone can sign.
equivocations: Final = Table(
    "equivocations",
    metadata,
    Column("key", _KEY, ForeignKey(files.c.key), primary_key=True),
    Column("seal", BigInteger, primary_key=True, autoincrement=False),
    Column("digest_a", _name(64), nullable=False),
    Column("digest_b", _name(64), nullable=False),
    Column("line_a", LargeBinary, nullable=False),
    Column("line_b", LargeBinary, nullable=False),
)

# A token itself is never stored. An id is never given twice. A token with `admin` does the operator's acts and
# publishes nothing.
tokens: Final = Table(
    "tokens",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("token_hash", _name(64), nullable=False, unique=True),
    Column("label", _name(100), nullable=False),
    Column("principal", _name(64), nullable=False, index=True),
    Column("key", _KEY, index=True),
    Column("created", Moment, nullable=False),
    Column("revoked", Moment),
    Column("expires", Moment),
    Column("used", Moment),
    Column("admin", Boolean, nullable=False, server_default=text("false")),
    sqlite_autoincrement=True,
)

# --- gossip ---

# The items of what is held, in blocks (`files/items.py`). SQLite has an index of their heads.
items: Final = Table(
    "items",
    metadata,
    Column("start", LargeBinary, primary_key=True),
    Column("size", Integer, nullable=False),
    Column("sum", LargeBinary, nullable=False),
    Column("items", LargeBinary, nullable=False),
)

# Which version of a key's file the items name, and by which. A server of the release before leaves a row behind its
# file, which has another digest then.
versions: Final = Table(
    "versions",
    metadata,
    Column("id", LargeBinary, primary_key=True),
    Column("key", _KEY, ForeignKey(files.c.key), nullable=False, unique=True),
    Column("time", BigInteger, nullable=False),
    Column("digest", _name(64), nullable=False),
)

# One proof of each key that spoke twice, for whoever asks. It may have come without a file of the key, and then nothing
# else is known of it.
proofs: Final = Table(
    "proofs",
    metadata,
    Column("id", LargeBinary, primary_key=True),
    Column("key", _KEY, nullable=False, unique=True),
    Column("line_a", LargeBinary, nullable=False),
    Column("line_b", LargeBinary, nullable=False),
)

# Versions that are not wanted again, by their items, and why.
ledger: Final = Table(
    "ledger",
    metadata,
    Column("id", LargeBinary, primary_key=True),
    Column("code", _name(64), nullable=False),
    Column("at", Moment, nullable=False),
)

# Whom this commons gossips with. `key` is what it signs with, once it was asked; `published` whether others are told of
# it. What follows is how it behaved.
peers: Final = Table(
    "peers",
    metadata,
    Column("url", _name(2_048), primary_key=True),
    Column("key", _KEY, index=True),
    Column("added", Moment, nullable=False),
    Column("allow_private", Boolean, nullable=False),
    Column("allow_http", Boolean, nullable=False),
    Column("published", Boolean, nullable=False),
    Column("tried", Moment),
    Column("answered", Moment),
    Column("failures", Integer, nullable=False),
    Column("next_try", Moment),
    Column("promised", BigInteger, nullable=False),
    Column("delivered", BigInteger, nullable=False),
)

# What whoever sends files cost in a night, which is numbered by days since 1970.
spent: Final = Table(
    "spent",
    metadata,
    Column("account", _name(2_048), primary_key=True),
    Column("night", Integer, primary_key=True, autoincrement=False),
    Column("bytes", BigInteger, nullable=False),
    Column("checks", BigInteger, nullable=False),
    Column("origins", BigInteger, nullable=False),
)
