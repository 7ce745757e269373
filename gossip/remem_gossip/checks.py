"""What `remem doctor` looks at in a memory's peers: whether a few lies or failures could be all that it hears."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Final
from urllib.parse import urlsplit

from remem.memory.home import Home
from remem.sharing.health import Finding
from remem_gossip.choosing import FEW_PEERS
from remem_gossip.extra import is_installed
from remem_gossip.peers import Peer, known_peers

_CHECK: Final = "peers"
_WORD_POOR: Final = 0.5


def check_peers(home: Home, db: sqlite3.Connection, *, now: datetime) -> Sequence[Finding]:
    """Look at the peers of a memory; none of them is asked."""
    del home
    found = list(_findings(known_peers(db, now)))
    return found or [Finding(_CHECK, "ok", f"{FEW_PEERS} peers or more, on different hosts")]


def _findings(known: Sequence[Peer]) -> Iterator[Finding]:
    if not is_installed():
        yield Finding(_CHECK, "warning", "gossip needs a library that is missing", "pip install 'remem[gossip]'")
    if len(known) < FEW_PEERS:
        text = f"expected at least {FEW_PEERS} peers, got {len(known)}: what they hold back nobody else tells"
        yield Finding(_CHECK, "warning", text, "remem peers add URL; remem peers discover suggests some")
    hosts = {urlsplit(peer.url).hostname for peer in known}
    if len(known) > 1 and len(hosts) == 1:
        text = f"all {len(known)} peers are on {hosts.pop()}: one failure takes all of them away"
        yield Finding(_CHECK, "warning", text, "remem peers discover suggests others")
    for peer in known:
        if peer.standing.word < _WORD_POOR:
            kept = f"{peer.standing.delivered} of {peer.standing.promised}"
            yield Finding(_CHECK, "warning", f"{peer.url} delivered {kept} files that it promised")
