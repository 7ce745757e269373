"""The state of a lesson: each rule of it by a named case, and each row of the table of states and events."""

import itertools
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

import pytest

from remem.protocol.evidence import Admission, Evidence, Policy, Statement, statements
from remem.protocol.file import accept
from remem.protocol.state import TRANSITIONS, Cause, Reading, State, StateEvent, event_between, lesson_state

from . import forge
from .forge import LAST_SEAL, NOW, without
from .worlds import ELSE, HASH, SPELLINGS, TICK, W

TEN: Final = frozenset("abcdefghij")
FOLLOWED: Final = Policy(followed=TEN)


def lesson(key: str, spelling: int = 0) -> Statement:
    return Statement(key, "lesson", HASH, NOW, "error", SPELLINGS[spelling])


def confirm(keys: str, ago: timedelta | None = timedelta(days=1)) -> list[Statement]:
    return [Statement(key, "confirm", HASH, None if ago is None else NOW - ago) for key in keys]


def revoke(keys: str, ago: timedelta = timedelta(days=1)) -> list[Statement]:
    return [Statement(key, "revoke", HASH, NOW - ago, None, "it was wrong") for key in keys]


def deny(key: str, denied: str) -> list[Statement]:
    return [Statement(key, "deny", one, NOW, None, "a campaign") for one in denied]


def read(
    said: Sequence[Statement], policy: Policy = FOLLOWED, denials: Sequence[Statement] = (), now: datetime = NOW
) -> Reading:
    return lesson_state(Evidence(HASH, tuple(said), tuple(denials)), policy, now)


def admit(*admissions: str) -> frozenset[Admission]:
    """Read admissions spelled `key commons name`, a letter each."""
    return frozenset(Admission(*admission.split()) for admission in admissions)


A: Final = lesson("a")
ADMITTED_BCD: Final = Policy(admitted=admit("b x 1", "c x 2", "d x 3"))


