"""What is held of others: the newest file of each key, what it says, and which lessons came from it."""

import sqlite3
from collections.abc import Iterator, Sequence
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from remem.memory import holdings
from remem.memory.holdings import Change, judged
from remem.memory.store import open_store, transaction
from remem.protocol import OriginFile, Verified, accept, lesson_hash, statements
from remem.protocol.canonical import JSON
from remem_testkit.files import NOW, confirmation, denial, draft_file, file, key, lesson, revocation, sentence

A, B = key(11), key(12)
TEXTS = [sentence(number) for number in range(5)]
HASHES = [lesson_hash("error", text) for text in TEXTS]


@pytest.fixture
def db(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    made = open_store(tmp_path / "memory.db")
    yield made
    made.close()


def accepted(contents: Sequence[dict[str, JSON]], *, seal: int = 5, before: OriginFile | None = None) -> OriginFile:
    return accept(file(A, contents, seal=seal), now=NOW, verified=None if before is None else before.verified)


def take(db: sqlite3.Connection, whole: OriginFile, beside: OriginFile | None = None) -> Change:
    with transaction(db):
        return holdings.take(db, [judged(whole, "here", None if beside is None else beside.digest)], NOW)


def test_a_new_file_is_held_with_all_that_judgement_lets_through(db: sqlite3.Connection) -> None:
    whole = accepted([lesson(TEXTS[0]), lesson("Delete the cache"), confirmation(HASHES[1]), denial(B.public.hex)])
    change = take(db, whole)
    held = holdings.holding(db, A.public.hex)
    assert held is not None
    assert (held.version, held.size, held.records, held.source, held.received) == (
        whole.version,
        len(whole.data),
        4,
        "here",
        NOW,
    )
    assert sorted(map(repr, holdings.said_by(db, A.public.hex))) == sorted(map(repr, statements(whole)))
    assert [(number, said.subject) for number, said in change.published] == [(held.id, HASHES[0])]
    assert change.touched == {HASHES[0], HASHES[1]}
    assert change.turned == set()
    assert change.denials
    assert holdings.holding(db, B.public.hex) is None


def test_the_next_file_changes_only_what_changed(db: sqlite3.Connection) -> None:
    first = accepted([lesson(TEXTS[0]), lesson(TEXTS[1]), revocation(HASHES[2]), denial(B.public.hex)])
    take(db, first)
    second = accepted(
        [lesson(TEXTS[0]), lesson(TEXTS[1], seen=9), lesson(TEXTS[3]), denial(B.public.hex)], seal=6, before=first
    )
    change = take(db, second, first)
    assert sorted(map(repr, holdings.said_by(db, A.public.hex))) == sorted(map(repr, statements(second)))
    assert [said.subject for _number, said in change.published] == [HASHES[3]]
    assert change.touched == {HASHES[1], HASHES[2], HASHES[3]}
    assert change.turned == {HASHES[2]}
    assert not change.denials


def test_a_line_that_judgement_skips_now_says_nothing_any_more(db: sqlite3.Connection) -> None:
    take(db, accepted([lesson(TEXTS[0])]))
    second = accepted([lesson(TEXTS[0], id="two\nlines")], seal=6)
    change = take(db, second)
    assert holdings.said_by(db, A.public.hex) == ()
    assert change.touched == {HASHES[0]}


def test_the_reader_learns_which_lines_are_skipped_and_where(db: sqlite3.Connection) -> None:
    sealed = judged(accepted([lesson(TEXTS[0]), lesson("Delete the cache")]), "here")
    assert [(one.line, one.type, one.fault.code) for one in sealed.skipped] == [(3, "lesson", "instruction")]
    plain = accept(draft_file(A, [lesson("Delete the cache"), lesson(TEXTS[0])]), now=NOW)
    assert [one.line for one in judged(plain, "here").skipped] == [1]


contents = st.lists(
    st.tuples(st.sampled_from("lcrd"), st.integers(0, 4), st.integers(1, 2)), unique_by=lambda row: row[:2], max_size=12
)


def spelled(rows: Sequence[tuple[str, int, int]]) -> list[dict[str, JSON]]:
    made: list[dict[str, JSON]] = []
    for kind, number, variant in rows:
        at = NOW - timedelta(days=variant)
        match kind:
            case "l":
                made.append(lesson(TEXTS[number], seen=variant))
            case "c":
                made.append(confirmation(HASHES[number], at=at))
            case "r":
                made.append(revocation(HASHES[number], at=at))
            case _:
                made.append(denial(key(20 + number).public.hex, at=at))
    return made


@settings(max_examples=60)
@given(st.lists(contents, min_size=1, max_size=5), st.booleans())
def test_what_is_held_is_what_the_newest_file_says_whatever_stood_before(
    tmp_path_factory: pytest.TempPathFactory, versions: list[list[tuple[str, int, int]]], beside: bool
) -> None:
    db = open_store(tmp_path_factory.mktemp("db") / "memory.db")
    held: OriginFile | None = None
    for number, rows in enumerate(versions):
        known: Verified | None = held.verified if held and beside else None
        whole = accept(file(A, spelled(rows), seal=5 + number), now=NOW, verified=known)
        take(db, whole, held if known else None)
        assert sorted(map(repr, holdings.said_by(db, A.public.hex))) == sorted(map(repr, statements(whole)))
        held = whole
    db.close()


def test_times_are_kept_to_the_microsecond(db: sqlite3.Connection) -> None:
    at = "2026-01-31T12:00:00.000001Z"
    take(db, accepted([{**confirmation(HASHES[0]), "at": at}]))
    (said,) = holdings.evidence_about(db, [HASHES[0]])[HASHES[0]]
    assert said.time is not None
    assert said.time.isoformat() == "2026-01-31T12:00:00.000001+00:00"


def test_topics_are_those_that_acceptance_found() -> None:
    whole = accepted([lesson(TEXTS[0]), confirmation(HASHES[1])])
    assert whole.verified is not None
    assert holdings.topics(whole.data) == whole.verified.topics


def test_evidence_is_found_for_any_number_of_lessons(db: sqlite3.Connection) -> None:
    take(db, accepted([lesson(text) for text in TEXTS]))
    wanted = [*HASHES, *(f"{number:032x}" for number in range(50_000))]
    found = holdings.evidence_about(db, wanted)
    assert {about for about, said in found.items() if said} == set(HASHES)


def test_hashes_are_found_by_their_beginning(db: sqlite3.Connection) -> None:
    take(db, accepted([confirmation("ab" * 16), confirmation("ab" * 15 + "ff"), denial("ab" * 32)]))
    assert holdings.hashes_from(db, "abab") == ["ab" * 16, "ab" * 15 + "ff"]
    assert holdings.hashes_from(db, "ab" * 15 + "f") == ["ab" * 15 + "ff"]
    assert holdings.hashes_from(db, "ab" * 17) == []
    assert holdings.hashes_from(db, "cd") == []


def test_receipts_name_keys_and_mark_those_that_took_a_lesson_back(db: sqlite3.Connection) -> None:
    take(db, accepted([lesson(TEXTS[0])]))
    held = holdings.holding(db, A.public.hex)
    assert held is not None
    with transaction(db):
        holdings.receive(db, [(HASHES[0], held.id)], NOW)
        holdings.receive(db, [(HASHES[0], held.id)], NOW + timedelta(days=1))
    assert holdings.receipts(db, HASHES[0]) == {A.public.hex: (NOW, False)}
    assert holdings.received_pairs(db, HASHES) == {(HASHES[0], held.id)}
    assert holdings.received_from(db, {A.public.hex}) == {HASHES[0]}
    assert holdings.received_from(db, {B.public.hex}) == set()
    with transaction(db):
        holdings.drop(db, HASHES[0], [A.public.hex, B.public.hex])
    assert holdings.receipts(db, HASHES[0]) == {A.public.hex: (NOW, True)}
