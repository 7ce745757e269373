"""`remem-server serve` and `migrate`."""

from __future__ import annotations

import gc
import sys
from functools import partial
from typing import Annotated

import typer

from remem.cli.output import AsJson, emit
from remem_server.commands.common import (
    PROGRAM,
    Data,
    note,
    opened,
    opened_database,
    quoted,
    settings_of,
    this_person,
)
from remem_server.opening.migrate import revision_of
from remem_server.operator import acts
from remem_server.settings import Settings, system_clock


def add_to(app: typer.Typer) -> None:
    """Add the commands."""
    app.command()(serve)
    app.command()(migrate)


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
    from remem_server.web import serving
    from remem_server.web.app import create_app
    from remem_server.web.logs import open_log

    settings = settings_of(host=host, port=port, data=data, open=open_, private=private)
    with opened(settings, serves=True) as commons:
        application = create_app(commons)
        # A person reads which port it became; whoever else started this looks for it where it always is.
        or_any = "port" not in settings.model_fields_set and sys.stdout.isatty()
        listening = serving.listen(settings.host, settings.port, or_any=or_any)
        taken = listening.getsockname()[1]
        if taken != settings.port != 0:
            note(f"port {settings.port} is taken, so this is {taken}")
        # Last, so that a start that fails has not made a token which nobody saw.
        here, elsewhere = serving.url_of(listening), serving.url_for_others(listening)
        first_token = acts.first_token(commons.engine, this_person(), system_clock())
        announce = partial(_announce, here, elsewhere, settings, first_token)
        # What is loaded stays: the collector of garbage would look through all of it for every large file.
        gc.collect()
        gc.freeze()
        serving.run(serving.make_server(application, log=open_log(settings.log_format)), listening, announce)


def migrate(data: Data = None, as_json: AsJson = False) -> None:
    """Bring the database to this release; `serve` does it too."""
    settings = settings_of(data=data)
    with opened_database(settings) as database:
        revision = revision_of(database.engine)
    emit({"data": settings.data, "revision": revision}, as_json, [])
    what = settings.data if settings.database_url is None else "the database"
    note(f"{what} is of this release")


def _announce(here: str, elsewhere: str | None, settings: Settings, first_token: str | None) -> None:
    print(f"serving {here}")
    if first_token is not None:
        print(f"token {first_token}")
        note("this token is shown once; the first key to publish with it keeps it")
    address = elsewhere or here
    note(f"to publish here: remem login {address}, then remem share {address}")
    where = "" if settings.database_url is None else ", with the same REMEM_DATABASE_URL"
    note(f"for another token: {PROGRAM} token create --data {quoted(settings.data)}{where}")
    if elsewhere is not None:
        note("other machines reach this commons by plain HTTP: whoever carries the bytes can read the tokens")
        note("put a proxy with TLS in front of it, and let people log in to the address of the proxy")
    if settings.open:
        note("this commons is open: anyone who reaches it may publish without a token")
    note("Ctrl-C ends it")
    sys.stdout.flush()
