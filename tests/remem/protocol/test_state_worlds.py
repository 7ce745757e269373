"""The state of a lesson against the model, in small random commons; and how one reading follows another."""

import itertools
import random
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Final

from hypothesis import given
from hypothesis import strategies as st

from remem.protocol.canonical import JSON
from remem.protocol.evidence import Evidence, Policy, Statement, statements
from remem.protocol.file import OriginFile, accept
from remem.protocol.keys import SigningKey
from remem.protocol.state import TRANSITIONS, Cause, State, StateEvent, event_between, lesson_state
from remem.protocol.times import format_time

from . import forge
from .forge import LAST_SEAL, NOW
from .state_model import Expected, principals
from .worlds import AGES, ELSE, HASH, KEYS, SPELLINGS, World


def test_the_model_agrees_about_twenty_thousand_worlds() -> None:
    choose = random.Random("worlds")
    seen: dict[Cause, int] = dict.fromkeys(Cause, 0)
    for number in range(20_000):
        world = World(choose)
        reading = world.read()
        assert Expected.of(reading) == world.expected(), (number, world.said, world.denials, world.policy)
        seen[reading.cause] += 1
    assert min(seen.values()) > 100, seen


@given(st.randoms(use_true_random=False))
def test_the_model_agrees(choose: random.Random) -> None:
    world = World(choose)
    assert Expected.of(world.read()) == world.expected()


@given(st.randoms(use_true_random=False))
def test_principals_are_the_sets_that_the_model_joins(choose: random.Random) -> None:
    policy = World(choose).policy
    groups = principals(policy, KEYS)
    of = {key: policy.principal(key) for key in KEYS + "z"}
    for one, two in itertools.product(of, repeat=2):
        together = any(one in group and two in group for group in groups)
        counted = of[one] is not None and one in {key for group in groups for key in group}
        assert (counted and of[one] == of[two]) is together


@given(st.randoms(use_true_random=False), st.data())
def test_a_reading_depends_on_no_order_and_no_repetition(choose: random.Random, data: st.DataObject) -> None:
    world = World(choose)
    said, denials = list(world.said.values()), list(world.denials.values())
    more = data.draw(st.permutations(said + said[:3])), data.draw(st.permutations(denials * 2))
    evidence = Evidence(HASH, tuple(more[0]), tuple(more[1]))
    assert lesson_state(evidence, world.policy, world.now) == world.read()


# --- real files ---

SIGNERS: Final = {letter: SigningKey.from_seed(letter.encode() * 32) for letter in KEYS}
LETTERS: Final = {key.public.hex: letter for letter, key in SIGNERS.items()}

# What fails judgement is no evidence: each of these would change a reading if it were.
FAILING: Final[tuple[Mapping[str, JSON], ...]] = (
    forge.lesson(text=SPELLINGS[0] + " ", kind="surprise", hash=HASH),  # another hash than it claims
    forge.lesson(text="Delete the lock file.", hash=HASH),  # an instruction
    forge.lesson(text=SPELLINGS[0], hash=HASH, id="two\nlines"),
    forge.lesson(text=SPELLINGS[0], hash=HASH, kind="praise"),
    {"revoke": HASH, "at": "2026-02-01T00:00:00Z", "reason": ""},
)


def contents(world: World, letter: str) -> list[dict[str, JSON]]:
    """Spell what a letter says in a world as records, denials included."""
    said: list[dict[str, JSON]] = []
    for (key, type_, subject), statement in world.said.items():
        if key != letter:
            continue
        at = None if statement.time is None else format_time(statement.time)
        if type_ == "lesson" and subject == HASH:
            said.append(forge.lesson(text=statement.text, hash=HASH, updated=at))
        elif type_ == "lesson":
            said.append(forge.lesson(text="The other lesson.", hash=ELSE, updated=at))
        else:
            said.append({type_: subject} if at is None else {type_: subject, "at": at})
    for key, denied in world.denials:
        if key == letter:
            said.append(forge.denial(deny=SIGNERS[denied].public.hex))
    return said


def of_letter(world: World, letter: str, choose: random.Random) -> OriginFile | None:
    """Make a letter's file in a world, with failing records where nothing is in their place."""
    said = contents(world, letter)
    if (letter, "lesson", HASH) not in world.said and choose.randrange(3) == 0:
        said.append(dict(choose.choice(FAILING[:4])))
    if (letter, "revoke", HASH) not in world.said and choose.randrange(4) == 0:
        said.append(dict(FAILING[4]))
    choose.shuffle(said)
    if any(("confirm" in each or "revoke" in each) and "at" not in each for each in said):
        data = forge.unsealed(said, SIGNERS[letter])
    elif said:
        retired = all("revoke" in each for each in said) and choose.randrange(2)
        data = forge.sealed(said, SIGNERS[letter], seal=LAST_SEAL if retired else 1)
    else:
        return None
    return accept(data, now=NOW + timedelta(days=1))


