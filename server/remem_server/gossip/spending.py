"""What whoever sends files cost this commons in a night, and may still cost (DESIGN section 5).

A peer has one account, whether it is asked or offers. All that are no peers share one, which is small: keys are free,
and whoever has one account has many. Of a token, the file of its own key has an account beside it, so that what
strangers bring does not keep it out.

Several servers of one commons may spend of an account at once. Each adds what it spent by one statement, which tells it
what all of them spent by then (`remem_gossip/account.py`).
"""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime
from typing import Any, Final

from sqlalchemy import Connection, Engine, bindparam, delete, select
from sqlalchemy.dialects import postgresql, sqlite

from remem_gossip.account import Account
from remem_gossip.budget import Budget, night_of
from remem_server.database.engine import is_postgres, writing
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
    changed = insert.on_conflict_do_update(index_elements=["account", "night"], set_=more)
    return changed.returning(*(spent.c[name] for name in Budget.__slots__))


_ADD: Final = {True: _adding(postgresql.insert(spent)), False: _adding(sqlite.insert(spent))}


def budget_of_peer(settings: Settings) -> Budget:
    """Say what one peer may cost in a night."""
    return Budget(settings.gossip_megabytes * _MEGABYTE, _CHECKS, settings.gossip_newcomers)


def budget_of_strangers(settings: Settings) -> Budget:
    """Say what all others together may cost in a night."""
    whole = budget_of_peer(settings)
    return Budget(*(max(1, getattr(whole, name) // STRANGERS_PART) for name in Budget.__slots__))


def account(engine: Engine, name: str, budget: Budget, now: datetime) -> Account:
    """Open an account for tonight."""
    of_tonight = {"account": name, "night": night_of(now)}

    def add(more: Budget) -> Budget:
        if more == Budget():
            with engine.connect() as connection:
                row = connection.execute(_SPENT, of_tonight).one_or_none()
            return Budget() if row is None else Budget(*row)
        with writing(engine) as connection:
            return Budget(*connection.execute(_ADD[is_postgres(connection)], {**of_tonight, **asdict(more)}).one())

    return Account(budget, add)


def forget_old(connection: Connection, now: datetime) -> None:
    """Take out what past nights cost."""
    connection.execute(_FORGET, {"before": night_of(now) - _NIGHTS_KEPT})
