"""The one place where failures of a command become messages and exit statuses; `remem-server` uses it too.

Exit status: 0 done, 1 failed, 2 a call that it does not know, 3 refused by a rule, 4 a commons did not answer,
5 partly done, 130 stopped by the person. A failure is one line on standard error, with a hint where one helps.
"""

from __future__ import annotations

import os
import signal
import sqlite3
import sys
import termios
import threading
from typing import Final, NoReturn

import typer

from remem.errors import RememError, Usage
from remem.protocol import ProtocolError
from remem.sharing.escape import printable

STOPPED: Final = 130
_STANDARD_INPUT: Final = 0
_STANDARD_OUTPUT: Final = 1
_STANDARD_ERROR: Final = 2
_SHOW_CURSOR: Final = "\x1b[?25h\r\x1b[K"


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


def stop_at_once(program: str) -> None:
    """Let an interrupt end the process there and then: what it was waiting for may never answer.

    A thread of its own waits for the interrupt, since Python's handlers wait until the main thread runs again.
    Nothing that is stored needs a farewell: a killed process loses only what it was about to write.
    """
    terminal = termios.tcgetattr(_STANDARD_INPUT) if os.isatty(_STANDARD_INPUT) else None

    def wait() -> NoReturn:
        signal.sigwait({signal.SIGINT})
        if terminal is not None:
            # A question whose answer is hidden has turned the echo off.
            termios.tcsetattr(_STANDARD_INPUT, termios.TCSANOW, terminal)
        # Not by way of sys.stderr: the interrupt may have come while that was being written to.
        cursor = _SHOW_CURSOR if os.isatty(_STANDARD_ERROR) else ""
        os.write(_STANDARD_ERROR, f"{cursor}{program}: error: stopped\n".encode())
        os._exit(STOPPED)

    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    threading.Thread(target=wait, name="remem-interrupt", daemon=True).start()


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
