"""The commands between this memory and the commons: share, pull, confirm, take back, and look."""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from pathlib import Path
from random import SystemRandom
from typing import Annotated

import typer

from remem.cli import added
from remem.cli.memory import clock, opened
from remem.cli.output import AsJson, count, emit, progress, say, warn
from remem.commons import Commons, commons_at, is_url, spell_target
from remem.errors import Partly, Refused, RememError, Unreachable, Usage
from remem.memory.config import set_target
from remem.memory.home import Home
from remem.protocol import RULES, Cause
from remem.sharing.escape import printable
from remem.sharing.mind import DENIED
from remem.sharing.reports import Notice, PullReport, ShareReport, Stopped, TargetResult
from remem.sharing.targets import forget_place, goes_to_peers, pull_sources, share_targets

Target = Annotated[str | None, typer.Argument(help="A URL or a folder; every known one by default.")]
Hash = Annotated[str, typer.Argument(help="The lesson's hash, or the beginning of it.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Print the exact bytes that would leave, and send nothing.")]
Adopt = Annotated[bool, typer.Option("--adopt", help="Take over a file of this key that was made elsewhere.")]

_TOKEN_CHARACTERS = 512
# A hostile commons can make any number of bad files; a person reads some.
_SHOWN = 20
# What takes a lesson out of mind.
_STOPPED = {
    Cause.WITHDRAWN.value: "revoked, as nobody publishes it any more",
    Cause.REVOKER.value: "revoked by one whom this memory trusts as a revoker",
    Cause.QUORUM.value: "revoked by most of those who confirmed it",
    DENIED: "said by nobody but denied keys",
}


def register(app: typer.Typer) -> None:
    """Add the commands of this group."""
    for command in (login, logout, share, pull, confirm, revoke, withdraw, show, check, status):
        app.command()(command)


# --- to and from the commons ---


def login(target: Annotated[str, typer.Argument(help="A URL or a folder.")], as_json: AsJson = False) -> None:
    """Keep a commons, and the token that it wants.

    The token is asked for at a terminal, and else read from standard input; none keeps the one that is known.
    """
    address = spell_target(target)
    with opened() as (home, _db):
        with closing(commons_at(address)) as commons:
            # A commons that does not answer, or a folder that is not there, is most often a typing error.
            if commons.describe() is None:
                commons.index(None)
        given = _read_token() if is_url(address) else None
        token = given or home.config().target(address).token
        set_target(home.config_path, address, token)
    kept = "with a token" if token else "without a token"
    emit({"target": address, "token": token is not None}, as_json, [f"{printable(address)} is kept {kept}"])


def _read_token() -> str | None:
    if sys.stdin.isatty():
        token = str(typer.prompt("token (empty for none)", default="", hide_input=True, show_default=False)).strip()
    else:
        token = sys.stdin.readline(_TOKEN_CHARACTERS + 2).strip()
    if len(token) > _TOKEN_CHARACTERS or not (token.isascii() and token.isprintable()):
        raise Usage(f"expected a token of at most {_TOKEN_CHARACTERS} printable characters")
    return token or None


def logout(target: Annotated[str, typer.Argument(help="A URL or a folder.")], as_json: AsJson = False) -> None:
    """Go to a commons no more, and forget its token.

    What this memory shared there stays there: withdraw it first if it should not. The keys that the commons named
    stay trusted; `remem trust remove` ends that.
    """
    with opened() as (home, db):
        report = forget_place(home, db, target, now=clock())
    emit(report, as_json, [f"{printable(report.target)} is forgotten", *_stopped_words(report.stopped, report.resumed)])
    for key in report.revokers:
        say(f"{key} is still trusted as a revoker; remem trust remove ends that")
    if report.shared is not None:
        say(f"this memory's file was put there on {report.shared:%Y-%m-%d}, and stays there")


@contextmanager
def _reached(
    home: Home, target: str | None, known: Callable[[], Sequence[str]], *, may_be_none: bool = False
) -> Iterator[list[Commons]]:
    """Reach for the commons that is named, or for every known one."""
    config = home.config()
    addresses = known() if target is None else [spell_target(target)]
    if not addresses and not may_be_none:
        hint = "remem login TARGET keeps one; remem peers add URL and remem gossip need none"
        raise Usage("expected a URL or a folder, got none and none is known", hint=hint)
    with ExitStack() as stack:
        reached = [commons_at(address, config.target(address).token) for address in addresses]
        for commons in reached:
            stack.callback(commons.close)
        yield reached


def _publishing(home: Home, db: sqlite3.Connection, target: str | None) -> AbstractContextManager[list[Commons]]:
    return _reached(home, target, lambda: share_targets(home, db), may_be_none=goes_to_peers(db))


