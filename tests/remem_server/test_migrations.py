"""The data folder: made from nothing, brought to this release, and never by two at once."""

from __future__ import annotations

import re
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Engine, Row, create_engine, insert, inspect, select, text, update

import remem_server
from remem.errors import Refused, RememError
from remem.protocol import accept
from remem.protocol.guard import instruction
from remem_server.database import tables
from remem_server.database.changes import next_change
from remem_server.database.engine import DATABASE_NAME, open_sqlite, writing
from remem_server.files.accept import accept_file
from remem_server.files.judging import judge_records
from remem_server.opening import migrate
from remem_server.opening.opened import prepared_database
from remem_testkit.files import NOW, confirmation, draft_file, file, key, lesson, sentence
from remem_testkit.postgres import fresh_database
from remem_testkit.server import make_settings, plain_environment, prepared, verify_everything_stored

ROOT = Path(__file__).resolve().parents[2]
HEAD = ScriptDirectory.from_config(migrate.alembic_config()).get_current_head()


def config_of(connection: Connection) -> Config:
    config = migrate.alembic_config()
    config.attributes["connection"] = connection
    return config


def accepted(engine: Engine, *files: bytes) -> None:
    for data in files:
        name = accept(data, now=NOW).key.hex
        accept_file(engine, data, name=name, secret=None, token_needed=False, now=NOW)


def counted(engine: Engine) -> list[Row[Any]]:
    columns = [column for column in tables.lessons.c if column.name not in ("id", "place")]
    with engine.connect() as connection:
        return list(connection.execute(select(*columns).order_by(tables.lessons.c.hash)))


@pytest.fixture
def place(database: str) -> Iterator[Callable[[str], dict[str, Any]]]:
    """Return a function that says where the database is, in which nothing was made yet."""
    with ExitStack() as stack:
        one = {"database_url": stack.enter_context(fresh_database())} if database == "postgres" else {}
        yield lambda _name: one


SOME = [
    file(key(1), [lesson(sentence(1)), lesson(sentence(2))]),
    file(key(2), [confirmation(str(lesson(sentence(1))["hash"])), lesson(sentence(2))]),
    file(key(3), [confirmation(str(lesson(sentence(1))["hash"]))]),
]


def test_migrations_make_the_tables_and_nothing_is_left_to_migrate(engine: Engine) -> None:
    with writing(engine) as connection:
        command.check(config_of(connection))
        # What the full-text search of SQLite keeps itself in is its own.
        made = {name for name in inspect(connection).get_table_names() if not name.startswith("lesson_words")}
        assert made == {*tables.metadata.tables, "alembic_version"}


def test_migrations_can_be_taken_back_and_made_again(engine: Engine) -> None:
    with writing(engine) as connection:
        command.downgrade(config_of(connection), "base")
        assert inspect(connection).get_table_names() == ["alembic_version"]
    migrate.migrate(engine)
    accepted(engine, *SOME)


def test_a_database_that_the_schema_before_filled_is_brought_up_with_all_that_it_held(
    tmp_path: Path, place: Callable[[str], dict[str, Any]]
) -> None:
    with prepared(tmp_path / "data", open=True, **place("data")) as commons:
        accepted(commons.engine, *SOME)
        before = counted(commons.engine)
        assert [row.confirmations for row in before if row.standing == 1] == [2]
        with writing(commons.engine) as connection:
            command.downgrade(config_of(connection), "0001")
            assert "lessons" not in inspect(connection).get_table_names()
    with prepared(tmp_path / "data", open=True, **place("data")) as commons:
        assert counted(commons.engine) == before
        assert {stored.data for stored in verify_everything_stored(commons.engine, NOW)} == set(SOME)


def test_what_a_server_of_the_release_before_writes_meanwhile_is_counted_by_the_next_start(
    tmp_path: Path, place: Callable[[str], dict[str, Any]]
) -> None:
    with prepared(tmp_path / "data", open=True, **place("data")) as commons:
        accepted(commons.engine, *SOME[:2])
        newer = accept(SOME[2], now=NOW)
        with writing(commons.engine) as connection:
            cursor = next_change(connection)
            row = {"origin": newer.key.origin, "seal": newer.version.seal, "digest": newer.digest, "records": 1}
            times = {"seal_time": NOW, "updated": NOW}
            named = {"key": newer.key.hex}
            # The columns that it knows, and no other.
            connection.execute(
                insert(tables.files), {**named, **row, **times, "size": len(newer.data), "cursor": cursor}
            )
            topics = "\n".join(newer.topics)
            connection.execute(insert(tables.contents), {**named, "data": newer.data, "topics": topics})
            connection.execute(insert(tables.statements), judge_records(newer.records).statements)
    with prepared(tmp_path / "data", open=True, **place("data")) as commons:
        assert [row.confirmations for row in counted(commons.engine) if row.standing == 1] == [2]


