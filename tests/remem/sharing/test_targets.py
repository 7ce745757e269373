"""Where bare commands go, and how a place is left."""

from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from remem.commons import CommonsRefused, FolderCommons
from remem.errors import RememError, Unreachable
from remem.memory import places, trust
from remem.memory.config import set_target
from remem.protocol import State, lesson_hash
from remem.protocol.times import unix_seconds
from remem.sharing.share import withdraw
from remem.sharing.speak import trust_key
from remem.sharing.status import status
from remem.sharing.targets import forget_place, pull_sources, share_targets
from remem_testkit.files import NOW, confirmation, file, key, lesson, revocation, sentence
from remem_testkit.liars import Liar, lying
from remem_testkit.memories import MACHINE, Memory, put_files, reach
from remem_testkit.server import serve

A, B, C, D = (key(number) for number in range(11, 15))
TEXT = sentence(1)
HASH = lesson_hash("error", TEXT)


@pytest.fixture
def one(memory: Callable[[int], Memory]) -> Memory:
    return memory(1)


def folders(path: Path, *names: str) -> list[Path]:
    found = [path / name for name in names]
    for folder in found:
        folder.mkdir()
    return found


def test_a_bare_command_goes_to_the_targets_and_then_to_every_place_gone_to_before(one: Memory, tmp_path: Path) -> None:
    first, second, shared, pulled, both = folders(tmp_path, "z-first", "a-second", "shared", "pulled", "both")
    assert share_targets(one.home, one.db) == pull_sources(one.home, one.db) == ()
    for folder in (first, second):
        set_target(one.home.config_path, str(folder), None)
    one.learn(TEXT)
    one.share(first, shared, both)
    for folder in (pulled, both, second):
        one.pull(folder)
    assert share_targets(one.home, one.db) == tuple(map(str, (first, second, both, shared)))
    assert pull_sources(one.home, one.db) == tuple(map(str, (first, second, both, pulled)))


def test_a_target_in_another_spelling_is_the_same_place_and_keeps_its_token(
    one: Memory, folder: Path, memory: Callable[[int], Memory]
) -> None:
    written = f"{folder}/../{folder.name}/"
    for address, token in ((written, "secret"), (str(folder), None), ("gopher://x", None)):
        set_target(one.home.config_path, address, token)
    one.share(folder)
    assert share_targets(one.home, one.db) == (written, "gopher://x")
    assert one.home.config().target(written).token == "secret"


def bare_withdraw(memory: Memory) -> list[str]:
    commons = [reach(target) for target in share_targets(memory.home, memory.db)]
    report = withdraw(memory.home, memory.db, commons, machine=MACHINE, now=memory.now)
    return [result.outcome for result in report.results]


def test_what_was_shared_to_a_named_folder_is_taken_back_by_a_bare_withdraw(one: Memory, folder: Path) -> None:
    one.learn(TEXT)
    one.share(folder)
    one.later(hours=1)
    assert bare_withdraw(one) == ["newer"]
    data = FolderCommons(folder).get(one.name)
    assert data is not None
    assert TEXT.encode() not in data


def put_and(fail: Callable[[Any], None], *, arrives: bool) -> Callable[..., object]:
    """Make a put that may arrive, and fails."""
    real = FolderCommons.put

    def put(self: FolderCommons, whole: Any) -> object:
        if arrives:
            real(self, whole)
        fail(whole)
        return None

    return put


def no_answer(_file: object) -> None:
    raise Unreachable("expected an answer, got none")


def refuse(_file: object) -> None:
    raise CommonsRefused("token_missing", "expected a token, got none")


