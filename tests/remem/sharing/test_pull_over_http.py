"""Pulling over HTTP: from a real commons, and from one that lies."""

import json
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from remem.commons import BadAnswer, CommonsRefused
from remem.errors import Unreachable
from remem.memory import holdings, places, trust
from remem.protocol import RULES, State, digest_of, lesson_hash
from remem.sharing.speak import confirm, distrust_key, revoke, trust_key
from remem_server.database.engine import writing
from remem_server.files import tokens
from remem_server.files.accept import accept_file
from remem_testkit.files import NOW, file, key, lesson, sentence
from remem_testkit.liars import Liar, answer, lying
from remem_testkit.memories import MACHINE, Memory, put_files
from remem_testkit.server import ServedCommons, serve
from remem_testkit.wire import relayed

TEXT = sentence(1)
HASH = lesson_hash("error", TEXT)
A, B, C = (key(number) for number in range(11, 14))
DATA = {signer.public.hex: file(signer, [lesson(TEXT)], seal=5) for signer in (A, B, C)}


@pytest.fixture
def reader(memory: Callable[[int], Memory]) -> Memory:
    return memory(9)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServedCommons]:
    with serve(tmp_path / "server") as made:
        yield made


@pytest.fixture
def liar() -> Iterator[Liar]:
    with lying() as made:
        list_files(made, *DATA.values())
        yield made


def list_files(liar: Liar, *files: bytes, **more: Any) -> None:
    """List files, and hand them out."""
    entries = []
    for data in files:
        first = json.loads(data.partition(b"\n")[0])
        entries.append(
            {"key": first["key"], "seal": first["seal"], "digest": digest_of(data), "principal": None, **more}
        )
        liar.say(f"/commons/{first['key']}.jsonl", data)
    liar.say("/commons/index", json.dumps(entries).encode(), ETag=f'"{len(files)}"')


# --- a real commons ---


def test_a_lesson_goes_through_a_commons_to_a_reader(memory: Callable[[int], Memory], server: ServedCommons) -> None:
    publisher, reader = memory(1), memory(2)
    (learned,) = publisher.learn(TEXT)
    report = publisher.share(f"{server.url} {server.token(principal='p1')}")
    assert [result.outcome for result in report.results] == ["new"]
    report_of_pull = reader.pull(server.url)
    assert [taken.key for taken in report_of_pull.taken] == [publisher.name]
    assert reader.held_files()[f"{publisher.name}.jsonl"] == report.data
    assert reader.lesson_state(learned) == "received active"
    assert {(one.key, one.commons, one.principal) for one in places.admissions(reader.db)} == {
        (publisher.name, server.url, "p1")
    }
    again = reader.pull(server.url)
    assert again.unchanged
    assert again.bytes == 0


def test_a_second_pull_with_nothing_new_asks_for_the_descriptor_and_gets_one_304(
    reader: Memory, server: ServedCommons
) -> None:
    for number in range(30):
        data = file(key(100 + number), [lesson(sentence(one)) for one in range(20)])
        name = key(100 + number).public.hex
        accept_file(server.engine, data, name=name, secret=server.token(), token_needed=True, now=NOW)
    with relayed(server.url) as relay:
        assert len(reader.pull(relay.url).taken) == 30
        assert (len(relay.requests), relay.statuses) == (32, [200] * 32)
        first = relay.bytes
        relay.forget()
        assert reader.pull(relay.url).unchanged
        descriptor, index = relay.requests
        assert descriptor == "GET /.well-known/remem"
        assert index.startswith("GET /commons/index")
        assert relay.statuses == [200, 304]
        assert relay.bytes < 3_000 < first / 30


def test_a_key_whose_token_is_revoked_is_admitted_no_more(
    memory: Callable[[int], Memory], server: ServedCommons
) -> None:
    publisher, reader = memory(1), memory(2)
    publisher.learn(TEXT)
    publisher.share(f"{server.url} {server.token()}")
    reader.pull(server.url)
    assert len(places.admissions(reader.db)) == 1
    with writing(server.engine) as connection:
        (token,) = tokens.list_all(connection)
        tokens.revoke(connection, token.id, NOW)
    reader.pull(server.url)
    assert places.admissions(reader.db) == frozenset()


def test_the_keys_of_a_commons_are_pinned_at_first_contact(
    memory: Callable[[int], Memory], server: ServedCommons
) -> None:
    reader = memory(1)
    report = reader.pull(server.url)
    (pinned,) = report.pinned
    assert trust.trusted(reader.db, "revoker") == {pinned}
    assert reader.pull(server.url).pinned == ()
    distrust_key(reader.home, reader.db, pinned[:12], now=NOW)
    assert reader.pull(server.url).pinned == ()
    assert trust.trusted(reader.db, "revoker") == frozenset()
    trust_key(reader.home, reader.db, pinned, "revoker", now=NOW)
    assert trust.trusted(reader.db, "revoker") == {pinned}