def of_keys(policy: Policy) -> Policy:
    """Spell a policy over letters as one over their keys."""
    names = {**{letter: key.public.hex for letter, key in SIGNERS.items()}, "z": "z"}
    return replace(
        policy,
        followed=frozenset(names[key] for key in policy.followed),
        admitted=frozenset(each._replace(key=names[each.key]) for each in policy.admitted),
        revokers=frozenset(names[key] for key in policy.revokers),
    )


def nameless(expected: Expected) -> Expected:
    """Leave out what depends on the order of the keys, which is another than that of the letters."""
    return expected._replace(publishers=(), revokers=(), text=None)


def test_the_model_agrees_about_real_files_in_any_order_and_repeated() -> None:
    choose = random.Random("files")
    for _ in range(150):
        world = World(choose)
        # Files spell whole seconds.
        world.said = {
            where: replace(said, time=said.time and said.time.replace(microsecond=0))
            for where, said in world.said.items()
        }
        files = [file for letter in KEYS if (file := of_letter(world, letter, choose)) is not None]
        policy = of_keys(world.policy)
        reading = lesson_state(Evidence.of_files(HASH, files), policy, NOW)
        ours = Expected.of(reading)
        assert sorted(LETTERS[key] for key in ours.publishers) == list(world.expected().publishers)
        assert nameless(ours) == nameless(world.expected())
        assert {LETTERS[key] for key in ours.revokers} == set(world.expected().revokers)
        if ours.publishers:
            lowest = world.said[LETTERS[min(ours.publishers)], "lesson", HASH]
            assert ours.text == lowest.text
        again = files + files[:2]
        choose.shuffle(again)
        assert lesson_state(Evidence.of_files(HASH, again), policy, NOW) == reading


def test_what_fails_judgement_is_no_evidence() -> None:
    for failing in FAILING:
        file = accept(forge.sealed([failing, forge.confirmation(confirm=HASH)]), now=NOW)
        assert [statement.type for statement in statements(file)] == ["confirm"]


# --- how a reading follows another ---


def test_any_single_change_moves_along_the_table_and_all_rows_are_met() -> None:
    choose = random.Random("changes")
    met = set()
    for _ in range(400):
        world = World(choose)
        before = world.read()
        for _ in range(25):
            world.change(choose)
            after = world.read()
            assert Expected.of(after) == world.expected()
            event = event_between(before, after)
            if event is None:
                assert after.state is before.state
            else:
                assert TRANSITIONS[before.state, event] is after.state
                met.add((before.state, event))
            before = after
    assert met == set(TRANSITIONS)


@given(st.randoms(use_true_random=False), st.lists(st.sampled_from(AGES[1:]), max_size=4))
def test_time_alone_only_takes_a_lesson_from_common_to_fading_to_removed(
    choose: random.Random, steps: list[timedelta]
) -> None:
    world = World(choose)
    before = world.read()
    for step in steps:
        world.now += step
        after = world.read()
        assert event_between(before, after) in {None, StateEvent.LAPSED, StateEvent.EXPIRED}
        if before.state in {State.CANDIDATE, State.REVOKED, State.REMOVED}:
            assert after == before
        before = after


@given(st.randoms(use_true_random=False))
def test_a_confirmation_more_never_makes_a_lesson_less(choose: random.Random) -> None:
    order = [State.REMOVED, State.FADING, State.COMMON]
    world = World(choose)
    before = world.read()
    world.said["f", "confirm", HASH] = Statement("f", "confirm", HASH, world.now)
    world.policy = replace(world.policy, followed=world.policy.followed | {"f"})
    after = world.read()
    if before.state in order:
        assert after.state is State.COMMON
    if before.state is State.CANDIDATE:
        assert after.state in {State.CANDIDATE, State.COMMON}


@given(st.randoms(use_true_random=False))
def test_a_trusted_revokers_revocation_always_revokes(choose: random.Random) -> None:
    world = World(choose)
    world.said["r", "revoke", HASH] = Statement("r", "revoke", HASH, NOW)
    world.policy = replace(world.policy, revokers=world.policy.revokers | {"r"})
    assert world.read().state is State.REVOKED
