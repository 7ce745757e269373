"""What every answer to another node begins with: who signed the request."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from starlette.requests import Request

from remem_gossip.signatures import Signed, verify

_SIGNS: Final = ("signature", "signature-input")


def signed_by(request: Request, now: datetime) -> Signed | None:
    """Verify the signature of a request, if it has one.

    Raises:
        BadSignature: it is not good.
    """
    if not any(name in request.headers for name in _SIGNS):
        return None
    headers = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in request.headers.raw]
    return verify(request.method, bytes(request.scope["raw_path"]).decode("latin-1"), headers, now)
