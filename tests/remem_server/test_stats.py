"""The counts of what a commons holds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import func, select, update

from remem.protocol import RULES
from remem_server.answers import Stats
from remem_server.database import tables
from remem_server.database.engine import writing
from remem_server.files import tokens
from remem_server.opening.context import Commons
from remem_server.upkeep.stats import lessons_by_state, stats_of
from remem_testkit.command import Remem
from remem_testkit.files import NOW, file, key, lesson, sentence
from remem_testkit.filled import KNOWN, filled_commons, put
from remem_testkit.postgres import DATABASES
from remem_testkit.server import new_token, prepared


@pytest.fixture(scope="module", params=DATABASES)
def filled(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Commons]:
    with filled_commons(tmp_path_factory.mktemp("commons") / "data", request.param) as made:
        yield made


def test_everything_that_is_held_is_counted(filled: Commons) -> None:
    with filled.engine.connect() as connection:
        size = connection.execute(select(func.sum(func.length(tables.contents.c.data)))).scalar_one()
        acts = connection.execute(select(func.count()).select_from(tables.acts)).scalar_one()
    stats = stats_of(filled.database, NOW)
    assert (stats.revision, stats.files, stats.held, stats.blocked) == ("0003", 9, 8, 1)
    # Of the file that is not held the size is known, and takes nothing.
    assert stats.bytes == size
    assert stats.records == 16
    assert stats.statements == {"lesson": 5, "confirm": 7, "revoke": 2, "deny": 1}
    assert stats.skipped == 1
    assert stats.lessons == {"candidate": 2, "common": 1, "fading": 0, "removed": 0, "revoked": 1}
    assert stats.unlisted == 2
    assert (stats.principals, stats.equivocations, stats.acts) == (6, 1, acts)
    assert stats.database_bytes > stats.bytes
    assert stats.changes >= stats.files


def test_a_commons_without_anything_has_a_zero_for_each(tmp_path: Path, place: Callable[[str], dict[str, Any]]) -> None:
    with prepared(tmp_path / "data", **place("data")) as commons:
        stats = stats_of(commons.database, NOW)
    counts = (stats.files, stats.bytes, stats.records, stats.unlisted, stats.principals)
    assert counts == (0, 0, 0, 0, 0)
    assert not any((*stats.statements.values(), *stats.lessons.values(), *stats.tokens.values()))
    assert list(stats.lessons) == ["candidate", "common", "fading", "removed", "revoked"]


def test_tokens_are_counted_by_what_they_are_good_for(tmp_path: Path, place: Callable[[str], dict[str, Any]]) -> None:
    with prepared(tmp_path / "data", **place("data")) as commons:
        new_token(commons.engine)
        new_token(commons.engine)
        put(commons, file(key(1), []), new_token(commons.engine))
        with writing(commons.engine) as connection:
            tokens.revoke(connection, 1, NOW)
            tokens.create(connection, NOW, tokens.Terms(admin=True))
            tokens.create(connection, NOW, tokens.Terms(expires=NOW + timedelta(days=1)))
        now, later = (stats_of(commons.database, NOW + timedelta(days=days)).tokens for days in (0, 1))
    assert now == {"unused": 2, "bound": 1, "admin": 1, "expired": 0, "revoked": 1}
    assert later == {"unused": 1, "bound": 1, "admin": 1, "expired": 1, "revoked": 1}


@pytest.mark.parametrize(
    ("age", "state"),
    [
        (timedelta(0), "common"),
        (RULES.window, "common"),
        (RULES.window + timedelta(seconds=1), "fading"),
        (2 * RULES.window, "fading"),
        (2 * RULES.window + timedelta(seconds=1), "removed"),
    ],
)
def test_the_time_moves_a_lesson_without_a_write(filled: Commons, age: timedelta, state: str) -> None:
    with filled.engine.connect() as connection:
        of_lesson = select(tables.lessons.c.last_confirmed).where(tables.lessons.c.hash == KNOWN)
        last = connection.execute(of_lesson).scalar_one()
        counts = lessons_by_state(connection, last + age)
    assert counts[state] == 1
    assert sum(counts.values()) == 4


def test_the_command_prints_a_line_for_each_count(
    operator: Remem, tmp_path: Path, place: Callable[[str], dict[str, Any]]
) -> None:
    with prepared(tmp_path / "data", **place("data")) as commons:
        put(commons, file(key(1), [lesson(sentence(1))]))
    ended = operator("stats")
    assert (ended.status, ended.err) == (0, "")
    assert "statements: 1 lesson, 0 confirm, 0 revoke, 0 deny" in ended.out.splitlines()
    document = operator("stats", "--json").document
    assert document["statements"] == {"lesson": 1, "confirm": 0, "revoke": 0, "deny": 0}
    assert set(document) == set(Stats.model_fields)


def test_the_counts_are_read_and_nothing_is_written(filled: Commons) -> None:
    with writing(filled.engine) as connection:
        # A writer that waits for its own end: whoever wanted to write would wait for it.
        connection.execute(update(tables.meta).values(changes=tables.meta.c.changes))
        assert stats_of(filled.database, NOW).files == 9
