"""What whoever sends files cost this commons in a night, and may still cost (DESIGN section 5).

A peer has one account, whether it is asked or offers. All that are no peers share one, which is small: keys are free,
and whoever has one account has many. Of a token, the file of its own key has an account beside it, so that what
strangers bring does not keep it out.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from sqlalchemy import Connection, bindparam, delete, select
from sqlalchemy.dialects import postgresql, sqlite

from remem_gossip.budget import Allowance, Budget, night_of
from remem_server.database.engine import is_postgres
from remem_server.database.tables import spent
from remem_server.settings import Settings

STRANGERS: Final = "strangers"
STRANGERS_PART: Final = 12
"""Strangers together get one part in so many of what a peer may cost."""

OWN_FILE: Final = Budget(bytes=64 * 1_048_576, checks=200_000, origins=1)
"""What the own file of a token's bearer may cost."""

_CHECKS: Final = 4_000_000
_MEGABYTE: Final = 1_000_000
_NIGHTS_KEPT: Final = 2
_SPENT: Final = select(spent.c.bytes, spent.c.checks, spent.c.origins).where(
    spent.c.account == bindparam("account"), spent.c.night == bindparam("night")
)
_FORGET: Final = delete(spent).where(spent.c.night <= bindparam("before"))


def _adding(insert: Any) -> Any:
    more = {name: spent.c[name] + insert.excluded[name] for name in Budget.__slots__}
    return insert.on_conflict_do_update(index_elements=["account", "night"], set_=more)


_ADD: Final = {True: _adding(postgresql.insert(spent)), False: _adding(sqlite.insert(spent))}


def budget_of_peer(settings: Settings) -> Budget:
    """Say what one peer may cost in a night."""
    return Budget(settings.gossip_megabytes * _MEGABYTE, _CHECKS, settings.gossip_newcomers)


def budget_of_strangers(settings: Settings) -> Budget:
    """Say what all others together may cost in a night."""
    whole = budget_of_peer(settings)
    return Budget(*(max(1, getattr(whole, name) // STRANGERS_PART) for name in Budget.__slots__))


def allowance(connection: Connection, account: str, budget: Budget, now: datetime) -> Allowance:
    """Return what is left of a budget tonight."""
    row = connection.execute(_SPENT, {"account": account, "night": night_of(now)}).one_or_none()
    return Allowance(budget, None if row is None else Budget(*row))


def note(connection: Connection, account: str, before: Budget, after: Budget, now: datetime) -> None:
    """Add to an account what was spent between two moments of an allowance."""
    more = {name: getattr(after, name) - getattr(before, name) for name in Budget.__slots__}
    if any(more.values()):
        row = {"account": account, "night": night_of(now), **more}
        connection.execute(_ADD[is_postgres(connection)], row)


def forget_old(connection: Connection, now: datetime) -> None:
    """Take out what past nights cost."""
    connection.execute(_FORGET, {"before": night_of(now) - _NIGHTS_KEPT})
