"""The application of the command `remem`: its groups, and the commands that other distributions add."""

from __future__ import annotations

from typing import Annotated

import typer

import remem
from remem.cli import added, doctor, memory, sharing, trust
from remem.errors import RememError
from remem.protocol import self_test

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
    version: Annotated[  # noqa: ARG001 its own callback has acted on it
        bool, typer.Option("--version", help="Print the version.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Refuse to run on a library that judges signatures otherwise than the protocol does."""
    try:
        self_test()
    except RuntimeError as error:
        raise RememError(str(error), hint="pip install 'pynacl>=1.6.2'") from error


memory.register(app)
sharing.register(app)
trust.register(app)
doctor.register(app)
for _name, register in added.each("remem.commands"):
    register(app)
