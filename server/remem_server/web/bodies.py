"""Reading a request's body: plain, no longer than it may be, and in time, whoever sends it."""

from __future__ import annotations

import asyncio
from typing import Final

from starlette.requests import ClientDisconnect, Request

from remem.protocol import ProtocolError
from remem_gossip.errors import GossipError
from remem_server import errors

_LENGTH_DIGITS: Final = 20


async def read_body(request: Request, most: int, seconds: float, bad: type[ProtocolError | GossipError]) -> bytes:
    """Read a body, if it is no longer than it may be and comes in time.

    Args:
        request: whose.
        most: how many bytes it may have.
        seconds: how long it may take.
        bad: what a longer one is.

    Raises:
        ProtocolError, GossipError: it is longer.
        CompressedBody, BodyTimeout, BodyIncomplete: it cannot be read.
    """
    if request.headers.get("content-encoding", "identity").strip().lower() != "identity":
        raise errors.CompressedBody("expected the plain bytes, got a content coding")
    declared = request.headers.get("content-length", "0")
    if len(declared) > _LENGTH_DIGITS:
        raise bad(f"at most {most} bytes", f"a length of {len(declared)} digits")
    if declared.isdecimal() and int(declared) > most:
        raise bad(f"at most {most} bytes", f"{declared} bytes")
    data = bytearray()
    try:
        async with asyncio.timeout(seconds):
            async for chunk in request.stream():
                data += chunk
                if len(data) > most:
                    raise bad(f"at most {most} bytes", "more")
    except TimeoutError:
        raise errors.BodyTimeout(f"expected the body within {seconds:g} seconds, got a part of it") from None
    except ClientDisconnect:
        raise errors.BodyIncomplete("expected the whole body, got a part of it") from None
    return bytes(data)
