"""The operator's words from another machine: how they get into a key's file where the key is, and what it remembers."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from stat import S_IMODE
from typing import cast

import httpx
import pytest
from sqlalchemy import select

from remem.commons import BadAnswer, CommonsRefused, Published
from remem.commons.http import HttpCommons
from remem.errors import RememError, Unreachable
from remem.protocol import RULES, OriginFile, SigningKey, accept, lesson_hash
from remem.protocol.times import unix_seconds
from remem_server.database import tables
from remem_server.errors import KeyRetired, OperatorKey, ParameterForm
from remem_server.files import journal
from remem_server.files.accept import accept_file
from remem_server.operator.own_file import Act
from remem_server.operator.remote import ForeignSeal, Sent, say_at
from remem_server.upkeep.audit import audit
from remem_testkit.files import NOW, denial, draft_file, file, key, lesson, revocation, sentence
from remem_testkit.liars import lying
from remem_testkit.server import HandClock, ServedCommons

Ask = Callable[..., httpx.Client]
At = Callable[..., Sent]
Start = Callable[..., ServedCommons]

MINE = key(7)
HASH, OTHER, THIRD = (lesson_hash("error", sentence(number)) for number in (1, 2, 3))
KEY = key(1).public.hex
REASON = "It is not so."


@pytest.fixture
def remote(start: Start) -> ServedCommons:
    """Return a commons of which another machine has an operator's key."""
    return start(operators=(MINE.public.hex,))


@pytest.fixture
def key_file(tmp_path: Path) -> Path:
    """Return the file of the key, on a machine that signed nothing so far."""
    return machine(tmp_path / "laptop")


def machine(folder: Path) -> Path:
    folder.mkdir()
    path = folder / "operator.key"
    path.write_text(MINE.seed.hex() + "\n")
    path.chmod(0o600)
    return path


@pytest.fixture
def told() -> list[str]:
    """Return what was told by the last word that `at` said."""
    return []


@pytest.fixture
def at(key_file: Path, told: list[str]) -> At:
    """Return a function that says a word at a commons."""

    def at(
        commons: ServedCommons,
        act: Act,
        subject: str,
        token: str | None,
        reason: str | None = REASON,
        *,
        by: Path = key_file,
        adopt: bool = False,
    ) -> Sent:
        told.clear()
        sent = say_at(commons.url, token, by, act, subject, reason, commons.clock, tell=told.append, adopt=adopt)
        found = list(audit(commons.engine, commons.clock(), node=commons.commons.key.public.hex))
        assert found == []
        return sent

    return at


def file_at(commons: ServedCommons) -> OriginFile:
    answer = httpx.get(f"{commons.url}/commons/{MINE.public.hex}.jsonl")
    return accept(answer.content, now=NOW + timedelta(days=2))


def topics_at(commons: ServedCommons) -> set[str]:
    return set(file_at(commons).topics)


def written(commons: ServedCommons) -> list[tuple[str, str, str, str | None]]:
    with commons.engine.connect() as connection:
        found = journal.read_after(connection, 0, 100)
    return [(row.who, row.act, row.subject, row.reason) for row in found if row.act != "token create"]


def put(commons: ServedCommons, signer: SigningKey, data: bytes) -> None:
    name = signer.public.hex
    accept_file(commons.engine, data, name=name, secret=None, token_needed=False, now=commons.clock())


# --- at a commons ---


def test_a_word_from_another_machine_is_obeyed_and_written_down(
    remote: ServedCommons, ask: Ask, at: At, told: list[str]
) -> None:
    put(remote, key(1), file(key(1), [lesson(sentence(1))]))
    token = remote.token(label="laptop")
    sent = at(remote, "revoke", HASH, token)
    assert sent == Sent("revoke", HASH, "done", MINE.public.hex, remote.url, obeyed=True, warnings=(), file_percent=0)
    assert told == [f"nothing was signed here with this key before: {remote.url} has no file of it"]
    seen = ask(remote).get(f"/commons/lessons/{HASH}").json()
    assert (seen["state"], seen["cause"]) == ("revoked", "revoker")
    assert at(remote, "revoke", HASH, token).outcome == "already"
    assert at(remote, "deny", KEY, token).outcome == "done"
    assert at(remote, "unrevoke", HASH, token, None).outcome == "done"
    assert ask(remote).get(f"/commons/lessons/{HASH}").json()["text"] is None
    assert at(remote, "undeny", KEY, token, None).outcome == "done"
    assert ask(remote).get(f"/commons/lessons/{HASH}").json()["text"] == sentence(1)
    with remote.engine.connect() as connection:
        number = connection.execute(select(tables.tokens.c.id).where(tables.tokens.c.label == "laptop")).scalar_one()
    who = f"key {MINE.public.hex[:16]} by token {number} (laptop)"
    assert written(remote) == [
        (who, "revoke", HASH, REASON),
        (who, "deny", KEY, REASON),
        (who, "unrevoke", HASH, None),
        (who, "undeny", KEY, None),
    ]


