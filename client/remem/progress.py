"""How long work tells how far it is; the command shows it, and whoever does the work knows nothing of that."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

Progress: TypeAlias = Callable[[int, int], None]
"""Called with the number of steps done and the number in all."""
