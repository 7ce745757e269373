"""What every request and every command may use: one value, made once by `opening.open_commons`."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import Engine

from remem.protocol import SigningKey
from remem_server.database.engine import Database
from remem_server.settings import Clock, Settings


@dataclass(frozen=True, slots=True)
class Commons:
    """A commons that is open.

    Attributes:
        settings: what the operator decided.
        database: where everything is kept.
        clock: the commons' clock.
        key: the key of this node.
        operators: the keys that answer for it, the node's own first.
    """

    settings: Settings
    database: Database
    clock: Clock
    key: SigningKey
    operators: tuple[str, ...]

    @property
    def engine(self) -> Engine:
        """Where the database is written, and read by whoever writes."""
        return self.database.engine

    @property
    def reads(self) -> Engine:
        """Where the database is only read; it may be a moment behind."""
        return self.database.reads

    @property
    def revalidate(self) -> str:
        """Let caches keep an answer and ask before using it; shared ones only where reading is free."""
        return "private, no-cache" if self.settings.private else "no-cache"
