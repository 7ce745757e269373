"""Confirmations, revocations and trust: what a memory may say, and what it refuses to."""

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from remem.commons import FolderCommons
from remem.errors import Refused, RememError
from remem.memory import lessons, records, trust
from remem.memory.store import transaction
from remem.protocol import accept, lesson_hash
from remem.sharing.seal import KeyRetired
from remem.sharing.share import withdraw
from remem.sharing.speak import confirm, distrust_key, revoke, trust_key
from remem_testkit.files import NOW, file, key, lesson
from remem_testkit.memories import MACHINE, Memory, put_files

TEXT = "The build fails with a linker error while the cache of the old compiler is still there"
HASH = lesson_hash("error", TEXT)
A, B = key(11), key(12)


@pytest.fixture
def reader(memory: Callable[[int], Memory], folder: Path) -> Memory:
    """Return a memory that received a lesson an hour ago."""
    reader = memory(1)
    put_files(folder, [file(A, [lesson(TEXT)], seal=5)])
    reader.pull(folder)
    reader.later(hours=1)
    return reader


def test_a_confirmation_names_an_episode_and_carries_its_day(reader: Memory, folder: Path) -> None:
    strength = lessons.get_lesson(reader.db, HASH).strength
    episode = reader.meet(TEXT)
    report = confirm(reader.home, reader.db, HASH[:10], episode=episode, now=reader.now)
    assert report.renewed
    assert report.likeness > 0.9
    assert report.at == datetime(2026, 3, 1, tzinfo=UTC)
    assert lessons.get_lesson(reader.db, HASH).strength == strength + 0.5
    reader.share(folder)
    data = FolderCommons(folder).get(reader.name)
    assert data is not None
    assert b'{"at":"2026-03-01T00:00:00Z","confirm":"' + HASH.encode() in data
    assert episode.encode() not in data
    assert accept(data, now=reader.now).topics == (f"confirm {HASH}",)


def test_a_later_episode_renews_a_confirmation_and_an_earlier_one_does_not(reader: Memory) -> None:
    first = reader.meet(TEXT)
    confirm(reader.home, reader.db, HASH, episode=first, now=reader.now)
    strength = lessons.get_lesson(reader.db, HASH).strength
    assert not confirm(reader.home, reader.db, HASH, episode=first, now=reader.now).renewed
    reader.later(days=40)
    report = confirm(reader.home, reader.db, HASH, episode=reader.meet(TEXT), now=reader.now)
    assert report.renewed
    assert report.at.date() == reader.now.date()
    assert lessons.get_lesson(reader.db, HASH).strength == strength


def test_an_episode_from_before_the_lesson_confirms_nothing(memory: Callable[[int], Memory], folder: Path) -> None:
    reader = memory(1)
    before = reader.meet(TEXT)
    reader.later(hours=1)
    put_files(folder, [file(A, [lesson(TEXT)], seal=5)])
    reader.pull(folder)
    refuse(reader, before, "after the lesson was received")


def refuse(reader: Memory, episode: str, why: str, subject: str = HASH) -> None:
    with pytest.raises(Refused, match=why) as refused:
        confirm(reader.home, reader.db, subject, episode=episode, now=reader.now)
    assert refused.value.exit_code == 3
    assert records.own_records(reader.db) == ()


def test_an_episode_of_a_project_that_is_not_opted_in_confirms_nothing(reader: Memory, tmp_path: Path) -> None:
    refuse(reader, reader.meet(TEXT, cwd=tmp_path / "elsewhere"), "opted in")


@pytest.mark.parametrize(
    ("cwd", "why", "hint"),
    [
        pytest.param(None, "names no folder", None, id="without a folder"),
        pytest.param("src", "names a folder by no absolute path", None, id="of a folder without a beginning"),
        pytest.param("/srv/a b", "in no project that is opted in", "remem project add '/srv/a b'", id="of another"),
    ],
)
def test_why_an_episode_is_of_no_project_is_said(reader: Memory, cwd: str | None, why: str, hint: str | None) -> None:
    episode = reader.meet(TEXT)
    with transaction(reader.db):
        reader.db.execute("UPDATE episodes SET cwd = ?", (cwd,))
    with pytest.raises(Refused, match=why) as refused:
        confirm(reader.home, reader.db, HASH, episode=episode, now=reader.now)
    assert refused.value.hint == hint


