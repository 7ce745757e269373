"""The places where files can live: a folder, or a commons that answers over HTTP."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from remem.commons.base import (
    BLOCKED,
    BadAnswer,
    Commons,
    CommonsRefused,
    Descriptor,
    Entry,
    Listing,
    Published,
    Unreadable,
)
from remem.commons.folder import FolderCommons
from remem.errors import Usage

__all__ = [
    "BLOCKED",
    "BadAnswer",
    "Commons",
    "CommonsRefused",
    "Descriptor",
    "Entry",
    "FolderCommons",
    "Listing",
    "Published",
    "Unreadable",
    "commons_at",
    "is_url",
    "spell_target",
]

_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")


def is_url(target: str) -> bool:
    """Tell a URL from a folder: by its form alone, so that no typing error changes where things go."""
    return _SCHEME.match(target) is not None


def spell_target(target: str) -> str:
    """Spell a target in the one way that a memory files it under.

    Raises:
        Usage: the target is neither a URL of a commons nor a folder's name.
    """
    if is_url(target):
        from remem.commons.http import spell_url

        return spell_url(target)
    if not target or "\0" in target:
        raise Usage("expected a URL or a folder, got an empty name" if not target else "expected a folder's name")
    return str(Path(target).expanduser().resolve())


def commons_at(target: str, token: str | None = None) -> Commons:
    """Reach for the commons at a target; nothing is sent yet.

    Args:
        target: a URL or a folder.
        token: the token to show there; a folder needs none.

    Raises:
        Usage: the target is neither a URL of a commons nor a folder's name.
    """
    spelled = spell_target(target)
    if is_url(spelled):
        from remem.commons.http import HttpCommons

        return HttpCommons(spelled, token)
    return FolderCommons(Path(spelled))
