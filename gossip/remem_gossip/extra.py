"""What gossip needs beside a memory: the library of signatures, which an extra brings."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Final

from remem.errors import RememError

_LIBRARY: Final = "http_message_signatures"


def is_installed() -> bool:
    """Tell whether the extra is installed."""
    return find_spec(_LIBRARY) is not None


def need_library() -> None:
    """Stop where the extra is not installed.

    Raises:
        RememError: it is not, and what brings it.
    """
    if not is_installed():
        raise RememError("expected the library http-message-signatures, got none", "pip install 'remem[gossip]'")
