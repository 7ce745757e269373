"""A poisoned lesson from its first line to its end: published, believed, revoked by the operator, and gone everywhere.

Memories with real homes share and pull over HTTP, and the operator acts on the commons between them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest

from remem.cli.showing import show_words
from remem.commons import CommonsRefused
from remem.commons.http import HttpCommons
from remem.errors import Refused
from remem.memory import trust
from remem.protocol import Cause, State, lesson_hash
from remem.sharing.show import show
from remem.sharing.speak import distrust_key, trust_key
from remem_server.operator import acts
from remem_server.operator.own_file import Act
from remem_server.upkeep.audit import audit
from remem_testkit.files import NOW, confirmation, file, key, lesson
from remem_testkit.memories import Memory
from remem_testkit.server import ServedCommons

POISON = "the deploy fails while the checksum of the installer is verified"
HASH = lesson_hash("error", POISON)
REASON = "It talks readers out of verifying what they install."
POISONER, CONFIRMERS, READERS, COPYIST = 1, (2, 3, 4), (11, 12), 5
WHO = "command by the test"

Memories = Callable[[int], Memory]


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memories]:
    """Return a function that makes the memory of a number, or returns it again."""
    made: dict[int, Memory] = {}

    def memory(number: int) -> Memory:
        if number not in made:
            made[number] = Memory(tmp_path / f"memory-{number}", number)
        return made[number]

    yield memory
    for one in made.values():
        one.close()


def put(commons: ServedCommons, number: int, data: bytes, token: str | None = None) -> httpx.Response:
    url = f"{commons.url}/commons/{key(number).public.hex}.jsonl"
    return httpx.put(url, content=data, headers={"Authorization": f"Bearer {token or commons.token()}"})


def make_common(commons: ServedCommons) -> bytes:
    """Publish the poisoned lesson and confirm it until it is common; return the poisoner's file."""
    poison = file(key(POISONER), [lesson(POISON)])
    assert put(commons, POISONER, poison).status_code == 201
    for number in CONFIRMERS:
        assert put(commons, number, file(key(number), [confirmation(HASH)])).status_code == 201
    return poison


def of_the_commons(commons: ServedCommons) -> dict[str, object]:
    return dict(httpx.get(f"{commons.url}/commons/lessons/{HASH}").json())


def say(commons: ServedCommons, act: Act, subject: str, reason: str | None) -> None:
    acts.say(commons.commons, WHO, act, subject, reason)
    assert list(audit(commons.engine, commons.clock(), node=operator_of(commons))) == []


def operator_of(commons: ServedCommons) -> str:
    return commons.commons.key.public.hex


def test_a_revoked_lesson_is_out_of_every_mind_with_the_next_pull(commons: ServedCommons, memory: Memories) -> None:
    make_common(commons)
    for number in READERS:
        assert memory(number).pull(commons.url).learned == 1
        assert memory(number).reading(HASH).state is State.COMMON
    say(commons, "revoke", HASH, REASON)
    assert of_the_commons(commons)["state"] == "revoked"
    for number in READERS:
        report = memory(number).pull(commons.url)
        assert [(one.hash, one.why) for one in report.stopped] == [(HASH, "revoker")]
        reading = memory(number).reading(HASH)
        assert (reading.state, reading.cause) == (State.REVOKED, Cause.REVOKER)
        assert reading.revokers == (operator_of(commons),)
        assert memory(number).lesson_state(HASH) == "received dropped"


