"""A memory that accepts exchanges: the three routes between nodes and a description, over the memory itself.

- One thread has the memory open, and does one thing after the other: a memory is one person's, and has few peers. It
  opens the memory anew where another process changed something, and once a minute, so that it knows what time it is.
- Anyone who reaches it may reconcile and fetch: what a memory holds is published. Offers are taken of its peers, known
  by the keys that `remem peers add` and `check` learned, and where it is open of anyone, within one small budget for
  all of them.
- What comes in as news is pushed on once, to a few peers, by a thread of its own.
- It stands behind the same doors as a commons: what an address may ask, send and keep open is bounded in one way.
- Every refusal is a problem. Where the memory cannot be used, it is told in a line of the log, and whoever asked learns
  nothing of its inside.
"""

from __future__ import annotations

import asyncio
import logging
import sqlite3
import threading
from collections.abc import AsyncIterator, Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, asynccontextmanager, closing
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from http import HTTPStatus
from importlib.metadata import version
from random import SystemRandom
from typing import Any, Final, TypeVar

from sqlalchemy import create_engine
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from remem.errors import RememError
from remem.memory.home import Home
from remem.memory.store import transaction
from remem.protocol import RULES, ProtocolError, SigningKey
from remem.protocol.errors import show
from remem.sharing.escape import printable
from remem_gossip import peers as book
from remem_gossip import wire
from remem_gossip.answering import answer_fetch, answer_offer, answer_reconcile
from remem_gossip.budget import Budget
from remem_gossip.errors import GossipError
from remem_gossip.exchange import Answer
from remem_gossip.exchange import Request as Asked
from remem_gossip.meeting import PUSH_PATIENCE, PUSH_SECONDS, ask, deliver
from remem_gossip.memory_node import MemoryNode, open_memory
from remem_gossip.night import MEMORY_BUDGET, dial_peer
from remem_gossip.parts import Verdict
from remem_gossip.peers import Peer
from remem_gossip.reconcile import BadFrame
from remem_gossip.relay import Relay
from remem_gossip.signatures import Signed
from remem_gossip.spans import Span
from remem_server.answers import Descriptor, SizeLimits
from remem_server.database.engine import Database
from remem_server.errors import Busy, CommonsError, Internal, MethodRefused, NotAPeer, RouteUnknown, StoreUnavailable
from remem_server.gossip.spending import STRANGERS, STRANGERS_PART
from remem_server.opening.context import Commons
from remem_server.opening.description import DESCRIPTOR_PATH
from remem_server.settings import Settings
from remem_server.web.between import signed_by
from remem_server.web.bodies import read_body
from remem_server.web.problems import Refusal, problem_of
from remem_server.web.watching import Watch, note_code, seen_of
from remem_server.web.zipping import coding_for

_log: Final = logging.getLogger("remem_server")
_ANEW: Final = timedelta(minutes=1)
_BODY_SECONDS: Final = 60
_BODIES_OF_ONE: Final = 4
_WAITING_MOST: Final = 32
_BUSY_SECONDS: Final = 2
# All others wait as long for another process that writes.
_LOCKED_MILLISECONDS: Final = 2_000
_STRANGERS_BUDGET: Final = Budget(*(getattr(MEMORY_BUDGET, name) // STRANGERS_PART for name in Budget.__slots__))
_LOCKED: Final = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED})
# The lowest byte of a code of SQLite; the others say more of the same.
_CODE_BITS: Final = 0xFF
_KEEP_NOT: Final = {"Cache-Control": "no-store"}

_T = TypeVar("_T")
Opening = Callable[[], AbstractContextManager[tuple[Home, sqlite3.Connection]]]


@dataclass(frozen=True, slots=True)
class _Open:
    """A memory that is open.

    Attributes:
        home: its home.
        db: its database.
        node: what takes part in exchanges.
        since: when it was opened.
        state: what the database says that changes when another process writes.
    """

    home: Home
    db: sqlite3.Connection
    node: MemoryNode
    since: datetime
    state: int


