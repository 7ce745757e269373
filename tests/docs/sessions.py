"""Runs the sessions that a document shows, and compares what it shows with what comes.

A session is a fenced block of the language `console`. A line that begins with `$ ` is a command, what follows it
up to the next is its output. In the output `…` stands for anything within a line, and a line of `…` alone for any
number of lines. A command that ends in `&` goes on beside the others, and `$!` is its process.
"""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, Self


class Step(NamedTuple):
    """One command of a session, and the output that the document shows for it."""

    line: int
    command: str
    output: str


def sessions(document: Path) -> Iterator[list[Step]]:
    """Yield the sessions of a document in their order."""
    text = document.read_text("utf-8")
    for block in re.finditer(r"^```console\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        first = text.count("\n", 0, block.start(1)) + 1
        yield list(_steps(block[1], first))


def _steps(block: str, first: int) -> Iterator[Step]:
    command: tuple[int, str] | None = None
    output: list[str] = []
    for number, line in enumerate(block.splitlines(), first):
        if line.startswith("$ "):
            if command is not None:
                yield Step(*command, "\n".join(output))
            command, output = (number, line[2:]), []
        elif command is not None and not output and command[1].endswith("\\"):
            command = (command[0], f"{command[1][:-1]}{line.strip()}")
        else:
            output.append(line)
    if command is not None:
        yield Step(*command, "\n".join(output))


def matches(shown: str, came: str) -> bool:
    """Tell whether what came is what the document shows."""
    pattern = "".join(
        r"(?:.*\n)*" if line.strip() == "…" else ".*".join(map(re.escape, line.split("…"))) + r"\n"
        for line in shown.splitlines()
    )
    return re.fullmatch(pattern, came.rstrip() + "\n" if came.strip() else "") is not None


class Shell:
    """Runs the steps of sessions one after the other, in one folder as a person's shell does."""

    def __init__(self, folder: Path, environment: Mapping[str, str], spell: Callable[[str], str]) -> None:
        self.folder = folder
        self.place = folder / ".place"
        self.environment = dict(environment)
        self.spell = spell
        self.beside: str | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        """End what goes on beside the steps, where no step did."""
        if self.beside is not None:
            with suppress(ProcessLookupError):
                os.kill(int(self.beside), signal.SIGTERM)

    def run(self, step: Step) -> str | None:
        """Run one step; return what is wrong, or None where the output is the one that is shown."""
        command = self.spell(step.command)
        if self.beside is not None:
            command = command.replace("$!", self.beside)
        done = subprocess.run(
            ["/bin/sh", "-c", f'{command}\n{{ pwd -P; echo "$!"; }} > {shlex.quote(str(self.place))}'],
            env=self.environment,
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=60,
            check=False,
        )
        place, started = self.place.read_text().splitlines()
        self.folder, self.beside = Path(place), started or self.beside
        if matches(self.spell(step.output), done.stdout):
            return None
        return f"line {step.line}: $ {step.command}\nshown:\n{self.spell(step.output)}\ncame:\n{done.stdout}"
