"""Make the vectors of PROTOCOL.md, version 1: the files of tests/vectors/.

    python -m tests.remem.protocol.make_vectors

run at the root of the repository writes them all, and removes those that are made no more. Every key comes from
a seed that is written down, Ed25519 signs alike every time, and no clock is read, so the files never change by
themselves; a test compares them with what is made here, byte for byte. `tests/vectors/README.md` says what
they hold; it is written by hand, and never touched from here.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

from .vectors_base import Vectors
from .vectors_files import file_vectors, newest_vectors
from .vectors_held import held_vectors
from .vectors_items import body_vectors, item_vectors
from .vectors_keys import key_vectors, signature_vectors
from .vectors_lines import line_vectors
from .vectors_records import record_vectors
from .vectors_revoked import revoked_vectors
from .vectors_seals import seal_vectors
from .vectors_states import event_vectors, state_vectors
from .vectors_texts import judgement_vectors, text_vectors

FOLDER: Final = Path(__file__).resolve().parents[2] / "vectors"


def all_vectors() -> dict[str, Vectors]:
    """Return every vector by its kind and name."""
    return {
        "line": line_vectors(),
        "signature": signature_vectors(),
        "key": key_vectors(),
        "record": record_vectors(),
        "file": file_vectors(),
        "newest": newest_vectors(),
        "text": text_vectors(),
        "judgement": judgement_vectors(),
        "state": state_vectors() | revoked_vectors() | held_vectors(),
        "event": event_vectors(),
        "seal": seal_vectors(),
        "item": item_vectors(),
        "body": body_vectors(),
    }


def all_files() -> dict[str, str]:
    """Return the text of every file of the folder, by its path in it."""
    return {
        f"{kind}/{name}.json": json.dumps(vector, indent=1) + "\n"
        for kind, vectors in all_vectors().items()
        for name, vector in vectors.items()
    }


def write() -> None:
    files = all_files()
    for old in FOLDER.glob("*/*.json"):
        if str(old.relative_to(FOLDER)) not in files:
            old.unlink()
    for path, text in files.items():
        target = FOLDER / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="ascii", newline="\n")


if __name__ == "__main__":
    write()
