"""Which rules of judgement this release has (PROTOCOL.md, section 8).

What judgement says of a record is kept beside the record, here and on a server, so that it is worked out once. It
belongs to the rules that said it: a release with other rules judges all that is held again.
"""

from __future__ import annotations

from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import Final

_RULES: Final = (
    "guard.py",
    "guard_clause.py",
    "guard_words.py",
    "judgement.py",
    "rules.py",
    "text.py",
    "unicode14.py",
)


@cache
def judgement_name() -> str:
    """Name the rules of judgement of this release: a digest of their own text, so that no change is forgotten."""
    digest = sha256()
    for name in _RULES:
        digest.update(files("remem.protocol").joinpath(name).read_bytes())
    return digest.hexdigest()
