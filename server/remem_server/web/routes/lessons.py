"""`/commons/lessons`: what this commons makes of the lessons that it holds (PROTOCOL.md, sections 9 and 11)."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Annotated, Any, Final

from fastapi import APIRouter, Path, Query, Request, Response
from pydantic import AfterValidator, Field
from sqlalchemy import Connection

from remem.protocol import KNOWN_KINDS, Denial, PublicKey, Revocation, State
from remem.protocol.errors import show
from remem_server import answers, errors
from remem_server.lessons import reading, search
from remem_server.lessons.listing import CURSOR_FORM, Cursor, Wanted
from remem_server.lessons.reading import Known, Said
from remem_server.opening.context import Commons
from remem_server.web.asking import commons_of
from remem_server.web.problems import refusals
from remem_server.web.routes.files import matches

LESSONS_MOST: Final = 500

_HASH: Final = re.compile(r"[0-9a-f]{32}")


def _known_kind(value: str) -> str:
    if value not in KNOWN_KINDS:
        raise ValueError(f"expected one of {', '.join(KNOWN_KINDS)}, got {show(value)}")
    return value


def _is_hash(value: str) -> str:
    if not _HASH.fullmatch(value):
        raise ValueError(f"expected 32 lower-case hex digits, got {show(value)}")
    return value


def _is_cursor(value: str) -> str:
    try:
        Cursor.parse(value)
    except ValueError as error:
        raise ValueError(f"{error}, got {show(value)}") from None
    return value


def _has_few_words(value: str) -> str:
    search.query_of(value)
    return value


# The framework's own checks of these would be said in the words of regular expressions.
Kind = Annotated[str, AfterValidator(_known_kind), Field(json_schema_extra={"enum": list(KNOWN_KINDS)})]
Hash = Annotated[str, AfterValidator(_is_hash), Field(json_schema_extra={"pattern": f"^{_HASH.pattern}$"})]
Next = Annotated[str, AfterValidator(_is_cursor), Field(json_schema_extra={"pattern": f"^{CURSOR_FORM.pattern}$"})]
Words = Annotated[str, Field(max_length=1_000), AfterValidator(_has_few_words)]

_SAME: Final[dict[int | str, dict[str, Any]]] = {
    304: {"description": "No file, no admission and no policy changed, and it is the same day in UTC."}
}

router: Final = APIRouter(tags=["lessons"])


@router.get(
    "/commons/lessons",
    operation_id="lessons",
    summary="List and search lessons",
    response_model=answers.LessonPage,
    response_description="A page of lessons.",
    responses={**_SAME, **refusals(errors.TokenError, errors.ParameterForm)},
)
def lessons(
    request: Request,
    response: Response,
    state: Annotated[State | None, Query(description="Only lessons in this state.")] = None,
    kind: Annotated[Kind | None, Query(description="Only lessons of this kind.")] = None,
    q: Annotated[
        Words | None,
        Query(description=f"Only lessons that have all of these words, {search.WORDS_MOST} different ones at most."),
    ] = None,
    cursor: Annotated[Next | None, Query(description="`next` of the page before.")] = None,
    limit: Annotated[int, Query(ge=1, le=LESSONS_MOST, description="How many at once.")] = 100,
) -> Response | answers.LessonPage:
    """List only the lessons of which a publication stands; any other is there by its hash alone.

    Common ones come first, then those that fade, candidates, removed and revoked ones; among these, those with more
    confirmations, and then those that were confirmed, or published, on a later day. A word is a run of letters and
    digits, in any case; it is found whole. What has no word finds nothing.
    """
    commons = commons_of(request)
    wanted = Wanted(state, kind, None if q is None else search.query_of(q))
    after = None if cursor is None else Cursor.parse(cursor)
    now = commons.clock()
    with commons.reads.connect() as connection:
        headers = _headers(commons, connection, now)
        if _is_known(request, headers):
            return Response(None, 304, headers)
        page = reading.page(connection, wanted, after, limit, now)
    response.headers.update(headers)
    return answers.LessonPage(
        lessons=[answers.Lesson(**_fields(known)) for known in page.lessons],
        next=None if page.following is None else str(page.following),
    )


@router.get(
    "/commons/lessons/{hash}",
    operation_id="lesson",
    summary="Read a lesson with its evidence",
    response_model=answers.LessonDetail,
    response_description="The lesson, in whatever state it is.",
    responses={**_SAME, **refusals(errors.TokenError, errors.ParameterForm, errors.LessonUnknown)},
)
def lesson(
    request: Request, response: Response, lesson: Annotated[Hash, Path(alias="hash", description="Which lesson.")]
) -> Response | answers.LessonDetail:
    """Say what this commons makes of a lesson, and by which records, 1,000 of them at most."""
    commons = commons_of(request)
    now = commons.clock()
    with commons.reads.connect() as connection:
        headers = _headers(commons, connection, now)
        if _is_known(request, headers):
            return Response(None, 304, headers)
        found = reading.lesson(connection, lesson, now)
    if found is None:
        raise errors.LessonUnknown(f"expected the hash of a lesson that something is held about, got {lesson}")
    response.headers.update(headers)
    known, evidence = found
    said = [_item(one) for one in evidence.said]
    return answers.LessonDetail(**_fields(known), evidence=said, complete=evidence.complete)


def _headers(commons: Commons, connection: Connection, now: datetime) -> dict[str, str]:
    mark = reading.mark_of(connection, now)
    return {"Cache-Control": commons.revalidate, **({} if mark is None else {"ETag": f'"{mark}"'})}


def _is_known(request: Request, headers: dict[str, str]) -> bool:
    return "ETag" in headers and matches(request.headers.get("if-none-match"), headers["ETag"])


def _fields(known: Known) -> dict[str, Any]:
    return {**known._asdict(), "state": known.state.value, "cause": known.cause.value}


def _item(said: Said) -> answers.EvidenceItem:
    statement = said.statement
    return answers.EvidenceItem.model_validate(
        {
            "key": statement.key,
            "origin": PublicKey.parse(statement.key).origin,
            "type": statement.type,
            "at": statement.time,
            "principal": said.principal,
            "reason": statement.text if statement.type in (Revocation.type, Denial.type) else None,
            "counted": said.counted,
            "denies": statement.subject if statement.type == Denial.type else None,
        }
    )
