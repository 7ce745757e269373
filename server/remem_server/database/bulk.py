"""Many rows at once: what a file says is hundreds of rows of each table.

Rows are plain tuples of the columns that are named. SQLite runs one prepared statement for each of them; PostgreSQL
gets their columns as arrays, in one statement and one trip. What many rows are looked for by is one parameter.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Sequence
from functools import cache
from typing import Any, Final, Self

from sqlalchemy import (
    ARRAY,
    Boolean,
    ColumnElement,
    Connection,
    Dialect,
    Integer,
    LargeBinary,
    Table,
    Text,
    TypeDecorator,
    bindparam,
)
from sqlalchemy.dialects.postgresql import TSVECTOR
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement
from sqlalchemy.sql.operators import OperatorType
from sqlalchemy.types import TypeEngine

from remem_server.database.engine import is_postgres
from remem_server.database.tables import Moment, spelled

Rows = Sequence[tuple[Any, ...]]
Names = tuple[str, ...]


# --- looking for many ---


class _Names(TypeDecorator[Collection[str]]):
    """Many names in one parameter: an array, or a list in JSON where there are no arrays."""

    impl = Text
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        return dialect.type_descriptor(ARRAY(Text()) if dialect.name == "postgresql" else Text())

    def process_bind_param(self, value: Collection[str] | None, dialect: Dialect) -> list[str] | str:
        names = list(value or ())
        return names if dialect.name == "postgresql" else json.dumps(names)


class among(FunctionElement[bool]):  # noqa: N801  # it reads as the functions of SQL do
    """Ask that a column is one of the names in a parameter."""

    type = Boolean()
    inherit_cache = True

    def __init__(self, column: ColumnElement[str], parameter: str) -> None:
        super().__init__(column, bindparam(parameter, type_=_Names()))

    def self_group(self, against: OperatorType | None = None) -> Self:  # noqa: ARG002  # SQLAlchemy gives it
        """Stay as it is: `… = 1`, as SQLite gets what is true or false, would keep it from using an index."""
        return self


@compiles(among, "sqlite")
def _among_in_sqlite(element: among, compiler: SQLCompiler, **options: Any) -> str:
    column, names = (compiler.process(clause, **options) for clause in element.clauses)
    return " ".join((column, "IN (SELECT value FROM json_each", f"({names}))"))


@compiles(among, "postgresql")
def _among_in_postgres(element: among, compiler: SQLCompiler, **options: Any) -> str:
    column, names = (compiler.process(clause, **options) for clause in element.clauses)
    return f"{column} = ANY ({names})"


# --- writing many ---


def insert_rows(connection: Connection, table: Table, names: Names, rows: Rows) -> None:
    """Insert rows that have these columns."""
    _run(connection, "INSERT", table, names, (), rows)


def update_rows(connection: Connection, table: Table, names: Names, by: Names, rows: Rows) -> None:
    """Change columns of rows that are there.

    Args:
        connection: of a transaction that writes.
        table: where the rows are.
        names: the columns that change.
        by: the columns that tell which row it is.
        rows: the values of the first, and behind them those of the second.
    """
    _run(connection, "UPDATE", table, names, by, rows)


def delete_rows(connection: Connection, table: Table, by: Names, rows: Rows) -> None:
    """Delete the rows whose columns `by` have these values."""
    _run(connection, "DELETE", table, (), by, rows)


def _run(connection: Connection, verb: str, table: Table, names: Names, by: Names, rows: Rows) -> None:
    if not rows:
        return
    columns: list[Iterable[Any]] = list(zip(*rows, strict=True))
    if is_postgres(connection):
        connection.exec_driver_sql(_for_postgres(verb, table, names, by), tuple(map(list, columns)))
        return
    for index, name in enumerate(names + by):
        if isinstance(table.c[name].type, Moment):
            columns[index] = map(spelled, columns[index])
    connection.exec_driver_sql(_for_sqlite(verb, table, names, by), list(zip(*columns, strict=True)))


@cache
def _for_sqlite(verb: str, table: Table, names: Names, by: Names) -> str:
    which = " AND ".join(f"{name} = ?" for name in by)
    if verb == "INSERT":
        parts = ["INSERT INTO", table.name, f"({', '.join(names)})", "VALUES", f"({', '.join('?' * len(names))})"]
    elif verb == "UPDATE":
        parts = ["UPDATE", table.name, "SET", ", ".join(f"{name} = ?" for name in names), "WHERE", which]
    else:
        parts = ["DELETE FROM", table.name, "WHERE", which]
    return " ".join(parts)


@cache
def _for_postgres(verb: str, table: Table, names: Names, by: Names) -> str:
    arrays = ", ".join(f"%s::{_array_of(table.c[name].type)}" for name in names + by)
    given = f"unnest({arrays}) AS given ({', '.join(names + by)})"
    which = " AND ".join(f"{table.name}.{name} = given.{name}" for name in by)
    if verb == "INSERT":
        parts = ["INSERT INTO", table.name, f"({', '.join(names)})", "SELECT * FROM", given]
    elif verb == "UPDATE":
        changes = ", ".join(f"{name} = given.{name}" for name in names)
        parts = ["UPDATE", table.name, "SET", changes, "FROM", given, "WHERE", which]
    else:
        parts = ["DELETE FROM", table.name, "USING", given, "WHERE", which]
    return " ".join(parts)


_ARRAYS: Final = (
    (Moment, "timestamptz[]"),
    (Boolean, "boolean[]"),
    (Integer, "bigint[]"),
    (TSVECTOR, "tsvector[]"),
    (LargeBinary, "bytea[]"),
)


def _array_of(type_: TypeEngine[Any]) -> str:
    return next((array for kind, array in _ARRAYS if isinstance(type_, kind)), "text[]")
