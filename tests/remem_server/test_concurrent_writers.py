"""Many writers at once: the newest stands, nobody's lines mix, and nothing is lost."""

from __future__ import annotations

import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from time import sleep
from typing import Any

import httpx
import pytest
from sqlalchemy import Connection, Engine, event

from remem.protocol import accept, digest_of
from remem_server.database import changes
from remem_server.database import engine as database
from remem_server.database.turns import Turns
from remem_testkit.files import NOW, confirmation, draft_file, file, key, lesson, sentence
from remem_testkit.server import ServedCommons, verify_everything_stored

Ask = Callable[..., httpx.Client]
Start = Callable[..., ServedCommons]

ME = key(1)
PATH = f"/commons/{ME.public.hex}.jsonl"


def put_all(client: httpx.Client, bodies: list[bytes], *, threads: int = 8) -> list[httpx.Response]:
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(lambda body: client.put(PATH, content=body), bodies))


def test_of_many_seals_at_once_the_newest_stands(commons: ServedCommons, ask: Ask) -> None:
    client = ask(commons, commons.token())
    files = [
        file(
            ME,
            [lesson(sentence(line)) for line in range(number % 7, number % 7 + 20)],
            at=NOW + timedelta(seconds=number),
        )
        for number in range(40)
    ]
    random.Random(7).shuffle(files)
    answers = put_all(client, files)
    newest = max(files, key=lambda data: accept(data, now=NOW).version.seal or 0)
    assert {answer.status_code for answer in answers} <= {200, 201, 409}
    assert sum(answer.status_code == 201 for answer in answers) == 1
    for data, answer in zip(files, answers, strict=True):
        if answer.status_code == 409:
            assert answer.json()["held"]["seal"] > accept(data, now=NOW).version.seal
    assert client.get(PATH).content == newest
    (stands,) = verify_everything_stored(commons.engine, NOW)
    assert stands.data == newest


def test_of_many_files_with_one_seal_at_once_the_largest_digest_stands(commons: ServedCommons, ask: Ask) -> None:
    client = ask(commons, commons.token())
    files = [file(ME, [lesson(sentence(number))]) for number in range(24)]
    answers = put_all(client, files)
    assert {answer.status_code for answer in answers} <= {200, 201, 409}
    assert client.get(PATH).content == max(files, key=digest_of)
    verify_everything_stored(commons.engine, NOW)


def test_of_many_draft_files_at_once_one_stands_whole(start: Start, ask: Ask) -> None:
    commons = start(open=True)
    client = ask(commons)
    files = [draft_file(ME, [lesson(sentence(line)) for line in range(number, number + 9)]) for number in range(24)]
    answers = put_all(client, files)
    assert {answer.status_code for answer in answers} <= {200, 201}
    assert client.get(PATH).content in files
    verify_everything_stored(commons.engine, NOW)


def test_all_of_many_confirmations_at_once_count(start: Start, ask: Ask) -> None:
    commons = start(open=True)
    client = ask(commons)
    subject = str(lesson(sentence(1))["hash"])
    client.put(PATH, content=file(ME, [lesson(sentence(1))]))
    files = {number: file(key(number), [confirmation(subject)]) for number in range(100, 164)}

    def put(number: int) -> int:
        return client.put(f"/commons/{key(number).public.hex}.jsonl", content=files[number]).status_code

    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(put, files)) == {201}
    assert client.get(f"/commons/lessons/{subject}").json()["confirmations"] == len(files)


def test_a_reader_that_follows_the_cursor_misses_no_change_of_writers_at_work(start: Start, ask: Ask) -> None:
    commons = start(open=True)
    client, reader = ask(commons), ask(commons)
    writers, rounds = 6, 12
    followed: dict[str, str] = {}
    cursor = 0

    def write(number: int) -> None:
        for second in range(rounds):
            data = file(key(number), [], at=NOW + timedelta(seconds=second))
            assert client.put(f"/commons/{key(number).public.hex}.jsonl", content=data).is_success

    def follow() -> None:
        nonlocal cursor
        answer = reader.get("/commons/index", params={"since": cursor, "limit": 2})
        assert int(answer.headers["Remem-Cursor"]) >= cursor
        cursor = int(answer.headers["Remem-Cursor"])
        followed.update((entry["key"], entry["digest"]) for entry in answer.json())

    with ThreadPoolExecutor(writers) as pool:
        running = [pool.submit(write, number) for number in range(writers)]
        while not all(one.done() for one in running):
            follow()
        for one in running:
            one.result()
    for _ in range(writers):
        follow()
    assert followed == {entry["key"]: entry["digest"] for entry in reader.get("/commons/index").json()}


