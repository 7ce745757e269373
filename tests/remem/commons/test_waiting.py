"""A commons that asks to come again: it is asked again, for a while, and then that is said in one line."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest

from remem.commons import CommonsRefused
from remem.commons.http import HttpCommons
from remem.commons.waiting import Patience, Waits
from remem.errors import Unreachable
from remem.protocol import accept
from remem.sharing.pull import pull
from remem.sharing.share import share
from remem_server.files.accept import accept_file
from remem_testkit.files import NOW, file, key, lesson
from remem_testkit.liars import Liar, answer, lying
from remem_testkit.memories import MACHINE, Memory
from remem_testkit.server import HandClock, ServedCommons, serve

ME = key(1)
FILE = file(ME, [lesson("a build fails")])
PATH = f"/commons/{ME.public.hex}.jsonl"
PUBLISHED = b'{"outcome":"new","skipped":[]}'


@pytest.fixture
def liar() -> Iterator[Liar]:
    with lying() as made:
        yield made


def later(status: str, seconds: str) -> bytes:
    return answer(b"{}", status, {"Retry-After": seconds})


def say_in_turn(liar: Liar, path: str, *answers: bytes) -> None:
    rest = iter(answers)
    liar.answers[path] = lambda _head: next(rest)


@pytest.mark.parametrize(
    ("status", "retry_after", "wait"),
    [
        (429, "7", 7),
        (503, "7", 7),
        (429, "0", 1),
        (429, None, None),
        (503, "soon", None),
        (503, "Tue, 01 Dec 2026 00:00:00 GMT", None),
        (503, "9" * 9, None),
        (200, "7", None),
        (422, "7", None),
    ],
)
def test_who_says_when_to_come_again_is_asked_again_then(
    status: int, retry_after: str | None, wait: int | None
) -> None:
    assert Waits("https://commons.example", Patience()).after(status, retry_after) == wait


@pytest.mark.parametrize(
    ("status", "seconds", "said"),
    [
        (429, "76", "2 minutes"),
        (429, "86400", "24 hours"),
        (429, "3601", "2 hours"),
        (503, "16", "16 seconds"),
        (503, "60", "1 minute"),
    ],
)
def test_nobody_is_waited_for_longer_than_the_patience(status: int, seconds: str, said: str) -> None:
    with pytest.raises(Unreachable) as raised:
        Waits("https://commons.example", Patience()).after(status, seconds)
    assert raised.value.exit_code == 4
    assert raised.value.hint == f"try again in {said}: whatever was done is kept"


@pytest.mark.parametrize(
    ("status", "code", "got"),
    [
        (429, "too_many_requests", "word that too much came from here"),
        (429, "too_many_keys", "word that too many new keys came from here"),
        (503, "busy", "word that it is busy"),
        (503, "store_unavailable", "word that its database does not answer"),
        (503, None, "word that it is busy"),
    ],
)
def test_it_is_said_what_is_in_the_way(status: int, code: str | None, got: str) -> None:
    with pytest.raises(Unreachable, match=f"^expected an answer from https://commons.example, got {got}$"):
        Waits("https://commons.example", Patience()).after(status, "9999", code)


@pytest.mark.parametrize("status", ["501 Not Implemented", "405 Method Not Allowed"])
def test_who_shares_to_an_export_is_told_that_it_is_only_read(liar: Liar, status: str) -> None:
    say_in_turn(liar, PATH, answer(b"<html>", status))
    commons = HttpCommons(liar.url)
    with pytest.raises(CommonsRefused, match="expected a commons that takes files") as refused:
        commons.put(accept(FILE, now=NOW))
    commons.close()
    assert (refused.value.code, refused.value.hint) == (
        f"http_{status[:3]}",
        "what is there may be an export, which is only read",
    )


def test_the_waits_of_an_exchange_add_up() -> None:
    waits = Waits("https://commons.example", Patience(limited=10))
    assert [waits.after(429, "4"), waits.after(429, "4")] == [4, 4]
    with pytest.raises(Unreachable):
        waits.after(429, "4")


@pytest.mark.parametrize("status", ["429 Too Many Requests", "503 Service Unavailable"])
def test_a_file_goes_there_when_there_is_room_again(liar: Liar, status: str) -> None:
    slept: list[float] = []
    say_in_turn(liar, PATH, later(status, "3"), later(status, "2"), answer(PUBLISHED, "201 Created"))
    commons = HttpCommons(liar.url, sleep=slept.append)
    assert commons.put(accept(FILE, now=NOW)).outcome == "new"
    commons.close()
    assert slept == [3, 2]


def test_a_refusal_that_names_no_time_is_a_refusal(liar: Liar) -> None:
    liar.say(PATH, b'{"code":"too_many_requests"}', "429 Too Many Requests")
    commons = HttpCommons(liar.url)
    with pytest.raises(CommonsRefused) as raised:
        commons.get(ME.public.hex)
    commons.close()
    assert raised.value.code == "too_many_requests"


# --- a memory and a real commons ---

FILES = 40
# The description, the index, and some of the files.
READS = 15


@pytest.fixture
def strict(tmp_path: Path) -> Iterator[ServedCommons]:
    """Return a commons of some files that lets little be read within a minute."""
    with serve(tmp_path / "data", reads_per_minute=READS, publishes_per_minute=1, open=True) as made:
        for number in range(100, 100 + FILES):
            data = file(key(number), [lesson(f"build {number} fails")])
            accept_file(made.engine, data, name=key(number).public.hex, secret=None, token_needed=False, now=NOW)
        yield made


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with closing(Memory(tmp_path / "home", 1)) as made:
        yield made


def waiting_for(commons: ServedCommons) -> Callable[[float], None]:
    """Return what passes the time that a memory waits."""
    clock = commons.clock
    assert isinstance(clock, HandClock)
    return lambda seconds: clock.advance(timedelta(seconds=seconds))


def test_a_pull_waits_for_its_limit_and_ends_whole(strict: ServedCommons, memory: Memory) -> None:
    with closing(HttpCommons(strict.url, sleep=waiting_for(strict))) as commons:
        report = pull(memory.home, memory.db, commons, now=NOW)
    assert (len(report.taken), report.complete, report.refused) == (FILES, True, ())


def test_a_pull_that_may_not_wait_says_so_and_the_next_goes_on(strict: ServedCommons, memory: Memory) -> None:
    with closing(HttpCommons(strict.url, patience=Patience(limited=0))) as commons:
        report = pull(memory.home, memory.db, commons, now=NOW)
    assert 0 < len(report.taken) < FILES
    assert not report.complete
    assert report.interrupted == f"expected an answer from {strict.url}, got word that too much came from here"
    with closing(HttpCommons(strict.url, sleep=waiting_for(strict))) as commons:
        again = pull(memory.home, memory.db, commons, now=NOW)
    assert (len(report.taken) + len(again.taken), again.complete) == (FILES, True)


def test_a_share_waits_or_says_in_one_line_that_it_may_not(strict: ServedCommons, memory: Memory) -> None:
    memory.learn("a build fails")
    for patience, outcome in ((Patience(), "new"), (Patience(limited=0), "unreachable"), (Patience(), "unchanged")):
        commons = HttpCommons(strict.url, patience=patience, sleep=waiting_for(strict))
        with closing(commons):
            report = share(memory.home, memory.db, [commons], machine=MACHINE, now=NOW)
        (result,) = report.results
        assert result.outcome == outcome
        if outcome == "unreachable":
            assert result.detail == f"expected an answer from {strict.url}, got word that too much came from here"
            assert result.hint == "try again in 1 minute: whatever was done is kept"