def test_a_file_that_arrived_without_an_answer_is_taken_back_too(
    one: Memory, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one.learn(TEXT)
    with monkeypatch.context() as patch:
        patch.setattr(FolderCommons, "put", put_and(no_answer, arrives=True))
        assert [result.outcome for result in one.share(folder).results] == ["unreachable"]
    assert share_targets(one.home, one.db) == (str(folder),)
    one.later(hours=1)
    assert bare_withdraw(one) == ["newer"]


@pytest.mark.parametrize("fail", [no_answer, refuse])
def test_a_place_that_took_nothing_is_not_gone_to_again(
    one: Memory, folder: Path, monkeypatch: pytest.MonkeyPatch, fail: Callable[[object], None]
) -> None:
    one.learn(TEXT)
    with monkeypatch.context() as patch:
        patch.setattr(FolderCommons, "put", put_and(fail, arrives=False))
        one.share(folder)
    assert share_targets(one.home, one.db) == ()
    assert status(one.home, one.db).places == ()
    one.share(folder)
    one.learn(sentence(2))
    one.later(hours=1)
    with monkeypatch.context() as patch:
        patch.setattr(FolderCommons, "put", put_and(fail, arrives=False))
        one.share(folder)
    assert share_targets(one.home, one.db) == (str(folder),)


def test_a_death_between_sending_and_the_answer_leaves_the_place_known(
    one: Memory, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def die(_file: object) -> None:
        raise KeyboardInterrupt

    one.learn(TEXT)
    with monkeypatch.context() as patch:
        patch.setattr(FolderCommons, "put", put_and(die, arrives=True))
        with pytest.raises(KeyboardInterrupt):
            one.share(folder)
    assert share_targets(one.home, one.db) == (str(folder),)


def test_a_commons_that_wants_a_token_and_got_none_is_no_target(one: Memory, tmp_path: Path) -> None:
    one.learn(TEXT)
    with serve(tmp_path / "server") as server:
        (result,) = one.share(server.url).results
        assert result.hint == f"ask its operator for a token, then: remem login {server.url}"
        assert share_targets(one.home, one.db) == ()


# --- leaving a place ---


def admit_three(folder: Path) -> None:
    entries = ",".join(
        f'{{"key":"{one.public.hex}","digest":"{"0" * 64}","seal":5,"principal":"p{number}"}}'
        for number, one in enumerate((B, C, D))
    )
    (folder / "index").write_text(f"[{entries}]")


def test_a_forgotten_place_is_gone_to_no_more_and_whom_it_admitted_does_not_count(one: Memory, folder: Path) -> None:
    set_target(one.home.config_path, str(folder), None)
    put_files(folder, [file(A, [lesson(TEXT)]), *(file(who, [confirmation(HASH)]) for who in (B, C, D))])
    admit_three(folder)
    one.share(folder)
    one.pull(folder)
    assert one.reading(HASH).state is State.COMMON
    report = forget_place(one.home, one.db, str(folder), now=NOW)
    assert (report.target, report.token, report.shared, report.revokers) == (str(folder), False, NOW, ())
    assert share_targets(one.home, one.db) == pull_sources(one.home, one.db) == ()
    assert one.reading(HASH).state is State.CANDIDATE
    assert one.lesson_state(HASH) == "received active"
    assert status(one.home, one.db).places == ()
    # Whoever comes back hears all of it again.
    assert not one.pull(folder).unchanged
    assert one.reading(HASH).state is State.COMMON


def test_a_quorum_of_those_whom_a_forgotten_place_admitted_stops_nothing_any_more(one: Memory, folder: Path) -> None:
    put_files(folder, [file(A, [lesson(TEXT)]), *(file(who, [confirmation(HASH)]) for who in (B, C, D))])
    one.pull(folder)
    put_files(
        folder, [file(who, [confirmation(HASH), revocation(HASH)], seal=unix_seconds(NOW) + 1) for who in (B, C, D)]
    )
    admit_three(folder)
    assert [stopped.why for stopped in one.pull(folder).stopped] == ["quorum"]
    assert forget_place(one.home, one.db, str(folder), now=NOW).resumed == (HASH,)
    assert one.lesson_state(HASH) == "received active"


@pytest.fixture
def liar() -> Any:
    with lying() as made:
        made.say("/commons/index", b"[]", ETag='"a"')
        yield made


def named(liar: Liar, *keys: str) -> None:
    listed = ",".join(f'"{name}"' for name in keys)
    liar.say("/.well-known/remem", f'{{"protocol":[1],"key":"{keys[0]}","operators":[{listed}]}}'.encode())


def test_the_trust_that_was_pinned_at_a_forgotten_place_stays_and_so_do_its_keys(one: Memory, liar: Liar) -> None:
    set_target(one.home.config_path, liar.url, "secret")
    named(liar, A.public.hex)
    one.pull(liar.url)
    report = forget_place(one.home, one.db, liar.url.upper().replace("HTTP", "http") + "/", now=NOW)
    assert (report.target, report.token, report.shared) == (liar.url, True, None)
    assert report.revokers == (A.public.hex,)
    assert "secret" not in one.home.config_path.read_text()
    assert trust.trusted(one.db, "revoker") == {A.public.hex}
    # Who answers there now is held against who did.
    named(liar, B.public.hex)
    again = one.pull(liar.url)
    assert again.pinned == (A.public.hex,)
    assert [notice.code for notice in again.notices] == ["changed_key"]
    assert trust.trusted(one.db, "revoker") == {A.public.hex}


@pytest.mark.parametrize("target", ["", "http://127.0.0.1:9", "nowhere", "gopher://x"])
def test_a_place_that_is_not_known_cannot_be_forgotten(one: Memory, target: str) -> None:
    with pytest.raises(RememError, match="expected a commons that this memory knows"):
        forget_place(one.home, one.db, target, now=NOW)


def test_a_target_that_is_none_can_be_forgotten(one: Memory) -> None:
    set_target(one.home.config_path, "gopher://x", "secret")
    assert forget_place(one.home, one.db, "gopher://x", now=NOW).token
    assert one.home.config().targets == ()


def test_a_place_is_forgotten_once(one: Memory, folder: Path) -> None:
    one.pull(folder)
    forget_place(one.home, one.db, str(folder), now=NOW)
    with pytest.raises(RememError):
        forget_place(one.home, one.db, str(folder), now=NOW)


def test_to_forget_one_place_leaves_the_others(one: Memory, tmp_path: Path) -> None:
    here, there = folders(tmp_path, "here", "there")
    for folder in (here, there):
        one.pull(folder)
        set_target(one.home.config_path, str(folder), None)
    trust_key(one.home, one.db, A.public.hex, "revoker", now=NOW)
    assert forget_place(one.home, one.db, str(here), now=NOW).revokers == ()
    assert pull_sources(one.home, one.db) == share_targets(one.home, one.db) == (str(there),)
    assert [place.target for place in places.places(one.db)] == [str(there)]


def test_a_folder_that_is_gone_can_be_forgotten(one: Memory, folder: Path) -> None:
    one.pull(folder)
    folder.rmdir()
    with closing(reach(folder)) as commons, pytest.raises(Unreachable):
        commons.describe()
    assert forget_place(one.home, one.db, str(folder), now=NOW).target == str(folder)
