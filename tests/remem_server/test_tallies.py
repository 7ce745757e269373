"""The table `lessons` always says what counting everything from nothing says, whatever happened in whatever order."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import contextmanager
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Engine, event

from remem_server.database.engine import writing
from remem_server.files import tokens
from remem_server.lessons import said, tallies
from remem_server.lessons.policy import CountingPolicy
from remem_server.lessons.rows import read_rows
from remem_testkit.counting import CLOSED, DAY, HASHES, OPEN, TEXTS, CountedCommons, empty
from remem_testkit.files import NOW, confirmation, denial, key, lesson, revocation
from remem_testkit.server import new_token

KEYS = range(1, 6)
# How many days ago each of some keys confirmed a lesson.
AGES = {3: 1, 4: 2, 5: 3, 6: 5, 7: 6, 8: 0}
POLICIES = (OPEN, CLOSED, CountingPolicy(revokers=frozenset({key(1).public.hex})), CountingPolicy(open=True))


hashes_said = st.sampled_from(HASHES[:2])
ages = st.integers(0, 5).map(lambda days: NOW - days * DAY)
spellings = st.sampled_from([str, str.upper, "  {}".format])
record = st.one_of(
    st.builds(lambda one, spell, at: lesson(spell(one), at=at), st.sampled_from(TEXTS[:2]), spellings, ages),
    st.builds(lambda one, at: confirmation(one, at=at), hashes_said, ages),
    st.builds(lambda one, at: confirmation(one, at=at), hashes_said, ages),
    st.builds(revocation, hashes_said),
    st.builds(lambda number: denial(key(number).public.hex), st.sampled_from(KEYS)),
)


def said_once(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    named = {
        (name, one["hash"] if name == "text" else one[name]): one
        for one in records
        for name in ("text", "confirm", "revoke", "deny")
        if name in one
    }
    return list(named.values())


contents = st.lists(record, max_size=6).map(said_once)
number = st.sampled_from(KEYS)
principals = st.sampled_from(["p", "p", "p", "q", None])
step = st.one_of(
    st.tuples(st.just("put"), number, contents),
    st.tuples(st.just("draft"), number, contents),
    *[st.tuples(st.just("admit"), number, contents, principals)] * 5,
    st.tuples(st.just("revoke"), st.integers(0, 9)),
    st.tuples(st.just("drop"), number),
    st.tuples(st.just("again"), number),
    st.tuples(st.just("policy"), st.sampled_from(POLICIES)),
)


def take(commons: CountedCommons, what: tuple[Any, ...]) -> None:
    match what:
        case ("put", who, said):
            commons.put(who, said, None)
        case ("draft", who, said):
            commons.put(who, said, None, sealed=False)
        case ("admit", who, said, principal):
            commons.put(who, said, new_token(commons.engine, principal=principal))
        case ("revoke", index):
            commons.revoke(index)
        case ("drop", who):
            commons.drop(who)
        case ("again", who):
            commons.again(who)
        case ("policy", policy):
            tallies.bring_up(commons.engine, policy)
        case _:
            raise AssertionError(what)


@given(policy=st.sampled_from([OPEN, CLOSED, CLOSED]), steps=st.lists(step, min_size=4, max_size=14))
@settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large],
)
def test_the_rows_say_what_counting_from_nothing_says(
    engine: Engine, policy: CountingPolicy, steps: list[tuple[Any, ...]]
) -> None:
    empty(engine, policy)
    commons = CountedCommons(engine)
    for one in steps:
        take(commons, one)
        commons.check()


@pytest.mark.parametrize(
    ("policy", "denied", "revoked", "days"),
    [
        (CLOSED, [], [], 5),
        (CLOSED, [], [3], 2),
        (CLOSED, [3], [], 2),
        (CLOSED, [6], [], 6),
        (CLOSED, [], [6], 6),
        (OPEN, [], [], 2),
        (OPEN, [4], [], 3),
    ],
    ids=[
        "not of a fellow of its publisher, nor of a stranger",
        "of a former fellow",
        "of a fellow of one who is denied",
        "not of one who is denied",
        "not of one who was admitted",
        "open: not of its publisher",
        "open: not of one who is denied",
    ],
)
def test_where_the_last_confirmation_goes_the_last_that_counts_is_taken(
    engine: Engine, policy: CountingPolicy, denied: list[int], revoked: list[int], days: int
) -> None:
    empty(engine, policy)
    commons = CountedCommons(engine)
    said = {number: [confirmation(HASHES[0], at=NOW - number_days * DAY)] for number, number_days in AGES.items()}
    said[3].append(lesson(TEXTS[0]))
    for number, principal in ((3, "p"), (4, "p"), (5, None), (6, "q"), (7, "r"), (8, "s")):
        secret = None if principal is None else new_token(engine, principal=principal)
        commons.put(number, said[number], secret)
    commons.put(1, [denial(key(number).public.hex) for number in denied], None)
    with writing(engine) as connection:
        ids = {one.key: one.id for one in tokens.list_all(connection)}
        for number in revoked:
            tokens.revoke(connection, ids[key(number).public.hex], NOW)
    commons.put(8, [], None)
    commons.check()
    with engine.connect() as connection:
        assert read_rows(connection, HASHES)[HASHES[0]].row.sums.last_confirmed == NOW - days * DAY


def test_whoever_is_found_to_be_of_a_publishers_principal_confirms_it_no_more(engine: Engine) -> None:
    empty(engine)
    commons = CountedCommons(engine)
    commons.put(3, [lesson(TEXTS[0])], None)
    commons.put(4, [confirmation(HASHES[0])], new_token(engine, principal="p"))
    seen = [commons.confirmations(HASHES[0])]
    commons.put(3, [lesson(TEXTS[0])], new_token(engine, principal="p"))
    seen.append(commons.confirmations(HASHES[0]))
    commons.check()
    commons.revoke(1)
    seen.append(commons.confirmations(HASHES[0]))
    commons.check()
    assert seen == [1, 0, 1]


@pytest.mark.parametrize("way", ["withdrawn", "left out", "denied", "dropped"])
@pytest.mark.parametrize("between", ["stands", "withdrawn beside its lesson", "denied"])
def test_where_the_publication_that_is_shown_goes_the_lowest_that_stands_is_shown(
    engine: Engine, way: str, between: str
) -> None:
    empty(engine)
    commons = CountedCommons(engine)
    first, second, third = sorted((3, 4, 5), key=lambda number: key(number).public.hex)
    for number, spell in ((first, str), (second, str.upper), (third, "  {}".format)):
        commons.put(number, [lesson(spell(TEXTS[0]))], None)
    if between == "withdrawn beside its lesson":
        commons.put(second, [lesson(TEXTS[0].upper()), revocation(HASHES[0])], None)
    denied = [denial(key(second).public.hex)] if between == "denied" else []
    commons.put(1, denied, None)
    match way:
        case "withdrawn":
            commons.put(first, [revocation(HASHES[0])], None)
        case "left out":
            commons.put(first, [], None)
        case "denied":
            commons.put(1, [*denied, denial(key(first).public.hex)], None)
        case _:
            commons.drop(first)
    commons.check()
    with engine.connect() as connection:
        row = read_rows(connection, HASHES)[HASHES[0]].row
    assert row.shown == key(second if between == "stands" else third).public.hex


# --- what a change costs ---


@pytest.mark.parametrize("policy", [OPEN, CLOSED], ids=["open", "closed"])
def test_one_more_confirmation_reads_nothing_of_what_others_said(
    engine: Engine, policy: CountingPolicy, monkeypatch: pytest.MonkeyPatch
) -> None:
    empty(engine, policy)
    commons = CountedCommons(engine)
    commons.put(0, [lesson(TEXTS[0])], None)
    for other in range(10, 40):
        commons.put(other, [confirmation(HASHES[0])], new_token(engine))
    read: list[Any] = []

    def fetched(lines: Any) -> Any:
        read.extend(lines)
        return words_of(lines)

    words_of = said.stances_of
    monkeypatch.setattr(said, "stances_of", fetched)
    commons.put(40, [confirmation(HASHES[0])], new_token(engine))
    assert len(read) == 1
    monkeypatch.undo()
    commons.check()
    with engine.connect() as connection:
        assert read_rows(connection, HASHES)[HASHES[0]].row.sums.confirmations == 31


@contextmanager
def watched(engine: Engine, heard: Callable[[str], None]) -> Any:
    """Hear of every statement that the database is asked."""

    def hear(_connection: Any, _cursor: Any, statement: str, *_rest: Any) -> None:
        heard(statement)

    event.listen(engine, "before_cursor_execute", hear)
    try:
        yield
    finally:
        event.remove(engine, "before_cursor_execute", hear)


def test_what_did_not_change_is_not_written(engine: Engine) -> None:
    empty(engine)
    commons = CountedCommons(engine)
    commons.put(3, [lesson(one) for one in TEXTS], None)
    asked: list[str] = []
    with watched(engine, asked.append):
        commons.put(3, [lesson(one, seen=7) for one in TEXTS], None)
    assert not [one for one in asked if "lessons" in one and not one.startswith("SELECT")]


def test_a_count_that_is_up_to_date_writes_nothing(engine: Engine) -> None:
    empty(engine)
    CountedCommons(engine).put(3, [lesson(TEXTS[0])], None)
    asked: list[str] = []
    with watched(engine, asked.append):
        tallies.bring_up(engine, CLOSED)
    assert all(one.startswith("SELECT") for one in asked if not one.startswith("BEGIN"))
