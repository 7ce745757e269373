"""Real commons on loopback: in a thread with a clock of the test's, or as a process of its own.

Both have a data folder of the test's and a free port, and end when their `with` does.
"""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cache
from pathlib import Path
from socket import socket

import uvicorn
from sqlalchemy import Engine, select

from remem.protocol import OriginFile, accept, digest_of
from remem_server.database import tables
from remem_server.database.engine import DATABASE_NAME, writing
from remem_server.files import tokens
from remem_server.files.judging import judge_records
from remem_server.opening.context import Commons
from remem_server.opening.opened import open_commons, prepared_database
from remem_server.settings import Clock, Settings
from remem_server.web.app import create_app
from remem_server.web.connections import ANSWER_SECONDS, CONNECTIONS_MOST, HEAD_SECONDS
from remem_server.web.logs import Log
from remem_server.web.serving import listen, make_server, url_of
from remem_testkit.files import NOW

_START_SECONDS = 60
_REMEM_VARIABLES = "REMEM_"


class HandClock:
    """A clock that stands still until the test moves it."""

    def __init__(self, now: datetime = NOW) -> None:
        self.now = now

    def __call__(self) -> datetime:
        return self.now

    def advance(self, by: timedelta) -> None:
        self.now += by


def make_settings(data: Path, **options: object) -> Settings:
    """Make settings that come from the test alone, whatever the environment says."""
    plain = {name: field.get_default() for name, field in Settings.model_fields.items()}
    return Settings(**{**plain, "data": data, **options})


@contextmanager
def prepared(data: Path, clock: Clock | None = None, **options: object) -> Iterator[Commons]:
    """Make the data folder of a commons, and open it as a start of the server does."""
    with open_commons(make_settings(data, **options), clock or HandClock(), serves=True) as commons:
        yield commons


def lay_tables(data: Path) -> None:
    """Make a data folder with the SQLite database of a commons that was never served, faster than by migrations."""
    data.mkdir(mode=0o700)
    database = data / DATABASE_NAME
    database.touch(0o600)
    database.write_bytes(_tables())


@cache
def _tables() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        # The last connection that is closed leaves everything in one file.
        with prepared_database(make_settings(Path(folder))):
            pass
        return (Path(folder) / DATABASE_NAME).read_bytes()


def new_token(engine: Engine, *, label: str = "", principal: str | None = None, now: datetime = NOW) -> str:
    """Make a token."""
    with writing(engine) as connection:
        secret, _token = tokens.create(connection, now, tokens.Terms(label=label, principal=principal))
    return secret


# --- in a thread ---


class _Server(uvicorn.Server):
    """The web server, but for how it ends: it looks ten times a second whether to, and waits as long once it does."""

    _loop: asyncio.AbstractEventLoop | None = None

    def end(self) -> None:
        """End at once, from another thread."""
        self.should_exit = True
        if self._loop is not None:
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._asked.set)

    async def main_loop(self) -> None:
        self._asked, self._loop = asyncio.Event(), asyncio.get_running_loop()
        counter = 0
        while not await self.on_tick(counter):
            counter += 1
            with suppress(TimeoutError):
                await asyncio.wait_for(self._asked.wait(), 0.1)

    async def shutdown(self, sockets: list[socket] | None = None) -> None:
        for server in self.servers:
            server.close()
        for connection in list(self.server_state.connections):
            connection.shutdown()
        # What is closed is gone when the loop has come around.
        for _ in range(3):
            await asyncio.sleep(0)
        await asyncio.wait_for(self._wait_tasks_to_complete(), self.config.timeout_graceful_shutdown)
        await self.lifespan.shutdown()


@dataclass(frozen=True)
class ServedCommons:
    """A commons that runs in a thread of this process.

    Attributes:
        url: where it is reached.
        settings: what it was started with.
        engine: its database.
        clock: its clock.
        commons: all that it knows of itself.
    """

    url: str
    settings: Settings
    engine: Engine
    clock: Clock
    commons: Commons

    def token(self, *, label: str = "", principal: str | None = None) -> str:
        """Make a token of this commons."""
        return new_token(self.engine, label=label, principal=principal, now=self.clock())


