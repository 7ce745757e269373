"""How an interrupt ends the command.

Nothing is loaded for this that takes long, so that it holds while everything else is.
"""

from __future__ import annotations

import os
import signal
import termios
import threading
from typing import Final, NoReturn

STOPPED: Final = 130
_STANDARD_INPUT: Final = 0
_STANDARD_ERROR: Final = 2
_SHOW_CURSOR: Final = "\x1b[?25h\r\x1b[K"
_in_order: Final = threading.Event()


def stop_at_once(program: str) -> None:
    """Let an interrupt end the process there and then: what it was waiting for may never answer.

    A thread of its own waits for the interrupt, since Python's handlers wait until the main thread runs again.
    Nothing that is stored needs a farewell: a killed process loses only what it was about to write.
    """
    terminal = termios.tcgetattr(_STANDARD_INPUT) if os.isatty(_STANDARD_INPUT) else None
    main = threading.get_ident()

    def wait() -> NoReturn:
        signal.sigwait({signal.SIGINT})
        while _in_order.is_set():
            signal.pthread_kill(main, signal.SIGINT)
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


def stop_in_order() -> None:
    """Let an interrupt reach the main thread from now on: whoever serves first ends what is under way."""
    _in_order.set()
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
