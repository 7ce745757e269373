"""The home of a memory: one folder that holds its identity, its database, its settings and its inbox.

    identity.key    the seed of the signing key, 64 hex digits: whoever has it speaks as this memory
    memory.db       everything the memory knows
    config.toml     what the owner sets, tokens included
    inbox.jsonl     where agents append events, a line each
    commons/        the files of others, byte for byte

- The folder is the owner's alone (0700), and so are the files in it (0600); what is found open is closed.
- A key is made once, appears in one step, and is never written over. A memory without its key is not given a new
  one: it would be somebody else.
- A folder that holds the files of another program is refused, and nothing in it is touched.
- The inbox is taken by renaming it. An agent may still append to the file it had opened, so a taken file is read
  again from where reading stopped, and removed only on a later night. Lines of it that are no events are kept
  beside it, as they came, in a file whose name ends in `.rejected`, for the owner to mend.
- A process may die at any moment. The spare files that it leaves hold secrets, and are removed an hour later.
"""

from __future__ import annotations

import os
import secrets
import sqlite3
import stat
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from remem.errors import Refused, RememError
from remem.memory import items
from remem.memory.config import Config, read_config
from remem.memory.store import open_store
from remem.protocol.keys import SigningKey

_SEED_BYTES: Final = 32
_LEFT_BEHIND_SECONDS: Final = 3_600
_OURS: Final = ("identity.key", "memory.db", "config.toml", "inbox.jsonl", "commons")


@dataclass(frozen=True, slots=True)
class Home:
    """One memory's folder. The value alone says nothing about what is there: `create` and `open` look."""

    path: Path

    @classmethod
    def create(cls, path: Path) -> Self:
        """Make a memory, or complete one that was half made; one that is there already stays as it is.

        Raises:
            Refused: the folder holds another program's files, or a memory without its key.
        """
        home = cls(path)
        if path.exists():
            _check_owner(home)
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        if home.db_path.exists():
            home.connect().close()
            if not home.key_path.exists():
                raise Refused(f"expected the key of the memory in {path}, got a memory without one", _LOST_KEY)
        # The key first: a memory whose making was cut short can then be told from one that lost its key.
        _make_key(home.key_path)
        home.commons_path.mkdir(mode=0o700, exist_ok=True)
        home.config_path.touch(mode=0o600, exist_ok=True)
        home.connect().close()
        tighten(home)
        return home

    @classmethod
    def open(cls, path: Path) -> Self:
        """Open a memory that is there, and close what is open to others.

        Raises:
            RememError: there is none.
            Refused: the folder holds another program's files.
        """
        home = cls(path)
        if path.exists():
            _check_owner(home)
        if not home.key_path.exists() and not home.db_path.exists():
            raise RememError(f"expected a memory at {path}, got none", "run `remem init`")
        tighten(home)
        _sweep(home)
        return home

    @property
    def key_path(self) -> Path:
        """The file of the signing key."""
        return self.path / "identity.key"

    @property
    def db_path(self) -> Path:
        """The database."""
        return self.path / "memory.db"

    @property
    def config_path(self) -> Path:
        """The owner's settings."""
        return self.path / "config.toml"

    @property
    def inbox_path(self) -> Path:
        """Where agents append events."""
        return self.path / "inbox.jsonl"

    @property
    def commons_path(self) -> Path:
        """The folder for the files of others."""
        return self.path / "commons"

    def connect(self) -> sqlite3.Connection:
        """Open the database; whoever opens it closes it."""
        db = open_store(self.db_path)
        try:
            items.catch_up(db, self.commons_path)
        except BaseException:
            db.close()
            raise
        return db

    def config(self) -> Config:
        """Read the owner's settings."""
        return read_config(self.config_path)

    def signing_key(self) -> SigningKey:
        """Read the signing key.

        Raises:
            Refused: the file is missing or is no key of ours.
        """
        try:
            text = self.key_path.read_bytes()
        except FileNotFoundError:
            raise Refused(f"expected the key of this memory at {self.key_path}, got no file", _LOST_KEY) from None
        seed = _seed(text)
        if seed is None:
            raise Refused(f"expected 64 hex digits in {self.key_path}, got something else", _LOST_KEY)
        return SigningKey.from_seed(seed)

    def taken_inboxes(self) -> list[Path]:
        """Return the inboxes that were taken and not yet removed, the oldest first."""
        return sorted(self.path.glob("inbox.*.taken"))

    def rejected_files(self) -> list[Path]:
        """Return the files of inbox lines that are no events, the oldest first."""
        return sorted(self.path.glob("inbox.*.rejected"))

    def take_inbox(self) -> Path | None:
        """Take the inbox away from those who append to it; None if it is missing, or another process took it."""
        # Times sort; the rest keeps apart what two processes take in one second.
        taken = self.path / f"inbox.{_stamp(self.inbox_path)}-{secrets.token_hex(4)}.taken"
        try:
            self.inbox_path.rename(taken)
        except FileNotFoundError:
            return None
        return taken