def test_a_reader_is_shown_whose_revocation_it_is_and_why(commons: ServedCommons, memory: Memories) -> None:
    make_common(commons)
    say(commons, "revoke", HASH, REASON)
    reader = memory(READERS[0])
    assert operator_of(commons) in reader.pull(commons.url).pinned
    report = show(reader.home, reader.db, HASH, now=NOW)
    (revoked,) = [record for record in report.records if record.type == "revoke"]
    assert (revoked.key, revoked.text, revoked.via) == (operator_of(commons), REASON, commons.url)
    assert "revoker" in revoked.standing
    words = "\n".join(show_words(report))
    assert f"revoked by {operator_of(commons)} (revoker, an operator of {commons.url}) on" in words
    assert REASON in words
    assert operator_of(commons)[:16] in report.why
    (named,) = trust.everything(reader.db, "revoker")
    assert (named.key, named.via, named.declined) == (operator_of(commons), commons.url, False)


def test_an_older_file_that_is_replayed_cannot_bring_it_back(commons: ServedCommons, memory: Memories) -> None:
    poison = make_common(commons)
    reader = memory(READERS[0])
    reader.pull(commons.url)
    say(commons, "revoke", HASH, REASON)
    first = httpx.get(f"{commons.url}/commons/{operator_of(commons)}.jsonl").content
    reader.pull(commons.url)
    # The operator says one thing more, and somebody puts back what stood before: the poison, and yesterday's node.
    say(commons, "deny", key(9).public.hex, "It floods the commons.")
    assert put(commons, POISONER, poison, commons.token(principal="thief")).status_code == 403
    url = f"{commons.url}/commons/{operator_of(commons)}.jsonl"
    again = httpx.put(url, content=first, headers={"Authorization": f"Bearer {commons.token()}"})
    assert (again.status_code, again.json()["code"]) == (409, "older_file")
    assert of_the_commons(commons)["state"] == "revoked"
    reader.pull(commons.url)
    assert reader.reading(HASH).state is State.REVOKED
    assert reader.lesson_state(HASH) == "received dropped"


def test_an_older_node_file_from_elsewhere_is_not_taken(
    commons: ServedCommons, memory: Memories, tmp_path: Path
) -> None:
    make_common(commons)
    say(commons, "deny", key(9).public.hex, "It floods the commons.")
    before = httpx.get(f"{commons.url}/commons/{operator_of(commons)}.jsonl").content
    say(commons, "revoke", HASH, REASON)
    reader = memory(READERS[0])
    reader.pull(commons.url)
    mirror = tmp_path / "mirror"
    mirror.mkdir()
    (mirror / f"{operator_of(commons)}.jsonl").write_bytes(before)
    reader.pull(mirror)
    assert reader.reading(HASH).state is State.REVOKED


def test_the_same_sentence_under_a_new_key_is_known_for_what_it_is(commons: ServedCommons, memory: Memories) -> None:
    make_common(commons)
    say(commons, "revoke", HASH, REASON)
    reader = memory(READERS[0])
    reader.pull(commons.url)
    spelled = POISON.upper().replace(" ", "  ")
    assert put(commons, COPYIST, file(key(COPYIST), [lesson(spelled)])).status_code == 201
    seen = of_the_commons(commons)
    assert (seen["state"], seen["cause"]) == ("revoked", "revoker")
    report = reader.pull(commons.url)
    assert report.learned == 0
    reading = reader.reading(HASH)
    assert reading.revokers == (operator_of(commons),)
    assert key(COPYIST).public.hex in reading.publishers
    assert reader.lesson_state(HASH) != "received active"


def test_who_meets_the_commons_late_never_learns_it(commons: ServedCommons, memory: Memories) -> None:
    make_common(commons)
    say(commons, "revoke", HASH, REASON)
    late = memory(READERS[1])
    assert late.pull(commons.url).learned == 0
    assert late.lesson_state(HASH) != "received active"


def test_a_reader_can_decline_the_operator_and_take_that_back(commons: ServedCommons, memory: Memories) -> None:
    make_common(commons)
    reader = memory(READERS[0])
    reader.pull(commons.url)
    say(commons, "revoke", HASH, REASON)
    reader.pull(commons.url)
    operator = operator_of(commons)
    declined = distrust_key(reader.home, reader.db, operator, now=NOW)
    assert HASH in declined.resumed
    assert reader.reading(HASH).state is State.COMMON
    # It stays declined, whatever the commons says of itself with the next pulls.
    assert reader.pull(commons.url).pinned == ()
    assert reader.reading(HASH).state is State.COMMON
    trusted = trust_key(reader.home, reader.db, operator, "revoker", now=NOW)
    assert [one.hash for one in trusted.stopped] == [HASH]


