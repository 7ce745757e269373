"""A line: one JSON object in its one spelling (PROTOCOL.md, section 2).

`parse_line` is two readers that agree. The fast one knows flat lines, which is what records are: one regular
expression admits their spelling, and the C parser reads them. Whatever it doubts goes to `_Strict`, the rule
written out, which names the first fault or accepts what the fast one had no eye for (an object in an object,
say). So the strict reader alone decides what is refused.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Final, TypeAlias

from remem.protocol.errors import (
    ByteOrderMark,
    CarriageReturn,
    Depth,
    DuplicateField,
    Encoding,
    Escape,
    FieldOrder,
    LineSize,
    NotAnObject,
    NumberForm,
    NumberRange,
    ProtocolError,
    Surrogate,
    Syntax,
    WhiteSpace,
    show,
)
from remem.protocol.rules import RULES

JSON: TypeAlias = "bool | int | float | str | list[JSON] | dict[str, JSON] | None"

_NUMBER: Final = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?")
_NUMBER_LIKE: Final = re.compile(r"[-+.0-9A-Za-z]+")
_NEGATIVE_ZERO: Final = re.compile(r"-0(?:\.0+)?")
_PLAIN: Final = re.compile(r'[^"\\\x00-\x1f]*')
_ESCAPES: Final = {'"': '"', "\\": "\\", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_CONTROL_ESCAPE: Final = re.compile(r"u00(?:0[0-7]|0b|0e|0f|1[0-9a-f])")
_SURROGATE_ESCAPE: Final = re.compile(r"u[dD][89a-fA-F][0-9a-fA-F]{2}")
_WORDS: Final[dict[str, bool | None]] = {"true": True, "false": False, "null": None}


def parse_line(line: bytes) -> dict[str, JSON]:
    """Read one line, without its LF, into the object that it spells (PROTOCOL.md, section 2).

    Raises:
        ProtocolError: the class names the rule that the line breaks.
    """
    if len(line) > RULES.line_bytes:
        raise LineSize(f"a line of at most {RULES.line_bytes} bytes", f"{len(line)} bytes")
    try:
        text = line.decode()
    except UnicodeDecodeError as error:
        raise _encoding_error(line, error) from None
    fields = _parse_fast(text)
    return _Strict(text).parse() if fields is None else fields


def encode(fields: Mapping[str, JSON]) -> bytes:
    """Spell an object as its one line, without the LF.

    Raises:
        ValueError: the object has no spelling on the wire (too long, too deep, an exponent, NaN).
    """
    try:
        line = _ENCODER.encode(dict(fields)).encode("utf-8", "surrogatepass")
        parse_line(line)
    except (ProtocolError, RecursionError) as error:
        raise ValueError(f"not a line of the protocol: {error}") from error
    return line


def _encoding_error(line: bytes, error: UnicodeDecodeError) -> Encoding:
    at = error.start
    return Encoding("UTF-8", f"{show(line[at : at + 4])} at byte {at}")


# --- the fast reader ---

# Nothing here is ever scanned twice. A number stays so short that neither its length nor its range can be at
# fault, and has no sign before a zero.
_FAST_STRING: Final = rf'"[^"\\\x00-\x1f]*+(?:\\(?:["\\bfnrt]|{_CONTROL_ESCAPE.pattern})[^"\\\x00-\x1f]*+)*+"'
_FAST_NUMBER: Final = r"(?:0(?:\.[0-9]{1,22}+)?+|-?[1-9][0-9]{0,14}+(?:\.[0-9]{1,7}+)?+)"
_FAST_ARRAY: Final = rf"\[(?:{_FAST_STRING}(?:,{_FAST_STRING})*+)?+\]"
_FAST_FIELD: Final = rf"{_FAST_STRING}:(?:{_FAST_STRING}|{_FAST_NUMBER}|{_FAST_ARRAY}|true|false|null)"
_FAST_LINE: Final = re.compile(rf"\{{(?:{_FAST_FIELD}(?:,{_FAST_FIELD})*+)?+\}}")
_DECODER: Final = json.JSONDecoder()
_ENCODER: Final = json.JSONEncoder(ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def _parse_fast(text: str) -> dict[str, JSON] | None:
    """Read a flat line that is canonical beyond doubt; None leaves it to the strict reader."""
    if not _FAST_LINE.fullmatch(text):
        return None
    fields: dict[str, JSON] = _DECODER.raw_decode(text)[0]
    # Each field has a quote and a colon behind its name: no more of these than fields, and none came twice.
    if text.count('":') != len(fields) or list(fields) != sorted(fields):
        return None
    return fields


# --- the strict reader ---


class _Strict:
    """The rules of a line, one method a production; `at` is the next character to read."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def parse(self) -> dict[str, JSON]:
        if self.text.startswith("\ufeff"):
            raise ByteOrderMark("no byte order mark", "U+FEFF at character 0")
        if self._peek() != "{":
            self._refuse_white_space()
            raise NotAnObject("an object", self._here())
        fields = self._object(1)
        if self.at < len(self.text):
            self._refuse_white_space()
            raise Syntax("the end of the line", self._here())
        return fields

    def _peek(self) -> str:
        return self.text[self.at : self.at + 1]

    def _here(self) -> str:
        rest = self.text[self.at : self.at + 12]
        return f"{show(rest) if rest else 'the end of the line'} at character {self.at}"

    def _refuse_white_space(self) -> None:
        if self._peek() == "\r":
            raise CarriageReturn("no carriage return", self._here())
        if self._peek() and self._peek() in " \t\n":
            raise WhiteSpace("no white space outside strings", self._here())

    def _take(self, character: str, expected: str) -> None:
        if self._peek() != character:
            self._refuse_white_space()
            raise Syntax(expected, self._here())
        self.at += 1

    def _value(self, depth: int) -> JSON:
        character = self._peek()
        if character == "{":
            return self._object(depth + 1)
        if character == "[":
            return self._array(depth + 1)
        if character == '"':
            return self._string()
        for word, value in _WORDS.items():
            if self.text.startswith(word, self.at):
                self.at += len(word)
                return value
        if character and (character in "-+.0123456789" or self.text.startswith(("NaN", "Infinity"), self.at)):
            return self._number()
        self._refuse_white_space()
        raise Syntax("a value", self._here())

    def _enter(self, depth: int) -> None:
        if depth > RULES.depth:
            raise Depth(f"at most {RULES.depth} levels", f"a level more at character {self.at}")
        self.at += 1

    def _object(self, depth: int) -> dict[str, JSON]:
        self._enter(depth)
        fields: dict[str, JSON] = {}
        last: str | None = None
        while self._peek() != "}":
            if last is not None:
                self._take(",", "a comma or the end of the object")
            start = self.at
            if self._peek() != '"':
                self._refuse_white_space()
                raise Syntax("the name of a field", self._here())
            name = self._string()
            if name in fields:
                raise DuplicateField("each field once", f"{show(name)} again at character {start}")
            if last is not None and name < last:
                raise FieldOrder("fields in code-point order", f"{show(name)} behind {show(last)} at character {start}")
            self._take(":", "a colon")
            fields[name] = self._value(depth)
            last = name
        self.at += 1
        return fields

    def _array(self, depth: int) -> list[JSON]:
        self._enter(depth)
        items: list[JSON] = []
        while self._peek() != "]":
            if items:
                self._take(",", "a comma or the end of the array")
            items.append(self._value(depth))
        self.at += 1
        return items

    def _string(self) -> str:
        self.at += 1
        parts: list[str] = []
        while True:
            run = _PLAIN.match(self.text, self.at)
            if run is not None:
                parts.append(run.group())
                self.at = run.end()
            character = self._peek()
            if character == '"':
                self.at += 1
                return "".join(parts)
            if character == "\\":
                parts.append(self._escape())
            elif not character:
                raise Syntax("the end of a string", self._here())
            else:
                raise Escape("a control character in its escaped spelling", self._here())

    def _escape(self) -> str:
        short = _ESCAPES.get(self.text[self.at + 1 : self.at + 2])
        if short is not None:
            self.at += 2
            return short
        if _SURROGATE_ESCAPE.match(self.text, self.at + 1):
            raise Surrogate("no surrogate", self._here())
        if not _CONTROL_ESCAPE.match(self.text, self.at + 1):
            raise Escape(r"one of \" \\ \b \f \n \r \t or a lower-case \u00xx of a control", self._here())
        value = chr(int(self.text[self.at + 2 : self.at + 6], 16))
        self.at += 6
        return value

    def _number(self) -> int | float:
        run = _NUMBER_LIKE.match(self.text, self.at)
        digits = run.group() if run is not None else ""
        if not _NUMBER.fullmatch(digits) or len(digits) > RULES.number_characters:
            raise NumberForm(f"a plain decimal number of at most {RULES.number_characters} characters", show(digits))
        if _NEGATIVE_ZERO.fullmatch(digits):
            raise NumberForm("no negative zero", digits)
        self.at += len(digits)
        if "." in digits:
            return float(digits)
        if abs(value := int(digits)) > RULES.integer_most:
            raise NumberRange("an integer within 2^53-1", digits)
        return value
