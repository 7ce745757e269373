"""The drill: a commons is backed up, goes on, is lost and put back, and its readers miss nothing."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from sqlalchemy import Connection, make_url

from remem.errors import RememError
from remem.protocol import lesson_hash
from remem_server.database.engine import DATABASE_NAME
from remem_server.database.tables import counters, metadata
from remem_server.opening.node import KEY_NAME
from remem_server.operator import acts
from remem_server.upkeep import backups
from remem_server.upkeep.audit import audit
from remem_testkit.files import NOW, file, key, lesson, sentence
from remem_testkit.filled import fill, put
from remem_testkit.memories import Memory
from remem_testkit.postgres import fresh_database
from remem_testkit.programs import postgres_programs
from remem_testkit.server import HandClock, prepared, serve

AT = NOW + timedelta(hours=2)
MORE = [file(key(number), [lesson(sentence(number))]) for number in range(80, 90)]


class Site:
    """A data folder and a database, and what an operator does with their backup."""

    def __init__(self, folder: Path, database: str, stack: ExitStack) -> None:
        self.data = folder / "data"
        self.copy = folder / "copy"
        self.key = folder / "key"
        self.stack = stack
        self.options: dict[str, Any] = {}
        if database == "postgres":
            self.options["database_url"] = stack.enter_context(fresh_database())

    def back_up(self) -> None:
        if self.options:
            self.program("pg_dump", "--format=custom", f"--file={self.copy}", self.url)
        else:
            backups.back_up(self.data, self.copy)
        shutil.copy2(self.data / KEY_NAME, self.key)

    def lose(self) -> None:
        """Lose the machine: all of it but the backup."""
        shutil.rmtree(self.data)
        if self.options:
            self.options["database_url"] = self.stack.enter_context(fresh_database())

    def put_back(self) -> None:
        self.data.mkdir(mode=0o700)
        if self.options:
            self.program("pg_restore", "--no-owner", "--exit-on-error", f"--dbname={self.url}", str(self.copy))
        else:
            shutil.copy2(self.copy, self.data / DATABASE_NAME)
        shutil.copy2(self.key, self.data / KEY_NAME)

    @property
    def url(self) -> str:
        """The database as its own programs call it."""
        url = make_url(self.options["database_url"]).set(drivername="postgresql")
        return url.render_as_string(hide_password=False)

    def program(self, name: str, *arguments: str) -> None:
        ran = subprocess.run(
            [postgres_programs() / name, *arguments],
            env={**os.environ, "PGOPTIONS": ""},
            capture_output=True,
            text=True,
            check=False,
        )
        assert ran.returncode == 0, ran.stderr


@pytest.fixture
def site(tmp_path: Path, database: str) -> Iterator[Site]:
    with ExitStack() as stack:
        yield Site(tmp_path, database, stack)


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Callable[[int], Memory]]:
    with ExitStack() as stack:

        def memory(number: int) -> Memory:
            made = Memory(tmp_path / f"memory-{number}", number)
            stack.callback(made.close)
            return made

        yield memory


def test_a_commons_that_was_put_back_misleads_no_reader(site: Site, memory: Callable[[int], Memory]) -> None:
    clock = HandClock(AT)
    reader = memory(20)
    with serve(site.data, clock=clock, **site.options) as served:
        fill(served.commons)
        site.back_up()
        # What comes behind the backup is lost here, and its numbers with it. The reader has seen them.
        for data in MORE[:6]:
            put(served.commons, data)
        reader.pull(served.url)
        was = served.url
    site.lose()
    site.put_back()
    with prepared(site.data, clock, **site.options) as commons:
        backups.recount(commons.engine, AT)
        assert list(audit(commons.engine, AT, node=commons.key.public.hex)) == []
        # As many others come, and would have had the numbers that the reader has seen.
        for data in MORE[6:]:
            put(commons, data)
    with serve(site.data, clock=clock, **site.options) as served:
        assert taken_from(reader, was, served.url) == {name_of(data) for data in MORE[6:]}
        # What was lost here its readers still have.
        assert {f"{name_of(data)}.jsonl" for data in MORE} <= reader.held_files().keys()


def name_of(data: bytes) -> str:
    return data.partition(b'"key":"')[2][:64].decode()


def taken_from(reader: Memory, was: str, now: str) -> set[str]:
    """Pull from a commons that came back at another port, as if it were the same; return whose files came."""
    for table, column in (("places", "target"), ("admissions", "target"), ("trust", "via")):
        reader.db.execute(f"UPDATE {table} SET {column} = ? WHERE {column} = ?", (now, was))
    return {one.key for one in reader.pull(now).taken}


def test_without_a_recount_a_reader_would_miss_what_came_under_old_numbers(
    site: Site, memory: Callable[[int], Memory]
) -> None:
    clock = HandClock(AT)
    reader = memory(20)
    with serve(site.data, clock=clock, **site.options) as served:
        fill(served.commons)
        site.back_up()
        put(served.commons, MORE[0])
        reader.pull(served.url)
        was = served.url
    site.lose()
    site.put_back()
    with prepared(site.data, clock, **site.options) as commons:
        for data in MORE[1:3]:
            put(commons, data)
    with serve(site.data, clock=clock, **site.options) as served:
        assert taken_from(reader, was, served.url) == {name_of(MORE[2])}
        backups.recount(served.engine, AT)
        assert taken_from(reader, served.url, served.url) == {name_of(MORE[1])}


@pytest.mark.parametrize("reseals", [True, False], ids=["sealed anew", "as it was"])
def test_an_act_reaches_whoever_heard_a_burst_that_is_lost(
    site: Site, memory: Callable[[int], Memory], reseals: bool
) -> None:
    clock = HandClock(AT)
    reader = memory(20)
    who, lesson_of_many = "command by the test", lesson_hash("error", sentence(80))
    with serve(site.data, clock=clock, **site.options) as served:
        node = served.commons.key.public.hex
        acts.say(served.commons, who, "revoke", lesson_hash("error", sentence(90)), "It is not so.")
        site.back_up()
        for _ in range(10):
            acts.say(served.commons, who, "revoke", lesson_of_many, "It is not so.")
            acts.say(served.commons, who, "unrevoke", lesson_of_many, None)
        reader.pull(served.url)
        was = served.url
    site.lose()
    site.put_back()
    with prepared(site.data, clock, **site.options) as commons:
        if reseals:
            assert acts.reseal(commons, who)
        backups.recount(commons.engine, AT)
        acts.say(commons, who, "revoke", lesson_of_many, "It is not so.")
        assert list(audit(commons.engine, AT, node=node)) == []
    with serve(site.data, clock=clock, **site.options) as served:
        assert (node in taken_from(reader, was, served.url)) is reseals


def test_what_was_put_back_is_the_commons_that_it_was(site: Site) -> None:
    with prepared(site.data, **site.options) as commons:
        fill(commons)
        node = commons.key.public.hex
        with commons.engine.connect() as connection:
            before = everything(connection)
    site.back_up()
    site.lose()
    site.put_back()
    with prepared(site.data, **site.options) as commons:
        assert commons.key.public.hex == node
        with commons.engine.connect() as connection:
            assert everything(connection) == before
        assert list(audit(commons.engine, AT, node=node)) == []
        put(commons, file(key(99), [lesson(sentence(1))]))
        assert list(audit(commons.engine, AT)) == []


def everything(connection: Connection) -> dict[str, list[str]]:
    # How often something was done lately is no part of a commons.
    kept = [table for table in metadata.sorted_tables if table is not counters]
    return {table.name: sorted(map(repr, connection.execute(table.select()))) for table in kept}


def test_a_backup_without_the_key_of_its_node_is_told(site: Site) -> None:
    with prepared(site.data, **site.options) as commons:
        fill(commons)
    site.back_up()
    site.lose()
    site.put_back()
    (site.data / KEY_NAME).unlink()
    with pytest.raises(RememError, match="expected the key of node") as told, prepared(site.data, **site.options):
        pass
    assert told.value.hint == "copy it from another server of this commons, or from a backup"


def test_a_search_finds_its_lessons_again(site: Site) -> None:
    with prepared(site.data, **site.options) as commons:
        fill(commons)
    site.back_up()
    site.lose()
    site.put_back()
    with serve(site.data, **site.options) as served:
        found = httpx.get(f"{served.url}/commons/lessons", params={"q": "Module 4 fails"}).json()["lessons"]
    assert [one["hash"] for one in found] == [lesson_hash("surprise", sentence(4))]
