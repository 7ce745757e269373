"""How alembic reaches the database: over the connection of a migration, or from the settings.

The command line (`alembic check`, `alembic revision --autogenerate`) takes the database from the environment, as the
server does.
"""

from typing import Any

from alembic import context
from sqlalchemy import Connection

from remem_server.database.engine import open_database, writing
from remem_server.database.tables import metadata
from remem_server.settings import Settings

# What one of the two databases has of its own, made by hand in a migration: the full-text table of SQLite with the
# tables that it keeps itself in and its index of the heads of items, and the index of PostgreSQL.
OF_ONE_DATABASE = ("lesson_words", "ix_items_heads", "ix_lessons_words")


def is_shared(_thing: Any, name: str | None, _kind: str, _reflected: bool, _compared: Any) -> bool:
    return name is None or not name.startswith(OF_ONE_DATABASE)


def migrate(connection: Connection) -> None:
    # SQLite alters little in place, so a migration may copy a table.
    context.configure(connection=connection, target_metadata=metadata, render_as_batch=True, include_object=is_shared)
    with context.begin_transaction():
        context.run_migrations()


def main() -> None:
    if context.is_offline_mode():
        raise RuntimeError("expected a database to migrate, got --sql")
    handed = context.config.attributes.get("connection")
    if handed is not None:
        migrate(handed)
        return
    database = open_database(Settings())
    try:
        with writing(database.engine) as connection:
            migrate(connection)
    finally:
        database.close()


main()
