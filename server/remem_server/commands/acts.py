"""`remem-server revoke`, `deny`, `block` and what takes them back: the operator's acts, and the journal of them.

With `--to` and `--key` a revocation or a denial is signed on this machine and published over HTTP; no database is
needed then. What the key signs is kept beside it. The token for that comes from the variable REMEM_TOKEN alone: other
people of a machine see the words of a command.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, Final, NamedTuple, cast

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
from remem_server.files.journal import read_after
from remem_server.operator import acts
from remem_server.operator.own_file import NEARLY_FULL, Act
from remem_server.operator.remote import say_at
from remem_server.settings import system_clock

Hash = Annotated[str, typer.Argument(metavar="HASH", help="The lesson's hash, 32 hex digits.")]
Key = Annotated[str, typer.Argument(metavar="KEY", help="The key, 64 hex digits.")]
Reason = Annotated[str, typer.Option(help="Why, in a sentence: readers see it.")]
WhyGone = Annotated[str, typer.Option(help="Why, in a sentence: whoever asks for the file sees it.")]
WhyBack = Annotated[str | None, typer.Option(help="Why, for the journal.")]
To = Annotated[str | None, typer.Option(metavar="URL", help="Sign here, and publish there; the token is REMEM_TOKEN.")]
KeyFile = Annotated[
    Path | None, typer.Option("--key", metavar="FILE", help="With --to: the file of the key that signs.")
]
Adopt = Annotated[
    bool, typer.Option("--adopt", help="With --to: take over a file of this key that was signed elsewhere.")
]


class _Command(NamedTuple):
    """A command that is an act, told from the others by these alone.

    Attributes:
        help: what it does.
        done: what its subject is then.
        subject: the form of the subject.
        reason: the form of the reason; one that needs none may be called without it.
        here: what does it, where it is this host's alone; None for a word, which another machine may sign.
    """

    help: str
    done: str
    subject: Any
    reason: Any
    here: Callable[..., acts.Outcome] | None = None


_COMMANDS: Final[Mapping[str, _Command]] = {
    "revoke": _Command("Take a lesson back: every reader that trusts the operator drops it.", "revoked", Hash, Reason),
    "unrevoke": _Command(
        "Take a revocation back: every reader works out anew what the lesson is worth.",
        "no longer revoked",
        Hash,
        WhyBack,
    ),
    "deny": _Command("Deny a key: readers that trust the operator count nothing of it.", "denied", Key, Reason),
    "undeny": _Command("Take a denial back.", "no longer denied", Key, WhyBack),
    "block": _Command(
        "Keep no file of a key here: this host's own choice, which binds no reader.",
        "blocked",
        Key,
        WhyGone,
        acts.block,
    ),
    "unblock": _Command(
        "Take a block back: the file may be published again.", "no longer blocked", Key, WhyBack, acts.unblock
    ),
}
_UNDONE: Final = {act for act in _COMMANDS if f"un{act}" in _COMMANDS}


def add_to(app: typer.Typer) -> None:
    """Add the commands."""
    for act, form in _COMMANDS.items():
        needed = ... if act in _UNDONE else None
        command = _word(cast("Act", act), needed) if form.here is None else _act_here(form.here, needed)
        command.__annotations__ |= {"subject": form.subject, "reason": form.reason}
        app.command(act, help=form.help)(command)
    app.command("journal")(journal)


def _word(act: Act, needed: Any) -> Callable[..., None]:
    """Make the command that says a word, or takes it back; `...` says that a reason is needed."""

    def command(
        subject: str,
        reason: str | None = needed,
        data: Data = None,
        to: To = None,
        key: KeyFile = None,
        adopt: Adopt = False,
        as_json: AsJson = False,
    ) -> None:
        _say(act, subject, reason, data, _Elsewhere(to, key, adopt), as_json)

    return command


def _act_here(do: Callable[..., acts.Outcome], needed: Any) -> Callable[..., None]:
    """Make the command of an act that is this host's alone."""

    def command(subject: str, reason: str | None = needed, data: Data = None, as_json: AsJson = False) -> None:
        with opened(made(settings_of(data=data))) as commons, refusing():
            _tell(do(commons, this_person(), subject, reason), as_json)

    return command


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
    _note_outcome(act, sent.subject, sent.outcome, sent.file_percent)
    if sent.obeyed is False:
        note(f"{sent.target} does not name {sent.key} as an operator's key: its readers do not obey it by themselves")
        note("REMEM_OPERATORS of that commons names it")


def _tell(done: acts.Outcome, as_json: bool) -> None:
    emit(done, as_json, [])
    _note_outcome(done.act, done.subject, done.outcome, done.file_percent)
    if done.act == "unblock" and done.outcome == "done":
        note("its file comes back when it is published again")
    if not done.known and done.outcome == "done" and done.act in _UNDONE:
        note(f"nothing of it is held here; where that is a typing error, {PROGRAM} un{done.act} takes it back")


def _note_outcome(act: str, subject: str, outcome: str, file_percent: int | None) -> None:
    if outcome == "done":
        note(f"{subject} is {_COMMANDS[act].done}")
    elif act in _UNDONE:
        note(f"{subject} is {_COMMANDS[act].done} already")
    else:
        undone = _COMMANDS[act.removeprefix("un")].done
        note(f"{subject} was not {undone}: nothing is done, and it may be a typing error")
    if file_percent is not None and file_percent >= NEARLY_FULL:
        note(f"the file that says it is full to {file_percent} %: take back what no longer needs to be said")


def journal(
    after: Annotated[int, typer.Option(min=0, max=2**63 - 1, help="Only what was done after this row.")] = 0,
    limit: Annotated[int, typer.Option(min=1, max=100_000, help="How many rows at most.")] = 1_000,
    data: Data = None,
    as_json: AsJson = False,
) -> None:
    """Show what was done, by whom and why, the oldest first."""
    with read_database(made(settings_of(data=data))) as database, database.reads.connect() as connection:
        found = read_after(connection, after, limit + 1)
    page = found[:limit]
    rows = [[str(row.id), format_time(row.at), row.who, row.act, row.subject, row.reason or "-"] for row in page]
    head = ["id", "at", "who", "act", "subject", "reason"]
    emit([row.model_dump() for row in page], as_json, table(rows, head) if rows else [])
    if len(found) > limit:
        note(f"there is more: --after {page[-1].id}")
    if not page:
        note("nothing was done yet" if after == 0 else "nothing more was done")
