"""What a reader makes of records, and what a writer seals with (PROTOCOL.md, sections 8 to 10).

The words of the guard are no part of the protocol; ``plain_order`` knows a handful, and ``judge`` takes any other
guard. The tables of Unicode are the interpreter's: those of Python 3.11 are the 14.0.0 that the document asks for.
Under a later Python, a code point that was assigned since may be lowered, and may pass as clean; everything about the
code points of 14.0.0 comes out the same.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from independent.files import (
    KNOWN_KINDS,
    SEAL_AHEAD_OF_ITS_TIME,
    WHITE_SPACE,
    File,
    Record,
    lesson_hash,
    newest,
)

TEXT_CODE_POINTS = 1_000
SEAL_AHEAD_OF_WRITER = 172_800

# --- Section 8: judgement --------------------------------------------------------------------------------------------

LINE_BREAKS = "\n\v\f\r\u0085\u2028\u2029"
UNCLEAN = {"Cn": "text_unassigned", "Cc": "text_control", "Cf": "text_format", "Co": "text_private_use"}
PLAIN_ORDER = re.compile(
    r"(?:^|[.!?:;,] )(?:(?:always|never|do not|don't) |"
    r"(?:add|call|delete|forget|ignore|install|remove|run|set|use) (?:the|an?|all|any|every|this|that|your|it|them)\b)"
    r"|\bplease\b|\b(?:you|the (?:agent|assistant|reader)) (?:must|should|have to|has to|need to|needs to)\b"
)


def plain_order(text: str) -> bool:
    """A guard of few words; every reader may have its own."""
    return PLAIN_ORDER.search(text.lower()) is not None


def unclean(text: str) -> str | None:
    """Why a text is not clean, or nothing."""
    if not re.search(f"[^{WHITE_SPACE}]", text):
        return "text_empty"
    if len(text) > TEXT_CODE_POINTS:
        return "text_long"
    for character in text:
        if character in LINE_BREAKS:
            return "text_lines"
        if code := UNCLEAN.get(unicodedata.category(character)):
            return code
    return None if unicodedata.is_normalized("NFC", text) else "text_not_nfc"


def judge(record: Record, guard: Callable[[str], bool] = plain_order) -> str | None:
    """Why a reader skips an accepted record, or nothing where it passes."""
    fields = record.fields
    if record.type in ("deny", "revoke"):
        return unclean(fields["reason"]) if "reason" in fields else None
    if record.type != "lesson":
        return None
    if fields["kind"] not in KNOWN_KINDS:
        return "kind_unknown"
    if code := unclean(fields["text"]):
        return code
    if fields["hash"] != lesson_hash(fields["kind"], fields["text"]):
        return "hash_mismatch"
    return "instruction" if guard(fields["text"]) else unclean(fields["id"])


# --- Section 9: the state of a lesson --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Policy:
    """A reader's thresholds and trust; an admission is a key, a commons and a name."""

    confirmations: int = 3
    window: timedelta = timedelta(days=90)
    followed: frozenset[str] = frozenset()
    admitted: tuple[tuple[str, str, str], ...] = ()
    revokers: frozenset[str] = frozenset()
    open: bool = False

    def principals(self) -> dict[str, str]:
        """The lowest key of its principal, for each key that has one and is not its own by an open policy."""
        groups = {key: {key} for key in self.followed | {key for key, _, _ in self.admitted}}
        first: dict[tuple[str, str], str] = {}
        for key, commons, name in self.admitted:
            joined = groups[key] | groups[first.setdefault((commons, name), key)]
            groups |= dict.fromkeys(joined, joined)
        return {key: min(group) for key, group in groups.items()}


@dataclass(frozen=True)
class Reading:
    """What a reader shows of a lesson."""

    state: str
    cause: str
    revokers: list[str]
    kind: str | None
    text: str | None
    publishers: list[str]
    confirmations: int
    unadmitted: int
    corroborations: int
    last_confirmed: datetime | None


def evidence(files: Iterable[File], guard: Callable[[str], bool] = plain_order) -> list[Record]:
    """What the newest file of every key says, less what fails judgement."""
    held: dict[str, File] = {}
    for file in files:
        before = held.get(file.key)
        verdict = newest((before.seal, before.digest) if before else None, (file.seal, file.digest))
        if verdict in ("new", "newer", "equivocation_taken"):
            held[file.key] = file
    return [record for file in held.values() for record in file.records if judge(record, guard) is None]


def read_lesson(lesson: str, records: Iterable[Record], policy: Policy, now: datetime) -> Reading:
    """The reading of the lesson of a hash, from records that pass judgement."""
    said = list(records)
    denied = {record.subject for record in said if record.type == "deny" and record.key in policy.revokers}
    about = [r for r in said if r.type != "deny" and r.subject == lesson and r.key not in denied]
    published = {record.key: record.fields for record in about if record.type == "lesson"}
    revoking = {record.key for record in about if record.type == "revoke"}
    standing = sorted(published.keys() - revoking)

    named = policy.principals()
    principal: Callable[[str], str | None] = (lambda key: key) if policy.open else named.get
    barred = {principal(key) for key in published}
    counted: dict[str, datetime] = {}
    unadmitted: set[str] = set()
    for record in about:
        if record.type != "confirm" or record.time is None:
            continue
        who = principal(record.key)
        if who is None:
            unadmitted |= {record.key} - published.keys()
        elif who not in barred:
            counted[who] = max(record.time, counted.get(who, record.time))
    last = max(counted.values(), default=None)
    turned = {key for key in revoking if principal(key) in counted}
    turns = len({principal(key) for key in turned})

    revokers: set[str] = set()
    if revoking and not standing:
        state, cause, revokers = "revoked", "withdrawn", revoking
    elif revoking & policy.revokers:
        state, cause, revokers = "revoked", "revoker", revoking & policy.revokers
    elif turns >= policy.confirmations and 3 * turns > 2 * len(counted):
        state, cause, revokers = "revoked", "quorum", turned
    elif last is None or len(counted) < policy.confirmations:
        state, cause = "candidate", "unconfirmed"
    elif now - last <= policy.window:
        state, cause = "common", "confirmed"
    elif now - last <= 2 * policy.window:
        state, cause = "fading", "lapsed"
    else:
        state, cause = "removed", "expired"
    shown = published[standing[0]] if standing else {}
    return Reading(
        state, cause, sorted(revokers), shown.get("kind"), shown.get("text"), standing,
        len(counted), len(unadmitted), max(len(standing) - 1, 0), last,
    )  # fmt: skip


def event(before: str, after: str) -> str | None:
    """What happened between two readings, by where it leads."""
    if before == after:
        return None
    leads_to = {"common": "confirmed", "fading": "lapsed", "removed": "expired", "revoked": "revoked"}
    return leads_to.get(after, "reinstated" if before == "revoked" else "discounted")


# --- Section 10: writing ---------------------------------------------------------------------------------------------


def next_seal(now: datetime, found: Iterable[int]) -> tuple[int, datetime]:
    """The number of a writer's next seal, and its time."""
    seconds = int(now.replace(microsecond=0).timestamp())
    number = max([seconds, *(one + 1 for one in found if one < seconds + SEAL_AHEAD_OF_WRITER)])
    return number, datetime.fromtimestamp(max(seconds, number - SEAL_AHEAD_OF_ITS_TIME), UTC)
