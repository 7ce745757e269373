"""The operator's words: how they get into the node's file and out of it."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import httpx
import pytest
from sqlalchemy import Executable, delete, insert, update
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import DatabaseError

from remem.protocol import RULES, OriginFile, SigningKey, Verdict, accept, lesson_hash, newest
from remem.protocol.canonical import JSON
from remem.protocol.errors import UnsealedLine
from remem.protocol.times import unix_seconds
from remem_server.database import tables
from remem_server.database.engine import is_postgres, writing
from remem_server.errors import Internal, KeyRetired, OlderFile, OperatorFileFull, OperatorKey, ParameterForm
from remem_server.files import journal, store
from remem_server.files.accept import accept_file
from remem_server.operator import acts, own_file
from remem_server.operator.own_file import ROOM_FOR_DENIALS, Act, Word, resealed, revised, united
from remem_server.upkeep.audit import audit
from remem_testkit.files import NOW, confirmation, denial, draft_file, file, key, lesson, revocation, sentence
from remem_testkit.server import HandClock, ServedCommons

Start = Callable[..., ServedCommons]

WHO = "command by the test"
HASH, OTHER = lesson_hash("error", sentence(1)), lesson_hash("error", sentence(2))
KEY = key(1).public.hex
REASON = "It is not so."


def say(commons: ServedCommons, act: Act, subject: str, reason: str | None = REASON) -> acts.Outcome:
    done = acts.say(commons.commons, WHO, act, subject, reason)
    assert_sound(commons)
    return done


def assert_sound(commons: ServedCommons) -> None:
    """Audit everything that is stored."""
    assert list(audit(commons.engine, commons.clock(), node=commons.commons.key.public.hex)) == []


def own(commons: ServedCommons) -> OriginFile | None:
    """Read the node's file, and accept it as a reader does."""
    name = commons.commons.key.public.hex
    answer = httpx.get(f"{commons.url}/commons/{name}.jsonl")
    return None if answer.status_code == 404 else accept(answer.content, now=NOW + timedelta(days=2))


def topics(commons: ServedCommons) -> tuple[str, ...]:
    found = own(commons)
    return () if found is None else found.topics


def written(commons: ServedCommons) -> list[tuple[str, str, str, str | None]]:
    with commons.engine.connect() as connection:
        found = journal.read_after(connection, 0, 100)
    assert [row.id for row in found] == sorted({row.id for row in found})
    return [(row.who, row.act, row.subject, row.reason) for row in found if row.act != "token create"]


def put(commons: ServedCommons, signer: SigningKey, data: bytes) -> None:
    secret = commons.token()
    accept_file(commons.engine, data, name=signer.public.hex, secret=secret, token_needed=True, now=commons.clock())


# --- the file, by itself ---

MINE = key(7)


def words_of(data: bytes, word: Word, now: timedelta = timedelta()) -> OriginFile | None:
    return revised(MINE, accept(data, now=own_file.END_OF_TIME), word, NOW + now)


def test_every_other_line_stays_as_it_is_to_the_byte() -> None:
    held = accept(file(MINE, [revocation(OTHER), {"vote": "for ever"}, denial(KEY), confirmation(HASH)]), now=NOW)
    for word in (Word("revoke", HASH, said=True, reason=REASON), Word("deny", KEY, said=False)):
        found = revised(MINE, held, word, NOW)
        assert found is not None
        stays = [line for topic, line in zip(held.topics, held.lines, strict=True) if topic != word.topic]
        assert list(found.lines[: len(stays)]) == stays
        assert len(found.lines) == len(stays) + word.said


def test_a_revocation_takes_the_place_of_its_lesson() -> None:
    found = words_of(file(MINE, [lesson(sentence(1)), lesson(sentence(2))]), Word("revoke", HASH, said=True))
    assert found is not None
    assert found.topics == (f"lesson {OTHER}", f"revoke {HASH}")
    assert sentence(1).encode() not in found.data


@pytest.mark.parametrize(
    ("word", "contents"),
    [
        (Word("revoke", HASH, said=True), [revocation(HASH)]),
        (Word("revoke", HASH, said=False), [revocation(OTHER)]),
        (Word("deny", KEY, said=True), [denial(KEY)]),
        (Word("deny", KEY, said=False), []),
    ],
    ids=["revoked", "not revoked", "denied", "not denied"],
)
def test_a_file_that_says_so_already_has_no_next(word: Word, contents: list[dict[str, object]]) -> None:
    assert words_of(file(MINE, contents), word) is None  # type: ignore[arg-type]  # of the protocol's JSON


