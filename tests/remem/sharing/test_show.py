"""Readable all the way down: a lesson with its evidence, a file with its lines, a memory with its counts."""

from collections.abc import Callable
from pathlib import Path

import pytest

from remem.errors import RememError
from remem.protocol import RULES, State, lesson_hash
from remem.protocol.times import unix_seconds
from remem.sharing.show import ShownRecord, check_file, show
from remem.sharing.speak import confirm, revoke, trust_key
from remem.sharing.status import status
from remem_testkit.files import NOW, confirmation, denial, draft_file, file, key, lesson, revocation, sentence
from remem_testkit.memories import MACHINE, Memory, put_files

A, B, C, D = (key(number) for number in range(11, 15))
TEXT = sentence(1)
HASH = lesson_hash("error", TEXT)


@pytest.fixture
def reader(memory: Callable[[int], Memory]) -> Memory:
    return memory(1)


def by_key(found: tuple[ShownRecord, ...]) -> dict[tuple[str, str], ShownRecord]:
    return {(record.key, record.type): record for record in found}


def test_every_line_about_a_lesson_is_shown_with_its_verdict(reader: Memory, folder: Path) -> None:
    trust_key(reader.home, reader.db, B.public.hex, "follow", now=NOW)
    trust_key(reader.home, reader.db, D.public.hex, "revoker", now=NOW)
    put_files(
        folder,
        [
            file(A, [lesson(sentence(2)), lesson(TEXT), confirmation(HASH)], seal=5),
            file(B, [confirmation(HASH)], seal=5),
            file(C, [confirmation(HASH), revocation(HASH, reason="it was a typing error")], seal=5),
            file(D, [denial(C.public.hex)], seal=5),
        ],
    )
    reader.pull(folder)
    report = show(reader.home, reader.db, HASH[:8], now=NOW)
    shown = by_key(report.records)
    assert {(record.key, record.type): (record.valid, record.counts) for record in report.records} == {
        (A.public.hex, "lesson"): (True, None),
        (A.public.hex, "confirm"): (True, False),
        (B.public.hex, "confirm"): (True, True),
        (C.public.hex, "confirm"): (True, False),
        (C.public.hex, "revoke"): (True, None),
    }
    assert shown[A.public.hex, "lesson"].line == 3
    assert shown[A.public.hex, "lesson"].text == TEXT
    assert shown[B.public.hex, "confirm"].standing == ("followed",)
    assert shown[C.public.hex, "revoke"].text == "it was a typing error"
    assert shown[C.public.hex, "revoke"].standing == ("denied",)
    assert [(one.key, one.denied, one.obeyed) for one in report.denials] == [(D.public.hex, C.public.hex, True)]
    assert report.reading == reader.reading(HASH)
    assert report.reading.confirmations == 1
    assert report.why == "1 counted confirmation, too few to be common"
    assert [(one.key, one.dropped) for one in report.receipts] == [(A.public.hex, False)]
    assert report.local is not None
    assert report.local.source == "received"


def test_who_published_comes_first_then_who_confirmed_then_who_revoked(reader: Memory, folder: Path) -> None:
    files = [
        file(A, [revocation(HASH), confirmation(HASH)]),
        file(B, [lesson(TEXT), revocation(HASH)]),
        file(C, [confirmation(HASH), lesson(TEXT)]),
        file(D, [lesson(TEXT)]),
    ]
    put_files(folder, files)
    reader.pull(folder)
    shown = show(reader.home, reader.db, HASH, now=NOW).records
    expected = {"lesson": (B, C, D), "confirm": (A, C), "revoke": (A, B)}
    assert [(record.type, record.key) for record in shown] == [
        (kind, name) for kind, who in expected.items() for name in sorted(one.public.hex for one in who)
    ]


