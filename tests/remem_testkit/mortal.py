"""A commons that dies at a chosen moment: the real server in a process of its own, which kills itself with SIGKILL.

The moments are those at which a PUT that stops half-way could leave something behind: before its transaction begins,
after each statement inside it, before, during and after the commit, before, inside and after the answer. Which
statements there are is found while the server runs.

The processes are forked from one that has imported everything, so that a thousand of them cost minutes. Nothing of
this is in the product: the moments are events of the database library, and a layer around the application.
"""

from __future__ import annotations

import multiprocessing
import os
import random
import re
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing.connection import Connection as Pipe
from multiprocessing.process import BaseProcess
from typing import Any, Final, Literal, NoReturn

from sqlalchemy import Connection, Engine, event
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from remem_server.database.engine import WRITES_BY
from remem_server.opening.opened import open_commons
from remem_server.settings import Clock, Settings
from remem_server.web.app import create_app
from remem_server.web.serving import listen, make_server, url_of

BEFORE: Final = "before the transaction"
AROUND_COMMIT: Final = ("before the commit", "during the commit", "after the commit")
AROUND_ANSWER: Final = ("before the answer", "inside the answer", "after the answer")
ANY_MOMENT: Final = "at any moment"

_START_SECONDS: Final = 60
_LIFE_SECONDS: Final = 60
_LONGEST_COMMITS: Final = 1.5
_TABLE: Final = re.compile(r"\b(?:INTO|UPDATE|FROM)\s+(\w+)")
# The one process that all others are forked from has imported these.
_FORKING: Final = multiprocessing.get_context("forkserver")
_FORKING.set_forkserver_preload(
    ["httpx", "psycopg", "uvloop", "remem_server.web.app", "remem_server.upkeep.audit", "remem_server.web.serving"]
)


@dataclass(frozen=True)
class Doom:
    """When a commons dies, and what is wrong with it while it lives.

    Attributes:
        point: the moment, by its name; None for no moment.
        skip: how often it comes by that moment before it dies of it.
        fault: a mistake of this commons' own, which whoever checks it afterwards must find: `loses` answers and commits
            nothing, `halves` commits what the first statement about a file did and dies.
    """

    point: str | None = None
    skip: int = 0
    fault: Literal["", "loses", "halves"] = ""


@dataclass
class Mortal:
    """A commons in a process of its own that dies by itself.

    Attributes:
        process: the process.
        url: where it is reached.
    """

    process: BaseProcess
    url: str
    _told: Pipe
    _points: list[str] = field(default_factory=list)

    @property
    def points(self) -> list[str]:
        """The moments of a PUT that it came by so far, in the order in which it first did."""
        try:
            while self._told.poll():
                self._points.append(self._told.recv())
        except EOFError:
            pass
        return self._points

    def is_dead_by(self, late: Callable[[], bool]) -> bool:
        """Wait for its end until it is late, and tell whether it came."""
        deadline = time.monotonic() + _LIFE_SECONDS
        while self.process.is_alive() and not late() and time.monotonic() < deadline:
            self.process.join(0.1)
        return self.process.exitcode == -signal.SIGKILL

    def kill(self) -> None:
        """Kill it at once."""
        self.process.kill()
        self.process.join(_START_SECONDS)


@contextmanager
def mortal(settings: Settings, doom: Doom, clock: Clock) -> Iterator[Mortal]:
    """Start a commons on a free port of loopback; it is dead when the `with` ends."""
    told, telling = _FORKING.Pipe(duplex=False)
    process = _FORKING.Process(target=_serve, args=(settings, doom, clock, telling), daemon=True)
    process.start()
    telling.close()
    try:
        assert told.poll(_START_SECONDS), "expected a commons that serves, got none"
        yield Mortal(process, told.recv(), told)
    finally:
        process.kill()
        process.join(_START_SECONDS)
        told.close()
        process.close()


# --- in the process of its own ---