@pytest.mark.parametrize(
    ("reading", "state", "cause"),
    [
        # 1a. No publication stands, and some key revokes it.
        pytest.param(read([A, *revoke("a")]), "revoked", "withdrawn", id="a lesson taken back by its only publisher"),
        pytest.param(read(revoke("z")), "revoked", "withdrawn", id="a stranger's revocation where nothing stands"),
        pytest.param(
            read([*confirm("bcd"), *revoke("z")]), "revoked", "withdrawn", id="confirmations without a lesson"
        ),
        pytest.param(
            read([A, *revoke("a", timedelta(days=9_999)), *confirm("bcd")]),
            "revoked",
            "withdrawn",
            id="a revocation acts whatever its date",
        ),
        pytest.param(read([A, *revoke("z")]), "candidate", "unconfirmed", id="a stranger cannot kill a fresh lesson"),
        pytest.param(
            read([A, lesson("b"), *revoke("a"), *confirm("cde")]),
            "common",
            "confirmed",
            id="a copy under another key stands on its own",
        ),
        pytest.param(read([A, lesson("b"), *revoke("ab")]), "revoked", "withdrawn", id="all publishers took it back"),
        pytest.param(
            read([A, *revoke("a")], replace(FOLLOWED, revokers=frozenset("r")), deny("r", "a")),
            "candidate",
            "unconfirmed",
            id="a denied key's revocation is set aside with its lesson",
        ),
        pytest.param(
            read([A, *revoke("b")], replace(FOLLOWED, revokers=frozenset("r")), deny("r", "a")),
            "revoked",
            "withdrawn",
            id="a denied publication does not stand",
        ),
        # 1b. A trusted revoker revokes it.
        pytest.param(
            read([A, *confirm("bcd"), *revoke("r")], replace(FOLLOWED, revokers=frozenset("r"))),
            "revoked",
            "revoker",
            id="a trusted revoker",
        ),
        pytest.param(
            read([A, *confirm("bcd"), *revoke("r")]), "common", "confirmed", id="a revoker whom nobody trusts"
        ),
        pytest.param(
            read([A, *confirm("bcd"), *revoke("r")], replace(FOLLOWED, revokers=frozenset("rs")), deny("s", "r")),
            "common",
            "confirmed",
            id="a trusted revoker whom another denies",
        ),
        pytest.param(
            read(
                [A, *confirm("bcd"), *revoke("rs")],
                replace(FOLLOWED, revokers=frozenset("rs")),
                [*deny("s", "r"), *deny("r", "s")],
            ),
            "common",
            "confirmed",
            id="two revokers who deny each other, both in one step",
        ),
        pytest.param(
            read([A, *confirm("bcd"), *revoke("r")], replace(FOLLOWED, revokers=frozenset("r")), deny("r", "r")),
            "common",
            "confirmed",
            id="a revoker who denies himself",
        ),
        pytest.param(
            read([A, *revoke("a"), *revoke("r")], replace(FOLLOWED, revokers=frozenset("r"))),
            "revoked",
            "withdrawn",
            id="the first rule that holds gives the cause",
        ),
        # 1c. At least N and more than two thirds of the confirmers.
        pytest.param(
            read([A, *confirm("bcd"), *revoke("bcd")]), "revoked", "quorum", id="all of three confirmers turned"
        ),
        pytest.param(read([A, *confirm("bcd"), *revoke("bc")]), "common", "confirmed", id="two of three: fewer than N"),
        pytest.param(
            read([A, *confirm("bcde"), *revoke("bcd")]), "revoked", "quorum", id="three of four: over two thirds"
        ),
        pytest.param(
            read([A, *confirm("bcdefg"), *revoke("bcde")]), "common", "confirmed", id="four of six: two thirds exactly"
        ),
        pytest.param(read([A, *confirm("bcdefg"), *revoke("bcdef")]), "revoked", "quorum", id="five of six"),
        pytest.param(
            read([A, *confirm("bcd"), *revoke("wxyz")]), "common", "confirmed", id="who never confirmed cannot turn"
        ),
        pytest.param(
            read([A, *confirm("bcd"), *revoke("bcd")], Policy(followed=frozenset("bc"))),
            "candidate",
            "unconfirmed",
            id="confirmers who do not count cannot turn",
        ),
        pytest.param(
            read(
                [A, *confirm("bcd"), *revoke("cde")],
                Policy(admitted=admit("b x 1", "e x 1", "c x 2", "d x 3")),
            ),
            "revoked",
            "quorum",
            id="a confirmer turns by any of its keys",
        ),
        pytest.param(
            read([A, *confirm("bcde"), *revoke("bcd")], Policy(admitted=admit("b x 1", "c x 1", "d x 3", "e x 4"))),
            "common",
            "confirmed",
            id="two keys of one principal turn once",
        ),
        # 2 to 5. By the counted confirmations, and the last of them.
        pytest.param(read([]), "candidate", "unconfirmed", id="nothing was said"),
        pytest.param(read([A]), "candidate", "unconfirmed", id="published and no more"),
        pytest.param(read([A, *confirm("bc")]), "candidate", "unconfirmed", id="two confirmations"),
        pytest.param(read([A, *confirm("bcd")]), "common", "confirmed", id="three confirmations"),
        pytest.param(read([A, *confirm("bcd", W)]), "common", "confirmed", id="W ago to the moment"),
        pytest.param(read([A, *confirm("bcd", W + TICK)]), "fading", "lapsed", id="a moment over W ago"),
        pytest.param(read([A, *confirm("bcd", 2 * W)]), "fading", "lapsed", id="2W ago to the moment"),
        pytest.param(read([A, *confirm("bcd", 2 * W + TICK)]), "removed", "expired", id="a moment over 2W ago"),
        pytest.param(
            read([A, *confirm("bc", 9 * W), *confirm("d")]), "common", "confirmed", id="the last confirmation counts"
        ),
        pytest.param(read([A, *confirm("bcd", -timedelta(hours=24))]), "common", "confirmed", id="confirmed tomorrow"),
        pytest.param(
            read([A, *confirm("bcd", 3 * W), *confirm("e")]), "common", "confirmed", id="a new one brings it back"
        ),
        pytest.param(read(confirm("bcd")), "common", "confirmed", id="it counts where no publication stands"),
        pytest.param(
            read([A, *confirm("bc"), *confirm("d", None)]), "candidate", "unconfirmed", id="draft 0 without a time"
        ),
        pytest.param(
            read([A, *confirm("b")], Policy(confirmations=1, followed=TEN)), "common", "confirmed", id="another N"
        ),
        pytest.param(
            read([A, *confirm("bcd", timedelta(days=2))], Policy(window=timedelta(days=1), followed=TEN)),
            "fading",
            "lapsed",
            id="another W",
        ),
        # A confirmation counts once per principal, never from a principal with a lesson line of that hash.
        pytest.param(read([A, *confirm("abc")]), "candidate", "unconfirmed", id="nobody confirms his own lesson"),
        pytest.param(
            read([A, lesson("b"), *revoke("b"), *confirm("bcd")]),
            "candidate",
            "unconfirmed",
            id="nor one that he took back",
        ),
        pytest.param(
            read([A, *confirm("bcd")], Policy(admitted=admit("a x 1", "b x 1", "c x 2", "d x 3"))),
            "candidate",
            "unconfirmed",
            id="nor by another of his keys",
        ),
        pytest.param(
            read(
                [A, *confirm("bcd")],
                Policy(admitted=admit("a x 1", "b x 1", "c x 2", "d x 3"), revokers=frozenset("r")),
                deny("r", "a"),
            ),
            "common",
            "confirmed",
            id="a denied lesson bars nobody",
        ),
        pytest.param(
            read([A, *confirm("bcde")], Policy(admitted=admit("b x 1", "c x 1", "d x 2", "e x 2"))),
            "candidate",
            "unconfirmed",
            id="four keys of two principals",
        ),
        pytest.param(
            read([A, *confirm("bcd")], Policy(admitted=admit("b x 1", "c y 1", "d z 1"))),
            "common",
            "confirmed",
            id="names of different commons join nobody",
        ),
        pytest.param(
            read([A, *confirm("bcd")], Policy(admitted=admit("b x 1", "e x 1", "e y 2", "c y 2", "d x 3"))),
            "candidate",
            "unconfirmed",
            id="keys are joined through a key that said nothing",
        ),
        # Who counts.
        pytest.param(read([A, *confirm("bcd")], Policy()), "candidate", "unconfirmed", id="no one is followed"),
        pytest.param(read([A, *confirm("bcd")], ADMITTED_BCD), "common", "confirmed", id="admitted by token"),
        pytest.param(
            read([A, *confirm("bcd")], replace(ADMITTED_BCD, followed=frozenset("b"))),
            "common",
            "confirmed",
            id="followed and admitted",
        ),
        pytest.param(
            read([A, *confirm("bcd")], Policy(admitted=admit("b x 1", "c x 1"), followed=frozenset("bcd"))),
            "candidate",
            "unconfirmed",
            id="followed keys are joined by their admissions",
        ),
        pytest.param(read([A, *confirm("xyz")], Policy(open=True)), "common", "confirmed", id="open counts every key"),
        pytest.param(
            read([A, *confirm("bcd")], Policy(open=True, admitted=admit("b x 1", "c x 1", "d x 1"))),
            "common",
            "confirmed",
            id="open counts every key as its own principal",
        ),
        # Denials.
        pytest.param(
            read([A, *confirm("bcd")], replace(FOLLOWED, revokers=frozenset("r")), deny("r", "d")),
            "candidate",
            "unconfirmed",
            id="a denied confirmer",
        ),
        pytest.param(
            read([A, *confirm("bcd")], FOLLOWED, deny("r", "d")), "common", "confirmed", id="a denial of no weight"
        ),
        pytest.param(
            read([A, *confirm("bcd")], Policy(open=True, revokers=frozenset("r")), deny("r", "bcd")),
            "candidate",
            "unconfirmed",
            id="one line against a campaign",
        ),
        pytest.param(
            read(
                [A, *confirm("bcd")],
                Policy(admitted=admit("b x 1", "e x 1", "c x 2", "d x 3"), revokers=frozenset("r")),
                deny("r", "e"),
            ),
            "common",
            "confirmed",
            id="a denial is of a key, not of its principal",
        ),
    ],
)
def test_the_state_of_a_lesson(reading: Reading, state: str, cause: str) -> None:
    assert (reading.state, reading.cause) == (State(state), Cause(cause))