def test_the_command_line_of_alembic_takes_the_folder_from_the_environment(tmp_path: Path) -> None:
    with prepared(tmp_path / "data"):
        pass
    environment = plain_environment(REMEM_DATA=str(tmp_path / "data"))
    ran = subprocess.run(
        [sys.executable, "-m", "alembic", "check"],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert "No new upgrade operations detected" in ran.stdout


def test_migrations_are_found_beside_the_package_where_it_is_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remem_server, "__file__", str(tmp_path / "remem_server" / "__init__.py"))
    packaged = tmp_path / "remem_server" / "_migrations"
    packaged.mkdir(parents=True)
    assert migrate.alembic_config().get_main_option("script_location") == str(packaged)


@pytest.mark.parametrize("name", ["a%20b", "a?b", "a b", "a#b", "a?mode=memory", "%"])
def test_the_name_of_a_folder_is_taken_as_it_is(tmp_path: Path, name: str) -> None:
    with prepared(tmp_path / name):
        pass
    assert [found.name for found in tmp_path.iterdir()] == [name]
    assert migrate.has_database(tmp_path / name)


def test_the_folder_is_its_owners_alone(tmp_path: Path) -> None:
    with prepared(tmp_path / "some" / "data"):
        assert stat.S_IMODE((tmp_path / "some" / "data").stat().st_mode) == 0o700


def test_a_migration_that_fails_leaves_the_database_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = command.upgrade

    def broken(*arguments: object) -> None:
        plain(*arguments)  # type: ignore[arg-type]  # what alembic is called with is passed on
        raise RuntimeError("the disk is full")

    monkeypatch.setattr(command, "upgrade", broken)
    with pytest.raises(RuntimeError, match="full"), prepared(tmp_path / "data"):
        pass
    plain_engine = create_engine(f"sqlite:///{tmp_path / 'data' / DATABASE_NAME}")
    assert inspect(plain_engine).get_table_names() == []
    plain_engine.dispose()


def test_a_database_of_a_later_release_is_left_alone(tmp_path: Path) -> None:
    with prepared(tmp_path / "data") as commons:
        engine = commons.engine
        with writing(engine) as connection:
            connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
        with pytest.raises(RememError, match="9999"):
            migrate.migrate(engine)


def test_a_folder_that_cannot_be_made_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(RememError, match="data folder"), migrate.folder_lock(tmp_path / "file" / "data"):
        pass


@pytest.mark.parametrize(
    "names",
    [
        [],
        ["lock"],
        ["node.key"],
        ["lock", ".node.key.0123456789abcdef"],
        ["node.key", "node.key.lock", "node.key.signed"],
        ["commons.db-journal", "lock"],
        ["lost+found"],
    ],
    ids=lambda names: " ".join(names) or "nothing",
)
def test_a_commons_is_made_where_nothing_of_another_program_is(tmp_path: Path, names: list[str]) -> None:
    for name in names:
        (tmp_path / name).touch()
    with prepared_database(make_settings(tmp_path)) as database:
        assert migrate.revision_of(database.engine) == HEAD


@pytest.mark.parametrize(
    ("names", "got"),
    [
        (["notes.txt"], "notes.txt"),
        ([".git"], ".git"),
        (["node.key", "lock", "x"], "x"),
        (["d", "c", "b", "a"], "a, b, c and 1 more"),
        (["commons.db.old"], "commons.db.old"),
    ],
)
def test_a_folder_of_another_program_is_refused_and_nothing_in_it_touched(
    tmp_path: Path, names: list[str], got: str
) -> None:
    for name in names:
        (tmp_path / name).touch()
    with pytest.raises(Refused, match=f"empty folder at {tmp_path}, got {re.escape(got)}$"), prepared(tmp_path):
        pass
    assert sorted(found.name for found in tmp_path.iterdir()) == sorted(names)


def test_a_database_of_another_program_is_refused_and_not_touched(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / DATABASE_NAME)) as theirs:
        theirs.execute("CREATE TABLE alembic_version (version_num)")
        theirs.execute("CREATE TABLE cows (name)")
    before = (tmp_path / DATABASE_NAME).read_bytes()
    with pytest.raises(Refused, match=f"got {DATABASE_NAME}$"), prepared(tmp_path):
        pass
    assert [found.name for found in tmp_path.iterdir()] == [DATABASE_NAME]
    assert (tmp_path / DATABASE_NAME).read_bytes() == before


