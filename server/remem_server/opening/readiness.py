"""Whether this server can serve: its database answers, and has the tables that this release needs.

A database of a later release is good too: another server brought it there, and its tables work with the release that
is still running. What counts is the database that is read: while the one that is written is away, reading goes on.
"""

from __future__ import annotations

from functools import cache

from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Engine

from remem_server.database import changes
from remem_server.errors import NotReady
from remem_server.opening.migrate import alembic_config


def check_ready(reads: Engine) -> None:
    """Ask the database.

    Raises:
        NotReady: its tables are of an earlier release.
    """
    with reads.connect() as connection:
        held = MigrationContext.configure(connection).get_current_revision()
        if held is None or held in _earlier():
            raise NotReady(f"expected a database of this release, got one of revision {held or 'none'}")
        changes.newest(connection)


@cache
def _earlier() -> frozenset[str]:
    """Name the revisions before this release's own."""
    scripts = ScriptDirectory.from_config(alembic_config())
    return frozenset(one.revision for one in scripts.walk_revisions() if not one.is_head)