def test_a_reading_says_what_it_rests_on() -> None:
    said = [lesson("c", 1), lesson("b", 2), A, *confirm("de", timedelta(days=3)), *confirm("fz"), *revoke("a")]
    reading = read([*said, Statement("z", "confirm", ELSE, NOW), *revoke("y")])
    assert reading == Reading(
        hash=HASH,
        state=State.COMMON,
        cause=Cause.CONFIRMED,
        kind="error",
        text=SPELLINGS[2],
        publishers=("b", "c"),
        confirmations=3,
        counted=("d", "e", "f"),
        unadmitted=1,
        corroborations=1,
        last_confirmed=NOW - timedelta(days=1),
    )


def test_an_unadmitted_publisher_is_no_unadmitted_confirmer() -> None:
    assert read([lesson("z"), *confirm("xyz")]).unadmitted == 2


@pytest.mark.parametrize(
    ("reading", "why"),
    [
        (read([A]), "0 counted confirmations, too few to be common"),
        (read([A, *confirm("b")]), "1 counted confirmation, too few to be common"),
        (read([A, *confirm("bcd")]), "3 counted confirmations, the last on 2026-02-28"),
        (
            read([A, *confirm("bcd", 2 * W)]),
            "3 counted confirmations, the last on 2025-09-02, longer ago than the window",
        ),
        (
            read([A, *confirm("bcd", 3 * W)]),
            "3 counted confirmations, the last on 2025-06-04, longer ago than twice the window",
        ),
        (read([A, *revoke("a")]), "no publication stands and a revokes it"),
        (
            read([A, *revoke("bc")], replace(FOLLOWED, revokers=frozenset("bc"))),
            "revoked by b, c, whom this reader trusts as a revoker",
        ),
        (
            read([A, *confirm("bcd"), *revoke("bcd")]),
            "more than two thirds of its 3 confirmers revoke it",
        ),
    ],
)
def test_a_reading_says_why(reading: Reading, why: str) -> None:
    assert reading.why == why


