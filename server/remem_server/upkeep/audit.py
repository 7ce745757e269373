"""Verifies again everything that a commons stores, and says exactly what is wrong.

The audit believes nothing that is stored but the bytes that keys have signed:

1. the database is whole, as far as it can tell itself, and no row belongs to a file that is none;
2. the commons as a whole: its node, its policy, its judgement, its count of changes;
3. every file: its bytes are accepted from nothing, as if they came from a stranger, and its digest, its seal, its size,
   its topics and its other columns are theirs; its statements, and what is skipped, are what judgement makes of it;
   its number is one that was given, and no other file has it;
4. of a blocked key no byte is held;
5. every proof of two files with one seal proves it;
6. every token is of the form that was made, and is bound to a key whose file came;
7. every lesson's row is what the statements come to, counted from nothing, and the full-text table has its words. A
   lesson about which a statement is wrong is left out: what it comes to is told once that is mended;
8. the items by which nodes compare what they hold are those of the files and proofs that are here.

It reads one moment of the commons, while it is in use, and writes nothing. It goes through the tables in pieces, and
never holds more than one. What nothing signed can tell, as a token's label or the time when a file came, is left
out, and so are PostgreSQL's own indexes: `pg_amcheck` reads those.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any, Final

from sqlalchemy import BindParameter, Connection, Engine, RowMapping, Table, bindparam, func, select

from remem.judging import judgement_name
from remem.progress import Progress
from remem.protocol import OriginFile, ProtocolError, PublicKey, Seal, accept, digest_of, parse_record
from remem_server.database.engine import is_postgres
from remem_server.database.tables import (
    blocks,
    contents,
    equivocations,
    files,
    lessons,
    meta,
    skipped,
    statements,
    tokens,
)
from remem_server.files.judging import judge_records
from remem_server.files.tokens import PRINCIPAL_FORM
from remem_server.lessons.policy import CountingPolicy, is_counted, stored_policy
from remem_server.upkeep.audit_items import audit_items
from remem_server.upkeep.audit_lessons import audit_lessons
from remem_server.upkeep.findings import Finding, compared, spelled

PAGE: Final = 20

_KEYS: Final[BindParameter[str]] = bindparam("keys", expanding=True)
_FILES: Final = (
    select(files, contents.c.data, contents.c.topics)
    .outerjoin(contents)
    .where(files.c.key > bindparam("after"))
    .order_by(files.c.key)
    .limit(PAGE)
)
_SAID: Final = {table: select(table).where(table.c.key.in_(_KEYS)) for table in (statements, skipped)}
_OF_FILES: Final = (contents, statements, skipped, equivocations)
_TWICE: Final = select(files.c.cursor, func.count()).group_by(files.c.cursor).having(func.count() > 1)
_BLOCKS: Final = select(blocks.c.key, files.c.held).outerjoin(files, files.c.key == blocks.c.key)
_PROOFS: Final = select(
    equivocations, files.c.seal.label("held_seal"), files.c.digest.label("held_digest"), contents.c.data
).select_from(equivocations.join(files).outerjoin(contents, contents.c.key == files.c.key))
_TOKENS: Final = select(tokens, files.c.key.label("of_file")).outerjoin(files, files.c.key == tokens.c.key)
_PRINCIPALS: Final = (
    select(tokens.c.key, func.count(tokens.c.principal.distinct()))
    .where(tokens.c.key.is_not(None))
    .group_by(tokens.c.key)
    .having(func.count(tokens.c.principal.distinct()) > 1)
)

_HASH: Final = re.compile(r"[0-9a-f]{64}")

_Row = Mapping[str, Any]


def audit(
    engine: Engine, now: datetime, *, node: str | None = None, progress: Progress | None = None
) -> Iterator[Finding]:
    """Verify everything that is stored, and hand out what is wrong as it is found.

    Args:
        engine: the database; not a replica, whose answers may be behind.
        now: this commons' clock.
        node: the key that the data folder has for the node, where it has one.
        progress: told how many files and lessons of how many are done.
    """
    if is_postgres(engine):
        engine = engine.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
    with engine.connect() as connection:
        yield from audit_moment(connection, now, node=node, progress=progress)


def audit_moment(
    connection: Connection, now: datetime, *, node: str | None = None, progress: Progress | None = None
) -> Iterator[Finding]:
    """Verify everything that one transaction sees; see `audit`."""
    yield from _audit_database(connection)
    policy, found = _audit_whole(connection, node)
    yield from found
    steps = _Steps(connection, progress)
    doubtful: set[str] = set()
    for finding in _audit_files(connection, now, steps):
        if finding.code == "statement":
            doubtful.add(finding.subject.rpartition(" ")[2])
        yield finding
    yield from _audit_numbers(connection)
    yield from _audit_blocks(connection)
    for proof in connection.execute(_PROOFS).mappings():
        yield from _audit_proof(proof)
    yield from _audit_tokens(connection)
    yield from audit_lessons(connection, policy, doubtful, steps.step)
    yield from audit_items(connection)


class _Steps:
    """How far the audit is."""

    def __init__(self, connection: Connection, progress: Progress | None) -> None:
        self.done = 0
        self.all = sum(
            connection.execute(select(func.count()).select_from(table)).scalar_one() for table in (files, lessons)
        )
        self.progress = progress

    def step(self, number: int) -> None:
        self.done += number
        if self.progress is not None:
            self.progress(self.done, max(self.done, self.all))


# --- 1 and 2: the database, and the commons as a whole ---


def _audit_database(connection: Connection) -> Iterator[Finding]:
    if not is_postgres(connection):
        for (said,) in connection.exec_driver_sql("PRAGMA integrity_check(20)"):
            if said != "ok":
                yield Finding("database", "sqlite", "a database that is whole", said)
    for table in _OF_FILES:
        no_file = ~select(files.c.key).where(files.c.key == table.c.key).exists()
        for key in connection.execute(select(table.c.key).distinct().where(no_file)).scalars():
            yield Finding("file_row", f"{key} in {table.name}", "a row of files with this key", "none")


def _audit_whole(connection: Connection, node: str | None) -> tuple[CountingPolicy | None, list[Finding]]:
    """Look at what there is once; return the policy that the lessons are counted by."""
    one = connection.execute(select(meta)).mappings().one()
    found = []
    if one["judgement"] != judgement_name():
        found.append(Finding("judgement", "meta", "statements judged by this release", "ones by other rules"))
    if one["node"] is not None and not _is_key(one["node"]):
        found.append(Finding("node", "meta", "a key", spelled(one["node"])))
    elif node not in (None, one["node"]):
        found.append(Finding("node", "meta", f"the node's key {node}", spelled(one["node"])))
    policy, wrong = _policy(connection)
    speaker = node or one["node"]
    if wrong is not None:
        found.append(Finding("policy", "meta", "a policy by which all lessons are counted", wrong))
    elif policy is not None and speaker is not None and speaker not in policy.revokers:
        others = ", ".join(sorted(policy.revokers)) or "none"
        found.append(Finding("policy", "meta", f"revokers with the node's key {speaker}", others))
    return policy, found


def _policy(connection: Connection) -> tuple[CountingPolicy | None, str | None]:
    """Return the policy, and what is wrong with it."""
    try:
        policy = stored_policy(connection)
        if policy is None:
            # Before the first start nothing is counted, and of nothing nothing comes.
            empty = connection.execute(select(files.c.key).limit(1)).first() is None
            return None, None if empty else "none: no server was started on it yet"
        if not all(map(_is_key, policy.revokers)):
            return None, "revokers that are no keys"
    except (ValueError, KeyError, TypeError):
        return None, "something else"
    return policy, None if is_counted(connection, policy) else "a count that came to no end: start the server"


def _is_key(value: object) -> bool:
    try:
        PublicKey.parse(value if isinstance(value, str) else "")
    except ProtocolError:
        return False
    return True


# --- 3: files ---


def _audit_files(connection: Connection, now: datetime, steps: _Steps) -> Iterator[Finding]:
    changes = connection.execute(select(meta.c.changes)).scalar_one()
    after = ""
    while rows := connection.execute(_FILES, {"after": after}).mappings().all():
        keys = [row["key"] for row in rows]
        said = {table: _by_key(connection, table, keys) for table in _SAID}
        for row in rows:
            yield from _audit_number(row, changes)
            file = None
            if row["held"] != (row["data"] is not None):
                yield _unheld(row)
            if row["data"] is not None:
                file, fault = _accepted(row, now)
                yield from fault
            if file is not None:
                yield from _audit_columns(row, file)
            if file is not None or not row["held"]:
                judged = judge_records(file.records if file and row["held"] else ())
                yield from _audit_said("statement", row["key"], judged.statements, said[statements][row["key"]])
                yield from _audit_said("skipped", row["key"], judged.skipped, said[skipped][row["key"]])
        steps.step(len(rows))
        after = keys[-1]


def _by_key(connection: Connection, table: Table, keys: list[str]) -> defaultdict[str, list[_Row]]:
    rows: defaultdict[str, list[_Row]] = defaultdict(list)
    for row in connection.execute(_SAID[table], {"keys": keys}).mappings():
        rows[row["key"]].append(dict(row))
    return rows


def _unheld(row: RowMapping) -> Finding:
    if row["held"]:
        return Finding("contents", row["key"], "the bytes of a file that is held", "none")
    return Finding("contents", row["key"], "no bytes of a file that is not held", f"{len(row['data'])} bytes")


def _accepted(row: RowMapping, now: datetime) -> tuple[OriginFile | None, list[Finding]]:
    try:
        # It was accepted at its time, whatever became of the clock since.
        return accept(row["data"], now=max(now, row["updated"])), []
    except ProtocolError as error:
        return None, [Finding("file", row["key"], "a file that every rule allows", f"{error.code}: {error}")]


def _audit_columns(row: RowMapping, file: OriginFile) -> Iterator[Finding]:
    seal = file.seal
    made = {
        "key": file.key.hex,
        "origin": file.key.origin,
        "seal": seal and seal.number,
        "digest": digest_of(file.data),
        "seal_time": seal and seal.time,
        "records": len(file.lines),
        "size": len(file.data),
        "topics": "\n".join(file.topics),
    }
    for name, value in made.items():
        yield from compared(name, row["key"], {name: value}, dict(row))


def _audit_said(code: str, key: str, made: Iterable[_Row], stored: Iterable[_Row]) -> Iterator[Finding]:
    """Compare what judgement makes of a file with the rows that are there, each known by type and subject."""
    expected, got = _by_topic(made), _by_topic(stored)
    for topic in sorted(expected.keys() | got.keys()):
        subject = f"{key} {topic}"
        if topic not in got:
            yield Finding(code, subject, "a row", "none")
        elif topic not in expected:
            yield Finding(code, subject, "no row", "one")
        else:
            yield from compared(code, subject, expected[topic], got[topic])


def _by_topic(rows: Iterable[_Row]) -> dict[str, _Row]:
    return {f"{row['type']} {row['subject']}": row for row in rows}


def _audit_number(row: RowMapping, changes: int) -> Iterator[Finding]:
    if not 1 <= row["cursor"] <= changes:
        yield Finding("cursor", row["key"], f"a number from 1 to {changes}", str(row["cursor"]))
    if row["held"] and row["counted"] != row["cursor"]:
        yield Finding("counted", row["key"], f"lessons counted to change {row['cursor']}", spelled(row["counted"]))


def _audit_numbers(connection: Connection) -> Iterator[Finding]:
    for cursor, count in connection.execute(_TWICE):
        yield Finding("cursor", f"number {cursor}", "one file of this number", f"{count}")


# --- 4 to 6: blocks, proofs, tokens ---


def _audit_blocks(connection: Connection) -> Iterator[Finding]:
    for key, held in connection.execute(_BLOCKS):
        if not _is_key(key):
            yield Finding("block", key, "a key", spelled(key))
        if held:
            yield Finding("block", key, "no file of a blocked key", "one that is held")


def _audit_proof(row: RowMapping) -> Iterator[Finding]:
    """Check that both lines are seals of the key with the number, and fit the file where it has that number too."""
    subject = f"{row['key']} seal {row['seal']}"
    for line in (row["line_a"], row["line_b"]):
        try:
            record = parse_record(line)
        except ProtocolError as error:
            yield Finding("proof", subject, "two seals that verify", f"{error.code}: {error}")
            return
        if not isinstance(record, Seal) or (record.key.hex, record.number) != (row["key"], row["seal"]):
            yield Finding("proof", subject, "two seals of this key and number", f"a {record.type} of {record.key.hex}")
            return
    if row["line_a"] == row["line_b"] or row["digest_a"] == row["digest_b"]:
        yield Finding("proof", subject, "two different files", "one")
    elif row["held_seal"] == row["seal"]:
        yield from _audit_proven(row, subject)


def _audit_proven(row: RowMapping, subject: str) -> Iterator[Finding]:
    """Compare a proof with the file that stands under its number: the larger digest has won."""
    lines = {row["digest_a"]: row["line_a"], row["digest_b"]: row["line_b"]}
    held = row["held_digest"]
    if held < max(lines):
        yield Finding("proof", subject, f"digests of at most {held}, which stands", max(lines))
    elif held in lines and row["data"] is not None and row["data"].partition(b"\n")[0] != lines[held]:
        yield Finding("proof", subject, f"the seal of the file with digest {held}", "another")


def _audit_tokens(connection: Connection) -> Iterator[Finding]:
    for row in connection.execute(_TOKENS).mappings():
        subject = str(row["id"])
        if not _HASH.fullmatch(row["token_hash"]):
            yield Finding("token", subject, "a hash of 64 hex digits", "something else")
        if not PRINCIPAL_FORM.fullmatch(row["principal"]):
            yield Finding("token", subject, "a principal", spelled(row["principal"]))
        if row["key"] is not None and row["of_file"] is None:
            yield Finding("token", subject, "a key whose file came", spelled(row["key"]))
        if row["admin"] and row["key"] is not None:
            yield Finding("token", subject, "no key of a token that publishes nothing", spelled(row["key"]))
    for key, count in connection.execute(_PRINCIPALS):
        yield Finding("token", key, "one principal of a key", str(count))
