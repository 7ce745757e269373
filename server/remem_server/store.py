"""The map of keys to files, in the database (PROTOCOL.md, section 11).

Functions on a connection whose transaction the caller owns; none commits. What is stored comes as an accepted
`OriginFile`, so nothing unverified can be. Of each key the newest file alone is kept; which one that is, the
caller decides.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, NamedTuple

from sqlalchemy import (
    BinaryExpression,
    Connection,
    Row,
    bindparam,
    delete,
    insert,
    select,
    update,
)

from remem.protocol import OriginFile, PublicKey, Verified, Version
from remem_server.errors import OriginCollision
from remem_server.judging import Judged
from remem_server.tables import contents, equivocations, files, meta, skipped, statements
from remem_server.tokens import principal_of

KEY_DIGITS: Final = 64


class Found(NamedTuple):
    """Which file is held under a name, without its bytes."""

    key: str
    digest: str
    size: int


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


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A key's file as it stood at one moment: enough to accept its successor cheaply.

    Attributes:
        key: whose file it is.
        version: its seal and digest.
        verified: its verified lines with their topics; None for a file of draft 0.
    """

    key: str
    version: Version
    verified: Verified | None


@dataclass(frozen=True, slots=True)
class Change:
    """How a key's statements follow its next file.

    Attributes:
        gone: the topics of the lines that are no longer there; None where every line is another.
        come: the rows of the lines that were not there before.
    """

    gone: Sequence[str] | None
    come: Judged


_BY_KEY: Final = select(files.c.key, files.c.digest, files.c.size).where(files.c.key == bindparam("name"))
_BY_ORIGIN: Final = (
    select(files.c.key, files.c.digest, files.c.size)
    .where(files.c.origin == bindparam("name"))
    .order_by(files.c.key)
    .limit(2)
)
_VERSION: Final = select(files.c.seal, files.c.digest).where(files.c.key == bindparam("key"))
_DATA: Final = select(contents.c.data).where(contents.c.key == bindparam("key"))
_SNAPSHOT: Final = (
    select(files.c.seal, files.c.digest, contents.c.data, contents.c.topics)
    .join(contents)
    .where(files.c.key == bindparam("key"))
)
_NEXT_CHANGE: Final = update(meta).values(changes=meta.c.changes + 1).returning(meta.c.changes)
_NEWEST_CHANGE: Final = select(files.c.cursor, files.c.digest).order_by(files.c.cursor.desc()).limit(1)
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
    .where(files.c.cursor > bindparam("since"))
    .order_by(files.c.cursor)
    .limit(bindparam("most"))
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
    return connection.execute(_DATA, {"key": key}).scalar_one()


def version_of(connection: Connection, key: str) -> Version | None:
    """Say which file of a key stands."""
    row = connection.execute(_VERSION, {"key": key}).one_or_none()
    return None if row is None else Version(row.seal, row.digest)


def snapshot(connection: Connection, key: str) -> Snapshot | None:
    """Read what stands of a key, and what of it need not be verified again."""
    row = connection.execute(_SNAPSHOT, {"key": key}).one_or_none()
    return None if row is None else Snapshot(key, Version(row.seal, row.digest), _verified(key, row))


def _verified(key: str, row: Row[tuple[int | None, str, bytes, str]]) -> Verified | None:
    if row.seal is None:
        return None
    behind = row.data[:-1].split(b"\n")[1:]
    # A file may be its seal alone, and splitting nothing gives one empty topic.
    topics = row.topics.split("\n") if behind else []
    return Verified(PublicKey.parse(key), dict(zip(behind, topics, strict=True)))


def index(connection: Connection, since: int, most: int) -> list[Entry]:
    """List the files that changed after a cursor, in the order of their last change."""
    return [Entry(*row) for row in connection.execute(_INDEX, {"since": since, "most": most})]


