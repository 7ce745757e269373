"""How alembic reaches the database: over the connection that `remem_server.migrate` hands it, or from the settings.

The command line (`alembic check`, `alembic revision --autogenerate`) takes the data folder from REMEM_DATA.
"""

from alembic import context
from sqlalchemy import Connection

from remem_server.database import open_engine, writing
from remem_server.settings import Settings
from remem_server.tables import metadata


def migrate(connection: Connection) -> None:
    # SQLite alters little in place, so a migration may copy a table.
    context.configure(connection=connection, target_metadata=metadata, render_as_batch=True)
    with context.begin_transaction():
        context.run_migrations()


def main() -> None:
    if context.is_offline_mode():
        raise RuntimeError("expected a database to migrate, got --sql")
    handed = context.config.attributes.get("connection")
    if handed is not None:
        migrate(handed)
        return
    engine = open_engine(Settings().data)
    try:
        with writing(engine) as connection:
            migrate(connection)
    finally:
        engine.dispose()


main()
