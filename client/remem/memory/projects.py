"""Projects: the folders whose lessons may leave this memory. Nothing is one unless its owner says so.

- A project is a folder, named by its absolute path with links resolved.
- An event belongs to the innermost project that contains the folder in which it happened. Whether it does is
  asked when it matters and never stored, so that adding and removing a project hold at once, also for the past.
- Paths are compared part by part: /src/app does not contain /src/app-two.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path

from remem.errors import RememError
from remem.protocol.times import format_time


def add_project(db: sqlite3.Connection, folder: Path, now: datetime) -> Path:
    """Opt a folder in, and return the path by which it is known.

    Raises:
        RememError: there is no such folder.
    """
    path = resolved(folder)
    if path is None or not path.is_dir():
        raise RememError(f"expected a folder, got {folder}")
    db.execute("INSERT OR IGNORE INTO projects (path, added) VALUES (?, ?)", (str(path), format_time(now)))
    return path


def remove_project(db: sqlite3.Connection, folder: Path) -> bool:
    """Opt a folder out, whether it still exists or not; tell whether it was in."""
    path = resolved(folder)
    names = {str(folder)} if path is None else {str(folder), str(path)}
    return sum(db.execute("DELETE FROM projects WHERE path = ?", (name,)).rowcount for name in names) > 0


def projects(db: sqlite3.Connection) -> tuple[Path, ...]:
    """Return the folders that are opted in, in order."""
    return tuple(Path(row[0]) for row in db.execute("SELECT path FROM projects ORDER BY path"))


def project_of(folders: Iterable[Path], cwd: str | None) -> Path | None:
    """Return the innermost of these folders that contains another; None where none does.

    Args:
        folders: paths as `projects` returns them.
        cwd: where an event happened, as it was reported. A path that is not absolute is in no project.
    """
    place = None if cwd is None else resolved(Path(cwd))
    if place is None:
        return None
    inside = [folder for folder in folders if place.is_relative_to(folder)]
    return max(inside, key=lambda folder: len(folder.parts), default=None)


def outside(folders: Iterable[Path], cwd: str | None) -> str | None:
    """Say in words why what happened in a folder is in no project: it `names no folder`; None if it is in one."""
    if project_of(folders, cwd) is not None:
        return None
    if not cwd:
        return "names no folder"
    if resolved(Path(cwd)) is None:
        return "names a folder by no absolute path"
    return "is from a folder that is in no project that is opted in"


def resolved(path: Path) -> Path | None:
    """Return an absolute path without links, dots and a home sign; None for one that is not absolute or no path."""
    try:
        plain = path.expanduser()
        return Path(os.path.realpath(plain)) if plain.is_absolute() else None
    except (OSError, RuntimeError, ValueError):
        return None
