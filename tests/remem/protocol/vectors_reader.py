"""Reading the vectors: the compact spellings of tests/vectors/README.md turned back into bytes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from .vectors_base import by_recipe

FOLDER: Final = Path(__file__).resolve().parents[2] / "vectors"


@dataclass(frozen=True)
class Vector:
    """One vector: what is given, and what is expected of it."""

    kind: str
    name: str
    given: Mapping[str, Any]
    expect: Mapping[str, Any]

    @property
    def error(self) -> str | None:
        """The code that the vector is refused with; None where it is accepted or only skipped."""
        code = self.expect.get("error")
        return code if isinstance(code, str) else None

    @property
    def accepted(self) -> Mapping[str, Any]:
        """What an accepted vector expects."""
        values = self.expect["accept"]
        assert isinstance(values, dict)
        return values

    def data(self, name: str) -> bytes:
        """Return the bytes of its `line`, `file` or `body`, however they are spelled."""
        if name in self.given:
            return str(self.given[name]).encode()
        if f"{name}_hex" in self.given:
            return bytes.fromhex(self.given[f"{name}_hex"])
        if f"{name}_parts" in self.given:
            parts = self.given[f"{name}_parts"]
            return "".join(part if isinstance(part, str) else part["repeat"] * part["times"] for part in parts).encode()
        return by_recipe(**self.given[f"{name}_recipe"]).encode()


def read_vectors(folder: Path = FOLDER) -> list[Vector]:
    """Read every vector of a folder; an empty folder, which would test nothing, is a ValueError."""
    vectors = []
    for path in sorted(folder.glob("*/*.json")):
        given = json.loads(path.read_text("utf-8"))
        vectors.append(Vector(path.parent.name, path.stem, given, given["expect"]))
    if not vectors:
        raise ValueError(f"expected vectors, got none in {folder}")
    return vectors
