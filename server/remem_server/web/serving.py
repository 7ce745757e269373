"""Running a commons: the socket, the web server, and an orderly end."""

from __future__ import annotations

import ipaddress
import resource
import signal
import socket
import sys
from collections.abc import Callable
from types import FrameType
from typing import Final

import uvicorn
from starlette.applications import Starlette

from remem.errors import RememError
from remem_server.web.connections import ANSWER_SECONDS, CONNECTIONS_MOST, HEAD_SECONDS, CloseUnread, Connections
from remem_server.web.logs import Log
from remem_server.web.watching import Watching

_BACKLOG: Final = 1_024
_SEND_BYTES: Final = 262_144
# Less than whoever asked for the end waits before it kills: 30 seconds in Kubernetes, 90 in systemd.
_GRACE_SECONDS: Final = 25
_IDLE_SECONDS: Final = 5
_LOOK_SECONDS: Final = 2
# How long a thread that computes keeps the others waiting. By default it is ten times as long, and then a reader waits
# several times that for as long as a file is verified.
_SWITCH_SECONDS: Final = 0.0005
_FILES: Final = 4_096

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
    # What the system keeps for clients that take nothing counts as ours too.
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BYTES)
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
    app: Starlette,
    *,
    log: Log | None = None,
    head_seconds: float = HEAD_SECONDS,
    answer_seconds: float = ANSWER_SECONDS,
    connections: int = CONNECTIONS_MOST,
) -> uvicorn.Server:
    """Make the web server of a commons.

    Args:
        app: the application.
        log: where the lines of requests go, if anywhere.
        head_seconds: how long the head of a request may take to arrive.
        answer_seconds: how long an answer may take to be taken.
        connections: how many are served at once; others are told to come later.
    """
    watch = app.state.watch
    shared = Connections(watch, connections, head_seconds, answer_seconds)

    async def look() -> None:
        shared.end_unread()

    config = uvicorn.Config(
        CloseUnread(Watching(app, watch, log)),
        http=shared.protocol(),
        timeout_keep_alive=_IDLE_SECONDS,
        log_level="warning",
        # Both are ours: `logs.py` says where what libraries tell goes, and every request has a line of its own.
        log_config=None,
        access_log=False,
        server_header=False,
        # Who speaks for whom is ours too (`addresses.py`).
        proxy_headers=False,
        headers=[("X-Content-Type-Options", "nosniff")],
        timeout_graceful_shutdown=_GRACE_SECONDS,
        callback_notify=look,
        timeout_notify=_LOOK_SECONDS,
        ws="none",
    )
    return uvicorn.Server(config)


def _raise_files() -> None:
    """Take as many open files as there is use for, where this process may."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _FILES if hard == resource.RLIM_INFINITY else min(_FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def run(server: uvicorn.Server, listening: socket.socket, announce: Callable[[], None]) -> None:
    """Serve until SIGINT or SIGTERM, then finish what is under way.

    Args:
        server: the web server.
        listening: the socket to serve on.
        announce: says that the commons is there; whoever hears it may end the commons at once.
    """

    def stop(_signal: int, _frame: FrameType | None) -> None:
        server.should_exit = True

    sys.setswitchinterval(_SWITCH_SECONDS)
    _raise_files()
    # The web server raises the signal that ended it once more when it is done; that is not a failure here.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop)
    announce()
    server.run(sockets=[listening])
