"""The commands of one memory by itself: what it is, what it is told, and what it makes of that."""

from __future__ import annotations

import json
import os
import sqlite3
import sys
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from random import SystemRandom
from typing import Annotated, Final

import typer

from remem.cli import added
from remem.cli.output import AsJson, count, emit, progress, table, warn
from remem.errors import Partly, RememError, Usage
from remem.ingest.events import KINDS, EventError, parse_event, read_events
from remem.memory import lessons as shelf
from remem.memory import projects as folders
from remem.memory.events import Intake, add_events
from remem.memory.home import Home, home_path
from remem.memory.intake import take_in_file
from remem.memory.lessons import Lesson
from remem.memory.portable import Imported, export_lines, import_lines
from remem.memory.store import transaction
from remem.protocol import KNOWN_KINDS, Reading, State
from remem.sharing.escape import printable
from remem.sharing.readings import reader

project = typer.Typer(
    help="The folders whose lessons may leave this memory.", no_args_is_help=True, rich_markup_mode=None
)
Folder = Annotated[Path, typer.Argument(help="The project's folder; this one by default.")]


def register(app: typer.Typer) -> None:
    """Add the commands of this group."""
    for command in (init, whoami, remember, ingest, sleep, lessons):
        app.command()(command)
    app.command("export")(export_lessons)
    app.command("import")(import_lessons)
    app.add_typer(project, name="project")


@contextmanager
def opened() -> Iterator[tuple[Home, sqlite3.Connection]]:
    """Open the memory of this environment, and close it again."""
    home = Home.open(home_path(os.environ))
    with closing(home.connect()) as db:
        yield home, db


def clock() -> datetime:
    """Read the clock: the one place where the command does."""
    return datetime.now(UTC)


# --- the memory itself ---


@dataclass(frozen=True, slots=True)
class Identity:
    """Who a memory is."""

    key: str
    origin: str
    home: Path


def init(as_json: AsJson = False) -> None:
    """Make a memory, or complete one that was half made."""
    path = home_path(os.environ)
    is_new = not (path / "identity.key").exists()
    home = Home.create(path)
    who = _identity(home)
    made = "made a memory" if is_new else "this memory is there already"
    emit(who, as_json, [f"{made} in {printable(str(home.path))}", f"origin {who.origin}", f"key    {who.key}"])


def whoami(as_json: AsJson = False) -> None:
    """Say which key this memory signs with."""
    who = _identity(Home.open(home_path(os.environ)))
    emit(who, as_json, [f"origin {who.origin}", f"key    {who.key}", f"home   {printable(str(who.home))}"])


def _identity(home: Home) -> Identity:
    public = home.signing_key().public
    return Identity(public.hex, public.origin, home.path)


# --- what it is told ---

_KIND_HINT: Final = "remem remember --kind error --title ... --happened ..., or JSON alone on standard input"


def remember(
    kind: Annotated[str | None, typer.Option(help=f"One of {', '.join(KINDS)}.")] = None,
    title: Annotated[str | None, typer.Option(help="The call that failed.")] = None,
    happened: Annotated[str | None, typer.Option(help="What the agent met.")] = None,
    expected: Annotated[str | None, typer.Option(help="What the agent expected.")] = None,
    said: Annotated[str | None, typer.Option(help="A correction: the person's own words.")] = None,
    agent_did: Annotated[str | None, typer.Option(help="A correction: what the agent did before it.")] = None,
    text: Annotated[str | None, typer.Option(help="A note.")] = None,
    agent: Annotated[str | None, typer.Option(help="Which agent.")] = None,
    session: Annotated[str | None, typer.Option(help="Which conversation.")] = None,
    cwd: Annotated[str | None, typer.Option(help="In which folder; this one by default.")] = None,
    at: Annotated[str | None, typer.Option(help="When, in ISO 8601; now by default.")] = None,
    as_json: AsJson = False,
) -> None:
    """Report an event: by options, or as JSON on standard input.

    Without options, standard input is read as JSON Lines, one event a line. Agents may also append events to the
    file inbox.jsonl in the memory's home (REMEM_HOME, or ~/.remem), which `remem sleep` takes in.
    """
    given = {
        "kind": kind, "title": title, "happened": happened, "expected": expected, "said": said,
        "agent_did": agent_did, "text": text, "agent": agent, "session": session, "cwd": cwd, "at": at,
    }  # fmt: skip
    given = {name: value for name, value in given.items() if value is not None}
    with opened() as (_home, db):
        if given:
            if kind is None:
                raise Usage("expected --kind beside the other options, got none", hint=_KIND_HINT)
            given["cwd"] = str(Path(cwd or "").absolute())
            try:
                event = parse_event(json.dumps(given))
            except EventError as error:
                raise Usage(error.message, hint="remem remember --help") from error
            with transaction(db):
                intake = add_events(db, [(1, event)], clock())
        elif sys.stdin.isatty():
            raise Usage("expected an event, got no option", hint=_KIND_HINT)
        else:
            with transaction(db):
                intake = add_events(db, read_events(sys.stdin.buffer), clock())
        _tell_intake(intake, as_json)


