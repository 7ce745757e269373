"""What this commons' judgement makes of records, as rows (PROTOCOL.md, section 8).

Acceptance is over when anything comes here: what judgement skips is stored and served all the same. The rows
belong to the rules of judgement that made them; a release that judges otherwise makes them again at its start.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache
from hashlib import sha256
from importlib.resources import files as resources
from typing import Any, Final

from remem.protocol import AnyRecord, judge
from remem.protocol.state import statement_of

_RULES_OF_JUDGEMENT: Final = (
    "guard.py",
    "guard_clause.py",
    "guard_words.py",
    "judgement.py",
    "text.py",
    "unicode14.py",
)


@dataclass(slots=True)
class Judged:
    """Rows of one key for the tables `statements` and `skipped`."""

    statements: list[dict[str, Any]] = field(default_factory=list)
    skipped: list[dict[str, Any]] = field(default_factory=list)


def judge_records(records: Iterable[AnyRecord]) -> Judged:
    """Judge records, and make the row of each that says something this version knows."""
    judged = Judged()
    for record in records:
        statement = statement_of(record)
        if statement is None:
            continue
        if (fault := judge(record)) is None:
            row = {
                "key": statement.key,
                "type": statement.type,
                "subject": statement.subject,
                "time": statement.time,
                "kind": statement.kind,
                "text": statement.text,
            }
            judged.statements.append(row)
        else:
            named = {"key": statement.key, "type": statement.type, "subject": statement.subject}
            judged.skipped.append({**named, **fault._asdict()})
    return judged


@cache
def judgement_name() -> str:
    """Name the rules of judgement of this release: a digest of their own text, so that no change is forgotten."""
    digest = sha256()
    for name in _RULES_OF_JUDGEMENT:
        digest.update(resources("remem.protocol").joinpath(name).read_bytes())
    return digest.hexdigest()
