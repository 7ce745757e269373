"""Taking files of events into the memory: the inbox, and a file that the owner names. Each line counts once.

How far a file has been taken in is noted in the transaction that stores its events. So a crash between any two
steps neither loses a line nor counts it twice, and of two processes at the same file one finds nothing left to do.
A line of an inbox that is no event is kept as it came, for nobody else has it.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import blake2b, file_digest
from pathlib import Path
from typing import BinaryIO, Final

from remem.ingest.events import MAX_BYTES, Event, EventError, parse_event, read_events
from remem.memory.events import Intake, add_events, note_batch, rejected_lines, taken, taken_at
from remem.memory.home import Home
from remem.memory.store import transaction

# How long an agent may hold an inbox open before it is removed under its hands.
GRACE: Final = timedelta(hours=1)
_PIECE: Final = 65_536


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
            _put_away(db, path)
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
        before = _lines_before(stream, start)
        found = ((before + number, event) for number, event in read_events(_Window(stream, end)))
        intake = add_events(db, found, now)
        note_batch(db, path.name, end, intake.rejected, now)
    return intake


def unread_bytes(home: Home, db: sqlite3.Connection) -> int:
    """Count the bytes that agents have reported and that were not taken in yet."""
    waiting = 0
    for path in (home.inbox_path, *home.taken_inboxes()):
        # Another process may take or remove it at this moment.
        with suppress(FileNotFoundError):
            waiting += max(0, path.stat().st_size - (taken(db, path.name) or 0))
    return waiting


def _put_away(db: sqlite3.Connection, path: Path) -> None:
    """Remove an inbox that was taken in; its lines that are no events are kept beside it, as they came."""
    numbers = rejected_lines(db, path.name)
    if numbers:
        # Whoever does this twice, behind a crash or beside another process, writes the same.
        with suppress(FileNotFoundError), path.open("rb") as stream:
            handle = os.open(path.with_suffix(".rejected"), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with os.fdopen(handle, "wb") as kept:
                kept.writelines(_numbered(stream, numbers))
                kept.flush()
                os.fsync(kept.fileno())
    path.unlink(missing_ok=True)


def _numbered(stream: BinaryIO, numbers: Collection[int]) -> Iterator[bytes]:
    """Return the lines of these numbers, in pieces: one may be of any length."""
    number = 1
    while piece := stream.readline(_PIECE):
        if number in numbers:
            yield piece
        number += piece.endswith(b"\n")


def _lines_before(stream: BinaryIO, place: int) -> int:
    """Count the lines that end before a place, and go there."""
    stream.seek(0)
    lines = 0
    while (left := place - stream.tell()) > 0 and (piece := stream.read(min(_PIECE, left))):
        lines += piece.count(b"\n")
    return lines


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
        step = min(_PIECE, place - start)
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