def _serve(settings: Settings, doom: Doom, clock: Clock, telling: Pipe) -> None:
    with open_commons(settings, clock, serves=True) as commons:
        fate = _Fate(doom, telling)
        app = create_app(commons)
        app.add_middleware(_Answers, fate=fate)
        fate.watch(commons.engine)
        listening = listen("127.0.0.1", 0, or_any=False)
        telling.send(url_of(listening))
        make_server(app).run(sockets=[listening])


def _die() -> NoReturn:
    os.kill(os.getpid(), signal.SIGKILL)
    # The signal may take a moment to arrive.
    while True:
        time.sleep(1)


class _Fate:
    """Counts the moments, and ends the process at the one that was chosen."""

    def __init__(self, doom: Doom, telling: Pipe) -> None:
        self._doom, self._telling = doom, telling
        self._lock = threading.Lock()
        self._seen: Counter[str] = Counter()
        self._commit_seconds = 0.001
        # A transaction is one thread's.
        self._transaction = threading.local()

    def watch(self, engine: Engine) -> None:
        event.listen(engine, "begin", self._begins, insert=True)
        event.listen(engine, "after_cursor_execute", self._executed)
        self._commit = engine.dialect.do_commit
        engine.dialect.do_commit = self._commits  # type: ignore[method-assign,assignment]  # there is no event after it

    def reached(self, point: str) -> None:
        with self._lock:
            self._seen[point] += 1
            if self._seen[point] == 1:
                self._telling.send(point)
            is_now = self._is_next(point)
        if is_now:
            _die()

    def _is_next(self, point: str) -> bool:
        return point == self._doom.point and self._seen[point] > self._doom.skip

    def _begins(self, connection: Connection) -> None:
        self._transaction.writes = WRITES_BY in connection.get_execution_options()
        self._transaction.statements = Counter()
        if self._transaction.writes:
            self.reached(BEFORE)

    def _executed(self, _connection: Connection, cursor: Any, statement: str, *_rest: object) -> None:
        if not getattr(self._transaction, "writes", False):
            return
        table = _TABLE.search(statement)
        done = f"{statement.split(maxsplit=1)[0]} {table[1] if table else ''}".strip()
        self._transaction.statements[done] += 1
        times = self._transaction.statements[done]
        self.reached(f"after {done}" + (f" ({times})" if times > 1 else ""))
        if self._doom.fault == "halves" and done in ("INSERT files", "UPDATE files"):
            cursor.connection.commit()
            _die()

    def _commits(self, connection: Any) -> None:
        if not getattr(self._transaction, "writes", False):
            self._commit(connection)
            return
        before, during, after = AROUND_COMMIT
        self.reached(before)
        with self._lock:
            self._seen[during] += 1
            if self._seen[during] == 1:
                self._telling.send(during)
            if self._is_next(during):
                delay = random.random() * _LONGEST_COMMITS * self._commit_seconds
                threading.Timer(delay, _die).start()
        if self._doom.fault == "loses":
            connection.rollback()
        started = time.perf_counter()
        self._commit(connection)
        self._commit_seconds = time.perf_counter() - started
        self._transaction.writes = False
        self.reached(after)


class _Answers:
    """The outermost layer of the application: knows when a PUT that was taken is answered."""

    def __init__(self, app: ASGIApp, fate: _Fate) -> None:
        self._app, self._fate = app, fate

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        before, inside, after = AROUND_ANSWER
        taken = False

        async def sending(message: Message) -> None:
            nonlocal taken
            if message["type"] == "http.response.start" and message["status"] in (200, 201):
                taken = True
                self._fate.reached(before)
            elif taken:
                self._fate.reached(inside)
            await send(message)
            if taken and message["type"] == "http.response.body" and not message.get("more_body", False):
                self._fate.reached(after)

        is_put = scope["type"] == "http" and scope["method"] == "PUT"
        await self._app(scope, receive, sending if is_put else send)
