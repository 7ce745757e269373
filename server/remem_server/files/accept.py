"""The one write path: a file comes in, and what stands for its key follows (PROTOCOL.md, sections 6, 7 and 11).

1. Read what stands, in a short transaction of its own. A key that this host blocks goes no further.
2. Accept the file, and judge its new records: all the work, done while no lock is held. Lines that stand
   already are neither verified nor judged again.
3. In one transaction that writes: check the token again, decide by the newest of what stands now, bind the token,
   store the file with its statements, let the lessons follow, and count the change. All of it is committed, or none.

A file of draft 0 can be put back by anyone who has it. So it replaces another only by the key's own token, or on
an open commons, and binds no token there.

Where another file of the key came between the first step and the third, the steps start again; each time round
another writer's file was stored, and the newest ends the contest.

A file that stands already is stored once more where its bytes are not here, or were damaged.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import Connection, Engine

from remem.protocol import OriginFile, Verdict, Version, accept, newest
from remem_server.database import changes
from remem_server.database.engine import writing
from remem_server.errors import Blocked, NameMismatch, OriginCollision, TokenBound
from remem_server.files import items, journal, store, tokens
from remem_server.files.judging import judge_records
from remem_server.files.store import Change, SkippedLine, Snapshot


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


class _Sender(NamedTuple):
    """Who sends a file: by which token, whether one is needed, and which peer it comes from."""

    secret: str | None
    token_needed: bool
    source: str | None


def accept_file(
    engine: Engine,
    data: bytes,
    *,
    name: str,
    secret: str | None,
    token_needed: bool,
    now: datetime,
    when_new: Callable[[], None] | None = None,
    source: str | None = None,
) -> Accepted:
    """Take a file in, if every rule allows it and it is the newest of its key.

    Args:
        engine: the database, with no transaction of the caller's open.
        data: the whole file.
        name: the key or the origin that it comes under.
        secret: the bearer token that came with it.
        token_needed: whether a file without a token is refused; a token that came is checked all the same.
        now: this commons' clock.
        when_new: called before anything is written, where no file of the key ever came here; it may refuse it.
        source: the peer that brought it, for the journal.

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
        if name != file.key.hex and before is None:
            # Two keys of this origin are held, or none is: the file's own key tells which.
            with engine.connect() as connection:
                before = _snapshot(connection, file.key.hex)
        name = file.key.hex
        change = _change(before, file)
        if before is None and when_new is not None:
            when_new()
            when_new = None
        with writing(engine) as connection:
            accepted = _take(connection, file, change, _Sender(secret, token_needed, source), now)
        if accepted is not None:
            return accepted


def store_accepted(connection: Connection, file: OriginFile, now: datetime) -> None:
    """Make an accepted file, which is newer than what stands, the one that stands for its key.

    Args:
        connection: of a transaction that holds `changes.lock`.
        file: the file.
        now: this commons' clock.
    """
    key = file.key.hex
    change = _change(store.snapshot(connection, key), file)
    store.put(connection, file, change, items.item_held(connection, key), now)


def _snapshot(connection: Connection, name: str) -> Snapshot | None:
    if len(name) != store.KEY_DIGITS:
        try:
            found = store.find(connection, name)
        except OriginCollision:
            # The file itself will say whose it is.
            return None
        if found is None:
            return None
        name = found.key
    return store.snapshot(connection, name)


def _change(before: Snapshot | None, file: OriginFile) -> Change:
    """Work out how the statements of the key follow."""
    version = before.version if before else None
    whole = before is None or before.whole
    if before is None or before.verified is None or file.seal is None:
        return Change(version, None, judge_records(file.fresh), whole)
    stood, stays = before.verified.topics, set(file.lines)
    come = judge_records(record for record in file.fresh if record.line not in stood)
    return Change(version, [topic for line, topic in stood.items() if line not in stays], come, whole)


def _take(
    connection: Connection,
    file: OriginFile,
    change: Change,
    sender: _Sender,
    now: datetime,
) -> Accepted | None:
    """Decide and write; None where the change was worked out for a version that no longer stands."""
    changes.lock(connection)
    key = file.key.hex
    stands = store.standing(connection, key)
    if stands.blocked is not None:
        raise Blocked(key, stands.blocked)
    secret, held = sender.secret, stands.version
    token = tokens.check(connection, secret, now) if sender.token_needed or secret is not None else None
    if token is not None:
        tokens.note_use(connection, token, now)
    own = token is not None and tokens.is_own(connection, token, key)
    verdict = newest(held, file.version)
    mends = verdict is Verdict.UNCHANGED and not change.whole
    if (verdict.takes or mends) and held != change.before:
        return None
    # It may be an older one that came again, and a seal would tell.
    proves_nothing = verdict.takes and held is not None and file.seal is None and not own
    if proves_nothing and sender.token_needed:
        raise TokenBound(f"expected a sealed file or a token of {key}, got neither")
    if verdict.equivocation:
        store.flag_equivocation(connection, file)
    # A token of the key's own principal takes the place of another where the file has not changed meanwhile.
    stands_by_it = (verdict.takes and not proves_nothing) or (verdict is Verdict.UNCHANGED and own)
    if token is not None and stands_by_it:
        tokens.bind(connection, token, key)
    if verdict.takes or mends:
        store.put(connection, file, change, stands.item, now)
        who = " by ".join(
            [f"key {key[:16]}", *([token.name] if token else []), *([sender.source] if sender.source else [])]
        )
        journal.write_published(connection, now, who, key, change.come.statements, change.gone or ())
    elif verdict is not Verdict.UNCHANGED:
        assert held is not None
        return Accepted(verdict, file, held, ())
    return Accepted(verdict, file, file.version, tuple(store.skipped_lines(connection, file)))