def share(
    target: Target = None,
    dry_run: DryRun = False,
    also: Annotated[list[str] | None, typer.Option(help="Let this lesson leave, whatever its kind.")] = None,
    adopt: Adopt = False,
    as_json: AsJson = False,
) -> None:
    """Seal what this memory says, and publish it; where it has peers and no target, they take it."""
    from remem.sharing.privacy import this_machine
    from remem.sharing.share import share as publish

    with opened() as (home, db), _publishing(home, db, target) as targets:
        report = publish(
            home, db, targets, machine=this_machine(), now=clock(), also=also or (), adopt=adopt, rehearse=dry_run
        )
        more = added.after_share(home, db, report, clock(), SystemRandom())
    _tell_share(report, more, as_json)


def withdraw(
    target: Target = None,
    for_good: Annotated[bool, typer.Option("--for-good", help="Retire the key: it never speaks again.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask before the key is retired.")] = False,
    dry_run: DryRun = False,
    adopt: Adopt = False,
    as_json: AsJson = False,
) -> None:
    """Take back all that was ever shared: how one leaves."""
    from remem.sharing.privacy import this_machine
    from remem.sharing.share import withdraw as take_back

    if for_good and not (yes or dry_run):
        _ask_to_retire()
    with opened() as (home, db), _publishing(home, db, target) as targets:
        report = take_back(
            home, db, targets, machine=this_machine(), now=clock(), for_good=for_good, adopt=adopt, rehearse=dry_run
        )
        more = added.after_share(home, db, report, clock(), SystemRandom())
    _tell_share(report, more, as_json)


def _ask_to_retire() -> None:
    if not sys.stdin.isatty():
        raise Usage(
            "expected --yes, since a key that is retired never speaks again", hint="--dry-run shows what leaves"
        )
    typer.confirm("retire this key for good? it can never be undone", abort=True)


def _tell_share(report: ShareReport, more: Mapping[str, added.Told], as_json: bool) -> None:
    if report.rehearsed and not as_json:
        sys.stdout.buffer.write(report.data)
        sys.stdout.buffer.flush()
    else:
        lines = (line for told in more.values() for line in told.lines)
        emit(added.document(report, more), as_json, (*_share_words(report), *lines))
    for told in more.values():
        added.tell_warnings(told)
    for held in report.held_back:
        say(f"held back ({'; '.join(map(printable, held.reasons))}): {printable(held.text)}")
    for left in report.left_out:
        warn(f"no room for {left.type} {left.subject}")
    _tell_notices(report.notices)
    failed = [result for result in report.results if not result.ok]
    if len(failed) == len(report.results) == 1:
        raise _failure(failed[0])
    for result in failed:
        warn(f"{printable(result.target)}: {result.outcome}: {printable(result.detail or '')}")
    if failed:
        kind = Partly if len(failed) < len(report.results) else type(_failure(failed[0]))
        message = f"expected {count(len(report.results), 'target')} to take the file, {len(failed)} did not"
        raise kind(message, "remem logout TARGET forgets a place that is gone")


def _failure(result: TargetResult) -> RememError:
    message = result.detail or f"expected {result.target} to take the file, got none of it"
    if result.outcome != "refused":
        return Unreachable(message, result.hint)
    return Refused(message, result.hint)


def _share_words(report: ShareReport) -> Iterator[str]:
    numbers = {
        "lesson": report.lessons,
        "confirmation": report.confirmations,
        "revocation": report.revocations,
        "denial": report.denials,
    }
    said = ", ".join(count(number, what) for what, number in numbers.items() if number)
    is_last = report.version.seal == RULES.last_seal
    yield f"{'the last seal' if is_last else f'seal {report.version.seal}'}: {said or 'nothing'}"
    for result in report.results:
        if result.ok:
            skipped = f", readers skip {result.skipped} of its records" if result.skipped else ""
            yield f"{printable(result.target)}: {result.outcome}{skipped}"


def pull(
    source: Annotated[str | None, typer.Argument(help="A URL or a folder; every known one by default.")] = None,
    as_json: AsJson = False,
) -> None:
    """Bring what others share, verify every byte, and judge it."""
    from remem.sharing.pull import pull as bring

    reports: list[PullReport] = []
    failures: list[RememError] = []
    with opened() as (home, db), _reached(home, source, lambda: pull_sources(home, db)) as sources:
        for commons in sources:
            try:
                with progress(f"pulling {printable(commons.target)}") as bar:
                    reports.append(bring(home, db, commons, now=clock(), progress=bar))
            except RememError as error:
                # One commons that fails keeps nobody from the others.
                failures.append(error)
    emit(reports if source is None else reports[0] if reports else None, as_json, _pulls_words(reports))
    for report in reports:
        _tell_left(report)
    if failures and not reports and len(failures) == 1:
        raise failures[0]
    for failure in failures:
        warn(failure.message)
    if failures or any(report.interrupted for report in reports):
        hint = "the next pull goes on from here; remem logout TARGET forgets a place that is gone"
        raise Partly("expected every commons to be pulled whole, some were not", hint)


def _pulls_words(reports: Iterable[PullReport]) -> Iterator[str]:
    for report in reports:
        if report.unchanged:
            yield f"{printable(report.target)}: nothing new"
        else:
            yield (
                f"{printable(report.target)}: {count(len(report.taken), 'file')} taken, {report.current} known before,"
                f" {count(report.learned, 'new lesson')}"
            )
        for key in report.pinned:
            yield f"  trusts {key} as a revoker, as {printable(report.target)} names it (remem trust remove declines)"
        for lesson in report.corroborated:
            yield f"  {lesson[:16]} is said by another memory too"
        yield from _stopped_words(report.stopped, report.resumed)


