"""What a peer may cost in a night."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from remem_gossip.budget import Allowance, Budget, night_of

BUDGET = Budget(bytes=100, checks=10, origins=2)


@pytest.mark.parametrize(
    ("spent", "is_open"),
    [
        (Budget(), True),
        (Budget(bytes=99, checks=9, origins=2), True),
        (Budget(bytes=100), False),
        (Budget(checks=10), False),
        (Budget(bytes=10**9, checks=10**9, origins=10**9), False),
    ],
    ids=["nothing was spent", "something is left", "no bytes are left", "no checks are left", "more was spent"],
)
def test_an_allowance_is_open_until_its_bytes_or_checks_are_spent(spent: Budget, is_open: bool) -> None:
    assert Allowance(BUDGET, spent).is_open is is_open


def test_newcomers_run_out_by_themselves() -> None:
    allowance = Allowance(BUDGET)
    allowance.charge(origins=1)
    assert allowance.origins == 1
    allowance.charge(origins=5)
    assert allowance.origins == 0
    assert allowance.is_open, "updates of known keys still come"


def test_what_is_charged_adds_up() -> None:
    allowance = Allowance(BUDGET, Budget(bytes=1, checks=1, origins=1))
    allowance.charge(size=10)
    allowance.charge(checks=3, origins=1)
    assert allowance.spent == Budget(bytes=11, checks=4, origins=2)


def test_a_night_is_a_day_of_utc() -> None:
    midnight = datetime(2026, 3, 1, tzinfo=UTC)
    assert night_of(midnight) == night_of(midnight + timedelta(hours=23, minutes=59))
    assert night_of(midnight) == night_of(midnight - timedelta(seconds=1)) + 1