_LOST_KEY: Final = "put identity.key back from a backup, or move the folder away and run `remem init`"


def home_path(environment: Mapping[str, str]) -> Path:
    """Return where the memory's home is: `REMEM_HOME`, or `.remem` in the user's home."""
    named = environment.get("REMEM_HOME")
    return Path(named).absolute() if named else Path.home() / ".remem"


def tighten(home: Home) -> list[str]:
    """Take everybody's rights but the owner's from the home and its files; return what had been open."""
    found = []
    for path, mode in open_to_others(home):
        # SQLite removes the files beside the database when the last process closes it.
        with suppress(FileNotFoundError):
            path.chmod(0o700 if path.is_dir() else 0o600)
        found.append(f"{path} was open to others (mode {mode:o}), and is closed now")
    return found


def open_to_others(home: Home) -> list[tuple[Path, int]]:
    """Return which of the home and its files somebody else may use, each with its mode."""
    found = []
    for path in (
        home.path,
        *(home.path / name for name in _OURS),
        *home.path.glob("memory.db-*"),
        *home.taken_inboxes(),
        *home.rejected_files(),
    ):
        try:
            status = path.lstat()
        except FileNotFoundError:
            continue
        if stat.S_ISLNK(status.st_mode):
            continue
        if stat.S_IMODE(status.st_mode) & 0o077:
            found.append((path, stat.S_IMODE(status.st_mode)))
    return found


def _sweep(home: Home) -> None:
    """Remove the spare keys and settings that processes left behind when they died."""
    for path in (*home.path.glob(f".{home.key_path.name}.*"), *home.path.glob(f".{home.config_path.name}.*")):
        with suppress(FileNotFoundError):
            if time.time() - path.lstat().st_mtime > _LEFT_BEHIND_SECONDS:
                path.unlink()


def _check_owner(home: Home) -> None:
    """Refuse a folder that holds something, and no memory of ours."""
    if not home.path.is_dir():
        raise Refused(f"expected a folder at {home.path}, got a file")
    # A spare key is of a process that is making this memory at this moment, or died in doing so.
    names = {entry.name for entry in home.path.iterdir() if not entry.name.startswith(f".{home.key_path.name}.")}
    # An inbox alone is an agent that reports before its owner has made the memory.
    if names <= {"inbox.jsonl"}:
        return
    if home.key_path.exists():
        if _seed(home.key_path.read_bytes()) is None:
            raise Refused(f"expected a key of ours at {home.key_path}, got something else", _ANOTHER_PROGRAM)
        return
    if not home.db_path.exists():
        shown = ", ".join(sorted(names)[:3])
        raise Refused(f"expected a memory or an empty folder at {home.path}, got {shown}", _ANOTHER_PROGRAM)
    home.connect().close()


_ANOTHER_PROGRAM: Final = "another program's files seem to be there: name another folder with REMEM_HOME"


def _make_key(path: Path) -> None:
    if path.exists():
        return
    spare = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    handle = os.open(spare, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(handle, "w", encoding="ascii") as file:
            file.write(secrets.token_bytes(_SEED_BYTES).hex() + "\n")
            file.flush()
            os.fsync(file.fileno())
        # A link fails where a name is taken: of two processes one makes the key, and the other uses it.
        os.link(spare, path)
    except FileExistsError:
        pass
    finally:
        spare.unlink()


def _seed(text: bytes) -> bytes | None:
    try:
        seed = bytes.fromhex(text.decode("ascii").strip())
    except ValueError:
        return None
    return seed if len(seed) == _SEED_BYTES else None


def _stamp(path: Path) -> str:
    try:
        return f"{path.stat().st_mtime_ns:020d}"
    except FileNotFoundError:
        return f"{0:020d}"
