"""What can be wrong with bytes from outside: one class a rule, one stable code a class.

A peer's bytes raise ``ProtocolError`` and nothing else; our own misuse raises ``ValueError`` or
``RuntimeError``. The codes are those of PROTOCOL.md, section 12, and never change their meaning.
"""

from __future__ import annotations

from typing import ClassVar


class ProtocolError(Exception):
    """Bytes that break a rule of the protocol.

    Attributes:
        code: the stable code of the rule, as PROTOCOL.md lists it.
        expected: what the rule asks for.
        got: what came, shortened and escaped.
        line: the number of the line in its file, from 1; None where no one line is at fault.
    """

    code: ClassVar[str] = "protocol_error"

    def __init__(self, expected: str, got: str, *, line: int | None = None) -> None:
        super().__init__(expected, got)
        self.expected = expected
        self.got = got
        self.line = line

    def at_line(self, number: int) -> None:
        """Name the line, once it is known in which place of a file the bytes stood."""
        self.line = number

    def __str__(self) -> str:
        where = "" if self.line is None else f"line {self.line}: "
        return f"{where}expected {self.expected}, got {self.got}"


def show(value: object, most: int = 40) -> str:
    """Spell a value from outside for a message: ASCII, escaped, cut to about `most` characters."""
    text = ascii(value[: 2 * most] if isinstance(value, (str, bytes)) else value)
    return text if len(text) <= most else text[: most - 3] + "..."


# --- a line as bytes (PROTOCOL.md, section 2) ---


class LineSize(ProtocolError):
    """A line is longer than 8,192 bytes."""

    code = "line_size"


class Encoding(ProtocolError):
    """A line is not UTF-8."""

    code = "encoding"


class ByteOrderMark(ProtocolError):
    """A line begins with a byte order mark."""

    code = "byte_order_mark"


class CarriageReturn(ProtocolError):
    """A carriage return stands in a file, or outside a string of a line."""

    code = "carriage_return"


class WhiteSpace(ProtocolError):
    """White space stands outside a string."""

    code = "white_space"


class Syntax(ProtocolError):
    """A line is not JSON."""

    code = "syntax"


class NotAnObject(ProtocolError):
    """A line does not begin with a brace, so it is no object."""

    code = "not_an_object"


class Depth(ProtocolError):
    """Objects and arrays are nested deeper than 8."""

    code = "depth"


class Escape(ProtocolError):
    """A character of a string is spelled in another way than the one the protocol knows."""

    code = "escape"


class Surrogate(ProtocolError):
    """A string holds the escape of a surrogate."""

    code = "surrogate"


class NumberForm(ProtocolError):
    """A number is not spelled as the protocol spells numbers."""

    code = "number_form"


class NumberRange(ProtocolError):
    """An integer is beyond 2^53-1."""

    code = "number_range"


class DuplicateField(ProtocolError):
    """An object names a field twice."""

    code = "duplicate_field"


class FieldOrder(ProtocolError):
    """The fields of an object are not in code-point order."""

    code = "field_order"


# --- key and signature (PROTOCOL.md, sections 3 and 4) ---


class KeyForm(ProtocolError):
    """A key is not 64 lower-case hex digits."""

    code = "key_form"


class KeyInvalid(ProtocolError):
    """A key is not a canonical point of the prime-order subgroup."""

    code = "key_invalid"


class OriginMismatch(ProtocolError):
    """An origin is not the one of its key."""

    code = "origin_mismatch"


class SignaturePlace(ProtocolError):
    """The signature does not stand exactly once, as a field of the line."""

    code = "signature_place"


class SignatureForm(ProtocolError):
    """A signature is not 128 lower-case hex digits."""

    code = "signature_form"


class SignatureInvalid(ProtocolError):
    """A signature does not verify."""

    code = "signature_invalid"


# --- a record (PROTOCOL.md, section 5) ---


class WireVersion(ProtocolError):
    """A line is of another wire version."""

    code = "version"


class RecordType(ProtocolError):
    """A line names more than one type of record."""

    code = "record_type"


class FieldMissing(ProtocolError):
    """A record lacks a field of its type."""

    code = "field_missing"


class FieldType(ProtocolError):
    """A field is of another JSON type."""

    code = "field_type"


class FieldValue(ProtocolError):
    """A field of the right type has a value that its rule refuses."""

    code = "field_value"


class TimeForm(ProtocolError):
    """A time is not spelled as the protocol spells times."""

    code = "time_form"


# --- a file (PROTOCOL.md, section 6) ---


class FileEmpty(ProtocolError):
    """A file has no line."""

    code = "file_empty"


class FileSize(ProtocolError):
    """A file is larger than 262,144 bytes."""

    code = "file_size"


class LineEnd(ProtocolError):
    """The last line of a file lacks its LF."""

    code = "line_end"


class BlankLine(ProtocolError):
    """A line of a file is blank."""

    code = "blank_line"


class RecordCount(ProtocolError):
    """A file has more than 1,000 records."""

    code = "record_count"


class KeyMixed(ProtocolError):
    """A file has lines of two keys."""

    code = "key_mixed"


class DuplicateRecord(ProtocolError):
    """A file says the same thing twice: one type and one subject."""

    code = "duplicate_record"


class UnsealedLine(ProtocolError):
    """A line that belongs to a sealed file stands in a file without a seal, or the reverse."""

    code = "unsealed_line"


class SealPlace(ProtocolError):
    """A seal stands elsewhere than in the first line."""

    code = "seal_place"


class SealRecords(ProtocolError):
    """A seal counts other records than follow it."""

    code = "seal_records"


class SealDigest(ProtocolError):
    """A seal's digest is not that of the bytes behind it."""

    code = "seal_digest"


class SealTime(ProtocolError):
    """A seal's number is more than a day above the seconds of its time."""

    code = "seal_time"


class LastSealContent(ProtocolError):
    """A file under the last seal holds something else than revocations."""

    code = "last_seal_content"


class Deferred(ProtocolError):
    """A record's time is more than a day ahead of the receiver's clock; the file may come again later."""

    code = "deferred"
