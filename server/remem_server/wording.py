"""What is said about a value that came in another form: what was expected of it, and what came.

Parameters of a request and settings are checked by one library, whose own sentences are none of ours.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from remem.protocol.errors import show

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

# By the kind of the fault, with what the library says about the rule.
_EXPECTED: Final = {
    "bool_parsing": "true or false",
    "enum": "{expected}",
    "float_parsing": "a number",
    "greater_than": "more than {gt}",
    "greater_than_equal": "at least {ge}",
    "int_parsing": "an integer",
    "int_parsing_size": "an integer of fewer digits",
    "less_than_equal": "at most {le}",
    "string_too_long": "at most {max_length} characters",
}


def worded(fault: ErrorDetails) -> str:
    """Say what was expected and what came; a rule of ours has its own sentence."""
    known = fault.get("ctx", {})
    if fault["type"] == "value_error":
        return str(known["error"])
    expected = _EXPECTED.get(fault["type"], "another form").format(**known)
    return f"expected {expected}, got {show(fault['input'])}"
