"""The commons as a web application, and the one place where an error becomes an answer.

- What breaks the protocol, and what the commons refuses, is told with its own code.
- What the database cannot do now is 503, for the reader to try again.
- Anything else is our own fault: 500, without a word about its inside.
- HEAD is answered wherever GET is.
- A private commons answers nothing without a token but what it is and how it is; publishing has its own check.
"""

from __future__ import annotations

import logging
from importlib.metadata import version
from itertools import chain
from typing import Any, Final

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from pydantic.json_schema import models_json_schema
from sqlalchemy import Engine
from sqlalchemy.exc import OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import HTTPConnection
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from remem.protocol import ProtocolError, self_test
from remem.protocol.errors import show
from remem_server import tokens
from remem_server.answers import Problem
from remem_server.context import Commons, secret_of
from remem_server.errors import (
    CommonsError,
    Internal,
    MethodRefused,
    ParameterForm,
    RouteUnknown,
    StoreUnavailable,
    TokenError,
)
from remem_server.node import load_key
from remem_server.problems import problem_of
from remem_server.routes import about, docs, files, index, lessons
from remem_server.settings import Clock, Settings, system_clock
from remem_server.wording import worded

_log: Final = logging.getLogger("remem_server")
_ROUTERS: Final = (files.router, index.router, lessons.router, about.router, docs.router)
_NEEDS_NO_TOKEN: Final = frozenset({about.DESCRIPTOR_PATH, about.HEALTH_PATH, about.READY_PATH})
_ABOUT: Final = """A commons is a map from a memory's key to that memory's signed file.

Whoever reads a file here verifies it: nothing has to be believed because it was found here.

A memory takes this commons up by `remem login`, publishes by `remem share` and reads by `remem pull`. HEAD is answered
wherever GET is."""


def create_app(settings: Settings, engine: Engine, clock: Clock = system_clock) -> FastAPI:
    """Make the application of one commons.

    Args:
        settings: what the operator decided; its data folder must exist.
        engine: the database, migrated.
        clock: where the time comes from.

    Raises:
        RememError: the node's key cannot be used.
        RuntimeError: the installed Ed25519 library judges otherwise than the protocol.
    """
    self_test()
    operators = (load_key(settings.data).public.hex, *settings.operators)
    commons = Commons(settings, engine, clock, tuple(dict.fromkeys(operators)))
    app = FastAPI(
        title="Remem commons",
        version=version("remem"),
        description=_ABOUT,
        docs_url=None,
        redoc_url=None,
        # It would redirect to an address without TLS where a proxy has it.
        redirect_slashes=False,
    )
    app.state.commons = commons
    for router in _ROUTERS:
        app.include_router(router)
    app.add_middleware(_HeadAsGet)
    if settings.private:
        app.add_middleware(_PrivateReads, commons=commons)
    _document_problems(app)
    app.add_exception_handler(CommonsError, _refused)
    app.add_exception_handler(ProtocolError, _refused)
    app.add_exception_handler(RequestValidationError, _parameter)
    app.add_exception_handler(HTTPException, _no_route)
    app.add_exception_handler(OperationalError, _unavailable)
    app.add_exception_handler(PoolTimeout, _unavailable)
    app.add_exception_handler(Exception, _failed)
    return app


def _document_problems(app: FastAPI) -> None:
    """Add the model of a problem to the documentation, where the refusals of the routes refer to it."""
    plain = app.openapi

    def openapi() -> dict[str, Any]:
        schema = plain()
        _, models = models_json_schema([(Problem, "serialization")], ref_template="#/components/schemas/{model}")
        schema["components"]["schemas"].update(models["$defs"])
        return schema

    app.openapi = openapi  # type: ignore[method-assign]  # as FastAPI documents for extending its schema


class _HeadAsGet:
    """Answers HEAD by what GET would; the web server leaves the body out. Files have their own, which reads none."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["method"] == "HEAD" and not scope["path"].endswith(files.SUFFIX):
            scope = {**scope, "method": "GET"}
        await self._app(scope, receive, send)


class _PrivateReads:
    """Asks for a token before anything but publishing, so that a new route is private too."""

    def __init__(self, app: ASGIApp, commons: Commons) -> None:
        self._app = app
        self._commons = commons

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["method"] != "PUT" and scope["path"] not in _NEEDS_NO_TOKEN:
            try:
                await run_in_threadpool(self._check, secret_of(HTTPConnection(scope)))
            except TokenError as error:
                await problem_of(error)(scope, receive, send)
                return
        await self._app(scope, receive, send)

    def _check(self, secret: str | None) -> None:
        with self._commons.engine.connect() as connection:
            tokens.check(connection, secret)


async def _refused(_request: Request, error: Exception) -> Response:
    assert isinstance(error, (CommonsError, ProtocolError))
    return problem_of(error)


async def _parameter(_request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    return problem_of(ParameterForm(f"{first['loc'][-1]}: {worded(first)}"))


async def _no_route(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    got = f"{request.method} {show(request.url.path)}"
    if error.status_code == 405:
        headers = {**(error.headers or {}), **_allow(request.scope["path"])}
        return problem_of(MethodRefused(f"expected a method of this route, got {got}"), headers)
    return problem_of(RouteUnknown(f"expected a route of this commons, got {got}"))


def _allow(path: str) -> dict[str, str]:
    """Say which methods an address knows: the framework names those of one of its routes alone."""
    routes = chain.from_iterable(router.routes for router in _ROUTERS)
    here = (route for route in routes if isinstance(route, Route) and route.path_regex.match(path))
    known = set(chain.from_iterable(route.methods or () for route in here))
    if "GET" in known:
        known.add("HEAD")
    return {"Allow": ", ".join(sorted(known))} if known else {}


async def _unavailable(_request: Request, error: Exception) -> Response:
    _log.error("the database cannot do what was asked: %s", getattr(error, "orig", error))
    return problem_of(StoreUnavailable("expected a database that answers, got one that does not now"))


async def _failed(_request: Request, _error: Exception) -> Response:
    return problem_of(Internal("expected an answer, got an error of this commons"))
