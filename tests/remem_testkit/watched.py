"""A node in memory that counts what comes to it, and fails where it goes back to what was before."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from random import Random
from typing import Final

from remem.protocol import OriginFile, Revocation, newest
from remem_gossip.budget import Allowance
from remem_gossip.parts import Proof, Verdict, Whole
from remem_testkit.nodes import MapNode

LIAR: Final = "liar"
"""How the names of those that are not honest begin."""


@dataclass
class Traffic:
    """What moved, and what of it was of use; between honest nodes, where nothing else is said.

    Attributes:
        moved: bytes of bodies, pushes included.
        pushed: bytes of pushes among these.
        needed: bytes of the files that honest nodes took in, each at the node that took it.
        with_liars: bytes of bodies that went to liars or came from them.
        fetched: files that came because they were asked for.
        fetched_again: those of them that had come before.
        brought: files that others brought, in offers and pushes.
        brought_again: those of them that had come before.
        promised: what honest nodes said that they have and were asked for.
        delivered: what of that came.
    """

    moved: int = 0
    pushed: int = 0
    needed: int = 0
    with_liars: int = 0
    fetched: int = 0
    fetched_again: int = 0
    brought: int = 0
    brought_again: int = 0
    promised: int = 0
    delivered: int = 0


class Watched(MapNode):
    """A node that counts what comes, and never goes back."""

    def __init__(self, name: str, clock: Callable[[], datetime], traffic: Traffic, seed: int) -> None:
        super().__init__(name, clock, random=Random(seed))
        self.traffic = traffic
        self.seen: set[bytes] = set()
        self.highest: dict[str, OriginFile] = {}
        self.revoked: dict[str, set[str]] = {}
        self.is_dialling = False

    def take(self, parts: Sequence[Whole | Proof], source: str, allowance: Allowance) -> list[Verdict]:
        again = sum(part.id in self.seen for part in parts)
        self.seen.update(part.id for part in parts)
        if source.startswith(LIAR):
            pass
        elif self.is_dialling:
            self.traffic.fetched += len(parts)
            self.traffic.fetched_again += again
        else:
            self.traffic.brought += len(parts)
            self.traffic.brought_again += again
        return super().take(parts, source, allowance)

    def check(self) -> None:
        """Fail where a version is older than one that was held before, or something revoked is back."""
        for name, held in self.files.items():
            before = self.highest.get(name)
            if before is held:
                continue
            if before is not None:
                assert newest(before.version, held.version).takes, f"{self.name} went back on {name}"
            self.highest[name] = held
            takes_back = {record.subject for record in held.records if isinstance(record, Revocation)}
            assert self.revoked.get(name, set()) <= takes_back, f"{self.name} forgot what {name} revoked"
            self.revoked[name] = takes_back
        assert self.highest.keys() <= self.files.keys(), f"{self.name} lost a file"

    def _store(self, file: OriginFile) -> None:
        self.traffic.needed += len(file.data) * (file.key.hex != self.own_key)
        super()._store(file)