def test_what_this_memory_revokes_is_said_to_be_revoked_by_it(reader: Memory, folder: Path) -> None:
    put_files(folder, [file(A, [lesson(TEXT)])])
    reader.pull(folder)
    revoke(reader.db, HASH, reason=None, machine=MACHINE, now=NOW)

    def why() -> str:
        return show(reader.home, reader.db, HASH, now=NOW).why

    assert why() == "revoked by this memory"
    trust_key(reader.home, reader.db, B.public.hex, "revoker", now=NOW)
    put_files(folder, [file(B, [revocation(HASH)])])
    reader.pull(folder)
    name = B.public.hex[:16]
    assert why() == f"revoked by this memory and by {name}, whom it trusts as a revoker"
    put_files(folder, [file(A, [], seal=unix_seconds(NOW) + 1)])
    reader.pull(folder)
    assert why() == f"no publication stands, and it is revoked by this memory and by {name}"
    assert reader.name[:16] not in why()


def test_what_others_revoke_is_said_as_ever(reader: Memory, folder: Path) -> None:
    trust_key(reader.home, reader.db, B.public.hex, "revoker", now=NOW)
    put_files(folder, [file(A, [lesson(TEXT)]), file(B, [revocation(HASH)])])
    reader.pull(folder)
    report = show(reader.home, reader.db, HASH, now=NOW)
    assert report.why == report.reading.why == (f"revoked by {B.public.hex[:16]}, whom this reader trusts as a revoker")


def test_what_judgement_skips_is_shown_with_the_reason(reader: Memory, folder: Path) -> None:
    put_files(folder, [file(A, [lesson(TEXT, id="two\nlines")], seal=5), file(B, [lesson(TEXT)], seal=5)])
    reader.pull(folder)
    shown = by_key(show(reader.home, reader.db, HASH, now=NOW).records)
    fault = shown[A.public.hex, "lesson"].fault
    assert fault is not None
    assert fault.code == "text_lines"
    assert shown[B.public.hex, "lesson"].fault is None


