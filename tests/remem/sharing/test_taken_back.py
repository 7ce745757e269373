"""An own lesson that was taken back does not leave again by itself; what a stranger says holds nothing back."""

from collections.abc import Callable
from pathlib import Path

import pytest

from remem.commons import FolderCommons
from remem.memory import lessons
from remem.memory.store import transaction
from remem.protocol import SigningKey, State, accept, lesson_hash
from remem.sharing.reports import ShareReport
from remem.sharing.speak import distrust_key, revoke, trust_key
from remem_testkit.files import NOW, confirmation, denial, file, key, lesson, revocation, sentence
from remem_testkit.memories import MACHINE, Memory, put_files

A, B, C, D = (key(number) for number in range(11, 15))
TEXT = sentence(1)
HASH = lesson_hash("error", TEXT)


@pytest.fixture
def one(memory: Callable[[int], Memory]) -> Memory:
    """Return a memory that learned the lesson itself."""
    one = memory(1)
    one.learn(TEXT)
    return one


def tell(memory: Memory, folder: Path, *files: bytes) -> None:
    put_files(folder, files)
    memory.pull(folder)


def held_back(report: ShareReport) -> dict[str, str]:
    return {held.code: " ".join(held.reasons) for held in report.held_back}


def said(memory: Memory, folder: Path) -> tuple[str, ...]:
    data = FolderCommons(folder).get(memory.name)
    assert data is not None
    return accept(data, now=NOW.replace(year=2090)).topics


def share(memory: Memory, folder: Path, also: tuple[str, ...] = ()) -> ShareReport:
    memory.later(hours=1)
    return memory.share(folder, also=also)


def published(*signers: SigningKey) -> list[bytes]:
    return [file(signer, [lesson(TEXT)], seal=5) for signer in signers]


def trust_revoker(memory: Memory) -> None:
    trust_key(memory.home, memory.db, B.public.hex, "revoker", now=NOW)


def follow(memory: Memory) -> None:
    for who in (B, C, D):
        trust_key(memory.home, memory.db, who.public.hex, "follow", now=NOW)


def nothing(_memory: Memory) -> None:
    """Trust nobody."""


CASES = {
    "by a trusted revoker": (
        trust_revoker,
        [file(B, [revocation(HASH)])],
        f"read as revoked by {B.public.hex[:16]}, trusted as a revoker; --also sends it anyway",
    ),
    "by a quorum": (
        follow,
        [file(who, [confirmation(HASH), revocation(HASH)]) for who in (B, C, D)],
        (
            f"read as revoked by {', '.join(sorted(who.public.hex[:16] for who in (B, C, D)))}, more than two thirds"
            " of its confirmers; --also sends it anyway"
        ),
    ),
}


@pytest.mark.parametrize(("trusting", "files", "reason"), CASES.values(), ids=CASES.keys())
@pytest.mark.parametrize("before", [False, True], ids=["not published yet", "published before"])
def test_what_was_revoked_does_not_leave_and_its_line_goes(
    one: Memory,
    folder: Path,
    trusting: Callable[[Memory], None],
    files: list[bytes],
    reason: str,
    before: bool,
) -> None:
    trusting(one)
    if before:
        assert held_back(share(one, folder)) == {}
        assert said(one, folder) == (f"lesson {HASH}",)
    tell(one, folder, *files)
    # The line being gone, the reading is another; so the second share is asked too.
    for _time in range(3):
        assert held_back(share(one, folder)) == {"revoked": reason}
        assert said(one, folder) == ()
    assert one.lesson_state(HASH) == "own active"


@pytest.mark.parametrize(("trusting", "files", "reason"), CASES.values(), ids=CASES.keys())
def test_the_owner_may_insist_and_that_lasts(
    one: Memory, folder: Path, trusting: Callable[[Memory], None], files: list[bytes], reason: str
) -> None:
    trusting(one)
    tell(one, folder, *files)
    assert held_back(share(one, folder, (HASH,))) == {}
    assert said(one, folder) == (f"lesson {HASH}",)
    assert held_back(share(one, folder)) == {}
    assert lessons.get_lesson(one.db, HASH).insisted


