"""Pull: bring the newest files of a commons into this memory (PROTOCOL.md, sections 7, 9 and 11).

1. Ask who the commons is, and what changed behind the bookmark. One that refuses is left as if it had not been met.
2. Meet it: its keys are pinned as revokers at first contact, and told until a pull has ended; a key that it names
   later is only reported. Nothing new ends the pull here.
3. Take over whom the commons admits.
4. Choose: what is newer than what is held and was not refused before. Trusted revokers come first, then keys that
   the owner follows, then updates of held keys, and then, as far as the budget goes, admitted keys and the rest.
5. Fetch ahead and accept each file as if it came from a stranger, some at a time beside the intake that writes them.
6. Move the bookmark, if nothing was left over. So a pull that is cut short loses what was about to be written and
   nothing else, and the next one goes on.
"""

from __future__ import annotations

import sqlite3
from collections import deque
from collections.abc import Collection, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from remem.commons import BLOCKED, BadAnswer, Commons, CommonsRefused, Descriptor, Entry, Listing, is_url
from remem.errors import Unreachable
from remem.memory import ledger, places, records, trust
from remem.memory.home import Home
from remem.memory.store import transaction
from remem.progress import Progress
from remem.protocol import Deferred, OriginFile, ProtocolError, Verdict, accept, digest_of, newest
from remem.protocol.items import item_id
from remem.sharing.intake import Intake
from remem.sharing.mind import Mind
from remem.sharing.reports import LeftFile, Notice, PullReport, Stopped

FETCHERS: Final = 4
WINDOW: Final = 32
BAD_MOST: Final = 100


def pull(
    home: Home, db: sqlite3.Connection, commons: Commons, *, now: datetime, progress: Progress | None = None
) -> PullReport:
    """Bring the newest files of a commons into this memory.

    Args:
        home: the memory's home.
        db: its database, with no transaction open.
        commons: where to pull from.
        now: the clock, with a zone.
        progress: told how many files of how many are done.

    Raises:
        Unreachable: the commons did not answer, before anything was fetched.
        CommonsRefused: it answers, and refuses.
    """
    config = home.config()
    mind = Mind(db, home.signing_key().public.hex, config)
    with Intake(home.commons_path, db, mind, budget=config.budget_bytes, now=now) as intake:
        return _Pull(db, commons, intake).run(progress or (lambda _done, _all: None))


@dataclass(frozen=True, slots=True)
class _Fetched:
    """What came for a listed file: how many bytes, and the accepted file or what is wrong with it."""

    size: int
    file: OriginFile | None = None
    beside: str | None = None
    fault: ProtocolError | None = None
    digest: str = ""


@dataclass(slots=True)
class _Left:
    """What a pull left where it was; see `PullReport`.

    Of the files that are `bad`, only the `failures` are asked for again: the others are refused for good.
    """

    current: int = 0
    refused: list[LeftFile] = field(default_factory=list)
    deferred: list[LeftFile] = field(default_factory=list)
    over_budget: int = 0
    failures: int = 0
    bad: int = 0
    interrupted: str | None = None

    @property
    def over(self) -> bool:
        """Whether the next pull has to ask for something of this one again."""
        return bool(self.deferred or self.over_budget or self.failures or self.interrupted)


