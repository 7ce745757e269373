"""The start of `remem-server`: the command, or what to install where the server's packages are not there.

A plain `pip install remem` brings this package and none of what it stands on, so nothing of that is imported
before it was looked for.
"""

from __future__ import annotations

import gc
import sys
from importlib.util import find_spec
from typing import Final

# What the extra brings that the command cannot do without.
# fmt: off
PACKAGES: Final = (
    "fastapi", "uvicorn", "httptools", "starlette", "pydantic", "anyio", "sqlalchemy", "alembic", "pydantic_settings",
    "psycopg", "structlog", "prometheus_client", "http_message_signatures",
)
# fmt: on

# As `remem.cli.run` ends, which is not loaded then.
_STOPPED: Final = 130


def main() -> None:
    """Run the command, if what it stands on is installed."""
    if missing := [name for name in PACKAGES if find_spec(name) is None]:
        sys.exit(
            f"remem-server: error: expected the server's packages, got none of {', '.join(missing)}\n"
            "remem-server: hint: pip install 'remem[server]'"
        )
    # What is loaded stays: the collector of garbage would look through all of it, over and over.
    gc.disable()
    try:
        from remem_server.commands import main as command
    except KeyboardInterrupt:
        sys.stderr.write("remem-server: error: stopped\n")
        sys.exit(_STOPPED)

    gc.freeze()
    gc.enable()
    command()


if __name__ == "__main__":
    main()
