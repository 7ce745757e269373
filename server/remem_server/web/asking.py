"""What a request carries besides its route: the commons that it came to, and the token that it shows."""

from __future__ import annotations

from typing import cast

from starlette.requests import HTTPConnection

from remem_server.opening.context import Commons


def commons_of(request: HTTPConnection) -> Commons:
    """Return the commons that a request came to."""
    return cast("Commons", request.app.state.commons)


def secret_of(request: HTTPConnection) -> str | None:
    """Return the bearer token of a request, None where it has none."""
    scheme, _, secret = request.headers.get("authorization", "").partition(" ")
    return secret.strip() or None if scheme.lower() == "bearer" else None
