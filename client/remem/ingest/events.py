"""The event: one surprise, as an agent tells a memory of it (PROTOCOL.md, appendix A).

- An event is one JSON object in UTF-8, of at most 1 MiB; JSON Lines for many. `kind` is required, and so is
  the field that says what the kind is about; every other known field is a string, and null counts as absent.
- Unknown fields are kept: `raw` is the text of the object as it came.
- `at` is ISO 8601 with any offset; without one it is UTC. An event without a time happened when it was received.
- An event is the same event when agent, session, kind and title agree, or without a title the same said, text
  and happened. `identity` names the event, `occurrence` this one sighting of it.
- An unpaired surrogate, which a tool leaves behind when it cuts a text, reads as U+FFFD: the event still counts.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import blake2b
from typing import Final, NoReturn, Protocol

from remem.errors import RememError
from remem.protocol.errors import show

KINDS: Final = ("correction", "error", "environment", "surprise", "note")
MAX_BYTES: Final = 1_048_576

_TEXTS: Final = ("said", "agent_did", "title", "expected", "happened", "text", "agent", "session", "cwd")
# An event of the kind says something in at least one of these fields.
_SUBSTANCE: Final = {
    "correction": ("said",),
    "error": ("title", "happened"),
    "environment": ("happened", "text"),
    "surprise": ("happened",),
    "note": ("text",),
}


class EventError(RememError):
    """An object that is not an event.

    Attributes:
        code: the stable code of the rule that it breaks.
        field: the field at fault; None where it is the whole object.
    """

    def __init__(self, code: str, expected: str, got: str, field: str | None = None) -> None:
        where = "" if field is None else f"field {field}: "
        super().__init__(f"{where}expected {expected}, got {got}")
        self.code = code
        self.field = field
        self.expected = expected
        self.got = got


@dataclass(frozen=True, slots=True)
class Event:
    """One event; a field that did not come is None."""

    kind: str
    raw: str
    said: str | None = None
    agent_did: str | None = None
    title: str | None = None
    expected: str | None = None
    happened: str | None = None
    text: str | None = None
    agent: str | None = None
    session: str | None = None
    cwd: str | None = None
    at: datetime | None = None

    @property
    def identity(self) -> str:
        """Name the event: 32 hex digits, the same for every sighting of it."""
        words = (self.title,) if self.title else ("", self.said, self.text, self.happened)
        return _digest(self.agent, self.session, self.kind, *words)

    def occurrence(self, received: datetime) -> str:
        """Name this sighting: the same for one report read twice, another where time or words differ."""
        at = self.at or received
        return _digest(
            at.astimezone(UTC).isoformat(),
            *(getattr(self, name) for name in _TEXTS),
        )


def parse_event(data: bytes | str) -> Event:
    """Read one event.

    Raises:
        EventError: the data is not an event.
    """
    fields, raw = _parse_object(data)
    kind = fields.get("kind")
    if kind is None:
        raise EventError("event_field_missing", f"one of {', '.join(KINDS)}", "no value", "kind")
    if kind not in KINDS:
        raise EventError("event_kind", f"one of {', '.join(KINDS)}", show(kind), "kind")
    texts = {name: _text(fields, name) for name in _TEXTS}
    needed = _SUBSTANCE[kind]
    if not any((texts[name] or "").strip() for name in needed):
        raise EventError("event_field_missing", f"words in an event of kind {kind}", "none", " or ".join(needed))
    return Event(kind=kind, raw=raw, at=_time(fields), **texts)


class Lines(Protocol):
    """Whatever gives bytes line by line."""

    def readline(self, limit: int, /) -> bytes:
        """Return the next line, or the first `limit` bytes of it; nothing at the end."""
        ...


def read_events(stream: Lines) -> Iterator[tuple[int, Event | EventError]]:
    """Read JSON Lines; yield each line's number from 1 with its event, or with what is wrong with it.

    Blank lines are passed over. A line of any length costs no more memory than the longest event.
    """
    number = 0
    while line := stream.readline(MAX_BYTES + 2):
        number += 1
        if len(line) > MAX_BYTES and not line.endswith(b"\n"):
            while (rest := stream.readline(MAX_BYTES)) and not rest.endswith(b"\n"):
                pass
            yield number, _too_large()
            continue
        if not line.strip():
            continue
        try:
            yield number, parse_event(line)
        except EventError as error:
            yield number, error


def _too_large() -> EventError:
    return EventError("event_size", f"at most {MAX_BYTES} bytes", "more")


def _parse_object(data: bytes | str) -> tuple[dict[str, object], str]:
    if isinstance(data, str):
        data = data.encode("utf-8", "replace")
    data = data.strip()
    if len(data) > MAX_BYTES:
        raise _too_large()
    try:
        raw = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise EventError("event_encoding", "UTF-8", f"{show(data[error.start : error.start + 4])}") from None
    try:
        value = json.loads(raw, parse_constant=_refuse_constant)
    except RecursionError:
        raise EventError("event_syntax", "a JSON object", "one that is nested too deep") from None
    except ValueError as error:
        got = f"text that is not JSON ({error.msg})" if isinstance(error, json.JSONDecodeError) else str(error)
        raise EventError("event_syntax", "a JSON object", got[:120].lower()) from None
    if not isinstance(value, dict):
        raise EventError("event_syntax", "a JSON object", show(value))
    return value, raw


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name}, which JSON does not know")


def _text(fields: dict[str, object], name: str) -> str | None:
    value = fields.get(name)
    if value is None:
        return None
    if not isinstance(value, str):
        raise EventError("event_field", "a string", show(value), name)
    return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _time(fields: dict[str, object]) -> datetime | None:
    value = fields.get("at")
    if value is None:
        return None
    expected = "a time in ISO 8601 from 1970 to 2099"
    if not isinstance(value, str):
        raise EventError("event_time", expected, show(value), "at")
    try:
        moment = datetime.fromisoformat(value.strip())
        moment = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        raise EventError("event_time", expected, show(value), "at") from None
    if not 1970 <= moment.year <= 2099:
        raise EventError("event_time", expected, show(value), "at")
    return moment


def _digest(*words: str | None) -> str:
    text = json.dumps(words, ensure_ascii=True, separators=(",", ":"))
    return blake2b(text.encode(), digest_size=16).hexdigest()
