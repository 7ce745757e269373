"""Small random commons: what a few keys say of one lesson, and a reader's policy.

There are few keys, few times and few names, so that the rules meet each other often.
"""

import random
from dataclasses import replace
from datetime import timedelta
from typing import Any, Final

from remem.protocol.evidence import Admission, Evidence, Policy, Statement
from remem.protocol.state import Reading, lesson_state
from remem.protocol.text import lesson_hash

from .forge import NOW
from .state_model import Expected, expected_reading

W: Final = timedelta(days=90)
TICK: Final = timedelta(microseconds=1)
SPELLINGS: Final = ("The lock file was stale.", "the lock  file was STALE.", "THE LOCK FILE WAS STALE.")
HASH: Final = lesson_hash("error", SPELLINGS[0])
ELSE: Final = lesson_hash("error", "The other lesson.")
KEYS: Final = "abcde"
AGES: Final = (-timedelta(days=1), timedelta(0), W, W + TICK, 2 * W, 2 * W + TICK, 3 * W)


class World:
    """A commons and a reader of it."""

    def __init__(self, choose: random.Random) -> None:
        self.said = {
            (key, type_, subject): self._statement(choose, key, type_, subject)
            for key in KEYS
            for type_, often in (("lesson", 3), ("confirm", 7), ("revoke", 3))
            for subject in (HASH, ELSE)
            if choose.randrange(10) < often and (subject == HASH or choose.randrange(4) == 0)
        }
        self.denials = {
            (key, denied): Statement(key, "deny", denied, NOW, None, "a campaign")
            for key in KEYS
            for denied in KEYS
            if choose.randrange(12) == 0
        }
        self.policy = Policy(
            confirmations=choose.randint(1, 3),
            window=W,
            open=choose.randrange(4) == 0,
            followed=frozenset(key for key in KEYS if choose.randrange(3)),
            admitted=frozenset(self._admission(choose) for _ in range(choose.randrange(6))),
            revokers=frozenset(key for key in KEYS if choose.randrange(6) == 0),
        )
        self.now = NOW

    @staticmethod
    def _statement(choose: random.Random, key: str, type_: str, subject: str) -> Statement:
        time = None if choose.randrange(12) == 0 and type_ == "confirm" else NOW - choose.choice(AGES)
        if type_ == "lesson":
            return Statement(key, type_, subject, time, "error", choose.choice(SPELLINGS))
        return Statement(key, type_, subject, time, None, "it was wrong" if type_ == "revoke" else None)

    @staticmethod
    def _admission(choose: random.Random) -> Admission:
        # One key that never says a thing may join others.
        return Admission(choose.choice(KEYS + "z"), choose.choice("xy"), choose.choice("12"))

    def read(self) -> Reading:
        evidence = Evidence(HASH, tuple(self.said.values()), tuple(self.denials.values()))
        return lesson_state(evidence, self.policy, self.now)

    def expected(self) -> Expected:
        return expected_reading(HASH, self.said.values(), self.denials.values(), self.policy, self.now)

    def change(self, choose: random.Random) -> None:
        """Change one thing: a statement, a denial, the policy, or the time."""
        match choose.randrange(8):
            case 0 | 1 | 2 | 3:
                key, type_ = choose.choice(KEYS), choose.choice(("lesson", "confirm", "confirm", "revoke"))
                if self.said.pop((key, type_, HASH), None) is None or choose.randrange(2):
                    self.said[key, type_, HASH] = self._statement(choose, key, type_, HASH)
            case 4:
                pair = choose.choice(KEYS), choose.choice(KEYS)
                if self.denials.pop(pair, None) is None:
                    self.denials[pair] = Statement(pair[0], "deny", pair[1], NOW, None, "a campaign")
            case 5:
                other = World(choose).policy
                name = choose.choice(("confirmations", "open", "followed", "admitted", "revokers"))
                change: dict[str, Any] = {name: getattr(other, name)}
                self.policy = replace(self.policy, **change)
            case _:
                self.now = NOW + choose.choice((-1, 1)) * choose.choice(AGES)
