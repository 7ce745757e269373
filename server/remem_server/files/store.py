"""The map of keys to files, in the database (PROTOCOL.md, section 11).

Functions on a connection whose transaction the caller owns; none commits. What is stored comes as an accepted
`OriginFile`, so nothing unverified can be. Of each key the newest file alone is kept; which one that is, the
caller decides. Whatever changes the statements of a key changes the lessons with them (`lessons/following.py`); it
takes `changes.lock` first.

Of a file that this host does not keep, its version stays, so that no older one takes its place.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, NamedTuple

from sqlalchemy import (
    Connection,
    FromClause,
    Table,
    bindparam,
    delete,
    insert,
    select,
    update,
)
from sqlalchemy.dialects import postgresql, sqlite

from remem.protocol import OriginFile, PublicKey, Verified, Version, digest_of
from remem.protocol.items import Item
from remem_server.database import changes
from remem_server.database.engine import is_postgres
from remem_server.database.tables import blocks, contents, equivocations, files, meta, skipped, versions
from remem_server.errors import Blocked, OriginCollision
from remem_server.files import items
from remem_server.files.judging import Judged
from remem_server.lessons import following, said
from remem_server.lessons.said import Topic
from remem_server.lessons.voices import principal_of

KEY_DIGITS: Final = 64


class Found(NamedTuple):
    """Which file stands under a name, without its bytes; `held` tells whether they are here."""

    key: str
    digest: str
    size: int
    held: bool


class Entry(NamedTuple):
    """A line of the index."""

    key: str
    origin: str
    seal: int | None
    digest: str
    records: int
    updated: datetime
    principal: str | None
    cursor: int


class SkippedLine(NamedTuple):
    """A line of a file that readers skip, and why."""

    line: int
    code: str
    expected: str
    got: str


class Standing(NamedTuple):
    """What stands of a key, as whoever holds `changes.lock` finds it.

    Attributes:
        version: its version, None of a key that never came.
        item: the item that the key has, if it has one.
        blocked: why this host does not keep its file; None for a key that is not blocked.
    """

    version: Version | None
    item: Item | None
    blocked: str | None


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A key's file as it stood at one moment: enough to accept its successor cheaply.

    Attributes:
        version: its seal and digest.
        verified: its verified lines with their topics; None for a file of draft 0, and for one that is not whole.
        whole: whether its bytes are here, and those that were accepted.
    """

    version: Version
    verified: Verified | None
    whole: bool


@dataclass(frozen=True, slots=True)
class Change:
    """How a key's statements follow its next file.

    Attributes:
        before: the version that it was worked out for: it fits no other.
        gone: the topics of the lines that are no longer there; None where every line is another.
        come: the rows of the lines that were not there before.
        whole: whether nothing is to be mended where the same file comes again.
    """

    before: Version | None
    gone: Sequence[str] | None
    come: Judged
    whole: bool = True


def _beside_meta(*tables: Table) -> FromClause:
    """Join what there is of a key to `meta`, which has always one row."""
    joined: FromClause = meta
    for table in tables:
        joined = joined.outerjoin(table, table.c.key == bindparam("key"))
    return joined


_FOUND: Final = select(files.c.key, files.c.digest, files.c.size, files.c.held)
_BY_KEY: Final = _FOUND.where(files.c.key == bindparam("name"))
_BY_ORIGIN: Final = _FOUND.where(files.c.origin == bindparam("name")).order_by(files.c.key).limit(2)
_VERSION: Final = select(files.c.seal, files.c.digest).where(files.c.key == bindparam("key"))
_DATA: Final = select(contents.c.data).where(contents.c.key == bindparam("key"))
# One row, whatever there is of a key.
_SNAPSHOT: Final = select(
    files.c.seal, files.c.digest, contents.c.data, contents.c.topics, blocks.c.reason
).select_from(_beside_meta(files, contents, blocks))
_STANDING: Final = select(files.c.seal, files.c.digest, versions.c.time, versions.c.id, blocks.c.reason).select_from(
    _beside_meta(files, versions, blocks)
)
_BLOCK: Final = select(blocks.c.reason).where(blocks.c.key == bindparam("key"))
_FLAGGED: Final = select(equivocations.c.seal).where(equivocations.c.key == bindparam("key")).limit(1)
_INDEX: Final = (
    select(
        files.c.key,
        files.c.origin,
        files.c.seal,
        files.c.digest,
        files.c.records,
        files.c.updated,
        principal_of(files.c.key),
        files.c.cursor,
    )
    .where(files.c.cursor > bindparam("since"), files.c.held)
    .order_by(files.c.cursor)
    .limit(bindparam("most"))
)
_SKIPPED: Final = select(skipped).where(skipped.c.key == bindparam("key"))

