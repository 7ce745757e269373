"""`/admin/…`: the operator's acts over HTTP, by an admin token (PROTOCOL.md, section 11).

The token is checked before a body is read, against the database that is written: a replica may not have heard that
it was revoked. An act checks it again when the body is here, which may take a while. Auditing is not offered here,
since it takes longer than a request may: `remem-server audit` does it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import asdict
from datetime import datetime
from functools import partial
from typing import Annotated, Any, Final, TypeVar

from anyio import to_thread
from fastapi import APIRouter, BackgroundTasks, Depends, Path, Query, Request, Response, Security
from fastapi.security import HTTPBearer
from pydantic import AfterValidator, AwareDatetime, BaseModel, ConfigDict, Field, ValidationError
from starlette.requests import ClientDisconnect

from remem.protocol import ProtocolError
from remem.protocol.errors import UnsealedLine
from remem_server import answers, errors
from remem_server.files import journal, tokens
from remem_server.files.tokens import Terms, Token
from remem_server.moments import in_utc
from remem_server.opening.context import Commons
from remem_server.operator import acts
from remem_server.operator.acts import Bearer
from remem_server.operator.own_file import NEARLY_FULL, Act
from remem_server.upkeep.stats import stats_of
from remem_server.web.asking import commons_of, secret_of
from remem_server.web.problems import refusals
from remem_server.wording import place_of, worded

BODY_MOST: Final = 16_384
JOURNAL_MOST: Final = 1_000
NUMBER_MOST: Final = 2**31 - 1

_log: Final = logging.getLogger("remem_server")
_T = TypeVar("_T", bound="Asked")


# --- what is asked ---


class Asked(BaseModel):
    """The body of a request, with no other fields than these."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class AboutLesson(Asked):
    """A lesson, and why."""

    hash: str = Field(description="The lesson's, 32 hex digits.")
    reason: str | None = Field(default=None, description="For the journal.")


class AgainstLesson(AboutLesson):
    """A lesson, and why it is taken back."""

    reason: str = Field(description="In a sentence; readers see it.")


class AboutKey(Asked):
    """A key, and why."""

    key: str = Field(description="64 hex digits.")
    reason: str | None = Field(default=None, description="For the journal.")


class AgainstKey(AboutKey):
    """A key, and what there is against it."""

    reason: str = Field(description="In a sentence; readers see it.")


class NewToken(Asked):
    """A token to be made."""

    label: str = Field(default="", description="A note of the operator's own.")
    principal: str | None = Field(
        default=None, description="Who answers for its key; tokens that share it count once. Random if not given."
    )
    expires: Annotated[AwareDatetime, AfterValidator(in_utc)] | None = Field(
        default=None, description="From when on it is refused."
    )
    admin: bool = Field(default=False, description="For the operator's acts; it publishes nothing.")


class Why(Asked):
    """The reason for what the address says."""

    reason: str | None = Field(default=None, description="For the journal.")


FORMS: Final = (AboutLesson, AgainstLesson, AboutKey, AgainstKey, NewToken, Why)
"""What is asked, for the documentation."""

Number = Annotated[int, Path(alias="id", ge=1, le=NUMBER_MOST, description="The number of a token.")]


# --- who asks ---


async def _admin(request: Request, behind: BackgroundTasks) -> Bearer:
    """Let nobody in but the bearer of a good admin token."""
    secret = secret_of(request)
    token = await to_thread.run_sync(_check, commons_of(request), secret)
    behind.add_task(request.app.state.uses.note, token)
    return Bearer(secret)


def _check(commons: Commons, secret: str | None) -> Token:
    with commons.engine.connect() as connection:
        return tokens.check_admin(connection, secret, commons.clock())


_Admin = Annotated[Bearer, Depends(_admin)]
_DONE: Final = "What became of it."
# Why the node's file cannot be followed by another, and why that cannot have one more record.
_OF_OWN_FILE: Final = (errors.OlderFile, errors.KeyRetired, UnsealedLine)
_OF_A_WORD: Final = (*_OF_OWN_FILE, errors.OperatorFileFull)


