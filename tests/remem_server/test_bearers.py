"""Whose token it is: what a replica has not heard of, and when a use is noted."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import delete, select

from remem_server.database.engine import writing
from remem_server.database.tables import tokens
from remem_server.errors import TokenUnknown
from remem_server.opening.context import Commons
from remem_server.web.bearers import bearer_of
from remem_server.web.uses import Uses
from remem_testkit.server import HandClock, ServedCommons

Start = Callable[..., ServedCommons]


@pytest.mark.parametrize("database", ["postgres"], indirect=True)
def test_a_token_that_the_replica_has_not_heard_of_is_asked_of_the_primary(start: Start) -> None:
    primary, behind = start(), start("behind")
    token = primary.token()
    settings = primary.settings.model_copy(update={"replica_url": behind.settings.database_url})
    database = replace(primary.commons.database, reads=behind.engine)
    with_replica: Commons = replace(primary.commons, settings=settings, database=database)
    assert bearer_of(with_replica, token).id == 1
    with pytest.raises(TokenUnknown):
        bearer_of(with_replica, "remem_x")
    without: Commons = replace(with_replica, settings=primary.settings)
    with pytest.raises(TokenUnknown):
        bearer_of(without, token)


def test_a_use_that_was_not_noted_is_noted_a_minute_later(commons: ServedCommons) -> None:
    clock = commons.clock
    assert isinstance(clock, HandClock)
    token = bearer_of(commons.commons, commons.token())
    uses = Uses(commons.commons)

    def used() -> Any:
        with commons.engine.connect() as connection:
            return connection.execute(select(tokens.c.used)).scalar_one()

    def rename(one: str, other: str) -> None:
        with writing(commons.engine) as connection:
            connection.exec_driver_sql(f"ALTER TABLE {one} RENAME TO {other}")

    rename("tokens", "lost")
    asyncio.run(uses.note(token))
    rename("lost", "tokens")
    asyncio.run(uses.note(token))
    assert used() is None
    clock.advance(timedelta(minutes=1))
    asyncio.run(uses.note(token))
    assert used() is not None


def test_what_is_kept_of_uses_is_a_day_s(commons: ServedCommons) -> None:
    clock = commons.clock
    assert isinstance(clock, HandClock)
    uses = Uses(commons.commons)
    for _ in range(3):
        asyncio.run(uses.note(bearer_of(commons.commons, commons.token())))
        with writing(commons.engine) as connection:
            connection.execute(delete(tokens))
        clock.advance(timedelta(days=1))
    assert len(uses._again) == 1
