"""The command that looks whether this memory is well."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Annotated

import typer

from remem.cli import added
from remem.cli.memory import clock
from remem.cli.output import AsJson, count, emit
from remem.errors import RememError
from remem.memory.home import Home, home_path
from remem.sharing.escape import printable
from remem.sharing.health import Finding, check_rights, checked, is_wrong


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(doctor)


@dataclass(frozen=True, slots=True)
class Examined:
    """What was found.

    Attributes:
        well: nothing is wrong, though there may be something to look into.
        findings: what each check found.
    """

    well: bool
    findings: tuple[Finding, ...]


def doctor(
    mend: Annotated[
        bool, typer.Option("--mend", help="Make anew what is made from other things that are whole.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Look whether this memory is well: its files, its key, its database, its targets and peers.

    Ends with status 1 if something is wrong, and with 0 if there is something to look into at most.
    """
    found = _examine(mend)
    wrong = sum(one.level == "wrong" for one in found)
    emit(Examined(not wrong, found), as_json, _words(found))
    if wrong:
        raise RememError(f"expected nothing wrong, got {count(wrong, 'finding that is', 'findings that are')}")


def _examine(mend: bool) -> tuple[Finding, ...]:
    path = home_path(os.environ)
    rights = list(check_rights(path)) if path.is_dir() else []
    # Another program's folder is refused here; nothing of it was touched.
    home = Home.open(path)
    with closing(home.connect()) as db:
        found = [*rights, *checked(home, db, mend=mend)]
        if not is_wrong(found):
            for _name, look in added.each("remem.checks"):
                found += look(home, db, now=clock())
    return tuple(found)


def _words(found: Sequence[Finding]) -> Iterator[str]:
    for one in found:
        yield f"{one.level:<8} {one.check}: {printable(one.text)}"
        if one.hint is not None and one.level != "ok":
            yield f"         {printable(one.hint)}"
