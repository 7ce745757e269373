"""What this commons' judgement makes of records, as rows (PROTOCOL.md, section 8).

Acceptance is over when anything comes here: what judgement skips is stored and served all the same. The rows
belong to the rules of judgement that made them; a release that judges otherwise makes them again at its start.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from remem.protocol import AnyRecord, judge
from remem.protocol.evidence import statement_of


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
