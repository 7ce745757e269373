"""What every request may use: one value, made once by `create_app`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import cast

from anyio import CapacityLimiter
from sqlalchemy import Engine
from starlette.requests import HTTPConnection

from remem_server.reading import Reader
from remem_server.settings import Clock, Settings


@dataclass(frozen=True, slots=True)
class Commons:
    """A running commons.

    Attributes:
        settings: what the operator decided.
        engine: the database.
        clock: the commons' clock.
        operators: the keys that answer for it, the node's own first.
        accepting: how many files are verified at once; more would only wait for each other.
    """

    settings: Settings
    engine: Engine
    clock: Clock
    operators: tuple[str, ...]
    accepting: CapacityLimiter = field(default_factory=lambda: CapacityLimiter(4))

    @property
    def reader(self) -> Reader:
        """How this commons reads the lessons that it holds."""
        return Reader(open=self.settings.open, revokers=frozenset(self.operators))

    @property
    def revalidate(self) -> str:
        """Let caches keep an answer and ask before using it; shared ones only where reading is free."""
        return "private, no-cache" if self.settings.private else "no-cache"


def commons_of(request: HTTPConnection) -> Commons:
    """Return the commons that a request came to."""
    return cast("Commons", request.app.state.commons)


def secret_of(request: HTTPConnection) -> str | None:
    """Return the bearer token of a request, None where it has none."""
    scheme, _, secret = request.headers.get("authorization", "").partition(" ")
    return secret.strip() or None if scheme.lower() == "bearer" else None
