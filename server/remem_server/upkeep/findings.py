"""What an audit says: one finding for each thing that is not as it should be."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from remem.protocol.errors import show
from remem.protocol.times import format_time


class Finding(NamedTuple):
    """Something that is stored otherwise than it should be.

    Attributes:
        code: a stable word for what was checked.
        subject: the key, the lesson or the row that it is about.
        expected: what should be stored.
        got: what is.
    """

    code: str
    subject: str
    expected: str
    got: str

    def __str__(self) -> str:
        """Say it on one line."""
        return f"{self.code} {self.subject}: expected {self.expected}, got {self.got}"


def compared(code: str, subject: str, made: Mapping[str, Any], stored: Mapping[str, Any]) -> Iterator[Finding]:
    """Find the columns of a row that are stored otherwise than they were made."""
    for name, value in made.items():
        if stored[name] != value:
            yield Finding(code, subject, f"{name} {spelled(value)}", spelled(stored[name]))


def spelled(value: object) -> str:
    """Spell a value for a message."""
    if isinstance(value, str):
        return value if value.isascii() and value.isalnum() else show(value, 80)
    return format_time(value) if isinstance(value, datetime) else "none" if value is None else str(value)