@pytest.mark.parametrize(
    ("standing", "number"),
    [(-10, 0), (0, 1), (86_399, 86_400), (86_400, 86_401)],
    ids=["long ago", "this second", "a day ahead", "more than a day ahead"],
)
def test_the_new_seal_is_above_the_one_that_stands(standing: int, number: int) -> None:
    now = unix_seconds(NOW)
    held = file(MINE, [], seal=now + standing, at=NOW + timedelta(seconds=max(0, standing - 86_399)))
    found = words_of(held, Word("revoke", HASH, said=True))
    assert found is not None
    assert found.version.seal == now + number


def test_a_full_file_refuses_and_leaves_nothing_out() -> None:
    hashes = [f"{number:032x}" for number in range(564)]
    long = file(MINE, [revocation(one, reason="x" * 120) for one in hashes])
    assert RULES.file_bytes - 600 < len(long)
    with pytest.raises(OperatorFileFull, match="bytes"):
        words_of(long, Word("revoke", HASH, said=True, reason="x" * 120))
    assert words_of(long, Word("revoke", hashes[0], said=False)) is not None


def test_the_last_room_of_a_file_is_for_denials() -> None:
    near = file(MINE, [revocation(f"{number:032x}", reason="x" * 120) for number in range(530)])
    assert RULES.file_bytes - ROOM_FOR_DENIALS < len(near) < RULES.file_bytes - 1_000
    with pytest.raises(OperatorFileFull, match="are for denials"):
        words_of(near, Word("revoke", HASH, said=True, reason=REASON))
    assert words_of(near, Word("deny", KEY, said=True, reason=REASON)) is not None
    assert words_of(near, Word("revoke", f"{0:032x}", said=False)) is not None


def test_a_key_that_withdrew_for_good_says_nothing() -> None:
    with pytest.raises(KeyRetired):
        words_of(file(MINE, [revocation(OTHER)], seal=RULES.last_seal), Word("revoke", HASH, said=True))


def test_a_file_of_draft_0_is_not_followed() -> None:
    with pytest.raises(UnsealedLine):
        words_of(draft_file(MINE, [revocation(OTHER)]), Word("revoke", HASH, said=True))


def test_of_two_files_one_says_all_and_no_word_is_lost() -> None:
    ours = accept(file(MINE, [revocation(HASH), {"vote": "for ever"}, lesson(sentence(2))], seal=5), now=NOW)
    more: list[dict[str, JSON]] = [
        denial(KEY),
        {"vote": "for ever"},
        {"vote": "never"},
        lesson(sentence(1)),
        revocation(OTHER),
    ]
    other = accept(file(MINE, more, seal=9), now=NOW)
    both = united(MINE, ours, other, NOW, seals=(unix_seconds(NOW) + 5,))
    assert sorted(both.topics) == sorted(["", "", f"deny {KEY}", f"revoke {HASH}", f"revoke {OTHER}"])
    assert set(both.lines) < {*ours.lines, *other.lines}
    assert both.version.seal == unix_seconds(NOW) + 6
    assert accept(both.data, now=NOW).lines == both.lines


def test_a_newer_file_that_leaves_nothing_out_is_taken_as_it_is() -> None:
    ours, other = (accept(file(MINE, [revocation(HASH)], seal=seal), now=NOW) for seal in (5, 9))
    assert united(MINE, ours, other, NOW) is other
    assert united(MINE, other, ours, NOW).version.seal == unix_seconds(NOW)


def test_two_files_that_have_no_room_together_are_refused() -> None:
    first, second = (
        accept(
            file(MINE, [revocation(f"{number:032x}", reason="x" * 120) for number in range(start, start + 400)]),
            now=NOW,
        )
        for start in (0, 400)
    )
    with pytest.raises(OperatorFileFull, match="room for 800 records"):
        united(MINE, first, second, NOW)


# --- in the commons ---


