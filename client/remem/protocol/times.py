"""Times on the wire: `YYYY-MM-DDTHH:MM:SS[.d{1,6}](Z|+00:00)`, 1970 to 2099 (PROTOCOL.md, section 5)."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Final

from remem.protocol.errors import TimeForm, show

_TIME: Final = re.compile(
    r"((?:19[7-9]|20[0-9])[0-9]-[0-9]{2}-[0-9]{2}"
    # Later interpreters read the hour 24 as the next day's midnight, so it is refused here.
    r"T(?:[01][0-9]|2[0-3]):[0-9]{2}:[0-9]{2})(?:\.([0-9]{1,6}))?(?:Z|\+00:00)"
)


# The lines of one file share few times.
@lru_cache(maxsize=4_096)
def parse_time(text: str) -> datetime:
    """Read a time.

    Raises:
        TimeForm: the text is spelled otherwise, or no such moment exists.
    """
    found = _TIME.fullmatch(text)
    if found is None:
        raise TimeForm("a time like 2026-01-31T12:00:00Z from 1970 to 2099", show(text))
    seconds, fraction = found.groups()
    try:
        moment = datetime.fromisoformat(seconds)
    except ValueError:
        raise TimeForm("a date and time that exist", show(text)) from None
    microseconds = int(fraction.ljust(6, "0")) if fraction else 0
    return moment.replace(microsecond=microseconds, tzinfo=UTC)


def format_time(moment: datetime) -> str:
    """Spell a moment as ours are spelled: whole seconds, Z. A moment without a zone is a ValueError."""
    if moment.tzinfo is None:
        raise ValueError("expected a time with a zone, got one without")
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def unix_seconds(moment: datetime) -> int:
    """The whole Unix seconds of a moment, rounded down."""
    return (moment - _EPOCH) // timedelta(seconds=1)


_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