class _Pull:
    """One pull: the state that its steps share."""

    def __init__(self, db: sqlite3.Connection, commons: Commons, intake: Intake) -> None:
        self.db = db
        self.commons = commons
        self.target = commons.target
        self.intake = intake
        self.mind = intake.mind
        self.now = intake.now
        self.left = _Left()
        self.notices = [Notice("plain_http", text) for text in commons.warnings]
        self.pinned: list[str] = []
        self.bytes = 0

    def run(self, progress: Progress) -> PullReport:
        descriptor = self.commons.describe()
        bookmark = places.place(self.db, self.target).bookmark
        self.intake.judge_again()
        self.intake.mend()
        listing = self.commons.index(None if self.intake.broken else bookmark)
        self._meet(descriptor)
        if not listing.unchanged:
            self._admit(listing)
            self._fetch_all(self._choose(listing), progress)
        with transaction(self.db):
            places.note_pulled(self.db, self.target, bookmark if self.left.over else listing.bookmark, self.now)
            ledger.prune(self.db, self.now)
        self._look_at_own_file(listing)
        return self._report(listing)

    # --- 2: meet ---

    def _meet(self, descriptor: Descriptor | None) -> None:
        if descriptor is None:
            return
        with transaction(self.db):
            places.note_private(self.db, self.target, is_private=descriptor.private)
        place, revokers = places.place(self.db, self.target), trust.everything(self.db, "revoker")
        if place.keys is None:
            self._pin(descriptor.keys)
            return
        if place.pulled is None:
            # The pull that pinned them came to no end, and told nobody.
            self.pinned = [one.key for one in revokers if one.via == self.target and not one.declined]
        said = {one.key for one in revokers}
        for key in descriptor.keys:
            if key not in place.keys and key not in said and key != self.mind.key:
                text = f"{self.target} names key {key}, which it did not at first contact; it is not trusted by itself"
                self.notices.append(Notice("changed_key", text))

    def _pin(self, keys: tuple[str, ...]) -> None:
        with transaction(self.db):
            places.meet(self.db, self.target, keys)
            for key in keys:
                if key != self.mind.key and trust.pin(self.db, key, "revoker", self.target, self.now):
                    self.pinned.append(key)
            if self.pinned:
                self.mind.reread(self.now)

    # --- 3 and 4: admit and choose ---

    def _admit(self, listing: Listing) -> None:
        principals = {entry.key: entry.principal for entry in listing.entries if entry.key != self.mind.key}
        own = [entry.version for entry in listing.entries if entry.key == self.mind.key]
        with transaction(self.db):
            if places.admit(self.db, self.target, principals, whole=listing.whole):
                self.mind.reread(self.now)
            if own or listing.whole:
                places.note_own(self.db, self.target, own[-1] if own else None)

    def _choose(self, listing: Listing) -> list[Entry]:
        proven = {one.key for one in places.equivocations(self.db)}
        wanted: list[tuple[int, Entry]] = []
        for entry in listing.entries:
            if entry.key == self.mind.key:
                continue
            if not self._is_wanted(entry, proven):
                self.left.current += 1
            elif (code := self._settled(entry)) is None:
                wanted.append((self.intake.rank(entry.key), entry))
            elif code == ledger.SUPERSEDED:
                self.left.current += 1
            else:
                self.left.refused.append(LeftFile(entry.key, code, "refused before, and not fetched again"))
        self.left.refused += [LeftFile(one.name, one.code, one.detail) for one in listing.unreadable]
        return [entry for _rank, entry in sorted(wanted, key=lambda found: found[0])]

    def _settled(self, entry: Entry) -> str | None:
        """Return why a version is not wanted again; None where it is."""
        name = item_id(entry.key, entry.version.digest)
        return ledger.settled(self.db, [name]).get(name)

    def _is_wanted(self, entry: Entry, proven: Collection[str]) -> bool:
        verdict = newest(self.intake.version(entry.key), entry.version)
        if verdict is Verdict.UNCHANGED:
            return entry.key in self.intake.broken
        return verdict.takes or (verdict.equivocation and entry.key not in proven)

    # --- 5: fetch and accept ---

    def _fetch_all(self, wanted: list[Entry], progress: Progress) -> None:
        progress(0, len(wanted))
        fetchers = ThreadPoolExecutor(FETCHERS, thread_name_prefix="remem-fetch")
        try:
            for done, (entry, fetched) in enumerate(self._ahead(fetchers, wanted), 1):
                try:
                    self._take(entry, fetched.result())
                except (BadAnswer, CommonsRefused) as error:
                    if error.code == BLOCKED:
                        # A fact about that host, which would be the same tomorrow: nothing is left over by it.
                        self.left.refused.append(LeftFile(entry.key, error.code, error.message))
                    else:
                        self._fail(entry, error.code, error.message)
                except Unreachable as error:
                    self.left.interrupted = error.message
                # Whoever may write into a folder must not be able to hide its honest files behind bad ones.
                if self.left.bad >= BAD_MOST and is_url(self.target):
                    self.left.interrupted = f"{self.target} gave {BAD_MOST} files that are not what they should be"
                if self.left.interrupted is not None:
                    # What came so far is kept, and what is missing is asked for again.
                    break
                progress(done, len(wanted))
        finally:
            fetchers.shutdown(cancel_futures=True)
        self.intake.write()

    def _ahead(self, fetchers: ThreadPoolExecutor, wanted: list[Entry]) -> Iterator[tuple[Entry, Future[_Fetched]]]:
        """Fetch ahead of what is being written, while there is room, and hand out in order."""
        waiting: deque[tuple[Entry, Future[_Fetched]]] = deque()
        for entry in wanted:
            if not self.intake.may_fit(entry.key):
                self.left.over_budget += 1
                continue
            waiting.append((entry, fetchers.submit(self._fetch, entry)))
            if len(waiting) >= WINDOW:
                yield waiting.popleft()
        while waiting:
            yield waiting.popleft()

    def _fetch(self, entry: Entry) -> _Fetched:
        """Fetch a file and accept it; runs beside the writing, and touches no state of the pull."""
        data = self.commons.get(entry.key, entry.version.digest)
        if data is None:
            return _Fetched(0)
        verified, beside = self.intake.verified(entry.key)
        try:
            file = accept(data, now=self.now, verified=verified)
        except ProtocolError as error:
            return _Fetched(len(data), fault=error, digest=digest_of(data))
        return _Fetched(len(data), file, beside)

    def _take(self, entry: Entry, fetched: _Fetched) -> None:
        self.bytes += fetched.size
        file = fetched.file
        if isinstance(fetched.fault, Deferred):
            self.left.deferred.append(LeftFile(entry.key, fetched.fault.code, str(fetched.fault)))
            self.left.bad += 1
        elif fetched.fault is not None:
            self._refuse(entry, fetched.digest, fetched.fault)
        elif file is None:
            self._fail(entry, "file_unknown", "expected the file that is listed, got none")
        elif file.key.hex != entry.key:
            self._fail(entry, "name_mismatch", f"expected a file of this key, got one of {file.key.hex}")
        else:
            if newest(entry.version, file.version) in (Verdict.OLDER, Verdict.EQUIVOCATION_LEFT):
                self._fail(entry, "older_file", f"expected seal {entry.version.seal}, got {file.version.seal}")
            if not self.intake.add(file, self.target, fetched.beside):
                self.left.over_budget += 1

    def _refuse(self, entry: Entry, digest: str, error: ProtocolError) -> None:
        if digest != entry.version.digest:
            # Something else than the listed version came, so nothing is known about that one.
            self._fail(entry, error.code, str(error))
            return
        self.left.refused.append(LeftFile(entry.key, error.code, str(error)))
        self.left.bad += 1
        with transaction(self.db):
            ledger.note(self.db, [item_id(entry.key, digest)], error.code, self.now)

    def _fail(self, entry: Entry, code: str, detail: str) -> None:
        self.left.refused.append(LeftFile(entry.key, code, detail))
        self.left.failures += 1
        self.left.bad += 1

    # --- 6: the end ---

    def _look_at_own_file(self, listing: Listing) -> None:
        own, known = places.place(self.db, self.target).own, places.places(self.db)
        sent = max((place.shared_seal or 0 for place in known), default=0)
        if own is None:
            if listing.whole and any(place.target == self.target and place.shared_seal for place in known):
                self.notices.append(Notice("stale_mirror", f"{self.target} no longer lists this memory's own file"))
        elif own.seal is not None and own not in records.own_seals(self.db):
            text = (
                f"{self.target} lists a file of this memory's own key, seal {own.seal}, that this memory did not make"
            )
            self.notices.append(Notice("foreign_seal", text))
        elif (own.seal or 0) < sent:
            text = f"{self.target} lists seal {own.seal} of this memory's own file, and {sent} was published"
            self.notices.append(Notice("stale_mirror", text))

    def _report(self, listing: Listing) -> PullReport:
        left, came, effects = self.left, self.intake.tally, self.mind.effects
        return PullReport(
            target=self.target,
            at=self.now,
            unchanged=listing.unchanged,
            taken=tuple(came.taken),
            current=left.current + came.current,
            skipped=tuple(came.skipped),
            skipped_count=came.skipped_count,
            learned=effects.learned,
            corroborated=tuple(sorted(effects.corroborated)),
            stopped=tuple(Stopped(lesson, why) for lesson, why in sorted(effects.stopped.items())),
            resumed=tuple(sorted(effects.resumed)),
            refused=tuple(left.refused),
            deferred=tuple(left.deferred),
            over_budget=left.over_budget,
            pinned=tuple(self.pinned),
            notices=(*self.notices, *came.told),
            bytes=self.bytes,
            complete=not (left.over or listing.more),
            interrupted=left.interrupted,
        )
