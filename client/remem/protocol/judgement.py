"""Judgement: whether a record may enter a mind, or count (PROTOCOL.md, section 8).

Acceptance decides what travels, and is the same everywhere; judgement decides what a reader believes, and
what fails it is skipped with its reason while its file still travels. The rules are hygiene, not a border:
no rule about the form of a text stops a determined writer, and a lesson is never an instruction to act.
"""

from __future__ import annotations

from remem.protocol.errors import show
from remem.protocol.guard import instruction
from remem.protocol.records import AnyRecord, Denial, Lesson, Revocation
from remem.protocol.text import KNOWN_KINDS, Fault, lesson_hash, text_fault


def judge(record: AnyRecord) -> Fault | None:
    """Say why a reader skips a record, or None where it may count."""
    if isinstance(record, Lesson):
        return judge_lesson(record.kind, record.text, record.hash) or _named("id", record.id)
    if isinstance(record, (Revocation, Denial)) and record.reason is not None:
        return _named("reason", record.reason)
    return None


def judge_lesson(kind: str, text: str, claimed_hash: str) -> Fault | None:
    """Say why a reader skips a lesson of this kind, text and hash, or None where it may count."""
    if kind not in KNOWN_KINDS:
        return Fault("kind_unknown", f"one of {', '.join(KNOWN_KINDS)}", show(kind))
    if (fault := text_fault(text)) is not None:
        return fault
    if (computed := lesson_hash(kind, text)) != claimed_hash:
        return Fault("hash_mismatch", f"hash {computed}, which is the text's", claimed_hash)
    if (words := instruction(text)) is not None:
        return Fault("instruction", "an observation", f"an instruction: {show(words)}")
    return None


def _named(name: str, text: str) -> Fault | None:
    fault = text_fault(text)
    return None if fault is None else fault._replace(expected=f'"{name}" to be {fault.expected}')
