"""The number of the next seal."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from remem.protocol import RULES, SigningKey, accept, compose
from remem.protocol.times import unix_seconds
from remem.sharing.seal import next_seal

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
SECONDS = unix_seconds(NOW)
AHEAD = RULES.seal_ahead_of_writer
KEY = SigningKey.from_seed(b"\1" * 32)

moments = st.integers(1_000, 110 * 365 * 86_400_000).map(
    lambda ms: datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=ms)
)
numbers = st.lists(
    st.one_of(
        st.integers(1, RULES.last_seal),
        st.integers(SECONDS - 200_000, SECONDS + 200_000),
        st.just(RULES.last_seal),
    )
)


@given(moments, numbers)
def test_the_next_seal_is_above_every_own_one_that_is_not_far_ahead(now: datetime, held: list[int]) -> None:
    number = next_seal(now, held).number
    assert number >= unix_seconds(now)
    assert all(number > one for one in held if one < unix_seconds(now) + AHEAD)


@given(moments, numbers)
def test_the_next_seal_goes_no_further_than_it_must(now: datetime, held: list[int]) -> None:
    number = next_seal(now, held).number
    assert number == unix_seconds(now) or number - 1 in held
    assert number <= unix_seconds(now) + AHEAD


@given(moments, numbers)
def test_a_file_under_the_next_seal_is_accepted_by_a_clock_that_is_not_behind(now: datetime, held: list[int]) -> None:
    seal = next_seal(now, held)
    data = compose(KEY, [], number=seal.number, at=seal.at)
    assert accept(data, now=now).version.seal == seal.number


@given(st.lists(st.integers(0, 86_400), max_size=40))
def test_writers_in_a_hurry_never_give_a_number_twice_and_are_not_deferred(steps: list[int]) -> None:
    now, held = NOW, [SECONDS]
    for step in steps:
        now += timedelta(seconds=step / 1_000)
        seal = next_seal(now, held)
        assert seal.number not in held
        held.append(seal.number)
        accept(compose(KEY, [], number=seal.number, at=seal.at), now=now)


def test_numbers_that_were_burnt_are_left_aside() -> None:
    assert next_seal(NOW, [SECONDS + AHEAD]).number == SECONDS
    assert next_seal(NOW, [SECONDS + AHEAD - 1]).number == SECONDS + AHEAD
    assert next_seal(NOW, [RULES.last_seal, 7]).number == SECONDS


def test_the_time_goes_ahead_only_as_far_as_the_number_needs() -> None:
    assert next_seal(NOW, [SECONDS + 86_399]).at == NOW
    assert next_seal(NOW, [SECONDS + 86_409]).at == NOW + timedelta(seconds=10)
