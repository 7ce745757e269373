"""`remem-server`: the operator's command, put together.

What was asked for goes to standard output, everything else to standard error. It ends with 0, with 1 where
something failed, with 2 where it was called in a way that it does not know, with 3 where a rule forbids it, with 4
where a place cannot be reached or written, and with 5 where a part was done.
"""

from __future__ import annotations

import sys
from typing import Annotated, Final

import typer

import remem
from remem.cli.run import run
from remem_server.commands import acts, keeping, peers, serving, tokens
from remem_server.commands.common import PROGRAM

app: Final = typer.Typer(
    name=PROGRAM,
    help="Run a commons: signed files of lessons in, the same bytes out.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
serving.add_to(app)
acts.add_to(app)
keeping.add_to(app)
app.add_typer(tokens.app, name="token")
app.add_typer(peers.app, name="peers")
app.command()(peers.gossip)


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


def main() -> None:
    """Run the command."""
    sys.exit(run(app, PROGRAM))
