"""Readiness: the database answers and has the tables that this release needs, or those of a later one."""

from __future__ import annotations

from collections.abc import Callable

import httpx
import pytest

from remem_server.database.engine import writing
from remem_testkit.server import ServedCommons

Ask = Callable[..., httpx.Client]
Start = Callable[..., ServedCommons]


def set_revision(commons: ServedCommons, revision: str) -> None:
    with writing(commons.engine) as connection:
        connection.exec_driver_sql(f"UPDATE alembic_version SET version_num = '{revision}'")


def test_a_commons_of_this_release_is_ready(commons: ServedCommons, ask: Ask) -> None:
    assert ask(commons).get("/readyz").json() == {"status": "ok"}


def test_a_database_of_an_earlier_release_is_not_ready_and_the_process_is_well(
    commons: ServedCommons, ask: Ask
) -> None:
    set_revision(commons, "0001")
    client = ask(commons)
    answer = client.get("/readyz")
    assert (answer.status_code, answer.json()["code"]) == (503, "not_ready")
    assert "0001" in answer.json()["detail"]
    assert answer.headers["Retry-After"] == "5"
    assert client.get("/healthz").status_code == 200


def test_a_database_without_any_migration_is_not_ready(commons: ServedCommons, ask: Ask) -> None:
    with writing(commons.engine) as connection:
        connection.exec_driver_sql("DELETE FROM alembic_version")
    assert ask(commons).get("/readyz").json()["code"] == "not_ready"


def test_a_release_that_still_runs_is_ready_on_the_database_of_the_next(commons: ServedCommons, ask: Ask) -> None:
    set_revision(commons, "9999")
    assert ask(commons).get("/readyz").status_code == 200


@pytest.mark.parametrize("table", ["alembic_version", "files"])
def test_a_database_that_lost_something_is_not_ready(commons: ServedCommons, ask: Ask, table: str) -> None:
    with writing(commons.engine) as connection:
        connection.exec_driver_sql(
            f"DROP TABLE {table} CASCADE" if commons.commons.database.pools else f"ALTER TABLE {table} RENAME TO lost"
        )
    assert ask(commons).get("/readyz").status_code == 503
