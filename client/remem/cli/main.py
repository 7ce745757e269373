"""The command `remem`: its groups, and the one place where failures become messages and exit statuses."""

from __future__ import annotations

import sys
from importlib.metadata import entry_points
from typing import Annotated

import typer

import remem
from remem.cli import commons, memory, trust
from remem.cli.output import fail, say
from remem.errors import RememError, Usage

# What Typer raises for a call that it cannot read; its own name for it is not public.
_UnreadableCall: type[Exception] = typer.BadParameter.__mro__[2]

app = typer.Typer(
    name="remem",
    help="A memory of lessons, and the commons in which memories share them.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
