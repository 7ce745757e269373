"""Moments that people and programs give: in UTC, and in the years of the wire (PROTOCOL.md, section 5)."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

from remem.protocol.errors import show

_FIRST: Final = datetime(1970, 1, 1, tzinfo=UTC)
_LAST: Final = datetime(2099, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)


def in_utc(moment: datetime) -> datetime:
    """Turn a moment with a zone to UTC.

    Raises:
        ValueError: it is of another year than those from 1970 to 2099.
    """
    # Compared as it is: at the ends of the calendar a zone may lead out of it.
    if not _FIRST <= moment <= _LAST:
        raise ValueError(f"expected a time from 1970 to 2099 in UTC, got {show(moment.isoformat())}")
    return moment.astimezone(UTC)
