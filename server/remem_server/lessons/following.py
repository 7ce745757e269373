"""Lets the lessons follow a change of what a key says, or of whose it is, by differences (PROTOCOL.md, section 9).

1. What a lesson comes to is a sum over principals, and some others over keys. So a change of one key moves it by what
   the key and its principal came to before and after. What the principal's other keys say together is looked up in
   an index, however many they are; what everyone else says is not read.
2. Two things are no sums: the last confirmation, and the publication that is shown. Where the one that gave them goes,
   the first entry of an index gives the next: every statement is marked with whether it counts (`database/tables.py`).
3. All of it happens in the transaction of the change, behind `changes.lock`.
4. Time changes no row: a state is worked out of a row when it is asked for.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any, Final, NamedTuple

from sqlalchemy import Connection, bindparam, select

from remem.protocol import Confirmation, Denial, Lesson
from remem.protocol.evidence import Count
from remem_server.database.tables import tokens
from remem_server.lessons import rows as lesson_rows
from remem_server.lessons import said
from remem_server.lessons.policy import CountingPolicy, policy_of
from remem_server.lessons.rows import NOTHING, Row, read_rows, write_rows
from remem_server.lessons.said import Fellows, Line, Marks, Stance, Topic
from remem_server.lessons.voices import Voice, voice_of


class _Said(NamedTuple):
    """What a key says of each lesson, and what its voice is worth."""

    voice: Voice
    stances: Mapping[str, Stance]


class _Confirmed(NamedTuple):
    """The confirmation by which a principal counts: of none of its keys where it does not count."""

    key: str | None = None
    time: datetime | None = None
    turned: bool = False


_OTHERS: Final = (
    select(tokens.c.id)
    .where(tokens.c.principal == bindparam("principal"), tokens.c.key != bindparam("but"), tokens.c.revoked.is_(None))
    .limit(1)
)
_ALONE: Final = Fellows()
_NOT: Final = _Confirmed()
_NOTHING: Final = Count()
_PUBLISHED: Final = Count(standing=1)
_SILENT: Final = Stance()


def replace(
    connection: Connection, key: str, gone: Collection[Topic] | None, come: Sequence[Mapping[str, Any]]
) -> None:
    """Replace what a key says.

    Args:
        connection: of a transaction that holds `changes.lock`.
        key: the key.
        gone: what it says no more; None for all that it says.
        come: the rows of what it says instead.
    """
    policy = policy_of(connection)
    denials = [row for row in come if row["type"] == Denial.type]
    doubted = _doubted(connection, policy, key, gone, denials)
    voices = {one: voice_of(connection, policy, one) for one in {key, *doubted}}
    subjects = None
    if gone is not None and key not in doubted:
        subjects = {subject for _type, subject in gone} | {row["subject"] for row in come}
    stood = said.lines_of(connection, key, subjects)
    said.forget(connection, key, gone)
    said.add(connection, denials)
    voice = voice_of(connection, policy, key) if key in doubted else voices[key]
    less = stood.keys() if gone is None else set(gone)
    stays = {topic: line for topic, line in stood.items() if topic not in less}
    more = [row for row in come if row["type"] != Denial.type]
    for row in more:
        stays[row["type"], row["subject"]] = Line(row["time"], row["kind"], row["text"])
    was, now = _Said(voices[key], said.stances_of(stood)), _Said(voice, said.stances_of(stays))
    _follow(connection, policy, key, was, now, more)
    for one in sorted(doubted - {key}):
        _hear_otherwise(connection, policy, one, voices[one])


@contextmanager
def admission(connection: Connection, key: str) -> Iterator[None]:
    """Let the lessons follow a change of whether a key is admitted.

    Args:
        connection: of a transaction that holds `changes.lock`.
        key: the key.
    """
    policy = policy_of(connection)
    was = voice_of(connection, policy, key)
    yield
    _hear_otherwise(connection, policy, key, was)


def _doubted(
    connection: Connection,
    policy: CountingPolicy,
    key: str,
    gone: Collection[Topic] | None,
    denials: Sequence[Mapping[str, Any]],
) -> set[str]:
    """List the keys that may be denied otherwise after a change than before."""
    if key not in policy.revokers:
        return set()
    less = said.denied_by(connection, key) if gone is None else {one for type_, one in gone if type_ == Denial.type}
    return less | {row["subject"] for row in denials}


def _hear_otherwise(connection: Connection, policy: CountingPolicy, key: str, was: Voice) -> None:
    """Let the lessons follow a change of what the voice of a key is worth."""
    now = voice_of(connection, policy, key)
    if now != was:
        stances = said.stances_of(said.lines_of(connection, key))
        _follow(connection, policy, key, _Said(was, stances), _Said(now, stances))


def _follow(
    connection: Connection,
    policy: CountingPolicy,
    key: str,
    was: _Said,
    now: _Said,
    come: Sequence[Mapping[str, Any]] = (),
) -> None:
    """Write what a key says now, and what follows from it."""
    hashes = sorted(was.stances.keys() | now.stances.keys())
    held = read_rows(connection, hashes)
    left = _fellows(connection, was.voice.principal, key, held)
    met = left if was.voice.principal == now.voice.principal else _fellows(connection, now.voice.principal, key, held)
    change = _Change(key, was, now, key in policy.revokers)
    for hash_ in hashes:
        row = held[hash_].row if hash_ in held else NOTHING
        change.add(hash_, row, left.get(hash_, _ALONE), met.get(hash_, _ALONE))
    if was.voice.principal != now.voice.principal:
        said.answer(connection, key, now.voice.principal)
    said.add(connection, come, now.voice.principal, change.marks)
    said.mark(connection, change.marks)
    _settle(connection, policy, change.rows, change.unsure)
    silent = {hash_ for hash_ in hashes if hash_ not in now.stances and not any(change.rows[hash_].sums)}
    gone = silent - lesson_rows.said_of(connection, silent)
    write_rows(connection, held, {hash_: row for hash_, row in change.rows.items() if hash_ not in gone}, gone)


def _fellows(connection: Connection, principal: str | None, key: str, hashes: Collection[str]) -> Mapping[str, Fellows]:
    if principal is None or not hashes:
        return {}
    if connection.execute(_OTHERS, {"principal": principal, "but": key}).first() is None:
        return {}
    return said.fellows_of(connection, principal, key, hashes)


class _Change:
    """What the change of one key makes of lessons.

    Attributes:
        rows: what their rows say after it.
        marks: the statements that are to be marked otherwise.
        unsure: what it does not tell, by what is to be looked for.
    """

    def __init__(self, key: str, was: _Said, now: _Said, revoker: bool) -> None:
        self._key, self._was, self._now, self._revoker = key, was, now, revoker
        self._moves = was.voice.principal != now.voice.principal
        self.rows: dict[str, Row] = {}
        self.marks: Marks = {}
        self.unsure: defaultdict[str, set[str]] = defaultdict(set)

    def add(self, hash_: str, row: Row, left: Fellows, met: Fellows) -> None:
        """Work out the change of one lesson.

        Args:
            hash_: the lesson's.
            row: what its row says.
            left: what the others of the principal say that the key had.
            met: what the others of the one say that it has.
        """
        key, was, now = self._key, self._was.voice, self._now.voice
        old, new = self._was.stances.get(hash_, _SILENT), self._now.stances.get(hash_, _SILENT)
        less, more = _confirmed(key, old, was, left), _confirmed(key, new, now, met)
        sums = _moved(row.sums, self._count(old, was, less), self._count(new, now, more))
        if self._moves:
            # Each of the two principals goes on, the one without the key, the other was there without it.
            stays, stood = _confirmed(None, _SILENT, was, left), _confirmed(None, _SILENT, now, met)
            sums = _moved(sums, _principal(stood), _principal(stays))
            self._mark_fellow(hash_, left, stays)
        self._mark_fellow(hash_, met, more)
        self._mark_own(hash_, new, more)
        if sums.confirmations and (self._moves or sums.last_confirmed is None):
            self.unsure["last"].add(hash_)
        if self._revoker and old.revocation is not None and was.heard and not sums.trusted:
            self.unsure["trusted"].add(hash_)
        self.rows[hash_] = self._shown(hash_, Row(sums, *row[1:]), new)

    def _count(self, stance: Stance, voice: Voice, confirmed: _Confirmed) -> Count:
        """Say what a key and its principal come to."""
        if not voice.heard or (stance is _SILENT and confirmed is _NOT):
            return _NOTHING
        revokes, publishes = stance.revocation is not None, stance.lesson is not None
        if publishes and not revokes and stance.confirmation is None and confirmed is _NOT:
            # As nearly all lines of a long file.
            return _PUBLISHED
        confirms = stance.confirmation is not None and stance.confirmation.time is not None
        return Count(
            standing=int(publishes and not revokes),
            revoking=int(revokes),
            trusted=int(revokes and self._revoker),
            confirmations=int(confirmed is not _NOT),
            turned=int(confirmed.turned),
            last_confirmed=confirmed.time,
            unadmitted=int(confirms and not publishes and not voice.counts),
        )

    def _mark_own(self, hash_: str, stance: Stance, confirmed: _Confirmed) -> None:
        if stance.lesson is not None:
            stands = stance.revocation is None and self._now.voice.heard
            if stance.lesson.counts is not stands:
                self.marks[self._key, Lesson.type, hash_] = stands
        if stance.confirmation is not None:
            counts = confirmed.key == self._key
            if stance.confirmation.counts is not counts:
                self.marks[self._key, Confirmation.type, hash_] = counts

    def _mark_fellow(self, hash_: str, fellows: Fellows, confirmed: _Confirmed) -> None:
        if fellows.key is not None and fellows.counts is not (fellows.key == confirmed.key):
            self.marks[fellows.key, Confirmation.type, hash_] = fellows.key == confirmed.key

    def _shown(self, hash_: str, row: Row, stance: Stance) -> Row:
        """Show the publication of the key where it is the lowest that stands."""
        mine = stance.lesson if stance.revocation is None and self._now.voice.heard else None
        if mine is not None and (row.shown is None or self._key <= row.shown):
            return Row(row.sums, self._key, mine.kind, mine.text, mine.time)
        if row.shown == self._key:
            row = Row(row.sums)
        if row.sums.standing and row.shown is None:
            self.unsure["shown"].add(hash_)
        return row


def _confirmed(key: str | None, stance: Stance, voice: Voice, fellows: Fellows) -> _Confirmed:
    """Find the confirmation by which the principal of a key counts, if it does."""
    if not voice.counts or stance.lesson is not None or fellows.publish:
        return _NOT
    time, last = fellows.time, fellows.key
    mine = stance.confirmation
    if mine is not None and mine.time is not None and (time is None or (mine.time, key or "") > (time, last or "")):
        time, last = mine.time, key
    return _NOT if last is None else _Confirmed(last, time, fellows.revoke or stance.revocation is not None)


def _principal(confirmed: _Confirmed) -> Count:
    if confirmed is _NOT:
        return _NOTHING
    return Count(confirmations=1, turned=int(confirmed.turned), last_confirmed=confirmed.time)


def _moved(held: Count, less: Count, more: Count) -> Count:
    """Add a difference to sums; where it does not tell the time of the last confirmation, that is None."""
    if less is more:
        return held
    # In their order, not by name: a file has hundreds of them.
    return Count(
        held.standing - less.standing + more.standing,
        held.revoking - less.revoking + more.revoking,
        more.trusted if less.trusted or more.trusted else held.trusted,
        held.confirmations - less.confirmations + more.confirmations,
        held.turned - less.turned + more.turned,
        _later(held.last_confirmed, less.last_confirmed, more.last_confirmed),
        held.unadmitted - less.unadmitted + more.unadmitted,
    )


def _later(last: datetime | None, less: datetime | None, more: datetime | None) -> datetime | None:
    """Raise the time of the last confirmation; None where the one that gave it went."""
    if more is not None and (last is None or last <= more):
        return more
    return None if last == less else last


def _settle(
    connection: Connection, policy: CountingPolicy, rows: dict[str, Row], unsure: Mapping[str, set[str]]
) -> None:
    """Look for what differences did not tell."""
    if hashes := unsure.get("trusted"):
        found = lesson_rows.trusted(connection, hashes, policy)
        for hash_ in hashes:
            rows[hash_] = rows[hash_].with_sums(trusted=int(hash_ in found))
    if hashes := unsure.get("last"):
        last = lesson_rows.last_confirmed(connection, hashes)
        for hash_ in hashes:
            rows[hash_] = rows[hash_].with_sums(last_confirmed=last.get(hash_))
    if hashes := unsure.get("shown"):
        shown = lesson_rows.shown(connection, hashes)
        for hash_ in hashes:
            rows[hash_] = shown.get(hash_, NOTHING)._replace(sums=rows[hash_].sums)