def ingest(
    events: Annotated[Path, typer.Option(help="A file of events, one JSON object a line.")],
    as_json: AsJson = False,
) -> None:
    """Take in a file of events; again, it changes nothing."""
    if not events.is_file():
        raise RememError(f"expected a file of events at {events}, got none")
    with opened() as (_home, db), progress("reading events"):
        intake = take_in_file(db, events, clock())
    _tell_intake(intake, as_json)


def _tell_intake(intake: Intake, as_json: bool) -> None:
    words = f"{count(intake.new, 'event')} new, {intake.repeated} repeated, {intake.known} known before"
    rejected = [{"line": line, "code": error.code, "message": error.message} for line, error in intake.rejected]
    report = {"new": intake.new, "repeated": intake.repeated, "known": intake.known, "rejected": rejected}
    emit(report, as_json, [words])
    for line, error in intake.rejected:
        warn(f"line {line}: {error.code}: {printable(error.message)}")
    if rejected:
        got = count(len(rejected), "line that is none", "lines that are none")
        kind = Partly if intake.new or intake.repeated or intake.known else RememError
        raise kind(f"expected events only, got {got}")


def sleep(as_json: AsJson = False) -> None:
    """Make lessons of what was reported and repeats.

    Behind that it exchanges what is new with a few of the peers, if there are any (remem peers): that takes ten minutes
    at most, and what was learned is stored by then.
    """
    from remem.sleep.night import sleep as run_night

    with opened() as (home, db), progress("sleeping") as bar:
        report = run_night(home, db, clock(), None if bar is None else lambda _pass, done, total: bar(done, total))
        named = {
            "new": _named(db, report.lessons.new),
            "now your own too, since you had met it before": _named(db, report.lessons.now_own),
            "stronger": _named(db, report.lessons.gained),
        }
    lines = [
        f"{count(report.events, 'event')} read, {report.episodes} of them told something",
        f"{count(len(report.lessons.new), 'new lesson')}, {len(report.lessons.gained)} gained strength",
        *(f"  {lesson.id}  {what}: {printable(lesson.text)}" for what, found in named.items() for lesson in found),
        *(
            f"episode {meeting.episode} met lesson {meeting.lesson[:16]} of others (likeness {meeting.likeness:.2f}):"
            f" remem confirm {meeting.lesson[:16]} --episode {meeting.episode}"
            for meeting in report.lessons.meetings
        ),
    ]
    if not as_json:
        emit(report, as_json, lines)
    for line, error in report.intake.rejected:
        warn(f"inbox line {line}: {error.code}: {printable(error.message)}")
    more: dict[str, added.Told] = {}
    with opened() as (home, db):
        for name, told in added.after_sleep(home, db, clock(), SystemRandom()):
            more[name] = told
            added.tell_warnings(told) if as_json else added.tell(told)
    if as_json:
        emit(added.document(report, more), as_json, ())


def _named(db: sqlite3.Connection, hashes: Iterable[str]) -> list[Lesson]:
    found = (shelf.find_lesson(db, digest) for digest in hashes)
    return [lesson for lesson in found if lesson is not None]


# --- what it holds ---


@dataclass(frozen=True, slots=True)
class Listed:
    """One lesson as `remem lessons` lists it; `commons` is its state there, None where nobody else speaks of it."""

    lesson: Lesson
    commons: State | None


