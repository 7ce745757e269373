"""`/gossip/…`: what other nodes ask of this commons, and what they offer (PROTOCOL.md, section 16).

- Who asks is found out from the head of a request, before its body is read. A signature has to be good where there is
  one; `reconcile` and `fetch` need none where anyone may read.
- Whoever is no peer takes turns, as others do who ask for much, and is counted by the minute like whoever publishes.
- Bodies are read up to their caps, few at once, since they are long. What a message can make this commons compute is
  bounded where it is computed; that is done in threads of its own, few of one address at once, so that whoever
  publishes does not wait for it. An offer goes through the threads that verify files, file by file.
- An account is spent by one offer at a time.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from random import SystemRandom
from typing import Any, Final

from anyio import to_thread
from fastapi import APIRouter, Request, Response
from fastapi.responses import StreamingResponse

from remem.protocol import PublicKey
from remem_gossip import wire
from remem_gossip.account import Account
from remem_gossip.answering import answer_fetch, answer_reconcile
from remem_gossip.errors import GossipError
from remem_gossip.parts import Outcome, Proof, Verdict, Whole
from remem_gossip.reconcile import BadFrame
from remem_gossip.signatures import BadSignature
from remem_gossip.taking import claim_of
from remem_server import errors
from remem_server.answers import Verdicts
from remem_server.gossip import peers, spending
from remem_server.gossip.callers import Caller, caller_of
from remem_server.gossip.node import ServerNode
from remem_server.opening.context import Commons
from remem_server.web.asking import commons_of, secret_of
from remem_server.web.bearers import bearer_of
from remem_server.web.between import signed_by
from remem_server.web.bodies import read_body
from remem_server.web.limits import token_name
from remem_server.web.problems import refusals
from remem_server.web.watching import Watch, seen_of, watch_of
from remem_server.web.zipping import coding_for

# A message may cost a good part of what a file costs.
_MUCH: Final = 5
_OFFERS_OF_ONE: Final = 2
_QUESTIONS_OF_ONE: Final = 4

router: Final = APIRouter(prefix="/gossip", tags=["gossip"])


def _body(media_type: str, what: str, most: int) -> dict[str, Any]:
    content = {media_type: {"schema": {"type": "string", "format": "binary"}}}
    return {"requestBody": {"required": True, "description": f"{what}, at most {most:,} bytes.", "content": content}}


def _answers(media_type: str, what: str) -> dict[int | str, dict[str, Any]]:
    return {200: {"description": what, "content": {media_type: {"schema": {"type": "string", "format": "binary"}}}}}


_OF_A_BODY: Final = (
    BadSignature,
    errors.BodyIncomplete,
    errors.BodyTimeout,
    errors.CompressedBody,
    errors.Busy,
    errors.TokenUnknown,
    errors.TokenRevoked,
    errors.TokenExpired,
)
_OF_A_QUESTION: Final = (*_OF_A_BODY, errors.TokenMissing)


@router.post(
    "/reconcile",
    operation_id="reconcile",
    summary="Find out what differs",
    response_class=Response,
    responses={**_answers(wire.OCTETS, "The next message."), **refusals(BadFrame, *_OF_A_QUESTION)},
    openapi_extra=_body(wire.OCTETS, "A message of the Negentropy protocol, version 1", wire.FRAME_MOST),
)
async def reconcile(request: Request) -> Response:
    """Answer a message of reconciliation; nothing is kept between two of them."""
    async with _question(request, wire.FRAME_MOST, BadFrame) as body:
        answer = await watch_of(request).questions.run(partial(answer_reconcile, _reader(commons_of(request)), body))
    return Response(answer, 200, {"Cache-Control": "no-store"}, wire.OCTETS)


@router.post(
    "/fetch",
    operation_id="fetch",
    summary="Fetch files",
    response_class=Response,
    responses={
        **_answers(wire.LINES, "Files, and what stands for one; as many as fit."),
        **refusals(wire.BadBody, *_OF_A_QUESTION),
    },
    openapi_extra=_body(wire.JSON, 'Items, as `{"ids": […]}`', wire.ASKED_BYTES),
)
async def fetch(request: Request) -> Response:
    """Hand out what items name, in the order of the question; in gzip to whoever reads that."""
    async with _question(request, wire.ASKED_BYTES, wire.BadBody) as body:
        pieces = await watch_of(request).questions.run(partial(answer_fetch, _reader(commons_of(request)), body))
        # What the database cannot do is told before the answer begins.
        first = await to_thread.run_sync(next, pieces, b"")
    coding, headers = coding_for(request.headers.get("accept-encoding", ""))
    return StreamingResponse(coding(_from(first, pieces)), 200, {"Cache-Control": "no-store", **headers}, wire.LINES)


@router.post(
    "/offer",
    operation_id="offer",
    summary="Offer files",
    response_model=Verdicts,
    response_description="What became of each part of the offer, in its order.",
    responses=refusals(
        wire.BadBody,
        errors.NotAPeer,
        errors.AdminToken,
        errors.TooManyRequests,
        *_OF_A_BODY,
    ),
    openapi_extra=_body(wire.LINES, "Files and proofs", wire.OFFER_BYTES),
)
async def offer(request: Request) -> Response:
    """Take files in, each as if it had been put here by a stranger."""
    commons, watch, secret = commons_of(request), watch_of(request), secret_of(request)
    signed = await to_thread.run_sync(signed_by, request, commons.clock(), limiter=watch.tokens)
    signer = signed.key if signed is not None and _is_for(commons, request) else None
    caller = await to_thread.run_sync(caller_of, commons, signer, secret, limiter=watch.tokens)
    watch.verifying.check()
    sender = caller.source if caller.is_peer else seen_of(request).address
    if not caller.is_peer:
        watch.limits.note_much(seen_of(request).who, _MUCH)
        if caller.token is not None:
            sender = token_name(caller.token.id)
        await watch.limits.publish(sender)
    with watch.offers.one(sender, _OFFERS_OF_ONE):
        body = await read_body(request, wire.OFFER_BYTES, commons.settings.body_seconds, wire.BadBody)
        if signed is not None:
            signed.check(body)
        async with _turn_of(watch, caller.account):
            verdicts = await _take(request, caller, body)
    if not caller.is_peer:
        await watch.limits.came(sender, len(body))
    return Response(wire.write_verdicts(verdicts), 200, {"Cache-Control": "no-store"}, wire.JSON)


# --- who asks ---


@asynccontextmanager
async def _question(request: Request, most: int, bad: type[GossipError]) -> AsyncIterator[bytes]:
    """Read a question, if whoever asks may read here, and hold its place while it is worked on.

    Raises:
        BadSignature: the request is signed, and not as it has to be.
        TokenError: the commons is private, and no peer asks and nobody with a good token.
    """
    commons, watch, seen = commons_of(request), watch_of(request), seen_of(request)
    signed = await to_thread.run_sync(signed_by, request, commons.clock(), limiter=watch.tokens)
    # Without a name of its own, a private commons could not tell what its peers signed for others and these pass on.
    meant = _is_for(commons, request) and (commons.settings.names or not commons.settings.private)
    signer = signed.key if signed is not None and meant else None
    is_peer = await to_thread.run_sync(_may_read, commons, signer, secret_of(request), limiter=watch.tokens)
    if not is_peer:
        watch.limits.note_much(seen.who, _MUCH)
    watch.questions.check()
    with watch.bodies.one(seen.address, _QUESTIONS_OF_ONE):
        body = await read_body(request, most, commons.settings.body_seconds, bad)
        if signed is not None:
            signed.check(body)
        yield body


def _is_for(commons: Commons, request: Request) -> bool:
    """Tell whether a request was signed for this commons, as far as it knows its names."""
    names = commons.settings.names
    return not names or request.headers.get("host", "").strip().lower() in names


def _may_read(commons: Commons, signer: PublicKey | None, secret: str | None) -> bool:
    """Let nobody pass who may not read; tell whether it is a peer.

    Raises:
        TokenError: a token that came is not good, where one is needed.
    """
    if signer is not None:
        with commons.engine.connect() as connection:
            if peers.url_of_key(connection, signer.hex) is not None:
                return True
    if commons.settings.private:
        bearer_of(commons, secret)
    return False


def _reader(commons: Commons) -> ServerNode:
    return ServerNode(commons, SystemRandom(), reads=commons.reads)


# --- taking in ---


@asynccontextmanager
async def _turn_of(watch: Watch, account: str) -> AsyncIterator[None]:
    """Let one offer at a time spend what an account has."""
    lock = watch.accounts.setdefault(account, asyncio.Lock())
    async with lock:
        yield


async def _take(request: Request, caller: Caller, body: bytes) -> list[Verdict]:
    commons, watch = commons_of(request), watch_of(request)
    taking = _Taking(commons, caller, _when_new(request, caller))
    try:
        parts = await watch.verifying.run(partial(taking.begin, body))
        verdicts: list[Verdict] = []
        for part in parts:
            try:
                verdicts.append(await watch.verifying.run(partial(taking.take, part)))
            except errors.Busy as error:
                verdicts.append(Verdict(part.id, Outcome.DEFERRED, error.code))
    finally:
        await to_thread.run_sync(taking.end, len(body))
    for verdict in verdicts:
        watch.metrics.gossiped.labels("offer", verdict.outcome.value).inc()
    request.app.state.gossiping.note(parts, verdicts, caller.source)
    return verdicts


def _when_new(request: Request, caller: Caller) -> Callable[[], None] | None:
    """Count keys that were never seen, where no token and no peer answers for whoever brings them."""
    if caller.is_peer or caller.token is not None:
        return None
    return partial(watch_of(request).limits.take_key, seen_of(request).address)


class _Taking:
    """One offer that is taken in, and what it costs."""

    def __init__(self, commons: Commons, caller: Caller, when_new: Callable[[], None] | None) -> None:
        own = None if caller.own is None or caller.secret is None else (caller.own, caller.secret)
        self._commons, self._caller, self._own = commons, caller, caller.own
        self._node = ServerNode(commons, SystemRandom(), own=own, when_new=when_new, settles=caller.is_peer)
        self._accounts: dict[str, Account] = {}

    def begin(self, body: bytes) -> Sequence[Whole | Proof]:
        """Read what is offered, and what may still be spent."""
        caller, now = self._caller, self._commons.clock()
        budgets = {caller.account: caller.budget}
        if caller.token is not None:
            budgets[self._own_account] = spending.OWN_FILE
        for name, budget in budgets.items():
            self._accounts[name] = spending.account(self._commons.engine, name, budget, now)
        return wire.read_offer(body)

    def take(self, part: Whole | Proof) -> Verdict:
        """Take in one part."""
        account = self._accounts[self._own_account if self._is_own(part) else self._caller.account]
        if isinstance(part, Whole):
            account.charge(size=len(part.data))
        return self._node.take([part], self._caller.source, account)[0]

    def end(self, size: int) -> None:
        """Write down what it cost: where it had another form, that it came."""
        if self._accounts and all(account.is_settled for account in self._accounts.values()):
            self._accounts[self._caller.account].charge(size=size)
        for account in self._accounts.values():
            if not account.is_settled:
                account.settle()

    @property
    def _own_account(self) -> str:
        token = self._caller.token
        return "" if token is None else token_name(token.id)

    def _is_own(self, part: Whole | Proof) -> bool:
        if self._caller.token is None or not isinstance(part, Whole):
            return False
        claim = claim_of(part.data)
        return claim is not None and claim.key == self._own


def _from(first: bytes, rest: Iterator[bytes]) -> Iterator[bytes]:
    if first:
        yield first
    yield from rest