def test_three_confirmers_that_a_commons_admitted_make_a_lesson_common(
    memory: Callable[[int], Memory], server: ServedCommons
) -> None:
    publisher, reader = memory(1), memory(9)
    (learned,) = publisher.learn(TEXT)
    publisher.share(f"{server.url} {server.token(principal='publisher')}")
    for number, principal in ((2, "p2"), (3, "p2"), (4, "p4"), (5, "p5")):
        confirmer = memory(number)
        confirmer.pull(server.url)
        confirmer.later(hours=1)
        confirm(confirmer.home, confirmer.db, learned, episode=confirmer.meet(TEXT), now=confirmer.now)
        assert confirmer.share(f"{server.url} {server.token(principal=principal)}").results[0].ok
        reader.pull(server.url)
        expected = State.COMMON if number == 5 else State.CANDIDATE
        assert reader.reading(learned).state is expected
    assert reader.reading(learned).confirmations == 3


def test_the_operator_of_a_commons_stops_a_poisoned_lesson_for_whoever_pulls_there(
    memory: Callable[[int], Memory], tmp_path: Path
) -> None:
    publisher, operator, reader, sovereign = memory(1), memory(2), memory(3), memory(4)
    with serve(tmp_path / "server", operators=(operator.name,)) as server:
        (learned,) = publisher.learn(TEXT)
        publisher.share(f"{server.url} {server.token()}")
        for one in (reader, sovereign, operator):
            one.pull(server.url)
        distrust_key(sovereign.home, sovereign.db, operator.name, now=NOW)
        revoke(operator.db, learned, reason="it names a cause that is none", machine=MACHINE, now=NOW)
        operator.share(f"{server.url} {server.token()}")
        (stopped,) = reader.pull(server.url).stopped
        assert (stopped.hash, stopped.why) == (learned, "revoker")
        assert sovereign.pull(server.url).stopped == ()
        assert reader.lesson_state(learned) == "received dropped"
        assert sovereign.lesson_state(learned) == "received active"


def test_a_refusal_is_reported_target_by_target(memory: Callable[[int], Memory], server: ServedCommons) -> None:
    one = memory(1)
    one.learn(TEXT)
    (result,) = one.share(server.url).results
    assert (result.outcome, result.code) == ("refused", "token_missing")


# --- a commons that lies ---


def descriptor(*keys: str) -> bytes:
    return json.dumps({"protocol": [1], "key": keys[0], "operators": list(keys)}).encode()


def test_a_key_that_comes_later_is_reported_and_not_trusted(reader: Memory, liar: Liar) -> None:
    liar.say("/.well-known/remem", descriptor(A.public.hex))
    assert reader.pull(liar.url).pinned == (A.public.hex,)
    liar.say("/.well-known/remem", descriptor(B.public.hex, A.public.hex))
    for _time in range(2):
        report = reader.pull(liar.url)
        assert [notice.code for notice in report.notices] == ["changed_key"]
        assert B.public.hex in report.notices[0].text
    assert trust.trusted(reader.db, "revoker") == {A.public.hex}
    trust_key(reader.home, reader.db, B.public.hex, "revoker", now=NOW)
    assert reader.pull(liar.url).notices == ()


REFUSALS = {
    "that wants a token": answer(b'{"code":"token_missing"}', "401 Unauthorized"),
    "that is broken": answer(b"", "500 Internal Server Error"),
    "that answers garbage": answer(b"<html>no</html>"),
    "that has no index": answer(b"", "404 Not Found"),
}


@pytest.mark.parametrize("refusal", REFUSALS.values(), ids=REFUSALS.keys())
def test_a_commons_is_not_met_before_it_has_listed_anything(reader: Memory, liar: Liar, refusal: bytes) -> None:
    liar.say("/.well-known/remem", descriptor(A.public.hex))
    honest, liar.answers["/commons/index"] = liar.answers["/commons/index"], refusal
    with pytest.raises((BadAnswer, CommonsRefused, Unreachable)):
        reader.pull(liar.url)
    assert places.places(reader.db) == ()
    assert trust.everything(reader.db) == ()
    liar.answers["/commons/index"] = honest
    assert reader.pull(liar.url).pinned == (A.public.hex,)


