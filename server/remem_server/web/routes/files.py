"""`/commons/<name>.jsonl`: a file, by its key or its origin (PROTOCOL.md, section 11).

A body is counted as it comes in, and what is wrong with a request is said before its body is read as far as
that can be known. Reading a file costs one row where the reader has it already.
"""

from __future__ import annotations

import gzip
import re
from functools import partial
from typing import Annotated, Any, Final

from anyio import to_thread
from fastapi import APIRouter, Path, Request, Security
from fastapi.security import HTTPBearer
from starlette.responses import Response

from remem.protocol import RULES, ProtocolError, Verdict
from remem.protocol.errors import FileSize, show
from remem_server import errors
from remem_server.answers import Published, Skipped
from remem_server.files import store, tokens
from remem_server.files.accept import Accepted, accept_file
from remem_server.opening.context import Commons
from remem_server.web.asking import commons_of, secret_of
from remem_server.web.bodies import read_body
from remem_server.web.limits import BODIES_OF_A_TOKEN, BODIES_OF_AN_ADDRESS, token_name
from remem_server.web.problems import refusals
from remem_server.web.watching import seen_of, watch_of
from remem_server.web.zipping import LEVEL, accepts_gzip

SUFFIX: Final = ".jsonl"
PATH: Final = f"/commons/{{name}}{SUFFIX}"
MEDIA_TYPE: Final = "application/x-ndjson"

_NAME: Final = re.compile(r"[0-9a-f]{64}|[0-9a-f]{16}")
# More than any reader has files of one name; a longer condition is not looked into.
_CONDITION_CHARACTERS: Final = 8_192
# Far above any length that is allowed, and far below what `int` refuses.

Name = Annotated[str, Path(description="A key (64 hex digits) or an origin (16).")]

router: Final = APIRouter(tags=["files"])


# --- publishing ---


@router.put(
    PATH,
    operation_id="publish",
    summary="Publish a file",
    response_model=Published,
    responses={
        200: {"description": "The file stands; it replaced an older one, or stood already."},
        201: {"description": "The file stands; it is the first of its key.", "model": Published},
        **refusals(
            errors.BodyIncomplete,
            errors.TokenError,
            errors.TokenBound,
            errors.AdminToken,
            errors.Blocked,
            errors.NameForm,
            errors.BodyTimeout,
            errors.Superseded,
            errors.CompressedBody,
            errors.NameMismatch,
            errors.TooManyKeys,
            errors.Busy,
            ProtocolError,
        ),
    },
    openapi_extra={
        "requestBody": {
            "required": True,
            "description": f"The whole file, at most {RULES.file_bytes:,} bytes, in no content coding.",
            "content": {MEDIA_TYPE: {"schema": {"type": "string", "format": "binary"}}},
        }
    },
    dependencies=[
        Security(HTTPBearer(auto_error=False, description="A token of this commons; not needed where it is open."))
    ],
)
async def publish(request: Request, name: Name) -> Response:
    """Replace the file of a key, if this one is newer. Nothing is stored unless all of it is accepted."""
    commons, secret = commons_of(request), secret_of(request)
    watch, address = watch_of(request), seen_of(request).address
    _check_name(name)
    watch.verifying.check()
    token_needed = not commons.settings.open
    check = partial(_check_sender, commons, secret, name, token_needed=token_needed)
    token = await to_thread.run_sync(check, limiter=watch.tokens)
    sender, at_once = address, BODIES_OF_AN_ADDRESS
    if token is not None:
        sender, at_once = token_name(token.id), BODIES_OF_A_TOKEN
        await watch.limits.publish(sender)
    with watch.bodies.one(sender, at_once):
        try:
            data = await read_body(request, RULES.file_bytes, commons.settings.body_seconds, FileSize)
        finally:
            await watch.limits.came(sender, seen_of(request).came)
    await watch.limits.verify(sender, data.count(b"\n"))

    def accept_it() -> Accepted:
        with watch.metrics.verification.time():
            return accept_file(
                commons.engine,
                data,
                name=name,
                secret=secret,
                token_needed=token_needed,
                now=commons.clock(),
                when_new=partial(watch.limits.take_key, address) if token is None else None,
            )

    accepted = await watch.verifying.run(accept_it)
    watch.metrics.accepted.labels(accepted.verdict.value).inc()
    request.app.state.gossiping.published(accepted.file, accepted.verdict)
    return _answer(accepted)