def _stopped_words(stopped: Sequence[Stopped], resumed: Sequence[str]) -> Iterator[str]:
    for one in stopped:
        yield f"  {one.hash[:16]} is out of mind: {_STOPPED[one.why]}"
    for lesson in resumed:
        yield f"  {lesson[:16]} is back"


def _tell_left(report: PullReport) -> None:
    for skipped in report.skipped[:_SHOWN]:
        fault = skipped.fault
        where = f"{skipped.key[:16]} line {skipped.line}"
        say(f"skipped {where}: {fault.code}: expected {fault.expected}, got {printable(fault.got)}")
    if (more := report.skipped_count - len(report.skipped[:_SHOWN])) > 0:
        say(f"skipped {count(more, 'record')} more")
    for left in report.refused[:_SHOWN]:
        warn(f"refused {printable(left.name)}: {left.code}: {printable(left.detail)}")
    if (more := len(report.refused) - _SHOWN) > 0:
        warn(f"refused {count(more, 'file')} more; --json has them all")
    for left in report.deferred[:_SHOWN]:
        say(f"deferred {printable(left.name)}: {printable(left.detail)}")
    if (more := len(report.deferred) - _SHOWN) > 0:
        say(f"deferred {count(more, 'file')} more; --json has them all")
    if report.over_budget:
        warn(f"no room for {count(report.over_budget, 'file')}: budget_bytes in config.toml may be raised")
    if report.interrupted:
        warn(printable(report.interrupted))
    _tell_notices(report.notices)


def _tell_notices(notices: Iterable[Notice]) -> None:
    for notice in notices:
        warn(f"{notice.code}: {printable(notice.text)}")


# --- one lesson ---


def confirm(
    lesson: Hash,
    episode: Annotated[str | None, typer.Option(help="The episode in which it came true.")] = None,
    as_json: AsJson = False,
) -> None:
    """Say that a lesson of others came true here.

    It leaves with the next share. Without --episode, the episodes of this memory that met the lesson are named.
    """
    from remem.sharing.show import show as gather
    from remem.sharing.speak import confirm as say_true

    with opened() as (home, db):
        if episode is None:
            raise _name_an_episode([met.episode for met in gather(home, db, lesson, now=clock()).meetings])
        report = say_true(home, db, lesson, episode=episode, now=clock())
    said = "confirms" if report.renewed else "confirmed before:"
    words = f"{said} {report.hash[:16]} of {report.at:%Y-%m-%d} (likeness {report.likeness:.2f})"
    emit(report, as_json, [words, f"  {printable(report.text)}"])


def _name_an_episode(met: Sequence[str]) -> RememError:
    if not met:
        hint = "once the lesson comes true here, remem sleep names the episode"
        return Refused("expected an episode of this memory that met the lesson, got none", hint)
    return Usage(f"expected --episode, got none; these met the lesson: {', '.join(met)}")


def revoke(
    lesson: Hash,
    reason: Annotated[str | None, typer.Option(help="Why, for everyone to read.")] = None,
    as_json: AsJson = False,
) -> None:
    """Take a lesson back, your own or another's.

    It holds here at once, and elsewhere with the next share.
    """
    from remem.sharing.privacy import this_machine
    from remem.sharing.speak import revoke as take_back

    with opened() as (_home, db):
        report = take_back(db, lesson, reason=reason, machine=this_machine(), now=clock())
    emit(report, as_json, [f"revokes {report.hash[:16]}; it leaves with the next share", *_quoted(report.text)])


def _quoted(text: str | None) -> list[str]:
    return [] if text is None else [f"  {printable(text)}"]


def show(lesson: Hash, as_json: AsJson = False) -> None:
    """Show one lesson all the way down to the signatures."""
    from remem.cli.showing import show_words
    from remem.sharing.show import show as gather

    with opened() as (home, db):
        report = gather(home, db, lesson, now=clock())
    emit(report, as_json, show_words(report))
    _tell_notices(report.notices)


def check(file: Annotated[Path, typer.Argument(help="A file of signed lines.")], as_json: AsJson = False) -> None:
    """Check a file as if it came from a stranger."""
    from remem.cli.showing import check_words
    from remem.sharing.show import check_file

    report = check_file(file, now=clock())
    emit(report, as_json, check_words(report))
    if not report.accepted:
        where = "" if report.line is None else f"line {report.line}: "
        raise Refused(f"{report.code}: {where}expected {report.expected}, got {report.got}")


def status(as_json: AsJson = False) -> None:
    """Say what this memory is and holds, and what to look into."""
    from remem.cli.showing import status_words
    from remem.sharing.status import status as look

    with opened() as (home, db):
        report = look(home, db)
    emit(report, as_json, status_words(report))
    _tell_notices(report.notices)
