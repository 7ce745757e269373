"""A folder as a commons: one file a key, carried by whatever carries files (PROTOCOL.md, section 11).

- `<key>.jsonl` and `<origin>.jsonl` are read, `<key>.jsonl` is written; anything else is left alone.
- Only regular files are opened and no symbolic link is followed: whoever may write into the folder must not be
  able to make a reader wait at a pipe, or read a file that is none of the folder's.
- A file is written whole beside its place, flushed to the disk, and renamed. Writers take turns under a lock, so
  the newest stands whichever comes last.
- A file that cannot be read is listed as such, and costs a reader nothing but that file.
- A file named `index`, as `remem-server export` writes one, gives each key its principal.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import secrets
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import blake2b
from pathlib import Path
from typing import Final

from remem.commons.base import (
    INDEX_MOST,
    LISTED_MOST,
    BadAnswer,
    CommonsRefused,
    Descriptor,
    Entry,
    Listing,
    Published,
    Unreadable,
    Unreadables,
    read_entries,
)
from remem.errors import Unreachable
from remem.protocol import (
    RULES,
    OriginFile,
    ProtocolError,
    PublicKey,
    Seal,
    Verdict,
    Version,
    digest_of,
    newest,
    parse_record,
)
from remem.protocol.records import read_record

INDEX: Final = "index"
LOCK_SECONDS: Final = 10.0
LEFT_BEHIND_SECONDS: Final = 3_600

_MAKE_HINT: Final = "a folder is not made for you: make it first"
_SCHEME_HINT: Final = "a URL begins with http:// or https://; a folder is not made for you: make it first"
# A host with a port, the name of this machine, an address, or a name that ends as those of the internet do.
_HOST: Final = re.compile(
    r"(?:[\w.-]+|\[[0-9a-f:.]+\]):[0-9]{1,5}|localhost|[0-9]{1,3}(?:\.[0-9]{1,3}){3}|(?:[\w-]+\.)+[a-z]{2,}",
    re.IGNORECASE,
)

_NAME: Final = re.compile(r"([0-9a-f]{16}|[0-9a-f]{64})\.jsonl")
_TEMPORARY: Final = re.compile(r"\.(?:[0-9a-f]{64}|index)\.[0-9a-f]{16}\.tmp")


class FolderCommons:
    """A folder whose files are those of a commons."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.target = str(folder)
        self.warnings: tuple[str, ...] = ()

    def describe(self) -> Descriptor | None:
        """Say nothing, since a folder has no key of its own, but that it is there.

        Raises:
            Unreachable: there is no folder.
        """
        self._check()
        return None

    def index(self, bookmark: str | None) -> Listing:
        """List the files; the bookmark is a digest of names, sizes and times, so an unchanged folder costs no read.

        Raises:
            Unreachable: the folder cannot be read.
        """
        names, state = self._scan()
        if state == bookmark:
            return Listing((), state, unchanged=True, whole=False)
        strange = Unreadables()
        principals = self._principals(strange)
        entries: list[Entry] = []
        again = strange.count > 0 and strange.first[0].code == "file_unreadable"
        for name in names[:LISTED_MOST]:
            version = self._version(name)
            if isinstance(version, Unreadable):
                strange.add(version)
                # Rights may change without a trace in the state of the folder.
                again = again or version.code == "file_unreadable"
            elif version is not None:
                key, found = version
                entries.append(Entry(key, found, principals.get(key)))
        cut = len(names) > LISTED_MOST
        mark = None if cut or again else state
        return Listing(tuple(entries), mark, whole=not cut, more=cut, unreadable=strange.listed())

    def get(self, key: str, digest: str | None = None) -> bytes | None:
        """Read a key's file: the version that is asked for, else the one that its first line says is the newest.

        Raises:
            Unreachable: the folder cannot be read.
        """
        self._check()
        found = self._files_of(PublicKey.parse(key), skip=True)
        best: tuple[Version, bytes] | None = None
        for version, data in found:
            if newest(best and best[0], version).takes or version.digest == digest:
                best = version, data
            if version.digest == digest:
                break
        return best and best[1]

    def put(self, file: OriginFile) -> Published:
        """Write a file in its place if it is the newest of its key.

        Raises:
            Unreachable: the folder cannot be written.
            CommonsRefused: the folder holds a newer one.
        """
        with self.locked():
            sweep(self.folder)
            held: Version | None = None
            for version, data in self._files_of(file.key):
                if is_authentic(data) and newest(held, version).takes:
                    held = version
            verdict = newest(held, file.version)
            if not verdict.takes and verdict is not Verdict.UNCHANGED:
                code = "equivocation" if verdict.equivocation else "older_file"
                raise CommonsRefused(code, f"expected a file newer than seal {held and held.seal}", held=held)
            if verdict.takes:
                write_file(self.folder, file.key.hex, file.data)
        return Published("equivocation" if verdict.equivocation else verdict.value)

    def close(self) -> None:
        """Let go of nothing: a folder is opened and closed at every call."""

    def _check(self) -> None:
        try:
            if not stat.S_ISDIR(self.folder.stat().st_mode):
                raise Unreachable(f"expected a folder at {self.folder}, got a file")
        except OSError as error:
            raise _unreachable(self.folder, error) from error

    def _scan(self) -> tuple[list[str], str]:
        """Return the names of the files in order, and a digest of the state of the folder."""
        lines: list[tuple[str, str]] = []
        try:
            with os.scandir(self.folder) as found:
                for item in found:
                    if (_NAME.fullmatch(item.name) or item.name == INDEX) and item.is_file(follow_symlinks=False):
                        status = item.stat(follow_symlinks=False)
                        marks = (status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)
                        lines.append((item.name, " ".join(map(str, marks))))
        except OSError as error:
            raise _unreachable(self.folder, error) from error
        lines.sort()
        state = blake2b("\n".join(map(" ".join, lines)).encode(), digest_size=16).hexdigest()
        return [name for name, _marks in lines if name != INDEX], state

    def _principals(self, strange: Unreadables) -> dict[str, str | None]:
        data = self._read(INDEX, INDEX_MOST)
        if isinstance(data, Unreadable):
            strange.add(data)
            return {}
        try:
            return {entry.key: entry.principal for entry in read_entries(data or b"[]", strange)}
        except BadAnswer as error:
            strange.add(Unreadable(INDEX, error.code, error.message))
            return {}

    def _read(self, name: str, most: int = RULES.file_bytes) -> bytes | Unreadable | None:
        try:
            data = read_file(self.folder / name, most)
        except Unreachable as error:
            return Unreadable(name, "file_unreadable", error.message)
        if data is not None and len(data) > most:
            return Unreadable(name, "file_size", f"expected at most {most} bytes, got more")
        return data

    def _version(self, name: str) -> tuple[str, Version] | Unreadable | None:
        """Read which version of which key a file claims to be; None if it went away meanwhile."""
        data = self._read(name)
        if data is None or isinstance(data, Unreadable):
            return data
        try:
            key, version = claimed(data)
        except ProtocolError as error:
            error.at_line(1)
            return Unreadable(name, error.code, str(error))
        if name.removesuffix(".jsonl") not in (key.hex, key.origin):
            return Unreadable(name, "name_mismatch", f"expected the name of key {key.hex}, got {name}")
        return key.hex, version

    def _files_of(self, key: PublicKey, *, skip: bool = False) -> Iterator[tuple[Version, bytes]]:
        """Read the files under a key's names; what cannot be read ends a writer, and is skipped for a reader."""
        for name in (key.hex, key.origin):
            data = self._read(f"{name}.jsonl")
            if isinstance(data, Unreadable) and data.code == "file_unreadable" and not skip:
                raise Unreachable(data.detail)
            if data is None or isinstance(data, Unreadable):
                continue
            with suppress(ProtocolError):
                whose, version = claimed(data)
                if whose == key:
                    yield version, data

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the folder's lock; whoever dies lets go of it.

        Raises:
            Unreachable: the folder cannot be written, or another program holds the lock for long.
        """
        try:
            handle = _open_lock(self.folder / ".lock")
        except OSError as error:
            raise _unreachable(self.folder, error, "write into") from error
        try:
            _lock(handle, self.folder)
            yield
        except OSError as error:
            raise _unreachable(self.folder, error, "write into") from error
        finally:
            os.close(handle)


def file_names(folder: Path) -> list[str]:
    """Return the names of what may be files of keys, in order.

    Raises:
        OSError: the folder cannot be read.
    """
    with os.scandir(folder) as found:
        return sorted(item.name for item in found if _NAME.fullmatch(item.name) and item.is_file(follow_symlinks=False))


def read_file(path: Path, most: int = RULES.file_bytes) -> bytes | None:
    """Read a regular file, at most one byte more than `most`; None where there is no such file.

    Raises:
        Unreachable: the file is there and cannot be read.
    """
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        handle = os.open(path, flags)
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ELOOP, errno.ENXIO, errno.EISDIR):
            return None
        raise _unreachable(path, error) from error
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        return None
    with os.fdopen(handle, "rb") as file:
        try:
            return file.read(most + 1)
        except OSError as error:
            raise _unreachable(path, error) from error


def stage_file(folder: Path, key: str, data: bytes) -> Path:
    """Write a key's file beside its place, down to the disk; `os.replace` then puts it there.

    Raises:
        OSError: the folder cannot be written.
    """
    temporary = folder / f".{key}.{secrets.token_hex(8)}.tmp"
    try:
        with temporary.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
    except OSError:
        temporary.unlink(missing_ok=True)
        raise
    return temporary


def write_file(folder: Path, key: str, data: bytes) -> None:
    """Put a key's file in its place, whole or not at all.

    Raises:
        OSError: the folder cannot be written.
    """
    temporary = stage_file(folder, key, data)
    try:
        temporary.replace(folder / f"{key}.jsonl")
    except OSError:
        temporary.unlink(missing_ok=True)
        raise
    flush_folder(folder)


def flush_folder(folder: Path) -> None:
    """Make the names in a folder last through a loss of power."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sweep(folder: Path) -> None:
    """Remove what writers that died have left behind."""
    with os.scandir(folder) as found:
        for item in found:
            if _TEMPORARY.fullmatch(item.name):
                with suppress(FileNotFoundError):
                    if time.time() - item.stat(follow_symlinks=False).st_mtime > LEFT_BEHIND_SECONDS:
                        Path(item.path).unlink()


