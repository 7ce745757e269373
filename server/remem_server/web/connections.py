"""Connections that hold nothing for long: what a client may cost before its request is known.

- A request's head is bounded in bytes and in time, the time counted from the connection or from the head's first byte.
- So many connections are served. For one more, the one that has waited longest for its client makes room; where none
  waits, a few are told that the commons is busy, and the rest is closed unheard.
- An address has its share of them, unless it is a proxy's. What it opens beyond that is not read, and closed some
  seconds later: whoever is closed at once comes again at once.
- An address of which too many requests were refused is read a second later, so that it is told so as often as it has
  patience; and one of which far too many were is not read either, but closed.
- What is no HTTP/1.1, and who finds no room, is told so by a problem as any other, and ends the connection; it came to
  no route, so it has no line in the log.
- An answer that comes before the request's body was read ends the connection, so that the rest is never read.
- An answer that its client does not take in time ends the connection too. All that was not taken yet is bounded, and
  what one address has not taken to a half of that: where it is more, those end first of whom the most is waited for.
"""

from __future__ import annotations

import asyncio
import resource
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Final

from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from remem_server.errors import Busy, CommonsError, RequestForm
from remem_server.web.addresses import counted
from remem_server.web.problems import problem_of
from remem_server.web.watching import Watch

HEAD_BYTES: Final = 65_536
HEAD_SECONDS: Final = 20.0
# How long a client may take to take an answer, at a few kilobytes a second.
ANSWER_SECONDS: Final = 120.0
UNREAD_BYTES: Final = 67_108_864
EARLY_BYTES: Final = 16_777_216
CONNECTIONS_MOST: Final = 512

# Besides those that are served: together they stay below the open files that a process may have.
_TURNED_AWAY_MOST: Final = 128
_PARKED_MOST: Final = 2_048
_PARKED_SECONDS: Final = 3.0
_LATER_SECONDS: Final = 1.0
_OTHER_FILES: Final = 128
_BUSY_SECONDS: Final = 2
# A quarter for an address.
_SHARES: Final = 4
_CLOSE: Final = (b"connection", b"close")


