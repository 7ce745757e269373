"""GET /commons/lessons: this commons' own reading, page by page and lesson by lesson."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import httpx
import pytest
from sqlalchemy import event

from remem.protocol import lesson_hash
from remem_server.database.engine import writing
from remem_server.files import tokens
from remem_server.lessons import tallies
from remem_server.lessons.policy import CountingPolicy, begin_count
from remem_server.opening.node import load_key
from remem_testkit.files import NOW, confirmation, denial, draft_file, file, key, lesson, revocation, sentence
from remem_testkit.server import HandClock, ServedCommons

Ask = Callable[..., httpx.Client]
Start = Callable[..., ServedCommons]
DAY, HOUR = timedelta(days=1), timedelta(hours=1)


def subject(number: int, kind: str = "error") -> str:
    return lesson_hash(kind, sentence(number))


class Publisher:
    """Publishes for many keys, each with a token of its own."""

    def __init__(self, commons: ServedCommons, ask: Ask) -> None:
        self.commons, self._ask, self._clients, self._times = commons, ask, dict[int, httpx.Client](), 0

    def say(self, number: int, *contents: dict[str, Any], principal: str | None = None, signer: Any = None) -> None:
        signer = signer or key(number)
        token = None if self.commons.settings.open else self.commons.token(principal=principal)
        client = self._clients.setdefault(number, self._ask(self.commons, token))
        self._times += 1
        data = file(signer, contents, at=NOW + timedelta(seconds=self._times))
        assert client.put(f"/commons/{signer.public.hex}.jsonl", content=data).is_success

    def read(self, lesson: str) -> dict[str, Any]:
        answer = self._ask(self.commons).get(f"/commons/lessons/{lesson}")
        assert answer.status_code == 200, answer.text
        return dict(answer.json())

    def list(self, **parameters: Any) -> tuple[list[dict[str, Any]], str | None]:
        answer = self._ask(self.commons).get("/commons/lessons", params=parameters)
        assert answer.status_code == 200, answer.text
        return answer.json()["lessons"], answer.json()["next"]


@pytest.fixture
def clock() -> HandClock:
    return HandClock(NOW + DAY)


@pytest.fixture
def here(start: Start, ask: Ask, clock: HandClock) -> Publisher:
    return Publisher(start(clock=clock), ask)


# --- one lesson ---


def test_a_lesson_says_its_text_its_state_and_every_record(here: Publisher) -> None:
    here.say(1, lesson(sentence(1)), principal="author")
    for number in (2, 3, 4):
        here.say(number, confirmation(subject(1), at=NOW - number * DAY), principal=f"p{number}")
    said = here.read(subject(1))
    evidence, said_whole = said.pop("evidence"), said.pop("complete")
    assert said == {
        "hash": subject(1),
        "kind": "error",
        "text": sentence(1),
        "state": "common",
        "cause": "confirmed",
        "why": "3 counted confirmations, the last on 2026-02-27",
        "confirmations": 3,
        "unadmitted": 0,
        "corroborations": 0,
        "last_confirmed": "2026-02-27T12:00:00Z",
    }
    assert said_whole
    assert len(evidence) == 4
    assert {
        "key": key(1).public.hex,
        "origin": key(1).public.origin,
        "type": "lesson",
        "at": "2026-03-01T12:00:00Z",
        "principal": "author",
        "reason": None,
        "counted": None,
        "denies": None,
    } in evidence
    counted = {item["key"]: (item["principal"], item["counted"]) for item in evidence if item["type"] == "confirm"}
    assert counted == {key(number).public.hex: (f"p{number}", True) for number in (2, 3, 4)}


def test_a_lesson_passes_through_its_states_as_time_passes(here: Publisher, clock: HandClock) -> None:
    here.say(1, lesson(sentence(1)))
    states = [here.read(subject(1))["state"]]
    for number in (2, 3, 4):
        here.say(number, confirmation(subject(1), at=NOW))
    for days in (0, 90, 91, 180, 181):
        clock.now = NOW + days * DAY
        states.append(here.read(subject(1))["state"])
    assert states == ["candidate", "common", "common", "fading", "fading", "removed"]
    here.say(2, confirmation(subject(1), at=clock.now))
    assert here.read(subject(1))["state"] == "common"


def test_keys_of_one_principal_count_once(here: Publisher) -> None:
    here.say(1, lesson(sentence(1)))
    for number in (2, 3, 4):
        here.say(number, confirmation(subject(1)), principal="one")
    said = here.read(subject(1))
    assert (said["confirmations"], said["state"]) == (1, "candidate")
    assert [item["counted"] for item in said["evidence"] if item["type"] == "confirm"] == [True] * 3


def test_nobody_confirms_what_its_principal_publishes(here: Publisher) -> None:
    here.say(1, lesson(sentence(1)), principal="author")
    here.say(2, confirmation(subject(1)), principal="author")
    said = here.read(subject(1))
    assert (said["confirmations"], said["unadmitted"]) == (0, 0)
    assert [item["counted"] for item in said["evidence"] if item["type"] == "confirm"] == [False]


def test_confirmations_of_keys_that_are_not_admitted_are_shown_apart(here: Publisher) -> None:
    here.say(1, lesson(sentence(1)))
    here.say(2, confirmation(subject(1)))
    for number in range(1, 3):
        _revoke(here.commons, number)
    said = here.read(subject(1))
    assert (said["confirmations"], said["unadmitted"]) == (0, 1)
    assert [(item["principal"], item["counted"]) for item in said["evidence"] if item["type"] == "confirm"] == [
        (None, False)
    ]


def test_a_confirmation_without_a_time_does_not_count(here: Publisher, ask: Ask) -> None:
    here.say(1, lesson(sentence(1)))
    data = draft_file(key(2), [{"confirm": subject(1)}])
    client = ask(here.commons, here.commons.token())
    assert client.put(f"/commons/{key(2).public.hex}.jsonl", content=data).status_code == 201
    said = here.read(subject(1))
    assert said["confirmations"] == 0
    assert [(item["at"], item["counted"]) for item in said["evidence"] if item["type"] == "confirm"] == [(None, False)]


def test_on_an_open_commons_every_key_counts(start: Start, ask: Ask) -> None:
    here = Publisher(start(open=True), ask)
    here.say(1, lesson(sentence(1)))
    for number in (2, 3, 4):
        here.say(number, confirmation(subject(1)))
    said = here.read(subject(1))
    assert (said["state"], said["confirmations"], said["unadmitted"]) == ("common", 3, 0)
    assert all(item["principal"] is None for item in said["evidence"])


def test_many_that_repeat_a_sentence_hide_nothing_that_speaks_against_it(
    start: Start, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = Publisher(start(operators=(key(9).public.hex,)), ask)
    for number in (1, 2, 3, 4):
        here.say(number, lesson(sentence(1)))
    here.say(5, confirmation(subject(1)))
    here.say(6, revocation(subject(1)))
    # One of a key that says nothing of this lesson is none of its evidence.
    here.say(9, denial(key(2).public.hex), denial(key(7).public.hex))
    types = ["revoke", "deny", "lesson", "lesson", "lesson", "lesson", "confirm"]
    assert [item["type"] for item in here.read(subject(1))["evidence"]] == types
    monkeypatch.setattr("remem_server.lessons.reading.EVIDENCE_MOST", 3)
    assert [item["type"] for item in here.read(subject(1))["evidence"]] == types[:3]


def test_a_withdrawn_lesson_keeps_no_text(here: Publisher) -> None:
    here.say(1, lesson(sentence(1)))
    here.say(1, revocation(subject(1), reason="it was the other flag"))
    said = here.read(subject(1))
    assert (said["state"], said["cause"], said["text"], said["kind"]) == ("revoked", "withdrawn", None, None)
    assert [(item["type"], item["reason"]) for item in said["evidence"]] == [("revoke", "it was the other flag")]


@pytest.mark.parametrize("who", ["node", "operator", "stranger"])
def test_a_revocation_binds_if_an_operator_of_this_commons_signs_it(start: Start, ask: Ask, who: str) -> None:
    commons = start(operators=(key(9).public.hex,))
    here = Publisher(commons, ask)
    signer = {"node": load_key(commons.settings.data), "operator": key(9), "stranger": key(8)}[who]
    here.say(1, lesson(sentence(1)))
    here.say(2, revocation(subject(1), reason="it is poisoned"), signer=signer)
    said = here.read(subject(1))
    expected = ("candidate", "unconfirmed") if who == "stranger" else ("revoked", "revoker")
    assert (said["state"], said["cause"]) == expected


def test_a_denial_takes_everything_of_a_key_out_and_is_shown(start: Start, ask: Ask) -> None:
    here = Publisher(start(operators=(key(9).public.hex,)), ask)
    here.say(1, lesson(sentence(1)))
    for number in (2, 3, 4):
        here.say(number, confirmation(subject(1)))
    assert here.read(subject(1))["state"] == "common"
    here.say(9, denial(key(2).public.hex, reason="it floods the commons"))
    said = here.read(subject(1))
    assert (said["state"], said["confirmations"]) == ("candidate", 2)
    denials = [item for item in said["evidence"] if item["type"] == "deny"]
    assert [(item["key"], item["denies"], item["reason"]) for item in denials] == [
        (key(9).public.hex, key(2).public.hex, "it floods the commons")
    ]
    assert {item["key"]: item["counted"] for item in said["evidence"] if item["type"] == "confirm"} == {
        key(number).public.hex: number != 2 for number in (2, 3, 4)
    }


def test_of_several_spellings_the_lowest_standing_key_is_shown(here: Publisher) -> None:
    low, high = sorted((1, 2), key=lambda number: key(number).public.hex)
    here.say(high, lesson(sentence(1).upper()))
    here.say(low, lesson(sentence(1)))
    said = here.read(subject(1))
    assert (said["text"], said["corroborations"]) == (sentence(1), 1)
    here.say(low, revocation(subject(1)))
    said = here.read(subject(1))
    assert (said["text"], said["corroborations"]) == (sentence(1).upper(), 0)


def test_what_nothing_is_held_about_is_404(here: Publisher, ask: Ask) -> None:
    here.say(1, lesson(sentence(1)), lesson("Delete the lock file before every build."))
    unheld = [subject(2), lesson_hash("error", "Delete the lock file before every build.")]
    for one in unheld:
        answer = ask(here.commons).get(f"/commons/lessons/{one}")
        assert (answer.status_code, answer.json()["code"]) == (404, "lesson_unknown")


@pytest.mark.parametrize("name", ["x", "0" * 31, "0" * 33, "F" * 32, "0" * 31 + "%0a"])
def test_a_hash_of_another_form_is_refused(here: Publisher, ask: Ask, name: str) -> None:
    answer = ask(here.commons).get(f"/commons/lessons/{name}")
    assert (answer.status_code, answer.json()["code"]) == (422, "parameter_form")
    assert answer.json()["detail"].startswith("hash: expected 32 lower-case hex digits, got ")


# --- many lessons ---


@pytest.fixture
def many(here: Publisher) -> Publisher:
    """Twelve lessons: eight errors, four corrections; the first two common, one fading, one revoked by its author."""
    for number in range(8):
        here.say(number, lesson(sentence(number)))
    here.say(8, *(lesson(sentence(number), kind="correction") for number in range(8, 12)))
    for number in range(20, 23):
        fading = confirmation(subject(2), at=NOW - 100 * DAY)
        here.say(number, confirmation(subject(0)), confirmation(subject(1)), fading)
    here.say(7, revocation(subject(7)))
    return here


def test_lessons_are_listed_by_state_confirmations_and_day_in_pages_that_miss_nothing(many: Publisher) -> None:
    whole, _next = many.list()
    listed = [one["hash"] for one in whole]
    common, fading = {subject(0), subject(1)}, {subject(2)}
    candidates = {subject(n) for n in range(3, 7)} | {subject(n, "correction") for n in range(8, 12)}
    assert (set(listed[:2]), set(listed[2:3]), set(listed[3:])) == (common, fading, candidates)
    for limit in (1, 2, 3, 5, 11, 12, 100):
        seen, cursor = [], None
        while True:
            page, cursor = many.list(limit=limit, **({} if cursor is None else {"cursor": cursor}))
            assert len(page) == limit or cursor is None
            seen += [one["hash"] for one in page]
            if cursor is None:
                break
        assert seen == listed


def test_only_lessons_of_which_a_publication_stands_are_listed(many: Publisher) -> None:
    listed, _next = many.list()
    assert subject(7) not in [one["hash"] for one in listed]
    assert many.read(subject(7))["state"] == "revoked"


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ({"state": "common"}, {subject(0), subject(1)}),
        ({"state": "fading"}, {subject(2)}),
        ({"state": "removed"}, set()),
        ({"kind": "correction"}, {subject(number, "correction") for number in range(8, 12)}),
        ({"kind": "error", "state": "candidate"}, {subject(number) for number in range(3, 7)}),
        ({"q": "MODULE 3   Fails"}, {subject(3)}),
        ({"q": "module 1"}, {subject(1)}),
        ({"q": "FAILS part", "kind": "correction", "limit": 1}, {subject(n, "correction") for n in range(8, 12)}),
        ({"q": "schema", "state": "common", "limit": 1}, {subject(0), subject(1)}),
        ({"q": "modul"}, set()),
        ({"q": "%"}, set()),
        ({"q": ""}, set()),
    ],
)
def test_lessons_are_found_by_state_kind_and_text(many: Publisher, wanted: dict[str, Any], expected: set[str]) -> None:
    found, cursor = many.list(**wanted)
    while cursor is not None:
        page, cursor = many.list(**wanted, cursor=cursor)
        found += page
    assert {one["hash"] for one in found} == expected
    assert len(found) == len(expected)


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("state=x", "state: expected 'candidate', 'common', 'fading', 'removed' or 'revoked', got 'x'"),
        ("kind=x", "kind: expected one of error, correction, surprise, got 'x'"),
        ("kind=habit", "kind: expected one of error, correction, surprise, got 'habit'"),
        ("kind=", "kind: expected one of error, correction, surprise, got ''"),
        ("cursor=x", "cursor: expected the `next` of a page, got 'x'"),
        ("cursor=", "cursor: expected the `next` of a page, got ''"),
        ("cursor=5a", "cursor: expected the `next` of a page, got '5a'"),
        ("cursor=08000000000000000", "cursor: expected the `next` of a page, got '08000000000000000'"),
        ("q=" + "+".join(f"w{n}" for n in range(33)), "q: expected at most 32 different words, got 33"),
        ("limit=0", "limit: expected at least 1, got '0'"),
        ("limit=501", "limit: expected at most 500, got '501'"),
        ("q=" + "x" * 1_001, f"q: expected at most 1000 characters, got '{'x' * 36}..."),
    ],
    ids=lambda value: value[:20],
)
def test_a_parameter_of_another_form_is_refused(here: Publisher, ask: Ask, query: str, said: str) -> None:
    answer = ask(here.commons).get(f"/commons/lessons?{query}")
    assert (answer.status_code, answer.json()["code"], answer.json()["detail"]) == (422, "parameter_form", said)


def test_of_much_evidence_the_first_is_shown_and_all_is_counted(
    here: Publisher, monkeypatch: pytest.MonkeyPatch
) -> None:
    here.say(1, lesson(sentence(1)))
    for number in (2, 3, 4, 5):
        here.say(number, confirmation(subject(1)))
    whole = here.read(subject(1))
    monkeypatch.setattr("remem_server.lessons.reading.EVIDENCE_MOST", 3)
    said = here.read(subject(1))
    assert (whole["complete"], said["complete"]) == (True, False)
    assert said["evidence"] == whole["evidence"][:3]
    assert said["confirmations"] == 4


def test_of_many_who_revoke_a_lesson_some_are_named(here: Publisher) -> None:
    for number in range(1, 8):
        here.say(number, revocation(subject(1)))
    said = here.read(subject(1))
    named = ", ".join(sorted(key(number).public.hex for number in range(1, 8))[n][:16] for n in range(5))
    assert said["why"] == f"no publication stands and {named} and 2 more revokes it"


# --- what the reader has ---


@pytest.mark.parametrize("url", ["/commons/lessons?limit=1", f"/commons/lessons/{subject(1)}"])
def test_a_reading_is_not_sent_to_who_has_it(here: Publisher, ask: Ask, clock: HandClock, url: str) -> None:
    here.say(1, lesson(sentence(1)), lesson(sentence(2)))
    reader, tags = ask(here.commons), list[str]()

    def anew() -> bool:
        """Tell whether the reading is sent to who has the last one; then the next is that one."""
        answer = reader.get(url, headers={"If-None-Match": tags[-1]} if tags else {})
        tags.append(answer.headers["ETag"])
        assert (answer.content == b"") == (answer.status_code == 304)
        return answer.status_code == 200

    assert anew()
    assert not anew()
    here.say(2, confirmation(subject(1)))
    assert anew()
    clock.now += 11 * HOUR
    assert not anew()
    clock.now += HOUR
    assert anew(), "what passes with time passes at midnight"
    _revoke(here.commons, 2)
    assert anew()
    assert not anew()
    assert len(set(tags)) == 4


def test_a_reading_by_another_policy_is_another(start: Start, ask: Ask) -> None:
    commons = start()
    here = Publisher(commons, ask)
    here.say(1, lesson(sentence(1)))
    tag = ask(commons).get("/commons/lessons").headers["ETag"]
    policy = CountingPolicy(open=True, revokers=frozenset(commons.commons.operators))
    tallies.bring_up(commons.engine, policy)
    answer = ask(commons).get("/commons/lessons", headers={"If-None-Match": tag})
    assert answer.status_code == 200
    with writing(commons.engine) as connection:
        begin_count(connection, policy)
    for condition in (answer.headers["ETag"], "*"):
        answer = ask(commons).get("/commons/lessons", headers={"If-None-Match": condition})
        assert (answer.status_code, "ETag" in answer.headers) == (200, False), "nobody knows what is being counted"


def test_a_reading_that_the_reader_has_costs_one_row(here: Publisher, ask: Ask) -> None:
    here.say(1, lesson(sentence(1)))
    tag = ask(here.commons).get("/commons/lessons").headers["ETag"]
    asked: list[str] = []
    reads = here.commons.commons.reads

    def hear(_connection: Any, _cursor: Any, statement: str, *_rest: Any) -> None:
        asked.append(statement)

    event.listen(reads, "before_cursor_execute", hear)
    assert ask(here.commons).get("/commons/lessons", headers={"If-None-Match": tag}).status_code == 304
    event.remove(reads, "before_cursor_execute", hear)
    assert len([one for one in asked if one.startswith("SELECT")]) == 1


def _revoke(commons: ServedCommons, number: int) -> None:
    with writing(commons.engine) as connection:
        assert tokens.revoke(connection, number, NOW)
