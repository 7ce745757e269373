"""The command `remem`: its groups, and the one place where failures become messages and exit statuses.

Exit status: 0 done, 1 failed, 2 a call that it does not know, 3 refused by a rule, 4 a commons did not answer,
5 partly done. Data goes to standard output, everything else to standard error, a failure as one line.
"""

from __future__ import annotations

import os
import sqlite3
import sys
from importlib.metadata import entry_points
from typing import Annotated

import typer

import remem
from remem.cli import memory, sharing, trust
from remem.cli.output import fail
from remem.errors import RememError, Usage
from remem.protocol import ProtocolError

app = typer.Typer(
    name="remem",
    help="A memory of lessons, and the commons in which memories share them.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
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
    """Run the command; every failure is one line on standard error and an exit status."""
    try:
        status = app(standalone_mode=False)
        sys.stdout.flush()
    except BrokenPipeError:
        # Whoever read the output has enough. The interpreter must not try to write the rest.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        status = 0
    except typer.TyperException as error:
        message = " ".join(error.format_message().split())
        status = fail(Usage(message[:1].lower() + message[1:].removesuffix("."), hint="remem --help lists the commands"))
    except RememError as error:
        status = fail(error)
    except ProtocolError as error:
        status = fail(RememError(f"{error.code}: {error}"))
    except (OSError, sqlite3.Error) as error:
        status = fail(RememError(str(error).lower()))
    except (KeyboardInterrupt, typer.Abort):
        status = fail(RememError("stopped", exit_code=130))
    sys.exit(status or 0)