def _check_name(name: str) -> None:
    if not _NAME.fullmatch(name):
        raise errors.NameForm(f"expected a key of 64 or an origin of 16 lower-case hex digits, got {show(name)}")


def _check_sender(commons: Commons, secret: str | None, name: str, *, token_needed: bool) -> tokens.Token | None:
    """Return the token of a request that may go on, None where it has none and needs none."""
    token = None
    with commons.engine.connect() as connection:
        if token_needed or secret is not None:
            token = tokens.check(connection, secret, commons.clock())
            tokens.claim(token, name)
        store.refuse_blocked(connection, name)
    return token


def _answer(accepted: Accepted) -> Response:
    verdict, file = accepted.verdict, accepted.file
    if verdict is Verdict.OLDER:
        raise errors.OlderFile(
            f"expected a seal above {accepted.stands.seal}, got {file.version.seal or 'none'}", accepted.stands
        )
    if verdict is Verdict.EQUIVOCATION_LEFT:
        raise errors.Equivocation(
            f"expected a new seal for new contents, got {accepted.stands.seal} again", accepted.stands
        )
    published = Published(
        outcome="equivocation" if verdict.equivocation else verdict.value,
        key=file.key.hex,
        origin=file.key.origin,
        seal=file.version.seal,
        digest=file.digest,
        records=len(file.lines),
        skipped=[Skipped(**skipped._asdict()) for skipped in accepted.skipped],
    )
    headers = {"ETag": _etag(file.digest, zipped=False), "Cache-Control": "no-store"}
    status = 201 if verdict is Verdict.NEW else 200
    return Response(published.model_dump_json(), status, headers, "application/json")


# --- reading ---


_READ: Final[dict[int | str, dict[str, Any]]] = {
    200: {
        "description": "The bytes of the file. The ETag is the file's digest, one for each content coding.",
        "content": {MEDIA_TYPE: {"schema": {"type": "string", "format": "binary"}}},
    },
    304: {"description": "The reader has this file."},
    **refusals(errors.TokenError, errors.NameForm, errors.FileUnknown, errors.OriginCollision, errors.Blocked),
    # Without it, the framework would document an answer of its own for a name of another form.
    "4XX": {"description": "Any other mistake of the request."},
}


@router.head(PATH, operation_id="file_head", summary="Ask which file stands", response_class=Response, responses=_READ)
@router.get(PATH, operation_id="file", summary="Read a file", response_class=Response, responses=_READ)
def read(request: Request, name: Name) -> Response:
    """Serve the file of a key byte for byte as it was published."""
    commons = commons_of(request)
    _check_name(name)
    with commons.reads.connect() as connection:
        found = store.find(connection, name)
        if found is None or not found.held:
            store.refuse_blocked(connection, name if found is None else found.key)
            raise errors.FileUnknown(f"expected the name of a file that is held, got {name}")
        zipped = accepts_gzip(request.headers.get("accept-encoding", ""))
        etag = _etag(found.digest, zipped=zipped)
        headers = {"ETag": etag, "Vary": "Accept-Encoding", "Cache-Control": commons.revalidate}
        if matches(request.headers.get("if-none-match"), etag):
            return Response(None, 304, headers)
        if request.method == "HEAD":
            return _head(found.size, headers, zipped=zipped)
        data = store.data_of(connection, found.key)
    if zipped:
        data = gzip.compress(data, LEVEL, mtime=0)
        headers["Content-Encoding"] = "gzip"
    return Response(data, 200, headers, MEDIA_TYPE)


def _head(size: int, headers: dict[str, str], *, zipped: bool) -> Response:
    # How long the compressed bytes are is not known without making them.
    more = {"Content-Encoding": "gzip"} if zipped else {"Content-Length": str(size)}
    response = Response(None, 200, {**headers, **more}, MEDIA_TYPE)
    if zipped:
        del response.headers["Content-Length"]
    return response


def _etag(digest: str, *, zipped: bool) -> str:
    return f'"{digest}-gzip"' if zipped else f'"{digest}"'


def matches(if_none_match: str | None, etag: str) -> bool:
    """Tell whether an If-None-Match names an entity tag (RFC 9110, section 13.1.2)."""
    if if_none_match is None or len(if_none_match) > _CONDITION_CHARACTERS:
        return False
    # No entity tag of ours has a comma, so none is found inside another.
    tags = [tag.strip(" \t").removeprefix("W/") for tag in if_none_match.split(",")]
    return tags == ["*"] or etag in tags
