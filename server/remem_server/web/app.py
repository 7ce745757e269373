"""The commons as a web application, and the one place where an error becomes an answer.

- What breaks the protocol, and what the commons refuses, is told with its own code.
- What the database cannot do now is 503, for the reader to try again.
- Anything else is our own fault: 500, without a word about its inside.
- HEAD is answered wherever GET is.
- A private commons answers nothing without a token but what it is and how it is; publishing has its own check.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from importlib.metadata import version
from itertools import chain
from typing import Any, Final

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel
from pydantic.json_schema import JsonSchemaMode, models_json_schema
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import HTTPConnection
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from remem.protocol import ProtocolError, self_test
from remem.protocol.errors import show
from remem_gossip import wire
from remem_gossip.errors import GossipError
from remem_server.answers import Problem
from remem_server.database.engine import DATABASE_ERRORS, is_unavailable, why_of
from remem_server.errors import (
    CommonsError,
    Internal,
    MethodRefused,
    ParameterForm,
    RouteUnknown,
    StoreUnavailable,
    TokenError,
)
from remem_server.gossip.background import Gossiping
from remem_server.opening.context import Commons
from remem_server.opening.description import DESCRIPTOR_PATH
from remem_server.web.asking import secret_of
from remem_server.web.bearers import bearer_of
from remem_server.web.peers import PublishedPeers
from remem_server.web.problems import Refusal, problem_of
from remem_server.web.routes import about, admin, docs, files, gossip, index, lessons
from remem_server.web.uses import Uses
from remem_server.web.watching import Watch, note_code
from remem_server.wording import place_of, worded

_log: Final = logging.getLogger("remem_server")
_ROUTERS: Final = (
    files.router,
    index.router,
    lessons.router,
    gossip.router,
    admin.router,
    about.router,
    docs.router,
)
_NEEDS_NO_TOKEN: Final = frozenset({DESCRIPTOR_PATH, about.HEALTH_PATH, about.READY_PATH})
# Their routes ask for a token, or for a peer's signature.
_ASK_THEMSELVES: Final = frozenset({wire.RECONCILE, wire.FETCH, wire.OFFER})
_UNASKED: Final = _NEEDS_NO_TOKEN | _ASK_THEMSELVES
_ABOUT: Final = """A commons is a map from a memory's key to that memory's signed file.

Whoever reads a file here verifies it: nothing has to be believed because it was found here.

A memory takes this commons up by `remem login`, publishes by `remem share` and reads by `remem pull`. HEAD is answered
wherever GET is."""


def create_app(commons: Commons) -> FastAPI:
    """Make the application of one commons.

    Raises:
        RuntimeError: the installed Ed25519 library judges otherwise than the protocol.
    """
    self_test()
    app = FastAPI(
        title="Remem commons",
        version=version("remem"),
        description=_ABOUT,
        docs_url=None,
        redoc_url=None,
        # It would redirect to an address without TLS where a proxy has it.
        redirect_slashes=False,
        lifespan=_gossiping,
    )
    app.state.commons = commons
    app.state.watch = Watch(commons)
    app.state.uses = Uses(commons)
    app.state.published = PublishedPeers(commons)
    app.state.gossiping = Gossiping(commons, app.state.watch.exchanged)
    for router in _ROUTERS:
        app.include_router(router)
    app.add_middleware(_HeadAsGet)
    if commons.settings.private:
        app.add_middleware(_PrivateReads, commons=commons, uses=app.state.uses)
    _document_problems(app)
    app.add_exception_handler(CommonsError, _refused)
    app.add_exception_handler(ProtocolError, _refused)
    app.add_exception_handler(GossipError, _refused)
    app.add_exception_handler(RequestValidationError, _parameter)
    app.add_exception_handler(HTTPException, _no_route)
    for kind in DATABASE_ERRORS:
        app.add_exception_handler(kind, _unavailable)
    app.add_exception_handler(Exception, _failed)
    return app


@asynccontextmanager
async def _gossiping(app: FastAPI) -> AsyncIterator[None]:
    """Gossip for as long as the application serves."""
    gossiping: Gossiping = app.state.gossiping
    gossiping.start()
    try:
        yield
    finally:
        await run_in_threadpool(gossiping.stop)


def _document_problems(app: FastAPI) -> None:
    """Add the models to the documentation that the routes refer to by name: of a problem, and of what is asked."""
    plain = app.openapi
    forms: list[tuple[type[BaseModel], JsonSchemaMode]] = [(Problem, "serialization")]
    forms += [(form, "validation") for form in admin.FORMS]

    def openapi() -> dict[str, Any]:
        schema = plain()
        _, models = models_json_schema(forms, ref_template="#/components/schemas/{model}")
        schema["components"]["schemas"].update(models["$defs"])
        return schema

    app.openapi = openapi  # type: ignore[method-assign]  # as FastAPI documents for extending its schema


class _HeadAsGet:
    """Answers HEAD by what GET would; the web server leaves the body out. Files have their own, which reads none."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["method"] == "HEAD" and not scope["path"].endswith(files.SUFFIX):
            # A copy, since the web server still has to know that it is none.
            inner = {**scope, "method": "GET"}
            await self._app(inner, receive, send)
            scope["route"] = inner.get("route")
            return
        await self._app(scope, receive, send)


class _PrivateReads:
    """Asks for a token before anything but publishing, so that a new route is private too."""

    def __init__(self, app: ASGIApp, commons: Commons, uses: Uses) -> None:
        self._app = app
        self._commons = commons
        self._uses = uses

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["method"] != "PUT" and scope["path"] not in _UNASKED:
            request = Request(scope)
            try:
                token = await run_in_threadpool(bearer_of, self._commons, secret_of(request))
            except TokenError as error:
                await _told(request, error)(scope, receive, send)
                return
            except DATABASE_ERRORS as error:
                # The handlers of the application are further in, and do not see it.
                answer = await _unavailable(request, error)
                await answer(scope, receive, send)
                return
            await self._app(scope, receive, send)
            await self._uses.note(token)
            return
        await self._app(scope, receive, send)


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, (CommonsError, ProtocolError, GossipError))
    return _told(request, error)


def _told(request: HTTPConnection, error: Refusal, headers: Mapping[str, str] | None = None) -> Response:
    note_code(request, error)
    return problem_of(error, headers)


async def _parameter(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    # The first part is the path, the query or the head.
    return _told(request, ParameterForm(f"{place_of(first, within=1)}: {worded(first)}"))


async def _no_route(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    got = f"{request.method} {show(request.url.path)}"
    if error.status_code == 405:
        headers = {**(error.headers or {}), **_allow(request.scope["path"])}
        return _told(request, MethodRefused(f"expected a method of this route, got {got}"), headers)
    return _told(request, RouteUnknown(f"expected a route of this commons, got {got}"))


def _allow(path: str) -> dict[str, str]:
    """Say which methods an address knows: the framework names those of one of its routes alone."""
    routes = chain.from_iterable(router.routes for router in _ROUTERS)
    here = (route for route in routes if isinstance(route, Route) and route.path_regex.match(path))
    known = set(chain.from_iterable(route.methods or () for route in here))
    if "GET" in known:
        known.add("HEAD")
    return {"Allow": ", ".join(sorted(known))} if known else {}


async def _unavailable(request: Request, error: Exception) -> Response:
    if not is_unavailable(error):
        raise error
    _log.error("the database cannot do what was asked: %s", why_of(error))
    return _told(request, StoreUnavailable("expected a database that answers, got one that does not now"))


async def _failed(request: Request, _error: Exception) -> Response:
    return _told(request, Internal("expected an answer, got an error of this commons"))
