"""A crowd: any number of memories with a signed file each, and the fastest way to have them in a commons.

Every member publishes five lessons and confirms five of others'. Words come as often as words do, so a few are in
every other sentence and most in hardly any; and a few lessons have most of the confirmations. A member is the same
wherever its crowd and its clock are, and so is all that it says.

What is in the database after `fill` is what a PUT of each file by a token of its own would have left there.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache, partial
from hashlib import sha256
from itertools import accumulate, product
from multiprocessing import get_context
from random import Random
from typing import Any, Final

from sqlalchemy import Engine, insert, select, update

from remem.protocol import KNOWN_KINDS, SigningKey, accept, lesson_hash
from remem.protocol.canonical import JSON
from remem_server.database.engine import is_postgres, writing
from remem_server.database.tables import contents, files, meta, statements, tokens
from remem_server.files.judging import judge_records
from remem_server.lessons import tallies
from remem_server.lessons.policy import CountingPolicy
from remem_server.opening.context import Commons
from remem_testkit.files import confirmation, file, lesson

LESSONS_EACH: Final = 5
CONFIRMATIONS_EACH: Final = 5

COMMON: Final = "build"
"""A word of every other lesson."""
SELDOM: Final = "tokenizer"
"""A word of about one lesson in a hundred."""

UNLIMITED: Final = dict.fromkeys(
    (
        "REMEM_READS_PER_MINUTE",
        "REMEM_PUBLISHES_PER_MINUTE",
        "REMEM_KILOBYTES_PER_MINUTE",
        "REMEM_LINES_PER_MINUTE",
        "REMEM_NEW_KEYS_PER_DAY",
        "REMEM_NEW_KEYS_PER_ADDRESS",
    ),
    "1000000000",
)
"""The settings of a commons that refuses nobody for asking often, since a crowd comes from one address."""

_COMMON_WORDS: Final = """build test server file cache path module schema client type config index table
version lock queue header thread request answer buffer socket parser worker record branch process token driver column
page folder session kernel loader compiler linker migration container package proxy router cluster replica shard cursor
handle signal encoder tokenizer decoder stream channel monitor timer counter""".split()
_SYLLABLES: Final = [a + b for a, b in product("bdfgklmnprstvz", "aeiou")]
_WORDS: Final = _COMMON_WORDS + ["".join(parts) for parts in product(_SYLLABLES[::3], _SYLLABLES[::4], _SYLLABLES[::5])]
_WEIGHTS: Final = list(accumulate(1 / rank for rank in range(1, len(_WORDS) + 1)))
_SENTENCES: Final = (
    "the {} of the {} fails with a {} of {} while the {} of {rare} is older than the {}",
    "{rare} reads its {} from the {} of the {}, and a {} without a {} is lost at the first {}",
    "a {} that waits for the {} of {rare} times out when the {} of the {} holds its {} for a {}",
    "the {} returns an empty {} where {rare} expects a {} with a {} and a {}",
    "after a {} of the {} the {} of {rare} keeps the old {} until its {} ends",
    "tests of {rare} pass alone and fail together, since the {} of the {} shares a {} with the {}",
)
_SPAN: Final = timedelta(days=80)
_TOGETHER: Final = 500


@dataclass(frozen=True, slots=True)
class Crowd:
    """Memories with a signed file each.

    Attributes:
        members: how many they are.
        now: the moment before which they published.
    """

    members: int
    now: datetime

    @property
    def lessons(self) -> int:
        """How many sentences they know, some of which several publish."""
        return self.members * LESSONS_EACH

    @property
    def records(self) -> int:
        """How many records their files have."""
        return self.members * (LESSONS_EACH + CONFIRMATIONS_EACH)


def signer(member: int) -> SigningKey:
    """Make the key of a member."""
    return SigningKey.from_seed(sha256(b"remem crowd %d" % member).digest())


def secret(member: int) -> str:
    """Return the token of a member."""
    return f"remem_crowd_{member}"


def token_row(member: int, now: datetime, *, bound: bool) -> dict[str, Any]:
    """Make the row of a member's token; every twentieth member is of the same principal as the one before it."""
    return {
        "token_hash": sha256(secret(member).encode()).hexdigest(),
        "label": "",
        "principal": f"crowd-{member - (member % 20 == 19)}",
        "key": signer(member).public.hex if bound else None,
        "created": now,
    }


