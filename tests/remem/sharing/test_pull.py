"""Pulling from folders: what is taken, what is left, and what a second pull asks for again."""

import errno
import json
import multiprocessing
import os
import signal
from collections.abc import Callable, Sequence
from datetime import timedelta
from pathlib import Path

import pytest

from remem.commons import FolderCommons
from remem.errors import RememError
from remem.memory import holdings, lessons, places
from remem.memory.store import transaction
from remem.protocol import RULES, SigningKey, State, Version, accept, digest_of, lesson_hash
from remem.sharing import intake
from remem.sharing.pull import pull
from remem.sharing.speak import trust_key
from remem.sharing.status import status
from remem_testkit.files import NOW, confirmation, denial, draft_file, file, key, lesson, revocation, sentence
from remem_testkit.memories import Memory, put_files

A, B, C, D = (key(number) for number in range(11, 15))
TEXT = sentence(1)
HASH = lesson_hash("error", TEXT)


def published(*signers: SigningKey, text: str = TEXT, seal: int = 5) -> list[bytes]:
    return [file(signer, [lesson(text)], seal=seal) for signer in signers]


def outcomes(memory: Memory, folder: Path) -> dict[str, str]:
    return {taken.key: taken.outcome for taken in memory.pull(folder).taken}


@pytest.fixture
def reader(memory: Callable[[int], Memory]) -> Memory:
    return memory(1)


def test_files_are_stored_byte_for_byte_and_counted(reader: Memory, folder: Path) -> None:
    files = published(A, B)
    put_files(folder, files)
    report = reader.pull(folder)
    assert reader.held_files() == {f"{one.public.hex}.jsonl": data for one, data in zip((A, B), files, strict=True)}
    assert {taken.outcome for taken in report.taken} == {"new"}
    assert report.learned == 1
    assert report.bytes == sum(map(len, files))
    assert report.complete
    assert reader.lesson_state(HASH) == "received active"
    assert sorted(holdings.receipts(reader.db, HASH)) == sorted([A.public.hex, B.public.hex])


