"""Where bare commands go, and how a place is left.

- A bare `share` or `withdraw` goes to the targets of config.toml, and to every place where this memory's file was
  ever put: what lies there is renewed and taken back with the rest.
- One whose memory has no such place, and has peers that its owner added, is sealed all the same: it goes to them.
- A bare `pull` goes to the targets of config.toml, and to every place that was ever pulled from.
- The targets come first, in their order, then the others, in that of their addresses; each once.
- A place that is forgotten is gone to no more. Its token goes, and its word about whom it admitted: an admission is
  of the commons that a memory pulls from. The trust in keys that were pinned there stays, since revocations are
  obeyed wherever they come from, and what was revoked must not come back by a farewell; to end it is a word of its
  own. So do the keys of first contact: a commons that is met again is held to be the same.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from datetime import datetime

from remem.commons import spell_target
from remem.errors import RememError, Usage
from remem.memory import places, trust
from remem.memory.config import remove_target
from remem.memory.home import Home
from remem.memory.store import transaction
from remem.sharing.mind import Mind
from remem.sharing.reports import ForgetReport, Stopped


def share_targets(home: Home, db: sqlite3.Connection) -> tuple[str, ...]:
    """Return where a bare `share` or `withdraw` goes; the settings have the token of an address, if there is one."""
    return _with_targets(home, (one.target for one in places.places(db) if one.shared is not None))


def goes_to_peers(db: sqlite3.Connection) -> bool:
    """Tell whether what this memory says has where to go without a target: its owner added a peer."""
    return bool(db.execute("SELECT EXISTS (SELECT 1 FROM peers WHERE source = 'owner')").fetchone()[0])


def pull_sources(home: Home, db: sqlite3.Connection) -> tuple[str, ...]:
    """Return where a bare `pull` goes; the settings have the token of an address, if there is one."""
    return _with_targets(home, (one.target for one in places.places(db) if one.pulled is not None))


def forget_place(home: Home, db: sqlite3.Connection, target: str, *, now: datetime) -> ForgetReport:
    """Go to a place no more, and forget its token and whom it admitted.

    Args:
        home: the memory's home.
        db: its database, with no transaction open.
        target: a URL or a folder.
        now: the clock, with a zone.

    Raises:
        RememError: this memory knows no such place.
    """
    address, config = _spelled(target), home.config()
    kept = [one for one in config.targets if _spelled(one.address) == address]
    before = places.place(db, address)
    with transaction(db):
        mind = Mind(db, home.signing_key().public.hex, config)
        known = places.forget(db, address)
        if not known and not kept:
            raise RememError(f"expected a commons that this memory knows, got {address}", "remem status lists them")
        mind.reread(now)
    for one in kept:
        remove_target(home.config_path, one.address)
    pinned = trust.everything(db, "revoker")
    return ForgetReport(
        address,
        any(one.token is not None for one in kept),
        before.shared,
        tuple(one.key for one in pinned if one.via == address and not one.declined),
        tuple(Stopped(lesson, why) for lesson, why in sorted(mind.effects.stopped.items())),
        tuple(sorted(mind.effects.resumed)),
    )


def _with_targets(home: Home, others: Iterable[str]) -> tuple[str, ...]:
    # In the spelling of the settings, which know the token by it.
    found: dict[str, str] = {}
    for one in home.config().targets:
        found.setdefault(_spelled(one.address), one.address)
    return (*found.values(), *(one for one in others if one not in found))


def _spelled(target: str) -> str:
    """Spell a target in the one way; what is none, and stands in the settings all the same, as it stands there."""
    try:
        return spell_target(target)
    except Usage:
        return target
