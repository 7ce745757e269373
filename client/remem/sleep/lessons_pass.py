"""The lessons pass: from episodes to lessons.

1. A lesson absorbs what its episodes were seen again since.
2. An episode that is in no lesson joins the one whose episodes it resembles: of its kind, by an average cosine of at
   least 0.55, the likest of several.
3. What is left clusters among itself. A cluster becomes a lesson if a person said it (a correction needs no more), or
   if what it is about was seen at least twice. Its text is the sentence that most of its episodes have; a cluster
   in which none has one waits.
4. An episode that came after a lesson of somebody else and resembles its text, by a cosine of at least 0.5, has met
   it. That is noted for the person to confirm; the pass confirms nothing.

The pass goes by the times of episodes, not by the order in which they came, and changes nothing when run again.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from remem.memory import lessons as shelf
from remem.memory.episodes import Episode, mark_compared, unabsorbed, uncompared
from remem.memory.lessons import Lesson, received_lessons
from remem.protocol.text import KNOWN_KINDS
from remem.sleep.embed import Vector, cosine, embed
from remem.sleep.linkage import JOIN, Groups, clusters

MEET: Final = 0.5
REPEATED: Final = 2


@dataclass(frozen=True, slots=True)
class Meeting:
    """A lesson of somebody else, and an episode of this memory that met it afterwards."""

    lesson: str
    episode: str
    likeness: float


@dataclass(slots=True)
class LessonsReport:
    """What the pass did, by the hashes of lessons; each is named once, but for those that were met.

    Attributes:
        new: lessons that this memory made.
        now_own: lessons of others, or that were read in, which this memory had met by itself before: its own now.
        gained: other lessons that gained by an episode, in order.
        meetings: lessons of others that an episode met.
    """

    new: list[str] = field(default_factory=list)
    now_own: list[str] = field(default_factory=list)
    gained: list[str] = field(default_factory=list)
    meetings: list[Meeting] = field(default_factory=list)


def lessons_pass(db: sqlite3.Connection, now: datetime) -> LessonsReport:
    """Run the pass; the caller owns the transaction."""
    report = LessonsReport()
    report.gained += shelf.absorb_repeats(db, now)
    waiting = unabsorbed(db)
    for kind in KNOWN_KINDS:
        group = [episode for episode in waiting if episode.kind == kind]
        vectors = [embed(episode.gist) for episode in group]
        left = _join(db, kind, group, vectors, now, report)
        _found(db, kind, [group[index] for index in left], [vectors[index] for index in left], now, report)
    report.meetings = find_meetings(db)
    report.gained = sorted({*report.gained}.difference(report.new, report.now_own))
    return report


def likeness(episode: Episode, text: str) -> float:
    """Return how alike an episode and a lesson's text are, from -1 to 1."""
    return max(cosine(embed(words), embed(text)) for words in (episode.gist, episode.sentence or ""))


def came_after(episode: Episode, lesson: Lesson) -> bool:
    """Tell whether an episode is later than the lesson: it happened and was recorded after that was received."""
    if lesson.received is None:
        return False
    # An agent may give a time in whole seconds.
    return episode.recorded > lesson.received and episode.at >= lesson.received.replace(microsecond=0)


def find_meetings(db: sqlite3.Connection) -> list[Meeting]:
    """Hold new episodes against the lessons of others, note which have met one, and return those.

    Once is enough for an episode: a lesson that is received afterwards came too late to be met by it.
    """
    recent = uncompared(db)
    if not recent:
        return []
    groups = Groups()
    owners: list[Episode] = []
    for episode in recent:
        for words in {episode.gist, episode.sentence or ""}:
            groups.new([embed(words)])
            owners.append(episode)
    found = [meeting for lesson in received_lessons(db) for meeting in _met(lesson, groups, owners)]
    shelf.add_meetings(db, [(one.lesson, one.episode, one.likeness) for one in found])
    mark_compared(db, [episode.id for episode in recent])
    return found


def _met(lesson: Lesson, groups: Groups, owners: Sequence[Episode]) -> list[Meeting]:
    best: dict[str, float] = {}
    for number, alike in groups.near(embed(lesson.text), MEET):
        episode = owners[number]
        if episode.kind == lesson.kind and came_after(episode, lesson):
            best[episode.id] = max(alike, best.get(episode.id, alike))
    return [Meeting(lesson.hash, episode, alike) for episode, alike in sorted(best.items())]


def _join(
    db: sqlite3.Connection,
    kind: str,
    group: Sequence[Episode],
    vectors: Sequence[Vector],
    now: datetime,
    report: LessonsReport,
) -> list[int]:
    """Let episodes join the lessons they resemble; return the indices of those that resemble none."""
    known = shelf.member_gists(db, kind)
    hashes = list(known)
    groups = Groups()
    for digest in hashes:
        groups.new(map(embed, known[digest]))
    left = []
    for index, (episode, vector) in enumerate(zip(group, vectors, strict=True)):
        near = groups.near(vector, JOIN)
        if not near:
            left.append(index)
            continue
        number, _ = max(near, key=lambda found: (found[1], -found[0]))
        groups.add(number, vector)
        if shelf.join_lesson(db, hashes[number], episode, now):
            report.gained.append(hashes[number])
    return left


def _found(
    db: sqlite3.Connection,
    kind: str,
    group: Sequence[Episode],
    vectors: Sequence[Vector],
    now: datetime,
    report: LessonsReport,
) -> None:
    for cluster in clusters(vectors, JOIN):
        together = [group[index] for index in cluster]
        text = _text(together)
        is_enough = kind == "correction" or sum(episode.seen for episode in together) >= REPEATED
        if text is None or not is_enough:
            continue
        digest, outcome = shelf.found_lesson(db, kind, text, together, now)
        if outcome != "absorbed":
            {"new": report.new, "now_own": report.now_own, "gained": report.gained}[outcome].append(digest)


def _text(together: Sequence[Episode]) -> str | None:
    """Return the sentence that most episodes of a cluster have; of equals, the one that came first."""
    sentences = Counter[str]()
    for episode in together:
        if episode.sentence is not None:
            sentences[episode.sentence] += episode.seen
    return max(sentences, key=lambda sentence: sentences[sentence], default=None)