def test_a_typing_error_does_not_last_for_ever(commons: ServedCommons, memory: Memories) -> None:
    make_common(commons)
    reader = memory(READERS[0])
    reader.pull(commons.url)
    say(commons, "revoke", HASH, REASON)
    reader.pull(commons.url)
    say(commons, "unrevoke", HASH, "It was the wrong lesson.")
    assert of_the_commons(commons)["state"] == "common"
    assert reader.pull(commons.url).resumed == (HASH,)
    assert reader.reading(HASH).state is State.COMMON
    assert reader.lesson_state(HASH) == "received active"


def test_a_denied_key_is_heard_by_nobody_who_trusts_the_operator(commons: ServedCommons, memory: Memories) -> None:
    make_common(commons)
    reader = memory(READERS[0])
    reader.pull(commons.url)
    say(commons, "deny", key(POISONER).public.hex, "It is a campaign.")
    report = reader.pull(commons.url)
    assert [(one.hash, one.why) for one in report.stopped] == [(HASH, "denied")]
    shown = show(reader.home, reader.db, HASH, now=NOW)
    assert [(one.key, one.denied, one.reason, one.obeyed, one.via) for one in shown.denials] == [
        (operator_of(commons), key(POISONER).public.hex, "It is a campaign.", True, commons.url)
    ]
    assert HASH in distrust_key(reader.home, reader.db, operator_of(commons), now=NOW).resumed
    say(commons, "undeny", key(POISONER).public.hex, None)
    assert of_the_commons(commons)["state"] == "common"


# --- a host's own choice ---


def test_a_reader_keeps_what_a_host_blocks_and_pulls_in_peace(commons: ServedCommons, memory: Memories) -> None:
    make_common(commons)
    reader = memory(READERS[0])
    reader.pull(commons.url)
    acts.block(commons.commons, WHO, key(POISONER).public.hex, "It is spam.")
    report = reader.pull(commons.url)
    assert (report.refused, report.complete, report.interrupted) == ((), True, None)
    assert reader.lesson_state(HASH) == "received active"
    assert reader.pull(commons.url).unchanged


def test_a_listed_file_that_is_blocked_is_asked_for_once(
    commons: ServedCommons, memory: Memories, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_common(commons)
    reader = memory(READERS[0])
    asked: list[str] = []
    get = HttpCommons.get

    def block_before_a_file(place: HttpCommons, name: str, digest: str | None = None) -> bytes | None:
        asked.append(name)
        acts.block(commons.commons, WHO, key(POISONER).public.hex, "It is spam.")
        return get(place, name, digest)

    monkeypatch.setattr(HttpCommons, "get", block_before_a_file)
    report = reader.pull(commons.url)
    assert [(one.name, one.code) for one in report.refused] == [(key(POISONER).public.hex, "blocked")]
    assert "It is spam." in report.refused[0].detail
    assert report.complete
    assert len(report.taken) == len(CONFIRMERS)
    asked.clear()
    assert reader.pull(commons.url).complete
    assert asked == []
    assert reader.refused() == {}


def test_who_is_blocked_is_told_so_and_why(commons: ServedCommons, memory: Memories) -> None:
    writer = memory(READERS[0])
    writer.learn("the build breaks while the header is older than its schema")
    acts.block(commons.commons, WHO, writer.name, "It is spam.")
    with pytest.raises((CommonsRefused, Refused), match=r"It is spam\.") as caught:
        writer.share(f"{commons.url} {commons.token()}")
    assert caught.value.hint is not None
    assert "remem logout" in caught.value.hint