def test_a_key_that_withdrew_for_good_says_nothing_any_more(reader: Memory, folder: Path) -> None:
    episode = reader.meet(TEXT)
    commons = [FolderCommons(folder)]
    withdraw(reader.home, reader.db, commons, machine=MACHINE, now=reader.now, for_good=True)
    for act in (
        lambda: confirm(reader.home, reader.db, HASH, episode=episode, now=reader.now),
        lambda: revoke(reader.db, HASH, reason="it was wrong", machine=MACHINE, now=reader.now),
    ):
        with pytest.raises(KeyRetired) as retired:
            act()
        assert retired.value.exit_code == 3
    assert records.own_records(reader.db) == ()
    assert reader.lesson_state(HASH) == "received active"


def test_an_episode_that_does_not_resemble_the_lesson_confirms_nothing(reader: Memory) -> None:
    refuse(reader, reader.meet("The certificate of the proxy expired in the night"), "resembles the lesson by 0.5")


def test_an_own_lesson_is_not_confirmed_by_its_owner(reader: Memory) -> None:
    (own,) = reader.learn("A test that passes alone fails in a run with others, since both write to one port")
    refuse(reader, reader.meet(TEXT), "this memory's own", own)


def test_a_lesson_that_does_not_count_here_is_not_confirmed(reader: Memory, folder: Path) -> None:
    episode = reader.meet(TEXT)
    with transaction(reader.db):
        lessons.set_state(reader.db, [HASH], "dropped", reader.now)
    refuse(reader, episode, "dropped")


def test_a_lesson_of_which_only_evidence_is_held_is_not_confirmed(reader: Memory, folder: Path) -> None:
    trust_key(reader.home, reader.db, B.public.hex, "revoker", now=NOW)
    text = "A test that passes alone fails in a run with others, since both write to one port"
    gone = {"revoke": (subject := lesson_hash("error", text)), "at": "2026-03-01T00:00:00Z"}
    put_files(folder, [file(B, [gone], seal=5), file(A, [lesson(text)], seal=6)])
    reader.pull(folder)
    refuse(reader, reader.meet(text), "only holds evidence", subject)


def test_an_unknown_lesson_or_episode_is_an_error(reader: Memory) -> None:
    episode = reader.meet(TEXT)
    for subject, named in ((HASH, "ffffffffffffffff"), ("0" * 32, episode), ("xyz", episode), (HASH[:2], episode)):
        with pytest.raises(RememError):
            confirm(reader.home, reader.db, subject, episode=named, now=reader.now)
    assert records.own_records(reader.db) == ()


def test_a_revocation_of_anothers_lesson_holds_here_at_once_and_leaves_with_the_next_share(
    reader: Memory, folder: Path
) -> None:
    report = revoke(reader.db, HASH[:12], reason="the cache was not the cause", machine=MACHINE, now=reader.now)
    assert (report.hash, report.source, report.stopped) == (HASH, "received", True)
    assert reader.lesson_state(HASH) == "received dropped"
    assert reader.reading(HASH).revokers == (reader.name,)
    reader.share(folder)
    other = Memory(folder.parent / "other", 2)
    trust_key(other.home, other.db, reader.name, "revoker", now=NOW)
    other.now = reader.now
    other.pull(folder)
    assert other.lesson_state(HASH) is None
    assert other.reading(HASH).revokers == (reader.name,)
    other.close()


def test_what_was_revoked_here_does_not_come_in_from_another_key(reader: Memory, folder: Path) -> None:
    revoke(reader.db, HASH, reason=None, machine=MACHINE, now=reader.now)
    put_files(folder, [file(B, [lesson(TEXT)], seal=5)])
    reader.pull(folder)
    assert reader.lesson_state(HASH) == "received dropped"


def test_trust_goes_by_key_and_the_own_one_needs_none(reader: Memory) -> None:
    for wrong in ("", "xyz", "00" * 32, A.public.origin, reader.name):
        with pytest.raises(Refused):
            trust_key(reader.home, reader.db, wrong, "follow", now=NOW)
    trust_key(reader.home, reader.db, A.public.hex.upper(), "follow", now=NOW)
    assert trust.trusted(reader.db, "follow") == {A.public.hex}
    with pytest.raises(RememError):
        distrust_key(reader.home, reader.db, B.public.hex, now=NOW)
    with pytest.raises(RememError):
        distrust_key(reader.home, reader.db, A.public.hex, roles=("revoker",), now=NOW)
    assert distrust_key(reader.home, reader.db, A.public.hex[:6], now=NOW).roles == ("follow",)
    assert trust.trusted(reader.db, "follow") == frozenset()