def lessons(
    kind: Annotated[str | None, typer.Option(help=f"Only one of {', '.join(KNOWN_KINDS)}.")] = None,
    source: Annotated[str | None, typer.Option(help="Only own, received or imported ones.")] = None,
    state: Annotated[str | None, typer.Option(help="Only those of this state in the commons.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="Also archived, vetoed and dropped ones.")] = False,
    as_json: AsJson = False,
) -> None:
    """List the lessons of this memory, the strongest first."""
    _one_of("--kind", kind, KNOWN_KINDS)
    _one_of("--source", source, ("own", "received", "imported"))
    _one_of("--state", state, tuple(one.value for one in State))
    with opened() as (home, db):
        this = reader(db, home.signing_key().public.hex, home.config())
        held = shelf.lessons(db, kind=kind, source=source, state=None if everything or state else "active")
        read = this.readings(db, [lesson.hash for lesson in held], clock())
    listed = [Listed(lesson, _commons_state(read[lesson.hash])) for lesson in held]
    kept = [one for one in listed if state is None or (one.commons is not None and one.commons.value == state)]
    rows = [
        (
            one.lesson.id,
            one.lesson.kind,
            one.lesson.source,
            one.commons.value if one.commons else one.lesson.state if one.lesson.state != "active" else "-",
            f"{one.lesson.strength:.1f}",
            str(one.lesson.seen),
            printable(one.lesson.text),
        )
        for one in kept
    ]
    header = ("id", "kind", "source", "state", "strength", "seen", "text")
    asked = kind or source or state
    emit(kept, as_json, table(rows, header) if rows else ["no lesson of this sort" if asked else "no lessons yet"])


def _commons_state(reading: Reading) -> State | None:
    heard = reading.publishers or reading.confirmations or reading.unadmitted or reading.revokers
    return reading.state if heard else None


def _one_of(option: str, value: str | None, known: tuple[str, ...]) -> None:
    if value is not None and value not in known:
        raise Usage(f"expected {option} to be one of {', '.join(known)}, got {value}")


def export_lessons(
    file: Annotated[Path | None, typer.Argument(help="Where to; standard output by default.")] = None,
) -> None:
    """Write the lessons of this memory as JSON Lines, unsigned."""
    with opened() as (_home, db):
        held = shelf.lessons(db)
    lines = "".join(f"{line}\n" for line in export_lines(held))
    if file is None:
        sys.stdout.write(lines)
    else:
        file.write_text(lines, "utf-8")


def import_lessons(
    file: Annotated[Path, typer.Argument(help="A lessons.jsonl.")],
    as_json: AsJson = False,
) -> None:
    """Read in lessons.jsonl, each text judged as a stranger's."""
    with opened() as (_home, db), file.open("rb") as stream, transaction(db):
        report = import_lines(db, stream, clock())
    refused = [{"line": line, "message": why} for line, why in report.refused]
    words = f"{count(len(report.added), 'lesson')} new, {len(report.known)} known before"
    emit({"added": report.added, "known": report.known, "refused": refused}, as_json, [words])
    _tell_refused(report)


def _tell_refused(report: Imported) -> None:
    for line, why in report.refused:
        warn(f"line {line}: {printable(why)}")
    if report.refused:
        got = count(len(report.refused), "line that was refused", "lines that were refused")
        kind = Partly if report.added or report.known else RememError
        raise kind(f"expected lessons only, got {got}")


# --- projects ---


@project.command("add")
def add_project(folder: Folder = Path(), as_json: AsJson = False) -> None:
    """Let lessons leave that this folder taught."""
    with opened() as (_home, db), transaction(db):
        path = folders.add_project(db, folder.absolute(), clock())
    emit({"project": path}, as_json, [f"lessons may leave from {printable(str(path))}"])


@project.command("remove")
def remove_project(folder: Folder = Path(), as_json: AsJson = False) -> None:
    """Let no lesson leave any more that this folder taught."""
    path = folder.absolute()
    with opened() as (_home, db), transaction(db):
        if not folders.remove_project(db, path):
            raise RememError(f"expected a project, got {path}, which is none", "remem project list")
    emit({"project": path}, as_json, [f"no lesson leaves any more from {printable(str(path))}"])


@project.command("list")
def list_projects(as_json: AsJson = False) -> None:
    """List the folders whose lessons may leave."""
    with opened() as (_home, db):
        found = folders.projects(db)
    emit(found, as_json, [printable(str(path)) for path in found] or ["no project is opted in: no lesson leaves"])
