"""What `show`, `check` and `status` say in words."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from remem.cli.output import count, table
from remem.protocol.times import format_time
from remem.sharing.escape import printable
from remem.sharing.show import CheckReport, ShownRecord, ShowReport
from remem.sharing.status import StatusReport

_VERBS = {"lesson": "published by", "confirm": "confirmed by", "revoke": "revoked by"}


def show_words(report: ShowReport) -> Iterator[str]:
    """Say all that is held about a lesson."""
    reading, local = report.reading, report.local
    text = local.text if local is not None else reading.text
    yield f"lesson {report.hash}"
    yield f"  {printable(text)}" if text is not None else "  no publication of it is held"
    yield f"state  {reading.state.value}: {report.why}"
    yield (
        f"counts {count(reading.confirmations, 'confirmation')}, {reading.unadmitted} of keys that do not count;"
        f" {count(reading.corroborations, 'other publisher')} of the same sentence"
    )
    if local is not None:
        yield f"here   {local.source}, {local.state}, strength {local.strength:.1f}, seen {local.seen}"
    for record in report.records:
        yield _record_words(record)
    for said in report.pending:
        yield f"{_VERBS[said.type]} this memory, not shared yet"
    for denial in report.denials:
        yield (
            f"denied {denial.denied[:16]} by {denial.key[:16]}"
            f" ({'obeyed' if denial.obeyed else 'not obeyed'}{_of(denial.via)}): {printable(denial.reason)}"
        )
    for receipt in report.receipts:
        back = ", which took it back" if receipt.dropped else ""
        yield f"received from {receipt.key[:16]} on {format_time(receipt.at)}{back}"
    for episode in report.episodes:
        yield f"episode {episode.id} of {format_time(episode.at)}, seen {episode.seen}: {printable(episode.gist)}"
    for met in report.meetings:
        yield f"met by episode {met.episode} (likeness {met.likeness:.2f}): remem confirm ... --episode {met.episode}"


def _record_words(record: ShownRecord) -> str:
    standing = ", ".join(record.standing) or "unadmitted"
    words = f"{_VERBS[record.type]} {record.key} ({standing}{_of(record.via)}) on {_moment(record.at)}"
    words += f", line {record.line}, signature {'verifies' if record.valid else 'DOES NOT VERIFY'}"
    if record.counts is not None:
        words += ", counts" if record.counts else ", does not count"
    if record.fault is not None:
        words += f", skipped: {record.fault.code}"
    if record.type == "revoke" and record.text is not None:
        words += f": {printable(record.text)}"
    return words


def _of(via: str | None) -> str:
    """Say which commons named a key as its operator's."""
    return "" if via is None else f", an operator of {printable(via)}"


def check_words(report: CheckReport) -> Iterator[str]:
    """Say what a file is, and of each record whether readers would skip it."""
    if not report.accepted or report.version is None:
        return
    seal = "no seal, a file of draft 0" if report.version.seal is None else f"seal {report.version.seal}"
    yield f"accepted: {seal}, {count(len(report.records), 'record')}, {count(report.size, 'byte')}"
    yield f"key    {report.key}"
    yield f"digest {report.version.digest}"
    for record in report.records:
        fault = record.fault
        verdict = "" if fault is None else f"  skipped: {fault.code}: expected {fault.expected}, got {fault.got}"
        yield f"  line {record.line}: {record.type} {record.subject}{printable(verdict)}"


def status_words(report: StatusReport) -> Iterator[str]:
    """Say what a memory is at a glance."""
    yield f"memory   {report.origin}{', retired for good' if report.retired else ''}"
    yield (
        f"events   {report.events}, in {count(report.episodes, 'episode')};"
        f" {count(report.inbox_bytes, 'byte')} wait in the inbox"
    )
    for one in report.lessons:
        yield f"lessons  {one.count} {one.source}, {one.state}"
    yield (
        f"says     {count(report.confirmations, 'confirmation')}, {count(report.revocations, 'revocation')},"
        f" {count(report.denials, 'denial')}"
    )
    seal = "never sealed" if report.seal is None else f"seal {report.seal.seal}"
    yield f"own file {seal}, room for {count(report.room.records, 'record')} and {count(report.room.bytes, 'byte')}"
    yield f"holds    {count(report.holdings, 'file')} of others, {report.held_bytes} of {report.budget_bytes} bytes"
    yield f"trusts   {count(report.revokers, 'revoker')}, follows {count(report.followed, 'key')}"
    rows = [(printable(place.target), _moment(place.pulled), _moment(place.shared)) for place in report.places]
    if rows:
        yield from table(rows, ("commons", "pulled", "shared"))
    for twice in report.equivocations:
        yield f"two files under seal {twice.seal} by {twice.key}: by its owner, or the key is stolen"


def _moment(moment: datetime | None) -> str:
    return "never" if moment is None else format_time(moment)
