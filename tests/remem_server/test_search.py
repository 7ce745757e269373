"""Words and places: what a search finds, and in which order lists are, whatever the database."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import Engine, event

from remem.protocol import RULES, Policy, State
from remem.protocol.evidence import Count
from remem.protocol.state import rule
from remem_server.database.engine import is_postgres, writing
from remem_server.lessons import reading, search
from remem_server.lessons.listing import SEGMENTS, Cursor, Wanted
from remem_server.lessons.rows import Row, write_rows
from remem_testkit.files import NOW

DAY = timedelta(days=1)
TODAY = NOW.replace(hour=0)
N, W = RULES.confirmations, RULES.window


# --- words ---


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ("The lock  file was STALE.", "the lock file was stale"),
        ("`--no-cache` needs pip_tools>=7.4", "no cache needs pip tools 7 4"),
        ("ΟΔΟΣ Straße naïve", "οδοσ straße naïve"),
        ("x" * 70, "x" * 64),
        ("日本語 2²", "日本語 2²"),
        ("a'b\"c\\d:e&f|g!h(i)j*k", "a b c d e f g h i j k"),
        ("… — !", ""),
        ("", ""),
    ],
)
def test_a_word_is_a_run_of_letters_and_digits_of_the_normal_text(said: str, words: str) -> None:
    assert search.words_of(said) == words


def test_a_query_has_each_word_once_and_few_of_them() -> None:
    assert search.query_of("Lock the LOCK") == ("lock", "the")
    assert len(search.query_of(" ".join(f"w{number}" for number in range(32)))) == 32
    with pytest.raises(ValueError, match="expected at most 32 different words, got 33"):
        search.query_of(" ".join(f"w{number}" for number in range(33)))


SAID = [
    "The build of module 3 fails while `make` holds the lock.",
    "The lock file of module 31 was stale.",
    "日本語のファイル名 breaks the build; naïve Straße",
    "and or not near within :* 'quoted' \"double\" \\ back",
    "x" * 200,
]


@pytest.mark.parametrize(
    ("q", "expected"),
    [
        ("LOCK", [0, 1]),
        ("lock build", [0]),
        ("build   lock", [0]),
        ("module 3", [0]),
        ("modul", []),
        ("STRASSE", []),
        ("STRAße", [2]),
        ("日本語のファイル名", [2]),
        ("日本語", []),
        ("NAÏVE the", [2]),
        ("AND OR NOT NEAR", [3]),
        ("back\\ ' \" :*", [3]),
        ("x" * 64, [4]),
        ("x" * 300, [4]),
        ("x" * 63, []),
        ("…", []),
        ("", []),
    ],
)
def test_a_lesson_is_found_by_all_of_its_words_and_by_no_part_of_one(
    engine: Engine, q: str, expected: list[int]
) -> None:
    with writing(engine) as connection:
        write_rows(
            connection, {}, {f"{n:032x}": Row(Count(1), "k", "error", said, NOW) for n, said in enumerate(SAID)}, ()
        )
        found = reading.page(connection, Wanted(words=search.query_of(q)), None, 100, NOW)
    assert sorted(int(one.hash, 16) for one in found.lessons) == expected


@given(st.text())
def test_words_are_those_of_the_normal_text_alone(said: str) -> None:
    words = search.words_of(said)
    assert search.words_of(words) == words
    assert all(char.isalnum() for word in words.split() for char in word)


# --- places ---


times = st.integers(0, 47_846).map(lambda day: datetime(1970, 1, 1, tzinfo=UTC) + timedelta(days=day, hours=5))
small = st.integers(0, 8)
counts = st.builds(
    lambda confirmations, turned, trusted, last: Count(
        standing=1,
        revoking=turned + trusted,
        trusted=trusted,
        confirmations=confirmations,
        turned=min(turned, confirmations),
        last_confirmed=last if confirmations else None,
    ),
    st.one_of(small, st.integers(4_090, 5_000)),
    small,
    st.integers(0, 1),
    times,
)


def order(count: Count, updated: datetime, number: int) -> tuple[int, int, int, int]:
    """Say in other words where a lesson stands."""
    state, _cause = rule(count, Policy(), count.last_confirmed or NOW)
    grade = [State.COMMON, State.CANDIDATE, State.REVOKED].index(state)
    day = (count.last_confirmed or updated).date().toordinal()
    return grade, -min(count.confirmations, 4_095), -day, number


one_place = st.tuples(counts, times, st.integers(1, (1 << 33) - 1))


@given(one_place, one_place)
def test_a_place_orders_by_grade_confirmations_day_and_row(
    one: tuple[Count, datetime, int], other: tuple[Count, datetime, int]
) -> None:
    assert (search.place_of(*one) < search.place_of(*other)) == (order(*one) < order(*other))
    assert 0 <= search.place_of(*one) < 1 << 63


@given(one_place)
def test_a_place_is_in_the_range_of_its_grade(one: tuple[Count, datetime, int]) -> None:
    start, end = search.places_of(order(*one)[0])
    assert start <= search.place_of(*one) < end


# --- lists ---


def random_row(choose: random.Random) -> Row:
    confirmations = choose.choice([0, 1, 2, 3, 3, 4, 9])
    ages = [0, 1, 89, 90, 91, 179, 180, 181, 400]
    # A day of a list begins at midnight.
    last = TODAY - choose.choice(ages) * DAY - choose.choice([0, 1]) * timedelta(microseconds=1)
    count = Count(
        standing=choose.choice([0, 1, 1, 1, 2]),
        revoking=choose.choice([0, 0, 1, 3]),
        confirmations=confirmations,
        turned=choose.choice([0, 0, confirmations]),
        last_confirmed=last if confirmations else None,
    )
    if not count.standing:
        return Row(count)
    words = choose.sample(["lock", "build", "cache", "stale"], 2)
    return Row(count, "k", choose.choice(["error", "correction"]), " ".join(words), NOW - choose.choice(ages) * DAY)


def listed_in_order(rows: dict[str, Row], wanted: Wanted) -> list[str]:
    """Sort every row that is wanted, with no index and no place."""
    found = []
    for number, (hash_, row) in enumerate(rows.items(), 1):
        if row.text is None or row.updated is None:
            continue
        state, _cause = rule(row.sums, Policy(), TODAY)
        fits = (
            wanted.state in (None, state)
            and wanted.kind in (None, row.kind)
            and (wanted.words is None or (wanted.words and set(wanted.words) <= set(row.text.split())))
        )
        if fits:
            place = order(row.sums, row.updated, number)
            found.append(((SEGMENTS.index(state), place), hash_))
    return [hash_ for _place, hash_ in sorted(found)]


@pytest.mark.parametrize("seed", range(2))
def test_every_list_is_in_order_and_its_pages_miss_nothing(engine: Engine, seed: int) -> None:
    choose = random.Random(seed)
    rows = {f"{choose.getrandbits(128):032x}": random_row(choose) for _ in range(70)}
    with writing(engine) as connection:
        write_rows(connection, {}, rows, ())
    wants = [
        Wanted(state, kind, words)
        for state in (None, *State)
        for kind in (None, "error")
        for words in (None, ("lock",), ("build", "stale"), ())
    ]
    with engine.connect() as connection:
        for wanted in wants:
            expected = listed_in_order(rows, wanted)
            for most in (1, 7, 500) if wanted == Wanted() else (5,):
                assert walk(connection, wanted, most) == expected, wanted


def walk(connection: Any, wanted: Wanted, most: int) -> list[str]:
    seen: list[str] = []
    cursor: Cursor | None = None
    while True:
        page = reading.page(connection, wanted, cursor, most, NOW)
        seen += [one.hash for one in page.lessons]
        if page.following is None:
            return seen
        assert len(page.lessons) == most, "a page is full, unless it is the last"
        cursor = Cursor.parse(str(page.following))


def fill_with_confirmed(engine: Engine, number: int, last: datetime) -> None:
    """Make the rows of so many lessons, confirmed by three to nine on one day."""
    said = {
        f"{n:032x}": Row(Count(standing=1, confirmations=3 + n % 7, last_confirmed=last), "k", "error", f"w{n}", last)
        for n in range(number)
    }
    with writing(engine) as connection:
        write_rows(connection, {}, said, ())
    if is_postgres(engine):
        with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            connection.exec_driver_sql("ANALYZE lessons")


def asked_of(engine: Engine, wanted: Wanted) -> list[tuple[str, Any]]:
    """Return the statements by which a page of ten is listed."""
    asked: list[tuple[str, Any]] = []

    def hear(_connection: Any, _cursor: Any, statement: str, parameters: Any, *_rest: Any) -> None:
        asked.append((statement, parameters))

    event.listen(engine, "before_cursor_execute", hear)
    with engine.connect() as connection:
        reading.page(connection, wanted, None, 10, NOW)
    event.remove(engine, "before_cursor_execute", hear)
    return [one for one in asked if "place" in one[0]]


def steps_of(engine: Engine, statement: str, parameters: Any) -> int:
    """Count what a statement looks at: rows on PostgreSQL, instructions of its machine on SQLite."""
    with engine.connect() as connection:
        if is_postgres(engine):
            explained = f"EXPLAIN (ANALYZE, FORMAT JSON) {statement}"
            return rows_of(connection.exec_driver_sql(explained, parameters).scalar_one()[0]["Plan"])
        steps = 0

        def step() -> None:
            nonlocal steps
            steps += 1

        driver: Any = connection.connection.driver_connection
        driver.set_progress_handler(step, 1)
        try:
            connection.exec_driver_sql(statement, parameters).all()
        finally:
            driver.set_progress_handler(None, 0)
        return steps


def rows_of(plan: dict[str, Any]) -> int:
    passed_over = plan.get("Rows Removed by Filter", 0) + plan.get("Rows Removed by Index Recheck", 0)
    return int((plan["Actual Rows"] + passed_over) * plan["Actual Loops"]) + sum(map(rows_of, plan.get("Plans", ())))


@pytest.mark.parametrize("days", [0, 100, 400], ids=["common", "fading", "removed"])
def test_a_page_costs_no_more_where_many_confirmed_lessons_are_in_another_state(engine: Engine, days: int) -> None:
    most = 5_000
    fill_with_confirmed(engine, most, TODAY - days * DAY)
    for wanted in (Wanted(state, kind) for state in (None, *State) for kind in (None, "error")):
        steps = [steps_of(engine, *one) for one in asked_of(engine, wanted)]
        # A page of ten, seven runs: a walk through all would take at least one step for each lesson.
        assert steps
        assert max(steps) < most / 4, (wanted, steps)


def test_a_search_is_read_in_order_and_never_sorted(engine: Engine) -> None:
    if is_postgres(engine):
        pytest.skip("its planner chooses by how many rows there are")
    with engine.connect() as connection:
        steps = [
            step[3]
            for statement, parameters in asked_of(engine, Wanted(words=("lock",)))
            for step in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", parameters)
        ]
    assert len(steps) >= len(SEGMENTS)
    assert all("SEARCH lessons" in step or "VIRTUAL TABLE INDEX" in step for step in steps), steps