def test_the_words_of_anybody_else_are_no_acts(remote: ServedCommons) -> None:
    put(remote, key(2), file(key(2), [revocation(HASH), denial(KEY)]))
    assert written(remote) == []


def test_a_key_that_the_commons_does_not_name_is_told_so(commons: ServedCommons, at: At) -> None:
    assert at(commons, "revoke", HASH, commons.token()).obeyed is False


def test_what_another_machine_may_not_do_is_said(remote: ServedCommons, at: At) -> None:
    with pytest.raises(CommonsRefused) as caught:
        at(remote, "revoke", HASH, None)
    assert caught.value.code == "token_missing"
    with pytest.raises(OperatorKey):
        at(remote, "deny", remote.commons.key.public.hex, remote.token())
    with pytest.raises(ParameterForm):
        at(remote, "deny", HASH, remote.token())


def test_who_was_overtaken_by_another_machine_stops_and_takes_it_over_where_it_is_told_to(
    remote: ServedCommons, at: At, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = remote.token()
    at(remote, "revoke", HASH, token)
    other = machine(tmp_path / "desk")
    send, rounds = HttpCommons.put, iter(range(2))

    def another_is_faster(commons: HttpCommons, one: OriginFile) -> Published:
        with monkeypatch.context() as within:
            within.setattr(HttpCommons, "put", send)
            # Twice, so that the seal of the first is below what stands.
            for number in range(2) if next(rounds, None) is not None else ():
                cast("HandClock", remote.clock).advance(timedelta(seconds=1))
                at(remote, "deny", key(20 + number).public.hex, token, by=other, adopt=True)
                at(remote, "undeny", key(20 + number).public.hex, token, by=other)
                at(remote, "deny", key(20 + number).public.hex, token, by=other)
        return send(commons, one)

    monkeypatch.setattr(HttpCommons, "put", another_is_faster)
    with pytest.raises(ForeignSeal):
        at(remote, "revoke", OTHER, token)
    assert at(remote, "revoke", OTHER, token, adopt=True).outcome == "done"
    said = {f"revoke {HASH}", f"revoke {OTHER}", *(f"deny {key(20 + number).public.hex}" for number in range(2))}
    assert topics_at(remote) == said


@pytest.mark.parametrize(
    ("shown", "code"),
    [(b"nonsense\n", "not_an_object"), (file(key(2), []), "name_mismatch")],
    ids=["nonsense", "another's"],
)
def test_a_place_that_shows_something_else_is_not_followed(key_file: Path, shown: bytes, code: str) -> None:
    with lying() as liar:
        liar.say(f"/commons/{MINE.public.hex}.jsonl", shown)
        with pytest.raises(BadAnswer) as caught:
            say_at(liar.url, None, key_file, "revoke", HASH, REASON, HandClock(), tell=print)
        assert caught.value.code == code
        assert not any(asked.startswith("PUT") for asked in liar.asked)


def test_a_folder_will_do_too(tmp_path: Path, key_file: Path) -> None:
    folder = tmp_path / "commons"
    folder.mkdir()
    sent = say_at(str(folder), None, key_file, "revoke", HASH, REASON, HandClock(), tell=print)
    assert (sent.outcome, sent.obeyed) == ("done", None)
    said = accept((folder / f"{MINE.public.hex}.jsonl").read_bytes(), now=NOW)
    assert said.topics == (f"revoke {HASH}",)


# --- what is kept beside the key ---


@pytest.fixture
def second(start: Start) -> ServedCommons:
    """Return another commons that the same operator answers for."""
    return start("second", operators=(MINE.public.hex,))


def test_commons_in_turn_lose_no_word(remote: ServedCommons, second: ServedCommons, at: At) -> None:
    one, two = remote.token(), second.token()
    at(remote, "revoke", HASH, one)
    at(remote, "deny", KEY, one)
    assert at(second, "revoke", OTHER, two).outcome == "done"
    assert topics_at(second) == {f"revoke {HASH}", f"deny {KEY}", f"revoke {OTHER}"}
    # What anybody carries from there to here takes nothing away.
    put(remote, MINE, file_at(second).data)
    assert topics_at(remote) == topics_at(second)
    at(second, "unrevoke", HASH, two, None)
    assert at(remote, "revoke", THIRD, one).outcome == "done"
    assert topics_at(remote) == {f"deny {KEY}", f"revoke {OTHER}", f"revoke {THIRD}"}


def test_what_is_said_already_is_said_at_a_commons_that_missed_it(
    remote: ServedCommons, second: ServedCommons, at: At
) -> None:
    at(remote, "revoke", HASH, remote.token())
    token = second.token()
    assert at(second, "revoke", HASH, token).outcome == "done"
    assert file_at(second) == file_at(remote)
    assert at(second, "revoke", HASH, token).outcome == "already"


@pytest.mark.parametrize("shows", ["nothing", "an older file", "a file of draft 0"])
def test_a_commons_that_shows_less_is_told_no_less(remote: ServedCommons, at: At, key_file: Path, shows: str) -> None:
    token = remote.token()
    at(remote, "revoke", HASH, token)
    older = file_at(remote).data
    at(remote, "deny", KEY, token)
    with lying() as liar:
        path = f"/commons/{MINE.public.hex}.jsonl"
        shown = {"an older file": older, "a file of draft 0": draft_file(MINE, [revocation(THIRD)])}
        if shows in shown:
            liar.say(path, shown[shows])
        with pytest.raises((BadAnswer, CommonsRefused, Unreachable)):
            say_at(liar.url, None, key_file, "revoke", OTHER, REASON, remote.clock, tell=print)
    # What the liar was sent says all of it, and so does the next act.
    at(remote, "revoke", THIRD, token)
    assert topics_at(remote) == {f"revoke {HASH}", f"deny {KEY}", f"revoke {OTHER}", f"revoke {THIRD}"}


@pytest.mark.parametrize("ahead", [-3_600, 3_600], ids=["older", "newer"])
def test_a_seal_that_was_not_signed_here_stops_it_until_it_is_taken_over(
    remote: ServedCommons, second: ServedCommons, at: At, told: list[str], key_file: Path, ahead: int
) -> None:
    at(remote, "revoke", HASH, remote.token())
    foreign = file(MINE, [denial(KEY), revocation(OTHER)], seal=unix_seconds(NOW) + ahead)
    put(second, MINE, foreign)
    token, kept = second.token(), kept_by(key_file).read_bytes()
    for act, subject in (("revoke", THIRD), ("revoke", OTHER)):
        with pytest.raises(ForeignSeal, match=f"foreign_seal.*{unix_seconds(NOW) + ahead}") as caught:
            at(second, act, subject, token)
        assert "--adopt" in str(caught.value.hint)
    assert (file_at(second).data, kept_by(key_file).read_bytes()) == (foreign, kept)
    sent = at(second, "revoke", THIRD, token, adopt=True)
    assert sent.outcome == "done"
    assert ["taken over" in one for one in told] == [True]
    assert topics_at(second) == {f"revoke {HASH}", f"deny {KEY}", f"revoke {OTHER}", f"revoke {THIRD}"}
    assert (file_at(second).version.seal or 0) > max(unix_seconds(NOW), unix_seconds(NOW) + ahead)
    # It is known from then on.
    at(second, "unrevoke", OTHER, token, None)
    assert told == []


def test_a_machine_that_signed_nothing_goes_on_from_what_is_there_and_says_so(
    remote: ServedCommons, at: At, told: list[str], key_file: Path
) -> None:
    put(remote, MINE, file(MINE, [revocation(HASH), denial(KEY)]))
    token = remote.token()
    sent = at(remote, "revoke", HASH, token)
    assert sent.outcome == "already"
    on = f"{remote.url} has seal {unix_seconds(NOW)} with 2 records, which is gone on from"
    assert told == [f"nothing was signed here with this key before: {on}"]
    assert kept_by(key_file).read_bytes().endswith(file_at(remote).data)
    at(remote, "revoke", OTHER, token)
    assert told == []
    assert topics_at(remote) == {f"revoke {HASH}", f"deny {KEY}", f"revoke {OTHER}"}


def test_what_is_signed_is_kept_before_it_is_sent_and_the_next_act_sends_it(
    remote: ServedCommons, at: At, key_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[bytes] = []

    def gone(_commons: HttpCommons, one: OriginFile) -> Published:
        assert kept_by(key_file).read_bytes().endswith(one.data)
        seen.append(one.data)
        raise Unreachable("expected an answer, got none")

    token = remote.token()
    with monkeypatch.context() as within:
        within.setattr(HttpCommons, "put", gone)
        with pytest.raises(Unreachable) as caught:
            at(remote, "revoke", HASH, token)
    assert caught.value.hint == "what was signed is kept beside the key, and the next act sends it"
    assert at(remote, "revoke", HASH, token).outcome == "done"
    assert [file_at(remote).data] == seen
    with pytest.raises(CommonsRefused) as refused:
        at(remote, "deny", KEY, None)
    assert str(refused.value.hint).endswith("the next act sends it")
    at(remote, "revoke", OTHER, token)
    assert topics_at(remote) == {f"revoke {HASH}", f"revoke {OTHER}", f"deny {KEY}"}


def test_a_key_that_withdrew_for_good_says_nothing_more(remote: ServedCommons, at: At) -> None:
    token = remote.token()
    at(remote, "revoke", HASH, token)
    put(remote, MINE, file(MINE, [revocation(HASH)], seal=RULES.last_seal))
    for adopt in (False, True):
        with pytest.raises(KeyRetired):
            at(remote, "revoke", OTHER, token, adopt=adopt)


def kept_by(key_file: Path) -> Path:
    return key_file.with_name("operator.key.signed")


def test_what_is_kept_is_its_owners_alone_and_goes_by_the_file_that_links_lead_to(
    remote: ServedCommons, at: At, key_file: Path, tmp_path: Path
) -> None:
    link = tmp_path / "link.key"
    link.symlink_to(key_file)
    at(remote, "revoke", HASH, remote.token(), by=link)
    assert {found.name for found in key_file.parent.iterdir()} == {
        "operator.key",
        "operator.key.lock",
        "operator.key.signed",
    }
    assert {S_IMODE(found.stat().st_mode) for found in key_file.parent.iterdir()} == {0o600}
    assert not any(found.name.startswith("link.key.") for found in tmp_path.iterdir())


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "something else"),
        (b"[]\n", "something else"),
        (b"{\n" + file(MINE, []), "something else"),
        (b"[1]\n" + file(MINE, []), "something else"),
        (b'[[1, "x"]]\n' + file(MINE, [])[:-2] + b"\n", "something else"),
        (b"[]\n" + file(key(8), []), f"got a file of {key(8).public.hex}"),
    ],
    ids=["empty", "no file", "no list", "no versions", "damaged", "another's"],
)
def test_what_was_kept_and_is_damaged_is_told_and_left_alone(
    remote: ServedCommons, at: At, key_file: Path, content: bytes, said: str
) -> None:
    kept_by(key_file).write_bytes(content)
    with pytest.raises(RememError, match=said):
        at(remote, "revoke", HASH, remote.token())
    assert kept_by(key_file).read_bytes() == content
    assert httpx.get(f"{remote.url}/commons/{MINE.public.hex}.jsonl").status_code == 404


