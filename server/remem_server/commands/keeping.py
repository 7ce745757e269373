"""`remem-server export`, `import`, `backup`, `recount`, `audit` and `stats`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from remem.cli.output import AsJson, count, emit, progress
from remem.errors import Partly, RememError
from remem.sharing.escape import printable
from remem.sharing.reports import LeftFile
from remem_server.commands.common import (
    PROGRAM,
    Data,
    made,
    note,
    opened,
    opened_database,
    quoted,
    read_commons,
    read_database,
    refusing,
    settings_of,
    this_person,
)
from remem_server.opening.node import KEY_NAME, load_key
from remem_server.opening.opened import counting_alone
from remem_server.operator import acts
from remem_server.operator.own_file import NEARLY_FULL
from remem_server.settings import Settings, system_clock
from remem_server.upkeep import audit as auditing
from remem_server.upkeep import backups, exports
from remem_server.upkeep import stats as counting
from remem_server.upkeep.findings import Finding

Folder = Annotated[Path, typer.Argument(metavar="DIR", help="The folder of the files.")]
Target = Annotated[Path, typer.Argument(metavar="FILE", help="The new file; none is overwritten.")]

_LEFT_SHOWN = 20


def add_to(app: typer.Typer) -> None:
    """Add the commands."""
    app.command("export")(export)
    app.command("import")(import_)
    app.command()(backup)
    app.command()(recount)
    app.command()(audit)
    app.command()(stats)


def export(folder: Folder, data: Data = None, as_json: AsJson = False) -> None:
    """Write the whole commons into a folder, which any web server can hand out and `remem pull` reads.

    It only reads the commons. Into the same folder again it writes what changed, and goes on where it was cut short.
    """
    with read_commons(made(settings_of(data=data))) as commons, progress("exporting") as bar:
        done = exports.export_files(commons, folder, bar)
    told = f"{done.written} written, {done.unchanged} unchanged, {done.removed} of blocked keys removed"
    emit(done, as_json, [f"{count(done.files, 'file')}: {told}", *_left(done.left)])
    if done.left:
        raise Partly(f"expected to write every file, got {len(done.left)} that were left as they are in {folder}")


def import_(folder: Folder, data: Data = None, as_json: AsJson = False) -> None:
    """Take in the files of a folder that are good and newer than those held, as `export` wrote them.

    Tokens and admissions are no part of it. Again, it takes what is missing.
    """
    with opened_database(made(settings_of(data=data))) as database, progress("importing") as bar:
        done = exports.import_files(database.engine, folder, system_clock, bar)
    told = ", ".join(f"{number} {outcome}" for outcome, number in done.outcomes.items())
    emit(done, as_json, [told, *_left(done.refused)])
    if done.refused:
        raise Partly(f"expected to take every file, got {count(len(done.refused), 'file')} refused")


def backup(target: Target, data: Data = None, as_json: AsJson = False) -> None:
    """Copy the SQLite database into a new file, while the commons is in use.

    The key of the node is not in it: keep a copy of that beside it, once.
    """
    settings = made(settings_of(data=data))
    if settings.database_url is not None:
        raise RememError(
            "expected a commons on SQLite, got one on PostgreSQL",
            "pg_dump --format=custom --file=FILE makes a backup of that, and pg_restore puts it back",
        )
    with progress("copying") as bar:
        size = backups.back_up(settings.data, target, bar)
    emit({"file": target, "bytes": size}, as_json, [])
    note(f"{target} has all of the database, {size} bytes")
    note(f"to put it back, see to it that {settings.data / KEY_NAME} is there too, then: {PROGRAM} recount")


def recount(data: Data = None, as_json: AsJson = False) -> None:
    """Number all changes anew and count all lessons: after a backup was put back, and where `audit` finds them wrong.

    Readers then list everything once more, and miss nothing that the lost numbers stood for. The node's own file is
    sealed anew, above what they hold of it: where you have a newer one than the backup's, `import` it before this.
    """
    settings = made(settings_of(data=data))
    with opened(settings) as commons, refusing():
        resealed = acts.reseal(commons, this_person())
        with counting_alone(settings, commons.engine):
            number = backups.recount(commons.engine, system_clock())
    emit({"changes": number, "resealed": resealed}, as_json, [])
    note(f"the files have new numbers, the last is {number}, and the lessons are counted")
    if resealed:
        note("what was revoked or denied after the backup is said no more: say it again")


def audit(data: Data = None, as_json: AsJson = False) -> None:
    """Verify everything that is stored again, and say what is wrong.

    Ends with 1 if anything is. It only reads, and the commons may be in use.
    """
    settings = made(settings_of(data=data))
    found: list[Finding] = []
    with read_database(settings) as database, progress("checking") as bar:
        for finding in auditing.audit(database.engine, system_clock(), node=_node(settings), progress=bar):
            found.append(finding)
            if not as_json:
                emit(finding, as_json, [printable(str(finding))])
    if as_json:
        emit([finding._asdict() for finding in found], as_json, [])
    if found:
        again = f"{PROGRAM} recount --data {quoted(settings.data)}"
        hint = f"{again} mends what is about lessons, words and counts; a file that its owner sends again mends itself"
        raise RememError(f"expected everything as it was accepted, got {count(len(found), 'finding')}", hint)
    note("everything that is stored is as it should be")


def stats(data: Data = None, as_json: AsJson = False) -> None:
    """Count what the commons holds."""
    with read_database(made(settings_of(data=data))) as database:
        found = counting.stats_of(database, system_clock())
    said = found.model_dump()
    emit(said, as_json, [f"{name.replace('_', ' ')}: {_number(value)}" for name, value in said.items()])
    if found.operator_file_percent >= NEARLY_FULL:
        note(f"the file of an operator is full to {found.operator_file_percent} %: see {PROGRAM} journal")


def _node(settings: Settings) -> str | None:
    """Read the key that the data folder has for the node; where it has none, a start of the server says so."""
    return load_key(settings.data).public.hex if (settings.data / KEY_NAME).exists() else None


def _left(files: list[LeftFile]) -> list[str]:
    lines = [printable(f"{one.name} {one.code}: {one.detail}") for one in files[:_LEFT_SHOWN]]
    more = len(files) - _LEFT_SHOWN
    return [*lines, f"and {more} more"] if more > 0 else lines


def _number(value: Any) -> str:
    return ", ".join(f"{number} {name}" for name, number in value.items()) if isinstance(value, dict) else str(value)
