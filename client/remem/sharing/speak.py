"""What this memory says about single lessons and keys: confirmations, revocations, and whom it trusts.

- A confirmation rests on an episode of this memory that happened and was recorded after the lesson came, that is
  from a project that is opted in, and that resembles the lesson. Its time is cut to the episode's day. Nothing else
  makes one.
- A revocation holds in this memory at once, and leaves with the next share.
- A key that withdrew for good says neither: nothing of it can leave any more.
- A change of trust is followed by the mind in the same transaction.
"""

from __future__ import annotations

import shlex
import sqlite3
from datetime import UTC, datetime, time
from pathlib import Path

from remem.errors import Refused, RememError
from remem.memory import holdings, lessons, records, trust
from remem.memory.episodes import Episode, get_episode
from remem.memory.home import Home
from remem.memory.lessons import Lesson
from remem.memory.projects import outside, projects, resolved
from remem.memory.records import OwnRecord
from remem.memory.store import transaction
from remem.memory.trust import ROLES, Role
from remem.protocol import ProtocolError, PublicKey, SigningKey
from remem.sharing.draft import check_reason
from remem.sharing.lookup import find_hash
from remem.sharing.mind import Effects, Mind
from remem.sharing.privacy import Machine
from remem.sharing.reports import ConfirmReport, RevokeReport, Stopped, TrustReport
from remem.sharing.seal import check_not_retired
from remem.sleep.lessons_pass import MEET, came_after, likeness


def confirm(home: Home, db: sqlite3.Connection, reference: str, *, episode: str, now: datetime) -> ConfirmReport:
    """Say that a lesson of others came true here; it leaves with the next share.

    Args:
        home: the memory's home.
        db: its database, with no transaction open.
        reference: the lesson's hash, or the beginning of it.
        episode: the id of the episode in which it came true, or the beginning of it.
        now: the clock, with a zone.

    Raises:
        KeyRetired: the key withdrew for good.
        Refused: the lesson or the episode cannot carry a confirmation.
    """
    with transaction(db):
        check_not_retired(db)
        lesson = lessons.find_lesson(db, find_hash(db, reference))
        if lesson is None:
            raise Refused("expected a lesson that this memory has, got one that it only holds evidence about")
        if lesson.source != "received":
            raise Refused("expected a lesson that came from others, got one of this memory's own")
        met = get_episode(db, episode)
        alike = _check_confirmation(home, db, lesson, met)
        day = datetime.combine(min(met.at, now).date(), time(), UTC)
        before = {one.type: one for one in records.own_records(db, lesson.hash)}.get("confirm")
        if before is not None and before.at >= day:
            return ConfirmReport(lesson.hash, lesson.text, before.episode or met.id, before.at, alike, renewed=False)
        records.put_record(db, OwnRecord("confirm", lesson.hash, day, None, met.id))
        if before is None:
            lessons.raise_strength(db, [lesson.hash], now)
    return ConfirmReport(lesson.hash, lesson.text, met.id, day, alike, renewed=True)


def _check_confirmation(home: Home, db: sqlite3.Connection, lesson: Lesson, episode: Episode) -> float:
    """Return how alike the two are, where the episode may confirm the lesson."""
    if lesson.state in ("dropped", "vetoed"):
        raise Refused(f"expected a lesson that counts here, got one that is {lesson.state}")
    own = holdings.said_by(db, home.signing_key().public.hex)
    if any(said.type == "lesson" and said.subject == lesson.hash for said in own):
        raise Refused("expected a lesson that this memory does not publish, got one that it publishes")
    if not came_after(episode, lesson):
        raise Refused(
            "expected an episode from after the lesson was received, got one from before",
            "what was known before it came is no confirmation of it",
        )
    if (why := outside(projects(db), episode.cwd)) is not None:
        folder = resolved(Path(episode.cwd or ""))
        hint = None if folder is None else f"remem project add {shlex.quote(str(folder))}"
        raise Refused(f"expected an episode of a project that is opted in, got one that {why}", hint)
    alike = likeness(episode, lesson.text)
    if alike < MEET:
        raise Refused(f"expected an episode that resembles the lesson by {MEET} or more, got {alike:.2f}")
    return alike


def revoke(
    db: sqlite3.Connection, reference: str, *, reason: str | None, machine: Machine, now: datetime
) -> RevokeReport:
    """Take a lesson back, one's own or another's: here at once, elsewhere with the next share.

    Args:
        db: the memory's database, with no transaction open.
        reference: the lesson's hash, or the beginning of it.
        reason: why, for its readers.
        machine: whose names must not leave.
        now: the clock, with a zone.

    Raises:
        KeyRetired: the key withdrew for good.
        Refused: the reason is one that its readers would skip, or names a person, a machine or a secret.
        RememError: no lesson begins so, or several do.
    """
    if reason is not None:
        check_reason(reason, machine)
    with transaction(db):
        check_not_retired(db)
        subject = find_hash(db, reference)
        lesson = lessons.find_lesson(db, subject)
        records.put_record(db, OwnRecord("revoke", subject, now, reason))
        stopped = lessons.set_state(db, [subject], "dropped", now) > 0
        lessons.choose_no_more(db, subject)
    return RevokeReport(
        subject, lesson.text if lesson else None, lesson.source if lesson else None, now, reason, stopped
    )


def trust_key(home: Home, db: sqlite3.Connection, key: str, role: Role, *, now: datetime) -> TrustReport:
    """Trust a key in a role, and follow what that changes.

    Raises:
        Refused: it is no key, or this memory's own.
    """
    name = _read_key(key, home.signing_key())
    with transaction(db):
        mind = Mind(db, home.signing_key().public.hex, home.config())
        trust.add(db, name, role, now)
        mind.reread(now)
    return _trust_report(name, (role,), mind.effects)


def distrust_key(
    home: Home, db: sqlite3.Connection, key: str, *, roles: tuple[Role, ...] = ROLES, now: datetime
) -> TrustReport:
    """Trust a key no more in these roles, for ever, and follow what that changes.

    Raises:
        RememError: it has none of these roles.
    """
    name = _find_trusted(db, key)
    with transaction(db):
        mind = Mind(db, home.signing_key().public.hex, home.config())
        had = trust.remove(db, name, roles)
        if not had:
            raise RememError(f"expected a key that is trusted as {' or '.join(roles)}, got {name}")
        mind.reread(now)
    return _trust_report(name, had, mind.effects)


def _read_key(key: str, own: SigningKey) -> str:
    try:
        name = PublicKey.parse(key.lower()).hex
    except ProtocolError as error:
        raise Refused(f"expected {error.expected}, got {error.got}") from None
    if name == own.public.hex:
        raise Refused("expected another's key, got this memory's own, which it trusts anyway")
    return name


def _find_trusted(db: sqlite3.Connection, key: str) -> str:
    found = {one.key for one in trust.everything(db) if one.key.startswith(key.lower()) and not one.declined}
    if len(found) != 1 or not key:
        which = "several" if found and key else "none"
        raise RememError(f"expected a trusted key or the beginning of one, got {key!r}, which names {which}")
    return found.pop()


def _trust_report(key: str, roles: tuple[Role, ...], effects: Effects) -> TrustReport:
    stopped = tuple(Stopped(lesson, why) for lesson, why in sorted(effects.stopped.items()))
    return TrustReport(key, roles, stopped, tuple(sorted(effects.resumed)))
