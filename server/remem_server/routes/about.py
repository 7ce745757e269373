"""What the commons says about itself: the descriptor, and whether it is well."""

from __future__ import annotations

from importlib.metadata import version
from typing import Final

from fastapi import APIRouter, Request

from remem.protocol import RULES
from remem_server import changes
from remem_server.answers import Descriptor, Health, Limits
from remem_server.context import commons_of
from remem_server.problems import refusals

DESCRIPTOR_PATH: Final = "/.well-known/remem"
HEALTH_PATH: Final = "/healthz"
READY_PATH: Final = "/readyz"

router: Final = APIRouter(tags=["about"])


@router.get(
    DESCRIPTOR_PATH,
    operation_id="descriptor",
    summary="Say what this commons is",
    response_description="The description.",
    responses=refusals(),
)
async def descriptor(request: Request) -> Descriptor:
    """Say which versions this commons speaks, whose it is, and what it asks of who publishes or reads."""
    commons = commons_of(request)
    return Descriptor(
        protocol=[RULES.version],
        software=f"remem/{version('remem')}",
        key=commons.operators[0],
        operators=list(commons.operators),
        open=commons.settings.open,
        private=commons.settings.private,
        limits=Limits(line_bytes=RULES.line_bytes, file_bytes=RULES.file_bytes, file_records=RULES.file_records),
        confirmations=RULES.confirmations,
        window_days=RULES.window.days,
        peers=[],
    )


@router.get(
    HEALTH_PATH,
    operation_id="health",
    summary="Say that the process runs",
    response_description="It runs.",
    responses=refusals(),
)
async def health() -> Health:
    """Answer, which is all that this asks."""
    return Health()


@router.get(
    READY_PATH,
    operation_id="ready",
    summary="Say that requests can be served",
    response_description="They can.",
    responses=refusals(),
)
def ready(request: Request) -> Health:
    """Answer once the database does."""
    with commons_of(request).engine.connect() as connection:
        changes.newest(connection)
    return Health()
