"""Connections that hold nothing for long: what a client may cost before its request is known.

- A request's head is bounded in bytes and in time, the time counted from the connection or from the head's first byte.
- So many connections are served; a few more are told that the commons is busy, and the rest is closed unheard.
- An answer that comes before the request's body was read ends the connection, so that the rest is never read.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import ClassVar, Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

HEAD_BYTES: Final = 65_536
HEAD_SECONDS: Final = 20.0
CONNECTIONS_MOST: Final = 512

# Besides those that are served, so that together they stay below the usual 1,024 open files of a process.
_TURNED_AWAY_MOST: Final = 256
_CLOSE: Final = (b"connection", b"close")


class _BoundedProtocol(HttpToolsProtocol):
    """The web server's HTTP/1.1, where a head that is too long or does not come ends the connection."""

    head_seconds: ClassVar[float] = HEAD_SECONDS
    _head_timer: asyncio.TimerHandle | None = None
    _in_head = True
    _head_bytes = 0
    _unparsed_bytes = 0
    _turns = 0
    _answers_due = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in the base
        super().connection_made(transport)
        if self.limit_concurrency is not None and len(self.connections) > self.limit_concurrency + _TURNED_AWAY_MOST:
            transport.abort()
            return
        self._watch_head()

    def data_received(self, data: bytes) -> None:
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
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        self._in_head, self._head_bytes, self._unparsed_bytes = True, 0, 0
        self._turns += 1
        super().on_message_complete()

    def on_response_complete(self) -> None:
        self._answers_due -= 1
        super().on_response_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        self._forget_head()
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
            self._head_timer = self.loop.call_later(self.head_seconds, self.timeout_keep_alive_handler)

    def _forget_head(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None


def bounded_protocol(seconds: float) -> type[HttpToolsProtocol]:
    """Return the protocol of connections whose heads may take so many seconds."""

    class Bounded(_BoundedProtocol):
        head_seconds = seconds

    return Bounded


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