# --- files ---


def test_a_retired_key_says_nothing_but_what_it_revokes() -> None:
    file = accept(forge.sealed([{"revoke": HASH, "at": "2026-02-01T00:00:00Z"}], seal=LAST_SEAL), now=NOW)
    reading = lesson_state(Evidence.of_files(HASH, [file]), Policy(open=True), NOW)
    assert (reading.state, reading.publishers, reading.confirmations) == (State.REVOKED, (), 0)


def test_seals_and_unknown_types_say_nothing() -> None:
    file = accept(forge.sealed([forge.unknown(1), without(forge.lesson(2), "text")]), now=NOW)
    assert statements(file) == []


# --- how a reading follows another ---


def in_state(state: State) -> tuple[Sequence[Statement], Policy]:
    ago = {State.COMMON: timedelta(0), State.FADING: 2 * W, State.REMOVED: 3 * W}
    match state:
        case State.CANDIDATE:
            return [A], FOLLOWED
        case State.REVOKED:
            return [A, *revoke("a")], FOLLOWED
        case _:
            return [A, *confirm("bcd", ago[state])], FOLLOWED


@pytest.mark.parametrize(
    ("before", "event", "after"),
    [
        pytest.param(before, event, after, id=f"{before.value} {event.value}")
        for (before, event), after in TRANSITIONS.items()
    ],
)
def test_every_row_of_the_table_happens(before: State, event: StateEvent, after: State) -> None:
    one, two = read(*in_state(before)), read(*in_state(after))
    assert (one.state, event_between(one, two), two.state) == (before, event, after)


def test_the_table_has_one_way_from_each_state_to_each_other() -> None:
    ways = [(before, after) for (before, _), after in TRANSITIONS.items()]
    assert sorted(ways, key=repr) == sorted(itertools.permutations(State, 2), key=repr)