def rare_word(number: int) -> str:
    """Return the word that five lessons have: this one and its neighbours."""
    return f"part{number // LESSONS_EACH}"


@lru_cache(8_192)
def sentence(number: int) -> tuple[str, str]:
    """Return the kind and the text of a lesson."""
    chance = Random(number)
    form = chance.choice(_SENTENCES)
    words = chance.choices(_WORDS, cum_weights=_WEIGHTS, k=form.count("{}"))
    return chance.choice(KNOWN_KINDS), form.format(*words, rare=rare_word(number))


@lru_cache(8_192)
def hash_of(number: int) -> str:
    """Return the hash of a lesson."""
    return lesson_hash(*sentence(number))


def content_of(crowd: Crowd, member: int) -> list[dict[str, JSON]]:
    """Return what a member says."""
    chance = Random(member)

    def popular() -> int:
        return int(crowd.lessons * chance.random() ** 3)

    def moment() -> datetime:
        return (crowd.now - _SPAN * chance.random()).replace(microsecond=0)

    own = list(range(member * LESSONS_EACH, (member + 1) * LESSONS_EACH))
    if member % 4 == 3:
        # The same happened to someone else.
        own[-1] = popular()
    own = list(dict.fromkeys(own))
    confirmed: set[int] = set()
    while len(confirmed) < CONFIRMATIONS_EACH:
        confirmed.add(popular())
        confirmed.difference_update(own)
    said = [lesson(text, kind=kind, at=moment()) for kind, text in map(sentence, own)]
    return said + [confirmation(hash_of(number), at=moment()) for number in sorted(confirmed)]


def file_of(crowd: Crowd, member: int, *, later: int = 0) -> bytes:
    """Sign the file of a member, or one that it publishes so many seconds later."""
    at = (crowd.now - timedelta(days=1)).replace(microsecond=0) + timedelta(seconds=later)
    return file(signer(member), content_of(crowd, member), at=at)


# --- in a commons ---


def fill(commons: Commons, crowd: Crowd, *, processes: int = 2) -> None:
    """Have a crowd's files in a commons where nothing else is, counted and with a token for each member."""
    starts = range(0, crowd.members, _TOGETHER)
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        for rows in pool.map(partial(_rows, crowd), starts):
            _insert(commons.engine, rows)
    tallies.bring_up(commons.engine, CountingPolicy(commons.settings.open, frozenset(commons.operators)))
    _settle(commons.engine)


def _rows(crowd: Crowd, start: int) -> dict[str, list[dict[str, Any]]]:
    rows: dict[str, list[dict[str, Any]]] = {"files": [], "contents": [], "statements": [], "tokens": []}
    for member in range(start, min(start + _TOGETHER, crowd.members)):
        accepted = accept(file_of(crowd, member), now=crowd.now)
        judged = judge_records(accepted.records)
        key, seal = accepted.key.hex, accepted.seal
        assert seal is not None
        assert not judged.skipped, judged.skipped
        row = {
            "key": key,
            "origin": accepted.key.origin,
            "seal": seal.number,
            "digest": accepted.digest,
            "seal_time": seal.time,
            "records": len(accepted.lines),
            "size": len(accepted.data),
            "updated": crowd.now,
        }
        rows["files"].append(row)
        rows["contents"].append({"key": key, "data": accepted.data, "topics": "\n".join(accepted.topics)})
        rows["statements"] += judged.statements
        rows["tokens"].append(token_row(member, crowd.now, bound=True))
    return rows


def _insert(engine: Engine, rows: dict[str, list[dict[str, Any]]]) -> None:
    with writing(engine) as connection:
        counted = connection.execute(select(meta.c.changes).with_for_update()).scalar_one()
        numbered = [{**row, "cursor": cursor} for cursor, row in enumerate(rows["files"], counted + 1)]
        connection.execute(insert(files), numbered)
        for table in (contents, statements, tokens):
            connection.execute(insert(table), rows[table.name])
        connection.execute(update(meta).values(changes=counted + len(numbered)))


def _settle(engine: Engine) -> None:
    """Let the database look at what it has, as it does by itself after a while."""
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.exec_driver_sql("VACUUM ANALYZE" if is_postgres(engine) else "PRAGMA optimize")


def members_of(crowd: Crowd, many: int) -> Iterator[int]:
    """Pick members from everywhere in a crowd, always the same ones."""
    return iter(Random(crowd.members).choices(range(crowd.members), k=many))
