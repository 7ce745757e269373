"""What a commons says of itself: its descriptor (PROTOCOL.md, section 11)."""

from __future__ import annotations

from importlib.metadata import version
from typing import Final

from remem.protocol import RULES
from remem_server.answers import Descriptor, Limits
from remem_server.opening.context import Commons

DESCRIPTOR_PATH: Final = "/.well-known/remem"


def describe(commons: Commons) -> Descriptor:
    """Describe a commons."""
    return Descriptor(
        protocol=[RULES.version],
        software=f"remem/{version('remem')}",
        key=commons.operators[0],
        operators=list(commons.operators),
        open=commons.settings.open,
        private=commons.settings.private,
        limits=Limits(line_bytes=RULES.line_bytes, file_bytes=RULES.file_bytes, file_records=RULES.file_records),
        confirmations=RULES.confirmations,
        window_days=RULES.window.days,
        peers=[],
    )