def test_keys_that_a_pull_without_an_end_pinned_are_told_by_the_next(
    reader: Memory, liar: Liar, monkeypatch: pytest.MonkeyPatch
) -> None:
    liar.say("/.well-known/remem", descriptor(A.public.hex, B.public.hex))

    def die(*_arguments: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("remem.sharing.intake.Intake.add", die)
        with pytest.raises(KeyboardInterrupt):
            reader.pull(liar.url)
    assert trust.trusted(reader.db, "revoker") == {A.public.hex, B.public.hex}
    distrust_key(reader.home, reader.db, B.public.hex, now=NOW)
    assert reader.pull(liar.url).pinned == (A.public.hex,)
    assert reader.pull(liar.url).pinned == ()


def test_what_the_owner_declined_is_not_pinned_by_another_commons(reader: Memory, liar: Liar) -> None:
    trust_key(reader.home, reader.db, A.public.hex, "revoker", now=NOW)
    distrust_key(reader.home, reader.db, A.public.hex, now=NOW)
    liar.say("/.well-known/remem", descriptor(A.public.hex))
    assert reader.pull(liar.url).pinned == ()


OTHER = file(A, [lesson(sentence(2))], seal=4)
LONG = answer(b"x" * (RULES.file_bytes + 1))

LIES = {
    "a file of another key": (answer(DATA[B.public.hex]), "name_mismatch"),
    "a file that is cut short": (answer(DATA[A.public.hex][:-40]), "line_end"),
    "an answer that is cut short": (answer(DATA[A.public.hex])[:-40], "answer_form"),
    "a file that is too long": (LONG, "answer_size"),
    "a redirect": (answer(b"", "302 Found", {"Location": "/commons/index"}), "redirect"),
    "no file": (answer(b"", "404 Not Found"), "file_unknown"),
    "a file that is gone": (answer(b"", "410 Gone"), "http_410"),
    "an older file than is listed": (answer(OTHER), "older_file"),
}


@pytest.mark.parametrize(("lie", "code"), LIES.values(), ids=LIES.keys())
def test_a_lie_about_one_file_costs_that_file_and_is_asked_for_again(
    reader: Memory, liar: Liar, lie: bytes, code: str
) -> None:
    honest = liar.answers[f"/commons/{A.public.hex}.jsonl"]
    liar.answers[f"/commons/{A.public.hex}.jsonl"] = lie
    report = reader.pull(liar.url)
    assert [(one.name, one.code) for one in report.refused] == [(A.public.hex, code)]
    assert {taken.key for taken in report.taken} >= {B.public.hex, C.public.hex}
    assert not report.complete
    assert reader.refused() == {}
    liar.answers[f"/commons/{A.public.hex}.jsonl"] = honest
    report = reader.pull(liar.url)
    assert [taken.key for taken in report.taken] == [A.public.hex]
    assert report.complete
    assert reader.held_files() == {f"{name}.jsonl": data for name, data in DATA.items()}


def test_a_file_that_its_host_blocks_is_a_fact_and_not_asked_for_again(reader: Memory, liar: Liar) -> None:
    path = f"/commons/{A.public.hex}.jsonl"
    liar.say(path, b'{"code":"blocked","detail":"it is spam"}', "410 Gone")
    report = reader.pull(liar.url)
    assert [(one.name, one.code) for one in report.refused] == [(A.public.hex, "blocked")]
    assert "it is spam" in report.refused[0].detail
    assert {taken.key for taken in report.taken} == {B.public.hex, C.public.hex}
    assert report.complete
    # No other place is kept from giving it.
    assert reader.refused() == {}


def test_a_digest_that_is_listed_wrong_keeps_no_good_file_out(reader: Memory, liar: Liar) -> None:
    data = DATA[A.public.hex]
    entry = {"key": A.public.hex, "seal": 5, "digest": "f" * 64, "principal": None}
    liar.say("/commons/index", json.dumps([entry]).encode(), ETag='"x"')
    report = reader.pull(liar.url)
    assert [taken.key for taken in report.taken] == [A.public.hex]
    assert not report.complete
    assert reader.held_files() == {f"{A.public.hex}.jsonl": data}


def test_nobody_can_have_a_good_version_remembered_as_refused(reader: Memory, liar: Liar) -> None:
    path = f"/commons/{A.public.hex}.jsonl"
    liar.say(path, DATA[A.public.hex].replace(b"a", b"b"))
    assert A.public.hex in {one.name for one in reader.pull(liar.url).refused}
    assert reader.refused() == {}
    with lying() as honest:
        list_files(honest, DATA[A.public.hex])
        assert [taken.key for taken in reader.pull(honest.url).taken] == [A.public.hex]


def test_a_commons_that_goes_away_in_between_keeps_what_it_gave(
    reader: Memory, liar: Liar, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = f"/commons/{C.public.hex}.jsonl"
    honest = liar.answers[path]
    liar.answers[path] = b""
    get = "remem.commons.http.HttpCommons.get"

    def get_or_fail(self: Any, name: str, _digest: str | None = None) -> bytes | None:
        if name == C.public.hex:
            raise Unreachable("expected an answer, got none")
        return DATA[name]

    with monkeypatch.context() as patch:
        patch.setattr(get, get_or_fail)
        report = reader.pull(liar.url)
    assert report.interrupted == "expected an answer, got none"
    assert {taken.key for taken in report.taken} == {A.public.hex, B.public.hex}
    liar.answers[path] = honest
    assert [taken.key for taken in reader.pull(liar.url).taken] == [C.public.hex]


def test_a_commons_that_lists_what_it_does_not_have_is_left_after_a_while(reader: Memory, liar: Liar) -> None:
    entries = [{"key": f"{number:064x}", "seal": 1, "digest": f"{number:064x}"} for number in range(2_000)]
    liar.say("/commons/index", json.dumps(entries).encode())
    report = reader.pull(liar.url)
    assert report.interrupted is not None
    assert len(report.refused) == 100
    assert len(liar.asked) < 200


def test_a_commons_of_nothing_but_bad_files_is_left_after_a_while(reader: Memory, liar: Liar) -> None:
    bad = [file(key(200 + number), [lesson(TEXT)], seal=5).replace(b"seen", b"sEEn") for number in range(150)]
    list_files(liar, *bad)
    report = reader.pull(liar.url)
    assert report.interrupted is not None
    assert len(report.refused) == len(reader.refused()) == 100
    report = reader.pull(liar.url)
    assert report.complete
    assert len(reader.refused()) == 150


def test_a_commons_of_nothing_but_files_of_another_day_is_left_after_a_while(reader: Memory, liar: Liar) -> None:
    late = lesson(TEXT, at=NOW + timedelta(days=2))
    list_files(liar, *(file(key(200 + number), [late], seal=5) for number in range(150)))
    report = reader.pull(liar.url)
    assert report.interrupted is not None
    assert len(report.deferred) == 100


def test_bad_files_in_a_folder_do_not_hide_the_honest_ones(reader: Memory, tmp_path: Path) -> None:
    folder = tmp_path / "shared"
    folder.mkdir()
    signers = sorted((key(200 + number) for number in range(121)), key=lambda one: one.public.hex)
    files = [file(signer, [lesson(TEXT)], seal=5) for signer in signers]
    put_files(folder, files)
    for signer, data in zip(signers[:-1], files, strict=False):
        (folder / f"{signer.public.hex}.jsonl").write_bytes(data.replace(b"seen", b"sEEn"))
    report = reader.pull(folder)
    assert report.interrupted is None
    assert [taken.key for taken in report.taken] == [signers[-1].public.hex]
    assert len(report.refused) == 120


def test_a_strange_etag_does_not_end_the_next_pull(reader: Memory, liar: Liar) -> None:
    index = liar.answers["/commons/index"]
    assert isinstance(index, bytes)
    liar.answers["/commons/index"] = index.replace(b'"3"', b'"\xe9"')
    assert len(reader.pull(liar.url).taken) == 3
    assert reader.pull(liar.url).complete


def test_garbage_for_an_index_changes_nothing(reader: Memory, liar: Liar) -> None:
    reader.pull(liar.url)
    before = "\n".join(reader.db.iterdump())
    liar.say("/commons/index", b"<html>no</html>")
    with pytest.raises(BadAnswer):
        reader.pull(liar.url)
    assert "\n".join(reader.db.iterdump()) == before


def test_garbage_in_an_index_is_reported_beside_what_is_taken(reader: Memory, liar: Liar) -> None:
    good = json.loads(liar.answers["/commons/index"].partition(b"\r\n\r\n")[2])  # type: ignore[union-attr]
    liar.say("/commons/index", json.dumps([None, *good, {"key": "\x1b[2J"}]).encode())
    report = reader.pull(liar.url)
    assert [one.code for one in report.refused] == ["index_entry"] * 2
    assert len(report.taken) == 3


def test_a_commons_names_principals_for_itself_alone(reader: Memory, liar: Liar) -> None:
    list_files(liar, DATA[A.public.hex], principal="p1")
    reader.pull(liar.url)
    with lying() as other:
        list_files(other, DATA[A.public.hex], principal="p2")
        reader.pull(other.url)
        assert {(one.commons, one.principal) for one in places.admissions(reader.db)} == {
            (liar.url, "p1"),
            (other.url, "p2"),
        }
        list_files(other, DATA[B.public.hex], DATA[C.public.hex], principal="p2")
        reader.pull(other.url)
    assert {(one.key, one.commons) for one in places.admissions(reader.db)} == {
        (A.public.hex, liar.url),
        (B.public.hex, other.url),
        (C.public.hex, other.url),
    }


def test_admissions_of_the_own_key_are_its_own_affair(reader: Memory, liar: Liar) -> None:
    data = file(reader.key, [lesson(TEXT)], seal=5)
    list_files(liar, data, principal="someone")
    report = reader.pull(liar.url)
    assert places.admissions(reader.db) == frozenset()
    assert report.taken == ()
    assert holdings.holding(reader.db, reader.name) is None