def test_a_file_is_no_data_folder(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("x")
    with pytest.raises(Refused, match="got a file"), prepared(tmp_path / "data"):
        pass


def test_a_release_that_judges_otherwise_makes_the_statements_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    order = "Delete the lock file before every build."
    assert instruction(order)
    with prepared(tmp_path / "data") as commons:
        engine = commons.engine
        for number, data in (
            (1, file(key(1), [lesson(order), lesson(sentence(1)), {"vote": "x"}])),
            (2, draft_file(key(2), [lesson(sentence(2)), {"confirm": "0" * 32}])),
            (3, file(key(3), [], at=NOW + timedelta(seconds=1))),
        ):
            accept_file(engine, data, name=key(number).public.hex, secret=None, token_needed=False, now=NOW)
        with engine.connect() as connection:
            assert connection.execute(select(tables.skipped.c.code)).scalars().all() == ["instruction"]
        # What an earlier release left: another name of its rules, and statements of another judgement.
        with writing(engine) as connection:
            connection.execute(update(tables.meta).values(judgement="of an earlier release"))
            connection.execute(tables.skipped.delete())
            connection.execute(tables.statements.delete().where(tables.statements.c.key == key(2).public.hex))
            connection.execute(update(tables.statements).values(text="another text"))
        migrate.migrate(engine)
        assert len(verify_everything_stored(engine, NOW)) == 3
        # Once is enough.
        monkeypatch.setattr(migrate, "judge_records", None)
        migrate.migrate(engine)


def test_several_first_starts_at_once_make_one_commons(tmp_path: Path, place: Callable[[str], dict[str, Any]]) -> None:
    program = (
        "import sys; from pathlib import Path; from remem_server.commands.common import opened, settings_of;"
        "from remem_server.operator.acts import first_token; from remem_server.settings import system_clock;"
        "settings = settings_of(data=Path(sys.argv[1]));\n"
        "with opened(settings) as commons:\n"
        "    print(first_token(commons.engine, 'a test', system_clock()) or '-', commons.key.public.hex)"
    )
    started = [
        subprocess.Popen(
            [sys.executable, "-c", program, str(tmp_path / "data")],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=plain_environment(**{f"REMEM_{name.upper()}": value for name, value in place("data").items()}),
        )
        for _ in range(3)
    ]
    said = []
    for process in started:
        output, errors = process.communicate(timeout=120)
        assert process.returncode == 0, errors
        said.append(output.split())
    assert len({node for _token, node in said}) == 1
    assert sum(token != "-" for token, _node in said) == 1


def test_the_database_survives_a_power_cut_and_lets_readers_in(tmp_path: Path) -> None:
    with prepared(tmp_path / "data"):
        pass
    engine = open_sqlite(tmp_path / "data")
    with engine.connect() as connection:
        pragmas = {
            name: connection.exec_driver_sql(f"PRAGMA {name}").scalar()
            for name in ("journal_mode", "synchronous", "foreign_keys", "busy_timeout")
        }
        # A reader that is inside a transaction keeps nobody from writing, and sees what it saw.
        before = connection.execute(select(tables.tokens)).all()
        with writing(engine) as writer:
            writer.execute(update(tables.meta).values(changes=7))
        assert connection.execute(select(tables.meta.c.changes)).scalar_one() == 0
        assert connection.execute(select(tables.tokens)).all() == before
    engine.dispose()
    assert pragmas == {"journal_mode": "wal", "synchronous": 2, "foreign_keys": 1, "busy_timeout": 10_000}


def test_servers_of_one_database_on_several_machines_make_it_once_and_share_the_key_of_the_node(tmp_path: Path) -> None:
    with fresh_database() as url:
        with prepared(tmp_path / "first", database_url=url) as first:
            node = first.key.public.hex
        with pytest.raises(RememError, match=f"key of node {node[:16]} .*got no file"):
            prepared(tmp_path / "second", database_url=url).__enter__()
        with prepared(tmp_path / "other"):
            pass
        with pytest.raises(RememError, match=f"key of node {node[:16]} .*got another"):
            prepared(tmp_path / "other", database_url=url).__enter__()
        (tmp_path / "second" / "node.key").write_bytes((tmp_path / "first" / "node.key").read_bytes())
        (tmp_path / "second" / "node.key").chmod(0o600)
        with prepared(tmp_path / "second", database_url=url) as second:
            assert second.key.public.hex == node


def test_starts_of_many_machines_at_once_migrate_one_database_once(tmp_path: Path) -> None:
    program = "import sys; from remem_server.commands import main; sys.argv = ['remem-server', 'migrate']; main()"
    with fresh_database() as url:
        started = [
            subprocess.Popen(
                [sys.executable, "-c", program],
                stderr=subprocess.PIPE,
                text=True,
                env=plain_environment(REMEM_DATABASE_URL=url, REMEM_DATA=str(tmp_path / str(number))),
            )
            for number in range(3)
        ]
        for process in started:
            _output, errors = process.communicate(timeout=120)
            assert process.returncode == 0, errors
        with prepared_database(make_settings(tmp_path / "0", database_url=url)) as database:
            assert migrate.revision_of(database.engine) == HEAD
