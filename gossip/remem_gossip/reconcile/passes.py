"""How the side that begins finds what the two sets have that the other lacks, where it is more than one exchange takes.

Messages go from the oldest items to the newest: what does not fit is always the newest, and what this side knows is
among the newest over there.

1. One pass goes over everything. For most sets it comes to its end, and that is all.
2. Where it does not, it is done again for the newest alone: for the last day and a half, since a night may be late, and
   then for the last nine days. The first message skips what is older.
3. A last pass begins anywhere, so that nothing between the oldest and the newest is out of reach for good.
4. Each pass gets half of what is left of the rounds, differences and bytes. So the next one has a part, and so has
   whatever comes behind reconciliation.

A peer from which nothing is learned for longer than any set needs does not mean to come to an end.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from itertools import chain
from random import Random
from typing import Final, TypeAlias

from remem_gossip.errors import GossipError
from remem_gossip.reconcile.negentropy import Limits, Reconciler
from remem_gossip.reconcile.storage import Storage

_HOUR: Final = 3_600
_NEWEST: Final = (36 * _HOUR, 9 * 24 * _HOUR)
"""How long before now the newest begin: what is sought first, and then."""
_BARREN_MOST: Final = 8
"""How many rounds may teach nothing: 16 parts a round and 32 items a list reach beyond 10^11 items."""


class Endless(GossipError):
    """A peer does not come to an end of reconciliation."""

    code = "gossip_endless"


@dataclass(frozen=True, slots=True)
class Reach:
    """How far reconciliation goes in one exchange; the rest is for the next.

    Attributes:
        rounds: how many messages are sent.
        differences: how many items are looked for on either side.
    """

    rounds: int = 64
    differences: int = 200_000


REACH: Final = Reach()


@dataclass(slots=True)
class Found:
    """What one pass found.

    Attributes:
        have: what the other side lacks, in the order of the items.
        need: what this side lacks.
        is_all: whether it came to its end, so that there is nothing else.
    """

    have: dict[bytes, None] = field(default_factory=dict)
    need: dict[bytes, None] = field(default_factory=dict)
    is_all: bool = False

    @property
    def size(self) -> int:
        """How many items the side that lacks more lacks."""
        return max(len(self.have), len(self.need))


@dataclass(frozen=True, slots=True)
class Differences:
    """What all passes found, each id once.

    Attributes:
        have: what the other side lacks, from the newest on.
        newest: what this side lacks, by passes: of everything, if that came to its end, else of the newest.
        others: what else this side lacks, as far as it was found.
    """

    have: list[bytes]
    newest: list[list[bytes]]
    others: list[bytes]


Opened: TypeAlias = Callable[[], AbstractContextManager[Storage]]
Messages: TypeAlias = Generator[bytes, bytes, Found]


class Passes:
    """The passes of one exchange.

    Args:
        opened: opens the items of this side, as they are at one moment.
        left: says how many bytes the other side may still send.
        random: chooses where the last pass begins.
        now: the clock, in seconds since 1970.
        frame_limit: how many bytes a message has at most.
        reach: how far they go together.
    """

    def __init__(
        self,
        opened: Opened,
        left: Callable[[], int],
        random: Random,
        *,
        now: int,
        frame_limit: int,
        reach: Reach = REACH,
    ) -> None:
        self._opened = opened
        self._left = left
        self._random = random
        self._now = now
        self._frame_limit = frame_limit
        self._rounds_left = reach.rounds
        self._differences_left = reach.differences

    def messages(self) -> Generator[bytes, bytes, Differences]:
        """Yield each message, be sent its answer, and return what was found.

        Raises:
            BadFrame: an answer is none.
            Endless: the other side comes to no end.
        """
        whole = yield from self._pass(0)
        if whole.is_all:
            return merged([whole], [])
        newest: list[Found] = []
        for behind in _NEWEST:
            newest += [(yield from self._pass(max(0, self._now - behind)))]
        anywhere = yield from self._pass(self._anywhere())
        return merged(newest, [anywhere, whole])

    def _anywhere(self) -> int:
        """Choose a time between any two items that are held here."""
        early, late = 0, self._now
        with self._opened() as storage:
            if count := len(storage):
                index = self._random.randrange(count)
                early = storage.item(index).time
                late = storage.item(index + 1).time if index + 1 < count else late
        return self._random.randint(early, max(early, late))

    def _pass(self, since: int) -> Messages:
        found, barren, is_cut = Found(), 0, False
        rounds, most, least = self._rounds_left // 2, self._differences_left // 2, self._left() // 2
        with self._opened() as storage:
            message: bytes | None = Reconciler(storage, self._frame_limit).initiate(since)
        while message is not None and rounds and found.size < most and self._left() > least:
            answer = yield message
            rounds -= 1
            self._rounds_left -= 1
            with self._opened() as storage:
                limits = Limits(own=most - len(found.have))
                step = Reconciler(storage, self._frame_limit, limits).reconcile(answer)
            learned = len(found.have) + len(found.need)
            found.have.update(dict.fromkeys(step.have))
            found.need.update(dict.fromkeys(step.need))
            barren = 0 if len(found.have) + len(found.need) > learned else barren + 1
            message, is_cut = step.message, is_cut or step.is_cut
            if message is not None and barren > _BARREN_MOST:
                raise Endless(f"something to learn in {_BARREN_MOST} rounds", "nothing")
        # An answer may go beyond a pass's part, and takes nothing from the next one's.
        self._differences_left -= min(found.size, most)
        found.is_all = message is None and not is_cut
        return found


def merged(newest: Sequence[Found], others: Sequence[Found]) -> Differences:
    """Put together what passes found.

    What changed here between two rounds looks as if each side lacked it, and is left out.
    """
    passes = [*newest, *others]
    seen = {one for found in passes for one in found.have} & {one for found in passes for one in found.need}
    have = dict.fromkeys(one for found in passes for one in reversed(found.have) if one not in seen)
    need: list[list[bytes]] = []
    for found in passes:
        need.append([one for one in found.need if one not in seen])
        seen.update(found.need)
    return Differences(list(have), need[: len(newest)], list(chain.from_iterable(need[len(newest) :])))
