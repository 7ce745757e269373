"""The bytes of the files that this memory holds, in its home's folder `commons`.

The database says which file of a key is held; the bytes there are that file only if they have its digest. A
folder that was emptied, cut short by a loss of power or written by a process that died before its database did is
noticed by names, sizes and times, and mended by taking the files in again: a file has the time at which it was
received, and the bytes of one that was touched since are compared with their digest.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from remem.commons.folder import read_file
from remem.errors import RememError
from remem.memory.holdings import Holding, topics
from remem.protocol import RULES, PublicKey, Verified, digest_of

# The clock to read what was accepted before, or what another place holds, whatever its times say of ours.
END_OF_TIME: Final = datetime(2101, 1, 1, tzinfo=UTC)

_NAME: Final = re.compile(r"([0-9a-f]{64})\.jsonl")


def path_of(folder: Path, key: str) -> Path:
    """Name the place of a key's file."""
    return folder / f"{key}.jsonl"


@contextmanager
def writing(folder: Path) -> Iterator[None]:
    """Tell of a folder that cannot be written as of a failure.

    Raises:
        RememError: the folder cannot be written; its disk may be full.
    """
    try:
        yield
    except OSError as error:
        raise RememError(f"expected to write into {folder}, got {(error.strerror or 'a failure').lower()}") from error


def read_held(folder: Path, held: Holding) -> bytes | None:
    """Read the bytes of a held file; None where other bytes lie there, or none."""
    data = read_file(path_of(folder, held.key), RULES.file_bytes)
    return data if data is not None and digest_of(data) == held.version.digest else None


def verified_lines(folder: Path, held: Holding | None) -> Verified | None:
    """Return the lines of a held file that its key's next file need not verify again."""
    if held is None or held.version.seal is None:
        return None
    data = read_held(folder, held)
    return None if data is None else Verified(PublicKey.parse(held.key), topics(data))


def damaged(folder: Path, held: Mapping[str, Holding]) -> tuple[frozenset[str], frozenset[str]]:
    """Compare the folder with what is held: by names and sizes, and by bytes where a file was touched.

    Returns:
        The keys whose bytes cannot be those of the held file, and the keys of files that nothing is held of.
    """
    found_there: dict[str, os.stat_result] = {}
    with os.scandir(folder) as found:
        for item in found:
            if (name := _NAME.fullmatch(item.name)) and item.is_file(follow_symlinks=False):
                found_there[name[1]] = item.stat(follow_symlinks=False)
    broken = (key for key, one in held.items() if not _is_whole(folder, one, found_there.get(key)))
    return frozenset(broken), frozenset(found_there.keys() - held.keys())


def mark_received(path: Path, received: datetime) -> None:
    """Give a file the time at which it was received, so that a later change of its bytes shows."""
    seconds = int(received.timestamp())
    os.utime(path, (seconds, seconds))


def _is_whole(folder: Path, held: Holding, there: os.stat_result | None) -> bool:
    if there is None or there.st_size != held.size:
        return False
    return int(there.st_mtime) == int(held.received.timestamp()) or read_held(folder, held) is not None
