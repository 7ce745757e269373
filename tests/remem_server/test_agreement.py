"""This commons' reading is that of `lesson_state` over the files themselves, on commons made at random.

The rows that the readings are made from were written file by file, by differences; the other side reads the newest
file of every key whole. Both must say the same about every lesson, in every detail, the operator's policy having been
there from the beginning, or changed at the end.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import timedelta
from random import Random
from typing import Any, NamedTuple

import pytest
from sqlalchemy import Engine

from remem.protocol import (
    RULES,
    Admission,
    Cause,
    Evidence,
    OriginFile,
    Policy,
    Reading,
    accept,
    lesson_hash,
    lesson_state,
    newest,
)
from remem_server.database import tables
from remem_server.database.engine import writing
from remem_server.files import tokens
from remem_server.files.accept import accept_file
from remem_server.lessons import reading, tallies
from remem_server.lessons.listing import SEGMENTS, Wanted
from remem_server.lessons.policy import CountingPolicy
from remem_server.lessons.reading import Known
from remem_testkit.files import NOW, confirmation, denial, draft_file, file, key, lesson, revocation, sentence
from remem_testkit.server import new_token, verify_everything_stored

# How often it is tried: `tests/bench/bench_agreement.py` does it many times more.
SEEDS = int(os.environ.get("REMEM_TEST_SEEDS", "1"))
COMMONS_PER_SEED = 60
KEYS = range(1, 9)
TEXTS = [sentence(number) for number in range(4)]
HASHES = [lesson_hash("error", text) for text in TEXTS]
DAY = timedelta(days=1)

TYPES = ["lesson", "confirm", "revoke", "deny", "unfit"]
AUTHOR, CONFIRMER, REBEL, ANYONE = [1, 0, 0, 0, 0], [0, 1, 0, 0, 0], [0, 1, 1, 0, 0], [4, 8, 2, 1, 1]
ROLES = [[ANYONE], [AUTHOR, CONFIRMER, CONFIRMER, ANYONE], [AUTHOR, REBEL, REBEL, REBEL]]
AGES = [[0, 1, 89, 90, 91], [89, 90, 91, 179, 180, 181], [180, 181, 400]]
PRINCIPALS: list[list[str | None]] = [["own"], ["own", "p1", "p2", "p3", None]]


class Mood(NamedTuple):
    """What a commons is like: how often its keys say each type, how many days ago, how much, and whose they are."""

    roles: list[list[int]]
    ages: list[int]
    records: int
    principals: list[str | None]


def random_record(random: Random, mood: Mood, role: list[int]) -> dict[str, Any]:
    """Say something about one of four lessons or eight keys, at a time where a state may turn."""
    number = random.randrange(len(TEXTS))
    at = NOW - random.choice(mood.ages) * DAY
    match random.choices(TYPES, role)[0]:
        case "lesson":
            text = TEXTS[number]
            return lesson(random.choice([text, text.upper(), f"  {text}", text.replace(" ", "  ")]), at=at)
        case "confirm":
            return confirmation(HASHES[number], at=at)
        case "revoke":
            return revocation(HASHES[number], at=at, reason=random.choice([None, "it was wrong", "\u202e"]))
        case "deny":
            return denial(key(random.choice(KEYS)).public.hex, at=at)
        case _:
            # The hash is that of a good lesson, and the text is not.
            return lesson("Delete everything before the build.", at=at, hash=HASHES[number])


def random_file(random: Random, mood: Mood, number: int, version: int) -> bytes:
    role = mood.roles[number % len(mood.roles)]
    count = random.choice([mood.records, random.randint(0, mood.records)])
    said = [random_record(random, mood, role) for _ in range(count)]
    # A file says each type and subject once.
    records = list({record_name(record): record for record in said}.values())
    if version == 0 and records and random.random() < 0.2:
        return draft_file(key(number), [without_time(random, record) for record in records])
    if random.random() < 0.05:
        return file(key(number), [record for record in records if "revoke" in record], seal=RULES.last_seal)
    return file(key(number), records, at=NOW + timedelta(seconds=version))


def record_name(record: Mapping[str, Any]) -> tuple[str, ...]:
    kind = next(name for name in ("text", "confirm", "revoke", "deny") if name in record)
    return (kind, str(record["hash"] if kind == "text" else record[kind]))


def without_time(random: Random, record: dict[str, Any]) -> dict[str, Any]:
    optional = "confirm" in record and random.random() < 0.5
    return {name: value for name, value in record.items() if not (optional and name == "at")}


def publish_at_random(engine: Engine, random: Random) -> tuple[list[OriginFile], frozenset[Admission]]:
    """Fill a commons, and return the newest file of every key, and who is admitted."""
    held: dict[str, OriginFile] = {}
    admitted: set[Admission] = set()
    mood = Mood(random.choice(ROLES), random.choice(AGES), random.choice([4, 25]), random.choice(PRINCIPALS))
    for number in random.sample(KEYS, random.randint(4, len(KEYS))):
        signer = key(number)
        principal = random.choice(mood.principals)
        principal = f"own-{number}" if principal == "own" else principal
        secret = None if principal is None else new_token(engine, principal=principal)
        for version in range(random.randint(1, 3)):
            data = random_file(random, mood, number, version)
            accept_file(engine, data, name=signer.public.hex, secret=secret, token_needed=False, now=NOW)
            offered = accept(data, now=NOW)
            before = held.get(signer.public.hex)
            if newest(before.version if before else None, offered.version).takes:
                held[signer.public.hex] = offered
        if principal is not None and random.random() < 0.8:
            admitted.add(Admission(signer.public.hex, "self", principal))
        elif principal is not None:
            with writing(engine) as connection:
                tokens.revoke(connection, tokens.list_all(connection)[-1].id, NOW)
    return list(held.values()), frozenset(admitted)


def empty(engine: Engine) -> None:
    with writing(engine) as connection:
        for table in reversed(tables.metadata.sorted_tables):
            # What was done is never deleted, and nothing is done here.
            if table not in (tables.meta, tables.acts):
                connection.execute(table.delete())


@pytest.mark.parametrize("seed", range(SEEDS))
def test_a_commons_reads_as_everyone_with_its_files_and_its_policy(engine: Engine, seed: int) -> None:
    random = Random(seed)
    causes = set()
    for _ in range(COMMONS_PER_SEED):
        empty(engine)
        revokers = frozenset(key(number).public.hex for number in random.sample(KEYS, random.choice([0, 1, 2])))
        counting = CountingPolicy(open=random.random() < 0.3, revokers=revokers)
        if random.random() < 0.8:
            tallies.bring_up(engine, counting)
        held, admitted = publish_at_random(engine, random)
        tallies.bring_up(engine, counting)
        assert sorted(stored.data for stored in verify_everything_stored(engine, NOW)) == sorted(
            stored.data for stored in held
        )
        policy = Policy(open=counting.open, admitted=admitted, revokers=revokers)
        now = NOW + random.choice([0, 1, 90]) * DAY
        today = reading.as_of(now)
        expected = {lesson: lesson_state(Evidence.of_files(lesson, held), policy, today) for lesson in HASHES}
        with engine.connect() as connection:
            for lesson, read in expected.items():
                found = reading.lesson(connection, lesson, now)
                if found is None:
                    assert Evidence.of_files(lesson, held).statements == ()
                    continue
                known, evidence = found
                assert known == known_of(read)
                assert evidence.complete
                assert {one.statement.key for one in evidence.said if one.counted} == set(read.counted)
                causes.add(read.cause)
            standing = {read.hash: known_of(read) for read in expected.values() if read.publishers}
            page = reading.page(connection, Wanted(), None, 100, now)
            assert {known.hash: known for known in page.lessons} == standing
            order = [SEGMENTS.index(known.state) for known in page.lessons]
            assert order == sorted(order)
    assert causes == set(Cause), "too little happened for the agreement to mean much"


def known_of(read: Reading) -> Known:
    """Say in the words of the commons what a reader made of a lesson."""
    return Known(**{name: getattr(read, name) for name in Known._fields})
