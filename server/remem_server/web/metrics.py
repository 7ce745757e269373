"""What can be measured of a commons, as Prometheus reads it at `/metrics`.

Each server tells of its own requests, and all of them of the one database. What is counted in the database is
counted when somebody asks, and at most every 15 seconds; whoever asks while it is being counted gets the last numbers.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from typing import Final

from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Counter,
    Histogram,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector
from sqlalchemy import func, select, text

from remem_server.database.engine import DATABASE_ERRORS, is_postgres, is_unavailable
from remem_server.database.tables import files
from remem_server.opening.context import Commons
from remem_server.upkeep.stats import lessons_by_state

MEDIA_TYPE: Final = CONTENT_TYPE_LATEST

_COUNTED_SECONDS: Final = 15
_SECONDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
_METHODS: Final = frozenset({"GET", "HEAD", "PUT", "POST", "DELETE", "OPTIONS", "PATCH"})
_FILES: Final = select(func.count(), func.coalesce(func.sum(files.c.records), 0))
# A primary that is idle sends nothing: a replica that has all of it is not behind, unless it has lost its primary.
_BEHIND: Final = text(
    "SELECT CASE WHEN NOT pg_is_in_recovery() OR (EXISTS (SELECT FROM pg_stat_wal_receiver) "
    "AND pg_last_wal_receive_lsn() = pg_last_wal_replay_lsn()) THEN 0 "
    "ELSE COALESCE(EXTRACT(EPOCH FROM now() - pg_last_xact_replay_timestamp()), 0) END"
)


class Metrics:
    """The metrics of one server.

    Args:
        commons: what is measured.
        waiting: tells how many files wait to be verified.
    """

    def __init__(self, commons: Commons, waiting: Callable[[], int]) -> None:
        # When a counter began is of no use, and doubles what is read.
        disable_created_metrics()  # type: ignore[no-untyped-call]  # the library gives it no types
        self._registry = here = CollectorRegistry()
        self._requests = Counter(
            "remem_requests", "Requests that were answered.", ["route", "method", "status"], registry=here
        )
        self._seconds = Histogram(
            "remem_request_seconds", "How long answers took.", ["route", "method"], buckets=_SECONDS, registry=here
        )
        # By route, method and status, all of which are few: looking the labels up costs more than counting.
        self._answers: dict[tuple[str, str, int], tuple[Counter, Histogram]] = {}
        self.verification = Histogram(
            "remem_verification_seconds", "How long files took to be verified.", buckets=_SECONDS, registry=here
        )
        self.accepted = Counter("remem_accepted", "Files that were accepted.", ["outcome"], registry=here)
        self.gossiped = Counter("remem_gossiped", "Files that came from other nodes.", ["by", "outcome"], registry=here)
        self.exchanges = Counter("remem_exchanges", "Exchanges that this server began.", ["ended"], registry=here)
        self.refused = Counter("remem_refused", "Requests that were refused.", ["code"], registry=here)
        self.ended = Counter("remem_connections_ended", "Connections that were broken off.", ["why"], registry=here)
        self._registry.register(_Counted(commons, waiting))

    def answered(self, route: str, method: str, status: int, seconds: float) -> None:
        """Count an answer."""
        known = self._answers.get((route, method, status))
        if known is None:
            named = method if method in _METHODS else "other"
            known = self._requests.labels(route, named, status), self._seconds.labels(route, named)
            self._answers[route, method, status] = known
        known[0].inc()
        known[1].observe(seconds)

    def text(self) -> bytes:
        """Write all of them down; what is in the database is asked for."""
        return generate_latest(self._registry)


class _Counted(Collector):
    """What is counted when somebody asks."""

    def __init__(self, commons: Commons, waiting: Callable[[], int]) -> None:
        self._commons = commons
        self._waiting = waiting
        self._held: list[GaugeMetricFamily] = []
        self._until = 0.0
        self._counting = threading.Lock()

    def collect(self) -> Iterable[GaugeMetricFamily]:
        """Give what there is; without what is in the database, where that does not answer."""
        yield GaugeMetricFamily("remem_queue_waiting", "Files that wait to be verified.", self._waiting())
        yield self._connections()
        self._count_again()
        yield from self._held

    def _count_again(self) -> None:
        if time.monotonic() < self._until or not self._counting.acquire(blocking=False):
            return
        try:
            self._held = self._count()
        except DATABASE_ERRORS as error:
            self._held = []
            if not is_unavailable(error):
                raise
        finally:
            # From its end: what takes longer than this is not begun at once again.
            self._until = time.monotonic() + _COUNTED_SECONDS
            self._counting.release()

    def _connections(self) -> GaugeMetricFamily:
        family = GaugeMetricFamily(
            "remem_database_connections", "Connections to PostgreSQL, and requests for one.", labels=["pool", "state"]
        )
        for name, pool in self._commons.database.pools.items():
            said = pool.get_stats()
            size, idle = said.get("pool_size", 0), said.get("pool_available", 0)
            for state, number in (("busy", size - idle), ("idle", idle), ("waiting", said.get("requests_waiting", 0))):
                family.add_metric([name, state], number)
        return family

    def _count(self) -> list[GaugeMetricFamily]:
        with self._commons.reads.connect() as connection:
            number, records = connection.execute(_FILES).one()
            states = lessons_by_state(connection, self._commons.clock())
            is_replica = self._commons.settings.replica_url is not None and is_postgres(connection)
            behind = connection.execute(_BEHIND).scalar_one() if is_replica else None
        lessons = GaugeMetricFamily("remem_lessons", "Lessons that are listed.", labels=["state"])
        for state, count in states.items():
            lessons.add_metric([state], count)
        found = [
            GaugeMetricFamily("remem_origins", "Keys of which a file is known.", number),
            GaugeMetricFamily("remem_records", "Records of their files.", int(records)),
            lessons,
        ]
        if behind is not None:
            said = "How far the database that is read is behind the one that is written."
            found.append(GaugeMetricFamily("remem_replication_age_seconds", said, float(behind)))
        return found