class Host:
    """A memory that answers other nodes.

    Args:
        opening: opens the memory.
        clock: says what time it is.
        is_open: whether anyone may offer.
    """

    def __init__(self, opening: Opening, clock: Callable[[], datetime], *, is_open: bool) -> None:
        self.clock = clock
        self.is_open = is_open
        self._opening = opening
        self._random = SystemRandom()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="memory")
        self._waiting = 0
        self._stack = ExitStack()
        self._opened: _Open | None = None
        self._relay = Relay()
        self._news = threading.Lock()
        self._pusher = ThreadPoolExecutor(1, thread_name_prefix="push")
        self._life = Span()

    def open(self) -> None:
        """Open the memory now, so that whoever serves it knows that it can be used.

        Raises:
            RememError, OSError, sqlite3.Error: it cannot.
        """
        self._thread.submit(self._memory).result()

    async def run(self, work: Callable[[_Open], _T]) -> _T:
        """Do something with the memory, when its turn has come.

        Raises:
            Busy: too much waits already, or another process writes.
            RememError, OSError, sqlite3.Error: it cannot be used.
        """
        if self._waiting >= _WAITING_MOST:
            raise Busy(f"expected at most {_WAITING_MOST} requests to wait, got more", _BUSY_SECONDS)
        self._waiting += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, lambda: work(self._memory()))
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & _CODE_BITS not in _LOCKED:
                raise
            # Another process writes, and takes its time.
            raise Busy("expected a memory that nobody else changes, got one that is locked", _BUSY_SECONDS) from error
        finally:
            self._waiting -= 1

    def close(self) -> None:
        """Close the memory, if that was not done; a push that is under way breaks off."""
        if self._life.is_ended:
            return
        self._life.end()
        self._pusher.shutdown(cancel_futures=True)
        self._thread.submit(self._stack.close).result()
        self._thread.shutdown()

    # --- what the thread does ---

    def caller(self, signed: Signed | None, memory: _Open) -> str:
        """Return the account of whoever offers something.

        Raises:
            NotAPeer: nothing is taken of it.
        """
        if signed is not None:
            known = (peer.url for peer in book.known_peers(memory.db, self.clock()) if peer.key == signed.key.hex)
            if (url := next(known, None)) is not None:
                return url
        if self.is_open:
            return STRANGERS
        raise NotAPeer("expected a peer of this memory whose key it knows, got another")

    def take(self, account: str, body: bytes, memory: _Open) -> list[Verdict]:
        """Take in an offer."""
        now = self.clock()
        budget = _STRANGERS_BUDGET if account == STRANGERS else MEMORY_BUDGET
        spending = book.account(memory.db, account, budget, now)
        try:
            verdicts = answer_offer(memory.node, body, account, spending)
        finally:
            spending.settle()
        with self._news:
            self._relay.note(wire.read_offer(body), verdicts, account, now)
            is_news = len(self._relay) > 0
        if is_news:
            self._pusher.submit(self._push).add_done_callback(_tell_failure)
        return verdicts

    def _push(self) -> None:
        """Push on what came in as news."""
        now = self.clock()
        with self._opening() as (home, db), open_memory(home, db, now=now, random=self._random) as node:
            known = {peer.url: peer for peer in book.known_peers(db, now)}
            with self._news:
                push = self._relay.next([peer.standing for peer in known.values()], now, self._random)
            if push is None:
                return
            time = Span(PUSH_SECONDS, within=self._life)
            deliver(self._relay.steps(node, push), lambda url, one: self._ask(known[url], one, home, db, time), time)

    def _ask(self, peer: Peer, request: Asked, home: Home, db: sqlite3.Connection, time: Span) -> Answer | None:
        token = home.config().target(peer.url).token
        try:
            with closing(dial_peer(peer, home.signing_key(), token, time, PUSH_PATIENCE)) as dial:
                return ask(dial, request)
        except GossipError:
            if not time.is_ended:
                with transaction(db):
                    book.note_failed(db, peer.url, self.clock())
            return None

    def _memory(self) -> _Open:
        """Return the memory, opened anew where it may be another by now."""
        opened, now = self._opened, self.clock()
        if opened is not None and now - opened.since < _ANEW and opened.state == _state(opened.db):
            return opened
        self._opened = None
        self._stack.close()
        home, db = self._stack.enter_context(self._opening())
        db.execute(f"PRAGMA busy_timeout = {_LOCKED_MILLISECONDS}")
        node = self._stack.enter_context(open_memory(home, db, now=now, random=self._random))
        self._opened = _Open(home, db, node, now, _state(db))
        return self._opened