def claimed(data: bytes) -> tuple[PublicKey, Version]:
    """Read whose file this claims to be, and which version; nothing is verified.

    Raises:
        ProtocolError: its first line is not a record.
    """
    first = read_record(data.partition(b"\n")[0])
    return first.key, Version(first.number if isinstance(first, Seal) else None, digest_of(data))


def is_authentic(data: bytes) -> bool:
    """Tell whether the key's owner sealed these bytes, or they have no seal.

    A seal signs the digest of all behind it, so one signature proves the whole. Without this, anyone who may
    write into the folder could keep an owner out with a seal of a high number.
    """
    line, _lf, behind = data.partition(b"\n")
    try:
        first = parse_record(line)
    except ProtocolError:
        return False
    return not isinstance(first, Seal) or first.digest == digest_of(behind)


def _open_lock(path: Path) -> int:
    flags = os.O_CLOEXEC | os.O_NOFOLLOW
    try:
        return os.open(path, flags | os.O_RDWR | os.O_CREAT, 0o666)
    except PermissionError:
        # Another user made it, and a lock is taken on what may only be read as well.
        return os.open(path, flags | os.O_RDONLY | os.O_NONBLOCK)


def _lock(handle: int, folder: Path) -> None:
    patience = time.monotonic() + LOCK_SECONDS
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > patience:
                raise Unreachable(f"expected to write into {folder}, got a lock that another program holds") from None
            time.sleep(0.02)
        else:
            return


def _unreachable(path: Path, error: OSError, act: str = "read") -> Unreachable:
    if error.errno == errno.ENOENT:
        looks_like_a_host = any(map(_HOST.fullmatch, path.parts))
        return Unreachable(f"expected a folder at {path}, got none", _SCHEME_HINT if looks_like_a_host else _MAKE_HINT)
    if error.errno == errno.ENOTDIR:
        return Unreachable(f"expected a folder at {path}, got a file")
    return Unreachable(f"expected to {act} {path}, got {(error.strerror or 'a failure').lower()}")