async def _keep_nowhere(response: Response) -> None:
    """Let no cache keep an answer: it may hold a token, and is for its reader alone."""
    response.headers["Cache-Control"] = "no-store"


router: Final = APIRouter(
    prefix="/admin",
    tags=["the operator's acts"],
    dependencies=[
        Depends(_keep_nowhere),
        Security(HTTPBearer(scheme_name="AdminToken", auto_error=False, description="An admin token.")),
    ],
)


def _told(
    answer: str, form: type[Asked] | None = None, *more: type[errors.CommonsError | ProtocolError]
) -> dict[str, Any]:
    """Document what is answered, what is asked, and what may be refused."""
    kinds = [errors.TokenError, errors.AdminNeeded, *more]
    if form is None:
        return {"response_description": answer, "responses": refusals(*kinds)}
    body = {
        "required": any(field.is_required() for field in form.model_fields.values()),
        "description": (form.__doc__ or "").splitlines()[0],
        "content": {"application/json": {"schema": {"$ref": f"#/components/schemas/{form.__name__}"}}},
    }
    return {
        "responses": refusals(*kinds, errors.ParameterForm, errors.BodyIncomplete, errors.BodyTimeout),
        "response_description": answer,
        "openapi_extra": {"requestBody": body},
    }


async def _read(request: Request, form: type[_T]) -> _T:
    """Read what is asked, as far as it may be long and late."""
    seconds = commons_of(request).settings.body_seconds
    data = bytearray()
    try:
        async with asyncio.timeout(seconds):
            async for chunk in request.stream():
                data += chunk
                if len(data) > BODY_MOST:
                    raise errors.ParameterForm(f"body: expected at most {BODY_MOST} bytes, got more")
    except TimeoutError:
        raise errors.BodyTimeout(f"expected the body within {seconds:g} seconds, got a part of it") from None
    except ClientDisconnect:
        raise errors.BodyIncomplete("expected the whole body, got a part of it") from None
    try:
        # Who has nothing to say need not say so.
        return form.model_validate_json(bytes(data) or b"{}")
    except ValidationError as error:
        first = error.errors()[0]
        raise errors.ParameterForm(f"{place_of(first) or 'body'}: {worded(first)}") from None


# --- acts ---


@router.post("/revoke", operation_id="revoke", summary="Take a lesson back", **_told(_DONE, AgainstLesson, *_OF_A_WORD))
async def revoke(request: Request, who: _Admin) -> answers.Acted:
    """Say in the node's own file that a lesson is revoked."""
    return await _say(request, who, "revoke", await _read(request, AgainstLesson))


@router.post(
    "/unrevoke", operation_id="unrevoke", summary="Take a revocation back", **_told(_DONE, AboutLesson, *_OF_OWN_FILE)
)
async def unrevoke(request: Request, who: _Admin) -> answers.Acted:
    """Say no more that a lesson is revoked; its readers work out anew what it is worth."""
    return await _say(request, who, "unrevoke", await _read(request, AboutLesson))


@router.post(
    "/deny", operation_id="deny", summary="Deny a key", **_told(_DONE, AgainstKey, errors.OperatorKey, *_OF_A_WORD)
)
async def deny(request: Request, who: _Admin) -> answers.Acted:
    """Say in the node's own file that nothing of a key counts."""
    return await _say(request, who, "deny", await _read(request, AgainstKey))


@router.post("/undeny", operation_id="undeny", summary="Take a denial back", **_told(_DONE, AboutKey, *_OF_OWN_FILE))
async def undeny(request: Request, who: _Admin) -> answers.Acted:
    """Say no more that nothing of a key counts."""
    return await _say(request, who, "undeny", await _read(request, AboutKey))


async def _say(request: Request, who: Bearer, act: Act, asked: AboutLesson | AboutKey) -> answers.Acted:
    subject = asked.hash if isinstance(asked, AboutLesson) else asked.key
    return await _done(partial(acts.say, commons_of(request), who, act, subject, asked.reason))


