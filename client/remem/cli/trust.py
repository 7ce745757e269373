"""The commands that say whom this memory trusts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import typer

from remem.cli.memory import clock, opened
from remem.cli.output import AsJson, count, emit, table
from remem.errors import Usage
from remem.memory import trust as store
from remem.memory.trust import ROLES, Role
from remem.protocol.times import format_time
from remem.sharing.reports import TrustReport

trust = typer.Typer(
    help="Whom this memory follows, and whose revocations it obeys.", no_args_is_help=True, rich_markup_mode=None
)
Key = Annotated[str, typer.Argument(help="A key of 64 hex digits; for `remove` the beginning is enough.")]
As = Annotated[str | None, typer.Option("--as", help=f"One of {', '.join(ROLES)}.")]


def register(app: typer.Typer) -> None:
    """Add the commands of this group."""
    app.add_typer(trust, name="trust")


@trust.command()
def add(
    key: Key,
    role: Annotated[str, typer.Option("--as", help=f"One of {', '.join(ROLES)}.")],
    as_json: AsJson = False,
) -> None:
    """Follow a key, or obey it as a revoker.

    The confirmations of a followed key count; the revocations and denials of a revoker are obeyed.
    """
    from remem.sharing.speak import trust_key

    with opened() as (home, db):
        report = trust_key(home, db, key, _role(role), now=clock())
    emit(report, as_json, [f"trusts {report.key} as {role}", *_effects(report)])


@trust.command()
def remove(key: Key, role: As = None, as_json: AsJson = False) -> None:
    """Trust a key no more, whoever names it again."""
    from remem.sharing.speak import distrust_key

    with opened() as (home, db):
        report = distrust_key(home, db, key, roles=ROLES if role is None else (_role(role),), now=clock())
    emit(report, as_json, [f"trusts {report.key} no more as {' or '.join(report.roles)}", *_effects(report)])


@trust.command("list")
def list_trusted(as_json: AsJson = False) -> None:
    """List the keys that are trusted or declined."""
    with opened() as (_home, db):
        found = store.everything(db)
    rows = [
        (one.key, one.role, "declined" if one.declined else "trusted", one.via or "you", format_time(one.since))
        for one in found
    ]
    emit(found, as_json, table(rows, ("key", "as", "is", "by", "since")) if rows else ["no key is trusted yet"])


def _role(role: str) -> Role:
    if role not in ROLES:
        raise Usage(f"expected --as to be one of {', '.join(ROLES)}, got {role}")
    return role


def _effects(report: TrustReport) -> Iterator[str]:
    if report.stopped:
        yield f"  by that, {count(len(report.stopped), 'lesson')} went out of mind"
    if report.resumed:
        yield f"  by that, {count(len(report.resumed), 'lesson')} came back"
