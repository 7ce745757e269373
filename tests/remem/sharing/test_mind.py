"""What held files do to the mind, in whatever order they come."""

import json
import random
from collections.abc import Callable, Sequence
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from remem.memory import holdings, lessons
from remem.memory.store import transaction
from remem.protocol import Cause, SigningKey, State, accept, lesson_hash
from remem.sharing.readings import reader as policy_of
from remem.sharing.speak import trust_key
from remem_testkit.files import NOW, confirmation, denial, file, key, lesson, revocation, sentence
from remem_testkit.memories import Memory, put_files

A, B, C, D = (key(number) for number in range(11, 15))
TEXT = sentence(1)
HASH = lesson_hash("error", TEXT)


@pytest.fixture
def reader(memory: Callable[[int], Memory]) -> Memory:
    return memory(1)


def tell(reader: Memory, folder: Path, *files: bytes) -> None:
    put_files(folder, files)
    reader.pull(folder)


def publishes(signer: SigningKey, seal: int = 5) -> bytes:
    return file(signer, [lesson(TEXT)], seal=seal)


def revokes(signer: SigningKey, seal: int = 6) -> bytes:
    return file(signer, [revocation(HASH)], seal=seal)


def says_nothing(signer: SigningKey, seal: int = 7) -> bytes:
    return file(signer, [], seal=seal)


def admit(folder: Path, *admitted: tuple[bytes, str]) -> None:
    """Let a folder's index say whom it admits."""
    entries = []
    for data, principal in admitted:
        found = accept(data, now=NOW)
        entries.append(
            {"key": found.key.hex, "digest": found.digest, "seal": found.version.seal, "principal": principal}
        )
    (folder / "index").write_text(json.dumps(entries))


def test_only_the_denials_of_revokers_are_looked_through(reader: Memory, folder: Path) -> None:
    tell(reader, folder, file(A, [denial(C.public.hex)]), file(B, [denial(D.public.hex)]))
    trust_key(reader.home, reader.db, B.public.hex, "revoker", now=reader.now)
    this = policy_of(reader.db, reader.name, reader.home.config())
    assert {one.key for one in this.denials} == {A.public.hex, B.public.hex}
    assert {one.key for one in this.evidence(HASH, ()).denials} == {B.public.hex}
    assert this.denied == {D.public.hex}


def test_keys_that_do_not_count_raise_no_strength(reader: Memory, folder: Path) -> None:
    (learned,) = reader.learn(TEXT)
    strength = lessons.get_lesson(reader.db, learned).strength
    put_files(folder, [publishes(A), publishes(B)])
    assert reader.pull(folder).corroborated == ()
    assert lessons.get_lesson(reader.db, learned).strength == strength


def test_each_principal_raises_strength_once_and_four_at_most(reader: Memory, folder: Path) -> None:
    (learned,) = reader.learn(TEXT)
    strength = lessons.get_lesson(reader.db, learned).strength
    files = [publishes(key(number)) for number in range(21, 30)]
    put_files(folder, files)
    admit(folder, (files[0], "p"), (files[1], "p"))
    reader.pull(folder)
    assert lessons.get_lesson(reader.db, learned).strength == strength + 0.5
    more = [publishes(key(number)) for number in range(31, 38)]
    put_files(folder, more)
    admit(folder, (files[0], "p"), (files[1], "p"), *((data, f"q{number}") for number, data in enumerate(more)))
    reader.pull(folder)
    assert lessons.get_lesson(reader.db, learned).strength == strength + 2.0


def test_an_own_lesson_that_others_publish_gains_once_a_key(reader: Memory, folder: Path) -> None:
    for one in (A, B, C):
        trust_key(reader.home, reader.db, one.public.hex, "follow", now=reader.now)
    (learned,) = reader.learn(TEXT)
    strength = lessons.get_lesson(reader.db, learned).strength
    put_files(folder, [publishes(A)])
    assert reader.pull(folder).corroborated == (learned,)
    assert lessons.get_lesson(reader.db, learned).strength == strength + 0.5
    tell(reader, folder, says_nothing(A, 6))
    put_files(folder, [publishes(A, 7)])
    assert reader.pull(folder).corroborated == ()
    put_files(folder, [publishes(B), publishes(C)])
    reader.pull(folder)
    assert lessons.get_lesson(reader.db, learned).strength == strength + 1.5
    assert reader.lesson_state(learned) == "own active"


