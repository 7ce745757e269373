"""Taking files of events into the memory: the inbox, and a file that the owner names. Each line counts once.

How far a file has been taken in is noted in the transaction that stores its events. So a crash between any two
steps neither loses a line nor counts it twice, and of two processes at the same file one finds nothing left to do.
"""

from __future__ import annotations

import os
import sqlite3
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import blake2b, file_digest
from pathlib import Path
from typing import BinaryIO, Final

from remem.ingest.events import MAX_BYTES, Event, EventError, parse_event, read_events
from remem.memory.events import Intake, add_events, note_batch, taken, taken_at
from remem.memory.home import Home
from remem.memory.store import transaction

# How long an agent may hold an inbox open before it is removed under its hands.
GRACE: Final = timedelta(hours=1)


def take_in_file(db: sqlite3.Connection, path: Path, now: datetime) -> Intake:
    """Take in a file of events, in one transaction. The same bytes taken in again change nothing."""
    with path.open("rb") as stream:
        batch = "file:" + file_digest(stream, lambda: blake2b(digest_size=16)).hexdigest()
        stream.seek(0)
        with transaction(db):
            if taken(db, batch) is not None:
                return Intake(known=sum(isinstance(found, Event) for _, found in read_events(stream)))
            intake = add_events(db, read_events(stream), now)
            note_batch(db, batch, stream.tell(), intake.rejected, now)
    return intake


def take_in_inbox(home: Home, db: sqlite3.Connection, now: datetime) -> Intake:
    """Take in what agents have reported, each file in one transaction of its own."""
    intake = Intake()
    for path in home.taken_inboxes():
        since = taken_at(db, path.name)
        is_last = since is not None and now - since >= GRACE
        intake += _take_in(db, path, now, is_last=is_last)
        if is_last:
            path.unlink(missing_ok=True)
    fresh = home.take_inbox()
    if fresh is not None:
        intake += _take_in(db, fresh, now, is_last=False)
    return intake


def _take_in(db: sqlite3.Connection, path: Path, now: datetime, *, is_last: bool) -> Intake:
    try:
        stream = path.open("rb")
    except FileNotFoundError:
        # Another process has removed it, having taken it in.
        return Intake()
    with stream, transaction(db):
        start = taken(db, path.name) or 0
        end = os.fstat(stream.fileno()).st_size if is_last else _complete(stream, start)
        stream.seek(start)
        intake = add_events(db, read_events(_Window(stream, end)), now)
        note_batch(db, path.name, end, intake.rejected, now)
    return intake


@dataclass(frozen=True, slots=True)
class _Window:
    """The bytes of a stream up to a place. What is appended meanwhile is left for the next time."""

    stream: BinaryIO
    end: int

    def readline(self, limit: int, /) -> bytes:
        return self.stream.readline(max(0, min(limit, self.end - self.stream.tell())))


def _complete(stream: BinaryIO, start: int) -> int:
    """Return where the last complete line ends; a last line without an end counts if it is an event as it stands."""
    size = stream.seek(0, os.SEEK_END)
    place = size
    while place > start:
        step = min(65_536, place - start)
        stream.seek(place - step)
        found = stream.read(step).rfind(b"\n")
        if found >= 0:
            place = place - step + found + 1
            break
        place -= step
    if 0 < size - place <= MAX_BYTES:
        stream.seek(place)
        try:
            parse_event(stream.read(size - place))
        except EventError:
            return place
        return size
    return place