_ADD_FILE: Final = insert(files)
_PUT_CONTENTS: Final[dict[bool, Any]] = {
    of_postgres: made.on_conflict_do_update(
        index_elements=[contents.c.key], set_={name: made.excluded[name] for name in ("data", "topics")}
    )
    for of_postgres, made in ((True, postgresql.insert(contents)), (False, sqlite.insert(contents)))
}
_ADD_SKIPPED: Final = insert(skipped)
_REPLACE_FILE: Final = update(files).where(files.c.key == bindparam("of_key")).values(counted=changes.COUNTED_TO)
_KEEP_VERSION: Final = update(files).where(files.c.key == bindparam("of_key")).values(held=False)
_FORGET_CONTENTS: Final = delete(contents).where(contents.c.key == bindparam("of_key"))
_SKIP_NOTHING: Final = delete(skipped).where(skipped.c.key == bindparam("of_key"))
_SKIP_NO_MORE: Final = _SKIP_NOTHING.where(
    skipped.c.type == bindparam("of_type"), skipped.c.subject == bindparam("of_subject")
)


# --- reading ---


def find(connection: Connection, name: str) -> Found | None:
    """Find the file of a key, or of an origin.

    Raises:
        OriginCollision: two keys have this origin.
    """
    rows = connection.execute(_BY_KEY if len(name) == KEY_DIGITS else _BY_ORIGIN, {"name": name}).all()
    if len(rows) > 1:
        raise OriginCollision(name, [row.key for row in rows])
    return Found(*rows[0]) if rows else None


def data_of(connection: Connection, key: str) -> bytes:
    """Read the bytes of a key's file, which must be held."""
    data: bytes = connection.execute(_DATA, {"key": key}).scalar_one()
    return data


def version_of(connection: Connection, key: str) -> Version | None:
    """Say which file of a key stands."""
    row = connection.execute(_VERSION, {"key": key}).one_or_none()
    return None if row is None else Version(row.seal, row.digest)


def standing(connection: Connection, key: str) -> Standing:
    """Read what stands of a key, for whoever is to decide what will."""
    seal, digest, time, id_, blocked = connection.execute(_STANDING, {"key": key}).one()
    version = None if digest is None else Version(seal, digest)
    return Standing(version, None if id_ is None else Item(time, id_), blocked)


def snapshot(connection: Connection, key: str) -> Snapshot | None:
    """Read what stands of a key, and what of it need not be verified again.

    Raises:
        Blocked: this host does not keep its file.
    """
    row = connection.execute(_SNAPSHOT, {"key": key}).one()
    if row.reason is not None:
        raise Blocked(key, row.reason)
    if row.digest is None:
        return None
    version = Version(row.seal, row.digest)
    # What was damaged after it was verified counts as never verified, so that its owner can replace it.
    if row.data is None or digest_of(row.data) != row.digest:
        return Snapshot(version, None, whole=False)
    if row.seal is None:
        return Snapshot(version, None, whole=True)
    verified = _verified(key, row.data, row.topics)
    return Snapshot(version, verified, whole=verified is not None)


def block_reason(connection: Connection, key: str) -> str | None:
    """Say why this host does not keep the file of a key; None for a key that is not blocked."""
    return connection.execute(_BLOCK, {"key": key}).scalar()


def refuse_blocked(connection: Connection, key: str) -> None:
    """Refuse a key that is blocked.

    Raises:
        Blocked: this host does not keep its file.
    """
    reason = block_reason(connection, key)
    if reason is not None:
        raise Blocked(key, reason)


def _verified(key: str, data: bytes, topics: str) -> Verified | None:
    behind = data[:-1].split(b"\n")[1:]
    # A file may be its seal alone, and splitting nothing gives one empty topic.
    of_lines = topics.split("\n") if behind else []
    if len(of_lines) != len(behind) or any(topic and topic.count(" ") != 1 for topic in of_lines):
        return None
    return Verified(PublicKey.parse(key), dict(zip(behind, of_lines, strict=True)))


