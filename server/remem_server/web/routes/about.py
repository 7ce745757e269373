"""What the commons says about itself: the descriptor, and whether it is well."""

from __future__ import annotations

from typing import Final

from fastapi import APIRouter, Request, Response

from remem_server import errors
from remem_server.answers import Descriptor, Health
from remem_server.opening.description import DESCRIPTOR_PATH, describe
from remem_server.opening.readiness import check_ready
from remem_server.web import metrics
from remem_server.web.asking import commons_of
from remem_server.web.problems import refusals
from remem_server.web.watching import watch_of

HEALTH_PATH: Final = "/healthz"
READY_PATH: Final = "/readyz"
METRICS_PATH: Final = "/metrics"

router: Final = APIRouter(tags=["about"])


@router.get(
    DESCRIPTOR_PATH,
    operation_id="descriptor",
    summary="Say what this commons is",
    response_description="The description.",
    responses=refusals(stored=False),
)
def descriptor(request: Request) -> Descriptor:
    """Say which versions this commons speaks, whose it is, and what it asks of who publishes or reads."""
    return describe(commons_of(request), request.app.state.published.read())


@router.get(
    HEALTH_PATH,
    operation_id="health",
    summary="Say that the process runs",
    response_description="It runs.",
    responses=refusals(stored=False),
)
async def health() -> Health:
    """Answer, which is all that this asks."""
    return Health()


@router.get(
    READY_PATH,
    operation_id="ready",
    summary="Say that requests can be served",
    response_description="They can.",
    responses=refusals(errors.NotReady),
)
def ready(request: Request) -> Health:
    """Answer once the database does, and has the tables of this release."""
    check_ready(commons_of(request).reads)
    return Health()


@router.get(
    METRICS_PATH,
    operation_id="metrics",
    summary="Read the metrics",
    response_class=Response,
    responses={
        200: {
            "description": "The metrics of this server, in the text format of Prometheus.",
            "content": {metrics.MEDIA_TYPE: {"schema": {"type": "string"}}},
        },
        **refusals(errors.TokenError),
    },
)
def read_metrics(request: Request) -> Response:
    """Tell what this server did since it began, and how much the commons holds."""
    headers = {"Content-Type": metrics.MEDIA_TYPE, "Cache-Control": "no-store"}
    return Response(watch_of(request).metrics.text(), headers=headers)