def memory_app(host: Host) -> Starlette:
    """Make the application of a memory that accepts exchanges."""

    @asynccontextmanager
    async def open_for_as_long(_app: Starlette) -> AsyncIterator[None]:
        try:
            yield
        finally:
            host.close()

    watch = Watch(_stand_in(host.clock))

    async def read(request: Request, most: int, bad: type[GossipError]) -> tuple[bytes, Signed | None]:
        signed = signed_by(request, host.clock())
        with watch.bodies.one(seen_of(request).address, _BODIES_OF_ONE):
            body = await read_body(request, most, _BODY_SECONDS, bad)
        if signed is not None:
            signed.check(body)
        return body, signed

    async def describe(_request: Request) -> Response:
        return JSONResponse(await host.run(partial(_description, host.is_open)))

    async def reconcile(request: Request) -> Response:
        body, _ = await read(request, wire.FRAME_MOST, BadFrame)
        answer = await host.run(lambda memory: answer_reconcile(memory.node, body))
        return Response(answer, 200, _KEEP_NOT, wire.OCTETS)

    async def fetch(request: Request) -> Response:
        body, _ = await read(request, wire.ASKED_BYTES, wire.BadBody)
        coding, headers = coding_for(request.headers.get("accept-encoding", ""))
        answer = await host.run(lambda memory: b"".join(coding(answer_fetch(memory.node, body))))
        return Response(answer, 200, {**_KEEP_NOT, **headers}, wire.LINES)

    async def offer(request: Request) -> Response:
        account = await host.run(partial(host.caller, signed_by(request, host.clock())))
        body, _ = await read(request, wire.OFFER_BYTES, wire.BadBody)
        verdicts = await host.run(partial(host.take, account, body))
        return Response(wire.write_verdicts(verdicts), 200, _KEEP_NOT, wire.JSON)

    routes = [Route(DESCRIPTOR_PATH, describe, methods=["GET"])]
    for path, answer in ((wire.RECONCILE, reconcile), (wire.FETCH, fetch), (wire.OFFER, offer)):
        routes.append(Route(path, answer, methods=["POST"]))
    app = Starlette(routes=routes, exception_handlers=_HANDLERS, lifespan=open_for_as_long)
    app.router.redirect_slashes = False
    app.state.watch = watch
    return app


def _stand_in(clock: Callable[[], datetime]) -> Commons:
    """Make what watches over requests believe in a commons: one with the usual limits, and an empty database."""
    nothing = create_engine("sqlite://")
    key = SigningKey.from_seed(bytes(32))
    return Commons(Settings.model_construct(), Database(nothing, nothing, {}), clock, key, ())


def _description(is_open: bool, memory: _Open) -> dict[str, Any]:
    """Describe a memory as a commons is described; it has no operators, and tells nobody of its peers."""
    return Descriptor(
        protocol=[RULES.version],
        software=f"remem/{version('remem')}",
        key=memory.home.signing_key().public.hex,
        operators=[],
        open=is_open,
        private=False,
        limits=SizeLimits(line_bytes=RULES.line_bytes, file_bytes=RULES.file_bytes, file_records=RULES.file_records),
        confirmations=RULES.confirmations,
        window_days=RULES.window.days,
        peers=[],
    ).model_dump()


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, (CommonsError, ProtocolError, GossipError))
    return _told(request, error)


async def _no_route(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    got = f"{request.method} {show(request.url.path)}"
    if error.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
        return _told(request, MethodRefused(f"expected a method of this route, got {got}"), error.headers)
    return _told(request, RouteUnknown(f"expected a route of this node, got {got}"))


async def _unusable(request: Request, error: Exception) -> Response:
    """Answer where the owner has to do something: the log says what."""
    _log.error("the memory cannot be used: %s", printable(str(error)))
    return _told(request, Internal("expected a memory that can be used, got one that cannot"))


async def _unavailable(request: Request, error: Exception) -> Response:
    """Answer where the disk or the database does not do what was asked."""
    _log.error("the memory cannot do what was asked: %s", printable(str(error)))
    return _told(request, StoreUnavailable("expected a memory that answers, got one that does not now"))


async def _failed(request: Request, _error: Exception) -> Response:
    return _told(request, Internal("expected an answer, got an error of this node"))


_HANDLERS: Final[dict[Any, Any]] = {
    **dict.fromkeys((CommonsError, ProtocolError, GossipError), _refused),
    **dict.fromkeys((sqlite3.Error, OSError), _unavailable),
    HTTPException: _no_route,
    RememError: _unusable,
    Exception: _failed,
}


def _told(request: Request, error: Refusal, headers: Mapping[str, str] | None = None) -> Response:
    note_code(request, error)
    return problem_of(error, headers)


def _tell_failure(push: Future[None]) -> None:
    # What does not go now travels by the exchanges of the night.
    if not push.cancelled() and (error := push.exception()) is not None:
        _log.warning("news was not pushed on: %s", printable(str(error)))


def _state(db: sqlite3.Connection) -> int:
    state: int = db.execute("PRAGMA data_version").fetchone()[0]
    return state