def index(connection: Connection, since: int, most: int) -> list[Entry]:
    """List the files that changed after a cursor, in the order of their last change."""
    return [Entry(*row) for row in connection.execute(_INDEX, {"since": since, "most": most})]


def skipped_lines(connection: Connection, file: OriginFile) -> list[SkippedLine]:
    """List the lines of the file that stands which judgement skipped."""
    rows = connection.execute(_SKIPPED, {"key": file.key.hex}).all()
    if not rows:
        return []
    lines = {topic: number for number, topic in enumerate(file.topics, 1 if file.seal is None else 2)}
    found = (SkippedLine(lines[f"{row.type} {row.subject}"], row.code, row.expected, row.got) for row in rows)
    return sorted(found)


# --- writing ---


def put(connection: Connection, file: OriginFile, change: Change, item: Item | None, now: datetime) -> None:
    """Make an accepted file the one that stands for its key.

    Args:
        connection: of a transaction that holds `changes.lock`.
        file: the file.
        change: how the statements of the key follow.
        item: the item that the key has until now.
        now: this commons' clock.
    """
    key, seal, cursor = file.key.hex, file.seal, changes.next_change(connection)
    row = {
        "key": key,
        "origin": file.key.origin,
        "seal": None if seal is None else seal.number,
        "digest": file.digest,
        "seal_time": None if seal is None else seal.time,
        "records": len(file.lines),
        "size": len(file.data),
        "updated": now,
        "cursor": cursor,
        "held": True,
    }
    if change.before is None:
        connection.execute(_ADD_FILE, {**row, "counted": cursor})
    else:
        connection.execute(_REPLACE_FILE, {"of_key": key, "to": cursor, **row})
    content = {"key": key, "data": file.data, "topics": "\n".join(file.topics)}
    connection.execute(_PUT_CONTENTS[is_postgres(connection)], content)
    items.follow(connection, file, item, now)
    gone = None if change.gone is None else [_topic(topic) for topic in change.gone if topic]
    following.replace(connection, key, gone, change.come.statements)
    _skip_otherwise(connection, key, gone, change.come)


def drop(connection: Connection, key: str) -> None:
    """Keep of a key's file, where there is one, its version alone."""
    connection.execute(_FORGET_CONTENTS, {"of_key": key})
    connection.execute(_KEEP_VERSION, {"of_key": key})
    following.replace(connection, key, None, ())
    _skip_otherwise(connection, key, None, Judged())
    changes.touch(connection, key)


def flag_equivocation(connection: Connection, file: OriginFile) -> None:
    """Keep both seals as proof that the owner of the key sealed this file and the one that stands with one number.

    One proof of a key is enough, whichever number it is of: its owner can make any number of them.
    """
    assert file.seal is not None
    key, number = file.key.hex, file.seal.number
    if connection.execute(_FLAGGED, {"key": key}).first() is not None:
        return
    data = connection.execute(_DATA, {"key": key}).scalar()
    held = version_of(connection, key)
    if data is None or held is None:
        # The other seal went with the bytes.
        return
    line = data.partition(b"\n")[0]
    proof = {
        "key": key,
        "seal": number,
        "digest_a": held.digest,
        "digest_b": file.digest,
        "line_a": line,
        "line_b": file.seal.line,
    }
    connection.execute(insert(equivocations), proof)
    items.prove(connection, key, line, file.seal.line)


def rejudge(connection: Connection, key: str, judged: Judged) -> None:
    """Replace what judgement made of a key's file; the lessons are to be counted anew after it."""
    said.forget(connection, key, None)
    said.add(connection, judged.statements)
    _skip_otherwise(connection, key, None, judged)


def _skip_otherwise(connection: Connection, key: str, gone: Sequence[Topic] | None, come: Judged) -> None:
    """Replace what is skipped of a key's file."""
    if gone is None:
        connection.execute(_SKIP_NOTHING, {"of_key": key})
    elif gone:
        connection.execute(_SKIP_NO_MORE, [{"of_key": key, "of_type": a, "of_subject": b} for a, b in gone])
    if come.skipped:
        connection.execute(_ADD_SKIPPED, come.skipped)


def _topic(topic: str) -> Topic:
    type_, _, subject = topic.partition(" ")
    return type_, subject
