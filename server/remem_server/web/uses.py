"""When tokens were last used, where they only read: noted at most once a day each, and behind the answer.

So no reader waits for a writer, and a database that cannot be written now, or a replica that is behind, makes no
difference to what is answered. Where it was not written, that is tried again a minute later. A publication notes the
use of its token itself, in its own transaction.
"""

from __future__ import annotations

import logging
from datetime import datetime, timedelta
from typing import Final

from starlette.concurrency import run_in_threadpool

from remem_server.database.engine import DATABASE_ERRORS, is_unavailable, why_of, writing
from remem_server.files import tokens
from remem_server.files.tokens import Token
from remem_server.opening.context import Commons

_log: Final = logging.getLogger("remem_server")
_AGAIN: Final = timedelta(days=1)
_LATER: Final = timedelta(minutes=1)


class Uses:
    """When this server is to note the use of a token again."""

    def __init__(self, commons: Commons) -> None:
        self._commons = commons
        # A replica may not have heard of it yet, and many requests of one token come at once.
        self._again: dict[int, datetime] = {}
        self._swept: datetime | None = None

    async def note(self, token: Token) -> None:
        """Note that a token was used, if that was not done today."""
        now = self._commons.clock()
        self._sweep(now)
        again = self._again.get(token.id) or (token.used and token.used + _AGAIN)
        if again is not None and now < again:
            return
        self._again[token.id] = now + _AGAIN
        if not await run_in_threadpool(self._write, token, now):
            self._again[token.id] = now + _LATER

    def _sweep(self, now: datetime) -> None:
        """Forget, once a day, what is over."""
        if self._swept is None or now - self._swept >= _AGAIN:
            self._swept = now
            self._again = {number: again for number, again in self._again.items() if again > now}

    def _write(self, token: Token, now: datetime) -> bool:
        try:
            with writing(self._commons.engine) as connection:
                tokens.note_use(connection, token, now)
        except DATABASE_ERRORS as error:
            if not is_unavailable(error):
                raise
            _log.warning("the last use of a token is not noted: %s", why_of(error))
            return False
        return True
