"""Where a bench keeps a commons, which can be copied as it is: a data folder, and a database of PostgreSQL or none."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql
from sqlalchemy import make_url

from remem_server.database.engine import Database, open_database
from remem_testkit.server import make_settings


class Place:
    """Where a commons is kept: a data folder, and a database of PostgreSQL where a server of it is given."""

    def __init__(self, data: Path, server: str | None) -> None:
        self.data, self.server = data, server
        self.options: dict[str, Any] = {}
        if server is not None:
            url = make_url(server).set(drivername="postgresql+psycopg", database=data.name)
            self.options["database_url"] = url.render_as_string(hide_password=False)

    def make(self, template: str = "template1") -> None:
        """Make the database, like another; one of SQLite is made where it is opened."""
        self._in_server("CREATE DATABASE {} TEMPLATE {}", self.data.name, template)

    def copied(self, data: Path) -> Place:
        """Make another that is as this one is."""
        copy = Place(data, self.server)
        shutil.copytree(self.data, data)
        copy.make(self.data.name)
        return copy

    def remove(self) -> None:
        shutil.rmtree(self.data)
        self._in_server("DROP DATABASE {} WITH (FORCE)", self.data.name)

    @contextmanager
    def opened(self) -> Iterator[Database]:
        with closing(open_database(make_settings(self.data, **self.options))) as database:
            yield database

    def _in_server(self, statement: str, *names: str) -> None:
        if self.server is not None:
            with psycopg.connect(self.server, autocommit=True) as connection:
                connection.execute(sql.SQL(statement).format(*map(sql.Identifier, names)))
