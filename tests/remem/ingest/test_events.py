"""The event: what is one, what is not and why, and when two reports are of the same."""

from __future__ import annotations

import io
import json
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remem.ingest.events import MAX_BYTES, Event, EventError, parse_event, read_events

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
ERROR = {"kind": "error", "title": "Bash: run", "happened": "exit code 1"}


def _event(**fields: object) -> Event:
    return parse_event(json.dumps({**ERROR, **fields}))


REFUSED = [
    ("no JSON", b"{", "event_syntax", None),
    ("an array", b"[1]", "event_syntax", None),
    ("nothing", b"", "event_syntax", None),
    ("nested too deep", b"[" * 200_000, "event_syntax", None),
    ("NaN", b'{"kind":"note","text":"x","n":NaN}', "event_syntax", None),
    ("a number of 5,000 digits", b'{"kind":"note","n":' + b"9" * 5_000 + b"}", "event_syntax", None),
    ("not UTF-8", b'{"kind":"note","text":"\xff"}', "event_encoding", None),
    ("over 1 MiB", b'{"kind":"note","text":"' + b"x" * MAX_BYTES + b'"}', "event_size", None),
    ("no kind", b'{"text":"x"}', "event_field_missing", "kind"),
    ("an unknown kind", b'{"kind":"praise","text":"x"}', "event_kind", "kind"),
    ("a kind that is no string", b'{"kind":["note"],"text":"x"}', "event_kind", "kind"),
    ("a correction that says nothing", b'{"kind":"correction","agent_did":"x"}', "event_field_missing", "said"),
    ("an error without words", b'{"kind":"error","title":" "}', "event_field_missing", "title or happened"),
    ("a title that is no string", b'{"kind":"error","title":3,"happened":"x"}', "event_field", "title"),
    ("a time that is no string", b'{"kind":"note","text":"x","at":12}', "event_time", "at"),
    ("a time that does not exist", b'{"kind":"note","text":"x","at":"2026-02-30T00:00:00Z"}', "event_time", "at"),
    ("a time before 1970", b'{"kind":"note","text":"x","at":"0001-01-01T00:00:00+14:00"}', "event_time", "at"),
]


@pytest.mark.parametrize(("data", "code", "field"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED])
def test_what_is_no_event_is_refused_with_its_code_and_field(data: bytes, code: str, field: str | None) -> None:
    with pytest.raises(EventError) as caught:
        parse_event(data)
    assert (caught.value.code, caught.value.field) == (code, field)
    assert "expected" in caught.value.message
    assert "got" in caught.value.message


def test_unknown_fields_and_the_text_itself_are_kept() -> None:
    line = '{"kind": "note", "text": "x", "mood": {"of": ["day"]}}'
    event = parse_event(line)
    assert event.raw == line
    assert event.text == "x"


def test_null_counts_as_absent() -> None:
    event = _event(agent=None, at=None)
    assert event.agent is None
    assert event.at is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-03-01T12:00:00Z", NOW),
        ("2026-03-01T12:00:00", NOW),
        ("2026-03-01T17:30:00+05:30", NOW),
        ("2026-03-01T12:00:00.250Z", NOW.replace(microsecond=250_000)),
    ],
    ids=["Z", "without a zone it is UTC", "any offset", "a fraction"],
)
def test_a_time_may_have_any_offset(text: str, expected: datetime) -> None:
    assert _event(at=text).at == expected


def test_half_a_character_does_not_cost_the_event() -> None:
    event = parse_event(b'{"kind":"error","title":"Bash: run","happened":"cut \\ud83d"}')
    assert event.happened == "cut \ufffd"
    assert "\ufffd" in (parse_event('{"kind":"note","text":"x","agent":"\\udc00"}').agent or "")


SAME = [
    ("another text of the same title", {}, {"happened": "exit code 2"}, True),
    ("another time", {}, {"at": "2026-01-01T00:00:00Z"}, True),
    ("another folder", {}, {"cwd": "/elsewhere"}, True),
    ("an unknown field", {}, {"mood": "good"}, True),
    ("another title", {}, {"title": "Bash: other"}, False),
    ("another session", {"session": "a"}, {"session": "b"}, False),
    ("another agent", {"agent": "a"}, {"agent": "b"}, False),
    ("no agent is another agent", {}, {"agent": "a"}, False),
    ("without a title, the same words", {"title": None}, {"title": None}, True),
    ("without a title, other words", {"title": None}, {"title": None, "happened": "y"}, False),
    ("a title is no text", {"title": "exit code 1", "happened": "x"}, {"title": None}, False),
]


@pytest.mark.parametrize(("first", "second", "same"), [row[1:] for row in SAME], ids=[row[0] for row in SAME])
def test_identity(first: dict[str, str], second: dict[str, str], same: bool) -> None:
    assert (_event(**first).identity == _event(**second).identity) is same


def test_one_report_read_twice_is_one_occurrence_and_a_repeat_is_another() -> None:
    later = NOW.replace(hour=13)
    told = _event(at="2026-03-01T11:00:00Z")
    assert told.occurrence(NOW) == told.occurrence(later)
    assert told.occurrence(NOW) != _event(at="2026-03-01T11:00:01Z").occurrence(NOW)
    assert told.occurrence(NOW) != _event(at="2026-03-01T11:00:00Z", happened="other").occurrence(NOW)
    # Without a time an event happened when it was received.
    assert _event().occurrence(NOW) != _event().occurrence(later)


def test_one_bad_line_loses_nothing_else() -> None:
    good = json.dumps(ERROR).encode()
    long = b'{"kind":"note","text":"' + b"x" * (3 * MAX_BYTES) + b'"}'
    data = b"\n".join([good, b"", b"nonsense", long, b"\xff\xfe", b"   ", good, b'{"kind":"note"}', good])
    found = list(read_events(io.BytesIO(data)))
    assert [(number, isinstance(one, Event)) for number, one in found] == [
        (1, True), (3, False), (4, False), (5, False), (7, True), (8, False), (9, True),
    ]  # fmt: skip
    codes = [one.code for _, one in found if isinstance(one, EventError)]
    assert codes == ["event_syntax", "event_size", "event_encoding", "event_field_missing"]


@given(
    st.binary(max_size=200)
    | st.recursive(st.none() | st.booleans() | st.floats() | st.text(), st.lists).map(json.dumps)
)
def test_nothing_but_an_event_error_leaves_the_parser(data: bytes | str) -> None:
    try:
        event = parse_event(data)
    except EventError:
        return
    assert event.kind


@given(
    st.dictionaries(
        st.sampled_from(("kind", "said", "title", "happened", "text", "at", "session", "extra")),
        st.sampled_from(("note", "error", "correction")) | st.text() | st.integers() | st.none() | st.lists(st.none()),
    )
)
def test_any_object_is_an_event_or_is_refused(fields: dict[str, object]) -> None:
    try:
        event = parse_event(json.dumps(fields))
    except EventError:
        return
    assert json.loads(event.raw) == fields
    assert len(event.identity) == len(event.occurrence(NOW)) == 32


def test_the_shared_events_are_109_and_no_correction_is_lost(shared_dir: Path) -> None:
    with (shared_dir / "events" / "events.jsonl").open("rb") as stream:
        events = [event for _, event in read_events(stream)]
    assert all(isinstance(event, Event) for event in events)
    kinds = Counter(event.kind for event in {e.identity: e for e in events if isinstance(e, Event)}.values())
    assert kinds == {"error": 82, "correction": 27}