@dataclass
class Connections:
    """The connections of a server.

    Attributes:
        watch: says who is heard.
        most: how many are served.
        head_seconds: how long a head may take to arrive.
        answer_seconds: how long an answer may take to be taken.
        unread_bytes: how much of all answers together may wait to be taken.
        made: all that there are.
        of: how many there are of each address.
        waiting: those that wait for their client, the one that has waited longest first.
        parked: those that are not read, until they are closed or admitted.
        early_bytes: how much of those was read all the same.
    """

    watch: Watch
    most: int = CONNECTIONS_MOST
    head_seconds: float = HEAD_SECONDS
    answer_seconds: float = ANSWER_SECONDS
    unread_bytes: int = UNREAD_BYTES
    made: set[_BoundedProtocol] = field(default_factory=set)
    of: Counter[str] = field(default_factory=Counter)
    waiting: dict[_BoundedProtocol, None] = field(default_factory=dict)
    parked: set[_BoundedProtocol] = field(default_factory=set)
    early_bytes: int = 0

    @property
    def parked_most(self) -> int:
        """How many may be parked, by the open files that this process may have."""
        files, _hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if files == resource.RLIM_INFINITY:
            return _PARKED_MOST
        return min(_PARKED_MOST, files - self.most - _TURNED_AWAY_MOST - _OTHER_FILES)

    def end_unread(self) -> None:
        """End those whose client has not taken an answer for too long, or of all that waits to be taken too much."""
        now = time.monotonic()
        for one in list(self.made):
            one.end_unread(now, self.answer_seconds)
        left = defaultdict(list)
        for one in self.made:
            if one.unread:
                left[one.address].append(one)
        for address, ones in left.items():
            if address is not None:
                _end_largest(ones, self.unread_bytes // 2)
        _end_largest(self.made, self.unread_bytes)

    def protocol(self) -> type[HttpToolsProtocol]:
        """Return the protocol of these connections."""

        class Bounded(_BoundedProtocol):
            shared = self

        return Bounded


def _end_largest(ones: Iterable[_BoundedProtocol], most: int) -> None:
    """End connections until no more than so many bytes wait to be taken from the others."""
    left = {one: one.unread for one in ones}
    total = sum(left.values())
    for one in sorted(left, key=left.__getitem__, reverse=True):
        if total <= most:
            break
        total -= left[one]
        one.end("unread")


class _BoundedProtocol(HttpToolsProtocol):
    """The web server's HTTP/1.1, where a client that takes too long or too much ends the connection."""

    shared: ClassVar[Connections]
    address: str | None = None
    _head_timer: asyncio.TimerHandle | None = None
    _cycles: Sequence[RequestResponseCycle] = ()
    _unread: tuple[int, float] | None = None
    _early = b""
    _read_later = False
    _in_head = True
    _head_bytes = 0
    _unparsed_bytes = 0
    _turns = 0
    _answers_due = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in the base
        super().connection_made(transport)
        self.shared.made.add(self)
        shared, peer = self.shared, self.client and self.client[0]
        address = None if peer is None or shared.watch.addresses.is_proxy(peer) else counted(peer)
        if address is not None and shared.watch.limits.refused(address) is not None:
            unheard = shared.watch.limits.unheard(address) is not None
            self._park("unheard", None if unheard else address)
        else:
            self._admit(address)

    def _admit(self, address: str | None) -> None:
        shared = self.shared
        if address is not None:
            if shared.of[address] >= max(1, shared.most // _SHARES):
                self._park("share")
                return
            shared.of[address] += 1
            self.address = address
        if len(self.connections) > shared.most and shared.waiting:
            next(iter(shared.waiting)).end("room")
        if len(self.connections) > shared.most + _TURNED_AWAY_MOST:
            self.end("many")
            return
        shared.waiting[self] = None
        self._watch_head()

    def _park(self, why: str, later: str | None = None) -> None:
        """Read nothing for a while, and then end the connection, or admit it for an address that is read later."""
        if len(self.shared.parked) >= self.shared.parked_most:
            self.end(why)
            return
        self.shared.parked.add(self)
        self.connections.discard(self)
        # The loop begins to read behind this call, whatever is said in it.
        self.loop.call_soon(self._stop_reading)
        if later is None:
            self._end_later(why)
        else:
            self._read_later = True
            self._head_timer = self.loop.call_later(_LATER_SECONDS, self._unpark, later)

    def _end_later(self, why: str) -> None:
        self._read_later = False
        self._head_timer = self.loop.call_later(_PARKED_SECONDS, self.end, why)

    def _keep(self, data: bytes) -> None:
        """Keep what came too early, if it will be read; where there is too much of it, it will not."""
        if not self._read_later:
            return
        if self.shared.early_bytes + len(data) <= EARLY_BYTES:
            self._early += data
            self.shared.early_bytes += len(data)
            return
        self._forget_head()
        self._end_later("unheard")

    def _take_early(self) -> bytes:
        early, self._early = self._early, b""
        self.shared.early_bytes -= len(early)
        return early

    def _unpark(self, address: str) -> None:
        self._head_timer = None
        self.shared.parked.discard(self)
        self.connections.add(self)
        self._admit(address)
        if self not in self.shared.parked and not self.transport.is_closing():
            self.transport.resume_reading()
            if early := self._take_early():
                self.data_received(early)

    def end(self, why: str) -> None:
        """End the connection, whatever is under way."""
        self.shared.watch.metrics.ended.labels(why).inc()
        self._forget()
        # At once, and not when the loop comes to it: it counts no more.
        self.connections.discard(self)
        self.transport.abort()

    def _forget(self) -> None:
        self._forget_head()
        self.shared.made.discard(self)
        self.shared.waiting.pop(self, None)
        self.shared.parked.discard(self)
        self._take_early()
        if self.address is not None:
            self.shared.of[self.address] -= 1
            if not self.shared.of[self.address]:
                del self.shared.of[self.address]
            self.address = None

    @property
    def unread(self) -> int:
        """How many bytes of answers wait to be taken."""
        return int(self.transport.get_write_buffer_size())

    def end_unread(self, now: float, seconds: float) -> None:
        """End the connection if what there is to read was not taken for so long."""
        if not self.unread:
            self._unread = None
        elif self._unread is None or self._unread[0] != self._turns:
            self._unread = (self._turns, now)
        elif now - self._unread[1] >= seconds:
            self.end("unread")

    def _stop_reading(self) -> None:
        if not self.transport.is_closing():
            self.transport.pause_reading()

    def data_received(self, data: bytes) -> None:
        if self in self.shared.parked:
            # The loop may have read once before it stopped.
            self._keep(data)
            return
        turns = self._turns
        super().data_received(data)
        if self._in_head and self._turns == turns:
            # All of it is of one head, and the parser keeps a line that has not ended to itself.
            self._unparsed_bytes += len(data)
            if self._unparsed_bytes > HEAD_BYTES:
                self.send_400_response("the head is too long")
        self._watch_head()

    def on_url(self, url: bytes) -> None:
        self._count(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._count(len(name) + len(value))
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._in_head = False
        self._turns += 1
        self._answers_due += 1
        self.shared.waiting.pop(self, None)
        is_full = len(self.connections) > self.shared.most
        self.app = self._told_busy if is_full else self.config.loaded_app
        super().on_headers_complete()
        self._cycles = [*(cycle for cycle in self._cycles if not cycle.response_complete), self.cycle]

    def on_message_complete(self) -> None:
        self._in_head, self._head_bytes, self._unparsed_bytes = True, 0, 0
        self._turns += 1
        super().on_message_complete()

    def on_response_complete(self) -> None:
        self._answers_due -= 1
        if not self._answers_due and self in self.shared.made:
            self.shared.waiting[self] = None
        super().on_response_complete()

    def _unsupported_upgrade_warning(self) -> None:
        """Say nothing: whoever asks for another protocol is answered in this one, as HTTP has it."""

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002  # the web server's own words
        if self.address is not None:
            self.shared.watch.refused(self.address, self.address)
        answer = self._told(RequestForm(f"expected HTTP/1.1 and a head of at most {HEAD_BYTES:,} bytes, got another"))
        head = [*self.server_state.default_headers, *answer.raw_headers]
        lines = [STATUS_LINE[answer.status_code], *(b"%s: %s\r\n" % pair for pair in head), b"\r\n"]
        self.transport.write(b"".join([*lines, answer.body]))
        self.transport.close()

    async def _told_busy(self, scope: Scope, receive: Receive, send: Send) -> None:
        most = self.shared.most
        answer = self._told(Busy(f"expected at most {most} connections, got more", _BUSY_SECONDS))
        await answer(scope, receive, send)

    def _told(self, error: CommonsError) -> Response:
        self.shared.watch.metrics.refused.labels(error.code).inc()
        return problem_of(error, {"Connection": "close"})

    def connection_lost(self, exc: Exception | None) -> None:
        self._forget()
        # The web server tells the last request alone, and an answer to one before it would find nobody to go to.
        for cycle in self._cycles:
            cycle.disconnected = cycle.disconnected or not cycle.response_complete
            cycle.message_event.set()
        super().connection_lost(exc)

    def _count(self, more: int) -> None:
        self._head_bytes += more
        if self._head_bytes > HEAD_BYTES:
            # The parser turns what its callbacks raise into a bad request.
            raise ValueError("the head is too long")

    def _watch_head(self) -> None:
        # While an answer is under way nothing is waited for; behind it, the web server's own limit for idle ones holds.
        if not self._in_head or self._answers_due:
            self._forget_head()
        elif self._head_timer is None:
            self._head_timer = self.loop.call_later(self.shared.head_seconds, self.timeout_keep_alive_handler)

    def _forget_head(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None


class CloseUnread:
    """Ends the connection with every answer that comes before the request's body was read."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, and watch how far its body is read."""
        if scope["type"] != "http" or not _has_body(scope["headers"]):
            await self._app(scope, receive, send)
            return
        unread = True

        async def receiving() -> Message:
            nonlocal unread
            message = await receive()
            unread = message.get("more_body", False)
            return message

        async def sending(message: Message) -> None:
            if unread and message["type"] == "http.response.start":
                message = {**message, "headers": [*message.get("headers", ()), _CLOSE]}
            await send(message)

        await self._app(scope, receiving, sending)


def _has_body(headers: Iterable[tuple[bytes, bytes]]) -> bool:
    return any(name == b"transfer-encoding" or (name == b"content-length" and value != b"0") for name, value in headers)
