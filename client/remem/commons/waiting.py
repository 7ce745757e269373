"""How long a commons is waited for, and one that is asked for too much: when to ask it again, and when to give up.

By 429 or 503 with `Retry-After` a commons says when it would answer. It is asked again then, while all of these waits
together are within what the caller waits for; no wait is shorter than a second, whatever the commons says.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import ceil
from typing import Final

from remem.errors import Unreachable

_TOO_MANY: Final = 429
_BUSY: Final = 503
_SECONDS: Final = re.compile(r"[0-9]{1,8}")
_UNITS: Final = ((3_600, "hour"), (60, "minute"), (1, "second"))
_GOT: Final = {
    "too_many_requests": "word that too much came from here",
    "too_many_keys": "word that too many new keys came from here",
    "store_unavailable": "word that its database does not answer",
}
_GOT_ELSE: Final = {_TOO_MANY: "word that too much came from here", _BUSY: "word that it is busy"}


@dataclass(frozen=True, slots=True)
class Patience:
    """How many seconds to wait.

    Attributes:
        connect: for a connection.
        read: for the next bytes.
        whole: for one exchange.
        listing: for all pages of a listing.
        limited: for a commons that had too much from here; a little more than the minute that it counts by.
        busy: for a commons that is busy.
    """

    connect: float = 5.0
    read: float = 30.0
    whole: float = 120.0
    listing: float = 300.0
    limited: float = 75.0
    busy: float = 15.0


class Waits:
    """The waits of one exchange.

    Args:
        target: the commons.
        patience: how long whoever asked waits in all.
    """

    def __init__(self, target: str, patience: Patience) -> None:
        self._target = target
        self._left = {_TOO_MANY: patience.limited, _BUSY: patience.busy}

    def after(self, status: int, retry_after: str | None, code: str | None = None) -> int | None:
        """Say for how many seconds to wait behind an answer; None where it is one to go on with.

        Args:
            status: of the answer.
            retry_after: what it says under that name.
            code: what it says that is in the way.

        Raises:
            Unreachable: that would be too long.
        """
        if status not in self._left or retry_after is None or not _SECONDS.fullmatch(retry_after):
            return None
        seconds = max(1, int(retry_after))
        self._left[status] -= seconds
        if self._left[status] < 0:
            hint = f"try again in {_spell(seconds)}: whatever was done is kept"
            got = _GOT.get(code or "", _GOT_ELSE[status])
            raise Unreachable(f"expected an answer from {self._target}, got {got}", hint)
        return seconds


def _spell(seconds: int) -> str:
    unit, name = next((unit, name) for unit, name in _UNITS if seconds >= unit)
    number = ceil(seconds / unit)
    return f"{number} {name}" if number == 1 else f"{number} {name}s"
