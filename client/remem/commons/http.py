"""A commons that answers over HTTP: the one module that speaks it outward (PROTOCOL.md, section 11).

- Every answer is hostile until read: its bytes are counted while they come, compressed ones before and behind the
  decompression; the whole of an exchange has a time-out beside that of every step; no redirect is followed.
- Nothing of the surroundings decides where a request goes: no proxy, no password file, no certificate of the
  environment.
- The token goes to its own target and nowhere else, and no message or log ever shows it.
- An index is asked for what changed behind a bookmark, and a whole that did not change costs one 304.
- A commons that asks to come again is asked again, for a while (`waiting.py`).
- An export that a web server hands out is a commons too: its index is whole, and its files lie under `/commons/`, as
  those of a server do, or beside the index at the address itself.
"""

from __future__ import annotations

import ipaddress
import json
import re
import ssl
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

import httpx

from remem import __version__
from remem.commons.answers import leads_on, read_body, read_etag
from remem.commons.base import (
    INDEX_BYTES,
    INDEX_MOST,
    LISTED_MOST,
    BadAnswer,
    CommonsRefused,
    Descriptor,
    Entry,
    Listing,
    Published,
    Unreadables,
    read_descriptor,
    read_entries,
    read_json,
)
from remem.commons.failures import no_commons, no_connection, no_http, problem_of, refusal_hint
from remem.commons.waiting import Patience, Waits
from remem.errors import Unreachable, Usage
from remem.protocol import RULES, OriginFile, Version
from remem.protocol.errors import show

SMALL_ANSWER: Final = 65_536
PARALLEL: Final = 4
URL_MOST: Final = 2_048
PAGES_MOST: Final = 200
LISTING_BYTES: Final = 64 * INDEX_BYTES

_CURSOR: Final = re.compile(r"[0-9]{1,18}")
_CODE: Final = re.compile(r"[a-z0-9_]{1,64}")
_TOKEN: Final = re.compile(r"[\x21-\x7e]{1,512}")
_DESCRIPTOR: Final = "/.well-known/remem"
_FILES: Final = "/commons"
# Whoever only hands out files may say either of what it does not have.
_MISSING: Final = (httpx.codes.NOT_FOUND, httpx.codes.FORBIDDEN)
# Of whoever only hands out files, where something is to be published.
_NO_METHOD: Final = (httpx.codes.METHOD_NOT_ALLOWED, httpx.codes.NOT_IMPLEMENTED)
_OUTCOMES: Final = ("new", "newer", "unchanged", "equivocation")


@dataclass(frozen=True, slots=True)
class _Answer:
    status: int
    headers: httpx.Headers
    body: bytes