def test_a_second_pull_with_nothing_new_reads_no_file(
    reader: Memory, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_files(folder, published(A, B))
    reader.pull(folder)

    def refuse(*_arguments: object) -> None:
        raise AssertionError("expected no file to be read")

    monkeypatch.setattr(FolderCommons, "get", refuse)
    monkeypatch.setattr("remem.commons.folder.read_file", refuse)
    report = reader.pull(folder)
    assert report.unchanged
    assert report.bytes == 0


def test_only_what_is_newer_is_fetched(reader: Memory, folder: Path) -> None:
    put_files(folder, published(A, B, seal=5))
    reader.pull(folder)
    (newer,) = published(B, text=sentence(2), seal=6)
    put_files(folder, [newer])
    report = reader.pull(folder)
    assert [(taken.key, taken.outcome) for taken in report.taken] == [(B.public.hex, "newer")]
    assert report.current == 1
    assert report.bytes == len(newer)
    assert report.learned == 1


def test_lines_that_are_held_are_not_verified_again(
    reader: Memory, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    contents = [lesson(sentence(number)) for number in range(50)]
    put_files(folder, [file(A, contents, seal=5)])
    reader.pull(folder)
    put_files(folder, [file(A, [*contents, lesson(sentence(99))], seal=6)])
    verified: list[bytes] = []

    def count(record: object) -> None:
        verified.append(record.line)  # type: ignore[attr-defined]

    monkeypatch.setattr("remem.protocol.file.verify_record", count)
    reader.pull(folder)
    assert len(verified) == 2
    assert len(holdings.said_by(reader.db, A.public.hex)) == 51


def test_a_replayed_older_file_changes_nothing(reader: Memory, folder: Path) -> None:
    (old,), (new,) = published(A, seal=5), [file(A, [revocation(HASH)], seal=6)]
    put_files(folder, [new])
    reader.pull(folder)
    put_files(folder, [old])
    report = reader.pull(folder)
    assert report.taken == ()
    assert report.current == 1
    assert reader.held_files()[f"{A.public.hex}.jsonl"] == new
    assert reader.lesson_state(HASH) is None


def test_a_line_that_is_gone_is_no_statement_and_the_lesson_stays_here(reader: Memory, folder: Path) -> None:
    put_files(folder, published(A))
    reader.pull(folder)
    put_files(folder, [file(A, [], seal=6)])
    reader.pull(folder)
    assert holdings.said_by(reader.db, A.public.hex) == ()
    assert reader.reading(HASH).publishers == ()
    assert reader.lesson_state(HASH) == "received active"


def test_a_file_of_draft_0_is_replaced_by_any_other_and_never_replaces_a_sealed_one(
    reader: Memory, folder: Path
) -> None:
    first, second = draft_file(A, [lesson(TEXT)]), draft_file(A, [lesson(sentence(2))])
    put_files(folder, [first])
    assert outcomes(reader, folder) == {A.public.hex: "new"}
    put_files(folder, [second])
    assert outcomes(reader, folder) == {A.public.hex: "newer"}
    put_files(folder, [first])
    assert outcomes(reader, folder) == {A.public.hex: "newer"}
    put_files(folder, published(A))
    assert outcomes(reader, folder) == {A.public.hex: "newer"}
    put_files(folder, [second])
    assert outcomes(reader, folder) == {}
    assert holdings.holdings(reader.db)[A.public.hex].version.seal == 5


def test_what_judgement_skips_is_reported_and_its_file_held(reader: Memory, folder: Path) -> None:
    contents = [
        lesson(TEXT),
        lesson("Delete the folder of the cache and start again"),
        lesson(sentence(3), hash="0" * 32),
        lesson(sentence(4), kind="weather"),
        revocation(lesson_hash("error", sentence(5)), reason="two\u2028lines"),
    ]
    data = file(A, contents)
    put_files(folder, [data])
    report = reader.pull(folder)
    assert [(one.line, one.fault.code) for one in report.skipped] == [
        (3, "instruction"),
        (4, "hash_mismatch"),
        (5, "kind_unknown"),
        (6, "text_lines"),
    ]
    assert report.skipped_count == 4
    assert report.learned == 1
    assert reader.held_files()[f"{A.public.hex}.jsonl"] == data


def test_a_refused_version_is_not_fetched_again(reader: Memory, folder: Path) -> None:
    bad = published(A)[0].replace(TEXT[:20].encode(), TEXT[:20].upper().encode())
    put_files(folder, [bad, *published(B)])
    report = reader.pull(folder)
    assert [(one.name, one.code) for one in report.refused] == [(A.public.hex, "signature_invalid")]
    assert [taken.key for taken in report.taken] == [B.public.hex]
    assert report.complete
    put_files(folder, published(C))
    again = reader.pull(folder)
    assert [one.code for one in again.refused] == ["signature_invalid"]
    assert again.bytes == len(published(C)[0])
    put_files(folder, published(A))
    assert outcomes(reader, folder) == {A.public.hex: "new"}


def test_a_file_from_a_day_that_has_not_come_is_asked_for_again(reader: Memory, folder: Path) -> None:
    put_files(folder, [file(A, [lesson(TEXT, at=NOW + timedelta(days=2))], seal=5), *published(B)])
    report = reader.pull(folder)
    assert [(one.name, one.code) for one in report.deferred] == [(A.public.hex, "deferred")]
    assert [taken.key for taken in report.taken] == [B.public.hex]
    assert not report.complete
    reader.later(days=1)
    report = reader.pull(folder)
    assert not report.unchanged
    assert [taken.key for taken in report.taken] == [A.public.hex]
    assert reader.pull(folder).unchanged


def test_two_files_with_one_seal_are_proof_against_their_key(reader: Memory, folder: Path) -> None:
    one, two = sorted((published(A)[0], published(A, text=sentence(2))[0]), key=digest_of)
    for first, second, outcome in ((one, two, {A.public.hex: "equivocation_taken"}), (two, one, {})):
        put_files(folder, [first])
        reader.pull(folder)
        put_files(folder, [second])
        assert outcomes(reader, folder) == outcome
        assert reader.held_files()[f"{A.public.hex}.jsonl"] == two
    (proof,) = places.equivocations(reader.db)
    assert (proof.key, proof.seal) == (A.public.hex, 5)
    assert {proof.first, proof.second} == {data.splitlines()[0] for data in (one, two)}


def test_the_losing_file_of_an_equivocation_is_fetched_once_as_proof(reader: Memory, folder: Path) -> None:
    one, two = sorted((published(A)[0], published(A, text=sentence(2))[0]), key=digest_of)
    put_files(folder, [two])
    reader.pull(folder)
    put_files(folder, [one])
    report = reader.pull(folder)
    assert [notice.code for notice in report.notices] == ["equivocation"]
    assert report.bytes == len(one)
    put_files(folder, published(B))
    assert reader.pull(folder).bytes == len(published(B)[0])


# --- the budget ---


def give_room(memory: Memory, size: int) -> None:
    memory.home.config_path.write_text(f"budget_bytes = {size}\n")


def test_within_the_budget_known_keys_come_first_then_admitted_ones(reader: Memory, folder: Path) -> None:
    (size,) = {len(data) for data in published(A, B, C, D)}
    give_room(reader, size * 2 + 10)
    put_files(folder, published(A))
    reader.pull(folder)
    put_files(folder, published(A, seal=6) + published(B, C, D))
    entry = {"key": D.public.hex, "digest": digest_of(published(D)[0]), "seal": 5, "principal": "p"}
    (folder / "index").write_text(json.dumps([entry]))
    report = reader.pull(folder)
    assert [(taken.key, taken.outcome) for taken in report.taken] == [(A.public.hex, "newer"), (D.public.hex, "new")]
    assert report.over_budget == 2
    assert not report.complete
    give_room(reader, size * 4)
    report = reader.pull(folder)
    assert {taken.key for taken in report.taken} == {B.public.hex, C.public.hex}
    assert report.complete


def test_where_there_is_no_room_newcomers_are_not_even_fetched(reader: Memory, folder: Path) -> None:
    (data,) = published(A)
    give_room(reader, len(data))
    put_files(folder, [data])
    reader.pull(folder)
    put_files(folder, published(B, C))
    report = reader.pull(folder)
    assert report.bytes == 0
    assert report.over_budget == 2


def test_what_strangers_fill_keeps_no_trusted_or_held_file_out(reader: Memory, folder: Path) -> None:
    (data,) = published(A)
    give_room(reader, len(data))
    put_files(folder, [data])
    reader.pull(folder)
    trust_key(reader.home, reader.db, B.public.hex, "revoker", now=reader.now)
    trust_key(reader.home, reader.db, C.public.hex, "follow", now=reader.now)
    grown = file(A, [lesson(TEXT), lesson(sentence(3))], seal=6)
    put_files(folder, [grown, file(B, [revocation(HASH)]), *published(C, text=sentence(2)), *published(D)])
    report = reader.pull(folder)
    assert [taken.key for taken in report.taken] == [one.public.hex for one in (B, C, A)]
    assert report.over_budget == 1
    assert reader.reading(HASH).state is State.REVOKED
    assert [notice.code for notice in status(reader.home, reader.db).notices] == ["budget"]


def test_files_of_keys_that_do_not_count_make_room_for_those_that_do(reader: Memory, folder: Path) -> None:
    (first,), (second,), (wanted,) = published(A), published(B, text=sentence(2)), published(D, text=sentence(3))
    give_room(reader, max(len(first), len(wanted)) + len(second))
    put_files(folder, [first])
    reader.pull(folder)
    reader.later(hours=1)
    put_files(folder, [second])
    reader.pull(folder)
    put_files(folder, [wanted])
    entry = {"key": D.public.hex, "digest": digest_of(wanted), "seal": 5, "principal": "p"}
    (folder / "index").write_text(json.dumps([entry]))
    report = reader.pull(folder)
    assert "evicted" in [notice.code for notice in report.notices]
    assert set(holdings.holdings(reader.db)) == {B.public.hex, D.public.hex}
    assert set(reader.held_files()) == {f"{one.public.hex}.jsonl" for one in (B, D)}
    assert reader.lesson_state(HASH) == "received dropped"
    assert holdings.evidence_about(reader.db, [HASH]) == {HASH: []}
    assert reader.lesson_state(lesson_hash("error", sentence(2))) == "received active"


def test_damage_that_keeps_the_size_is_mended(reader: Memory, folder: Path) -> None:
    files = published(A)
    put_files(folder, files)
    reader.pull(folder)
    path = reader.home.commons_path / f"{A.public.hex}.jsonl"
    path.write_bytes(b"x" * len(files[0]))
    assert outcomes(reader, folder) == {A.public.hex: "restored"}
    assert path.read_bytes() == files[0]
    assert reader.pull(folder).unchanged


# --- the own file there ---


def test_the_own_file_is_never_fetched_and_a_stale_mirror_is_noticed(
    reader: Memory, folder: Path, tmp_path: Path
) -> None:
    mirror = tmp_path / "mirror"
    mirror.mkdir()
    reader.learn(TEXT)
    put_files(mirror, [reader.share(folder).data])
    assert reader.pull(mirror).notices == ()
    reader.learn(sentence(2))
    reader.later(hours=1)
    reader.share(folder)
    report = reader.pull(mirror)
    assert [notice.code for notice in report.notices] == ["stale_mirror"]
    assert report.bytes == 0
    assert reader.pull(folder).notices == ()


def test_an_own_file_that_was_made_elsewhere_is_noticed(reader: Memory, folder: Path) -> None:
    put_files(folder, [file(reader.key, [lesson(TEXT)], seal=7)])
    report = reader.pull(folder)
    assert [notice.code for notice in report.notices] == ["foreign_seal"]
    assert report.taken == ()


# --- what was cut short ---


def sign_many(count: int) -> list[bytes]:
    return [file(key(100 + number), [lesson(sentence(number)), lesson(sentence(7_000))]) for number in range(count)]


def die_at(path: Path, folder: Path, place: str, times: int) -> None:
    """Pull, and be killed at the given call of a function."""
    memory = Memory.__new__(Memory)
    memory.open(path)
    module, _dot, name = place.rpartition(".")
    target = {"holdings": holdings, "intake": intake, "lessons": lessons}[module]
    original, left = getattr(target, name), [times]

    def killed(*arguments: object, **named: object) -> object:
        left[0] -= 1
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return original(*arguments, **named)

    setattr(target, name, killed)
    pull(memory.home, memory.db, FolderCommons(folder), now=memory.now)


@pytest.mark.parametrize(
    ("place", "times"),
    [("intake.stage_file", 5), ("holdings.take", 1), ("holdings.take", 2), ("lessons.add_received_many", 2)],
    ids=["while files are written", "between files and rows", "between two batches", "between rows and effects"],
)
def test_a_killed_pull_is_finished_by_the_next(reader: Memory, folder: Path, place: str, times: int) -> None:
    files = sign_many(100)
    put_files(folder, files)
    ways = multiprocessing.get_context("spawn")
    killed = ways.Process(target=die_at, args=(reader.home.path, folder, place, times))
    killed.start()
    killed.join(120)
    assert killed.exitcode == -signal.SIGKILL
    report = reader.pull(folder)
    assert report.complete
    check_whole(reader, files)
    assert reader.pull(folder).unchanged


def check_whole(memory: Memory, files: Sequence[bytes]) -> None:
    """Compare all that is held with a memory that took the files in one go."""
    assert list(memory.held_files().values()) == [
        data for _name, data in sorted((accept(data, now=NOW).key.hex, data) for data in files)
    ]
    held = holdings.holdings(memory.db)
    for data in files:
        whole = accept(data, now=NOW)
        assert held[whole.key.hex].version == whole.version
        said = holdings.said_by(memory.db, whole.key.hex)
        assert sorted(f"{one.type} {one.subject}" for one in said) == sorted(whole.topics)
        for one in said:
            if one.type == "lesson":
                assert whole.key.hex in holdings.receipts(memory.db, one.subject)
                assert memory.lesson_state(one.subject) == "received active"


def test_bytes_that_are_newer_than_their_row_are_taken_in_without_their_source(reader: Memory, folder: Path) -> None:
    put_files(folder, published(A))
    reader.pull(folder)
    newer = file(A, [lesson(TEXT), lesson(sentence(2))], seal=6)
    put_files(reader.home.commons_path, [newer, *published(B)])
    assert outcomes(reader, folder) == {A.public.hex: "newer", B.public.hex: "new"}
    check_whole(reader, [newer, *published(B)])


def test_stored_bytes_that_are_lost_or_changed_are_brought_back(reader: Memory, folder: Path) -> None:
    put_files(folder, published(A, B, C))
    reader.pull(folder)
    one, two, three = (reader.home.commons_path / f"{signer.public.hex}.jsonl" for signer in (A, B, C))
    one.unlink()
    two.write_bytes(b"")
    put_files(reader.home.commons_path, published(C, seal=4, text="It failed before, and not in the same way"))
    assert outcomes(reader, folder) == dict.fromkeys((A.public.hex, B.public.hex, C.public.hex), "restored")
    check_whole(reader, published(A, B, C))
    assert three.read_bytes() == published(C)[0]


def test_lost_bytes_do_not_let_an_older_file_in(reader: Memory, folder: Path) -> None:
    put_files(folder, published(A, seal=6))
    reader.pull(folder)
    (reader.home.commons_path / f"{A.public.hex}.jsonl").unlink()
    put_files(folder, published(A, seal=5))
    assert outcomes(reader, folder) == {}
    assert holdings.holdings(reader.db)[A.public.hex].version == Version(6, digest_of(published(A, seal=6)[0]))


def test_a_disk_that_is_full_is_a_failure_in_words(
    reader: Memory, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_files(folder, published(A, B))

    def fail(*_arguments: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(intake, "stage_file", fail)
        with pytest.raises(RememError, match="got no space left on device"):
            reader.pull(folder)
    assert holdings.holdings(reader.db) == {}
    assert outcomes(reader, folder) == dict.fromkeys((A.public.hex, B.public.hex), "new")


def test_an_interrupted_pull_ends_at_once_and_leaves_no_part_of_a_file(
    reader: Memory, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_files(folder, sign_many(70))
    with monkeypatch.context() as patch:
        patch.setattr(holdings, "take", interrupt)
        with pytest.raises(KeyboardInterrupt):
            reader.pull(folder)
    assert not list(reader.home.commons_path.glob(".*.tmp"))
    assert holdings.holdings(reader.db) == {}
    reader.pull(folder)
    check_whole(reader, sign_many(70))


def interrupt(*_arguments: object) -> None:
    raise KeyboardInterrupt


def pull_here(path: Path, folder: Path) -> None:
    memory = Memory.__new__(Memory)
    memory.open(path)
    memory.pull(folder)
    memory.close()


def test_two_processes_that_pull_at_once_end_with_the_same(reader: Memory, folder: Path) -> None:
    files = sign_many(150)
    put_files(folder, files)
    ways = multiprocessing.get_context("spawn")
    pullers = [ways.Process(target=pull_here, args=(reader.home.path, folder)) for _ in range(2)]
    for puller in pullers:
        puller.start()
    for puller in pullers:
        puller.join(120)
        assert puller.exitcode == 0
    check_whole(reader, files)
    assert reader.pull(folder).unchanged


def test_a_file_that_was_accepted_beside_another_is_judged_whole(
    reader: Memory, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two, three = lesson(sentence(1)), lesson(sentence(2)), lesson(sentence(3))
    put_files(folder, [file(A, [one, two], seal=5)])
    reader.pull(folder)
    third = file(A, [one, two, three], seal=7)
    put_files(folder, [third])
    write = intake.Intake.write

    def write_after_another(self: intake.Intake) -> None:
        """Let another process take a file without the second line, just before this one is written."""
        with transaction(self.db):
            between = accept(file(A, [one], seal=6), now=NOW)
            holdings.take(self.db, [holdings.judged(between, "another process")], self.now)
        write(self)

    monkeypatch.setattr(intake.Intake, "write", write_after_another)
    reader.pull(folder)
    said = {statement.subject for statement in holdings.said_by(reader.db, A.public.hex)}
    assert said == {one["hash"], two["hash"], three["hash"]}


def test_progress_tells_of_every_file(reader: Memory, folder: Path) -> None:
    put_files(folder, published(A, B, C))
    steps: list[tuple[int, int]] = []
    pull(reader.home, reader.db, FolderCommons(folder), now=NOW, progress=lambda *step: steps.append(step))
    assert steps == [(0, 3), (1, 3), (2, 3), (3, 3)]


def test_what_a_file_says_of_itself_cannot_grow_beyond_its_limits(reader: Memory, folder: Path) -> None:
    (folder / f"{A.public.hex}.jsonl").write_bytes(published(A)[0] + b"x" * RULES.file_bytes)
    report = reader.pull(folder)
    assert [one.code for one in report.refused] == ["file_size"]
    assert reader.held_files() == {}


def test_evidence_of_every_type_is_kept_apart(reader: Memory, folder: Path) -> None:
    contents = [confirmation(HASH), revocation(HASH, reason="it was wrong"), denial(B.public.hex)]
    put_files(folder, [file(A, contents)])
    reader.pull(folder)
    said = {(one.type, one.subject, one.text) for one in holdings.said_by(reader.db, A.public.hex)}
    assert said == {
        ("confirm", HASH, None),
        ("revoke", HASH, "it was wrong"),
        ("deny", B.public.hex, "it floods the commons"),
    }
