"""The one write path: a file comes in, and what stands for its key follows (PROTOCOL.md, sections 6, 7 and 11).

1. Read what stands, in a short transaction of its own.
2. Accept the file, and judge its new records: all the work, done while no lock is held. Lines that stand
   already are neither verified nor judged again.
3. In one transaction that writes: check the token again, decide by the newest of what stands now, store the
   file with its statements, bind the token, and count the change. All of it is committed, or none.

A file of draft 0 can be put back by anyone who has it. So it replaces another only by the key's own token, or on
an open commons, and binds no token there.

Where another file of the key came between the first step and the third, the steps start again; each time round
another writer's file was stored, and the newest ends the contest.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, Engine

from remem.protocol import OriginFile, Verdict, Version, accept, newest
from remem_server import changes, store, tokens
from remem_server.database import writing
from remem_server.errors import NameMismatch, OriginCollision, TokenBound
from remem_server.judging import judge_records
from remem_server.store import Change, SkippedLine, Snapshot


@dataclass(frozen=True, slots=True)
class Accepted:
    """What became of an accepted file.

    Attributes:
        verdict: how it compares with what stood.
        file: the file itself.
        stands: the version that stands now.
        skipped: where the file stands, the lines that readers skip.
    """

    verdict: Verdict
    file: OriginFile
    stands: Version
    skipped: tuple[SkippedLine, ...]


def accept_file(
    engine: Engine, data: bytes, *, name: str, secret: str | None, token_needed: bool, now: datetime
) -> Accepted:
    """Take a file in, if every rule allows it and it is the newest of its key.

    Args:
        engine: the database, with no transaction of the caller's open.
        data: the whole file.
        name: the key or the origin that it comes under.
        secret: the bearer token that came with it.
        token_needed: whether a file without a token is refused; a token that came is checked all the same.
        now: this commons' clock.

    Raises:
        ProtocolError: the file breaks a rule of acceptance.
        CommonsError: this commons does not take it.
    """
    while True:
        with engine.connect() as connection:
            before = _snapshot(connection, name)
        file = accept(data, now=now, verified=before.verified if before else None)
        if name not in (file.key.hex, file.key.origin):
            raise NameMismatch(f"expected a file of {name}, got one of key {file.key.hex}")
        name = file.key.hex
        change = _change(before, file)
        with writing(engine) as connection:
            accepted = _take(connection, file, change, secret, token_needed, now)
        if accepted is not None:
            return accepted


def _snapshot(connection: Connection, name: str) -> Snapshot | None:
    try:
        found = store.find(connection, name)
    except OriginCollision:
        # The file itself will say whose it is.
        return None
    return None if found is None else store.snapshot(connection, found.key)


def _change(before: Snapshot | None, file: OriginFile) -> Change:
    """Work out how the statements of the key follow."""
    version = before.version if before else None
    come = judge_records(file.fresh)
    if before is None or before.verified is None or file.seal is None:
        return Change(version, None, come)
    stays = set(file.lines)
    gone = [topic for line, topic in before.verified.topics.items() if line not in stays]
    return Change(version, gone, come)


def _take(
    connection: Connection,
    file: OriginFile,
    change: Change,
    secret: str | None,
    token_needed: bool,
    now: datetime,
) -> Accepted | None:
    """Decide and write; None where the change was worked out for a version that no longer stands."""
    changes.lock(connection)
    key = file.key.hex
    token = tokens.check(connection, secret) if token_needed or secret is not None else None
    own = token is not None and tokens.is_own(connection, token, key)
    held = store.version_of(connection, key)
    verdict = newest(held, file.version)
    if verdict.takes and held != change.before:
        return None
    # It may be an older one that came again, and a seal would tell.
    proves_nothing = verdict.takes and held is not None and file.seal is None and not own
    if proves_nothing and token_needed:
        raise TokenBound(f"expected a sealed file or a token of {key}, got neither")
    if verdict.equivocation:
        store.flag_equivocation(connection, file)
    if verdict.takes:
        store.put(connection, file, change, now)
        if token is not None and not proves_nothing:
            tokens.bind(connection, token, key)
    elif verdict is not Verdict.UNCHANGED:
        assert held is not None
        return Accepted(verdict, file, held, ())
    return Accepted(verdict, file, file.version, tuple(store.skipped_lines(connection, file)))
