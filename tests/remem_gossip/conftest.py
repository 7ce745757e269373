"""Memories that take part in exchanges, and what is checked of each at the end."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from remem.memory import items
from remem_testkit.command import Remem, remem_in_this_process
from remem_testkit.memories import Memory

Make = Callable[[int], Memory]


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    """Make memories by numbers; the items of each are those of what it holds, whatever happened to it."""
    made: list[Memory] = []

    def make(number: int) -> Memory:
        made.append(Memory(tmp_path / f"memory-{number}", number))
        return made[-1]

    yield make
    for one in made:
        assert items.check(one.db) == []
        one.close()


@pytest.fixture
def remem(remem_home: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]) -> Remem:
    """Run `remem` in a memory that is made, from a project that is opted in."""
    folder = remem_home.with_name("project")
    folder.mkdir()
    monkeypatch.chdir(folder)
    command = remem_in_this_process(monkeypatch, capfdbinary)
    assert command("init").status == 0
    assert command("project", "add").status == 0
    return command
