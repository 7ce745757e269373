"""Share: seal what this memory says, and put it at its targets (PROTOCOL.md, section 10).

1. Read the own file at every target that answers. A seal there that this memory did not log was made elsewhere: by
   this memory before it was restored, by a second machine, or by a thief. That stops it, unless the owner adopts
   the file: all that it says becomes this memory's own word, and its seal is logged.
2. Put together what the memory says. If the last file says the same, its very bytes go out again.
3. Otherwise seal it, with a number above every own seal that the memory or a target holds; those that a clock far
   ahead made are left aside, and such a file is not sent again.
4. Log the seal and keep the bytes, and only then send them: a seal that went out unlogged would look foreign. Where
   they are sent is noted before too.

`withdraw` does the same with the revocations alone, of every lesson that ever left; for good, with the last seal.
A rehearsal does all of it but 4, and then undoes it.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from remem.commons import Commons, CommonsRefused
from remem.commons.folder import sweep, write_file
from remem.errors import Refused, Unreachable
from remem.memory import holdings, lessons, places, records
from remem.memory.home import Home
from remem.memory.records import OwnRecord
from remem.memory.store import transaction
from remem.protocol import (
    RULES,
    Deferred,
    Lesson,
    OriginFile,
    ProtocolError,
    SigningKey,
    Version,
    accept,
    compose,
    judge,
    newest,
    sign_record,
)
from remem.sharing.draft import Draft, draft, draft_of_revocations
from remem.sharing.files import END_OF_TIME, read_held, writing
from remem.sharing.mind import Mind
from remem.sharing.privacy import Machine
from remem.sharing.readings import Reader, reader
from remem.sharing.reports import Notice, Room, ShareReport, TargetResult
from remem.sharing.seal import KeyRetired, NextSeal, check_not_retired, is_near, next_seal
from remem.sharing.taken_back import taken_back

FAR_AHEAD: Final = "a clock that was far ahead sealed the file there: have it removed there, then share again"


class ForeignSeal(Refused):
    """A target holds a file of this memory's own key that this memory did not make."""

    code = "foreign_seal"

    def __init__(self, target: str, version: Version) -> None:
        super().__init__(
            f"expected at {target} a file that this memory made, got seal {version.seal}, which it did not log",
            "after a restore or with a second machine, --adopt takes that file over; else someone has your key",
        )
        self.version = version


def share(
    home: Home,
    db: sqlite3.Connection,
    targets: Sequence[Commons],
    *,
    machine: Machine,
    now: datetime,
    also: Collection[str] = (),
    adopt: bool = False,
    rehearse: bool = False,
) -> ShareReport:
    """Publish what this memory says.

    Args:
        home: the memory's home.
        db: its database, with no transaction open.
        targets: where to put the file.
        machine: whose names must not leave.
        now: the clock, with a zone.
        also: hashes of lessons that the owner chooses to let go, now and from now on.
        adopt: take over a file of this memory's own key that was made elsewhere.
        rehearse: send nothing and change nothing; the report has the bytes that would leave.

    Raises:
        ForeignSeal: a target holds a file that was made elsewhere, and `adopt` is not set.
        KeyRetired: the key withdrew for good.
        Refused: a chosen lesson is not this memory's own, or what must not be left out has no room.
        Unreachable: no target answered.
    """

    def put_together(key: SigningKey) -> Draft:
        this = reader(db, key.public.hex, home.config())
        _choose(db, also, this, now)
        return draft(db, key.public, machine, this, now)

    return _Publication(home, db, targets, now, adopt, rehearse).run(put_together)


def withdraw(
    home: Home,
    db: sqlite3.Connection,
    targets: Sequence[Commons],
    *,
    machine: Machine,
    now: datetime,
    for_good: bool = False,
    adopt: bool = False,
    rehearse: bool = False,
) -> ShareReport:
    """Take back every lesson that ever left, and say nothing else any more.

    Args:
        home: the memory's home.
        db: its database, with no transaction open.
        targets: where to put the file.
        machine: whose names must not leave.
        now: the clock, with a zone.
        for_good: seal it with the last seal, which retires the key.
        adopt: take over a file of this memory's own key that was made elsewhere.
        rehearse: send nothing and change nothing; the report has the bytes that would leave.

    Raises:
        ForeignSeal: a target holds a file that was made elsewhere, and `adopt` is not set.
        KeyRetired: the key withdrew for good before; with `for_good`, the last file goes out again instead.
        Refused: nothing ever left, or there are more lessons than a file has room for revocations.
        Unreachable: no target answered.
    """

    def put_together(key: SigningKey) -> Draft:
        if records.newest_seal(db) is None and not for_good:
            raise Refused("expected a memory that has published something, got one that never did")
        revoked = {record.subject for record in records.own_records(db) if record.type == "revoke"}
        for lesson in sorted(records.published(db) - revoked):
            records.put_record(db, OwnRecord("revoke", lesson, now))
        return draft_of_revocations(db, key.public, machine, now)

    return _Publication(home, db, targets, now, adopt, rehearse).run(put_together, last=for_good)