def test_an_act_is_a_sealed_file_of_the_node_and_a_row_of_the_journal(commons: ServedCommons) -> None:
    put(commons, key(1), file(key(1), [lesson(sentence(1))]))
    assert say(commons, "revoke", HASH) == acts.Outcome("revoke", HASH, "done", known=True, file_percent=0)
    assert say(commons, "deny", KEY, "It is a campaign.") == acts.Outcome(
        "deny", KEY, "done", known=True, file_percent=0
    )
    assert topics(commons) == (f"revoke {HASH}", f"deny {KEY}")
    assert say(commons, "unrevoke", HASH, None).outcome == "done"
    assert say(commons, "undeny", KEY, "It was another.").outcome == "done"
    found = own(commons)
    assert found is not None
    assert (found.topics, found.version.seal) == ((), unix_seconds(NOW) + 3)
    assert written(commons) == [
        (WHO, "revoke", HASH, REASON),
        (WHO, "deny", KEY, "It is a campaign."),
        (WHO, "unrevoke", HASH, None),
        (WHO, "undeny", KEY, "It was another."),
    ]


@pytest.mark.parametrize("act", ["revoke", "unrevoke", "deny", "undeny"])
def test_what_is_so_already_changes_and_writes_down_nothing(commons: ServedCommons, act: Act) -> None:
    subject = HASH if "revoke" in act else KEY
    if not act.startswith("un"):
        say(commons, act, subject)
    before, rows = own(commons), written(commons)
    assert say(commons, act, subject, "For another reason.").outcome == "already"
    assert (own(commons), written(commons)) == (before, rows)


def test_a_subject_that_nobody_speaks_of_is_said_to_be_unknown(commons: ServedCommons) -> None:
    assert not say(commons, "revoke", HASH).known
    # Its own word is not enough to make it known.
    assert not say(commons, "unrevoke", HASH).known
    assert not say(commons, "deny", KEY).known


@pytest.mark.any_database
@pytest.mark.parametrize(
    ("act", "subject", "reason", "said"),
    [
        ("revoke", HASH[:-1], REASON, "hash: expected 32 lower-case hex digits"),
        ("revoke", HASH.upper(), REASON, "hash: expected"),
        ("unrevoke", KEY, None, "hash: expected"),
        ("deny", HASH, REASON, "key: expected"),
        ("deny", "0" * 64, REASON, "key: expected"),
        ("revoke", HASH, "", "reason: expected"),
        ("revoke", HASH, "a\tb", "reason: expected"),
        ("deny", KEY, "x" * 1_001, "reason: expected"),
        ("deny", KEY, "é" * 501, "reason: expected at most 1000 bytes, got 1002"),
    ],
)
def test_an_act_of_another_form_is_refused(
    commons: ServedCommons, act: Act, subject: str, reason: str | None, said: str
) -> None:
    with pytest.raises(ParameterForm, match=said):
        say(commons, act, subject, reason)
    assert (own(commons), written(commons)) == (None, [])


def test_the_operators_keys_are_not_denied(start: Start) -> None:
    commons = start(operators=(key(8).public.hex,))
    for name in (commons.commons.key.public.hex, key(8).public.hex):
        with pytest.raises(OperatorKey, match=name):
            say(commons, "deny", name)
        assert say(commons, "undeny", name).outcome == "already"


def test_acts_at_once_lose_nothing(commons: ServedCommons) -> None:
    hashes = [f"{number:032x}" for number in range(12)]
    with ThreadPoolExecutor(6) as pool:
        done = list(pool.map(lambda one: acts.say(commons.commons, WHO, "revoke", one, REASON), hashes))
    assert_sound(commons)
    assert {one.outcome for one in done} == {"done"}
    assert set(topics(commons)) == {f"revoke {one}" for one in hashes}
    assert len(written(commons)) == len(hashes)


def test_a_clock_that_was_days_ahead_is_said_to_have_been(start: Start) -> None:
    clock = HandClock(NOW + timedelta(days=30))
    commons = start(clock=clock)
    say(commons, "revoke", HASH)
    clock.now = NOW
    with pytest.raises(OlderFile, match="days ahead"):
        say(commons, "revoke", OTHER)
    assert len(written(commons)) == 1


