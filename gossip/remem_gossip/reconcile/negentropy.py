"""Reconciliation of two sets of items: Negentropy, version 1 (PROTOCOL.md, section 16).

One side begins and learns what each lacks; the other answers, and keeps nothing between two messages. So does this one:
what it has to know of the exchange so far is in the message that came.

What is sent is, byte for byte, what the reference implementations send:

1. A range whose fingerprints differ is split into 16 parts of the same size, the first ones larger by one where it does
   not come out even. One of fewer than 32 items is listed.
2. To a list the beginning side says nothing more, and the answering side lists its own items.
3. Ranges about which there is nothing to say are written as one, and at the end of a message not at all.
4. A message stops growing 200 bytes before the frame limit. A list is cut there; a split that does not fit is left
   out. Behind it stands one fingerprint of all the rest.

A frame limit bounds what is sent, not what a message can make a node do. Bounds never descend, so no item is summed
more than twice for one message, and `Limits` bound the rest. Where both sides keep frames to 256 KiB, only sets that
differ in a thousand places or so meet them, and the next message goes on from there.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from typing import Final

from remem.protocol.items import ID_BYTES
from remem_gossip.reconcile.encoding import (
    END,
    FINGERPRINT,
    IDS,
    START,
    VERSION,
    BadFrame,
    Bound,
    Reader,
    Writer,
    bound_between,
    fingerprint_of,
)
from remem_gossip.reconcile.storage import Storage

FRAME_LEAST: Final = 4_096
"""The lowest frame limit."""

_PARTS: Final = 16
_LISTED_BELOW: Final = 2 * _PARTS
_KEPT_FREE: Final = 200
_LOOKED_AHEAD: Final = 256


@dataclass(frozen=True, slots=True)
class Limits:
    """What one message may make a node do.

    Attributes:
        ranges: how many ranges are read and written. All behind is answered by one fingerprint, as if the frame were
            full.
        own: how many items of its own the beginning side looks at to compare them with lists. What lies behind is left
            for another exchange.
    """

    ranges: int = 8_000
    own: int = 200_000


LIMITS: Final = Limits()


@dataclass(slots=True)
class Step:
    """What the beginning side learned from an answer.

    Attributes:
        message: what to send next; None where nothing is left to ask.
        have: ids that the other side lacks, in the order of the items.
        need: ids that this side lacks, in the order in which they came. Either may come again in a later step.
        is_cut: whether something was left out because of the limits, and no later step comes back to it.
    """

    message: bytes | None = None
    have: list[bytes] = field(default_factory=list)
    need: list[bytes] = field(default_factory=list)
    is_cut: bool = False


class Reconciler:
    """One side of a reconciliation, for any number of messages.

    Args:
        storage: the items of this side.
        frame_limit: how many bytes a message may have; 0 for no limit.
        limits: what a message may make this side do.
    """

    def __init__(self, storage: Storage, frame_limit: int = 0, limits: Limits = LIMITS) -> None:
        if frame_limit and frame_limit < FRAME_LEAST:
            raise ValueError(f"expected a frame limit of 0 or at least {FRAME_LEAST}, got {frame_limit}")
        self._storage = storage
        self._full = frame_limit - _KEPT_FREE if frame_limit else sys.maxsize
        self._limits = limits

    def initiate(self, since: int = 0) -> bytes:
        """Begin: return the first message to send.

        Args:
            since: from which time on the items are compared; the range before it is skipped.
        """
        out = Writer()
        begin = 0
        if since:
            bound = Bound(START.item._replace(time=since), 0)
            out.skip(bound)
            begin = self._storage.find(bound.item)
        _split(self._storage, out, begin, len(self._storage), END)
        return out.message

    def reconcile(self, message: bytes) -> Step:
        """Read an answer, on the side that began.

        Raises:
            BadFrame: it is none, or of another version of the protocol.
        """
        reader = Reader(message)
        version = reader.version()
        if version != VERSION:
            raise BadFrame(f"version 0x{VERSION:02x}", f"0x{version:02x}")
        step = Step()
        following = self._work(reader, step)
        step.message = following if len(following) > 1 else None
        return step

    def answer(self, message: bytes) -> bytes:
        """Answer a message, on the side that did not begin; one of another version by the byte of this one.

        Raises:
            BadFrame: it is none.
        """
        reader = Reader(message)
        if reader.version() != VERSION:
            return Writer().message
        return self._work(reader, None)

    def _work(self, reader: Reader, step: Step | None) -> bytes:
        self._storage.expect_bounds(reader.next_bounds(_LOOKED_AHEAD))
        return _Work(self._storage, self._full, self._limits, reader, step).done()


class _Work:
    """The work on one message: its ranges from left to right, and what is said of them.

    Args:
        storage: the items of this side.
        full: the size from which on a message does not grow.
        limits: what may be done.
        reader: the message, behind its version.
        step: what the beginning side learns; None on the answering side.
    """

    __slots__ = (
        "_begin", "_full", "_is_skipping", "_last", "_out", "_own_left", "_ranges_left", "_reader", "_step", "_storage",
    )  # fmt: skip

    def __init__(self, storage: Storage, full: int, limits: Limits, reader: Reader, step: Step | None) -> None:
        self._storage = storage
        self._full = full
        self._ranges_left = limits.ranges
        self._own_left = limits.own
        self._reader = reader
        self._step = step
        self._out = Writer()
        self._begin = 0
        self._last = START
        self._is_skipping = False

    def done(self) -> bytes:
        """Do the work, and return the message that follows."""
        while self._ranges_left > 0:
            if self._reader.is_done or not self._range():
                return self._out.message
        if not self._reader.is_done:
            self._write_skipped()
            self._write_rest(self._begin)
        return self._out.message

    def _range(self) -> bool:
        """Work on the next range, and tell whether to read on."""
        self._ranges_left -= 1
        reader = self._reader
        bound, mode = reader.bound(), reader.mode()
        begin = self._begin
        # Bounds do not descend, so it is never before the beginning.
        end = self._storage.find(bound.item)
        if mode == FINGERPRINT:
            if reader.fingerprint() != _fingerprint(self._storage, begin, end):
                return self._write_split(begin, end, bound)
        elif mode == IDS:
            ids = reader.ids()
            if self._step is None:
                return self._write_ids(begin, end, bound)
            if not self._compare(self._step, ids, begin, end):
                return False
        self._is_skipping = True
        self._begin, self._last = end, bound
        return True

    def _compare(self, step: Step, ids: bytes, begin: int, end: int) -> bool:
        """Compare a list with what this side has in its range; false where that is more than may be looked at."""
        stop = min(end, begin + self._own_left)
        self._own_left -= stop - begin
        theirs = dict.fromkeys((ids[at : at + ID_BYTES] for at in range(0, len(ids), ID_BYTES)), True)
        step.have += [own for own in self._storage.ids(begin, stop) if not theirs.pop(own, False)]
        if stop < end:
            # What is left of the list may be among the items that were not looked at.
            step.is_cut = True
            return False
        step.need += theirs
        return True

    def _write_split(self, begin: int, end: int, bound: Bound) -> bool:
        self._ranges_left -= 1 if end - begin < _LISTED_BELOW else _PARTS
        out = self._out
        written = len(out)
        self._write_skipped()
        _split(self._storage, out, begin, end, bound)
        if len(out) > self._full:
            out.cut(written)
            self._write_rest(end)
            return False
        self._begin, self._last = end, bound
        return True

    def _write_ids(self, begin: int, end: int, bound: Bound) -> bool:
        out = self._out
        # An id is written as long as those before it leave the frame below full, whatever the range's own bytes add.
        fitting = (self._full - len(out)) // ID_BYTES + 1
        self._write_skipped()
        if end - begin > fitting:
            end = begin + fitting
            bound = Bound(self._storage.item(end), ID_BYTES)
        out.ids(bound, self._storage.ids(begin, end))
        if len(out) > self._full:
            self._write_rest(end)
            return False
        self._begin, self._last = end, bound
        return True

    def _write_skipped(self) -> None:
        if self._is_skipping:
            self._is_skipping = False
            self._out.skip(self._last)

    def _write_rest(self, begin: int) -> None:
        self._out.fingerprint(END, _fingerprint(self._storage, begin, len(self._storage)))


def _fingerprint(storage: Storage, begin: int, end: int) -> bytes:
    return fingerprint_of(storage.sum(begin, end), end - begin)


def _split(storage: Storage, out: Writer, begin: int, end: int, bound: Bound) -> None:
    """Write a range as the fingerprints of its parts, or as a list where it is small."""
    count = end - begin
    if count < _LISTED_BELOW:
        out.ids(bound, storage.ids(begin, end))
        return
    size, larger = divmod(count, _PARTS)
    stops = [begin + size * number + min(number, larger) for number in range(1, _PARTS + 1)]
    storage.expect_indexes([begin, *stops])
    for stop in stops:
        until = bound if stop == end else bound_between(storage.item(stop - 1), storage.item(stop))
        out.fingerprint(until, _fingerprint(storage, begin, stop))
        begin = stop
