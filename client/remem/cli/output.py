"""How the command speaks: data on standard output, all else on standard error.

Whatever came from others passes `printable` before a person's terminal sees it. A progress bar is shown
only where standard error is a terminal. `--json` prints one document, of the same reports that the words
are made from.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from datetime import datetime
from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from remem.progress import Progress
from remem.protocol.times import format_time

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of words.")]


def emit(report: object, as_json: bool, lines: Iterable[str]) -> None:
    """Print a report: as one JSON document, or as the lines that say it in words."""
    if as_json:
        print(json.dumps(plain(report), ensure_ascii=True, indent=2))
        return
    for line in lines:
        print(line)


def plain(value: object) -> object:
    """Turn a report into what JSON knows: dataclasses become objects, times and paths become strings."""
    match value:
        case Enum():
            return plain(value.value)
        case datetime():
            return format_time(value)
        case Path():
            return str(value)
        case bytes():
            return value.decode("utf-8", "backslashreplace")
        case Mapping():
            return {str(key): plain(item) for key, item in value.items()}
        case str():
            return value
        case Sequence() | set() | frozenset():
            return [plain(item) for item in value]
        case _ if is_dataclass(value) and not isinstance(value, type):
            return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
        case _:
            return value


def say(line: str) -> None:
    """Tell the person something that is not data."""
    print(f"remem: {line}", file=sys.stderr)


def warn(line: str) -> None:
    """Tell the person something to look into."""
    say(f"warning: {line}")


@contextmanager
def progress(what: str) -> Iterator[Progress | None]:
    """Show a bar for long work where standard error is a terminal; nothing where it is piped."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress as Bar

    with Bar(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def count(number: int, one: str, many: str | None = None) -> str:
    """Say how many there are of something: `1 lesson`, `2 lessons`."""
    return f"{number} {one if number == 1 else many or one + 's'}"


def table(rows: Sequence[Sequence[str]], header: Sequence[str]) -> Iterator[str]:
    """Align columns with spaces; the last column is as long as it is."""
    whole = [list(header), *[list(row) for row in rows]]
    widths = [max(len(row[column]) for row in whole) for column in range(len(header))]
    for row in whole:
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
        yield "  ".join(cells).rstrip()
