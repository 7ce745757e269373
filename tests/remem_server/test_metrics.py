"""The metrics: what they count, who may read them, and that a database that is away keeps nothing else back."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families
from sqlalchemy import Connection

from remem_server.database.engine import writing
from remem_server.upkeep.stats import lessons_by_state
from remem_testkit.files import confirmation, file, full_file, key, lesson, sentence
from remem_testkit.server import ServedCommons

Ask = Callable[..., httpx.Client]
Start = Callable[..., ServedCommons]
Samples = dict[tuple[str, tuple[str, ...]], float]


def path(number: int) -> str:
    return f"/commons/{key(number).public.hex}.jsonl"


def read(client: httpx.Client) -> Samples:
    """Read all samples, by name and the values of their labels in the order of the labels' names."""
    answer = client.get("/metrics")
    assert answer.status_code == 200
    families = text_string_to_metric_families(answer.text)
    return {
        (sample.name, tuple(sample.labels.values())): sample.value for family in families for sample in family.samples
    }


def test_requests_are_counted_by_route_method_and_status(start: Start, ask: Ask) -> None:
    client = ask(start(open=True))
    client.put(path(1), content=full_file(key(1), lines=3))
    for number in (1, 2):
        client.get(path(number))
    client.get(path(1), headers={"If-None-Match": "*"})
    client.get("/nothing")
    found = read(client)
    files = "/commons/{name}.jsonl"
    assert found["remem_requests_total", ("PUT", files, "201")] == 1
    assert [found["remem_requests_total", ("GET", files, status)] for status in ("200", "304", "404")] == [1, 1, 1]
    assert found["remem_requests_total", ("GET", "none", "404")] == 1
    assert found["remem_request_seconds_count", ("GET", files)] == 3
    assert found["remem_verification_seconds_count", ()] == 1


def test_what_is_accepted_and_refused_is_counted(start: Start, ask: Ask) -> None:
    client = ask(start(open=True))
    older, newer = (full_file(key(1), lines=2, seal=seal) for seal in (5, 6))
    for data in (older, newer, newer, older, older[:-1]):
        client.put(path(1), content=data)
    client.get("/commons/x.jsonl")
    client.get("/commons/index?limit=0")
    found = read(client)
    assert [found["remem_accepted_total", (outcome,)] for outcome in ("new", "newer", "unchanged", "older")] == [1] * 4
    codes = ("older_file", "line_end", "name_form", "parameter_form")
    assert [found["remem_refused_total", (code,)] for code in codes] == [1] * 4


def test_what_the_commons_holds_is_counted(start: Start, ask: Ask) -> None:
    commons = start(open=True)
    client = ask(commons)
    client.put(path(1), content=file(key(1), [lesson(sentence(1)), lesson(sentence(2))]))
    for number in (2, 3, 4):
        client.put(path(number), content=file(key(number), [confirmation(str(lesson(sentence(1))["hash"]))]))
    found = read(client)
    assert (found["remem_origins", ()], found["remem_records", ()]) == (4, 5)
    states = ("common", "fading", "candidate", "removed", "revoked")
    assert [found["remem_lessons", (state,)] for state in states] == [1, 0, 1, 0, 0]
    assert found["remem_queue_waiting", ()] == 0


def test_the_database_is_counted_now_and_then(
    commons: ServedCommons, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted: list[datetime] = []

    def count(connection: Connection, now: datetime) -> dict[str, int]:
        counted.append(now)
        return lessons_by_state(connection, now)

    monkeypatch.setattr("remem_server.web.metrics.lessons_by_state", count)
    client = ask(commons)
    for _ in range(5):
        assert read(client)["remem_origins", ()] == 0
    assert len(counted) == 1


def test_who_asks_while_the_database_is_counted_gets_what_there_is(
    commons: ServedCommons, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = ask(commons)
    inside: list[Samples] = []

    def count(connection: Connection, now: datetime) -> dict[str, int]:
        inside.append(read(client))
        return lessons_by_state(connection, now)

    monkeypatch.setattr("remem_server.web.metrics.lessons_by_state", count)
    assert ("remem_origins", ()) in read(ask(commons))
    # Counted once, and the one in between did not wait.
    assert [("remem_origins", ()) in found for found in inside] == [False]


def test_a_database_that_is_away_keeps_no_other_metric_back(commons: ServedCommons, ask: Ask) -> None:
    with writing(commons.engine) as connection:
        connection.exec_driver_sql("ALTER TABLE files RENAME TO lost")
    found = read(ask(commons))
    assert ("remem_queue_waiting", ()) in found
    assert ("remem_origins", ()) not in found


@pytest.mark.parametrize("database", ["postgres"], indirect=True)
def test_the_connections_to_postgresql_are_counted(commons: ServedCommons, ask: Ask) -> None:
    found = read(ask(commons))
    for pool in ("read", "write"):
        states = [found["remem_database_connections", (pool, state)] for state in ("busy", "idle", "waiting")]
        assert sum(states) >= 1


@pytest.mark.parametrize("database", ["postgres"], indirect=True)
def test_the_age_of_a_replica_is_told(start: Start, ask: Ask) -> None:
    # A primary serves as its own replica here, which is never behind.
    first = start()
    assert first.settings.database_url is not None
    assert ("remem_replication_age_seconds", ()) not in read(ask(first))
    second = start(replica_url=first.settings.database_url.get_secret_value())
    assert read(ask(second))["remem_replication_age_seconds", ()] == 0


def test_the_metrics_of_a_private_commons_are_private(start: Start, ask: Ask) -> None:
    commons = start(private=True)
    assert ask(commons).get("/metrics").json()["code"] == "token_missing"
    assert read(ask(commons, commons.token()))["remem_origins", ()] == 0