class HttpCommons:
    """A commons at a URL."""

    def __init__(
        self,
        target: str,
        token: str | None = None,
        patience: Patience | None = None,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        self.target = spell_url(target)
        self.warnings = _plain_text_warnings(self.target, token)
        self._patience = patience or Patience()
        self._sleep = sleep
        headers = {"User-Agent": f"remem/{__version__}", "Accept-Encoding": "gzip"}
        if token is not None:
            if not _TOKEN.fullmatch(token):
                raise Usage("expected a token of printable ASCII without spaces, got something else")
            headers["Authorization"] = f"Bearer {token}"
        self._client = httpx.Client(
            headers=headers,
            follow_redirects=False,
            trust_env=False,
            verify=_certificates(self.target),
            timeout=httpx.Timeout(self._patience.read, connect=self._patience.connect),
            limits=httpx.Limits(max_connections=PARALLEL, max_keepalive_connections=PARALLEL),
        )
        # Name resolution and a head that trickles in have no time-out of their own, so each exchange runs
        # beside the caller, who waits for so long and no longer.
        self._workers = ThreadPoolExecutor(PARALLEL, thread_name_prefix="remem-http")
        self._lost = False
        # Where the index and the files lie below the address.
        self._files = _FILES

    def describe(self) -> Descriptor | None:
        """Ask for the descriptor; None where the host has none, as one that only serves files.

        Raises:
            Unreachable: it did not answer, or not as a commons does.
            CommonsRefused: it answers, and refuses.
        """
        answer = self._ask("GET", _DESCRIPTOR)
        if answer.status in _MISSING:
            return None
        return read_descriptor(self._good(answer).body)

    def index(self, bookmark: str | None) -> Listing:
        """Ask for what changed behind the bookmark, page by page.

        Raises:
            Unreachable: it did not answer, or not as a commons does.
            CommonsRefused: it answers, and refuses.
        """
        etag, since = _read_bookmark(bookmark)
        answer = self._first_page(since, {"If-None-Match": etag} if etag else {})
        if answer.status == httpx.codes.NOT_MODIFIED and etag:
            return Listing((), bookmark, unchanged=True, whole=False)
        cursor = _cursor_of(self._good(answer))
        if since is not None and (cursor is None or cursor < since):
            # The commons lost what it knew, as behind a restored backup: its numbers start over.
            since = None
            answer = self._page(None, {})
            cursor = _cursor_of(self._good(answer))
        return self._pages(answer, since, cursor)

    def get(self, key: str, digest: str | None = None) -> bytes | None:  # noqa: ARG002 - one version a key
        """Fetch the one file that the commons holds of a key.

        Raises:
            Unreachable: it did not answer, or not as a commons does.
            CommonsRefused: it answers, and refuses.
        """
        answer = self._ask("GET", f"{self._files}/{key}.jsonl", most=RULES.file_bytes)
        return None if answer.status == httpx.codes.NOT_FOUND else self._good(answer).body

    def put(self, file: OriginFile) -> Published:
        """Send a file.

        Raises:
            Unreachable: it did not answer, or not as a commons does.
            CommonsRefused: it answers, and refuses; `older_file` or `equivocation` where its own is newer.
        """
        headers = {"Content-Type": "application/x-ndjson"}
        answer = self._ask("PUT", f"/commons/{file.key.hex}.jsonl", headers, file.data, most=INDEX_BYTES)
        if answer.status == httpx.codes.NOT_FOUND and self._is_node():
            raise no_commons(self.target, is_node=True)
        fields = read_json(self._good(answer).body, "what became of the file")
        if not isinstance(fields, Mapping) or fields.get("outcome") not in _OUTCOMES:
            raise BadAnswer("answer_form", f"expected one of {', '.join(_OUTCOMES)}, got {show(fields)}")
        skipped = fields.get("skipped")
        return Published(str(fields["outcome"]), len(skipped) if isinstance(skipped, list) else 0)

    def close(self) -> None:
        """Close the connections."""
        self._client.close()
        self._workers.shutdown(wait=False, cancel_futures=True)

    def _is_node(self) -> bool:
        """Tell whether whoever has nothing of a commons says all the same who it is."""
        return self._ask("GET", _DESCRIPTOR).status == httpx.codes.OK

    def _first_page(self, since: int | None, headers: Mapping[str, str]) -> _Answer:
        answer = self._page(since, headers)
        if answer.status not in _MISSING:
            return answer
        beside = self._ask("GET", "/index", headers, most=INDEX_MOST)
        is_index = beside.status == httpx.codes.OK and beside.body.lstrip()[:1] == b"["
        if is_index or beside.status == httpx.codes.NOT_MODIFIED:
            self._files = ""
            return beside
        if answer.status == httpx.codes.NOT_FOUND:
            raise no_commons(self.target, is_node=self._is_node())
        return answer

    def _page(self, since: int | None, headers: Mapping[str, str]) -> _Answer:
        path = f"{self._files}/index" if since is None else f"{self._files}/index?since={since}"
        return self._ask("GET", path, headers, most=INDEX_MOST)

    def _pages(self, answer: _Answer, since: int | None, cursor: int | None) -> Listing:
        etag = read_etag(answer.headers.get("ETag"))
        entries: list[Entry] = []
        strange = Unreadables()
        first, size, pages = since, 0, 0
        end = time.monotonic() + self._patience.listing
        while True:
            page = read_entries(answer.body, strange)
            entries += page
            size, pages = size + len(answer.body), pages + 1
            more = leads_on(answer.headers.get("Link", ""))
            # What lies behind a bound is for the next pull, so that this one comes to an end.
            enough = len(entries) + strange.count >= LISTED_MOST or size >= LISTING_BYTES or pages >= PAGES_MOST
            if not more or cursor is None or not page or enough or time.monotonic() >= end:
                break
            if since is not None and cursor <= since:
                raise BadAnswer("index_loop", f"expected a page behind cursor {since}, got one at {cursor}")
            since = cursor
            answer = self._good(self._page(since, {}))
            cursor = _cursor_of(answer)
        return Listing(
            tuple(entries),
            # Where the listing was cut there is more to ask for, so no ETag may answer that nothing changed.
            _write_bookmark(None if more else etag, cursor),
            whole=first is None and not more,
            more=more,
            unreadable=strange.listed(),
        )

    def _ask(
        self,
        method: str,
        path: str,
        headers: Mapping[str, str] | None = None,
        content: bytes | None = None,
        *,
        most: int = SMALL_ANSWER,
    ) -> _Answer:
        """Make one exchange, bounded in time and bytes."""
        if self._lost:
            raise Unreachable(f"expected an answer from {self.target}, got none before")

        def exchange() -> _Answer:
            request = self._client.build_request(method, self.target + path, headers=headers, content=content)
            with closing(self._send(request)) as response:
                good = response.status_code < httpx.codes.MULTIPLE_CHOICES
                coding = response.headers.get("Content-Encoding", "identity").lower()
                body = read_body(response.iter_raw(), coding, most if good else SMALL_ANSWER)
                return _Answer(response.status_code, response.headers, body)

        waits = Waits(self.target, self._patience)
        while True:
            answer = self._bounded(exchange)
            wait = waits.after(answer.status, answer.headers.get("Retry-After"), _code_of(answer))
            if wait is None:
                return answer
            self._sleep(wait)

    def _send(self, request: httpx.Request) -> httpx.Response:
        """Send a request, twice where there was no answer at all: a kept connection may just have been closed."""
        try:
            return self._client.send(request, stream=True)
        except (httpx.RemoteProtocolError, httpx.ReadError, httpx.WriteError):
            return self._client.send(request, stream=True)

    def _bounded(self, exchange: Callable[[], _Answer]) -> _Answer:
        try:
            return self._workers.submit(exchange).result(self._patience.whole)
        except httpx.TimeoutException as error:
            raise self._unreachable("no answer in time") from error
        except TimeoutError as error:
            self._lost = True
            self.close()
            raise self._unreachable(f"no end within {self._patience.whole:g} seconds") from error
        except (httpx.ProtocolError, httpx.DecodingError) as error:
            raise no_http(self.target, error) from error
        except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
            # A name that is no host's is found out by whoever resolves it, each in its own way.
            raise no_connection(self.target, error) from error
        except RuntimeError as error:
            # Another exchange ran out of time meanwhile, and everything was closed.
            if not self._lost:
                raise
            raise self._unreachable("none any more") from error

    def _unreachable(self, got: str) -> Unreachable:
        return Unreachable(f"expected an answer from {self.target}, got {got}")

    def _good(self, answer: _Answer) -> _Answer:
        """Pass an answer on that says yes.

        Raises:
            Unreachable: it did not answer as a commons does.
            CommonsRefused: it refuses.
        """
        if answer.status in (httpx.codes.OK, httpx.codes.CREATED):
            return answer
        if answer.status in _NO_METHOD and _code_of(answer) is None:
            said = f"expected a commons that takes files at {self.target}, got status {answer.status}"
            raise CommonsRefused(f"http_{answer.status}", said, "what is there may be an export, which is only read")
        if answer.status >= httpx.codes.INTERNAL_SERVER_ERROR:
            raise self._unreachable(f"status {answer.status}")
        if httpx.codes.is_redirect(answer.status):
            hint = "no redirect is followed; name the address that it leads to, if you trust that one"
            raise BadAnswer("redirect", f"expected an answer from {self.target}, got a redirect", hint)
        if answer.status < httpx.codes.BAD_REQUEST:
            raise BadAnswer("answer_form", f"expected an answer from {self.target}, got status {answer.status}")
        raise self._refusal(answer)

    def _refusal(self, answer: _Answer) -> CommonsRefused:
        fields = problem_of(answer.body)
        detail, held = fields.get("detail"), fields.get("held")
        code = _code_of(answer) or f"http_{answer.status}"
        hint = refusal_hint(self.target, code)
        said = detail if isinstance(detail, str) and detail else f"status {answer.status}"
        return CommonsRefused(code, f"{self.target} refuses: {said[:500]}", hint, _read_held(held))


def _code_of(answer: _Answer) -> str | None:
    """Return the code that a refusal carries; None where it has none, as of a server that is no commons."""
    if answer.status < httpx.codes.BAD_REQUEST:
        return None
    code = problem_of(answer.body).get("code")
    return code if isinstance(code, str) and _CODE.fullmatch(code) else None


def spell_url(text: str) -> str:
    """Spell the URL of a commons in one way.

    Raises:
        Usage: it is no URL of a commons.
    """
    if len(text) > URL_MOST:
        raise Usage(f"expected a URL of at most {URL_MOST} characters, got {len(text)}")
    try:
        parts = urlsplit(text)
        host, port = parts.hostname, parts.port
    except ValueError:
        raise Usage(f"expected a URL like https://commons.example, got {show(text)}") from None
    if parts.scheme not in ("https", "http") or not host or not text.isascii() or not text.isprintable():
        raise Usage(f"expected a URL like https://commons.example, got {show(text)}")
    if parts.username is not None or parts.password is not None or parts.query or parts.fragment:
        hint = "a token is kept by `remem login`, not by the address" if parts.username is not None else None
        raise Usage("expected a URL with no user, query or fragment", hint)
    if " " in text:
        raise Usage("expected a URL without spaces")
    where = f"[{host}]" if ":" in host else host
    numbered = "" if port in (None, 443 if parts.scheme == "https" else 80) else f":{port}"
    return f"{parts.scheme}://{where}{numbered}{parts.path.rstrip('/')}"


def _certificates(target: str) -> ssl.SSLContext | bool:
    """Return what a commons' certificate is verified by: the usual authorities, or none where none is spoken to."""
    # Reading the authorities takes longer than a whole pull with nothing new.
    return True if target.startswith("https:") else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


def _plain_text_warnings(target: str, token: str | None) -> tuple[str, ...]:
    parts = urlsplit(target)
    if parts.scheme == "https" or _is_loopback(parts.hostname or ""):
        return ()
    what = "whoever carries the bytes can read the token" if token else "whoever carries the bytes can read them"
    return (f"{target} is plain http: {what}",)


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _cursor_of(answer: _Answer) -> int | None:
    cursor = answer.headers.get("Remem-Cursor", "")
    return int(cursor) if _CURSOR.fullmatch(cursor) else None


def _read_bookmark(bookmark: str | None) -> tuple[str | None, int | None]:
    if bookmark is None:
        return None, None
    fields = json.loads(bookmark)
    return read_etag(fields["etag"]), fields["since"]


def _write_bookmark(etag: str | None, cursor: int | None) -> str | None:
    if etag is None and cursor is None:
        return None
    return json.dumps({"etag": etag, "since": cursor})


def _read_held(value: object) -> Version | None:
    if not isinstance(value, Mapping):
        return None
    seal, digest = value.get("seal"), value.get("digest")
    if not isinstance(digest, str) or (seal is not None and type(seal) is not int):
        return None
    return Version(seal, digest)
