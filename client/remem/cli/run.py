"""The one place where failures of a command become messages and exit statuses; `remem-server` uses it too.

Exit status: 0 done, 1 failed, 2 a call that it does not know, 3 refused by a rule, 4 a commons did not answer,
5 partly done, 130 stopped by the person. A failure is one line on standard error, with a hint where one helps.
"""

from __future__ import annotations

import os
import sqlite3
import sys
from typing import Final

import typer

from remem.cli.stopping import STOPPED
from remem.errors import RememError, Usage
from remem.protocol import ProtocolError
from remem.sharing.escape import printable

_STANDARD_OUTPUT: Final = 1


def run(app: typer.Typer, program: str) -> int:
    """Run a command line, and return the exit status."""
    try:
        status = app(prog_name=program, standalone_mode=False)
        if sys.stdout is not None:
            sys.stdout.flush()
    except (BrokenPipeError, SystemExit):
        # Whoever read the output has enough, which Typer answers by ending the program. The interpreter must not try
        # to write the rest at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), _STANDARD_OUTPUT)
        return 0
    except (KeyboardInterrupt, typer.Abort):
        return _fail(program, RememError("stopped", exit_code=STOPPED))
    except Exception as error:  # what is not worded below is raised again
        if isinstance(error, typer.TyperException) and error.format_message().startswith("Usage:"):
            # A group that was called alone answers with its help.
            print(error.format_message(), file=sys.stderr)
            return Usage.default_exit_code
        told = _told(error, program)
        if told is None:
            raise
        return _fail(program, told)
    return status if isinstance(status, int) else 0


def _told(error: Exception, program: str) -> RememError | None:
    """Word a failure for the person; None for one that only a mistake of ours explains."""
    match error:
        case RememError():
            return error
        case ProtocolError():
            return RememError(f"{error.code}: {error}")
        case typer.TyperException():
            message = " ".join(error.format_message().split()).removesuffix(".")
            asked = getattr(getattr(error, "ctx", None), "command_path", program)
            return Usage(f"{message[:1].lower()}{message[1:]}", hint=f"{asked} --help")
        case OSError() if error.strerror and error.filename is not None:
            return RememError(f"{os.fsdecode(error.filename)}: {error.strerror.lower()}")
        case OSError() | sqlite3.Error():
            return RememError(str(error).lower())
        case _:
            return None


def _fail(program: str, error: RememError) -> int:
    print(f"{program}: error: {printable(error.message)}", file=sys.stderr)
    if error.hint:
        print(f"{program}: hint: {printable(error.hint)}", file=sys.stderr)
    return error.exit_code
