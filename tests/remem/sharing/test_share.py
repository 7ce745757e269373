"""What leaves a memory, under which seal, and what stops it."""

import json
import multiprocessing
import os
import shutil
import sqlite3
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from remem.commons import FolderCommons
from remem.commons.folder import write_file
from remem.errors import Refused, Unreachable
from remem.memory import holdings, lessons, places, records
from remem.memory.records import OwnRecord
from remem.memory.store import transaction
from remem.protocol import RULES, OriginFile, Version, accept, digest_of, lesson_hash
from remem.protocol.times import unix_seconds
from remem.sharing import share as acts
from remem.sharing.seal import KeyRetired
from remem.sharing.share import ForeignSeal, withdraw
from remem.sharing.speak import revoke
from remem_testkit.files import NOW, draft_file, file, lesson, revocation
from remem_testkit.memories import MACHINE, Memory

TEXT = "The build fails with a linker error while the cache of the old compiler is still there"
OTHER = "A test that passes alone fails in a run with others, since both write to one port"


def stored(memory: Memory, folder: Path) -> OriginFile:
    data = FolderCommons(folder).get(memory.name)
    assert data is not None
    return accept(data, now=memory.now + timedelta(days=3))


def said(file: OriginFile) -> list[str]:
    return list(file.topics)


def test_an_error_lesson_of_an_opted_in_project_leaves_as_it_is(memory: Callable[[int], Memory], folder: Path) -> None:
    one = memory(1)
    (learned,) = one.learn(TEXT)
    report = one.share(folder)
    assert [result.outcome for result in report.results] == ["new"]
    whole = stored(one, folder)
    assert whole.data == report.data
    assert whole.version == report.version == Version(unix_seconds(one.now), digest_of(report.data))
    assert said(whole) == [f"lesson {learned}"]
    assert report.room.records == RULES.file_records - 1
    assert (one.home.commons_path / f"{one.name}.jsonl").read_bytes() == report.data


def test_nothing_leaves_by_itself_but_error_lessons_of_opted_in_projects(
    memory: Callable[[int], Memory], folder: Path, tmp_path: Path
) -> None:
    one = memory(1)
    (correction,) = one.learn("The person wants tests that run without a network", kind="correction")
    (elsewhere,) = one.learn(TEXT, cwd=tmp_path / "elsewhere")
    (private,) = one.learn("The build of annika fails while the cache is cold")
    with transaction(one.db):
        one.db.execute(
            "INSERT INTO lessons (hash, kind, text, seen, strength, updated, source)"
            " VALUES (?, 'error', ?, 1, 1, '2026-01-01T00:00:00Z', 'imported')",
            (imported := lesson_hash("error", OTHER), OTHER),
        )
    report = one.share(folder)
    assert {held.subject: held.code for held in report.held_back} == {
        correction: "kind",
        elsewhere: "project",
        private: "privacy",
        imported: "no_episode",
    }
    assert said(stored(one, folder)) == []


def test_a_chosen_lesson_leaves_from_now_on(memory: Callable[[int], Memory], folder: Path) -> None:
    one = memory(1)
    (correction,) = one.learn("The person wants tests that run without a network", kind="correction")
    one.share(folder, also=[correction[:8]])
    assert said(stored(one, folder)) == [f"lesson {correction}"]
    one.learn(TEXT)
    one.share(folder)
    assert f"lesson {correction}" in said(stored(one, folder))


def test_choosing_does_not_open_a_project(memory: Callable[[int], Memory], folder: Path, tmp_path: Path) -> None:
    one = memory(1)
    (elsewhere,) = one.learn(TEXT, cwd=tmp_path / "elsewhere")
    report = one.share(folder, also=[elsewhere])
    assert [held.code for held in report.held_back] == ["project"]


