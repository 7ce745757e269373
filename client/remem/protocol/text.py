"""Texts: the normal form, the hash of a lesson, and the hygiene of a text (PROTOCOL.md, sections 5 and 8).

Two sentences of one kind are one lesson if they differ only in case and white space: they share one normal
text, and a lesson's hash is that of its kind and its normal text. The normal text is lower-cased code point
by code point, has one space for a run of white space, and none at its ends.

A text that a reader lets in is 1 to 1,000 code points on one line, in NFC, each of them assigned in
Unicode 14 and none a control, a format or a private-use character. A lesson's text, its id and a reason are
texts in this sense. All of it goes by our table of Unicode 14, not by the interpreter's; NFC alone is the
interpreter's, for Unicode never changes it for code points once assigned.
"""

from __future__ import annotations

import re
import unicodedata
from hashlib import blake2b
from typing import Final, NamedTuple

from remem.protocol import unicode14
from remem.protocol.rules import RULES

KNOWN_KINDS: Final = ("error", "correction", "surprise")

_HASH_BYTES: Final = 16
_WHITE_RUN: Final = re.compile(f"[{unicode14.WHITE_SPACE}]+")

_CLASS_FAULTS: Final = {
    unicode14.LINE_BREAK: ("text_lines", "one line"),
    unicode14.UNASSIGNED: ("text_unassigned", "code points assigned in Unicode 14"),
    unicode14.CONTROL: ("text_control", "no control character"),
    unicode14.FORMAT: ("text_format", "no format character"),
    unicode14.PRIVATE_USE: ("text_private_use", "no private-use character"),
}


class Fault(NamedTuple):
    """Why a reader skips something: a stable code, what the rule asks for, and what came."""

    code: str
    expected: str
    got: str


def normal_text(text: str) -> str:
    """Return the normal text: in lower case, one space for a run of white space, none at the ends."""
    # In printable ASCII the interpreter's lower case and white space are ours.
    if text.isascii() and text.isprintable():
        return " ".join(text.lower().split())
    # What replaces a code point is itself in lower case, so the order of the replacements does not matter.
    for upper in unicode14.LOWER.keys() & set(text):
        text = text.replace(upper, unicode14.LOWER[upper])
    return _WHITE_RUN.sub(" ", text).strip(" ")


def lesson_hash(kind: str, text: str) -> str:
    """Return the hash of a lesson, 32 hex digits: BLAKE2b of its kind followed by its normal text.

    Raises:
        ValueError: the text holds a surrogate. UTF-8 has no spelling for it, so no other implementation could
            agree on a hash; no line that parses holds one.
    """
    return blake2b((kind + normal_text(text)).encode(), digest_size=_HASH_BYTES).hexdigest()


def text_fault(text: str) -> Fault | None:
    """Return why a reader skips a text, or None: the first rule it breaks, in the order below."""
    # 1. It says something: a text of nothing but white space has an empty normal text.
    if not text.strip(unicode14.WHITE_SPACE):
        return Fault("text_empty", "a text", "only white space" if text else "no code point")
    # 2. It is short.
    if len(text) > RULES.text_code_points:
        return Fault("text_long", f"at most {RULES.text_code_points} code points", f"{len(text)} code points")
    # Printable ASCII breaks none of the rules that follow, and is by far the most common.
    if text.isascii() and text.isprintable():
        return None
    # 3. Each code point may stand in a text. This comes before NFC, which is stable for assigned ones only.
    # 4. It is in NFC.
    return _code_point_fault(text) or _form_fault(text)


def _code_point_fault(text: str) -> Fault | None:
    strange = {char for char in set(text) if unicode14.class_of(char) != unicode14.ASSIGNED}
    if not strange:
        return None
    index = min(map(text.index, strange))
    code, expected = _CLASS_FAULTS[unicode14.class_of(text[index])]
    return Fault(code, expected, _place(text, index))


def _form_fault(text: str) -> Fault | None:
    if unicodedata.is_normalized("NFC", text):
        return None
    composed = unicodedata.normalize("NFC", text)
    # Both decompose to the same, so neither is the beginning of the other: some place differs.
    index = next(i for i, (ours, theirs) in enumerate(zip(text, composed, strict=False)) if ours != theirs)
    return Fault("text_not_nfc", "NFC", _place(text, index))


def _place(text: str, index: int) -> str:
    return f"U+{ord(text[index]):04X} at index {index}"
