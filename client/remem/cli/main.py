"""The command `remem`: its groups, and the commands that other distributions add."""

from __future__ import annotations

import sys
from importlib.metadata import entry_points
from typing import Annotated

import typer

import remem
from remem.cli import memory, sharing, trust
from remem.cli.run import run, stop_at_once

app = typer.Typer(
    name="remem",
    help="A memory of lessons, and the commons in which memories share them.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(asked: bool) -> None:
    if asked:
        print(f"remem {remem.__version__}")
        raise typer.Exit


@app.callback()
def _remem(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Hold the options that stand before any command."""


memory.register(app)
sharing.register(app)
trust.register(app)
# Other distributions and extras add their commands by name ; `remem` imports none of them.
for entry in sorted(entry_points(group="remem.commands"), key=lambda found: found.name):
    entry.load()(app)


def main() -> None:
    """Run the command."""
    stop_at_once("remem")
    sys.exit(run(app, "remem"))