def test_a_writer_that_waits_too_long_is_told_to_come_again(
    start: Start, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "_BUSY_SECONDS", 0.1)
    commons = start(open=True)
    client = ask(commons)
    with database.writing(commons.engine) as connection:
        changes.lock(connection)
        answer = client.put(PATH, content=file(ME, []))
        assert (answer.status_code, answer.json()["code"]) == (503, "store_unavailable")
        assert answer.headers["Retry-After"]
        # Readers do not wait for a writer.
        assert client.get("/commons/index").json() == []
    assert client.put(PATH, content=file(ME, [])).status_code == 201


def test_writers_have_their_turns_in_the_order_in_which_they_came(commons: ServedCommons) -> None:
    engine, order = commons.engine, list[int]()

    def write(number: int) -> None:
        with database.writing(engine) as connection:
            changes.lock(connection)
            changes.next_change(connection)
            order.append(number)

    with ThreadPoolExecutor(6) as pool, database.writing(engine) as connection:
        changes.lock(connection)
        changes.next_change(connection)
        for number in range(6):
            pool.submit(write, number)
            while waiting(engine) <= number:
                sleep(0.01)
    assert order == list(range(6))


def waiting(engine: Engine) -> int:
    """Say how many writers wait for their turn."""
    if not database.is_postgres(engine):
        return len(engine.get_execution_options()[database.TURNS].waiting)
    with engine.connect() as connection:
        count = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted AND database = %s::oid"
        oid = connection.exec_driver_sql("SELECT oid FROM pg_database WHERE datname = current_database()").scalar_one()
        return int(connection.exec_driver_sql(count, (oid,)).scalar_one())


@pytest.mark.any_database
def test_who_waits_too_long_for_a_turn_goes_on_without_one_and_is_forgotten() -> None:
    turns = Turns()
    with turns.one(0):
        with turns.one(0.01):
            assert not turns.waiting
        # The turn is still taken.
        assert not turns._wait(0)
    assert turns._wait(0)


@pytest.mark.any_database
def test_who_waited_for_its_turn_waits_for_the_database_only_what_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "_BUSY_SECONDS", 0.1)
    engine, patience = database.open_sqlite(tmp_path), list[int]()

    @event.listens_for(engine, "before_cursor_execute")
    def note(connection: Connection, _cursor: Any, statement: str, *_others: Any) -> None:
        if statement == "BEGIN IMMEDIATE":
            patience.append(busy_timeout(connection))

    with database.writing(engine):
        pass
    with engine.get_execution_options()[database.TURNS].one(0), database.writing(engine) as connection:
        assert busy_timeout(connection) == 100
    engine.dispose()
    assert 0 < patience[0] <= 100
    assert patience[1] == 0


def busy_timeout(connection: Connection) -> int:
    """Say how many milliseconds a connection waits for the database."""
    cursor = connection.connection.cursor()
    cursor.execute("PRAGMA busy_timeout")
    ((milliseconds,),) = cursor.fetchall()
    return int(milliseconds)


def test_a_reader_always_gets_one_whole_file(commons: ServedCommons, ask: Ask) -> None:
    client, reader = ask(commons, commons.token()), ask(commons)
    files = [
        file(ME, [lesson(sentence(line)) for line in range(number + 1)], at=NOW + timedelta(seconds=number))
        for number in range(30)
    ]
    client.put(PATH, content=files[0])
    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(lambda: [client.put(PATH, content=data) for data in files])
        while not writing.done():
            answer = reader.get(PATH)
            assert answer.content in files
            assert answer.headers["ETag"] == f'"{digest_of(answer.content)}"'
