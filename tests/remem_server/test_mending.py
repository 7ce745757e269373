"""Files that are not whole here: what was damaged or let go is stored when it comes again, and nothing older is."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import Engine, select

from remem.protocol import Verdict, digest_of
from remem_server.database import changes, tables
from remem_server.database.engine import writing
from remem_server.errors import Blocked
from remem_server.files import store
from remem_server.files.accept import Accepted, accept_file
from remem_testkit.files import NOW, draft_file, file, key, lesson, sentence
from remem_testkit.server import new_token, verify_everything_stored

ME = key(1)
SECOND = timedelta(seconds=1)
DATA = file(ME, [lesson(sentence(1)), lesson(sentence(2))])


def take(engine: Engine, data: bytes, **options: Any) -> Accepted:
    whole = {"name": ME.public.hex, "secret": None, "token_needed": False, "now": NOW, **options}
    return accept_file(engine, data, **whole)


def drop(engine: Engine) -> None:
    with writing(engine) as connection:
        changes.lock(connection)
        store.drop(connection, ME.public.hex)


@pytest.mark.parametrize("data", [DATA, draft_file(ME, [lesson(sentence(1))])], ids=["sealed", "draft"])
@pytest.mark.parametrize("damage", [{"data": b"{}\n"}, {"data": b""}], ids=["other bytes", "no bytes"])
def test_a_file_that_was_damaged_is_mended_by_the_same_file(
    engine: Engine, data: bytes, damage: dict[str, Any]
) -> None:
    take(engine, data)
    with writing(engine) as connection:
        connection.execute(tables.contents.update().values(damage))
        connection.execute(tables.statements.delete())
    assert take(engine, data).verdict is Verdict.UNCHANGED
    (stands,) = verify_everything_stored(engine, NOW)
    assert stands.data == data


def test_a_file_that_is_whole_is_not_stored_again(engine: Engine) -> None:
    take(engine, DATA)
    with engine.connect() as connection:
        before = store.index(connection, 0, 10)
    take(engine, DATA, now=NOW + SECOND)
    with engine.connect() as connection:
        assert store.index(connection, 0, 10) == before


def test_of_a_file_that_was_let_go_the_version_stays(engine: Engine) -> None:
    take(engine, DATA)
    drop(engine)
    with engine.connect() as connection:
        found = store.find(connection, ME.public.hex)
        assert found is not None
        assert (found.held, found.size) == (False, len(DATA))
        assert store.index(connection, 0, 10) == []
        for table in (tables.contents, tables.statements, tables.skipped, tables.lessons):
            assert connection.execute(select(table)).all() == []
    assert take(engine, file(ME, [], at=NOW - SECOND)).verdict is Verdict.OLDER


@pytest.mark.parametrize("second", [0, 1], ids=["the same", "a newer one"])
def test_a_file_that_was_let_go_may_come_again(engine: Engine, second: int) -> None:
    take(engine, DATA)
    drop(engine)
    again = DATA if second == 0 else file(ME, [lesson(sentence(3))], at=NOW + SECOND)
    assert take(engine, again).verdict is (Verdict.UNCHANGED if second == 0 else Verdict.NEWER)
    (stands,) = verify_everything_stored(engine, NOW)
    assert stands.data == again
    with engine.connect() as connection:
        assert len(store.index(connection, 0, 10)) == 1


def test_of_a_file_that_was_let_go_no_equivocation_is_proved(engine: Engine) -> None:
    low, high = sorted([DATA, file(ME, [lesson(sentence(3))])], key=digest_of)
    take(engine, low)
    drop(engine)
    assert take(engine, high).verdict is Verdict.EQUIVOCATION_TAKEN
    with engine.connect() as connection:
        assert connection.execute(select(tables.equivocations)).all() == []


def test_the_same_file_mends_and_binds_no_token(engine: Engine) -> None:
    take(engine, DATA)
    drop(engine)
    take(engine, DATA, secret=new_token(engine))
    with engine.connect() as connection:
        assert connection.execute(select(tables.tokens.c.key)).scalars().all() == [None]


@pytest.mark.parametrize("known", [False, True], ids=["never seen", "held before"])
@pytest.mark.parametrize("name", [ME.public.hex, ME.public.origin], ids=["key", "origin"])
def test_a_blocked_key_publishes_nothing(engine: Engine, name: str, *, known: bool) -> None:
    if known:
        take(engine, DATA)
        drop(engine)
    with writing(engine) as connection:
        row = {"key": ME.public.hex, "reason": "it is spam", "at": NOW}
        connection.execute(tables.blocks.insert(), row)
    with pytest.raises(Blocked, match="it is spam"):
        take(engine, file(ME, [], at=NOW + SECOND), name=name)
    assert verify_everything_stored(engine, NOW) == []


class TooMany(Exception):
    """No more keys today."""


def test_whoever_counts_new_keys_hears_of_each_once_and_may_refuse_it(engine: Engine) -> None:
    heard: list[int] = []
    take(engine, DATA, when_new=lambda: heard.append(1))
    take(engine, file(ME, [], at=NOW + SECOND), when_new=lambda: heard.append(2))
    assert heard == [1]

    def refuse() -> None:
        raise TooMany

    with pytest.raises(TooMany):
        take(engine, file(key(2), []), name=key(2).public.hex, when_new=refuse)
    assert len(verify_everything_stored(engine, NOW)) == 1
