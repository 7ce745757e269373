"""A reader of lines in another style than the two of `remem.protocol.canonical`, for tests to compare with.

It lets the standard library read a text, keeps each number as it was spelled, and spells all of it again by the
rules: a text is a line if it is its own spelling.
"""

import json
from typing import Any, Final

MOST: Final = 2**53 - 1


class Number(str):
    """A number as it was spelled."""

    __slots__ = ()


class Refused(Exception):
    """What the third reader says of a line that has no canonical reading."""


SHORT: Final = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r"}


def spell(value: Any) -> str:
    match value:
        case Number():
            return spell_number(value)
        case str():
            return f'"{"".join(map(spell_character, value))}"'
        case dict():
            fields = (f"{spell(name)}:{spell(value[name])}" for name in sorted(value))
            return "{" + ",".join(fields) + "}"
        case list():
            return "[" + ",".join(map(spell, value)) + "]"
        case _:
            return {True: "true", False: "false", None: "null"}[value]


def spell_character(character: str) -> str:
    return SHORT.get(character, f"\\u{ord(character):04x}" if character < " " else character)


def spell_number(spelled: str) -> str:
    if len(spelled) > 24 or set(spelled) - set("-.0123456789"):
        raise Refused
    if spelled.startswith("-") and not spelled.strip("-.0"):
        raise Refused
    if "." not in spelled and not -MOST <= int(spelled) <= MOST:
        raise Refused
    return spelled


def depth(value: Any) -> int:
    if isinstance(value, (dict, list)):
        return 1 + max(map(depth, value.values() if isinstance(value, dict) else value), default=0)
    return 0


def respelled(text: str) -> str | None:
    """Return the canonical spelling of what a text says, or None where it says nothing canonical."""
    try:
        value = json.loads(text, parse_int=Number, parse_float=Number, parse_constant=Number)
        return spell(value) if isinstance(value, dict) and depth(value) <= 8 else None
    except (Refused, ValueError, RecursionError):
        return None


def loose(value: Any) -> str:
    """Spell a value, its numbers as they are."""
    match value:
        case Number():
            return str(value)
        case dict():
            return "{" + ",".join(f"{spell(n)}:{loose(value[n])}" for n in sorted(value)) + "}"
        case list():
            return "[" + ",".join(map(loose, value)) + "]"
        case _:
            return spell(value)
