"""The command `remem` as a test types it: the words, and how it ended."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import pytest

from remem.cli.app import app
from remem.cli.run import run


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    status: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        """What it printed, as JSON."""
        return json.loads(self.out)


Remem: TypeAlias = Callable[..., Ended]


def remem_in_this_process(monkeypatch: pytest.MonkeyPatch, capture: pytest.CaptureFixture[bytes]) -> Remem:
    """Return what runs `remem` with these words, and with these bytes on standard input."""

    def command(*words: str, given: bytes = b"") -> Ended:
        monkeypatch.setattr(sys, "argv", ["remem", *words])
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(given)))
        status = run(app, "remem")
        out, err = capture.readouterr()
        return Ended(status, out.decode(), err.decode())

    return command
