"""`remem-server token`: who may publish, and who may act for the operator."""

from __future__ import annotations

import re
from dataclasses import asdict
from datetime import UTC, date, datetime, time, timedelta
from typing import Annotated, Any, Final

import typer

from remem.cli.output import AsJson, emit, table
from remem.errors import RememError, Usage
from remem.protocol.errors import show
from remem.protocol.times import format_time
from remem_server.commands.common import (
    PROGRAM,
    Data,
    made,
    note,
    number_of,
    opened_database,
    quoted,
    read_database,
    refusing,
    settings_of,
    this_person,
)
from remem_server.errors import TokenIdUnknown
from remem_server.files import tokens
from remem_server.files.tokens import Terms, Token
from remem_server.moments import in_utc
from remem_server.operator import acts
from remem_server.settings import system_clock

app: Final = typer.Typer(
    help="Who may publish: make, list and revoke tokens.", no_args_is_help=True, rich_markup_mode=None
)

_DAYS: Final = re.compile(r"([1-9][0-9]{0,4})d")
_DATE: Final = re.compile(r"20[0-9]{2}-[0-9]{2}-[0-9]{2}")


@app.command()
def create(
    label: Annotated[str, typer.Option(help="A note of your own.")] = "",
    principal: Annotated[
        str | None,
        typer.Option(help="Who answers for its key; tokens that share it count once. Random if not given."),
    ] = None,
    expires: Annotated[
        str | None, typer.Option(metavar="DATE|DAYSd", help="Its last day, as 2027-01-31, or for how long, as 90d.")
    ] = None,
    admin: Annotated[
        bool, typer.Option("--admin", help="For the operator's acts over HTTP; it publishes nothing.")
    ] = False,
    data: Data = None,
    as_json: AsJson = False,
) -> None:
    """Make a token and print it: it is never shown again."""
    now = system_clock()
    until = None if expires is None else _moment(expires, now)
    with opened_database(made(settings_of(data=data))) as database, refusing():
        secret, one = acts.token_create(database.engine, this_person(), now, Terms(label, principal, until, admin))
    emit({"token": secret, **_plain(one, now)}, as_json, [secret])
    bound = f"principal {one.principal}; the first key to publish with it keeps it"
    note(f"token {one.id}, {'for the acts of the operator' if admin else bound}")


@app.command("list")
def list_(data: Data = None, as_json: AsJson = False) -> None:
    """List the tokens, by id: a token itself is never shown again."""
    with read_database(made(settings_of(data=data))) as database, database.reads.connect() as connection:
        all_made = tokens.list_all(connection)
    now = system_clock()
    head = ["id", "state", "for", "principal", "key", "used", "expires", "label"]
    rows = [_row(one, now) for one in all_made]
    emit([_plain(one, now) for one in all_made], as_json, table(rows, head) if rows else [])
    if not all_made:
        note("there is no token yet")


@app.command()
def revoke(
    number: Annotated[str, typer.Argument(metavar="ID", help="Its id in `list`.")],
    reason: Annotated[str | None, typer.Option(help="Why, for the journal.")] = None,
    data: Data = None,
    as_json: AsJson = False,
) -> None:
    """Revoke a token for good.

    Nobody publishes with it any more, and it no longer admits its key; what the key published stays.
    """
    settings = made(settings_of(data=data))
    hint = f"{PROGRAM} token list --data {quoted(settings.data)}"
    asked, now = number_of(number), system_clock()
    if asked is None:
        raise Usage(f"expected the id of a token, a number, got {show(number)}", hint)
    with opened_database(settings) as database, refusing():
        try:
            revoked = acts.token_revoke(database.engine, this_person(), now, asked, reason)
        except TokenIdUnknown as error:
            raise RememError(str(error), hint) from error
    emit(_plain(revoked, now), as_json, [])
    if revoked.revoked == now:
        note(f"token {revoked.id} is revoked")
    else:
        note(f"token {revoked.id} was revoked before: nothing is done")


def _moment(text: str, now: datetime) -> datetime:
    """Read until when a token is good: the end of a day, or so many days from now."""
    try:
        if found := _DAYS.fullmatch(text):
            return in_utc(now + timedelta(days=int(found[1])))
        last = date.fromisoformat(text if _DATE.fullmatch(text) else "")
        until = in_utc(datetime.combine(last + timedelta(days=1), time(tzinfo=UTC)))
    except ValueError:
        expected = "expected --expires to be a day like 2027-01-31 or a time like 90d, before the last day of 2099"
        raise Usage(f"{expected}, got {show(text)}") from None
    if until <= now:
        raise Usage(f"expected --expires to be a day that is not over, got {show(text)}")
    return until


def _plain(one: Token, now: datetime) -> dict[str, Any]:
    return {**asdict(one), "state": one.state(now)}


def _row(one: Token, now: datetime) -> list[str]:
    said_for, principal = ("acts", "-") if one.admin else ("publishing", one.principal)
    # It is known to the hour, and none before the token was made.
    used = "-" if one.used is None else f"{one.used:%Y-%m-%dT%HZ}"
    expires = "-" if one.expires is None else format_time(one.expires)
    return [str(one.id), one.state(now), said_for, principal, one.key or "-", used, expires, one.label]
