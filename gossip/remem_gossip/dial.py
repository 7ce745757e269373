"""Asking a peer over HTTP: the one module of this package that speaks it (PROTOCOL.md, section 16).

- A name is resolved once for all that is asked through one `Dial`, and connections go to the addresses that were
  checked then (`network.py`), so a name that leads elsewhere a moment later changes nothing. The name in the
  certificate and in the Host header stays that of the URL.
- Each step has a time-out, so has the whole from the resolving to the last byte, and so has all that is asked through
  one `Dial`. Bytes are counted as they come over the wire, and again before and behind the decompression.
- No redirect is followed, and nothing of the surroundings is used: no proxy, no certificates, no password file.
- Each request is signed with the node's key; a token, where there is one, goes with it.
- Whatever goes wrong is `PeerFailed`. A refusal by the peer is an answer, and none of these.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import httpcore

from remem import __version__
from remem.commons.answers import read_body
from remem.commons.base import BadAnswer
from remem.commons.waiting import Patience
from remem.protocol import SigningKey
from remem.protocol.errors import show
from remem_gossip import signatures
from remem_gossip.addresses import Allowed, PeerUrl
from remem_gossip.failures import NoAnswer, NotReached, Redirected, TooLong
from remem_gossip.network import Bounds, Network, Resolve, resolve_name
from remem_gossip.spans import Span

SMALL_ANSWER: Final = 65_536
"""The longest body of an answer that refuses."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What a peer answered.

    Attributes:
        status: of HTTP, from 200 to 299 or 400 to 599.
        headers: by their names in lower case.
        body: the bytes, unpacked.
    """

    status: int
    headers: Mapping[str, str]
    body: bytes


class Dial:
    """A peer that can be asked, one request at a time.

    Args:
        url: where it is.
        key: this node's.
        clock: says what time it is, for the signatures.
        allowed: what the owner lets this peer be.
        token: what this peer gave the owner to publish with.
        patience: how long to wait for each answer.
        time: what all that is asked has together.
        resolve: finds the addresses of a name.
        certificates: what the peer's certificate is verified by, in place of the usual authorities.
    """

    def __init__(
        self,
        url: PeerUrl,
        key: SigningKey,
        clock: Callable[[], datetime],
        *,
        allowed: Allowed | None = None,
        token: str | None = None,
        patience: Patience | None = None,
        time: Span | None = None,
        resolve: Resolve | None = None,
        certificates: ssl.SSLContext | None = None,
    ) -> None:
        self.url = url
        self._key = key
        self._clock = clock
        self.time = time or Span()
        self._bounds = Bounds(patience or Patience(), self.time)
        self._network = Network(allowed or Allowed(), resolve or resolve_name, self._bounds)
        self._pool = httpcore.ConnectionPool(
            ssl_context=certificates or _authorities(url.scheme),
            max_connections=1,
            http2=False,
            network_backend=self._network,
        )
        self._headers = {
            "Host": url.authority,
            "User-Agent": f"remem/{__version__}",
            "Accept-Encoding": "gzip",
        }
        if token is not None:
            self._headers["Authorization"] = f"Bearer {token}"

    def ask(self, method: str, path: str, body: bytes = b"", content_type: str | None = None, *, most: int) -> Reply:
        """Ask the peer for something.

        Args:
            method: in upper case.
            path: below the peer's address, from its slash; without a query.
            body: what is sent.
            content_type: what that is.
            most: how many bytes the answer's body may have.

        Raises:
            PeerFailed: there is no answer, or none that a peer may give.
        """
        self._bounds.begin(most)
        whole = self.url.path + path
        signed = signatures.sign(self._key, method, self.url.authority, whole, body, self._clock())
        headers = {**self._headers, **signed}
        if content_type is not None:
            headers["Content-Type"] = content_type
        if body or method != "GET":
            headers["Content-Length"] = str(len(body))
        request = httpcore.Request(
            method,
            httpcore.URL(
                scheme=self.url.scheme.encode(), host=self.url.host.encode(), port=self.url.port, target=whole.encode()
            ),
            headers=list(headers.items()),
            content=body,
        )
        try:
            return _read(self._send(request), most, self._bounds)
        except httpcore.ProtocolError as error:
            raise NoAnswer("an answer of HTTP", show(str(error), 120)) from error
        except (httpcore.NetworkError, httpcore.TimeoutException) as error:
            raise NotReached("an answer", show(str(error) or "a broken connection", 120)) from error

    def close(self) -> None:
        """Close the connection."""
        self._pool.close()

    def _send(self, request: httpcore.Request) -> httpcore.Response:
        """Send a request; again where a kept connection may just have been closed at the other end."""
        before = self._network.made
        try:
            return self._pool.handle_request(request)
        except (httpcore.NetworkError, httpcore.RemoteProtocolError):
            if self._network.made != before:
                raise
            return self._pool.handle_request(request)


def _read(response: httpcore.Response, most: int, bounds: Bounds) -> Reply:
    """Read an answer to its end, and close it."""
    try:
        if not 200 <= response.status < 600:
            raise NoAnswer("a status from 200 to 599", str(response.status))
        if 300 <= response.status < 400:
            raise Redirected("an answer", f"a redirect, status {response.status}")
        headers = _join((name.decode("latin-1"), value.decode("latin-1")) for name, value in response.headers)
        if response.status >= 400:
            most = min(most, SMALL_ANSWER)
        coding = headers.get("content-encoding", "identity").lower()
        try:
            body = read_body(_pieces(response, bounds), coding, most)
        except BadAnswer as error:
            if error.code == "answer_size":
                raise TooLong(f"a body of at most {most} bytes", "more") from error
            raise NoAnswer.saying(error.message) from error
        return Reply(response.status, headers, body)
    finally:
        response.close()


def _pieces(response: httpcore.Response, bounds: Bounds) -> Iterator[bytes]:
    for piece in response.iter_stream():
        bounds.count(0)
        yield piece


def _join(lines: Iterable[tuple[str, str]]) -> Mapping[str, str]:
    headers: dict[str, str] = {}
    for cased, value in lines:
        name = cased.lower()
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    return headers


def _authorities(scheme: str) -> ssl.SSLContext:
    """Return the usual authorities; none where none is spoken to, since reading them takes long."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if scheme == "https":
        # Beside httpx, which brings it. Not the library's own context, which the surroundings may add to.
        import certifi

        context.load_verify_locations(certifi.where())
    return context