class _Undo(Exception):
    """Ends the transaction of a rehearsal, which changes nothing."""


@dataclass(frozen=True, slots=True)
class _Seen:
    """What a target holds of this memory's own key; or why nothing could be seen."""

    commons: Commons
    file: OriginFile | None = None
    result: TargetResult | None = None


class _Publication:
    """One publication: the state that its steps share."""

    def __init__(
        self,
        home: Home,
        db: sqlite3.Connection,
        targets: Sequence[Commons],
        now: datetime,
        adopt: bool,
        rehearse: bool,
    ) -> None:
        self.home = home
        self.db = db
        self.now = now
        self.adopt = adopt
        self.rehearse = rehearse
        self.targets = targets
        self.key = home.signing_key()
        self.notices = [Notice("plain_http", text) for commons in targets for text in commons.warnings]
        self.adopted: list[Version] = []
        self.renewed = False

    def run(self, put_together: Callable[[SigningKey], Draft], *, last: bool = False) -> ShareReport:
        if records.is_retired(self.db):
            return self._say_the_last_again(last)
        seen = [self._look(commons) for commons in self.targets]
        if not self.rehearse:
            self._check_any(seen)
        try:
            with transaction(self.db):
                self._adopt([one for one in seen if one.file is not None])
                whole = put_together(self.key)
                file = self._seal(whole, [one.file.version for one in seen if one.file is not None], last=last)
                if self.rehearse:
                    raise _Undo
                self._keep(file)
        except _Undo:
            results = tuple(one.result or TargetResult(one.commons.target, "ready") for one in seen)
        else:
            results = tuple(one.result or self._send(one.commons, file) for one in seen)
        return self._report(file, whole, results)

    def _say_the_last_again(self, last: bool) -> ShareReport:
        """Send the last file once more, for a target that missed it; a retired key says nothing else."""
        file = self._stored() if last else None
        if file is None or file.seal is None or not file.seal.last:
            raise KeyRetired
        room = Room(RULES.file_records - len(file.lines), RULES.file_bytes - len(file.data))
        results = tuple(
            TargetResult(one.target, "ready") if self.rehearse else self._send(one, file) for one in self.targets
        )
        return self._report(file, Draft((), (), (), room), results)

    # --- 1: what is there ---

    def _look(self, commons: Commons) -> _Seen:
        try:
            data = commons.get(self.key.public.hex)
        except (Unreachable, CommonsRefused) as error:
            return _Seen(commons, result=_failure(commons.target, error))
        if data is None:
            return _Seen(commons)
        try:
            file = accept(data, now=END_OF_TIME)
        except ProtocolError as error:
            self.notices.append(Notice(error.code, f"what {commons.target} holds under this memory's key: {error}"))
            return _Seen(commons)
        return _Seen(commons, file if file.key == self.key.public else None)

    def _check_any(self, seen: Sequence[_Seen]) -> None:
        """Stop where no target can be reached: there is nobody to seal for."""
        failed = [one.result for one in seen if one.result is not None]
        if len(failed) == len(seen) and failed:
            first = failed[0]
            message = first.detail or f"expected an answer from {first.target}, got none"
            if first.outcome == "refused":
                raise CommonsRefused(first.code or "refused", message, first.hint)
            raise Unreachable(message, first.hint)

    def _adopt(self, seen: Sequence[_Seen]) -> None:
        own = records.own_seals(self.db)
        newest_foreign: OriginFile | None = None
        for one in seen:
            file = one.file
            if file is None or file.seal is None or file.version in own:
                continue
            if not self.adopt:
                raise ForeignSeal(one.commons.target, file.version)
            records.log_seal(self.db, file.version, self.now)
            self.adopted.append(file.version)
            if newest_foreign is None or newest(newest_foreign.version, file.version).takes:
                newest_foreign = file
        if newest_foreign is not None:
            take_over(self.db, newest_foreign, self.now)
            # What the file revokes stops here too.
            Mind(self.db, self.key.public.hex, self.home.config()).reread(self.now)
        check_not_retired(self.db)

    # --- 2 and 3: seal ---

    def _seal(self, whole: Draft, seen: Sequence[Version], *, last: bool) -> OriginFile:
        numbers = {version.seal for version in seen if version.seal is not None}
        logged = records.newest_seal(self.db)
        if logged is not None and logged.seal is not None:
            numbers.add(logged.seal)
        kept = None if last else self._kept(whole, max((one for one in numbers if is_near(one, self.now)), default=0))
        if kept is not None:
            return kept
        self.renewed = True
        seal = next_seal(self.now, numbers)
        if last:
            seal = NextSeal(RULES.last_seal, self.now)
        data = compose(self.key, whole.contents, number=seal.number, at=seal.at)
        return accept(data, now=seal.at)

    def _kept(self, whole: Draft, highest: int) -> OriginFile | None:
        """Return the last file, if it says the same and nothing newer was sealed."""
        file = self._stored()
        if file is None or file.version.seal != highest:
            return None
        try:
            accept(file.data, now=self.now)
        except Deferred:
            # A clock that was ahead made it, and whoever has a right one would not take it yet.
            return None
        lines = tuple(sign_record(self.key, {**fields, "sealed": True}) for fields in whole.contents)
        return file if file.lines == lines else None

    def _stored(self) -> OriginFile | None:
        held = holdings.holding(self.db, self.key.public.hex)
        data = None if held is None else read_held(self.home.commons_path, held)
        return None if data is None else accept(data, now=END_OF_TIME)

    # --- 4: keep and send ---

    def _keep(self, file: OriginFile) -> None:
        if not self.renewed:
            return
        records.log_seal(self.db, file.version, self.now)
        records.log_published(self.db, _published(file), self.now)
        holdings.take(self.db, [holdings.judged(file, places.OWN)], self.now)
        with writing(self.home.commons_path):
            sweep(self.home.commons_path)
            write_file(self.home.commons_path, file.key.hex, file.data)

    def _send(self, commons: Commons, file: OriginFile) -> TargetResult:
        # The place first: whatever is taken back later is taken back there too, though no answer ever came.
        if places.place(self.db, commons.target).shared is None:
            with transaction(self.db):
                places.note_sent(self.db, commons.target, self.now)
        try:
            # Before anything can lie there: it says whether peers may have it.
            if (descriptor := commons.describe()) is not None:
                with transaction(self.db):
                    places.note_private(self.db, commons.target, is_private=descriptor.private)
            published = commons.put(file)
        except (Unreachable, CommonsRefused) as error:
            held = error.held if isinstance(error, CommonsRefused) else None
            ours = held is not None and held in records.own_seals(self.db)
            if ours and held is not None and (is_near(held.seal or 0, self.now) or held.seal == RULES.last_seal):
                # Another process of this memory was faster, and said more.
                return TargetResult(commons.target, "superseded")
            if not self._may_be_at(commons):
                with transaction(self.db):
                    places.note_not_there(self.db, commons.target)
            result = _failure(commons.target, error)
            return replace(result, hint=FAR_AHEAD) if ours else result
        with transaction(self.db):
            places.note_shared(self.db, commons.target, file.version.seal, self.now)
        return TargetResult(commons.target, published.outcome, skipped=published.skipped)

    def _may_be_at(self, commons: Commons) -> bool:
        """Tell whether a file of this memory may lie at a target that did not take one."""
        if places.place(self.db, commons.target).shared_seal is not None:
            return True
        try:
            return commons.get(self.key.public.hex) is not None
        except (Unreachable, CommonsRefused):
            return True

    def _report(self, file: OriginFile, whole: Draft, results: tuple[TargetResult, ...]) -> ShareReport:
        counts = Counter(record.type for record in file.records)
        return ShareReport(
            at=self.now,
            rehearsed=self.rehearse,
            version=file.version,
            data=file.data,
            renewed=self.renewed,
            lessons=counts["lesson"],
            confirmations=counts["confirm"],
            revocations=counts["revoke"],
            denials=counts["deny"],
            held_back=whole.held_back,
            left_out=whole.left_out,
            room=whole.room,
            adopted=tuple(self.adopted),
            results=results,
            notices=tuple(self.notices),
        )


