"""Running a commons: the socket, the web server, and an orderly end."""

from __future__ import annotations

import ipaddress
import signal
import socket
from collections.abc import Callable
from types import FrameType
from typing import Final

import uvicorn
from fastapi import FastAPI

from remem.errors import RememError
from remem_server.connections import CONNECTIONS_MOST, HEAD_SECONDS, CloseUnread, bounded_protocol

_BACKLOG: Final = 1_024
_GRACE_SECONDS: Final = 10
_IDLE_SECONDS: Final = 5

# Stands for a name of this machine, which nobody but its operator knows.
_THIS_HOST: Final = "<this host>"


def listen(host: str, port: int, *, or_any: bool) -> socket.socket:
    """Open the socket to serve on.

    Args:
        host: a name or an address of this machine.
        port: the port; 0 takes a free one.
        or_any: whether a free port will do where this one is taken.

    Raises:
        RememError: the address cannot be listened on.
    """
    try:
        family, kind, protocol, _name, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except OSError as error:
        raise RememError(f"expected an address of this machine, got {host}: {_why(error)}") from error
    opened = socket.socket(family, kind, protocol)
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        try:
            opened.bind(address)
        except OSError:
            if not or_any:
                raise
            opened.bind((address[0], 0, *address[2:]))
        opened.listen(_BACKLOG)
    except OSError as error:
        opened.close()
        hint = "name another with --port, or take a free one with --port 0"
        raise RememError(f"expected to listen on {host} port {port}, got {_why(error)}", hint) from error
    return opened


def url_of(listening: socket.socket) -> str:
    """Return the address that a socket is reached at from this machine."""
    host, port = listening.getsockname()[:2]
    if ipaddress.ip_address(host).is_unspecified:
        host = "::1" if ":" in host else "127.0.0.1"
    return _url(host, port)


def url_for_others(listening: socket.socket) -> str | None:
    """Return the address that other machines reach a socket at; None where none does."""
    host, port = listening.getsockname()[:2]
    address = ipaddress.ip_address(host)
    if address.is_loopback:
        return None
    return _url(_THIS_HOST if address.is_unspecified else host, port)


def _url(host: str, port: int) -> str:
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _why(error: OSError) -> str:
    return (error.strerror or str(error)).lower()


def make_server(
    app: FastAPI, *, head_seconds: float = HEAD_SECONDS, connections: int = CONNECTIONS_MOST
) -> uvicorn.Server:
    """Make the web server of a commons.

    Args:
        app: the application.
        head_seconds: how long the head of a request may take to arrive.
        connections: how many are served at once; others are told to come later.
    """
    config = uvicorn.Config(
        CloseUnread(app),
        http=bounded_protocol(head_seconds),
        limit_concurrency=connections,
        timeout_keep_alive=_IDLE_SECONDS,
        log_level="warning",
        # Who reads what is nobody's business, and a log of it would be a list of addresses.
        access_log=False,
        server_header=False,
        # Nothing here depends on the reader's address or on the scheme.
        proxy_headers=False,
        headers=[("X-Content-Type-Options", "nosniff")],
        timeout_graceful_shutdown=_GRACE_SECONDS,
        ws="none",
    )
    return uvicorn.Server(config)


def run(server: uvicorn.Server, listening: socket.socket, announce: Callable[[], None]) -> None:
    """Serve until SIGINT or SIGTERM, then finish what is under way.

    Args:
        server: the web server.
        listening: the socket to serve on.
        announce: says that the commons is there; whoever hears it may end the commons at once.
    """

    def stop(_signal: int, _frame: FrameType | None) -> None:
        server.should_exit = True

    # The web server raises the signal that ended it once more when it is done; that is not a failure here.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop)
    announce()
    server.run(sockets=[listening])
