"""What a server does among other nodes while it serves, in threads of its own.

- It goes a round among its peers about as often as the settings say, unless another server of this commons just did.
- What was put here or offered, and is news, it pushes to a few peers at once (`remem_gossip/relay.py`). Whoever brought
  it does not wait for that.
- What goes wrong is told in the log, and tried again another time.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from datetime import timedelta
from random import SystemRandom
from typing import Final

from remem.protocol import OriginFile, Verdict
from remem.protocol.items import item_of
from remem_gossip.errors import GossipError
from remem_gossip.exchange import Answer, Request
from remem_gossip.meeting import PUSH_PATIENCE, PUSH_SECONDS, Met, ask, deliver
from remem_gossip.parts import Outcome, Proof, Whole
from remem_gossip.parts import Verdict as Said
from remem_gossip.relay import Push, Relay
from remem_gossip.spans import Span
from remem_server.database.engine import DATABASE_ERRORS, is_unavailable, why_of, writing
from remem_server.gossip import peers
from remem_server.gossip.node import ServerNode
from remem_server.gossip.peers import Peer
from remem_server.gossip.rounds import ROUND_SECONDS, alone, dial_peer, go_round
from remem_server.opening.context import Commons

_log: Final = logging.getLogger("remem_server")
_OUTCOMES: Final = {Verdict.NEW: Outcome.NEW, Verdict.NEWER: Outcome.NEWER, Verdict.EQUIVOCATION_TAKEN: Outcome.NEWER}
# What comes within so long goes together.
_TOGETHER_SECONDS: Final = 0.2
_END_SECONDS: Final = 2.0
_MINUTE: Final = 60.0


class Gossiping:
    """What one server does in the background.

    Args:
        commons: whose server.
        told: told of each exchange once it is over.
    """

    def __init__(self, commons: Commons, told: Callable[[Met], None]) -> None:
        self._commons = commons
        self._told = told
        self._random = SystemRandom()
        self._relay = Relay()
        self._news = threading.Condition()
        self._ending = threading.Event()
        self._life = Span()
        self._threads: list[threading.Thread] = []

    def start(self) -> None:
        """Begin."""
        work = [self._push] + ([self._go_rounds] if self._commons.settings.gossip_minutes else [])
        for one in work:
            self._threads.append(threading.Thread(target=one, name=f"gossip{one.__name__}", daemon=True))
            self._threads[-1].start()

    def stop(self) -> None:
        """End; an exchange that is under way breaks off."""
        self._ending.set()
        self._life.end()
        with self._news:
            self._news.notify_all()
        for thread in self._threads:
            thread.join(_END_SECONDS)

    def published(self, file: OriginFile, verdict: Verdict) -> None:
        """Push on a file that was put here, if it is news."""
        outcome = _OUTCOMES.get(verdict)
        if outcome is not None and file.seal is not None:
            id_ = item_of(file.key, file.seal.time, file.digest).id
            self.note([Whole(id_, file.data)], [Said(id_, outcome)], "")

    def note(self, parts: Sequence[Whole | Proof], verdicts: Sequence[Said], source: str) -> None:
        """Push on what was offered, if it is news."""
        now = self._commons.clock()
        with self._news:
            self._relay.note(parts, verdicts, source, now)
            if len(self._relay):
                self._news.notify_all()

    # --- rounds ---

    def _go_rounds(self) -> None:
        seconds = self._commons.settings.gossip_minutes * _MINUTE
        wait = self._random.uniform(0, seconds)
        while not self._ending.wait(wait):
            with self._unless_away("a round among the peers"):
                self._go_round()
            wait = self._random.uniform(seconds / 2, seconds * 3 / 2)

    def _go_round(self) -> None:
        commons = self._commons
        with alone(commons) as is_alone:
            if not is_alone:
                return
            with commons.engine.connect() as connection:
                last = peers.last_tried(connection)
            if last is not None and commons.clock() - last < timedelta(minutes=commons.settings.gossip_minutes / 2):
                return
            time = Span(ROUND_SECONDS, within=self._life)
            go_round(commons, self._random, time=time, told=self._tell)

    def _tell(self, met: Met) -> None:
        if not self._ending.is_set():
            self._told(met)

    # --- pushes ---

    def _push(self) -> None:
        while not self._ending.is_set():
            with self._news:
                self._news.wait_for(lambda: len(self._relay) or self._ending.is_set())
            if self._ending.wait(_TOGETHER_SECONDS):
                return
            with self._unless_away("a push of news"):
                self._push_once()

    def _push_once(self) -> None:
        with self._commons.engine.connect() as connection:
            known = {peer.url: peer for peer in peers.list_all(connection)}
        with self._news:
            push = self._relay.next([one.standing for one in known.values()], self._commons.clock(), self._random)
        if push is not None and known:
            self._deliver(push, known)

    def _deliver(self, push: Push, known: dict[str, Peer]) -> None:
        time = Span(PUSH_SECONDS, within=self._life)
        steps = self._relay.steps(ServerNode(self._commons, self._random), push)
        deliver(steps, lambda url, request: self._ask(known[url], request, time), time)

    def _ask(self, peer: Peer, request: Request, time: Span) -> Answer | None:
        try:
            with closing(dial_peer(self._commons, peer, time, PUSH_PATIENCE)) as dial:
                return ask(dial, request)
        except GossipError:
            if not time.is_ended:
                with writing(self._commons.engine) as connection:
                    peers.note_failed(connection, peer.url, self._commons.clock())
            return None

    @contextmanager
    def _unless_away(self, what: str) -> Iterator[None]:
        try:
            yield
        except DATABASE_ERRORS as error:
            if self._ending.is_set():
                return
            if not is_unavailable(error):
                raise
            _log.warning("%s has to wait: %s", what, why_of(error))
