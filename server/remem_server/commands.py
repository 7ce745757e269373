"""`remem-server`: the operator's command.

What was asked for goes to standard output, everything else to standard error. It ends with 0, with 1 where
something failed, and with 2 where it was called in a way that it does not know.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from pydantic import ValidationError
from pydantic_settings import SettingsError
from sqlalchemy import Engine
from sqlalchemy.exc import DatabaseError

from remem.errors import RememError, Usage
from remem.protocol.times import format_time
from remem_server import serving, tokens
from remem_server.app import create_app
from remem_server.database import open_engine, writing
from remem_server.migrate import folder_lock, has_database
from remem_server.migrate import migrate as bring_up
from remem_server.settings import Settings, system_clock

PROGRAM: Final = "remem-server"

app: Final = typer.Typer(
    name=PROGRAM,
    help="Run a commons: signed files of lessons in, the same bytes out.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
token: Final = typer.Typer(
    help="Who may publish: make, list and revoke tokens.", no_args_is_help=True, rich_markup_mode=None
)
app.add_typer(token, name="token")

Data = Annotated[Path | None, typer.Option(help="The data folder [REMEM_DATA; ./data].", show_default=False)]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.command()
def serve(
    host: Annotated[str | None, typer.Option(help="Where to listen [REMEM_HOST; 127.0.0.1].")] = None,
    port: Annotated[int | None, typer.Option(help="The port, 0 for a free one [REMEM_PORT; 7363].")] = None,
    data: Data = None,
    open_: Annotated[
        bool | None, typer.Option("--open/--closed", help="Let anyone publish [REMEM_OPEN; closed].")
    ] = None,
    private: Annotated[
        bool | None, typer.Option("--private/--public", help="Reading needs a token too [REMEM_PRIVATE; public].")
    ] = None,
) -> None:
    """Serve a commons. The first start makes its data folder, and prints a token."""
    settings = _settings(host=host, port=port, data=data, open=open_, private=private)
    with _prepared(settings) as (engine, first_token):
        application = create_app(settings, engine, system_clock)
        asked = "port" in settings.model_fields_set
        listening = serving.listen(settings.host, settings.port, or_any=not asked)
        taken = listening.getsockname()[1]
        if taken != settings.port != 0:
            _note(f"port {settings.port} is taken, so this is {taken}")
        _announce(serving.url_of(listening), settings, first_token)
        serving.run(serving.make_server(application), listening)


@app.command()
def migrate(data: Data = None) -> None:
    """Bring the data folder to this release; `serve` does it too."""
    settings = _settings(data=data)
    with _engine(settings) as engine, folder_lock(settings.data):
        bring_up(engine)
    _note(f"{settings.data} is of this release")


@token.command()
def create(
    label: Annotated[str, typer.Option(help="A note of your own.")] = "",
    principal: Annotated[
        str | None,
        typer.Option(help="Who answers for its key; tokens that share it count once. Random if not given."),
    ] = None,
    data: Data = None,
    as_json: AsJson = False,
) -> None:
    """Make a token and print it: it is never shown again."""
    with _made(_settings(data=data)) as engine, writing(engine) as connection:
        try:
            secret, made = tokens.create(connection, now=system_clock(), label=label, principal=principal)
        except ValueError as error:
            raise Usage(str(error)) from error
    if as_json:
        _print_json({"token": secret, **_fields(made)})
    else:
        print(secret)
        _note(f"token {made.id}, principal {made.principal}; the first key to publish with it keeps it")


@token.command("list")
def list_(data: Data = None, as_json: AsJson = False) -> None:
    """List the tokens, which are shown by number and never themselves."""
    with _made(_settings(data=data)) as engine, engine.connect() as connection:
        made = tokens.list_all(connection)
    if as_json:
        _print_json([_fields(one) for one in made])
        return
    for one in made:
        state = "revoked" if one.revoked else "bound" if one.key else "unused"
        print(f"{one.id:>4}  {state:<7}  {one.principal:<16}  {one.key or '-':<64}  {one.label}".rstrip())
    if not made:
        _note("there is no token yet")


@token.command()
def revoke(number: Annotated[int, typer.Argument(help="Its number in `list`.")], data: Data = None) -> None:
    """Revoke a token for good: nobody publishes with it any more, and its key is no longer admitted by it."""
    with _made(_settings(data=data)) as engine, writing(engine) as connection:
        if not tokens.revoke(connection, number, system_clock()):
            raise RememError(f"expected the number of a token, got {number}", f"{PROGRAM} token list")
    _note(f"token {number} is revoked")


def main() -> None:
    """Run the command, and turn whatever stops it into a message and an exit code."""
    try:
        status = app(standalone_mode=False)
    except RememError as error:
        status = _fail(error.message, error.hint, error.exit_code)
    except typer.TyperException as error:
        status = _fail(error.format_message(), f"{PROGRAM} --help", error.exit_code)
    except typer.Abort:
        status = 1
    except DatabaseError as error:
        status = _fail(f"expected a database that can be used, got: {error.orig}")
    sys.exit(status if isinstance(status, int) else 0)


# --- what the commands share ---


def _settings(**options: Any) -> Settings:
    try:
        return Settings(**{name: value for name, value in options.items() if value is not None})
    except ValidationError as error:
        first = error.errors()[0]
        name = f"{first['loc'][0]}: " if first["loc"] else ""
        raise Usage(f"{name}{first['msg'][:1].lower()}{first['msg'][1:]}") from error
    except SettingsError as error:
        raise Usage(str(error)) from error


@contextmanager
def _engine(settings: Settings) -> Iterator[Engine]:
    engine = open_engine(settings.data)
    try:
        yield engine
    finally:
        engine.dispose()


@contextmanager
def _made(settings: Settings) -> Iterator[Engine]:
    """Open a commons that was made before: a wrong folder must not become another one."""
    if not has_database(settings.data):
        hint = f"name its folder with --data, or make one: {PROGRAM} migrate --data {settings.data}"
        raise RememError(f"expected a commons in {settings.data}, got no database there", hint)
    with _engine(settings) as engine:
        with folder_lock(settings.data):
            bring_up(engine)
        yield engine


@contextmanager
def _prepared(settings: Settings) -> Iterator[tuple[Engine, str | None]]:
    """Open a commons, made first where there is none; with its first token if it never had one."""
    first_token = None
    with _engine(settings) as engine:
        with folder_lock(settings.data):
            bring_up(engine)
            with writing(engine) as connection:
                if not tokens.any_made(connection):
                    first_token, _made = tokens.create(connection, now=system_clock(), label="first token")
        yield engine, first_token


def _announce(url: str, settings: Settings, first_token: str | None) -> None:
    print(f"serving {url}")
    if first_token is not None:
        print(f"token {first_token}")
        _note("this token is shown once; the first key to publish with it keeps it")
    _note(f"to publish here: remem login {url}, then remem share {url}")
    _note(f"for another token: {PROGRAM} token create --data {settings.data}")
    if settings.open:
        _note("this commons is open: anyone who reaches it may publish without a token")
    _note("Ctrl-C ends it")
    sys.stdout.flush()


def _fields(made: tokens.Token) -> dict[str, Any]:
    return {
        "id": made.id,
        "label": made.label,
        "principal": made.principal,
        "key": made.key,
        "created": format_time(made.created),
        "revoked": None if made.revoked is None else format_time(made.revoked),
    }


def _print_json(value: object) -> None:
    print(json.dumps(value, indent=2))


def _note(message: str) -> None:
    print(f"{PROGRAM}: {message}", file=sys.stderr)


def _fail(message: str, hint: str | None = None, status: int = 1) -> int:
    print(f"{PROGRAM}: error: {message}", file=sys.stderr)
    if hint is not None:
        print(f"{PROGRAM}: hint: {hint}", file=sys.stderr)
    return status


if __name__ == "__main__":
    main()