def test_a_copy_under_another_key_stands_on_its_own(reader: Memory, folder: Path) -> None:
    tell(reader, folder, publishes(A), publishes(B))
    tell(reader, folder, revokes(A))
    assert reader.lesson_state(HASH) == "received active"
    assert reader.reading(HASH).publishers == (B.public.hex,)
    tell(reader, folder, revokes(B))
    assert reader.lesson_state(HASH) == "received dropped"
    assert all(dropped for _at, dropped in holdings.receipts(reader.db, HASH).values())


def test_a_key_that_took_a_lesson_back_never_brings_it_again(reader: Memory, folder: Path) -> None:
    tell(reader, folder, publishes(A))
    tell(reader, folder, revokes(A))
    tell(reader, folder, publishes(A, 7))
    assert reader.reading(HASH).state is State.CANDIDATE
    assert reader.lesson_state(HASH) == "received dropped"
    tell(reader, folder, publishes(B))
    assert reader.lesson_state(HASH) == "received active"


def test_a_stranger_who_revokes_does_not_stop_a_lesson_whose_publisher_is_silent(reader: Memory, folder: Path) -> None:
    tell(reader, folder, publishes(A))
    tell(reader, folder, says_nothing(A))
    tell(reader, folder, revokes(B))
    assert reader.reading(HASH).cause is Cause.WITHDRAWN
    assert reader.lesson_state(HASH) == "received active"


def test_what_is_revoked_when_it_comes_is_not_taken_in(reader: Memory, folder: Path) -> None:
    trust_key(reader.home, reader.db, B.public.hex, "revoker", now=NOW)
    tell(reader, folder, publishes(A), revokes(B))
    assert reader.lesson_state(HASH) is None
    tell(reader, folder, says_nothing(B))
    assert reader.lesson_state(HASH) == "received active"


def test_a_quorum_of_counted_confirmers_stops_a_lesson(reader: Memory, folder: Path) -> None:
    confirmers = [key(number) for number in range(20, 23)]
    for one in confirmers:
        trust_key(reader.home, reader.db, one.public.hex, "follow", now=NOW)
    tell(reader, folder, publishes(A), *(file(one, [confirmation(HASH)], seal=5) for one in confirmers))
    assert reader.reading(HASH).state is State.COMMON
    turned = [file(one, [confirmation(HASH), revocation(HASH)], seal=6) for one in confirmers]
    tell(reader, folder, *turned[:2])
    assert reader.lesson_state(HASH) == "received active"
    put_files(folder, turned[2:])
    assert [(one.hash, one.why) for one in reader.pull(folder).stopped] == [(HASH, "quorum")]
    tell(reader, folder, file(confirmers[0], [confirmation(HASH)], seal=7))
    assert reader.lesson_state(HASH) == "received active"


def test_what_comes_from_denied_keys_alone_stops_until_it_is_taken_back(reader: Memory, folder: Path) -> None:
    trust_key(reader.home, reader.db, D.public.hex, "revoker", now=NOW)
    tell(reader, folder, publishes(A))
    tell(reader, folder, file(D, [denial(A.public.hex)], seal=5))
    assert reader.lesson_state(HASH) == "received dropped"
    tell(reader, folder, publishes(B))
    assert reader.lesson_state(HASH) == "received active"
    tell(reader, folder, file(D, [denial(A.public.hex), denial(B.public.hex)], seal=6))
    assert reader.lesson_state(HASH) == "received dropped"
    tell(reader, folder, says_nothing(D))
    assert reader.lesson_state(HASH) == "received active"


def test_nothing_of_a_denied_key_is_taken_in(reader: Memory, folder: Path) -> None:
    trust_key(reader.home, reader.db, D.public.hex, "revoker", now=NOW)
    tell(reader, folder, file(D, [denial(A.public.hex)], seal=5), publishes(A))
    assert reader.lesson_state(HASH) is None
    tell(reader, folder, says_nothing(D))
    assert reader.lesson_state(HASH) == "received active"


