"""The health of a memory: what is wrong with it, and what its owner should look into.

Nothing is changed but what is asked for: whoever looks may repair the list of items, which is made from what is held.
Who may use the files is looked at before the memory is opened, since opening closes what is open to others.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from remem.commons import commons_at
from remem.errors import RememError
from remem.memory import holdings, items
from remem.memory.home import Home, open_to_others
from remem.memory.store import transaction
from remem.sharing.files import read_held
from remem.sharing.status import status

Level: TypeAlias = Literal["ok", "warning", "wrong"]


@dataclass(frozen=True, slots=True)
class Finding:
    """What one check found.

    Attributes:
        check: what was looked at.
        level: `ok`, something to look into, or something that is wrong.
        text: what was found.
        hint: what helps.
    """

    check: str
    level: Level
    text: str
    hint: str | None = None


def check_rights(path: Path) -> Iterator[Finding]:
    """Look who may use the home and its files; before it is opened."""
    found = open_to_others(Home(path))
    for one, mode in found:
        yield Finding("rights", "warning", f"{one} was open to others (mode {mode:o}), and is closed now")
    if not found:
        yield Finding("rights", "ok", f"{path} is its owner's alone")


def check_key(home: Home) -> Iterator[Finding]:
    """Look whether this memory has its key."""
    try:
        yield Finding("key", "ok", f"signs as {home.signing_key().public.hex}")
    except RememError as error:
        yield Finding("key", "wrong", error.message, error.hint)


def check_database(db: sqlite3.Connection) -> Iterator[Finding]:
    """Let the database check itself."""
    said = [str(row[0]) for row in db.execute("PRAGMA integrity_check")]
    said = [] if said == ["ok"] else said
    said += [f"a row of {row[0]} refers to a row of {row[2]} that is not there" for row in _strays(db)]
    for text in said[:20]:
        yield Finding("database", "wrong", text, "put memory.db back from a backup")
    if not said:
        yield Finding("database", "ok", "every page and every reference of the database is whole")


def check_files(home: Home, db: sqlite3.Connection) -> Iterator[Finding]:
    """Read every held file, and compare it with its digest."""
    held = holdings.holdings(db)
    lost = [one.key for one in held.values() if read_held(home.commons_path, one) is None]
    for key in lost[:20]:
        text = f"the stored file of key {key} is missing or changed"
        yield Finding("files", "wrong", text, "remem pull or remem gossip brings it back; remem share, if it is yours")
    if len(lost) > 20:
        yield Finding("files", "wrong", f"{len(lost) - 20} more stored files are missing or changed")
    if not lost:
        yield Finding("files", "ok", f"{len(held)} stored files are what they should be")


def check_items(db: sqlite3.Connection, *, mend: bool) -> Iterator[Finding]:
    """Compare the items that peers are told of with what is held; make them anew where that is asked for."""
    faults = items.check(db)
    if not faults:
        yield Finding("items", "ok", "the items for peers are those of the stored files")
    elif mend:
        with transaction(db):
            items.rebuild(db)
        yield Finding("items", "warning", f"the items for peers had {len(faults)} faults, and were made anew")
    else:
        for fault in faults[:20]:
            yield Finding("items", "wrong", fault, "remem doctor --mend makes the items anew")


def check_targets(home: Home) -> Iterator[Finding]:
    """Ask every target of the settings who it is."""
    try:
        targets = home.config().targets
    except RememError as error:
        yield Finding("settings", "wrong", error.message, error.hint)
        return
    for target in targets:
        try:
            with closing(commons_at(target.address, target.token)) as commons:
                if commons.describe() is None:
                    commons.index(None)
                yield Finding("targets", "ok", f"{target.address} answers")
                yield from (Finding("targets", "warning", text) for text in commons.warnings)
        except RememError as error:
            # It may be away for a while, and then nothing of this memory is wrong.
            yield Finding("targets", "warning", error.message, error.hint)
    if not targets:
        yield Finding("targets", "ok", "no target is kept", "remem login TARGET keeps one")


def check_notices(home: Home, db: sqlite3.Connection) -> Iterator[Finding]:
    """Say what `remem status` warns of, beside the stored files."""
    for notice in status(home, db).notices:
        if notice.code != "stored_file":
            yield Finding(notice.code, "warning", notice.text)


def checked(home: Home, db: sqlite3.Connection, *, mend: bool = False) -> Iterator[Finding]:
    """Look at all of an open memory.

    Args:
        home: its home.
        db: its database, with no transaction open.
        mend: make the items for peers anew if something is wrong with them.
    """
    key = list(check_key(home))
    yield from key
    database = list(check_database(db))
    yield from database
    if is_wrong(database):
        # What a broken database says is no ground for more.
        return
    yield from check_files(home, db)
    yield from check_items(db, mend=mend)
    asked = list(check_targets(home))
    yield from asked
    if not is_wrong([*key, *asked]):
        yield from check_notices(home, db)


def is_wrong(found: Iterable[Finding]) -> bool:
    """Tell whether something is wrong, beyond what is only to be looked into."""
    return any(one.level == "wrong" for one in found)


def _strays(db: sqlite3.Connection) -> Sequence[sqlite3.Row]:
    return db.execute("PRAGMA foreign_key_check").fetchmany(20)