def newest_change(connection: Connection) -> tuple[int, str] | None:
    """Return the cursor of the last change and the digest of the file it concerns; None while there is no file."""
    row = connection.execute(_NEWEST_CHANGE).one_or_none()
    return None if row is None else (row.cursor, row.digest)


def skipped_lines(connection: Connection, file: OriginFile) -> list[SkippedLine]:
    """List the lines of the file that stands which judgement skipped."""
    rows = connection.execute(select(skipped).where(skipped.c.key == file.key.hex)).all()
    if not rows:
        return []
    lines = {topic: number for number, topic in enumerate(file.topics, 1 if file.seal is None else 2)}
    found = (SkippedLine(lines[f"{row.type} {row.subject}"], row.code, row.expected, row.got) for row in rows)
    return sorted(found)


# --- writing ---


def lock(connection: Connection) -> None:
    """Let writers in one at a time, also on a database that would let in several; ends with the transaction."""
    connection.execute(select(meta.c.changes).with_for_update())


def put(connection: Connection, file: OriginFile, change: Change, now: datetime) -> None:
    """Make an accepted file the one that stands for its key."""
    key, seal = file.key.hex, file.seal
    row = {
        "key": key,
        "origin": file.key.origin,
        "seal": None if seal is None else seal.number,
        "digest": file.digest,
        "seal_time": None if seal is None else seal.time,
        "records": len(file.lines),
        "size": len(file.data),
        "updated": now,
        "cursor": connection.execute(_NEXT_CHANGE).scalar_one(),
    }
    bytes_and_topics = {"key": key, "data": file.data, "topics": "\n".join(file.topics)}
    if connection.execute(update(files).where(files.c.key == key), row).rowcount:
        connection.execute(update(contents).where(contents.c.key == key), bytes_and_topics)
    else:
        connection.execute(insert(files), row)
        connection.execute(insert(contents), bytes_and_topics)
    _forget(connection, key, change.gone)
    _add(connection, change.come)


def touch(connection: Connection, key: str) -> None:
    """Count a change of what the index says about a key, if it has a file."""
    if version_of(connection, key) is not None:
        cursor = connection.execute(_NEXT_CHANGE).scalar_one()
        connection.execute(update(files).where(files.c.key == key).values(cursor=cursor))


def flag_equivocation(connection: Connection, file: OriginFile) -> None:
    """Keep both seals as proof that the owner of the key sealed this file and the one that stands with one number."""
    assert file.seal is not None
    key, number = file.key.hex, file.seal.number
    flagged = select(equivocations.c.key).where(equivocations.c.key == key, equivocations.c.seal == number)
    if connection.execute(flagged).one_or_none() is not None:
        return
    line, _behind = data_of(connection, key).split(b"\n", 1)
    held = version_of(connection, key)
    assert held is not None
    proof = {
        "key": key,
        "seal": number,
        "digest_a": held.digest,
        "digest_b": file.digest,
        "line_a": line,
        "line_b": file.seal.line,
    }
    connection.execute(insert(equivocations), proof)


def rejudge(connection: Connection, key: str, judged: Judged) -> None:
    """Replace what judgement made of a key's file."""
    _forget(connection, key, None)
    _add(connection, judged)


def _forget(connection: Connection, key: str, topics: Sequence[str] | None) -> None:
    said = [topic.split(" ") for topic in topics or () if topic]
    for table in (statements, skipped):
        of_key: BinaryExpression[bool] = table.c.key == bindparam("of_key")
        if topics is None:
            connection.execute(delete(table).where(of_key), {"of_key": key})
        elif said:
            of_topic = delete(table).where(of_key, table.c.type == bindparam("a"), table.c.subject == bindparam("b"))
            connection.execute(of_topic, [{"of_key": key, "a": kind, "b": subject} for kind, subject in said])


def _add(connection: Connection, judged: Judged) -> None:
    if judged.statements:
        connection.execute(insert(statements), judged.statements)
    if judged.skipped:
        connection.execute(insert(skipped), judged.skipped)
