"""What the operator's commands share: their options, their settings, an open commons, notes."""

from __future__ import annotations

import os
import pwd
import re
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from pydantic import ValidationError
from sqlalchemy.exc import DatabaseError

from remem.errors import Refused, RememError, Usage
from remem_server.database.engine import Database, open_database, why_of
from remem_server.errors import CommonsError, NotReady, ParameterForm
from remem_server.opening.context import Commons
from remem_server.opening.migrate import check_owner, has_database
from remem_server.opening.opened import commons_to_read, open_commons, prepared_database
from remem_server.opening.readiness import check_ready
from remem_server.settings import Settings
from remem_server.wording import place_of, worded

PROGRAM: Final = "remem-server"

# As large as the database counts.
_NUMBER: Final = re.compile(r"[0-9]{1,18}")

Data = Annotated[Path | None, typer.Option(help="The data folder [REMEM_DATA; ./data].", show_default=False)]


def settings_of(**options: Any) -> Settings:
    """Read the settings, options first.

    Raises:
        Usage: one has another form.
    """
    try:
        return Settings(**{name: value for name, value in options.items() if value is not None})
    except ValidationError as error:
        first = error.errors()[0]
        if not first["loc"]:
            raise Usage(worded(first), f"{PROGRAM} serve --help") from error
        # The elements of a list come from one variable.
        name = place_of(first).partition(".")[0]
        variable = f"the variable REMEM_{name.upper()} sets it"
        hint = f"--{name} or {variable}" if name in options else variable
        raise Usage(f"{name}: {worded(first)}", hint) from error


def made(settings: Settings) -> Settings:
    """Insist on a commons that was made before: a wrong folder must not become another one."""
    if settings.database_url is None and not has_database(settings.data):
        make = f"make one: {PROGRAM} migrate --data {quoted(settings.data)}"
        hint = f"name its folder with --data, or its PostgreSQL by the variable REMEM_DATABASE_URL, or {make}"
        raise RememError(f"expected a commons in {settings.data}, got no database there", hint)
    return settings


@contextmanager
def opened(settings: Settings, *, serves: bool = False) -> Iterator[Commons]:
    """Open a commons with the key of its node, made first where there is none."""
    with _told(), open_commons(settings if serves else _at_its_source(settings), serves=serves) as commons:
        yield commons


@contextmanager
def opened_database(settings: Settings) -> Iterator[Database]:
    """Open the database of a commons alone."""
    with _told(), prepared_database(_at_its_source(settings)) as database:
        yield database


@contextmanager
def read_database(settings: Settings) -> Iterator[Database]:
    """Open the database of a commons to read it: nothing is made, migrated or waited for.

    Raises:
        RememError: it is of an earlier release, or cannot be used.
    """
    if settings.database_url is None:
        check_owner(settings.data)
    with _told():
        database = open_database(_at_its_source(settings))
        try:
            check_ready(database.reads)
            yield database
        except NotReady as error:
            raise RememError(str(error), f"{PROGRAM} migrate --data {quoted(settings.data)}") from error
        finally:
            database.close()


@contextmanager
def read_commons(settings: Settings) -> Iterator[Commons]:
    """Open a commons to read it, with the key of its node, which was made before; see `read_database`."""
    with read_database(settings) as database:
        yield commons_to_read(_at_its_source(settings), database)


def _at_its_source(settings: Settings) -> Settings:
    """Leave out the replica: whoever just did something wants to see it."""
    return settings.model_copy(update={"replica_url": None})


@contextmanager
def _told() -> Iterator[None]:
    try:
        yield
    except DatabaseError as error:
        raise RememError(f"expected a database that can be used, got one where {why_of(error)}") from error


@contextmanager
def refusing() -> Iterator[None]:
    """Tell what the commons refuses as a command tells it."""
    try:
        yield
    except ParameterForm as error:
        raise Usage(str(error)) from error
    except CommonsError as error:
        raise Refused(f"{error.code}: {error}") from error


def this_person() -> str:
    """Name whoever runs the command, for the journal: by the machine's word, and not by that of a variable."""
    number = os.getuid()
    try:
        name = pwd.getpwuid(number).pw_name
    except KeyError:
        # In a container a user may have a number alone.
        name = f"user {number}"
    return f"command by {name}"


def number_of(text: str) -> int | None:
    """Read a number as the database counts; None for anything else."""
    return int(text) if _NUMBER.fullmatch(text) else None


def quoted(path: Path) -> str:
    """Write a path as a shell reads it."""
    return shlex.quote(str(path))


def note(message: str) -> None:
    """Tell something beside what was asked for."""
    print(f"{PROGRAM}: {message}", file=sys.stderr)
