"""Whose voice counts in this commons: the operator's policy, as the lessons are counted by it.

It stands in the database, so that all servers and commands of a commons count alike; a start of the server sets it to
what its operator decided. Everything else of the policy is the protocol's own (PROTOCOL.md, section 9).
"""

from __future__ import annotations

import json
import secrets
from dataclasses import dataclass
from typing import Final

from sqlalchemy import Connection, select, update

from remem_server.database.tables import meta

_POLICY: Final = select(meta.c.policy)


@dataclass(frozen=True, slots=True)
class CountingPolicy:
    """Who counts.

    Attributes:
        open: whether every key counts, as its own principal; otherwise those that were admitted by token.
        revokers: the keys whose revocations and denials are obeyed.
    """

    open: bool = False
    revokers: frozenset[str] = frozenset()


def stored_policy(connection: Connection) -> CountingPolicy | None:
    """Read the policy that the lessons are counted by; None before they were ever counted."""
    stored = _stored(connection)
    if stored is None:
        return None
    said = json.loads(stored)
    return CountingPolicy(said["open"], frozenset(said["revokers"]))


def policy_of(connection: Connection) -> CountingPolicy:
    """Read by which policy a change is counted, whether or not all was counted by it already."""
    return stored_policy(connection) or CountingPolicy()


def is_counted(connection: Connection, policy: CountingPolicy) -> bool:
    """Tell whether a count by this policy came to its end, and no other began since."""
    return _stored(connection) == _said(policy, counted=True)


def is_settled(stored: str | None) -> bool:
    """Tell from the column `policy` whether all lessons are counted by what it says."""
    return stored is not None and bool(json.loads(stored)["counted"])


def begin_count(connection: Connection, policy: CountingPolicy) -> str:
    """Take up a policy, by which all lessons are going to be counted; return what `goes_on` knows the count by."""
    begun = _said(policy, counted=False, count=secrets.token_hex(8))
    connection.execute(update(meta).values(policy=begun))
    return begun


def goes_on(connection: Connection, begun: str) -> bool:
    """Tell whether a count is still the one that counts all lessons: no other began, nor did judgement change."""
    return _stored(connection) == begun


def end_count(connection: Connection, policy: CountingPolicy) -> None:
    """Say that all lessons are counted by a policy."""
    connection.execute(update(meta).values(policy=_said(policy, counted=True)))


def _stored(connection: Connection) -> str | None:
    stored: str | None = connection.execute(_POLICY).scalar_one()
    return stored


def _said(policy: CountingPolicy, **more: object) -> str:
    return json.dumps({"open": policy.open, "revokers": sorted(policy.revokers), **more})
