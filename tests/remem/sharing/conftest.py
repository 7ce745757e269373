"""What the tests of sharing share: memories with real homes, and a folder as their commons."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from remem.memory import items
from remem_testkit.memories import Memory


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Callable[[int], Memory]]:
    """Return a function that makes the memory of a number, or returns it again; its items are checked at the end."""
    made: dict[int, Memory] = {}

    def memory(number: int) -> Memory:
        if number not in made:
            made[number] = Memory(tmp_path / f"memory-{number}", number)
        return made[number]

    yield memory
    for one in made.values():
        assert items.check(one.db) == []
        one.close()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return an empty folder that is a commons."""
    path = tmp_path / "commons"
    path.mkdir()
    return path
