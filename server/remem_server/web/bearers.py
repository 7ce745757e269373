"""Whose token a request that only reads shows.

The database that is read may be a replica, which has not heard of a token that was just made: what is unknown there is
asked of the primary, once. Of one that was just revoked it hears as late as of all else.
"""

from __future__ import annotations

from remem_server.errors import TokenUnknown
from remem_server.files import tokens
from remem_server.files.tokens import Token
from remem_server.opening.context import Commons


def bearer_of(commons: Commons, secret: str | None) -> Token:
    """Return the good token that a request carries.

    Raises:
        TokenError: it carries none that is good (`tokens.check`).
    """
    now = commons.clock()
    try:
        with commons.reads.connect() as connection:
            return tokens.check(connection, secret, now)
    except TokenUnknown:
        if commons.settings.replica_url is None:
            raise
    with commons.engine.connect() as connection:
        return tokens.check(connection, secret, now)
