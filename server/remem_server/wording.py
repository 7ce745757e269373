"""What is said about a value that came in another form: where it stands, what was expected of it, and what came.

Parameters and bodies of a request and settings are checked by one library, whose own sentences are none of ours.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from remem.protocol.errors import show

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

_BOOLEAN: Final = "true or false"
_INTEGER: Final = "an integer"
_NUMBER: Final = "a number"
_OBJECT: Final = "an object"
_TEXT: Final = "a text"
_TIME: Final = "a time like 2027-01-31T12:00:00Z"

EXPECTED: Final = {
    "bool_parsing": _BOOLEAN,
    "bool_type": _BOOLEAN,
    "datetime_from_date_parsing": _TIME,
    "datetime_object_invalid": _TIME,
    "datetime_parsing": _TIME,
    "datetime_type": _TIME,
    "enum": "{expected}",
    "extra_forbidden": "no such field",
    "finite_number": "a number that is finite",
    "float_parsing": _NUMBER,
    "float_type": _NUMBER,
    "greater_than": "more than {gt}",
    "greater_than_equal": "at least {ge}",
    "int_from_float": _INTEGER,
    "int_parsing": _INTEGER,
    "int_parsing_size": "an integer of fewer digits",
    "int_type": _INTEGER,
    "json_invalid": "JSON",
    "less_than_equal": "at most {le}",
    "literal_error": "{expected}",
    "missing": "a value",
    "model_attributes_type": _OBJECT,
    "model_type": _OBJECT,
    "path_type": "a path",
    "string_too_long": "at most {max_length} characters",
    "string_type": _TEXT,
    "string_unicode": "a text in UTF-8",
    "timezone_aware": "a time with a zone, like 2027-01-31T12:00:00Z",
    "tuple_type": "a list",
}
"""By the kind of the fault, with what the library says about the rule."""

_IN_JSON: Final = re.compile(r"line \d+ column \d+")


def worded(fault: ErrorDetails) -> str:
    """Say what was expected and what came; a rule of ours has its own sentence."""
    known = fault.get("ctx", {})
    if fault["type"] == "value_error":
        return str(known["error"])
    # A rule that no form of ours has yet would at least be told in the library's words.
    expected = EXPECTED.get(fault["type"], fault["msg"].lower()).format(**known)
    return f"expected {expected}, got {_came(fault)}"


def place_of(fault: ErrorDetails, *, within: int = 0) -> str:
    """Name the field that a fault is in, its parts joined by dots; nothing where it is in the whole.

    Args:
        fault: the fault.
        within: how many parts say where the fields are, and not which of them.
    """
    return ".".join(map(str, fault["loc"][within:]))


def _came(fault: ErrorDetails) -> str:
    """Spell what came: a text, a number and the like as it is, and of anything larger what it is."""
    value = fault["input"]
    if fault["type"] == "missing":
        return "none"
    if fault["type"] == "json_invalid":
        place = _IN_JSON.search(fault["msg"])
        return f"something else at {place[0]}" if place else "something else"
    match value:
        case dict():
            return "an object"
        case list() | tuple():
            return "a list"
        case _:
            return show(value)