def _failure(target: str, error: Unreachable | CommonsRefused) -> TargetResult:
    if isinstance(error, CommonsRefused):
        return TargetResult(target, "refused", error.code, error.message, hint=error.hint)
    return TargetResult(target, "unreachable", None, error.message, hint=error.hint)


def _choose(db: sqlite3.Connection, also: Collection[str], this: Reader, now: datetime) -> None:
    for reference in also:
        lesson = lessons.get_lesson(db, reference)
        if lesson.source == "received":
            raise Refused(
                f"expected a lesson that this memory learned, got {lesson.hash}, which came from others",
                f"a lesson of others is backed by a confirmation: remem confirm {lesson.hash[:16]} --episode ID",
            )
        lessons.choose(db, lesson.hash, insisted=bool(taken_back(db, this, [lesson], now)))


def _published(file: OriginFile) -> list[str]:
    return [record.hash for record in file.records if isinstance(record, Lesson)]


def take_over(db: sqlite3.Connection, file: OriginFile, now: datetime) -> None:
    """Make all that a file of the own key says this memory's own word.

    What its readers would skip, and records of types that this version does not know, stay behind.
    """
    records.log_published(db, _published(file), now)
    for record in file.records:
        if judge(record) is not None:
            continue
        if isinstance(record, Lesson):
            records.restore_lesson(db, record)
        elif record.type in ("confirm", "revoke", "deny") and record.time is not None:
            reason = getattr(record, "reason", None)
            records.put_record(db, OwnRecord(record.type, record.subject, record.time, reason))
