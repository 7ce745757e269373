"""What every answer to another node begins with: who signed the request, and its body as far as it may go."""

from __future__ import annotations

import asyncio
from datetime import datetime
from typing import Final

from starlette.requests import ClientDisconnect, Request

from remem_gossip.errors import GossipError
from remem_gossip.signatures import Signed, verify
from remem_server import errors

OCTETS: Final = "application/octet-stream"
LINES: Final = "application/x-ndjson"
JSON: Final = "application/json"

_SIGNS: Final = ("signature", "signature-input")
_LENGTH_DIGITS: Final = 20


def signed_by(request: Request, now: datetime) -> Signed | None:
    """Verify the signature of a request, if it has one.

    Raises:
        BadSignature: it is not good.
    """
    if not any(name in request.headers for name in _SIGNS):
        return None
    headers = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in request.headers.raw]
    return verify(request.method, bytes(request.scope["raw_path"]).decode("latin-1"), headers, now)


async def read_body(request: Request, most: int, seconds: float, bad: type[GossipError]) -> bytes:
    """Read a body, if it is no longer than it may be and comes in time.

    Args:
        request: whose.
        most: how many bytes it may have.
        seconds: how long it may take.
        bad: what a longer one is.

    Raises:
        GossipError: it is longer.
        CompressedBody, BodyTimeout, BodyIncomplete: it cannot be read.
    """
    if request.headers.get("content-encoding", "identity").strip().lower() != "identity":
        raise errors.CompressedBody("expected the plain bytes, got a content coding")
    declared = request.headers.get("content-length", "0")
    if len(declared) > _LENGTH_DIGITS or (declared.isdecimal() and int(declared) > most):
        raise bad(f"a body of at most {most} bytes", f"{declared[:_LENGTH_DIGITS]} bytes")
    data = bytearray()
    try:
        async with asyncio.timeout(seconds):
            async for chunk in request.stream():
                data += chunk
                if len(data) > most:
                    raise bad(f"a body of at most {most} bytes", "more")
    except TimeoutError:
        raise errors.BodyTimeout(f"expected the body within {seconds:g} seconds, got a part of it") from None
    except ClientDisconnect:
        raise errors.BodyIncomplete("expected the whole body, got a part of it") from None
    return bytes(data)
