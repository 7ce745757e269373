"""The audit: nothing is said of a commons that is whole, and each damage is named, and nothing else with it."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final

import pytest
from sqlalchemy import Connection, delete, insert, select, text, update

from remem_server.commands.common import PROGRAM
from remem_server.database import tables
from remem_server.database.engine import DATABASE_NAME, is_postgres, writing
from remem_server.opening.context import Commons
from remem_server.upkeep import backups
from remem_server.upkeep.audit import audit, audit_moment
from remem_server.upkeep.findings import Finding
from remem_testkit.command import Remem
from remem_testkit.files import NOW, file, key, lesson, revocation, sentence
from remem_testkit.filled import (
    AUTHOR,
    BLOCKED,
    DENIED,
    KNOWN,
    POISONED,
    READERS,
    TWICE,
    WITHDRAWN,
    fill,
    filled_commons,
)
from remem_testkit.postgres import DATABASES
from remem_testkit.server import prepared

NAMES = {number: key(number).public.hex for number in range(1, 9)}
OTHER = key(99).public.hex
AT = NOW + timedelta(hours=2)

Damage = Callable[[Connection], object]


@pytest.fixture(scope="module", params=DATABASES)
def whole(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Commons]:
    """Return a commons whose damages are each rolled back."""
    with filled_commons(tmp_path_factory.mktemp("commons") / "data", request.param) as made:
        yield made


@pytest.fixture
def filled(tmp_path: Path, place: Callable[[str], dict[str, Any]]) -> Iterator[Commons]:
    """Return a commons whose damages stay."""
    with prepared(tmp_path / "data", **place("data")) as made:
        fill(made)
        yield made


def audited(commons: Commons) -> list[Finding]:
    return list(audit(commons.engine, AT, node=commons.key.public.hex))


def found_after(commons: Commons, *damages: Damage) -> list[Finding]:
    """Audit a commons behind damages that are rolled back."""
    with commons.engine.connect() as connection, connection.begin() as transaction:
        for damage in damages:
            damage(connection)
        found = list(audit_moment(connection, AT, node=commons.key.public.hex))
        transaction.rollback()
    return found


def said(findings: list[Finding]) -> list[str]:
    """Return the codes and subjects of findings."""
    return [f"{finding.code} {finding.subject}" for finding in findings]


def test_nothing_is_said_of_a_commons_that_is_whole(whole: Commons) -> None:
    assert audited(whole) == []


def test_nothing_is_said_of_a_commons_that_nobody_used(tmp_path: Path, place: Callable[[str], dict[str, Any]]) -> None:
    with prepared(tmp_path / "data", **place("data")) as commons:
        assert audited(commons) == []


# --- each damage, and what is said of it ---


def changed(table: str, number: int, **columns: object) -> Damage:
    """Change columns of the row of a key."""
    to = tables.metadata.tables[table]
    return lambda connection: connection.execute(update(to).where(to.c.key == NAMES[number]).values(**columns))


def of_meta(**columns: object) -> Damage:
    return lambda connection: connection.execute(update(tables.meta).values(**columns))


def bytes_of(number: int, change: Callable[[bytes], bytes]) -> Damage:
    def damage(connection: Connection) -> None:
        of_key = tables.contents.c.key == NAMES[number]
        data = connection.execute(select(tables.contents.c.data).where(of_key)).scalar_one()
        connection.execute(update(tables.contents).where(of_key).values(data=change(data)))

    return damage


def flipped(at: int) -> Callable[[bytes], bytes]:
    return lambda data: data[:at] + bytes([data[at] ^ 1]) + data[at:][1:]


def statement(*, topic: tuple[str, str] = ("lesson", KNOWN), table: str = "statements", **columns: object) -> Damage:
    """Change a row of the author, or remove it where no column is named."""
    of = tables.metadata.tables[table]
    where = (of.c.key == NAMES[AUTHOR], of.c.type == topic[0], of.c.subject == topic[1])
    query = update(of).where(*where).values(**columns) if columns else delete(of).where(*where)
    return lambda connection: connection.execute(query)


def of_statement(number: int, type_: str, subject: str, **columns: object) -> Damage:
    """Change columns of a statement of a key."""
    of = tables.statements
    where = (of.c.key == NAMES[number], of.c.type == type_, of.c.subject == subject)
    return lambda connection: connection.execute(update(of).where(*where).values(**columns))


def added(table: str, **columns: object) -> Damage:
    return lambda connection: connection.execute(insert(tables.metadata.tables[table]), columns)


def skipped_row(connection: Connection) -> str:
    return str(connection.execute(select(tables.skipped.c.subject)).scalar_one())


def changed_skipped(**columns: object) -> Damage:
    query = update(tables.skipped).values(**columns) if columns else delete(tables.skipped)
    return lambda connection: connection.execute(query)


def proof(**columns: object) -> Damage:
    return lambda connection: connection.execute(update(tables.equivocations).values(**columns))


def proof_line(change: Callable[[bytes], bytes]) -> Damage:
    def damage(connection: Connection) -> None:
        line = connection.execute(select(tables.equivocations.c.line_a)).scalar_one()
        connection.execute(update(tables.equivocations).values(line_a=change(line)))

    return damage


def token(number: int, **columns: object) -> Damage:
    return lambda connection: connection.execute(
        update(tables.tokens).where(tables.tokens.c.id == number).values(**columns)
    )


def policy(**fields: object) -> Damage:
    def damage(connection: Connection) -> None:
        stored = json.loads(connection.execute(select(tables.meta.c.policy)).scalar_one())
        connection.execute(update(tables.meta).values(policy=json.dumps({**stored, **fields})))

    return damage


A, T = NAMES[AUTHOR], NAMES[TWICE]
SEAL: Final = int(NOW.timestamp())
SKIPPED_ROW = {"key": A, "type": "lesson", "subject": "0" * 32, "code": "x", "expected": "x", "got": "x"}
# How a statement is marked, and which that is.
MARKS: dict[str, tuple[Damage, str]] = {
    "whom a publication is said for": (statement(principal="another"), f"{A} lesson {KNOWN}"),
    "whom a revocation is said for": (
        statement(topic=("revoke", WITHDRAWN), principal=None),
        f"{A} revoke {WITHDRAWN}",
    ),
    "a publication that stands": (statement(counts=False), f"{A} lesson {KNOWN}"),
    "a publication that was not counted": (statement(counts=None), f"{A} lesson {KNOWN}"),
    "a confirmation that counts": (
        of_statement(READERS[0], "confirm", KNOWN, counts=False),
        f"{NAMES[READERS[0]]} confirm {KNOWN}",
    ),
    "a confirmation of one who is denied": (
        of_statement(DENIED, "confirm", KNOWN, counts=True),
        f"{NAMES[DENIED]} confirm {KNOWN}",
    ),
}
DAMAGES: dict[str, tuple[Damage, list[str]]] = {
    "a byte of a seal": (bytes_of(AUTHOR, flipped(20)), [f"file {A}"]),
    "a byte of a record": (bytes_of(AUTHOR, flipped(1_000)), [f"file {A}"]),
    "a file without its last byte": (bytes_of(AUTHOR, lambda data: data[:-1]), [f"file {A}"]),
    "a file without its last line": (
        bytes_of(AUTHOR, lambda data: data[: data[:-1].rindex(b"\n") + 1]),
        [f"file {A}"],
    ),
    "a file without a byte": (bytes_of(AUTHOR, lambda _data: b""), [f"file {A}"]),
    "a digest": (changed("files", AUTHOR, digest="0" * 64), [f"digest {A}", f"item {A}"]),
    "a seal's number": (changed("files", AUTHOR, seal=SEAL - 1), [f"seal {A}"]),
    "a seal's time": (changed("files", AUTHOR, seal_time=NOW + timedelta(seconds=1)), [f"seal_time {A}", f"item {A}"]),
    "a size": (changed("files", AUTHOR, size=1), [f"size {A}"]),
    "a number of records": (changed("files", AUTHOR, records=5), [f"records {A}"]),
    "an origin": (changed("files", AUTHOR, origin="0" * 16), [f"origin {A}"]),
    "the topics": (changed("contents", AUTHOR, topics="lesson x\n\n\n"), [f"topics {A}"]),
    "bytes that are gone": (
        lambda connection: connection.execute(delete(tables.contents).where(tables.contents.c.key == A)),
        [f"contents {A}"],
    ),
    "a cursor that was never given": (changed("files", AUTHOR, cursor=10_000), [f"cursor {A}", f"counted {A}"]),
    "a cursor below the first": (changed("files", AUTHOR, cursor=0, counted=0), [f"cursor {A}"]),
    "a change that was not counted": (changed("files", AUTHOR, counted=None), [f"counted {A}"]),
    "a statement that is gone": (statement(), [f"statement {A} lesson {KNOWN}"]),
    "a statement that nobody made": (
        added("statements", key=A, type="confirm", subject=KNOWN, time=NOW),
        [f"statement {A} confirm {KNOWN}"],
    ),
    "a statement's time": (statement(time=NOW + timedelta(days=1)), [f"statement {A} lesson {KNOWN}"]),
    "a statement's kind": (statement(kind="surprise"), [f"statement {A} lesson {KNOWN}"]),
    "a statement's text": (statement(text="another"), [f"statement {A} lesson {KNOWN}"]),
    "a reason": (statement(topic=("revoke", WITHDRAWN), text=None), [f"statement {A} revoke {WITHDRAWN}"]),
    "a skipped line that is gone": (changed_skipped(), [f"skipped {A} lesson *"]),
    "a skipped line that was not": (added("skipped", **SKIPPED_ROW), [f"skipped {A} lesson {'0' * 32}"]),
    "why a line is skipped": (changed_skipped(code="x"), [f"skipped {A} lesson *"]),
    "what was expected of it": (changed_skipped(expected="x"), [f"skipped {A} lesson *"]),
    "what it is": (changed_skipped(got="x"), [f"skipped {A} lesson *"]),
    "a block of a file that is held": (added("blocks", key=A, reason="x", at=NOW), [f"block {A}"]),
    "a block of what is no key": (added("blocks", key="x", reason="x", at=NOW), ["block x"]),
    "bytes of a blocked file": (
        added("contents", key=NAMES[BLOCKED], data=b"x", topics=""),
        [f"contents {NAMES[BLOCKED]}", f"file {NAMES[BLOCKED]}"],
    ),
    "a statement of a blocked file": (
        added("statements", key=NAMES[BLOCKED], type="deny", subject=A),
        [f"statement {NAMES[BLOCKED]} deny {A}"],
    ),
    "a byte of a proof": (proof_line(flipped(40)), [f"proof {T} seal {SEAL}"]),
    "a proof of another number": (proof(seal=7), [f"proof {T} seal 7"]),
    "a proof by another key": (
        proof(line_a=file(key(AUTHOR), [], seal=SEAL).partition(b"\n")[0]),
        [f"proof {T} seal {SEAL}"],
    ),
    "a proof by a line that is no seal": (
        proof(line_a=file(key(TWICE), [lesson(sentence(5))]).split(b"\n")[1]),
        [f"proof {T} seal {SEAL}"],
    ),
    "a proof of a larger digest than the one that stands": (proof(digest_a="f" * 64), [f"proof {T} seal {SEAL}"]),
    "a proof whose seals are one": (
        lambda connection: connection.execute(
            update(tables.equivocations).values(line_a=tables.equivocations.c.line_b)
        ),
        [f"proof {T} seal {SEAL}"],
    ),
    "a token's hash": (token(1, token_hash="x" * 64), ["token 1"]),
    "a token's principal": (
        token(1, principal="two words"),
        ["token 1", f"mark {A} lesson {KNOWN}", f"mark {A} lesson {POISONED}", f"mark {A} revoke {WITHDRAWN}"],
    ),
    **{f"a mark: {name}": (damage, [f"mark {subject}"]) for name, (damage, subject) in MARKS.items()},
    "a token of two principals' key": (token(7, key=A), [f"token {A}"]),
    "a token of a key that never came": (token(7, key=OTHER), ["token 7"]),
    "a token of a key that publishes nothing": (token(1, admin=True), ["token 1"]),
    "the node's key": (of_meta(node=OTHER), ["node meta"]),
    "a node that is no key": (of_meta(node="x"), ["node meta"]),
    "the rules of judgement": (of_meta(judgement="x"), ["judgement meta"]),
    "a policy that is gone": (of_meta(policy=None), ["policy meta"]),
    "a policy that is none": (of_meta(policy="{"), ["policy meta"]),
    "a policy without fields": (of_meta(policy="{}"), ["policy meta"]),
    "a policy whose revokers are no keys": (policy(revokers=["x"]), ["policy meta"]),
    "a count that came to no end": (policy(counted=False), ["policy meta"]),
}


def is_said(wanted: list[str], found: list[str]) -> bool:
    """Compare findings; a star stands for a hash that the test does not know."""
    return len(wanted) == len(found) and all(
        got.startswith(one.removesuffix("*")) if one.endswith("*") else got == one
        for one, got in zip(sorted(wanted), sorted(found), strict=True)
    )


@pytest.mark.parametrize(("damage", "findings"), DAMAGES.values(), ids=DAMAGES.keys())
def test_a_damage_is_named_and_nothing_else(whole: Commons, damage: Damage, findings: list[str]) -> None:
    found = said(found_after(whole, damage))
    assert is_said(findings, found), found


def test_every_byte_of_a_file_is_looked_at(whole: Commons) -> None:
    with whole.engine.connect() as connection:
        size = connection.execute(select(tables.files.c.size).where(tables.files.c.key == A)).scalar_one()
    for at in range(0, size, 53):
        assert said(found_after(whole, bytes_of(AUTHOR, flipped(at)))) == [f"file {A}"], at


LESSON: dict[str, Any] = {
    "id": 77,
    "shown": OTHER,
    "kind": "surprise",
    "text": "another",
    "updated": NOW + timedelta(days=1),
    "words": "another",
    "place": 5,
    "standing": 2,
    "revoking": 1,
    "trusted": True,
    "confirmations": 4,
    "turned": 1,
    "unadmitted": 1,
    "last_confirmed": NOW,
}


def lesson_columns(columns: dict[str, Any]) -> Damage:
    query = update(tables.lessons).where(tables.lessons.c.hash == KNOWN).values(columns)
    return lambda connection: connection.execute(query)


@pytest.mark.parametrize("column", LESSON)
def test_each_column_of_a_lesson_is_counted_again(whole: Commons, column: str) -> None:
    found, *more = found_after(whole, lesson_columns({column: LESSON[column]}))
    assert (found.code, found.subject) == ("lesson", KNOWN)
    # A lesson's number is part of its place.
    assert found.expected.split()[0] == ("place" if column == "id" else column)
    # SQLite's full-text table has the words as they were, at the place where they were.
    apart = column in ("words", "place") and not is_postgres(whole.engine)
    assert {one.code for one in more} == ({"word"} if apart else set())


LESSON_ROWS: dict[str, tuple[Damage, list[str]]] = {
    "gone": (
        lambda connection: connection.execute(delete(tables.lessons).where(tables.lessons.c.hash == KNOWN)),
        [f"lesson {KNOWN}"],
    ),
    "of nothing": (
        added(
            "lessons",
            id=9,
            hash="0" * 32,
            standing=0,
            revoking=0,
            trusted=False,
            confirmations=0,
            turned=0,
            unadmitted=0,
        ),
        [f"lesson {'0' * 32}"],
    ),
    "of another hash": (
        lambda connection: connection.execute(
            update(tables.lessons).where(tables.lessons.c.hash == KNOWN).values(hash="0" * 32)
        ),
        [f"lesson {'0' * 32}", f"lesson {KNOWN}"],
    ),
}


@pytest.mark.parametrize(("damage", "findings"), LESSON_ROWS.values(), ids=LESSON_ROWS.keys())
def test_a_row_too_few_and_a_row_too_many_are_named(whole: Commons, damage: Damage, findings: list[str]) -> None:
    assert said(found_after(whole, damage)) == findings


@pytest.mark.parametrize("rows", [*LESSON_ROWS, "with other columns"])
def test_a_recount_mends_what_was_counted(filled: Commons, rows: str) -> None:
    with writing(filled.engine) as connection:
        damage = LESSON_ROWS[rows][0] if rows in LESSON_ROWS else lesson_columns(LESSON)
        damage(connection)
    assert audited(filled) != []
    backups.recount(filled.engine, AT)
    assert audited(filled) == []


def test_a_recount_mends_every_mark(filled: Commons) -> None:
    with writing(filled.engine) as connection:
        for damage, _subject in MARKS.values():
            damage(connection)
    assert {finding.code for finding in audited(filled)} == {"mark"}
    backups.recount(filled.engine, AT)
    assert audited(filled) == []


@pytest.mark.parametrize("column", ["words", "place", "id", "standing"])
def test_a_recount_mends_each_column_alone(filled: Commons, column: str) -> None:
    with writing(filled.engine) as connection:
        lesson_columns({column: LESSON[column]})(connection)
    backups.recount(filled.engine, AT)
    assert audited(filled) == []


def test_a_policy_that_counts_otherwise_is_seen_by_what_it_counts(whole: Commons) -> None:
    found = said(found_after(whole, policy(revokers=sorted([whole.key.public.hex, A]))))
    assert found == [f"lesson {WITHDRAWN}"]
    found = said(found_after(whole, policy(revokers=[OTHER])))
    assert found[0] == "policy meta"
    assert f"lesson {POISONED}" in found


def test_a_token_that_was_revoked_behind_the_commons_is_seen_by_what_it_admits(whole: Commons) -> None:
    of_reader = update(tables.tokens).where(tables.tokens.c.key == NAMES[READERS[0]])
    found = said(found_after(whole, lambda connection: connection.execute(of_reader.values(revoked=NOW))))
    marks = {f"mark {NAMES[READERS[0]]} confirm {one}" for one in (KNOWN, POISONED)}
    assert set(found) == {f"lesson {KNOWN}", f"lesson {POISONED}", *marks}


def test_a_file_under_another_key_is_named(whole: Commons) -> None:
    others = file(key(2), [revocation(WITHDRAWN)], seal=SEAL)
    found = said(found_after(whole, bytes_of(AUTHOR, lambda _data: others)))
    assert {f"key {A}", f"origin {A}", f"digest {A}"} <= set(found)


# --- what the database itself would refuse ---


def unruled(commons: Commons, *statements: str) -> None:
    """Change the database without its rules, as a damaged one would be."""
    if is_postgres(commons.engine):
        with writing(commons.engine) as connection:
            connection.execute(text("SET LOCAL session_replication_role = replica"))
            for one in statements:
                connection.execute(text(one))
        return
    with closing(sqlite3.connect(commons.settings.data / DATABASE_NAME)) as connection:
        for one in statements:
            connection.execute(one)
        connection.commit()


@pytest.mark.parametrize("table", ["contents", "statements", "skipped", "equivocations"])
def test_a_row_of_no_file_is_named(filled: Commons, table: str) -> None:
    columns = {
        "contents": "(key, data, topics) VALUES ('x', '', '')",
        "statements": "(key, type, subject) VALUES ('x', 'deny', 'x')",
        "skipped": "(key, type, subject, code, expected, got) VALUES ('x', 'deny', 'x', 'x', 'x', 'x')",
        "equivocations": "(key, seal, digest_a, digest_b, line_a, line_b) VALUES ('x', 1, 'x', 'y', '', '')",
    }
    unruled(filled, f"INSERT INTO {table} {columns[table]}")
    assert said(audited(filled)) == [f"file_row x in {table}"]


def test_two_files_with_one_number_are_named(filled: Commons) -> None:
    with filled.engine.connect() as connection:
        taken = connection.execute(select(tables.files.c.cursor).where(tables.files.c.key != A).limit(1)).scalar_one()
    if is_postgres(filled.engine):
        unruled(filled, "ALTER TABLE files DROP CONSTRAINT uq_files_cursor")
    else:
        copied = "CREATE TABLE copied AS SELECT * FROM files"
        unruled(filled, copied, "DROP TABLE files", "ALTER TABLE copied RENAME TO files")
    unruled(filled, f"UPDATE files SET cursor = {taken}, counted = {taken} WHERE key = '{A}'")
    assert said(audited(filled)) == [f"cursor number {taken}"]


# --- the full-text table, which SQLite has apart ---


@pytest.fixture
def worded(tmp_path: Path) -> Iterator[Commons]:
    with filled_commons(tmp_path / "data", "sqlite") as made:
        yield made


def places(commons: Commons) -> dict[str, tuple[int, str]]:
    with commons.engine.connect() as connection:
        rows = connection.execute(select(tables.lessons.c.hash, tables.lessons.c.place, tables.lessons.c.words))
        return {row.hash: (row.place, row.words) for row in rows}


def word_damage(commons: Commons, *statements: str) -> list[Finding]:
    place, words = places(commons)[KNOWN]
    with writing(commons.engine) as connection:
        for one in statements:
            connection.execute(text(one), {"place": place, "words": words})
    return audited(commons)


REMOVE = "INSERT INTO lesson_words(lesson_words, rowid, words) VALUES ('delete', :place, :words)"


def test_a_word_that_is_missing_in_the_full_text_table_is_named(worded: Commons) -> None:
    without = "INSERT INTO lesson_words(rowid, words) VALUES (:place, replace(:words, 'header', ''))"
    (found,) = word_damage(worded, REMOVE, without)
    assert found == Finding("word", KNOWN, "the word header in the full-text table", "none")


def test_a_word_too_many_in_the_full_text_table_is_named(worded: Commons) -> None:
    with_more = "INSERT INTO lesson_words(rowid, words) VALUES (:place, :words || ' poison')"
    (found,) = word_damage(worded, REMOVE, with_more)
    assert found == Finding("word", KNOWN, "no word poison in the full-text table", "one")


def test_words_of_no_lesson_are_named(worded: Commons) -> None:
    (found,) = word_damage(worded, "INSERT INTO lesson_words(rowid, words) VALUES (12345, 'poison')")
    assert found == Finding("word", "place 12345", "no word poison in the full-text table", "one")


def test_a_lesson_that_no_search_finds_is_named_and_mended(worded: Commons) -> None:
    found = word_damage(worded, REMOVE)
    assert {(one.code, one.subject, one.got) for one in found} == {("word", KNOWN, "none")}
    assert len(found) == len(set(places(worded)[KNOWN][1].split()))
    backups.recount(worded.engine, AT)
    assert audited(worded) == []


def test_a_full_text_table_that_cannot_be_read_is_named(worded: Commons) -> None:
    found = word_damage(worded, "UPDATE lesson_words_data SET block = x'00'")
    assert {one.code for one in found} <= {"word", "database"}
    assert found


def test_a_database_that_is_damaged_is_named_as_sqlite_says_it(worded: Commons) -> None:
    # An index that has lost an entry: what it is of is whole.
    unruled(
        worded,
        "PRAGMA writable_schema = ON",
        "UPDATE sqlite_master SET sql = replace(sql, '(origin)', '(origin) WHERE 0') WHERE name = 'ix_files_origin'",
    )
    with closing(sqlite3.connect(worded.settings.data / DATABASE_NAME)) as connection:
        connection.execute("REINDEX ix_files_origin")
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute("UPDATE sqlite_master SET sql = replace(sql, ' WHERE 0', '') WHERE name = 'ix_files_origin'")
        connection.commit()
    worded.engine.dispose()
    assert {one.code for one in audited(worded)} == {"database"}


# --- how it goes about it ---


def test_the_audit_reads_one_moment_while_the_commons_changes(filled: Commons) -> None:
    changes: list[int] = []

    def step(done: int, _all: int) -> None:
        if not changes:
            with writing(filled.engine) as connection:
                lesson_columns({"standing": 9})(connection)
        changes.append(done)

    assert list(audit(filled.engine, AT, progress=step)) == []
    assert changes
    assert said(audited(filled)) == [f"lesson {KNOWN}"]


def test_a_finding_is_one_line_whatever_is_stored(whole: Commons) -> None:
    (found,) = found_after(whole, statement(text="two\nlines \x1b[2J"))
    assert str(found).isprintable()


def test_a_clock_that_was_set_back_is_no_damage(whole: Commons) -> None:
    assert list(audit(whole.engine, datetime(2020, 1, 1, tzinfo=NOW.tzinfo))) == []


def test_the_command_says_that_all_is_well(operator: Remem, filled: Commons) -> None:
    ended = operator("audit")
    assert (ended.status, ended.out) == (0, "")
    assert ended.err == f"{PROGRAM}: everything that is stored is as it should be\n"
    assert operator("audit", "--json").document == []
    assert filled.settings.data.exists()


def test_the_command_prints_each_finding_and_ends_with_1(operator: Remem, filled: Commons) -> None:
    with writing(filled.engine) as connection:
        changed("files", AUTHOR, size=1)(connection)
        lesson_columns({"standing": 9})(connection)
    ended = operator("audit")
    assert ended.status == 1
    first, second = ended.out.splitlines()
    assert first.startswith(f"size {A}: expected size ")
    assert second == f"lesson {KNOWN}: expected standing 1, got 9"
    assert "error: expected everything as it was accepted, got 2 findings" in ended.err
    document = operator("audit", "--json").document
    assert [(one["code"], one["subject"]) for one in document] == [("size", A), ("lesson", KNOWN)]


def test_the_command_knows_the_node_by_its_key(operator: Remem, filled: Commons) -> None:
    with writing(filled.engine) as connection:
        of_meta(node=OTHER)(connection)
    ended = operator("audit")
    assert ended.status == 1
    assert ended.out == f"node meta: expected the node's key {filled.key.public.hex}, got {OTHER}\n"
