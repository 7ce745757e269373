"""The pass of gossip behind every `remem sleep`, and what a night among peers says in words.

It is quiet where there is no peer. Whatever becomes of it, the sleep is done.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from datetime import datetime
from random import Random
from typing import TYPE_CHECKING

from remem.cli.added import Showing, Told
from remem.cli.output import count
from remem.memory.home import Home
from remem_gossip.extra import is_installed
from remem_gossip.peers import known_peers
from remem_gossip.words import met_words

if TYPE_CHECKING:
    # Where nobody gossips, nothing of the network is loaded.
    from remem_gossip.night import NightReport


def after_sleep(home: Home, db: sqlite3.Connection, *, now: datetime, random: Random, showing: Showing) -> Told | None:
    """Have exchanges with a few peers; None where there is none."""
    known = known_peers(db, now)
    if not known:
        return None
    if not is_installed():
        # Whoever only pulls from a commons did not ask for gossip.
        wanted = any(peer.source == "owner" for peer in known)
        return Told(None, warnings=("gossip waits: pip install 'remem[gossip]'",)) if wanted else None
    from remem_gossip.night import gossip

    with showing("gossiping") as bar:
        report = gossip(home, db, now=now, random=random, progress=bar)
    return Told(report, tuple(night_words(report)), tuple(f"{one.code}: {one.text}" for one in report.notices))


def night_words(report: NightReport) -> Iterator[str]:
    """Say what a night among peers did."""
    for met in report.met:
        yield from met_words(met)
    if report.learned:
        yield f"{count(report.learned, 'lesson')} of others came to mind"
    if report.resting:
        yield f"{count(len(report.resting), 'peer')} did not answer lately and will be asked again later"