PLACES = {
    "an episode without a folder": (None, "an episode of it names no folder"),
    "an episode of a folder without a beginning": ("src/app", "an episode of it names a folder by no absolute path"),
    "an episode of another folder": (
        "/srv/elsewhere", "an episode of it is from a folder that is in no project that is opted in",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("cwd", "reason"), PLACES.values(), ids=PLACES.keys())
def test_why_an_episode_keeps_a_lesson_here_is_said(
    memory: Callable[[int], Memory], folder: Path, cwd: str | None, reason: str
) -> None:
    one = memory(1)
    one.learn(TEXT)
    with transaction(one.db):
        one.db.execute("UPDATE episodes SET cwd = ?", (cwd,))
    (held,) = one.share(folder).held_back
    assert (held.code, held.reasons) == ("project", (reason,))


def test_a_lesson_of_others_is_never_published_as_ones_own(memory: Callable[[int], Memory], folder: Path) -> None:
    (learned,) = memory(1).learn(TEXT)
    memory(1).share(folder)
    memory(2).pull(folder)
    memory(2).share(folder)
    assert said(stored(memory(2), folder)) == []
    with pytest.raises(Refused) as refused:
        memory(2).share(folder, also=[learned])
    assert refused.value.hint is not None
    assert f"remem confirm {learned[:16]} --episode" in refused.value.hint


def test_a_rehearsal_shows_the_bytes_that_leave_and_changes_nothing(
    memory: Callable[[int], Memory], folder: Path
) -> None:
    one = memory(1)
    (correction,) = one.learn("The person wants tests that run without a network", kind="correction")
    one.learn(TEXT)
    before = "\n".join(one.db.iterdump())
    rehearsed = one.share(folder, also=[correction], rehearse=True)
    assert "\n".join(one.db.iterdump()) == before
    assert list(folder.iterdir()) == []
    assert one.held_files() == {}
    assert [result.outcome for result in rehearsed.results] == ["ready"]
    assert one.share(folder, also=[correction]).data == rehearsed.data


def test_where_nothing_changed_the_very_same_bytes_go_out_again(memory: Callable[[int], Memory], folder: Path) -> None:
    one = memory(1)
    one.learn(TEXT)
    first = one.share(folder)
    one.later(days=2)
    again = one.share(folder)
    assert again.data == first.data
    assert not again.renewed
    assert [result.outcome for result in again.results] == ["unchanged"]


def test_lines_about_which_nothing_changed_stay_the_same(memory: Callable[[int], Memory], folder: Path) -> None:
    one = memory(1)
    one.learn(TEXT)
    first = one.share(folder)
    one.learn(OTHER)
    one.later(seconds=1)
    second = one.share(folder)
    assert set(first.data.splitlines()[1:]) < set(second.data.splitlines()[1:])
    assert second.version.seal == (first.version.seal or 0) + 1


def test_two_shares_within_a_second_have_two_seals(memory: Callable[[int], Memory], folder: Path) -> None:
    one = memory(1)
    one.learn(TEXT)
    first = one.share(folder)
    one.learn(OTHER)
    assert one.share(folder).version.seal == (first.version.seal or 0) + 1


def test_a_revocation_takes_the_place_of_the_lesson(memory: Callable[[int], Memory], folder: Path) -> None:
    one = memory(1)
    (learned,) = one.learn(TEXT)
    one.share(folder)
    revoke(one.db, learned, reason="the cache was not the cause", machine=MACHINE, now=one.now)
    one.share(folder)
    whole = stored(one, folder)
    assert said(whole) == [f"revoke {learned}"]
    assert TEXT.encode() not in whole.data


@pytest.mark.parametrize(
    "reason", ["", "two\nlines", "x" * 1_001, "it broke in /srv/annika/x", "ghp_16C7e42F292c6912E7710c838347Ae178B4a"]
)
def test_a_reason_is_judged_before_it_is_written(memory: Callable[[int], Memory], reason: str) -> None:
    one = memory(1)
    (learned,) = one.learn(TEXT)
    with pytest.raises(Refused):
        revoke(one.db, learned, reason=reason, machine=MACHINE, now=one.now)
    assert one.lesson_state(learned) == "own active"


# --- foreign seals ---


def foreign(memory: Memory, folder: Path, *, seal: int) -> Version:
    """Put a file there that the memory's key signed and this memory does not know."""
    contents = [lesson(OTHER), revocation(lesson_hash("error", TEXT), reason="it was wrong")]
    data = file(memory.key, contents, seal=seal)
    (folder / f"{memory.name}.jsonl").write_bytes(data)
    return Version(seal, digest_of(data))


def test_a_foreign_seal_stops_and_changes_nothing(memory: Callable[[int], Memory], folder: Path) -> None:
    one = memory(1)
    one.learn(TEXT)
    version = foreign(one, folder, seal=7)
    before = "\n".join(one.db.iterdump())
    with pytest.raises(ForeignSeal) as stopped:
        one.share(folder)
    assert (stopped.value.code, stopped.value.exit_code) == ("foreign_seal", 3)
    assert stopped.value.version == version
    assert "\n".join(one.db.iterdump()) == before
    assert stored(one, folder).version == version


def test_adopting_takes_the_whole_file_over_and_goes_on(memory: Callable[[int], Memory], folder: Path) -> None:
    one = memory(1)
    (revoked,) = one.learn(TEXT)
    version = foreign(one, folder, seal=unix_seconds(one.now) + 10)
    rehearsed = one.share(folder, adopt=True, rehearse=True)
    report = one.share(folder, adopt=True)
    assert rehearsed.data == report.data
    assert report.adopted == (version,)
    whole = stored(one, folder)
    assert said(whole) == [f"lesson {lesson_hash('error', OTHER)}", f"revoke {revoked}"]
    assert whole.version.seal == unix_seconds(one.now) + 11
    assert b'"reason":"it was wrong"' in whole.data
    one.later(hours=1)
    assert [result.outcome for result in one.share(folder).results] == ["unchanged"]


def test_a_restored_backup_meets_its_own_later_seal_as_foreign(
    memory: Callable[[int], Memory], folder: Path, tmp_path: Path
) -> None:
    one = memory(1)
    one.learn(TEXT)
    one.share(folder)
    with sqlite3.connect(tmp_path / "backup.db") as backup:
        one.db.backup(backup)
    one.later(days=1)
    (later,) = one.learn(OTHER)
    one.share(folder)
    one.db.close()
    for path in one.home.path.glob("memory.db*"):
        path.unlink()
    shutil.copy(tmp_path / "backup.db", one.home.db_path)
    one.db = one.home.connect()
    with pytest.raises(ForeignSeal):
        one.share(folder)
    one.share(folder, adopt=True)
    assert f"lesson {later}" in said(stored(one, folder))
    assert one.lesson_state(later) == "own active"


def test_a_file_of_draft_0_under_the_own_key_is_replaced(memory: Callable[[int], Memory], folder: Path) -> None:
    one = memory(1)
    (folder / f"{one.key.public.origin}.jsonl").write_bytes(draft_file(one.key, [lesson(OTHER)]))
    one.learn(TEXT)
    assert [result.outcome for result in one.share(folder).results] == ["newer"]


def test_a_file_under_the_own_name_that_nobody_accepts_is_replaced(
    memory: Callable[[int], Memory], folder: Path
) -> None:
    one = memory(1)
    genuine = file(one.key, [lesson(OTHER)], seal=unix_seconds(one.now) + 100)
    (folder / f"{one.name}.jsonl").write_bytes(genuine[:-1] + b" \n")
    one.learn(TEXT)
    report = one.share(folder)
    assert [notice.code for notice in report.notices] == ["white_space"]
    assert [result.outcome for result in report.results] == ["new"]


# --- several targets, and other processes ---


def test_one_target_that_is_away_does_not_keep_the_file_from_another(
    memory: Callable[[int], Memory], folder: Path, tmp_path: Path
) -> None:
    one = memory(1)
    one.learn(TEXT)
    report = one.share(tmp_path / "absent", folder, "http://127.0.0.1:1")
    assert [result.outcome for result in report.results] == ["unreachable", "new", "unreachable"]
    assert [place.target for place in places.places(one.db) if place.shared_seal] == [str(folder)]


def test_where_no_target_answers_nothing_is_sealed(memory: Callable[[int], Memory], tmp_path: Path) -> None:
    one = memory(1)
    one.learn(TEXT)
    with pytest.raises(Unreachable) as unreachable:
        one.share(tmp_path / "absent")
    assert unreachable.value.hint == "a folder is not made for you: make it first"
    assert records.newest_seal(one.db) is None


def test_what_helps_is_told_target_by_target(memory: Callable[[int], Memory], folder: Path, tmp_path: Path) -> None:
    one = memory(1)
    one.learn(TEXT)
    report = one.share(tmp_path / "127.0.0.1:7363", folder)
    assert [result.hint is not None and "http://" in result.hint for result in report.results] == [True, False]


def test_what_a_writer_that_died_left_behind_is_swept_at_both_ends(
    memory: Callable[[int], Memory], folder: Path
) -> None:
    one = memory(1)
    one.learn(TEXT)
    left = [place / f".{one.name}.{'0' * 16}.tmp" for place in (one.home.commons_path, folder)]
    for path in left:
        path.write_bytes(b"a part")
        os.utime(path, (0, 0))
    one.share(folder)
    assert not any(path.exists() for path in left)


def test_a_seal_is_logged_and_kept_before_it_is_sent(
    memory: Callable[[int], Memory], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = memory(1)
    one.learn(TEXT)

    def die(*_arguments: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(FolderCommons, "put", die)
        with pytest.raises(KeyboardInterrupt):
            one.share(folder)
    kept = records.newest_seal(one.db)
    assert kept is not None
    report = one.share(folder)
    assert report.version == kept
    assert not report.renewed


def test_a_death_before_the_seal_is_logged_leaves_nothing_that_looks_foreign(
    memory: Callable[[int], Memory], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = memory(1)
    one.learn(TEXT)

    def write_and_die(*arguments: object) -> None:
        write_file(*arguments)  # type: ignore[arg-type]
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(acts, "write_file", write_and_die)
        with pytest.raises(KeyboardInterrupt):
            one.share(folder)
    assert records.newest_seal(one.db) is None
    one.later(seconds=5)
    assert [result.outcome for result in one.share(folder).results] == ["new"]
    assert one.held_files()[f"{one.name}.jsonl"] == stored(one, folder).data


def share_often(path: Path, folder: Path, start: int) -> None:
    memory = Memory.__new__(Memory)
    memory.open(path)
    for number in range(start, start + 8):
        with transaction(memory.db):
            records.put_record(memory.db, OwnRecord("revoke", f"{number:032x}", NOW))
        report = memory.share(folder)
        assert report.results[0].outcome in ("new", "newer", "unchanged", "superseded")
    memory.close()


def test_two_processes_that_share_at_once_lose_nothing(memory: Callable[[int], Memory], folder: Path) -> None:
    one = memory(1)
    ways = multiprocessing.get_context("spawn")
    sharers = [ways.Process(target=share_often, args=(one.home.path, folder, start)) for start in (0, 100)]
    for sharer in sharers:
        sharer.start()
    for sharer in sharers:
        sharer.join(120)
        assert sharer.exitcode == 0
    whole = stored(one, folder)
    assert len(said(whole)) == 16
    assert whole.version == records.newest_seal(one.db)
    logged = [version.seal for version in records.own_seals(one.db)]
    assert len(set(logged)) == len(logged)


# --- what fits ---


def fill(memory: Memory, count: int, *, kind: str, days_ago: int = 0) -> None:
    with transaction(memory.db):
        for number in range(count):
            at = memory.now - timedelta(days=days_ago, seconds=number)
            records.put_record(memory.db, OwnRecord(kind, f"{days_ago:016x}{number:016x}", at))


def test_a_full_file_loses_its_weakest_lessons_first(memory: Callable[[int], Memory], folder: Path) -> None:
    one = memory(1)
    hashes = one.learn(*(f"The module {number} fails at its end" for number in range(500)))
    with transaction(one.db):
        for step, learned in enumerate(hashes):
            lessons.raise_strength(one.db, [learned], one.now, by=step)
    fill(one, 200, kind="revoke")
    fill(one, 100, kind="confirm", days_ago=181)
    report = one.share(folder)
    assert report.left_out
    assert [(left.type, left.subject) for left in report.left_out] == [
        ("lesson", learned) for learned in hashes[: len(report.left_out)]
    ]
    assert (report.revocations, report.confirmations) == (200, 100)
    assert report.room.bytes < 600


def test_then_it_loses_its_oldest_confirmations(memory: Callable[[int], Memory], folder: Path) -> None:
    one = memory(1)
    (learned,) = one.learn(TEXT)
    fill(one, 500, kind="revoke")
    fill(one, 290, kind="confirm", days_ago=10)
    fill(one, 10, kind="confirm", days_ago=181)
    report = one.share(folder)
    assert report.left_out[0].subject == learned
    lost = [left.subject for left in report.left_out[1:]]
    oldest = [f"{181:016x}{number:016x}" for number in reversed(range(10))]
    assert lost[:10] == oldest
    assert lost[10:] == [f"{10:016x}{number:016x}" for number in reversed(range(290))][: len(lost) - 10]
    assert report.revocations == 500


def test_it_never_loses_a_revocation(memory: Callable[[int], Memory], folder: Path) -> None:
    one = memory(1)
    fill(one, 800, kind="revoke")
    with pytest.raises(Refused, match="expected at most 1000 records in 262144 bytes, got 0 records and"):
        one.share(folder)


def test_bytes_are_counted_as_well_as_records(memory: Callable[[int], Memory], folder: Path) -> None:
    one = memory(1)
    one.learn(*(f"The module {number} fails {'and fails ' * 90}at its end" for number in range(240)))
    report = one.share(folder)
    assert report.left_out
    assert len(report.data) <= RULES.file_bytes
    assert 0 <= report.room.bytes < 2_000


# --- leaving ---


def leave(memory: Memory, folder: Path, *, for_good: bool = False) -> None:
    withdraw(memory.home, memory.db, [FolderCommons(folder)], machine=MACHINE, now=memory.now, for_good=for_good)


def test_withdrawing_revokes_all_that_was_ever_published_and_keeps_it_here(
    memory: Callable[[int], Memory], folder: Path
) -> None:
    one = memory(1)
    first, second = one.learn(TEXT, OTHER)
    one.share(folder)
    with transaction(one.db):
        lessons.set_state(one.db, [first], "archived", one.now)
    one.later(hours=1)
    one.share(folder)
    assert said(stored(one, folder)) == [f"lesson {second}"]
    one.later(hours=1)
    leave(one, folder)
    assert said(stored(one, folder)) == sorted([f"revoke {first}", f"revoke {second}"])
    assert one.lesson_state(second) == "own active"
    one.later(hours=1)
    assert [result.outcome for result in one.share(folder).results] == ["unchanged"]


def test_withdrawing_for_good_retires_the_key(memory: Callable[[int], Memory], folder: Path) -> None:
    one = memory(1)
    one.learn(TEXT)
    one.share(folder)
    leave(one, folder, for_good=True)
    whole = stored(one, folder)
    assert whole.version.seal == RULES.last_seal
    assert whole.seal is not None
    assert whole.seal.last
    for act in (lambda: one.share(folder), lambda: leave(one, folder)):
        with pytest.raises(KeyRetired) as refused:
            act()
        assert refused.value.exit_code == 3


def test_the_last_file_goes_out_again_to_a_target_that_missed_it(
    memory: Callable[[int], Memory], folder: Path, tmp_path: Path
) -> None:
    one = memory(1)
    one.learn(TEXT)
    one.share(folder)
    leave(one, folder, for_good=True)
    late = tmp_path / "late"
    late.mkdir()
    one.later(days=9)
    leave(one, late, for_good=True)
    assert stored(one, late).data == stored(one, folder).data


def test_there_is_nothing_to_withdraw_where_nothing_left(memory: Callable[[int], Memory], folder: Path) -> None:
    with pytest.raises(Refused):
        leave(memory(1), folder)
    assert list(folder.iterdir()) == []


def test_the_last_seal_made_elsewhere_is_known_when_it_is_adopted(
    memory: Callable[[int], Memory], folder: Path
) -> None:
    one = memory(1)
    data = file(one.key, [], seal=RULES.last_seal)
    (folder / f"{one.name}.jsonl").write_bytes(data)
    with pytest.raises(ForeignSeal):
        one.share(folder)
    with pytest.raises(KeyRetired):
        one.share(folder, adopt=True)


def test_the_own_file_counts_as_evidence_here(memory: Callable[[int], Memory], folder: Path) -> None:
    one = memory(1)
    (learned,) = one.learn(TEXT)
    one.share(folder)
    assert one.reading(learned).publishers == (one.name,)
    held = holdings.holding(one.db, one.name)
    assert held is not None
    assert held.size == len(one.held_files()[f"{one.name}.jsonl"])
    assert json.loads(one.held_files()[f"{one.name}.jsonl"].splitlines()[0])["records"] == 1


@pytest.mark.parametrize("days", [2, 30, 3_000], ids=["two days", "a month", "years"])
def test_a_clock_that_was_once_ahead_does_not_stop_what_is_said_after(
    days: int, memory: Callable[[int], Memory], folder: Path, tmp_path: Path
) -> None:
    one, right = memory(1), memory(1).now
    one.later(days=days)
    one.learn(TEXT)
    one.share(folder)
    one.now = right
    other = tmp_path / "other"
    other.mkdir()
    report = one.share(other)
    assert report.renewed
    assert [result.outcome for result in report.results] == ["new"]
    assert accept(report.data, now=right).data == report.data
    assert not one.share(other).renewed


def test_a_seal_from_a_clock_far_ahead_that_stays_in_the_way_is_explained(
    memory: Callable[[int], Memory], folder: Path
) -> None:
    one, right = memory(1), memory(1).now
    one.later(days=30)
    one.learn(TEXT)
    one.share(folder)
    one.now = right
    (result,) = one.share(folder).results
    assert result.outcome != "refused" or result.hint == acts.FAR_AHEAD
