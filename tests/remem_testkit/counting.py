"""A commons whose counts are compared, after every step, with a count of everything from nothing."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from sqlalchemy import Connection, Engine, select, text

from remem.protocol import Admission, Evidence, Policy, Verdict, accept, lesson_hash, lesson_state
from remem_server.database import changes, tables
from remem_server.database.engine import is_postgres, writing
from remem_server.database.tables import files, lessons
from remem_server.errors import TokenBound
from remem_server.files import store, tokens
from remem_server.files.accept import accept_file
from remem_server.lessons import rows as lesson_rows
from remem_server.lessons import tallies
from remem_server.lessons.policy import CountingPolicy, stored_policy
from remem_server.lessons.rows import read_rows
from remem_server.lessons.search import place_of, words_of
from remem_testkit.files import NOW, draft_file, file, key, sentence

TEXTS = [sentence(number) for number in range(3)]
HASHES = [lesson_hash("error", one) for one in TEXTS]
DAY = timedelta(days=1)
REVOKERS = frozenset(key(number).public.hex for number in (1, 2))
OPEN, CLOSED = CountingPolicy(open=True, revokers=REVOKERS), CountingPolicy(revokers=REVOKERS)


class CountedCommons:
    """A commons to which anything may happen, and which is counted from nothing after each step."""

    def __init__(self, engine: Engine) -> None:
        self.engine, self._second = engine, 0

    def put(self, number: int, contents: list[dict[str, Any]], secret: str | None, *, sealed: bool = True) -> None:
        """Publish what a key says from now on, if its token is good for that."""
        self._second += 1
        signer, at = key(number), NOW + timedelta(seconds=self._second)
        data = file(signer, contents, at=at) if sealed or not contents else draft_file(signer, contents)
        try:
            accept_file(self.engine, data, name=signer.public.hex, secret=secret, token_needed=False, now=at)
        except TokenBound:
            return

    def again(self, number: int) -> None:
        """Publish what stands of a key once more: what was dropped comes back."""
        with self.engine.connect() as connection:
            data = connection.execute(
                select(tables.contents.c.data).where(tables.contents.c.key == key(number).public.hex)
            ).scalar()
        self.drop(number)
        self.check()
        if data is not None:
            taken = accept_file(
                self.engine, data, name=key(number).public.hex, secret=None, token_needed=False, now=NOW + DAY
            )
            assert taken.verdict is Verdict.UNCHANGED

    def drop(self, number: int) -> None:
        """Let the file of a key go."""
        with writing(self.engine) as connection:
            changes.lock(connection)
            store.drop(connection, key(number).public.hex)

    def revoke(self, number: int) -> None:
        """Revoke the token of this number, counted from 0 and around, if there is any."""
        with writing(self.engine) as connection:
            listed = tokens.list_all(connection)
            if listed:
                tokens.revoke(connection, listed[number % len(listed)].id, NOW)

    def confirmations(self, hash_: str) -> int:
        """Say how many confirmations of a lesson count, by its row."""
        with self.engine.connect() as connection:
            return read_rows(connection, [hash_])[hash_].row.sums.confirmations

    def check(self) -> None:
        """Count everything from nothing."""
        with self.engine.connect() as connection:
            check(connection)


def check(connection: Connection) -> None:
    """Compare every row with what counting from nothing gives, and with what a reader of the files makes of them."""
    policy = stored_policy(connection)
    assert policy is not None
    hashes: list[str] = []
    while more := tallies.hashes_after(connection, hashes[-1] if hashes else ""):
        hashes += more
    held = read_rows(connection, hashes)
    rows, amiss = tallies.counted(connection, hashes, policy)
    assert {hash_: stored.row for hash_, stored in held.items()} == rows
    assert amiss == []
    for hash_, stored in held.items():
        _check_row(connection, hash_, stored)
    uncounted = select(files.c.key).where(files.c.held, files.c.counted.is_distinct_from(files.c.cursor))
    assert connection.execute(uncounted).all() == []
    if not is_postgres(connection):
        # It compares every word with what the rows say.
        connection.execute(text("INSERT INTO lesson_words(lesson_words, rank) VALUES ('integrity-check', 1)"))
    _check_readings(connection, policy, held)


def _check_row(connection: Connection, hash_: str, stored: lesson_rows.Stored) -> None:
    words, place = connection.execute(select(lessons.c.words, lessons.c.place).where(lessons.c.hash == hash_)).one()
    row = stored.row
    if row.text is None or row.updated is None:
        assert (words, place, row.sums.standing) == (None, None, 0)
        return
    assert place == place_of(row.sums, row.updated, stored.id)
    if is_postgres(connection):
        words = " ".join(sorted(word.strip("'") for word in words.split(" ")))
        assert words == " ".join(sorted(set(words_of(row.text).split(" "))))
    else:
        assert words == words_of(row.text)


def _check_readings(connection: Connection, policy: CountingPolicy, held: dict[str, lesson_rows.Stored]) -> None:
    stored = connection.execute(select(tables.contents.c.data).join(files)).scalars()
    all_files = [accept(data, now=NOW + 365 * DAY) for data in stored]
    good = select(tables.tokens.c.key, tables.tokens.c.principal).where(
        tables.tokens.c.revoked.is_(None), tables.tokens.c.key.is_not(None)
    )
    admitted = frozenset(Admission(one, "self", principal) for one, principal in connection.execute(good))
    whole = Policy(open=policy.open, revokers=policy.revokers, admitted=admitted)
    for hash_ in {*HASHES, *held}:
        evidence = Evidence.of_files(hash_, all_files)
        assert (hash_ in held) == bool(evidence.statements)
        if hash_ not in held:
            continue
        read, row = lesson_state(evidence, whole, NOW), held[hash_].row
        assert (read.publishers[:1] or (None,)) == (row.shown,)
        assert (read.kind, read.text) == (row.kind, row.text)
        assert (len(read.publishers), read.confirmations, read.unadmitted, read.last_confirmed) == (
            row.sums.standing,
            row.sums.confirmations,
            row.sums.unadmitted,
            row.sums.last_confirmed,
        )


def empty(engine: Engine, policy: CountingPolicy = CLOSED) -> None:
    """Begin anew, in the same database."""
    with writing(engine) as connection:
        for table in reversed(tables.metadata.sorted_tables):
            if table.name not in ("meta", "acts"):
                connection.execute(table.delete())
    tallies.bring_up(engine, policy)
