"""A commons as a folder of files, out and in (PROTOCOL.md, section 11).

An export holds what a reader needs, and nothing else of the commons: `<key>.jsonl` for each key, the `index`, which
gives each its principal, and `.well-known/remem`, which names the operators. A memory pulls from the folder, or from
any web server that hands it out.

- Files come first, in short reads in the order of their changes. What changed meanwhile and the index come in one
  read at the end, so that the index says what lies in the folder.
- Each file is written whole beside its place and renamed; one that stands there already is left, and so is one
  that is newer there. So an export that was cut short goes on, and one into the same folder costs what changed.
- A folder that has the commons' own data in it or below it is refused, and no link in it is followed.
- Nothing is removed but the files of keys that are blocked, or were and did not come again.

An import gives every file of a folder to the one write path. Tokens, admissions, blocks and acts stay where they were
made: an export does not carry them.
"""

from __future__ import annotations

import errno
import filecmp
import os
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Final

from sqlalchemy import Connection, Engine, bindparam, func, select, union

from remem.commons.folder import (
    INDEX,
    FolderCommons,
    claimed,
    file_names,
    flush_folder,
    is_authentic,
    read_file,
    stage_file,
    sweep,
)
from remem.errors import Refused, RememError, Unreachable
from remem.progress import Progress
from remem.protocol import ProtocolError, Verdict, Version, digest_of, newest
from remem.sharing.reports import LeftFile
from remem_server.database.engine import DATABASE_NAME
from remem_server.database.tables import blocks, contents, files
from remem_server.errors import CommonsError
from remem_server.files import store
from remem_server.files.accept import accept_file
from remem_server.files.store import Entry
from remem_server.opening.context import Commons
from remem_server.opening.description import DESCRIPTOR_PATH, describe, index_entry
from remem_server.opening.node import KEY_NAME
from remem_server.settings import Clock

# At most so many files are in memory at once.
PAGE: Final = 50

_SUFFIX: Final = ".jsonl"
_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
_DATA: Final = select(contents.c.key, contents.c.data).where(contents.c.key.in_(bindparam("keys", expanding=True)))
# Of a key that was blocked and is no more, nothing is held until its file comes again.
_GONE: Final = union(select(blocks.c.key), select(files.c.key).where(~files.c.held))
_HELD: Final = select(func.count()).select_from(files).where(files.c.held)


@dataclass(slots=True)
class Exported:
    """What an export did.

    Attributes:
        folder: where to.
        files: how many files the commons has.
        written: how many of them were written.
        unchanged: how many were there already.
        removed: how many files of blocked keys were removed.
        left: those that are newer in the folder, and those that are damaged in the commons.
    """

    folder: Path
    files: int = 0
    written: int = 0
    unchanged: int = 0
    removed: int = 0
    left: list[LeftFile] = field(default_factory=list)


_OUTCOMES: Final = {
    **{verdict: verdict.value for verdict in (Verdict.NEW, Verdict.NEWER, Verdict.UNCHANGED, Verdict.OLDER)},
    Verdict.EQUIVOCATION_TAKEN: "equivocation",
    Verdict.EQUIVOCATION_LEFT: "equivocation",
}


@dataclass(slots=True)
class Imported:
    """What an import did.

    Attributes:
        folder: where from.
        outcomes: how many files were `new`, `newer`, `unchanged`, `older`, or an `equivocation`.
        refused: those that were not taken, and why.
    """

    folder: Path
    outcomes: dict[str, int] = field(default_factory=lambda: dict.fromkeys(_OUTCOMES.values(), 0))
    refused: list[LeftFile] = field(default_factory=list)


# --- out ---


def export_files(commons: Commons, folder: Path, progress: Progress | None = None) -> Exported:
    """Write a commons into a folder, which is made where there is none.

    Raises:
        Refused: the folder holds what must never be handed out.
        Unreachable: the folder cannot be written.
    """
    inside = commons.settings.data.resolve().is_relative_to(folder.resolve())
    if inside or any((folder / name).exists() for name in (KEY_NAME, DATABASE_NAME)):
        raise Refused(f"expected a folder for files alone, got {folder}, which has a commons' own data in it")
    folder.mkdir(parents=True, exist_ok=True)
    return _Export(commons, folder, progress).run()


