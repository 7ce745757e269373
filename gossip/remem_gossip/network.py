"""Connections to one peer: to checked addresses only, and within bounds of time and bytes.

- A name is resolved once. Every address that it leads to is checked, and one that is refused refuses the name.
- What a request may take is counted here, where every byte passes: a head that trickles in, an answer without an end
  and a reader that does not read all meet the same bounds.
"""

from __future__ import annotations

import queue
import selectors
import socket
import ssl
import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Final, TypeAlias

import httpcore

from remem.commons.waiting import Patience
from remem.protocol.errors import show
from remem_gossip.addresses import Address, Allowed, check_addresses
from remem_gossip.failures import NameUnknown, NotReached, PeerFailed, TlsFailed, TooLong, TooSlow
from remem_gossip.spans import Span

Resolve: TypeAlias = Callable[[str, int], Sequence[str]]

_ADDRESSES_TRIED: Final = 4
# Heads, trailers, and the sizes between the pieces of a body.
_AROUND_BYTES: Final = 131_072
_PIECE: Final = 65_536
# A byte that comes alone costs as much work as thousands that come together.
_STEPS: Final = 1_024
_STEP_BYTES: Final = 128


class Bounds:
    """What is left of the time and the bytes of one request.

    Args:
        patience: how long to wait.
        time: what all requests have together.

    Attributes:
        patience: how long to wait.
    """

    def __init__(self, patience: Patience, time: Span) -> None:
        self.patience = patience
        self._time = self._request = time
        self._is_cut = self._is_last = False
        self._most = self._bytes = self._steps = 0

    def begin(self, most: int) -> None:
        """Begin a request whose answer has a body of so many bytes at most."""
        self._is_cut = not self._time.has_room_for(self.patience.whole)
        self._request = Span(self.patience.whole, within=self._time)
        # A body may come in small pieces, each with its size before it.
        self._most = self._bytes = 2 * most + _AROUND_BYTES
        self._steps = _STEPS + most // _STEP_BYTES

    def step(self, seconds: float) -> float:
        """Return how long a step may take that should take at most so long.

        Raises:
            TooSlow: there is no time left.
        """
        left = self._left_seconds()
        self._is_last = left <= seconds
        return min(seconds, left)

    def late(self, what: str, seconds: float) -> TooSlow:
        """Return what there is to say where the last step took longer than it may: what ended, it or the whole."""
        return self._over() if self._is_last else TooSlow(f"{what} within {seconds:g} seconds", "none")

    def count(self, came: int) -> None:
        """Count what came over the wire at once, or out of it as one piece of a body, which has no bytes then.

        Raises:
            TooSlow: it came too late.
            TooLong: that is too much, or came in too many pieces.
        """
        self._left_seconds()
        self._bytes -= came
        self._steps -= 1
        if self._bytes < 0:
            raise TooLong(f"at most {self._most} bytes of an answer, heads and all", "more")
        if self._steps < 0:
            raise TooLong("an answer in pieces of some size", "too many pieces")

    def _left_seconds(self) -> float:
        left = self._request.left
        if not left:
            raise self._over()
        return left

    def _over(self) -> TooSlow:
        if self._is_cut:
            return TooSlow(f"all that was asked to be answered within {round(self._time.seconds, 1):g} seconds", "less")
        return TooSlow(f"a whole answer within {self.patience.whole:g} seconds", "none")


