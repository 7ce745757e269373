"""Whole flows over a folder: a publisher, confirmers, a reader, and a lesson that is taken back."""

from collections.abc import Callable
from pathlib import Path

from remem.protocol import Cause, State
from remem.sharing.speak import confirm, distrust_key, revoke, trust_key
from remem_testkit.memories import MACHINE, Memory

TEXT = "The build fails with a linker error while the cache of the old compiler is still there"


def confirmed(memory: Callable[[int], Memory], folder: Path, publisher: Memory, confirmers: list[Memory]) -> str:
    """Let one memory publish a lesson, and others meet and confirm it."""
    (lesson,) = publisher.learn(TEXT)
    publisher.share(folder)
    for one in confirmers:
        one.pull(folder)
        one.later(days=1)
        report = confirm(one.home, one.db, lesson, episode=one.meet(TEXT), now=one.now)
        assert report.renewed
        one.share(folder)
    return lesson


def test_three_followed_confirmers_make_a_lesson_common(memory: Callable[[int], Memory], folder: Path) -> None:
    reader, confirmers = memory(9), [memory(2), memory(3), memory(4)]
    lesson = confirmed(memory, folder, memory(1), confirmers)
    reader.now = confirmers[0].now
    report = reader.pull(folder)
    assert [taken.outcome for taken in report.taken] == ["new"] * 4
    assert report.learned == 1
    assert reader.lesson_state(lesson) == "received active"
    assert reader.reading(lesson).state is State.CANDIDATE
    assert reader.reading(lesson).unadmitted == 3
    for one in confirmers:
        trust_key(reader.home, reader.db, one.name, "follow", now=reader.now)
    assert reader.reading(lesson).state is State.COMMON


def test_what_its_publisher_takes_back_is_dropped_and_never_comes_back(
    memory: Callable[[int], Memory], folder: Path
) -> None:
    publisher, reader = memory(1), memory(2)
    (lesson,) = publisher.learn(TEXT)
    publisher.share(folder)
    reader.pull(folder)
    revoke(publisher.db, lesson, reason="the cache was not the cause", machine=MACHINE, now=publisher.now)
    assert publisher.lesson_state(lesson) == "own dropped"
    publisher.later(hours=1)
    reader.later(hours=1)
    assert publisher.share(folder).revocations == 1
    report = reader.pull(folder)
    assert [(one.hash, one.why) for one in report.stopped] == [(lesson, "withdrawn")]
    assert reader.lesson_state(lesson) == "received dropped"
    assert reader.reading(lesson).cause is Cause.WITHDRAWN


def test_a_trusted_revoker_stops_a_lesson_and_lets_it_come_back(memory: Callable[[int], Memory], folder: Path) -> None:
    publisher, revoker, reader = memory(1), memory(2), memory(3)
    (lesson,) = publisher.learn(TEXT)
    publisher.share(folder)
    reader.pull(folder)
    revoker.pull(folder)
    revoke(revoker.db, lesson, reason=None, machine=MACHINE, now=revoker.now)
    revoker.share(folder)
    assert reader.pull(folder).stopped == ()
    trusted = trust_key(reader.home, reader.db, revoker.name, "revoker", now=reader.now)
    assert [(one.hash, one.why) for one in trusted.stopped] == [(lesson, "revoker")]
    assert reader.lesson_state(lesson) == "received dropped"
    assert distrust_key(reader.home, reader.db, revoker.name, now=reader.now).resumed == (lesson,)
    assert reader.lesson_state(lesson) == "received active"
