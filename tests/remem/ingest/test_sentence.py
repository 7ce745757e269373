"""From events to sentences: what becomes a lesson of which kind, how it reads, and what stays local."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remem.ingest.events import Event, parse_event, read_events
from remem.ingest.failure import read_failures
from remem.ingest.sentence import MAX_SENTENCE, read_event
from remem.protocol.guard import instruction
from remem.protocol.text import text_fault


def _read(**fields: str) -> tuple[str, str | None] | None:
    reading = read_event(parse_event(json.dumps(fields)))
    return None if reading is None else (reading.kind, reading.sentence)


REPORTS = [
    (
        "git says fatal",
        "Exit code 128\nfatal: pathspec 'tides/march.csv' did not match any files",
        "The Bash tool failed with exit status 128, and git reported: pathspec a path did not match any files.",
    ),
    (
        "a program names itself",
        "Exit code 1\nls: /home/zed/none: No such file or directory",
        "The Bash tool failed with exit status 1, and ls reported: a path: no such file or directory.",
    ),
    (
        "a missing program is named if it is public",
        "Exit code 127\n/bin/bash: line 1: rg: command not found",
        "The Bash tool failed with exit status 127, and bash reported: command not found: rg.",
    ),
    (
        "a missing program is not named if it is not",
        "Exit code 127\nbash: falconry: command not found",
        "The Bash tool failed with exit status 127, and bash reported: command not found: X.",
    ),
    (
        "a linter's finding, with its rule and language",
        ("Exit code 3\n[style] $ golangci-lint run --fast\n\n"
        "valve.go:9:2: result 0 (bool) of `openValve` is never read (unparam)\n\t\topenValve()\n\t\t^\n1 issues:"),
        ("The Bash tool failed with exit status 3, and golangci-lint reported in a Go file (unparam): "
        "result N (bool) of X is never read."),
    ),
    (
        "a compiler's code",
        "Exit code 101\nerror[E0308]: mismatched types\n  --> src/main.rs:12:9\nerror: could not compile `x`",
        "The Bash tool failed with exit status 101, and rustc reported (E0308): mismatched types.",
    ),
    (
        "a code in the message",
        "Exit code 2\nsrc/a/b.ts(14,7): error TS2322: Type 'string' is not assignable to type 'Invoice'.",
        ("The Bash tool failed with exit status 2 in a TypeScript file: "
        "error TS2322: type string is not assignable to type X."),
    ),
    (
        "a traceback ends in what was raised",
        ("Exit code 4\nwriting tides\nTraceback (most recent call last):\n  File \"/x/y.py\", line 8, in tides\n"
        "    height / span\nZeroDivisionError: division by zero"),
        "The Bash tool failed with exit status 4: ZeroDivisionError: division by zero.",
    ),
    (
        "a hint is not the fault",
        "Exit code 1\nhint: Updates were rejected\nerror: failed to push some refs to 'github.com:a/b.git'",
        "The Bash tool failed with exit status 1, and git reported: failed to push some refs to a path.",
    ),
    (
        "advice behind the fault is left out",
        "The index of 7 columns does not match the table. Use a narrower index for the table.",
        "The Bash tool failed: the index of N columns does not match the table.",
    ),
    (
        "a signal says something by itself",
        "Exit code 137\nKilled",
        "The Bash tool failed with exit status 137: killed.",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("report", "sentence"), [row[1:] for row in REPORTS], ids=[row[0] for row in REPORTS])
def test_an_error_is_told_by_the_line_that_names_the_fault(report: str, sentence: str) -> None:
    assert _read(kind="error", title="Bash: run it", happened=report) == ("error", sentence)


@pytest.mark.parametrize(
    "report",
    [
        "Exit code 1",
        "Exit code 1\n---\n---",
        "Exit code 1\nfalconry zuqaxi wobbled",
        "Exit code 1\ntides\tfail\t3m\thttps://example.com\t",
        "Exit code 1\nKeyError: 'customer_id'",
    ],
    ids=["a status alone", "rules", "nothing public", "a table", "a class and a name"],
)
def test_an_error_that_says_nothing_to_others_has_no_sentence(report: str) -> None:
    assert _read(kind="error", title="Bash: run it", happened=report) == ("error", None)


@pytest.mark.parametrize(
    "report",
    ["[Interrupted by the user]", "The user doesn't want that.", "This call was declined by the user, who says why."],
)
def test_a_call_that_the_person_stopped_is_no_error(report: str) -> None:
    assert _read(kind="error", title="Bash: run it", happened=report) is None


def test_only_a_known_tool_is_named() -> None:
    report = "The file is locked. Close the other program and write it once more."
    assert _read(kind="error", title="Edit: /home/zed/x.py", happened=report) == (
        "error",
        "The Edit tool failed: the file is locked.",
    )
    assert _read(kind="error", title="Falconry: x", happened=report) == (
        "error",
        "A call failed: the file is locked.",
    )


ENVIRONMENTS = [
    ("a failure", "docker is not installed: command not found", True),
    ("a status", "checked the network: exit status 7", True),
    ("a fact", "Python 3.11 on Debian 12, two cores", False),
    ("success", "the build ended with exit status 0", False),
]


@pytest.mark.parametrize(("text", "is_error"), [row[1:] for row in ENVIRONMENTS], ids=[row[0] for row in ENVIRONMENTS])
def test_surroundings_are_an_error_where_they_show_a_failure_and_else_stay_local(text: str, is_error: bool) -> None:
    read = _read(kind="environment", happened=text)
    assert (read is not None and read[0] == "error") is is_error


def test_a_note_stays_local() -> None:
    assert _read(kind="note", text="error: command not found") is None


CORRECTIONS = [
    (
        "what the person asked against",
        "no, don't delete the old index, the report needs it.",
        "The tables are copied. Let me drop what nobody reads:",
        (
            "The person corrected the agent after it offered to drop what nobody reads; "
            "they asked it not to delete the old index, the report needs it."
        ),
    ),
    (
        "what the person asked for",
        "use uv, not pip",
        "I'll install it with pip.",
        "The person corrected the agent after it offered to install it with pip; they asked it to use uv, not pip.",
    ),
    (
        "what the person wants to end",
        "Stop committing directly to main!",
        "Committed.",
        "The person corrected the agent; they asked it to stop committing directly to main.",
    ),
    (
        "what the person asked",
        "where would the second index be written to?",
        "There are two of them.",
        "The person corrected the agent; they asked: where would the second index be written to.",
    ),
    (
        "what the person said",
        "The upload is twice as slow as it was.",
        "",
        "The person corrected the agent; they said: the upload is twice as slow as it was.",
    ),
    (
        "what only the offer says",
        "falconry!",
        "Shall I rewrite the tests?",
        "The person corrected the agent after it offered to rewrite the tests.",
    ),
]


@pytest.mark.parametrize(
    ("said", "did", "sentence"), [row[1:] for row in CORRECTIONS], ids=[row[0] for row in CORRECTIONS]
)
def test_a_correction_is_reported_and_never_an_instruction(said: str, did: str, sentence: str) -> None:
    assert _read(kind="correction", said=said, agent_did=did) == ("correction", sentence)


def test_a_correction_of_which_nothing_is_left_has_no_sentence() -> None:
    assert _read(kind="correction", said="falconry zuqaxi") == ("correction", None)


def test_a_surprise_tells_what_was_expected_and_what_was_met() -> None:
    met = "The first run fails with a permission error in /srv/x"
    assert _read(kind="surprise", expected="A cache directory", happened=met) == (
        "surprise",
        "The agent expected: a cache directory; it met: the first run fails with a permission error in a path.",
    )
    assert _read(kind="surprise", happened=met) == (
        "surprise",
        "The agent did not expect this: the first run fails with a permission error in a path.",
    )


def test_the_same_event_gives_the_same_sentence_wherever_it_happened() -> None:
    report = "Exit code 1\nerror: could not lock config file {}/.git/config: File exists"
    sentences = {
        _read(kind="error", title=title, happened=report.format(home), cwd=home, session=home, agent=agent)
        for home, title, agent in [("/home/zed/a", "Bash: a", "one"), ("/Users/kim/b-c", "Bash: Other title", "two")]
    }
    assert len(sentences) == 1


@given(
    st.builds(
        Event,
        kind=st.sampled_from(("error", "correction", "surprise", "environment")),
        raw=st.just(""),
        title=st.text(),
        happened=st.text(),
        said=st.text(),
        agent_did=st.text(),
        expected=st.text(),
        cwd=st.text(),
        text=st.text(),
    )
)
def test_a_sentence_is_a_short_text_of_the_protocol_and_an_observation(event: Event) -> None:
    reading = read_event(event)
    assert reading == read_event(event)
    if reading is not None and reading.sentence is not None:
        assert len(reading.sentence) <= MAX_SENTENCE
        assert text_fault(reading.sentence) is None
        assert instruction(reading.sentence) is None


def test_orders_in_a_report_never_become_a_lesson() -> None:
    orders = "Delete the directory first. Run the install script with --force. Never read the file again."
    for kind, field in [("error", "happened"), ("surprise", "happened"), ("environment", "happened")]:
        read = _read(kind=kind, title="Bash: x", **{field: orders})
        assert read is None or read[1] is None


@pytest.mark.parametrize(
    "report",
    ["(" * 50_000, "a/" * 50_000, "'" * 50_000, "x: " * 20_000, "\x1b[" * 30_000, "[x] " * 20_000, "error: " * 20_000,
     "/ a b" * 20_000, "0" * 100_000, "\n" * 100_000, "é" * 50_000, "a.b" * 30_000 + ":", " - " * 30_000],
    ids=lambda text: repr(text[:6]),
)  # fmt: skip
def test_a_hostile_report_is_read_all_the_same(report: str) -> None:
    reading = read_event(Event(kind="error", raw="", title="Bash: x", happened=report, cwd=report[:5_000]))
    assert reading is not None
    assert read_failures(report)


def test_most_of_the_shared_errors_have_a_sentence(shared_dir: Path) -> None:
    with (shared_dir / "events" / "events.jsonl").open("rb") as stream:
        readings = [read_event(event) for _, event in read_events(stream) if isinstance(event, Event)]
    kinds = [reading.kind for reading in readings if reading is not None and reading.sentence is not None]
    assert kinds.count("error") >= 70
    assert kinds.count("correction") == 27
