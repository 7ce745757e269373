"""`remem-server revoke`, `deny`, `block` and what takes them back: the operator's acts, and the log of them.

With `--to` and `--key` a revocation or a denial is signed on this machine and published over HTTP; no database is
needed then. What the key signs is kept beside it. The token for that comes from the variable REMEM_TOKEN alone: other
people of a machine see the words of a command.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, NamedTuple

import typer

from remem.cli.output import AsJson, emit, table
from remem.errors import Usage
from remem.protocol.times import format_time
from remem_server.commands.common import (
    PROGRAM,
    Data,
    made,
    note,
    opened,
    read_database,
    refusing,
    settings_of,
    this_person,
)
from remem_server.files import journal
from remem_server.operator import acts
from remem_server.operator.own_file import Act
from remem_server.operator.remote import say_at
from remem_server.settings import system_clock

Hash = Annotated[str, typer.Argument(metavar="HASH", help="The lesson's hash, 32 hex digits.")]
Key = Annotated[str, typer.Argument(metavar="KEY", help="The key, 64 hex digits.")]
Reason = Annotated[str, typer.Option(help="Why, in a sentence: readers see it.")]
WhyBack = Annotated[str | None, typer.Option(help="Why, for the log.")]
To = Annotated[str | None, typer.Option(metavar="URL", help="Sign here, and publish there; the token is REMEM_TOKEN.")]
KeyFile = Annotated[
    Path | None, typer.Option("--key", metavar="FILE", help="With --to: the file of the key that signs.")
]
Adopt = Annotated[
    bool, typer.Option("--adopt", help="With --to: take over a file of this key that was signed elsewhere.")
]

_WORDS = {
    "revoke": "revoked",
    "unrevoke": "no longer revoked",
    "deny": "denied",
    "undeny": "no longer denied",
    "block": "blocked",
    "unblock": "no longer blocked",
}
_UNDONE = {act for act in _WORDS if f"un{act}" in _WORDS}


def add_to(app: typer.Typer) -> None:
    """Add the commands."""
    for command in (revoke, unrevoke, deny, undeny, block, unblock, log):
        app.command()(command)


def revoke(
    hash_: Hash,
    reason: Reason,
    data: Data = None,
    to: To = None,
    key: KeyFile = None,
    adopt: Adopt = False,
    as_json: AsJson = False,
) -> None:
    """Take a lesson back: every reader that trusts the operator drops it."""
    _say("revoke", hash_, reason, data, _Elsewhere(to, key, adopt), as_json)


def unrevoke(
    hash_: Hash,
    reason: WhyBack = None,
    data: Data = None,
    to: To = None,
    key: KeyFile = None,
    adopt: Adopt = False,
    as_json: AsJson = False,
) -> None:
    """Take a revocation back: every reader works out anew what the lesson is worth."""
    _say("unrevoke", hash_, reason, data, _Elsewhere(to, key, adopt), as_json)


def deny(
    of_key: Key,
    reason: Reason,
    data: Data = None,
    to: To = None,
    key: KeyFile = None,
    adopt: Adopt = False,
    as_json: AsJson = False,
) -> None:
    """Deny a key: readers that trust the operator count nothing of it."""
    _say("deny", of_key, reason, data, _Elsewhere(to, key, adopt), as_json)


def undeny(
    of_key: Key,
    reason: WhyBack = None,
    data: Data = None,
    to: To = None,
    key: KeyFile = None,
    adopt: Adopt = False,
    as_json: AsJson = False,
) -> None:
    """Take a denial back."""
    _say("undeny", of_key, reason, data, _Elsewhere(to, key, adopt), as_json)


class _Elsewhere(NamedTuple):
    """Where a word is published that is signed on this machine; nothing of it where it is said in the database here."""

    to: str | None
    key: Path | None
    adopt: bool


def _say(act: Act, subject: str, reason: str | None, data: Path | None, elsewhere: _Elsewhere, as_json: bool) -> None:
    to, key, adopt = elsewhere
    if to is None and key is None and not adopt:
        with opened(made(settings_of(data=data))) as commons, refusing():
            _tell(acts.say(commons, this_person(), act, subject, reason), as_json)
        return
    if to is None or key is None or data is not None:
        given = {"--to": to, "--key": key, "--adopt": adopt or None, "--data": data}
        got = ", ".join(name for name, value in given.items() if value is not None)
        raise Usage(f"expected --to together with --key and without --data, got {got}", f"{PROGRAM} {act} --help")
    with refusing():
        token = os.environ.get("REMEM_TOKEN") or None
        sent = say_at(to, token, key, act, subject, reason, system_clock, tell=note, adopt=adopt)
    emit(sent, as_json, [])
    for warning in sent.warnings:
        note(warning)
    _note_outcome(act, sent.subject, sent.outcome)
    if sent.obeyed is False:
        note(f"{sent.target} does not name {sent.key} as an operator's key: its readers do not obey it by themselves")
        note("REMEM_OPERATORS of that commons names it")


def block(of_key: Key, reason: Reason, data: Data = None, as_json: AsJson = False) -> None:
    """Keep no file of a key here: this host's own choice, which binds no reader."""
    with opened(made(settings_of(data=data))) as commons, refusing():
        _tell(acts.block(commons, this_person(), of_key, reason), as_json)


def unblock(of_key: Key, reason: WhyBack = None, data: Data = None, as_json: AsJson = False) -> None:
    """Take a block back: the file may be published again."""
    with opened(made(settings_of(data=data))) as commons, refusing():
        _tell(acts.unblock(commons, this_person(), of_key, reason), as_json)


def _tell(done: acts.Outcome, as_json: bool) -> None:
    emit(done, as_json, [])
    _note_outcome(done.act, done.subject, done.outcome)
    if not done.known and done.act in _UNDONE:
        note(f"nothing of it is held here; where that is a typing error, {PROGRAM} un{done.act} takes it back")


def _note_outcome(act: str, subject: str, outcome: str) -> None:
    if outcome == "done":
        note(f"{subject} is {_WORDS[act]}")
    elif act in _UNDONE:
        note(f"{subject} is {_WORDS[act]} already")
    else:
        note(f"{subject} was not {_WORDS[act.removeprefix('un')]}: nothing is done, and it may be a typing error")


def log(
    after: Annotated[int, typer.Option(min=0, max=2**63 - 1, help="Only what was done after this row.")] = 0,
    limit: Annotated[int, typer.Option(min=1, max=100_000, help="How many rows at most.")] = 1_000,
    data: Data = None,
    as_json: AsJson = False,
) -> None:
    """Show what was done, by whom and why, the oldest first."""
    with read_database(made(settings_of(data=data))) as database, database.reads.connect() as connection:
        found = journal.read_after(connection, after, limit + 1)
    page = found[:limit]
    rows = [[str(row.id), format_time(row.at), row.who, row.act, row.subject, row.reason or "-"] for row in page]
    emit(page, as_json, table(rows, ["id", "at", "who", "act", "subject", "reason"]) if rows else [])
    if len(found) > limit:
        note(f"there is more: --after {page[-1].id}")
    if not page:
        note("nothing was done yet" if after == 0 else "nothing more was done")
