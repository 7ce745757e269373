"""The log: one line for each request, and whatever else there is to tell, on standard error.

- A line of a request has its id (which the answer carries as `X-Request-Id`), its method, its route as the
  documentation names it, the status, the code of a refusal, how long it took, and the bytes of both bodies. Beside
  that it has an address only where too much came from it, or a token was not good: so that the operator can act.
- No line has a token, a query, a name or a hash out of a path, or a word of a lesson: who reads what is nobody's
  business.
- The lines are JSON objects, or text for people, as the settings say. What libraries tell goes the same way. While
  PostgreSQL is away, its pool tells of each attempt: one line of these a minute is enough.
"""

from __future__ import annotations

import logging
import sys
import time
from contextlib import suppress
from typing import Final, Literal, TextIO

import structlog
from structlog.typing import FilteringBoundLogger, Processor

Format = Literal["json", "console"]

_POOL: Final = "psycopg.pool"
_SELDOM_SECONDS: Final = 60

# What a line of a library has beside its words.
_OF_LIBRARIES: Final[tuple[Processor, ...]] = (
    structlog.stdlib.add_logger_name,
    structlog.stdlib.PositionalArgumentsFormatter(),
)


class _Seldom(logging.Filter):
    """Lets one line of a kind pass a minute, and keeps it one line."""

    def __init__(self) -> None:
        super().__init__()
        self._again: dict[str, float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Tell whether a line passes."""
        now, kind = time.monotonic(), str(record.msg)
        if now < self._again.get(kind, 0.0):
            return False
        self._again[kind] = now + _SELDOM_SECONDS
        record.msg, record.args = " ".join(record.getMessage().split()), None
        return True


class Log:
    """Where the lines of requests go.

    Args:
        form: how a line is written.
        stream: where to.
    """

    def __init__(self, form: Format, stream: TextIO) -> None:
        self._logger: FilteringBoundLogger = structlog.wrap_logger(
            structlog.WriteLogger(stream),
            processors=[*_common(), *_last(form, stream)],
            wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
        ).bind()

    def request(self, **fields: object) -> None:
        """Write the line of a request, without the fields that are None."""
        # Whoever reads the log may have gone; the commons goes on.
        with suppress(OSError, ValueError):
            self._logger.info("request", **{name: value for name, value in fields.items() if value is not None})


def open_log(form: Format) -> Log:
    """Open the log on standard error, for libraries too; once in a process."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[*_OF_LIBRARIES, *_common()],
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *_last(form, sys.stderr)],
        )
    )
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(logging.WARNING)
    # What this commons does by itself, such as an exchange, has a line of its own.
    logging.getLogger("remem_server").setLevel(logging.INFO)
    pool = logging.getLogger(_POOL)
    if not any(isinstance(one, _Seldom) for one in pool.filters):
        pool.addFilter(_Seldom())
    return Log(form, sys.stderr)


def _common() -> list[Processor]:
    return [structlog.processors.add_log_level, structlog.processors.TimeStamper(fmt="iso", utc=True, key="at")]


def _last(form: Format, stream: TextIO) -> list[Processor]:
    if form == "console":
        # Not the traceback that it writes by itself, which shows what every variable holds.
        plain = structlog.dev.plain_traceback
        colors = stream.isatty()
        return [
            structlog.dev.ConsoleRenderer(
                colors=colors, exception_formatter=plain, timestamp_key="at", sort_keys=False, pad_event_to=0
            )
        ]
    return [structlog.processors.format_exc_info, structlog.processors.JSONRenderer(ensure_ascii=False)]