def test_where_nothing_can_be_kept_nothing_is_sent(
    remote: ServedCommons, at: At, key_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    token = remote.token()
    at(remote, "revoke", HASH, token)
    before = kept_by(key_file).read_bytes()
    with monkeypatch.context() as within:
        within.setattr("remem_server.operator.signed.os.fsync", full)
        with pytest.raises(RememError, match="no space left on device"):
            at(remote, "revoke", OTHER, token)
    assert kept_by(key_file).read_bytes() == before
    assert len(list(key_file.parent.iterdir())) == 3
    assert topics_at(remote) == {f"revoke {HASH}"}
    key_file.with_name("operator.key.lock").unlink()
    key_file.with_name("operator.key.lock").mkdir()
    with pytest.raises(RememError, match="is a directory"):
        at(remote, "revoke", OTHER, token)


def test_acts_at_once_on_one_machine_lose_nothing(remote: ServedCommons, second: ServedCommons, key_file: Path) -> None:
    places = [(remote, remote.token()), (second, second.token())]
    hashes = [f"{number:032x}" for number in range(8)]

    def revoke(number: int) -> str:
        commons, token = places[number % 2]
        return say_at(commons.url, token, key_file, "revoke", hashes[number], REASON, commons.clock, tell=print).outcome

    with ThreadPoolExecutor(4) as pool:
        assert set(pool.map(revoke, range(len(hashes)))) == {"done"}
    held = accept(kept_by(key_file).read_bytes().partition(b"\n")[2], now=NOW + timedelta(days=2))
    assert set(held.topics) == {f"revoke {one}" for one in hashes}


def test_a_copy_of_key_and_memory_goes_on_elsewhere(
    remote: ServedCommons, at: At, told: list[str], key_file: Path, tmp_path: Path
) -> None:
    token = remote.token()
    at(remote, "revoke", HASH, token)
    elsewhere = tmp_path / "desk"
    shutil.copytree(key_file.parent, elsewhere)
    assert at(remote, "deny", KEY, token, by=elsewhere / "operator.key").outcome == "done"
    assert told == []
    with pytest.raises(ForeignSeal):
        at(remote, "revoke", OTHER, token)
