"""What others wrote, made fit for a person's terminal.

A text from a stranger can move the cursor, hide words, or turn the direction of reading. What could do so is
shown as its code point instead; everything else stays as it is.
"""

from __future__ import annotations

from typing import Final

from remem.protocol import unicode14

_SHORT: Final = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def printable(text: str) -> str:
    """Spell a text on one line, its control, format, bidi, private-use, unassigned and surrogate characters escaped."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(map(_printable, text))


def _printable(char: str) -> str:
    if char in _SHORT:
        return _SHORT[char]
    if unicode14.class_of(char) == unicode14.ASSIGNED and not "\ud800" <= char <= "\udfff":
        return char
    number = ord(char)
    if number > 0xFFFF:
        return f"\\U{number:08x}"
    return f"\\u{number:04x}" if number > 0xFF else f"\\x{number:02x}"