def test_a_vetoed_sentence_is_never_taken_in(reader: Memory, folder: Path) -> None:
    with transaction(reader.db):
        lessons.veto(reader.db, HASH, NOW)
    tell(reader, folder, publishes(A))
    assert reader.lesson_state(HASH) is None
    tell(reader, folder, revokes(A))
    tell(reader, folder, publishes(B))
    assert reader.lesson_state(HASH) is None


def test_an_own_lesson_is_nobody_elses_to_stop(reader: Memory, folder: Path) -> None:
    (learned,) = reader.learn(TEXT)
    trust_key(reader.home, reader.db, B.public.hex, "revoker", now=NOW)
    tell(reader, folder, publishes(A), revokes(B))
    assert reader.reading(learned).state is State.REVOKED
    assert reader.lesson_state(learned) == "own active"


# --- the order in which files come ---

SIGNERS = [key(number) for number in range(30, 35)]
TEXTS = [sentence(number) for number in range(3)]
HASHES = [lesson_hash("error", text) for text in TEXTS]


def random_files(choose: random.Random) -> list[bytes]:
    """Return some versions of a few keys' files, which say much about few lessons."""
    files = []
    for signer in SIGNERS:
        for seal in range(5, 5 + choose.randint(1, 3)):
            contents = []
            for text, about in zip(TEXTS, HASHES, strict=True):
                contents += [lesson(text)] * (choose.random() < 0.4)
                contents += [confirmation(about, at=NOW - timedelta(days=choose.choice((1, 100))))] * (
                    choose.random() < 0.5
                )
                contents += [revocation(about)] * (choose.random() < 0.25)
            denied = choose.choice(SIGNERS).public.hex
            contents += [denial(denied)] * (choose.random() < 0.15)
            files.append(file(signer, contents, seal=seal))
    return files


def snapshot(memory: Memory) -> tuple[object, ...]:
    """Return all that must not depend on the order in which files came."""
    return (
        memory.held_files(),
        {name: held.version for name, held in holdings.holdings(memory.db).items()},
        {name: holdings.said_by(memory.db, name) for name in holdings.holdings(memory.db)},
        memory.readings([lesson_hash("error", text) for text in TEXTS]),
    )


def following_reader(path: Path) -> Memory:
    """Make a memory that obeys one of the signers, follows three, and knows nothing of the fifth."""
    reader = Memory(path / "memory", 1)
    trust_key(reader.home, reader.db, SIGNERS[0].public.hex, "revoker", now=NOW)
    for signer in SIGNERS[1:4]:
        trust_key(reader.home, reader.db, signer.public.hex, "follow", now=NOW)
    return reader


def pull_each(reader: Memory, path: Path, files: Sequence[bytes]) -> None:
    """Pull from a folder for each file, in their order."""
    for place, data in enumerate(files):
        folder = path / f"folder-{place}"
        folder.mkdir()
        put_files(folder, [data])
        reader.pull(folder)


@settings(max_examples=15)
@given(st.integers(0, 2**32), st.randoms(use_true_random=False))
def test_what_is_held_does_not_depend_on_the_order_of_pulls_or_on_repeats(
    tmp_path_factory: pytest.TempPathFactory, seed: int, shuffle: random.Random
) -> None:
    files = random_files(random.Random(seed))
    found = []
    for more in (0, len(files) // 2):
        path = tmp_path_factory.mktemp("orders")
        reader = following_reader(path)
        often = files + shuffle.sample(files, more)
        pull_each(reader, path, shuffle.sample(often, len(often)))
        found.append(snapshot(reader))
        reader.close()
    assert found[0] == found[1]


@settings(max_examples=20)
@given(st.integers(0, 2**32), st.randoms(use_true_random=False))
def test_which_lessons_count_here_depends_on_the_newest_files_alone(
    tmp_path_factory: pytest.TempPathFactory, seed: int, shuffle: random.Random
) -> None:
    newest = list({accept(data, now=NOW).key.hex: data for data in random_files(random.Random(seed))}.values())
    found = []
    for _time in range(2):
        path = tmp_path_factory.mktemp("minds")
        reader = following_reader(path)
        pull_each(reader, path, shuffle.sample(newest, len(newest)))
        found.append([reader.lesson_state(about) == "received active" for about in HASHES])
        reader.close()
    assert found[0] == found[1]
