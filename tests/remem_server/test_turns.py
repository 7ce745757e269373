"""Turns: whoever asks for much waits for its own requests, while another asks for little."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from remem_server.errors import TooManyRequests
from remem_server.web import turns as rules
from remem_server.web.turns import Turns

HERE, THERE = "192.0.2.1", "192.0.2.2"


async def at_once(turns: Turns, number: int) -> int:
    """Return how many of the requests of one address were under way at once, at most."""
    under_way, most = 0, 0

    async def ask() -> None:
        nonlocal under_way, most
        turn = await turns.take(HERE)
        under_way += 1
        most = max(most, under_way)
        await asyncio.sleep(0)
        under_way -= 1
        if turn is not None:
            turn.end()

    await asyncio.gather(*(ask() for _ in range(number)))
    return most


def test_who_asks_for_much_takes_turns_while_another_asks_for_little() -> None:
    async def both() -> list[int]:
        turns = Turns()
        alone = await at_once(turns, 5)
        turns.note_little(THERE)
        return [alone, await at_once(turns, 5)]

    assert asyncio.run(both()) == [5, 1]


@pytest.mark.parametrize(
    ("askers", "number"), [([HERE], 5), ([HERE, HERE], 5), ([THERE, HERE, HERE], 1), ([HERE, THERE, HERE], 1)]
)
def test_what_it_asked_itself_before_makes_nobody_wait(askers: list[str], number: int) -> None:
    async def served() -> int:
        turns = Turns()
        for one in askers:
            turns.note_little(one)
        return await at_once(turns, 5)

    assert asyncio.run(served()) == number


def with_one_under_way(then: Callable[[Turns, rules.Turn], Awaitable[None]]) -> None:
    """Run the rest of a test while one address has its turn."""

    async def served() -> None:
        turns = Turns()
        turns.note_little(THERE)
        turn = await turns.take(HERE)
        assert turn is not None
        await then(turns, turn)

    asyncio.run(served())


def test_who_goes_away_before_its_turn_keeps_nobody_waiting() -> None:
    async def then(turns: Turns, turn: rules.Turn) -> None:
        gone, stays = (asyncio.create_task(turns.take(HERE)) for _ in range(2))
        await asyncio.sleep(0)
        gone.cancel()
        turn.end()
        await asyncio.wait_for(stays, 10)

    with_one_under_way(then)


def test_a_body_that_does_not_come_keeps_nobody_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rules, "_BODY_SECONDS", 0)

    async def then(turns: Turns, turn: rules.Turn) -> None:
        with turn.body():
            behind = await asyncio.wait_for(turns.take(HERE), 10)
        # The first one has no turn any more, and ends none.
        turn.end()
        last = asyncio.create_task(turns.take(HERE))
        await asyncio.sleep(0)
        assert not last.done()
        assert behind is not None
        behind.end()
        await asyncio.wait_for(last, 10)

    with_one_under_way(then)


def test_only_so_many_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rules, "WAITING_MOST", 2)

    async def then(turns: Turns, turn: rules.Turn) -> None:
        waiting = [asyncio.create_task(turns.take(HERE)) for _ in range(2)]
        await asyncio.sleep(0)
        with pytest.raises(TooManyRequests):
            await turns.take(HERE)
        turn.end()
        await asyncio.wait_for(waiting[0], 10)
        waiting[1].cancel()

    with_one_under_way(then)