class Network(httpcore.NetworkBackend):
    """Connections to one peer, at the addresses that were checked.

    Attributes:
        made: how many there were.
    """

    def __init__(self, allowed: Allowed, resolve: Resolve, bounds: Bounds) -> None:
        self.made = 0
        self._allowed = allowed
        self._resolve = resolve
        self._bounds = bounds
        self._addresses: list[Address] | None = None

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ARG002 - the bounds say how long
        local_address: str | None = None,  # noqa: ARG002 - none is ever asked for
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,  # noqa: ARG002 - nor any of these
    ) -> httpcore.NetworkStream:
        """Connect to the first checked address that takes it."""
        if self._addresses is None:
            self._addresses = check_addresses(self._found(host, port), self._allowed)
        failures = []
        for address in self._addresses[:_ADDRESSES_TRIED]:
            self.made += 1
            try:
                opened = socket.create_connection(
                    (str(address), port), self._bounds.step(self._bounds.patience.connect)
                )
            except OSError as error:
                failures.append(str(error) or "no connection")
                continue
            opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return _Stream(opened, self._bounds)
        raise NotReached(f"a connection to {host} at port {port}", show("; ".join(failures) or "no address", 160))

    def _found(self, host: str, port: int) -> Sequence[str]:
        """Resolve a name beside the caller: resolvers have no time-out that can be set."""
        box: queue.SimpleQueue[Sequence[str] | Exception] = queue.SimpleQueue()

        def look() -> None:
            try:
                box.put(self._resolve(host, port))
            except (OSError, ValueError) as error:
                box.put(error)

        threading.Thread(target=look, name="remem-resolve", daemon=True).start()
        try:
            found = box.get(timeout=self._bounds.step(self._bounds.patience.connect))
        except queue.Empty:
            raise self._bounds.late(f"the address of {host}", self._bounds.patience.connect) from None
        if isinstance(found, Exception) or not found:
            raise NameUnknown(f"an address of {host}", show(str(found) if found else "none", 120))
        return found


class _Stream(httpcore.NetworkStream):
    """A connection within bounds."""

    def __init__(self, opened: socket.socket, bounds: Bounds) -> None:
        self._socket = opened
        self._bounds = bounds

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ARG002 - the bounds say how long
        """Read what there is."""
        self._wait(self._bounds.patience.read)
        try:
            data = self._socket.recv(max_bytes)
        except TimeoutError:
            raise self._slow() from None
        except OSError as error:
            raise httpcore.ReadError(str(error)) from error
        self._bounds.count(len(data))
        return data

    def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ARG002 - the bounds say how long
        """Write all of it."""
        left = memoryview(buffer)
        while left:
            self._wait(self._bounds.patience.read)
            try:
                sent = self._socket.send(left[:_PIECE])
            except TimeoutError:
                raise self._slow() from None
            except OSError as error:
                raise httpcore.WriteError(str(error)) from error
            left = left[sent:]

    def close(self) -> None:
        """Close it."""
        with suppress(OSError):
            self._socket.close()

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ARG002 - the bounds say how long
    ) -> httpcore.NetworkStream:
        """Shake hands with whoever has a certificate for this name."""
        try:
            self._wait(self._bounds.patience.connect)
            return _Stream(ssl_context.wrap_socket(self._socket, server_hostname=server_hostname), self._bounds)
        except TimeoutError:
            self.close()
            raise self._bounds.late("TLS", self._bounds.patience.connect) from None
        except ssl.SSLCertVerificationError as error:
            self.close()
            raise TlsFailed(f"a certificate that is good for {server_hostname}", error.verify_message) from error
        except (OSError, ValueError) as error:
            self.close()
            raise TlsFailed(f"TLS with {server_hostname}", show(str(error), 120)) from error

    def get_extra_info(self, info: str) -> object:
        """Say whether the connection was closed, or spoken into, while it lay idle."""
        if info != "is_readable":
            return None
        with selectors.DefaultSelector() as selector:
            selector.register(self._socket, selectors.EVENT_READ)
            return bool(selector.select(0))

    def _wait(self, seconds: float) -> None:
        self._socket.settimeout(self._bounds.step(seconds))

    def _slow(self) -> PeerFailed:
        return self._bounds.late("the next step", self._bounds.patience.read)


def resolve_name(host: str, port: int) -> Sequence[str]:
    """Ask this machine's resolver for the addresses of a name."""
    return [str(found[4][0]) for found in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]