@contextmanager
def serve(
    data: Path,
    *,
    clock: Clock | None = None,
    log: Log | None = None,
    head_seconds: float = HEAD_SECONDS,
    answer_seconds: float = ANSWER_SECONDS,
    connections: int = CONNECTIONS_MOST,
    **options: object,
) -> Iterator[ServedCommons]:
    """Run a commons in a thread, on a free port of loopback."""
    clock = clock or HandClock()
    with prepared(data, clock, **options) as commons:
        settings = commons.settings
        listening = listen(settings.host, 0, or_any=False)
        made = make_server(
            create_app(commons),
            log=log,
            head_seconds=head_seconds,
            answer_seconds=answer_seconds,
            connections=connections,
        )
        server = _Server(made.config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
        thread.start()
        try:
            yield ServedCommons(url_of(listening), settings, commons.engine, clock, commons)
        finally:
            server.end()
            thread.join(_START_SECONDS)
            listening.close()


# --- as a process ---


@dataclass
class CommonsProcess:
    """A commons that runs as a process of its own.

    Attributes:
        process: the process.
        url: where it is reached.
        token: the token of a first start.
        output: what it printed to standard output until it served.
        noted: the lines that it wrote to standard error so far; they are read as they come, so that it never waits.
    """

    process: subprocess.Popen[str]
    url: str = ""
    token: str | None = None
    output: list[str] = field(default_factory=list)
    noted: list[str] = field(default_factory=list)
    reading: threading.Thread | None = None

    def end(self, by: signal.Signals = signal.SIGTERM) -> tuple[int, str]:
        """End it by a signal, and return its exit code and what it wrote to standard error."""
        self.process.send_signal(by)
        return self.ended()

    def ended(self) -> tuple[int, str]:
        """Wait for its end, and return its exit code and what it wrote to standard error since it served."""
        self.process.wait(timeout=_START_SECONDS)
        if self.reading is not None:
            self.reading.join(_START_SECONDS)
        return self.process.returncode, "".join(self.noted)

    def read_on(self) -> None:
        """Read what it writes to standard error from now on, beside the test."""
        self.reading = threading.Thread(target=self._read, daemon=True)
        self.reading.start()

    def _read(self) -> None:
        assert self.process.stderr is not None
        self.noted.extend(self.process.stderr)


def plain_environment(**variables: str) -> dict[str, str]:
    """Return the environment without any setting of ours, and these variables."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(_REMEM_VARIABLES)}
    return {**kept, **variables}


def operator_command(*arguments: str) -> list[str]:
    """Return the command line of `remem-server` in this environment."""
    return [sys.executable, "-m", "remem_server", *arguments]


@contextmanager
def spawn(data: Path, arguments: Sequence[str] = ("--port", "0"), **variables: str) -> Iterator[CommonsProcess]:
    """Start `remem-server serve` as a process, and wait until it serves; it is killed at the end."""
    process = subprocess.Popen(
        operator_command("serve", "--data", str(data), *arguments),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=plain_environment(**variables),
    )
    started = CommonsProcess(process)
    try:
        _wait_until_served(started)
        yield started
    finally:
        if process.poll() is None:
            process.kill()
        started.ended()
        for stream in (process.stdout, process.stderr):
            assert stream is not None
            stream.close()


def _wait_until_served(started: CommonsProcess) -> None:
    assert started.process.stdout is not None
    for line in started.process.stdout:
        started.output.append(line)
        if found := re.fullmatch(r"serving (http://\S+)\n", line):
            started.url = found[1]
            break
    else:
        raise RuntimeError(f"the commons ended: {started.process.communicate()[1]}")
    # A first start prints its token on the next line, and every start ends with its notes on standard error.
    assert started.process.stderr is not None
    for line in started.process.stderr:
        if "this token is shown once" in line:
            token = started.process.stdout.readline()
            started.output.append(token)
            started.token = token.removeprefix("token ").strip()
        if "Ctrl-C ends it" in line:
            break
    started.read_on()


# --- what holds of every commons, at any time ---


def verify_everything_stored(engine: Engine, now: datetime) -> list[OriginFile]:
    """Accept every stored file again from nothing, and compare all that was derived from it with what is stored."""
    found: list[OriginFile] = []
    with engine.connect() as connection:
        rows = connection.execute(select(tables.files, tables.contents).join(tables.contents)).mappings().all()
        for row in rows:
            file = accept(row["data"], now=now + timedelta(days=36_500))
            _compare(file, dict(row))
            judged = judge_records(file.records)
            for table, made in ((tables.statements, judged.statements), (tables.skipped, judged.skipped)):
                # What the policy makes of a statement is no part of what judgement does.
                columns = [column for column in table.c if column.name not in ("principal", "counts")]
                stored = connection.execute(select(*columns).where(table.c.key == file.key.hex)).mappings()
                assert _by_topic(stored) == _by_topic(made), f"the {table.name} of {file.key.hex}"
            found.append(file)
        counted = connection.execute(select(tables.meta.c.changes)).scalar_one()
    assert all(row["cursor"] <= counted for row in rows)
    return found


def _compare(file: OriginFile, row: dict[str, object]) -> None:
    assert row["key"] == file.key.hex
    assert row["origin"] == file.key.origin
    assert row["digest"] == file.digest == digest_of(file.data)
    assert row["seal"] == file.version.seal
    assert row["seal_time"] == (file.seal and file.seal.time)
    assert row["records"] == len(file.records)
    assert row["size"] == len(file.data)
    assert row["topics"] == "\n".join(file.topics)


def _by_topic(rows: object) -> dict[tuple[str, str], dict[str, object]]:
    assert hasattr(rows, "__iter__")
    return {(row["type"], row["subject"]): dict(row) for row in rows}
