"""The command in this process: the words a person types, and what comes back."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest

from remem.cli.main import app
from remem.cli.run import run
from remem_testkit.command import Ended, Remem


@pytest.fixture
def remem(remem_home: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]) -> Remem:
    """Run `remem` with these words, and with these bytes on standard input, in a home of the test's own."""

    def command(*words: str, given: bytes = b"") -> Ended:
        monkeypatch.setattr(sys, "argv", ["remem", *words])
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(given)))
        status = run(app, "remem")
        out, err = capfdbinary.readouterr()
        return Ended(status, out.decode(), err.decode())

    return command


@pytest.fixture
def memory(remem: Remem, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Remem:
    """Run `remem` in a memory that is made, from a project that is opted in."""
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    assert remem("init").status == 0
    assert remem("project", "add").status == 0
    return remem
