"""`/commons/lessons`: what this commons makes of the lessons that it holds (PROTOCOL.md, sections 9 and 11)."""

from __future__ import annotations

import re
from typing import Annotated, Any, Final

from fastapi import APIRouter, Path, Query, Request, Response
from pydantic import AfterValidator, Field

from remem.protocol import KNOWN_KINDS, PublicKey, Reading, State
from remem.protocol.errors import show
from remem_server import answers, errors
from remem_server.context import commons_of
from remem_server.problems import refusals
from remem_server.reading import Said, Wanted

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


# The framework's own checks of these would be said in the words of regular expressions.
Kind = Annotated[str, AfterValidator(_known_kind), Field(json_schema_extra={"enum": list(KNOWN_KINDS)})]
Hash = Annotated[str, AfterValidator(_is_hash), Field(json_schema_extra={"pattern": f"^{_HASH.pattern}$"})]

router: Final = APIRouter(tags=["lessons"])


@router.get(
    "/commons/lessons",
    operation_id="lessons",
    summary="List lessons",
    response_description="A page of lessons.",
    responses=refusals(errors.TokenError, errors.ParameterForm),
)
def lessons(
    request: Request,
    response: Response,
    state: Annotated[State | None, Query(description="Only lessons in this state.")] = None,
    kind: Annotated[Kind | None, Query(description="Only lessons of this kind.")] = None,
    q: Annotated[
        str | None, Query(max_length=1_000, description="Only lessons whose text holds this, in any case.")
    ] = None,
    cursor: Annotated[Hash, Query(description="`next` of the page before.")] = "0" * 32,
    limit: Annotated[int, Query(ge=1, le=LESSONS_MOST, description="How many at once.")] = 100,
) -> answers.LessonPage:
    """List only the lessons of which a publication stands, by hash; any other is there by its hash alone.

    A page may be short, even empty, and have a next.
    """
    commons = commons_of(request)
    with commons.engine.connect() as connection:
        page = commons.reader.page(connection, Wanted(state, kind, q), cursor, limit, commons.clock())
    response.headers["Cache-Control"] = commons.revalidate
    return answers.LessonPage(
        lessons=[answers.Lesson(**_fields(reading)) for reading in page.readings], next=page.after
    )


@router.get(
    "/commons/lessons/{hash}",
    operation_id="lesson",
    summary="Read a lesson with its evidence",
    response_description="The lesson, in whatever state it is.",
    responses=refusals(errors.TokenError, errors.ParameterForm, errors.LessonUnknown),
)
def lesson(
    request: Request, response: Response, lesson: Annotated[Hash, Path(alias="hash", description="Which lesson.")]
) -> answers.LessonDetail:
    """Say what this commons makes of a lesson, and by which records."""
    commons = commons_of(request)
    with commons.engine.connect() as connection:
        found = commons.reader.lesson(connection, lesson, commons.clock())
    if found is None:
        raise errors.LessonUnknown(f"expected the hash of a lesson that something is held about, got {lesson}")
    response.headers["Cache-Control"] = commons.revalidate
    reading, said = found
    return answers.LessonDetail(**_fields(reading), evidence=[_item(one) for one in said])


def _fields(reading: Reading) -> dict[str, Any]:
    return {
        "hash": reading.hash,
        "kind": reading.kind,
        "text": reading.text,
        "state": reading.state.value,
        "cause": reading.cause.value,
        "why": reading.why,
        "confirmations": reading.confirmations,
        "unadmitted": reading.unadmitted,
        "corroborations": reading.corroborations,
        "last_confirmed": reading.last_confirmed,
    }


def _item(said: Said) -> answers.EvidenceItem:
    statement = said.statement
    return answers.EvidenceItem.model_validate(
        {
            "key": statement.key,
            "origin": PublicKey.parse(statement.key).origin,
            "type": statement.type,
            "at": statement.time,
            "principal": said.principal,
            "reason": statement.text if statement.type in ("revoke", "deny") else None,
            "counted": said.counted,
            "denies": statement.subject if statement.type == "deny" else None,
        }
    )
