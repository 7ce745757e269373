"""The peers that a commons tells others of, as it last read them: the description is there when the database is not."""

from __future__ import annotations

import time
from typing import Final

from remem_server.database.engine import DATABASE_ERRORS, is_unavailable
from remem_server.gossip import peers
from remem_server.opening.context import Commons

_SECONDS: Final = 30


class PublishedPeers:
    """What is published of the peers of a commons."""

    def __init__(self, commons: Commons) -> None:
        self._commons = commons
        self._known: list[str] = []
        self._again = 0.0

    def read(self) -> list[str]:
        """Return their addresses, at most half a minute old."""
        if time.monotonic() >= self._again:
            self._again = time.monotonic() + _SECONDS
            try:
                with self._commons.reads.connect() as connection:
                    self._known = peers.published(connection)
            except DATABASE_ERRORS as error:
                if not is_unavailable(error):
                    raise
        return self._known