def test_a_choice_made_before_the_revocation_came_is_none_against_it(one: Memory, folder: Path) -> None:
    trust_revoker(one)
    share(one, folder, (HASH,))
    tell(one, folder, file(B, [revocation(HASH)]))
    assert list(held_back(share(one, folder))) == ["revoked"]
    assert held_back(share(one, folder, (HASH,))) == {}


def test_it_leaves_again_when_the_revocation_is_taken_back_or_its_author_is_trusted_no_more(
    one: Memory, folder: Path
) -> None:
    trust_revoker(one)
    tell(one, folder, file(B, [revocation(HASH)], seal=5))
    assert list(held_back(share(one, folder))) == ["revoked"]
    distrust_key(one.home, one.db, B.public.hex, now=NOW)
    assert held_back(share(one, folder)) == {}
    trust_revoker(one)
    assert list(held_back(share(one, folder))) == ["revoked"]
    tell(one, folder, file(B, [], seal=6))
    assert held_back(share(one, folder)) == {}


def test_what_its_first_publisher_withdrew_does_not_leave_here_for_the_first_time(one: Memory, folder: Path) -> None:
    tell(one, folder, *published(A))
    tell(one, folder, file(A, [revocation(HASH)], seal=6))
    reason = f"read as revoked by {A.public.hex[:16]}, whom this memory had it from; --also sends it anyway"
    for _time in range(2):
        assert held_back(share(one, folder)) == {"revoked": reason}
    assert held_back(share(one, folder, (HASH,))) == {}
    assert said(one, folder) == (f"lesson {HASH}",)


def test_what_stands_under_the_own_key_or_another_stands_on_its_own(one: Memory, folder: Path) -> None:
    share(one, folder)
    tell(one, folder, *published(A, B))
    tell(one, folder, file(A, [revocation(HASH)], seal=6), file(B, [revocation(HASH)], seal=6))
    assert held_back(share(one, folder)) == {}
    assert said(one, folder) == (f"lesson {HASH}",)


def test_what_another_still_publishes_is_not_withdrawn(one: Memory, folder: Path) -> None:
    tell(one, folder, *published(A, B))
    tell(one, folder, file(A, [revocation(HASH)], seal=6))
    assert held_back(share(one, folder)) == {}


def test_a_strangers_revocation_keeps_no_sentence_unsaid(one: Memory, folder: Path) -> None:
    tell(one, folder, file(B, [revocation(HASH)]))
    assert one.reading(HASH).state is State.REVOKED
    assert held_back(share(one, folder)) == {}
    assert said(one, folder) == (f"lesson {HASH}",)


def test_a_key_that_a_trusted_revoker_denies_holds_nothing_back(one: Memory, folder: Path) -> None:
    trust_key(one.home, one.db, D.public.hex, "revoker", now=NOW)
    tell(one, folder, *published(A))
    tell(one, folder, file(A, [revocation(HASH)], seal=6), file(D, [denial(A.public.hex)]))
    assert held_back(share(one, folder)) == {}


def test_ones_own_revocation_leaves_as_before(one: Memory, folder: Path) -> None:
    trust_revoker(one)
    tell(one, folder, file(B, [revocation(HASH)]))
    revoke(one.db, HASH, reason=None, machine=MACHINE, now=NOW)
    assert held_back(share(one, folder)) == {}
    assert said(one, folder) == (f"revoke {HASH}",)


def test_an_imported_lesson_that_was_chosen_is_held_back_too(one: Memory, folder: Path) -> None:
    trust_revoker(one)
    with transaction(one.db):
        one.db.execute("DELETE FROM lesson_episodes")
        one.db.execute("UPDATE lessons SET source = 'imported'")
    assert held_back(share(one, folder, (HASH,))) == {}
    tell(one, folder, file(B, [revocation(HASH)]))
    assert list(held_back(share(one, folder))) == ["revoked"]


def test_a_rehearsal_says_the_same_and_keeps_no_choice(one: Memory, folder: Path) -> None:
    trust_revoker(one)
    tell(one, folder, file(B, [revocation(HASH)]))
    assert list(held_back(one.share(folder, rehearse=True))) == ["revoked"]
    assert held_back(one.share(folder, also=[HASH], rehearse=True)) == {}
    assert not lessons.get_lesson(one.db, HASH).explicit
