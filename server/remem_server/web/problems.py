"""Refusals over HTTP: the status of each error, and the answer that says it (RFC 9457).

`app.py` hands every error to `problem_of`; the routes name theirs to `refusals`, for the documentation.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from http import HTTPStatus
from itertools import chain
from typing import Any, Final, TypeAlias, TypeVar

from starlette.responses import Response

from remem.protocol import ProtocolError
from remem.protocol.errors import FileSize
from remem_gossip.errors import GossipError
from remem_gossip.signatures import BadSignature
from remem_server import errors
from remem_server.answers import Held, Problem

MEDIA_TYPE: Final = "application/problem+json"

_T = TypeVar("_T")
Refusal: TypeAlias = errors.CommonsError | ProtocolError | GossipError
_Kind: TypeAlias = type[errors.CommonsError] | type[ProtocolError] | type[GossipError]

# The first class that an error is of gives its status.
_STATUS: Final[Mapping[type[Exception], HTTPStatus]] = {
    errors.NameForm: HTTPStatus.NOT_FOUND,
    errors.NameMismatch: HTTPStatus.UNPROCESSABLE_ENTITY,
    errors.FileUnknown: HTTPStatus.NOT_FOUND,
    errors.LessonUnknown: HTTPStatus.NOT_FOUND,
    errors.OriginCollision: HTTPStatus.MULTIPLE_CHOICES,
    errors.Superseded: HTTPStatus.CONFLICT,
    errors.TokenError: HTTPStatus.UNAUTHORIZED,
    errors.NotAPeer: HTTPStatus.FORBIDDEN,
    errors.TokenBound: HTTPStatus.FORBIDDEN,
    errors.AdminNeeded: HTTPStatus.FORBIDDEN,
    errors.AdminToken: HTTPStatus.FORBIDDEN,
    errors.TokenIdUnknown: HTTPStatus.NOT_FOUND,
    errors.Blocked: HTTPStatus.GONE,
    errors.OperatorKey: HTTPStatus.CONFLICT,
    errors.OperatorFileFull: HTTPStatus.CONFLICT,
    errors.KeyRetired: HTTPStatus.CONFLICT,
    errors.TooManyRequests: HTTPStatus.TOO_MANY_REQUESTS,
    errors.TooManyKeys: HTTPStatus.TOO_MANY_REQUESTS,
    errors.Busy: HTTPStatus.SERVICE_UNAVAILABLE,
    errors.NotReady: HTTPStatus.SERVICE_UNAVAILABLE,
    errors.QuerySize: HTTPStatus.REQUEST_URI_TOO_LONG,
    errors.CompressedBody: HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
    errors.BodyTimeout: HTTPStatus.REQUEST_TIMEOUT,
    errors.RequestForm: HTTPStatus.BAD_REQUEST,
    errors.BodyIncomplete: HTTPStatus.BAD_REQUEST,
    errors.ParameterForm: HTTPStatus.UNPROCESSABLE_ENTITY,
    errors.RouteUnknown: HTTPStatus.NOT_FOUND,
    errors.MethodRefused: HTTPStatus.METHOD_NOT_ALLOWED,
    errors.StoreUnavailable: HTTPStatus.SERVICE_UNAVAILABLE,
    errors.Internal: HTTPStatus.INTERNAL_SERVER_ERROR,
    FileSize: HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    ProtocolError: HTTPStatus.UNPROCESSABLE_ENTITY,
    BadSignature: HTTPStatus.UNAUTHORIZED,
    GossipError: HTTPStatus.UNPROCESSABLE_ENTITY,
}

# What else a refusal says in its head.
_HEADERS: Final[Mapping[type[Exception], Mapping[str, str]]] = {
    errors.TokenMissing: {"WWW-Authenticate": "Bearer"},
    errors.TokenError: {"WWW-Authenticate": 'Bearer error="invalid_token"'},
    # A token would do as well.
    BadSignature: {"WWW-Authenticate": "Bearer"},
    errors.CompressedBody: {"Accept-Encoding": "identity"},
    errors.NotReady: {"Retry-After": "5"},
    errors.StoreUnavailable: {"Retry-After": "5"},
}

# What any route may refuse.
_ANYWHERE: Final = (errors.QuerySize, errors.TooManyRequests, errors.Internal)


def problem_of(error: Refusal, headers: Mapping[str, str] | None = None) -> Response:
    """Make the answer that says an error, with its own headers and these."""
    kind = type(error)
    status = status_of(kind)
    content = Problem(title=status.phrase, status=status, detail=str(error), code=error.code, **_members_of(error))
    own = dict(_first(_HEADERS, kind) or {})
    if isinstance(error, errors.ComeAgain):
        own["Retry-After"] = str(error.seconds)
    return Response(
        content.model_dump_json(exclude_none=True),
        status,
        {"Cache-Control": "no-store", **own, **(headers or {})},
        MEDIA_TYPE,
    )


def status_of(kind: _Kind) -> HTTPStatus:
    """Return the status of a kind of error."""
    status = _first(_STATUS, kind)
    assert status is not None, f"{kind.__name__} has no status"
    return status


def refusals(*kinds: _Kind, stored: bool = True) -> dict[int | str, dict[str, Any]]:
    """Document the refusals of a route: an answer for each status, with its codes.

    Args:
        kinds: the errors; a class that has subclasses stands for them.
        stored: whether the route asks the database.
    """
    said: dict[int, list[str]] = {}
    store = [errors.StoreUnavailable] if stored else []
    for kind in chain.from_iterable(map(_leaves, [*kinds, *store, *_ANYWHERE])):
        said.setdefault(int(status_of(kind)), []).append(f"`{kind.code}`: {(kind.__doc__ or '').splitlines()[0]}")
    schema = {"$ref": "#/components/schemas/Problem"}
    return {
        status: {"description": "\n\n".join(lines), "content": {MEDIA_TYPE: {"schema": schema}}}
        for status, lines in said.items()
    }


def _members_of(error: Refusal) -> dict[str, Any]:
    match error:
        case ProtocolError():
            return {"line": error.line, "expected": error.expected, "got": error.got}
        case GossipError():
            return {"expected": error.expected, "got": error.got}
        case errors.Superseded():
            return {"held": Held(seal=error.held.seal, digest=error.held.digest)}
        case errors.Blocked():
            return {"reason": error.reason}
        case errors.OriginCollision():
            return {"addresses": [f"{key}.jsonl" for key in error.keys]}
        case _:
            return {}


def _leaves(kind: _Kind) -> Iterator[_Kind]:
    below = kind.__subclasses__()
    if not below:
        yield kind
    for one in below:
        yield from _leaves(one)


def _first(of_kinds: Mapping[type[Exception], _T], error: type[Exception]) -> _T | None:
    return next((found for kind, found in of_kinds.items() if issubclass(error, kind)), None)