def test_a_file_that_is_sealed_anew_is_above_what_any_burst_reached() -> None:
    # A database that was set back has the first file; readers have the last of the acts that came behind it.
    set_back = words_of(file(MINE, [], seal=unix_seconds(NOW), at=NOW), Word("revoke", HASH, said=True))
    burst = set_back
    for number in range(300):
        assert burst is not None
        burst = words_of(burst.data, Word("deny", KEY, number % 2 == 0, REASON))
    assert set_back is not None
    assert burst is not None
    assert burst.version.seal == unix_seconds(NOW) + 301
    after = resealed(MINE, set_back, NOW + timedelta(seconds=1))
    assert after is not None
    assert after.lines == set_back.lines
    assert newest(burst.version, after.version) is Verdict.NEWER
    assert accept(after.data, now=NOW).version == after.version


def test_a_file_that_is_sealed_anew_is_followed_by_every_further_act(commons: ServedCommons) -> None:
    say(commons, "revoke", HASH)
    for _ in range(2):
        before = own(commons)
        assert acts.reseal(commons.commons, WHO)
        assert_sound(commons)
        after = own(commons)
        assert before is not None
        assert after is not None
        assert after.lines == before.lines
        assert newest(before.version, after.version) is Verdict.NEWER
        assert written(commons)[-1] == (WHO, "reseal", after.key.hex, None)
        assert say(commons, "deny", KEY).outcome == "done"
        assert say(commons, "undeny", KEY).outcome == "done"


def test_a_node_that_said_nothing_has_no_file_to_seal_anew(commons: ServedCommons) -> None:
    assert not acts.reseal(commons.commons, WHO)
    assert written(commons) == []
    assert own(commons) is None


@pytest.mark.parametrize(
    "seal",
    [None, RULES.last_seal, unix_seconds(NOW) + 30 * 86_400],
    ids=["of draft 0", "the last of its key", "days ahead of the clock"],
)
def test_a_file_that_cannot_be_followed_is_not_sealed_anew(seal: int | None) -> None:
    fields = [revocation(OTHER)]
    held = draft_file(MINE, fields) if seal is None else file(MINE, fields, seal=seal, at=NOW + timedelta(days=30))
    assert resealed(MINE, accept(held, now=own_file.END_OF_TIME), NOW) is None


@pytest.mark.parametrize(
    ("size", "records", "percent"),
    [(0, 0, 0), (RULES.file_bytes, 1, 100), (1, RULES.file_records, 100), (RULES.file_bytes // 2, 0, 50)],
)
def test_how_full_a_file_is_goes_by_what_is_nearer_to_its_end(size: int, records: int, percent: int) -> None:
    assert own_file.percent_of(size, records) == percent


def test_a_damaged_file_of_the_node_is_told_and_left_alone(commons: ServedCommons) -> None:
    say(commons, "revoke", HASH)
    node = commons.commons.key.public.hex
    with writing(commons.engine) as connection:
        data = store.data_of(connection, node).replace(b'"reason":"It', b'"reason":"Si')
        connection.execute(update(tables.contents).where(tables.contents.c.key == node).values(data=data))
    with pytest.raises(Internal, match="damaged"):
        say(commons, "revoke", OTHER)
    assert len(written(commons)) == 1


_FORGED = {"at": NOW, "who": "nobody", "act": "deny", "subject": KEY}


@pytest.mark.parametrize(
    "change",
    [
        update(tables.acts).values(who="nobody"),
        delete(tables.acts),
        insert(tables.acts).values(id=-5, **_FORGED),
        insert(tables.acts).values(id=-1, **_FORGED),
        insert(tables.acts).values(id=1, **_FORGED),
        sqlite.insert(tables.acts).prefix_with("OR REPLACE", dialect="sqlite").values(id=1, **_FORGED),
        postgresql.insert(tables.acts)
        .values(id=1, **_FORGED)
        .on_conflict_do_update(index_elements=["id"], set_={"who": "nobody"}),
    ],
    ids=["changed", "deleted", "before", "before by -1", "again", "replaced", "on conflict"],
)
def test_the_database_itself_keeps_the_journal(commons: ServedCommons, change: Executable) -> None:
    if isinstance(change, postgresql.Insert) and not is_postgres(commons.engine):
        pytest.skip("of the other database")
    say(commons, "revoke", HASH)
    with pytest.raises(DatabaseError, match="what was done is never"), writing(commons.engine) as connection:
        connection.execute(change)
    assert written(commons) == [(WHO, "revoke", HASH, REASON)]
