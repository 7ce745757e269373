"""`remem-server`: the operator's command.

What was asked for goes to standard output, everything else to standard error. It ends with 0, with 1 where
something failed, with 2 where it was called in a way that it does not know, and with 3 where a rule forbids it.
"""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from pydantic import ValidationError
from sqlalchemy import Engine
from sqlalchemy.exc import DatabaseError

import remem
from remem.cli.output import AsJson, emit, table
from remem.cli.run import run
from remem.errors import RememError, Usage
from remem.protocol.errors import show
from remem_server import tokens
from remem_server.database import open_engine, writing
from remem_server.migrate import folder_lock, has_database, revision_of
from remem_server.migrate import migrate as bring_up
from remem_server.settings import Settings, system_clock
from remem_server.wording import worded

PROGRAM: Final = "remem-server"
# As large as the database counts.
_ID: Final = re.compile(r"[0-9]{1,18}")

app: Final = typer.Typer(
    name=PROGRAM,
    help="Run a commons: signed files of lessons in, the same bytes out.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
token: Final = typer.Typer(
    help="Who may publish: make, list and revoke tokens.", no_args_is_help=True, rich_markup_mode=None
)
app.add_typer(token, name="token")

Data = Annotated[Path | None, typer.Option(help="The data folder [REMEM_DATA; ./data].", show_default=False)]


def _print_version(asked: bool) -> None:
    if asked:
        print(f"{PROGRAM} {remem.__version__}")
        raise typer.Exit


@app.callback()
def _remem_server(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Hold the options that stand before any command."""


@app.command()
def serve(
    host: Annotated[str | None, typer.Option(help="Where to listen [REMEM_HOST; 127.0.0.1].")] = None,
    port: Annotated[
        str | None, typer.Option(metavar="<int>", help="The port, 0 for a free one [REMEM_PORT; 7363].")
    ] = None,
    data: Data = None,
    open_: Annotated[
        bool | None, typer.Option("--open/--closed", help="Let anyone publish [REMEM_OPEN; closed].")
    ] = None,
    private: Annotated[
        bool | None, typer.Option("--private/--public", help="Reading needs a token too [REMEM_PRIVATE; public].")
    ] = None,
) -> None:
    """Serve a commons. The first start makes its data folder, and prints a token."""
    from remem_server import serving
    from remem_server.app import create_app

    settings = _settings(host=host, port=port, data=data, open=open_, private=private)
    with _opened(settings) as engine:
        application = create_app(settings, engine, system_clock)
        asked = "port" in settings.model_fields_set
        listening = serving.listen(settings.host, settings.port, or_any=not asked)
        taken = listening.getsockname()[1]
        if taken != settings.port != 0:
            _note(f"port {settings.port} is taken, so this is {taken}")
        # Last, so that a start that fails has not made a token which nobody saw.
        here, elsewhere = serving.url_of(listening), serving.url_for_others(listening)
        announce = partial(_announce, here, elsewhere, settings, _first_token(engine))
        serving.run(serving.make_server(application), listening, announce)


@app.command()
def migrate(data: Data = None, as_json: AsJson = False) -> None:
    """Bring the data folder to this release; `serve` does it too."""
    settings = _settings(data=data)
    with _opened(settings) as engine:
        revision = revision_of(engine)
    emit({"data": settings.data, "revision": revision}, as_json, [])
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
    with _opened(_made(_settings(data=data))) as engine, writing(engine) as connection:
        try:
            secret, made = tokens.create(connection, now=system_clock(), label=label, principal=principal)
        except ValueError as error:
            raise Usage(str(error)) from error
    emit({"token": secret, **asdict(made)}, as_json, [secret])
    _note(f"token {made.id}, principal {made.principal}; the first key to publish with it keeps it")


@token.command("list")
def list_(data: Data = None, as_json: AsJson = False) -> None:
    """List the tokens, by id: a token itself is never shown again."""
    with _opened(_made(_settings(data=data))) as engine, engine.connect() as connection:
        made = tokens.list_all(connection)
    rows = [[str(one.id), _state(one), one.principal, one.key or "-", one.label] for one in made]
    emit(made, as_json, table(rows, ["id", "state", "principal", "key", "label"]) if rows else [])
    if not made:
        _note("there is no token yet")


@token.command()
def revoke(
    number: Annotated[str, typer.Argument(metavar="ID", help="Its id in `list`.")],
    data: Data = None,
    as_json: AsJson = False,
) -> None:
    """Revoke a token for good.

    Nobody publishes with it any more, and it no longer admits its key; what the key published stays.
    """
    settings = _made(_settings(data=data))
    hint = f"{PROGRAM} token list --data {_quoted(settings.data)}"
    if not _ID.fullmatch(number):
        raise Usage(f"expected the id of a token, a number, got {show(number)}", hint)
    with _opened(settings) as engine, writing(engine) as connection:
        revoked = tokens.revoke(connection, int(number), system_clock())
    if revoked is None:
        raise RememError(f"expected the id of a token, got {number}", hint)
    emit(revoked, as_json, [])
    _note(f"token {revoked.id} is revoked")


def main() -> None:
    """Run the command."""
    sys.exit(run(app, PROGRAM))


# --- what the commands share ---


def _settings(**options: Any) -> Settings:
    try:
        return Settings(**{name: value for name, value in options.items() if value is not None})
    except ValidationError as error:
        first = error.errors()[0]
        if not first["loc"]:
            raise Usage(worded(first), f"{PROGRAM} serve --help") from error
        name = str(first["loc"][0])
        variable = f"the variable REMEM_{name.upper()} sets it"
        hint = f"--{name} or {variable}" if name in options else variable
        raise Usage(f"{name}: {worded(first)}", hint) from error


def _made(settings: Settings) -> Settings:
    """Insist on a commons that was made before: a wrong folder must not become another one."""
    if not has_database(settings.data):
        hint = f"name its folder with --data, or make one: {PROGRAM} migrate --data {_quoted(settings.data)}"
        raise RememError(f"expected a commons in {settings.data}, got no database there", hint)
    return settings


@contextmanager
def _opened(settings: Settings) -> Iterator[Engine]:
    """Open a commons, made first where there is none, and brought to this release."""
    engine = open_engine(settings.data)
    try:
        with folder_lock(settings.data):
            bring_up(engine)
        yield engine
    except DatabaseError as error:
        raise RememError(f"expected a database that can be used, got one where {error.orig}") from error
    finally:
        engine.dispose()


def _first_token(engine: Engine) -> str | None:
    """Make a token for a commons that never had one."""
    with writing(engine) as connection:
        if tokens.any_made(connection):
            return None
        return tokens.create(connection, now=system_clock(), label="first token")[0]


def _announce(here: str, elsewhere: str | None, settings: Settings, first_token: str | None) -> None:
    print(f"serving {here}")
    if first_token is not None:
        print(f"token {first_token}")
        _note("this token is shown once; the first key to publish with it keeps it")
    address = elsewhere or here
    _note(f"to publish here: remem login {address}, then remem share {address}")
    _note(f"for another token: {PROGRAM} token create --data {_quoted(settings.data)}")
    if elsewhere is not None:
        _note("other machines reach this commons by plain HTTP: whoever carries the bytes can read the tokens")
        _note("put a proxy with TLS in front of it, and let people log in to the address of the proxy")
    if settings.open:
        _note("this commons is open: anyone who reaches it may publish without a token")
    _note("Ctrl-C ends it")
    sys.stdout.flush()


def _quoted(path: Path) -> str:
    return shlex.quote(str(path))


def _state(made: tokens.Token) -> str:
    return "revoked" if made.revoked else "bound" if made.key else "unused"


def _note(message: str) -> None:
    print(f"{PROGRAM}: {message}", file=sys.stderr)
