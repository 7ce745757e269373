"""The command in this process: the words a person types, and what comes back."""

from __future__ import annotations

from pathlib import Path

import pytest

from remem_testkit.command import Remem, remem_in_this_process


@pytest.fixture
def remem(remem_home: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]) -> Remem:
    """Run `remem` with these words, and with these bytes on standard input, in a home of the test's own."""
    return remem_in_this_process(monkeypatch, capfdbinary)


@pytest.fixture
def memory(remem: Remem, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Remem:
    """Run `remem` in a memory that is made, from a project that is opted in."""
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    assert remem("init").status == 0
    assert remem("project", "add").status == 0
    return remem
