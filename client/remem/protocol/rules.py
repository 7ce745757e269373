"""The numbers of version 1 (PROTOCOL.md, section 13): limits that would split nodes, and periods."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Final


@dataclass(frozen=True, slots=True)
class Rules:
    """The numbers of one wire version. Sizes are bytes, seal numbers are Unix seconds."""

    version: int = 1
    line_bytes: int = 8_192
    depth: int = 8
    number_characters: int = 24
    integer_most: int = 2**53 - 1
    file_records: int = 1_000
    file_bytes: int = 262_144
    text_code_points: int = 1_000
    last_seal: int = 2**53 - 1
    seal_ahead_of_its_time: int = 86_400
    seal_ahead_of_writer: int = 172_800
    time_ahead_of_receiver: timedelta = timedelta(hours=24)
    confirmations: int = 3
    window: timedelta = timedelta(days=90)


RULES: Final = Rules()
