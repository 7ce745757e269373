"""What a key signed last on this machine, kept beside the file of the key (PROTOCOL.md, section 10).

`operator.key` has beside it `operator.key.signed`: one line with every seal that was made or taken over here, and then
the last file, to the byte. It is its owner's alone, and on the disk before anything is sent, so that this machine knows
its own seals again, and what it said, whatever a commons shows of it. `operator.key.lock` lets one act at a time go on.
"""

from __future__ import annotations

import fcntl
import json
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from remem.commons.folder import flush_folder
from remem.errors import RememError
from remem.protocol import OriginFile, ProtocolError, PublicKey, Version, accept
from remem_server.operator.own_file import END_OF_TIME

SUFFIX: Final = ".signed"

_LOCK_SUFFIX: Final = ".lock"


@dataclass(frozen=True, slots=True)
class Signed:
    """What was signed here.

    Attributes:
        file: the last file; None before the first.
        seals: the version of every file that was made or taken over here.
    """

    file: OriginFile | None = None
    seals: frozenset[Version] = frozenset()

    def followed_by(self, file: OriginFile, *others: OriginFile) -> Signed:
        """Return what is to be kept where a file is the last, and others were taken over."""
        return Signed(file, self.seals | {one.version for one in (file, *others)})


class SignedFile:
    """The file in which it is kept, while nobody else acts with the key; made by `opened_signed`."""

    def __init__(self, path: Path, key: PublicKey) -> None:
        self._path = path
        self._key = key
        self.holds = self._read()

    def keep(self, signed: Signed) -> None:
        """Put what was signed down to the disk.

        Raises:
            RememError: it cannot be written.
        """
        if signed == self.holds or signed.file is None:
            return
        head = json.dumps(sorted((one.seal or 0, one.digest) for one in signed.seals)).encode() + b"\n"
        draft = self._path.with_name(f".{self._path.name}.{secrets.token_hex(8)}")
        try:
            try:
                descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
                with os.fdopen(descriptor, "wb") as file:
                    file.write(head + signed.file.data)
                    file.flush()
                    os.fsync(file.fileno())
                draft.replace(self._path)
            finally:
                draft.unlink(missing_ok=True)
            flush_folder(self._path.parent)
        except OSError as error:
            raise _unusable(self._path, error) from error
        self.holds = signed

    def _read(self) -> Signed:
        try:
            head, _lf, data = self._path.read_bytes().partition(b"\n")
        except FileNotFoundError:
            return Signed()
        except OSError as error:
            raise _unusable(self._path, error) from error
        try:
            seals = frozenset(Version(int(number), str(digest)) for number, digest in json.loads(head))
            file = accept(data, now=END_OF_TIME)
        except (ProtocolError, ValueError, TypeError) as error:
            raise RememError(
                f"expected what was signed last in {self._path}, got something else: {error}",
                "put it back from a copy; without one remove it, and what the commons has is gone on from",
            ) from error
        if file.key != self._key:
            raise RememError(f"expected what {self._key.hex} signed last in {self._path}, got a file of {file.key.hex}")
        return Signed(file, seals | {file.version})


@contextmanager
def opened_signed(key_file: Path, key: PublicKey) -> Iterator[SignedFile]:
    """Read what a key signed last on this machine; whoever else acts with it waits meanwhile.

    Args:
        key_file: the file of the key.
        key: the key.

    Raises:
        RememError: what was kept is damaged, of another key, or cannot be read or written.
    """
    # One key has one memory of what it said, whatever links lead to it.
    real = key_file.resolve()
    path = real.with_name(real.name + _LOCK_SUFFIX)
    try:
        lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise _unusable(path, error) from error
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield SignedFile(real.with_name(real.name + SUFFIX), key)
    finally:
        os.close(lock)


def _unusable(path: Path, error: OSError) -> RememError:
    why = (error.strerror or str(error)).lower()
    return RememError(
        f"expected to keep what is signed beside its key, got {path}: {why}",
        "a key that did not write down what it said would forget it: use it from a folder that you may write",
    )
