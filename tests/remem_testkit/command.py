"""The command `remem` as a test types it: the words, and how it ended."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias


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