@router.post("/block", operation_id="block", summary="Block a key", **_told(_DONE, AgainstKey, errors.OperatorKey))
async def block(request: Request, who: _Admin) -> answers.Acted:
    """Keep nothing of a key's file but its version: this host's own choice, which binds no reader."""
    asked = await _read(request, AgainstKey)
    return await _done(partial(acts.block, commons_of(request), who, asked.key, asked.reason))


@router.post("/unblock", operation_id="unblock", summary="Take a block back", **_told(_DONE, AboutKey))
async def unblock(request: Request, who: _Admin) -> answers.Acted:
    """Let the file of a key come again."""
    asked = await _read(request, AboutKey)
    return await _done(partial(acts.unblock, commons_of(request), who, asked.key, asked.reason))


async def _done(act: Callable[[], acts.Outcome]) -> answers.Acted:
    done = answers.Acted.model_validate(await to_thread.run_sync(act), from_attributes=True)
    if done.file_percent is not None and done.file_percent >= NEARLY_FULL:
        _log.warning("the file of this node's operator is full to %d %%", done.file_percent)
    return done


# --- tokens ---


@router.post(
    "/tokens", operation_id="token_create", summary="Make a token", status_code=201, **_told("The token.", NewToken)
)
async def token_create(request: Request, who: _Admin) -> answers.TokenMade:
    """Make a token, and answer it: it is never shown again."""
    commons, asked = commons_of(request), await _read(request, NewToken)
    now = commons.clock()
    work = partial(acts.token_create, commons.engine, who, now, Terms(**asked.model_dump()))
    secret, made = await to_thread.run_sync(work)
    return answers.TokenMade(token=secret, **_kept(made, now))


@router.get("/tokens", operation_id="token_list", summary="List the tokens", **_told("The tokens."))
def token_list(request: Request, _who: _Admin) -> list[answers.TokenEntry]:
    """List the tokens, the oldest first: a token itself is never shown again."""
    commons = commons_of(request)
    with commons.engine.connect() as connection:
        all_made = tokens.list_all(connection)
    return [answers.TokenEntry(**_kept(one, commons.clock())) for one in all_made]


@router.post(
    "/tokens/{id}/revoke",
    operation_id="token_revoke",
    summary="Revoke a token",
    **_told("The token, which is revoked.", Why, errors.TokenIdUnknown),
)
async def token_revoke(request: Request, who: _Admin, number: Number) -> answers.TokenEntry:
    """Revoke a token for good: nobody publishes with it, and it no longer admits its key."""
    commons, asked = commons_of(request), await _read(request, Why)
    now = commons.clock()
    work = partial(acts.token_revoke, commons.engine, who, now, number, asked.reason)
    return answers.TokenEntry(**_kept(await to_thread.run_sync(work), now))


def _kept(token: Token, now: datetime) -> dict[str, Any]:
    return {**asdict(token), "state": token.state(now)}


# --- looking ---


@router.get(
    "/journal",
    operation_id="journal",
    summary="Read what was done",
    **_told("Some acts.", None, errors.ParameterForm),
)
def read_journal(
    request: Request,
    _who: _Admin,
    after: Annotated[int, Query(ge=0, le=2**63 - 1, description="Only what was done after this row.")] = 0,
    limit: Annotated[int, Query(ge=1, le=JOURNAL_MOST, description="How many at once.")] = 100,
) -> answers.JournalPage:
    """List the operator's acts, the oldest first."""
    with commons_of(request).engine.connect() as connection:
        found = journal.read_after(connection, after, limit + 1)
    page = found[:limit]
    return answers.JournalPage(acts=page, next=page[-1].id if len(found) > limit else None)


@router.get("/stats", operation_id="stats", summary="Count what is held", **_told("The numbers."))
def stats(request: Request, _who: _Admin) -> answers.Stats:
    """Count what this commons holds; where it is much, this takes some seconds."""
    commons = commons_of(request)
    return stats_of(commons.database, commons.clock())