def test_signatures_are_verified_again_from_the_stored_bytes(
    reader: Memory, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_files(folder, [file(A, [lesson(TEXT)], seal=5)])
    reader.pull(folder)
    path = reader.home.commons_path / f"{A.public.hex}.jsonl"
    data = path.read_bytes()
    forged = data.replace(b'"seen":2', b'"seen":3')
    path.write_bytes(forged)
    report = show(reader.home, reader.db, HASH, now=NOW)
    assert report.records == ()
    assert [notice.code for notice in report.notices] == ["stored_file"]
    # Bytes that the database takes for its own are still not believed.
    monkeypatch.setattr("remem.sharing.show.read_held", lambda *_arguments: forged)
    report = show(reader.home, reader.db, HASH, now=NOW)
    assert [record.valid for record in report.records] == [False]


def test_an_own_lesson_is_shown_with_its_episodes_and_what_is_not_shared_yet(reader: Memory, folder: Path) -> None:
    (learned,) = reader.learn(TEXT)
    report = show(reader.home, reader.db, learned, now=NOW)
    assert report.records == ()
    assert [episode.gist for episode in report.episodes] == [TEXT]
    reader.share(folder)
    revoke(reader.db, learned, reason="it was a typing error", machine=MACHINE, now=NOW)
    report = show(reader.home, reader.db, learned, now=NOW)
    assert [(record.type, record.standing) for record in report.records] == [("lesson", ("own",))]
    assert [(said.type, said.text) for said in report.pending] == [("revoke", "it was a typing error")]
    assert report.reading.state is State.REVOKED


@pytest.mark.parametrize("reference", ["", "xyz", "abc", "ffffffff", "G" * 32, "f" * 33])
def test_what_names_no_lesson_is_an_error(reader: Memory, reference: str) -> None:
    with pytest.raises(RememError):
        show(reader.home, reader.db, reference, now=NOW)


# --- one file ---


def test_a_good_file_is_shown_line_by_line(tmp_path: Path) -> None:
    contents = [lesson(TEXT), lesson("Delete the cache and start again"), denial(B.public.hex)]
    path = tmp_path / "some.jsonl"
    path.write_bytes(file(A, contents, seal=5))
    report = check_file(path, now=NOW)
    assert report.accepted
    assert (report.key, report.origin) == (A.public.hex, A.public.origin)
    assert report.version is not None
    assert report.version.seal == 5
    assert report.sealed_at == NOW
    assert [(one.line, one.type, one.fault and one.fault.code) for one in report.records] == [
        (2, "lesson", None),
        (3, "lesson", "instruction"),
        (4, "deny", None),
    ]


BAD_FILES = {
    "a broken signature": (file(A, [lesson(TEXT)]).replace(b'"seen":2', b'"seen":3'), "signature_invalid", 2),
    "an empty file": (b"", "file_empty", None),
    "a file that is too long": (b"x" * (RULES.file_bytes + 1), "file_size", None),
    "a text": (b"remem\n", "not_an_object", 1),
}


@pytest.mark.parametrize(("data", "code", "line"), BAD_FILES.values(), ids=BAD_FILES.keys())
def test_a_bad_file_is_named_by_the_rule_it_breaks(tmp_path: Path, data: bytes, code: str, line: int | None) -> None:
    path = tmp_path / "some.jsonl"
    path.write_bytes(data)
    report = check_file(path, now=NOW)
    assert not report.accepted
    assert (report.code, report.line) == (code, line)
    assert report.expected


def test_a_file_of_draft_0_and_a_last_seal_are_told_apart(tmp_path: Path) -> None:
    path = tmp_path / "some.jsonl"
    path.write_bytes(draft_file(A, [lesson(TEXT)]))
    report = check_file(path, now=NOW)
    assert report.version is not None
    assert (report.version.seal, report.sealed_at, report.last) == (None, None, False)
    assert [one.line for one in report.records] == [1]
    path.write_bytes(file(A, [revocation(HASH)], seal=RULES.last_seal))
    assert check_file(path, now=NOW).last


def test_no_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(RememError):
        check_file(tmp_path / "absent", now=NOW)
    with pytest.raises(RememError):
        check_file(tmp_path, now=NOW)


# --- a memory ---


def test_a_memory_at_a_glance(reader: Memory, folder: Path, memory: Callable[[int], Memory]) -> None:
    fresh = status(reader.home, reader.db)
    assert (fresh.holdings, fresh.seal, fresh.room.records) == (0, None, RULES.file_records)
    other = memory(2)
    (learned,) = other.learn(TEXT)
    shared = other.share(folder)
    reader.learn(sentence(2))
    reader.pull(folder)
    reader.later(hours=1)
    confirm(reader.home, reader.db, learned, episode=reader.meet(TEXT), now=reader.now)
    report = reader.share(folder)
    reader.home.inbox_path.write_text("{}\n")
    found = status(reader.home, reader.db)
    assert (found.key, found.origin) == (reader.name, reader.key.public.origin)
    assert (found.events, found.episodes) == (2, 2)
    assert {(one.source, one.state): one.count for one in found.lessons} == {
        ("own", "active"): 1,
        ("received", "active"): 1,
    }
    assert (found.holdings, found.held_bytes) == (1, len(shared.data))
    assert found.seal == report.version
    assert found.confirmations == 1
    assert found.room.records == RULES.file_records - 2
    assert found.room.bytes == RULES.file_bytes - len(report.data)
    assert found.inbox_bytes == 3
    (place,) = found.places
    assert (place.target, place.shared_seal, place.pulled) == (str(folder), report.version.seal, NOW)
    assert found.notices == ()
    (reader.home.commons_path / f"{other.name}.jsonl").unlink()
    assert [notice.code for notice in status(reader.home, reader.db).notices] == ["stored_file"]


def test_lines_that_are_no_events_are_something_to_look_into(reader: Memory) -> None:
    kept = reader.home.path / "inbox.0-0.rejected"
    kept.write_text("nonsense\n")
    report = status(reader.home, reader.db)
    assert report.inbox_bytes == 0
    assert [notice.code for notice in report.notices] == ["rejected_lines"]
    assert str(kept) in report.notices[0].text
