"""What the vectors of states are made of: statements, policies and readings, as JSON."""

from __future__ import annotations

from collections.abc import Sequence

from .vectors_base import HASH, NOW, TEXT, Fields, Key, accept

A_MICROSECOND_ON = "2026-12-01T12:00:00.000001Z"
W_AGO = "2026-09-02T12:00:00Z"
OVER_W_AGO = "2026-09-02T11:59:59Z"
TWO_W_AGO = "2026-06-04T12:00:00Z"
OVER_TWO_W_AGO = "2026-06-04T11:59:59Z"
RECENT = "2026-11-20T00:00:00Z"
AHEAD = "2026-12-02T12:00:00Z"
DENIED = "This key published a hundred lessons in one hour."

# --- statements, as a reader indexes them ---


def said_lesson(key: Key, text: str = TEXT) -> Fields:
    return {"key": key.hex, "type": "lesson", "subject": HASH, "time": RECENT, "kind": "error", "text": text}


def said_confirm(key: Key, at: str | None = RECENT) -> Fields:
    return {"key": key.hex, "type": "confirm", "subject": HASH, "time": at}


def said_revoke(key: Key, at: str | None = RECENT) -> Fields:
    return {"key": key.hex, "type": "revoke", "subject": HASH, "time": at}


def said_deny(key: Key, denied: Key) -> Fields:
    return {"key": key.hex, "type": "deny", "subject": denied.hex, "time": RECENT, "text": DENIED}


def said_confirms(*keys: Key, at: str = RECENT) -> list[Fields]:
    return [said_confirm(key, at) for key in keys]


def said_revokes(*keys: Key) -> list[Fields]:
    return [said_revoke(key) for key in keys]


# --- policies; what a policy leaves out has its default ---

OPEN: Fields = {"open": True}


def follows(*keys: Key) -> Fields:
    return {"followed": [key.hex for key in keys]}


def admits(*admissions: tuple[Key, str, str]) -> Fields:
    return {"admitted": [{"key": key.hex, "commons": commons, "principal": name} for key, commons, name in admissions]}


def trusts(*keys: Key) -> Fields:
    return {"revokers": [key.hex for key in keys]}


# --- readings; what a reading leaves out is as for a lesson that nobody published or confirmed ---


def published(*keys: Key, text: str = TEXT) -> Fields:
    return {
        "kind": "error",
        "text": text,
        "publishers": sorted(key.hex for key in keys),
        "corroborations": len(keys) - 1,
    }


def counted(number: int, last: str = RECENT) -> Fields:
    return {"confirmations": number, "last_confirmed": last}


def by(*keys: Key) -> Fields:
    return {"revokers": sorted(key.hex for key in keys)}


_NOTHING: Fields = {
    "kind": None,
    "text": None,
    "publishers": [],
    "confirmations": 0,
    "unadmitted": 0,
    "corroborations": 0,
    "last_confirmed": None,
    "revokers": [],
}


def state_vector(
    comment: str, statements: Sequence[Fields], policy: Fields, state: str, cause: str, *reading: Fields
) -> Fields:
    values = {**_NOTHING, "state": state, "cause": cause}
    for part in reading:
        values |= part
    given: Fields = {"now": NOW, "hash": HASH, "policy": policy, "statements": list(statements)}
    return accept(comment, given, **values)
