"""The README's sessions and its example run as they stand there, in their order."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest

from docs.sessions import Shell, matches, sessions
from remem.ingest.events import parse_event
from remem.memory.config import Config
from remem_server.settings import Settings
from remem_testkit.server import plain_environment, spawn

README = Path(__file__).parents[2] / "README.md"
ADDRESS = "http://127.0.0.1:7363"
NODE, NODE_ADDRESS = "remem node --open", "http://127.0.0.1:7364"


def free_port() -> int:
    """Return a port of loopback that nobody listens at now."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return int(listening.getsockname()[1])


def test_the_sessions_of_the_readme_run_as_shown_and_its_example_judges(tmp_path: Path) -> None:
    programs = Path(sys.executable).parent
    home, place = tmp_path / "home", tmp_path / "place"
    home.mkdir()
    place.mkdir()
    steps = [step for session in sessions(README) for step in session]
    assert len(steps) > 10
    with spawn(tmp_path / "data") as commons:
        environment = plain_environment(
            HOME=str(home), PATH=f"{programs}{os.pathsep}{os.environ['PATH']}", TOKEN=str(commons.token)
        )
        port = free_port()

        def spell(text: str) -> str:
            text = text.replace(NODE, f"{NODE} --port {port}").replace(NODE_ADDRESS, f"http://127.0.0.1:{port}")
            return text.replace(ADDRESS, commons.url)

        with Shell(place, environment, spell) as shell:
            wrong = [found for step in steps if (found := shell.run(step)) is not None]
        assert not wrong, "\n\n".join(wrong)
        example = re.findall(r"^```python\n(.*?)^```$", README.read_text("utf-8"), re.MULTILINE | re.DOTALL)
        assert len(example) == 1
        printed = subprocess.run(
            [sys.executable, "-c", example[0].replace(ADDRESS, commons.url)],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        )
        assert printed.stdout.startswith("candidate The Bash tool failed")


def test_every_setting_is_in_the_readme_and_no_other() -> None:
    table = README.read_text("utf-8").partition("## Settings")[2].partition("\n## ")[0]
    named = "".join(row.split("|")[1] for row in table.splitlines() if row.startswith("| `"))
    told = set(re.findall(r"`([a-z_.]+|REMEM_[A-Z_]+)`", named))
    policy = {"confirmations", "window_days", "open"}
    names = {field.name for field in fields(Config)}
    expected = {f"policy.{name}" if name in policy else name for name in names}
    expected |= {f"REMEM_{name.upper()}" for name in Settings.model_fields} | {"REMEM_HOME"}
    assert told == expected


def test_the_event_of_the_readme_is_one() -> None:
    example = re.findall(r"^```json\n(.*?)^```$", README.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    assert [[parse_event(line).kind for line in one.splitlines()] for one in example] == [["error"]]


@pytest.mark.parametrize(
    ("shown", "came", "fits"),
    [
        ("a …", "a b\n", True),
        ("a\n…\nz", "a\nb\nc\nz\n", True),
        ("a\n…", "a\n", True),
        ("a", "a\nb\n", False),
        ("", "a\n", False),
        ("a.c", "abc\n", False),
    ],
)
def test_dots_stand_for_the_rest_of_a_line_or_for_lines(shown: str, came: str, fits: bool) -> None:
    assert matches(shown, came) is fits
