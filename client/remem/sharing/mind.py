"""What the held files do to this memory's own mind.

1. A lesson that others publish becomes a local candidate, and whom it came from is noted. It must stand, must not
   read as revoked, and must not be vetoed.
2. A lesson of this memory's own that another key publishes too is corroborated, if that key counts under the policy:
   it gains strength, once a principal, for four of them at most. Keys are free, and strength must not be.
3. A received lesson is dropped when a key that it came from takes it back and no publication stands. It never comes
   from that key again by itself; from another it may.
4. A received lesson stops while a trusted revoker or a quorum revokes it, and while every key that it came from is
   denied; it comes back when that is taken back.

What only publishes is taken in bulk. Where anything is revoked or denied, each lesson that it touches is brought to
what the rules say of all that is held, so the order in which files came does not matter.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from remem.memory import eviction, holdings, lessons
from remem.memory.config import Config
from remem.memory.holdings import Change
from remem.protocol import Cause, Reading, State, Statement
from remem.protocol.judgement import judge_lesson
from remem.sharing.readings import reader

DENIED: Final = "denied"
CORROBORATIONS_MOST: Final = 4
_CHUNK: Final = 2_000


@dataclass(slots=True)
class Effects:
    """What changed in the mind.

    Attributes:
        learned: how many lessons became local candidates.
        corroborated: this memory's own lessons that other keys turned out to publish too.
        stopped: lessons that no longer count here, each with what stopped it: a cause of the protocol, or `denied`.
        resumed: lessons that count again.
    """

    learned: int = 0
    corroborated: set[str] = field(default_factory=set)
    stopped: dict[str, str] = field(default_factory=dict)
    resumed: set[str] = field(default_factory=set)


class Mind:
    """One memory's mind while files come in; the caller owns the transactions."""

    def __init__(self, db: sqlite3.Connection, key: str, config: Config) -> None:
        self.db = db
        self.key = key
        self.config = config
        self.reader = reader(db, key, config)
        self.effects = Effects()

    def take_in(self, change: Change, now: datetime) -> None:
        """Follow what taken files changed."""
        if change.denials:
            self._reread_denials(now)
        contested = holdings.contested(self.db, change.touched) | self.reader.revoked & change.touched
        plain = [(number, said) for number, said in change.published if said.subject not in contested]
        self._learn(plain, change.newcomers, now)
        self._settle(change.turned | contested, now)

    def reread(self, now: datetime) -> None:
        """Follow a change of trust, of admissions, or of what this memory says itself."""
        self._reread_denials(now)
        self._settle(holdings.contested(self.db) | self.reader.revoked, now)

    def let_go(self, touched: Collection[str], now: datetime) -> None:
        """Follow the eviction of files that said something about these lessons."""
        lessons.set_state(self.db, eviction.orphans(self.db, touched), "dropped", now)
        self._settle(holdings.contested(self.db, touched) | self.reader.revoked.intersection(touched), now)

    def judge_again(self, now: datetime) -> None:
        """Put aside the received lessons that this release's judgement would not let in."""
        found = lessons.received_lessons(self.db)
        unfit = [one.hash for one in found if judge_lesson(one.kind, one.text, one.hash) is not None]
        lessons.set_state(self.db, unfit, "archived", now)

    def _reread_denials(self, now: datetime) -> None:
        before = self.reader.denied
        self.reader = reader(self.db, self.key, self.config)
        if turned := before ^ self.reader.denied:
            self._settle(holdings.received_from(self.db, turned) | holdings.published_by(self.db, turned), now)

    def _learn(self, published: Sequence[tuple[int, Statement]], newcomers: Collection[int], now: datetime) -> None:
        """Take in publications that nobody revokes."""
        denied = self.reader.denied | {self.key}
        heard = [(said, number) for number, said in published if said.key not in denied]
        again = {said.subject for said, number in heard if number not in newcomers}
        known = holdings.received_pairs(self.db, again)
        self._receive([pair for pair in heard if (pair[0].subject, pair[1]) not in known], now)

    def _receive(self, fresh: Sequence[tuple[Statement, int]], now: datetime) -> None:
        """Note lessons and whom they came from, and let those that are known here gain or come back."""
        rows = {said.subject: (said.subject, said.kind or "", said.text or "") for said, _number in reversed(fresh)}
        new = lessons.add_received_many(self.db, rows.values(), now)
        holdings.receive(self.db, [(said.subject, number) for said, number in fresh], now)
        self.effects.learned += new
        if new == len(rows):
            return
        here = holdings.known_here(self.db, rows.keys())
        own = [said.subject for said, _number in fresh if here.get(said.subject, ("received",))[0] != "received"]
        for lesson in dict.fromkeys(own):
            self._corroborate(lesson, {said.key for said, _number in fresh if said.subject == lesson}, now)
        self._resume([lesson for lesson in rows if here.get(lesson) == ("received", "dropped")], now)

    def _corroborate(self, lesson: str, keys: Collection[str], now: datetime) -> None:
        """Raise an own lesson for the principals that were not yet among those whom it came from too."""
        came_from = holdings.receipts(self.db, lesson).keys()
        before = self._principals(came_from - set(keys))
        after = self._principals(came_from)
        if not after - before:
            return
        for _one in range(min(len(before), CORROBORATIONS_MOST), min(len(after), CORROBORATIONS_MOST)):
            lessons.raise_strength(self.db, [lesson], now)
        self.effects.corroborated.add(lesson)

    def _principals(self, keys: Collection[str]) -> set[str]:
        found = (self.reader.policy.principal(key) for key in keys)
        return {principal for principal in found if principal is not None}

    def _settle(self, hashes: Collection[str], now: datetime) -> None:
        ordered = sorted(hashes)
        for start in range(0, len(ordered), _CHUNK):
            chunk = ordered[start : start + _CHUNK]
            here = holdings.known_here(self.db, chunk)
            for lesson, reading in self.reader.readings(self.db, chunk, now).items():
                if reading.state is State.REVOKED:
                    self._take_back(reading, here.get(lesson), now)
                else:
                    self._let_stand(reading, here.get(lesson), now)

    def _take_back(self, reading: Reading, here: tuple[str, str] | None, now: datetime) -> None:
        if reading.cause is Cause.WITHDRAWN:
            came_from = holdings.receipts(self.db, reading.hash)
            takers_back = [key for key in reading.revokers if key in came_from]
            if not takers_back:
                # A stranger's revocation of a lesson whose publisher is silent: no one it came from took it back.
                if here == ("received", "active") and not self._has_good_source(came_from):
                    self._stop(reading.hash, DENIED, now)
                return
            holdings.drop(self.db, reading.hash, takers_back)
        if here == ("received", "active") or here == ("received", "archived"):
            self._stop(reading.hash, reading.cause.value, now)

    def _let_stand(self, reading: Reading, here: tuple[str, str] | None, now: datetime) -> None:
        lesson = reading.hash
        came_from = holdings.receipts(self.db, lesson)
        new = [key for key in reading.publishers if key != self.key and key not in came_from]
        if new:
            rows = [
                (Statement(key, "lesson", lesson, None, reading.kind, reading.text), held.id)
                for key in new
                if (held := holdings.holding(self.db, key)) is not None
            ]
            self._receive(rows, now)
            return
        good = self._has_good_source(came_from)
        if here == ("received", "dropped") and good:
            self._resume([lesson], now)
        elif here == ("received", "active") and not good:
            self._stop(lesson, DENIED, now)

    def _has_good_source(self, came_from: Mapping[str, tuple[datetime, bool]]) -> bool:
        return any(not dropped and key not in self.reader.denied for key, (_at, dropped) in came_from.items())

    def _stop(self, lesson: str, why: str, now: datetime) -> None:
        if lessons.set_state(self.db, [lesson], "dropped", now):
            self.effects.stopped[lesson] = why
            self.effects.resumed.discard(lesson)

    def _resume(self, hashes: Sequence[str], now: datetime) -> None:
        for lesson in hashes:
            if lessons.set_state(self.db, [lesson], "active", now):
                self.effects.resumed.add(lesson)
                self.effects.stopped.pop(lesson, None)
