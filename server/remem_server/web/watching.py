"""What stands around the application: who may ask, what is counted, what is logged.

Every request goes through `Watching`: it is refused where its address asked for too much, has an id, and ends as a line
of the log and in the metrics. A token is looked at here only where the address alone would be refused; where a file
comes with one, its route looks at it, and counts the file.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Final, cast

from anyio import CapacityLimiter, to_thread
from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from remem_gossip.meeting import Met
from remem_server.database.engine import DATABASE_ERRORS, is_unavailable
from remem_server.errors import CommonsError, QuerySize, TokenError, TooManyRequests
from remem_server.opening.context import Commons
from remem_server.web.addresses import Addresses
from remem_server.web.asking import secret_of
from remem_server.web.bearers import bearer_of
from remem_server.web.limits import (
    OFFERS_MOST,
    PUBLISH_MUCH,
    QUERY_BYTES,
    QUERY_FIELDS,
    Bodies,
    Limits,
    Verifying,
    check_query,
    token_name,
)
from remem_server.web.logs import Log
from remem_server.web.metrics import Metrics
from remem_server.web.problems import Refusal, problem_of
from remem_server.web.turns import Turn, Turns

_log: Final = logging.getLogger("remem_server")
_SEEN: Final = "remem.seen"
_NO_ROUTE: Final = "none"
_ID_BYTES: Final = 8
_LISTS: Final = frozenset({"/commons/index", "/commons/lessons"})
_LESSON: Final = "/commons/lessons/"
_TOKENS_AT_ONCE: Final = 4
_QUESTION_THREADS: Final = 1
_QUESTIONS_WAITING: Final = 32
# What is wrong with a request, and cost this commons more than it cost who sent it.
_REFUSALS: Final = frozenset({400, 401, 403, 405, 408, 413, 414, 415, 422, 429})
# A question of a wrong form costs nothing, and any web page makes whoever opens it ask one.
_FREE: Final = frozenset({("GET", 422), ("HEAD", 422)})
# Where the operator may want to know who it was.
_NAMED: Final = frozenset({401, 403, 429})
_CLOSE: Final = {"Connection": "close"}


@dataclass(slots=True)
class Seen:
    """What is known of a request by now.

    Attributes:
        id: its own name.
        address: what address it counts for.
        who: who takes turns with it: the address, or the token where the address asks for much.
        turn: its turn, where it has one.
        status: of its answer; 0 before there is one.
        code: of the problem that it was refused by.
        came: how many bytes of a body came.
        went: how many went.
    """

    id: str
    address: str
    who: str
    turn: Turn | None = None
    status: int = 0
    code: str | None = None
    came: int = 0
    went: int = 0

    def end_turn(self) -> None:
        """End its turn, if it has one."""
        if self.turn is not None:
            self.turn.end()
            self.turn = None


class Watch:
    """What all requests of a server share.

    Attributes:
        addresses: whose a request is.
        limits: what an address or a token may do.
        bodies: the bodies that arrive.
        offers: the offers of other nodes that arrive, which are longer.
        accounts: what keeps two offers from spending the same.
        turns: the turns of those that ask for much.
        tokens: the threads that look at tokens, so that none is kept from those who read without one.
        verifying: the threads that verify.
        questions: those that answer what other nodes ask.
        metrics: what is measured.
    """

    def __init__(self, commons: Commons) -> None:
        self._commons = commons
        settings = commons.settings
        self.addresses = Addresses(settings.proxies)
        self.limits = Limits(settings, commons.clock, commons.database)
        self.bodies = Bodies()
        self.offers = Bodies(OFFERS_MOST)
        self.accounts: dict[str, asyncio.Lock] = {}
        self.turns = Turns()
        self.tokens = CapacityLimiter(_TOKENS_AT_ONCE)
        self.verifying = Verifying(settings.verify_threads, settings.verify_queue)
        self.questions = Verifying(_QUESTION_THREADS, _QUESTIONS_WAITING)
        self.metrics = Metrics(commons, lambda: self.verifying.waiting)

    async def bearer(self, secret: str | None) -> str | None:
        """Return what the good token is counted as that a request shows; None where it shows none."""
        if secret is None:
            return None
        try:
            token = await to_thread.run_sync(bearer_of, self._commons, secret, limiter=self.tokens)
        except TokenError:
            return None
        except DATABASE_ERRORS as error:
            if not is_unavailable(error):
                raise
            return None
        return token_name(token.id)

    def exchanged(self, met: Met) -> None:
        """Count an exchange with a peer, and tell the operator how it ended."""
        report, ended = met.report, met.code or "ok"
        self.metrics.exchanges.labels(ended).inc()
        for outcome, number in report.taken.items():
            self.metrics.gossiped.labels("exchange", outcome).inc(number)
        self.metrics.gossiped.labels("exchange", "refused").inc(sum(report.refused.values()))
        said = f"{report.taken.get('new', 0)} new, {report.taken.get('newer', 0)} newer, {report.stand_there} there"
        if met.code is None:
            _log.info("exchange with %s: %s", met.peer, said)
        else:
            _log.warning("exchange with %s broke off: %s: %s; until then %s", met.peer, ended, met.detail, said)

    def refused(self, address: str, who: str) -> None:
        """Count a request that was refused, and tell the operator where it was one too many.

        Args:
            address: the address that it came from.
            who: who takes turns with it.
        """
        for one in {address, who}:
            self.limits.note_much(one)
        if self.limits.note_refusal(address):
            _log.warning("%s is not heard for a minute: too many of its requests were refused", address)


def watch_of(request: HTTPConnection) -> Watch:
    """Return what watches over the commons that a request came to."""
    return cast("Watch", request.app.state.watch)


def seen_of(request: HTTPConnection) -> Seen:
    """Return what is known of a request."""
    return cast("Seen", request.scope[_SEEN])


def note_code(request: HTTPConnection, error: Refusal) -> None:
    """Note why a request is refused."""
    seen_of(request).code = error.code


class Watching:
    """Lets requests in, and tells how they ended.

    Args:
        app: the application.
        watch: what its requests share.
        log: where their lines go, if anywhere.
    """

    def __init__(self, app: ASGIApp, watch: Watch, log: Log | None) -> None:
        self._app = app
        self._watch = watch
        self._log = log

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, unless it is refused, and watch its answer."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = time.perf_counter()
        client = scope["client"]
        address = self._watch.addresses.of(client and client[0], scope["headers"])
        seen = Seen(secrets.token_hex(_ID_BYTES), address, address)
        scope[_SEEN] = seen
        named = (b"x-request-id", seen.id.encode())

        async def receiving() -> Message:
            with nullcontext() if seen.turn is None else seen.turn.body():
                message = await receive()
            seen.came += len(message.get("body", b""))
            return message

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                # How long its reader takes is another matter.
                seen.end_turn()
                seen.status = int(message["status"])
                message = {**message, "headers": [*message.get("headers", ()), named]}
            else:
                seen.went += len(message.get("body", b""))
            await send(message)

        try:
            refusal = await self._refusal(scope, seen)
            if refusal is None:
                await self._app(scope, receiving, sending)
            else:
                seen.code = refusal.code
                heard = self._watch.limits.refused(seen.address) is None
                await problem_of(refusal, {} if heard else _CLOSE)(scope, receive, sending)
        finally:
            seen.end_turn()
            self._ended(scope, seen, time.perf_counter() - started)

    async def _refusal(self, scope: Scope, seen: Seen) -> CommonsError | None:
        """Say why a request is not even looked at; None where it is, once it has its turn."""
        limits = self._watch.limits
        unheard = limits.unheard(seen.address)
        if unheard is not None:
            return _refused_too_often(unheard)
        secret = secret_of(HTTPConnection(scope))
        try:
            await self._take_turn(seen, secret)
            if not check_query(scope["query_string"]):
                most = f"{QUERY_BYTES} bytes and {QUERY_FIELDS} fields"
                return QuerySize(f"expected a query of at most {most}, got a longer one")
            if scope["method"] == "PUT":
                await self._let_publish(seen.address, secret)
            else:
                await self._let_read(seen.address, secret)
        except TooManyRequests as error:
            return error
        if _is_list(scope["path"]):
            limits.note_much(seen.who)
        return None

    async def _take_turn(self, seen: Seen, secret: str | None) -> None:
        """Let whoever asks for much wait for its turn."""
        watch, limits = self._watch, self._watch.limits
        if limits.asks_for_much(seen.address):
            seen.who = await watch.bearer(secret) or seen.address
        if limits.asks_for_much(seen.who):
            seen.turn = await watch.turns.take(seen.who)
        else:
            watch.turns.note_little(seen.who)

    async def _let_publish(self, address: str, secret: str | None) -> None:
        limits = self._watch.limits
        # The route refuses a token that is not good.
        if secret is None:
            if (seconds := limits.refused(address)) is not None:
                raise _refused_too_often(seconds)
            limits.note_much(address, PUBLISH_MUCH)
            await limits.publish(address)

    async def _let_read(self, address: str, secret: str | None) -> None:
        limits = self._watch.limits
        try:
            if (seconds := limits.refused(address)) is not None:
                raise _refused_too_often(seconds)
            await limits.read(address)
        except TooManyRequests:
            token = await self._watch.bearer(secret)
            if token is None:
                raise
            await limits.read(token)

    def _ended(self, scope: Scope, seen: Seen, seconds: float) -> None:
        watch, method = self._watch, scope["method"]
        route = getattr(scope.get("route"), "path", _NO_ROUTE)
        watch.metrics.answered(route, method, seen.status, seconds)
        if seen.code is not None:
            watch.metrics.refused.labels(seen.code).inc()
        if seen.status in _REFUSALS and (method, seen.status) not in _FREE:
            watch.refused(seen.address, seen.who)
        if self._log is not None:
            self._log.request(
                id=seen.id,
                method=method,
                route=route,
                status=seen.status,
                code=seen.code,
                ms=round(seconds * 1_000, 1),
                bytes_in=seen.came,
                bytes_out=seen.went,
                address=seen.address if seen.status in _NAMED else None,
            )


def _is_list(path: str) -> bool:
    return path in _LISTS or path.startswith(_LESSON)


def _refused_too_often(seconds: float) -> TooManyRequests:
    return TooManyRequests("expected fewer requests that are refused, got too many from here", seconds)
