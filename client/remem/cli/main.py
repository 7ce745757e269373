"""The start of the command `remem`: an interrupt ends it from here on, also while it is being loaded."""

from __future__ import annotations

import sys

from remem.cli.stopping import stop_at_once


def main() -> None:
    """Run the command."""
    stop_at_once("remem")
    from remem.cli.app import app
    from remem.cli.run import run

    sys.exit(run(app, "remem"))
