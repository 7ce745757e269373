"""`/commons/index`: the files that are held, in the order in which they changed (PROTOCOL.md, section 11)."""

from __future__ import annotations

from typing import Annotated, Final

from fastapi import APIRouter, Query, Request, Response

from remem_server.answers import IndexEntry
from remem_server.database import changes
from remem_server.errors import ParameterForm, TokenError
from remem_server.files import store
from remem_server.opening.context import Commons
from remem_server.opening.description import index_entry
from remem_server.web.asking import commons_of
from remem_server.web.problems import refusals
from remem_server.web.routes.files import matches

ENTRIES_MOST: Final = 1_000
CURSOR_MOST: Final = 2**63 - 1

router: Final = APIRouter(tags=["index"])


@router.get(
    "/commons/index",
    operation_id="index",
    summary="List the files, or what changed",
    response_model=list[IndexEntry],
    responses={
        200: {
            "description": "The files in the order of their last change, or of their key's admission.",
            "headers": {
                "Remem-Cursor": {
                    "description": "Pass it as `since` to go on from here, now or another day.",
                    "schema": {"type": "integer"},
                },
                "Link": {"description": "The next page, where there is one.", "schema": {"type": "string"}},
            },
        },
        304: {"description": "No file and no admission changed."},
        **refusals(TokenError, ParameterForm),
    },
)
def index(
    request: Request,
    response: Response,
    since: Annotated[
        int,
        Query(
            ge=0,
            le=CURSOR_MOST,
            description="Only what changed after this cursor; everything, if the commons was restored from a backup "
            "and has not counted so far.",
        ),
    ] = 0,
    limit: Annotated[int, Query(ge=1, le=ENTRIES_MOST, description="How many at once.")] = ENTRIES_MOST,
) -> Response | list[IndexEntry]:
    """List the files that are held, or those that changed since a cursor."""
    commons = commons_of(request)
    with commons.reads.connect() as connection:
        newest, digest = changes.newest(connection) or (0, "")
        headers = {"ETag": f'"{newest}-{digest[:16]}"', "Cache-Control": commons.revalidate}
        if matches(request.headers.get("if-none-match"), headers["ETag"]):
            return Response(None, 304, headers)
        start = since if since <= newest or _was_given(commons, since) else 0
        entries = store.index(connection, start, limit + 1)
    page = entries[:limit]
    cursor = page[-1].cursor if page else start
    headers["Remem-Cursor"] = str(cursor)
    if len(entries) > limit:
        headers["Link"] = f'<index?since={cursor}&limit={limit}>; rel="next"'
    response.headers.update(headers)
    return [index_entry(entry) for entry in page]


def _was_given(commons: Commons, cursor: int) -> bool:
    """Tell whether a cursor above all that is listed here comes from a place that is not behind.

    One from before the commons was set back to a backup says nothing about what it holds now.
    """
    if commons.reads is commons.engine:
        return False
    with commons.engine.connect() as connection:
        newest, _digest = changes.newest(connection) or (0, "")
    return cursor <= newest
