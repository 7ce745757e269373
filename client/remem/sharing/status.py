"""What this memory is at a glance: what it holds, what it says, and what its owner should look into."""

from __future__ import annotations

import sqlite3
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from remem.memory import holdings, places, records, trust
from remem.memory.census import LessonCount, events_and_episodes, lesson_counts
from remem.memory.home import Home
from remem.memory.intake import unread_bytes
from remem.memory.places import Equivocation, Place
from remem.protocol import RULES, Version
from remem.sharing.files import damaged
from remem.sharing.reports import Notice, Room

_NEARLY_FULL: Final = 0.9


@dataclass(frozen=True, slots=True)
class StatusReport:
    """What a memory is.

    Attributes:
        key: its own key.
        origin: the short name of that key.
        events: how many events it was told.
        episodes: how many episodes they became.
        lessons: its lessons, by source and state.
        holdings: how many files of others it holds.
        held_bytes: their bytes.
        budget_bytes: how many bytes they may take.
        seal: the newest seal that it made.
        retired: its key withdrew for good.
        confirmations: how many it says.
        revocations: how many it says.
        denials: how many it says.
        room: what its own file, as it was sealed last, could still take.
        places: the commons that it pulls from or shares to.
        inbox_bytes: how many bytes of the inbox were not read yet.
        revokers: how many keys it trusts as revokers.
        followed: how many keys it follows.
        equivocations: keys that sealed two files with one number.
        notices: what the owner should look into.
    """

    key: str
    origin: str
    events: int
    episodes: int
    lessons: tuple[LessonCount, ...]
    holdings: int
    held_bytes: int
    budget_bytes: int
    seal: Version | None
    retired: bool
    confirmations: int
    revocations: int
    denials: int
    room: Room
    places: tuple[Place, ...]
    inbox_bytes: int
    revokers: int
    followed: int
    equivocations: tuple[Equivocation, ...]
    notices: tuple[Notice, ...]


def status(home: Home, db: sqlite3.Connection) -> StatusReport:
    """Look at a memory."""
    key, config = home.signing_key().public, home.config()
    held = holdings.holdings(db)
    own = held.pop(key.hex, None)
    said = Counter(record.type for record in records.own_records(db))
    events, episodes = events_and_episodes(db)
    broken, _strays = damaged(home.commons_path, held)
    notices = [Notice("rejected_lines", _rejected(path)) for path in home.rejected_files()]
    if broken:
        text = f"{len(broken)} stored files are missing or changed; a pull brings them back"
        notices.append(Notice("stored_file", text))
    taken = sum(holding.size for holding in held.values())
    if taken >= _NEARLY_FULL * config.budget_bytes:
        text = f"the files of others take {taken} of budget_bytes = {config.budget_bytes}: newcomers may find no room"
        notices.append(Notice("budget", text))
    return StatusReport(
        key=key.hex,
        origin=key.origin,
        events=events,
        episodes=episodes,
        lessons=lesson_counts(db),
        holdings=len(held),
        held_bytes=taken,
        budget_bytes=config.budget_bytes,
        seal=records.newest_seal(db),
        retired=records.is_retired(db),
        confirmations=said["confirm"],
        revocations=said["revoke"],
        denials=said["deny"],
        room=Room(
            RULES.file_records - (0 if own is None else own.records),
            RULES.file_bytes - (0 if own is None else own.size),
        ),
        places=tuple(one for one in places.places(db) if one.pulled or one.shared),
        inbox_bytes=unread_bytes(home, db),
        revokers=len(trust.trusted(db, "revoker")),
        followed=len(trust.trusted(db, "follow")),
        equivocations=places.equivocations(db),
        notices=tuple(notices),
    )


def _rejected(path: Path) -> str:
    return f"{path} has lines that are no events: mend them, then remem ingest --events, and remove it"
