"""What a commons says of itself and of its files, over HTTP and in an export (PROTOCOL.md, section 11)."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import version
from typing import Final

from remem.protocol import RULES
from remem_server.answers import Descriptor, IndexEntry, SizeLimits
from remem_server.files.store import Entry
from remem_server.opening.context import Commons

DESCRIPTOR_PATH: Final = "/.well-known/remem"


def describe(commons: Commons, peers: Sequence[str] = ()) -> Descriptor:
    """Describe a commons, and the peers of which it tells others."""
    return Descriptor(
        protocol=[RULES.version],
        software=f"remem/{version('remem')}",
        key=commons.operators[0],
        operators=list(commons.operators),
        open=commons.settings.open,
        private=commons.settings.private,
        limits=SizeLimits(line_bytes=RULES.line_bytes, file_bytes=RULES.file_bytes, file_records=RULES.file_records),
        confirmations=RULES.confirmations,
        window_days=RULES.window.days,
        peers=list(peers),
    )


def index_entry(entry: Entry) -> IndexEntry:
    """Describe a file as the index lists it."""
    return IndexEntry(
        origin=entry.origin,
        updated=entry.updated.replace(microsecond=0),
        records=entry.records,
        key=entry.key,
        seal=entry.seal,
        digest=entry.digest,
        principal=entry.principal,
    )