class _Export:
    """One export: what its steps share."""

    def __init__(self, commons: Commons, folder: Path, progress: Progress | None) -> None:
        self.commons = commons
        self.place = FolderCommons(folder)
        self.progress = progress
        self.done = Exported(folder)
        self.reached = 0

    def run(self) -> Exported:
        with self.place.locked():
            sweep(self.done.folder)
        self._write_descriptor()
        with self.commons.reads.connect() as connection:
            self.done.files = connection.execute(_HELD).scalar_one()
        more = True
        while more:
            with self.commons.reads.connect() as connection:
                more = self._write_page(connection)
        with self.commons.reads.connect() as connection:
            while self._write_page(connection):
                pass
            self._remove_blocked(connection)
            self._write_index(connection)
        return self.done

    def _write_page(self, connection: Connection) -> bool:
        """Write the next files that changed; False where there is none."""
        entries = store.index(connection, self.reached, PAGE)
        data = _data_of(connection, [entry.key for entry in entries])
        with self.place.locked():
            for entry in entries:
                self._write_file(entry, data.get(entry.key, b""))
            flush_folder(self.done.folder)
        if entries:
            self.reached = entries[-1].cursor
        if self.progress is not None:
            seen = self.done.written + self.done.unchanged + len(self.done.left)
            self.progress(seen, max(seen, self.done.files))
        return len(entries) > 0

    def _write_file(self, entry: Entry, data: bytes) -> None:
        path = self.done.folder / (entry.key + _SUFFIX)
        stands = _compared(path, entry)
        if digest_of(data) != entry.digest:
            damaged = f"expected bytes with digest {entry.digest}, got {digest_of(data)}"
            self.done.left.append(LeftFile(path.name, "damaged", damaged))
        elif stands is Verdict.UNCHANGED:
            self.done.unchanged += 1
        elif stands.takes:
            staged = stage_file(self.done.folder, entry.key, data)
            staged.replace(path)
            self.done.written += 1
        else:
            got = f"expected seal {entry.seal} or an older one in the folder, got another file"
            self.done.left.append(LeftFile(path.name, "older_file", got))

    def _remove_blocked(self, connection: Connection) -> None:
        with self.place.locked():
            for key in connection.execute(_GONE).scalars():
                with suppress(FileNotFoundError):
                    (self.done.folder / (key + _SUFFIX)).unlink()
                    self.done.removed += 1

    def _write_index(self, connection: Connection) -> None:
        """Write the entries of the HTTP index, one a line."""
        since = count = 0
        with _placed(self.done.folder / INDEX) as file:
            file.write(b"[")
            while page := store.index(connection, since, 20 * PAGE):
                for entry in page:
                    file.write((b",\n" if count else b"\n") + _entry_line(entry))
                    count += 1
                since = page[-1].cursor
            file.write(b"\n]\n")
        self.done.files = count

    def _write_descriptor(self) -> None:
        # Nobody publishes there, and whoever gets at the files needs no token of ours.
        said = describe(self.commons).model_copy(update={"open": False, "private": False})
        path = self.done.folder / DESCRIPTOR_PATH.lstrip("/")
        with suppress(FileExistsError):
            path.parent.mkdir()
        _write_below(path, said.model_dump_json(indent=2).encode() + b"\n")


def _data_of(connection: Connection, keys: Sequence[str]) -> dict[str, bytes]:
    return {row.key: row.data for row in connection.execute(_DATA, {"keys": keys})}


def _compared(path: Path, entry: Entry) -> Verdict:
    """Compare a file of the commons with what stands in its place in the folder."""
    data = read_file(path)
    if data is None:
        return Verdict.NEW
    held = Version(None, digest_of(data))
    with suppress(ProtocolError):
        key, version = claimed(data)
        if key.hex == entry.key and is_authentic(data):
            held = version
    return newest(held, Version(entry.seal, entry.digest))


def _entry_line(entry: Entry) -> bytes:
    return index_entry(entry).model_dump_json().encode()


@contextmanager
def _placed(path: Path) -> Iterator[IO[bytes]]:
    """Write a file beside its place, and put it there unless the same bytes are there: readers then see no change."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}.tmp")
    try:
        with temporary.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if not (path.is_file() and filecmp.cmp(temporary, path, shallow=False)):
            temporary.replace(path)
            flush_folder(path.parent)
    finally:
        temporary.unlink(missing_ok=True)


def _write_below(path: Path, data: bytes) -> None:
    """Put a file into a folder that somebody else may have put there, unless that is a link to another.

    Raises:
        Refused: it is no folder.
    """
    try:
        handle = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as error:
        if error.errno not in (errno.ENOTDIR, errno.ELOOP):
            raise
        raise Refused(f"expected a folder at {path.parent}, got a link or a file", "remove it") from error
    temporary = f".{path.name}.{secrets.token_hex(8)}.tmp"
    try:
        if read_file(path) == data:
            # Readers see no change.
            return
        with os.fdopen(os.open(temporary, _NEW, 0o666, dir_fd=handle), "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path.name, src_dir_fd=handle, dst_dir_fd=handle)
        os.fsync(handle)
    finally:
        with suppress(FileNotFoundError):
            os.unlink(temporary, dir_fd=handle)
        os.close(handle)


# --- in ---


def import_files(engine: Engine, folder: Path, clock: Clock, progress: Progress | None = None) -> Imported:
    """Take in every file of a folder that is good and newer than what is held.

    Args:
        engine: the database.
        folder: a folder of files, as an export or as memories share into.
        clock: this commons' clock.
        progress: told how many files of how many are done.

    Raises:
        RememError: the folder has no file of a commons.
        OSError: it cannot be read.
    """
    done = Imported(folder)
    names = file_names(folder) if folder.is_dir() else []
    if not names and not (folder / INDEX).exists():
        what = "a folder without one" if folder.is_dir() else "no folder"
        raise RememError(f"expected the files of a commons in {folder}, got {what}", "`remem-server export` makes them")
    for number, name in enumerate(names, 1):
        try:
            verdict = _import_file(engine, folder / name, clock)
        except (ProtocolError, CommonsError) as error:
            done.refused.append(LeftFile(name, error.code, str(error)))
        except Unreachable as error:
            done.refused.append(LeftFile(name, "file_unreadable", error.message))
        else:
            done.outcomes[_OUTCOMES[verdict]] += 1
        if progress is not None:
            progress(number, len(names))
    return done


def _import_file(engine: Engine, path: Path, clock: Clock) -> Verdict:
    name = path.name.removesuffix(_SUFFIX)
    data = read_file(path) or b""
    if len(name) == store.KEY_DIGITS:
        with engine.connect() as connection:
            held = store.snapshot(connection, name)
        if held is not None and held.whole and held.version.digest == digest_of(data):
            # What is held needs no lock to be left as it is.
            return Verdict.UNCHANGED
    return accept_file(engine, data, name=name, secret=None, token_needed=False, now=clock()).verdict
