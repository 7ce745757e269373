"""The URL of a PostgreSQL database: read once, before anything is asked by it.

It may hold a password, so no message says what came. A password is everything up to the first `@`: where one has an
`@` in it that is not written `%40`, its rest would be taken for the name of a machine, and told in every error.
"""

from __future__ import annotations

from typing import Final

import psycopg
from psycopg.conninfo import conninfo_to_dict
from sqlalchemy import make_url
from sqlalchemy.exc import ArgumentError

SCHEME: Final = "postgresql+psycopg://"
_PORT_MOST: Final = 65_535


def conninfo_of(url: str) -> str:
    """Return what the driver is asked with.

    Raises:
        ValueError: the URL has another form.
    """
    if not url.startswith(SCHEME):
        raise ValueError(f"expected a URL that begins with {SCHEME}, got another")
    try:
        read = make_url(url)
        # The driver is our own choice, and the rest of the URL is what libpq calls a connection string.
        conninfo = read.set(drivername="postgresql").render_as_string(hide_password=False)
        conninfo_to_dict(conninfo)
    except (ArgumentError, ValueError, psycopg.Error):
        # Not as the cause of ours: the text of each of them has parts of the URL.
        read, conninfo = None, ""
    if read is None or not 0 <= (read.port or 0) <= _PORT_MOST:
        raise ValueError(f"expected {SCHEME}USER:PASSWORD@HOST:PORT/NAME, got another form")
    if "@" in (read.host or ""):
        raise ValueError("expected one '@' before the host, and each in a password written %40, got more")
    return conninfo
