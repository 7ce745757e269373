"""A line and its one spelling (PROTOCOL.md, section 2), and what it is to be refused.

The parser reads from left to right and stops at the first thing that is wrong.
"""

from __future__ import annotations

import json
import re
from typing import Any

JsonObject = dict[str, Any]

LINE_BYTES = 8_192
DEPTH = 8
NUMBER_CHARACTERS = 24
INTEGER_MOST = 2**53 - 1

WHITE = " \t\n"
WORDS: dict[str, bool | None] = {"true": True, "false": False, "null": None}
LIKE_A_NUMBER = re.compile(r"[-+.0-9][-+.0-9A-Za-z]*|NaN|Infinity")
NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?")
NEGATIVE_ZERO = re.compile(r"-0(\.0+)?")
RIGHTLY_SPELLED = re.compile(r'(?:[^"\\\x00-\x1f]|\\["\\btnfr]|\\u00(?:0[0-7be-f]|1[0-9a-f]))*')
SURROGATE = re.compile(r"\\u[Dd][89A-Fa-f][0-9A-Fa-f]{2}")


class RefusedError(Exception):
    """A broken rule of acceptance: its code and, in a file, the number of the line that broke it."""

    def __init__(self, code: str, line: int | None = None) -> None:
        """Keep both; lines are counted from 1."""
        super().__init__(code if line is None else f"{code} in line {line}")
        self.code = code
        self.line = line


class _Parser:
    """Reads one line from left to right, and stops at the first thing that is wrong."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def peek(self) -> str:
        """The next character, or nothing at the end."""
        return self.text[self.at : self.at + 1]

    def wrong(self, otherwise: str = "syntax") -> RefusedError:
        """The refusal of what stands here, outside of strings, in the place of something else."""
        here = self.peek()
        if here == "\r":
            return RefusedError("carriage_return")
        return RefusedError("white_space" if here and here in WHITE else otherwise)

    def step(self, *expected: str) -> str:
        """Step over one of the characters that may stand here."""
        here = self.peek()
        if here not in expected:
            raise self.wrong()
        self.at += 1
        return here

    def line(self) -> JsonObject:
        """One object, and nothing before or behind it."""
        if self.peek() != "{":
            raise self.wrong("not_an_object")
        value = self.object(1)
        if self.peek():
            raise self.wrong()
        return value

    def value(self, level: int) -> Any:
        """Any value; an object or an array would be of this level."""
        here = self.peek()
        if here in ("{", "["):
            if level > DEPTH:
                raise RefusedError("depth")
            return self.object(level) if here == "{" else self.array(level)
        if here == '"':
            return self.string()
        if token := LIKE_A_NUMBER.match(self.text, self.at):
            return self.number(token[0])
        for word, value in WORDS.items():
            if self.text.startswith(word, self.at):
                self.at += len(word)
                return value
        raise self.wrong()

    def object(self, level: int) -> JsonObject:
        """An object, whose names ascend; Python compares strings by code points."""
        fields: JsonObject = {}
        self.step("{")
        if self.peek() == "}":
            self.step("}")
            return fields
        end = ""
        while end != "}":
            name = self.string()
            if name in fields:
                raise RefusedError("duplicate_field")
            if fields and name < max(fields):
                raise RefusedError("field_order")
            self.step(":")
            fields[name] = self.value(level + 1)
            end = self.step(",", "}")
        return fields

    def array(self, level: int) -> list[Any]:
        """An array."""
        values: list[Any] = []
        self.step("[")
        if self.peek() == "]":
            self.step("]")
            return values
        end = ""
        while end != "]":
            values.append(self.value(level + 1))
            end = self.step(",", "]")
        return values

    def string(self) -> str:
        """A string in the one spelling that it has."""
        start = self.at
        self.step('"')
        spelled = RIGHTLY_SPELLED.match(self.text, self.at)
        self.at = spelled.end() if spelled else self.at
        if not self.peek():
            raise RefusedError("syntax")
        if self.peek() != '"':
            raise RefusedError("surrogate" if SURROGATE.match(self.text, self.at) else "escape")
        self.at += 1
        return str(json.loads(self.text[start : self.at]))

    def number(self, token: str) -> int | float:
        """A number: an ``int`` without a point, a ``float`` with one."""
        if len(token) > NUMBER_CHARACTERS or not NUMBER.fullmatch(token) or NEGATIVE_ZERO.fullmatch(token):
            raise RefusedError("number_form")
        self.at += len(token)
        if "." in token:
            return float(token)
        if abs(int(token)) > INTEGER_MOST:
            raise RefusedError("number_range")
        return int(token)


def parse_line(line: bytes) -> JsonObject:
    """The object of a line, which comes without its LF."""
    if len(line) > LINE_BYTES:
        raise RefusedError("line_size")
    try:
        text = line.decode()
    except UnicodeDecodeError:
        raise RefusedError("encoding") from None
    if text.startswith("\ufeff"):
        raise RefusedError("byte_order_mark")
    return _Parser(text).line()
