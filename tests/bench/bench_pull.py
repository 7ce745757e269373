"""Pulling a commons of many files into an empty memory, against the bare verification of their lines.

Printed are ratios within one run: a first pull from a folder and from a commons on loopback, each against PyNaCl
verifying the same signatures on one core; and a second pull with nothing new against the first.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from remem.commons import commons_at
from remem.memory.home import Home
from remem.protocol import PublicKey, SigningKey
from remem.sharing.pull import pull
from remem_server.accept import accept_file
from remem_testkit.files import file, key, lesson, sentence
from remem_testkit.server import prepared, spawn

NOW = datetime.now(UTC).replace(microsecond=0)
FIRST_MOST = 2.5
SECOND_LEAST = 50.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=1_000)
    parser.add_argument("--lines", type=int, default=100)
    arguments = parser.parse_args()
    scratch = Path(tempfile.mkdtemp(prefix="remem-bench-"))
    try:
        run(scratch, arguments.files, arguments.lines)
    finally:
        shutil.rmtree(scratch)


def run(scratch: Path, files: int, lines: int) -> None:
    """Make the files, put them at both places, and measure."""
    folder, data = scratch / "folder", scratch / "server"
    folder.mkdir()
    signers = [key(number) for number in range(files)]
    with prepared(data) as engine:
        for number, signer in enumerate(signers):
            content = make_file(signer, number * lines, lines)
            (folder / f"{signer.public.hex}.jsonl").write_bytes(content)
            accept_file(engine, content, name=signer.public.hex, secret=None, token_needed=False, now=NOW)
    bare = verify_all(folder)
    print(f"{files} files of {lines} lines; verifying their signatures takes {bare:.2f} s\n")
    print(f"{'place':10}{'first':>10}{'/ bare':>8}{'second':>10}{'first /':>10}")
    show("folder", bare, *pulls(scratch / "one", str(folder)))
    with spawn(data) as server:
        show("commons", bare, *pulls(scratch / "two", server.url))
    print(
        f"\nexpected of a commons: first at most {FIRST_MOST} times bare, second at least {SECOND_LEAST:g} times less"
    )


def make_file(signer: SigningKey, start: int, lines: int) -> bytes:
    """Sign a file of lessons that no other file has."""
    return file(signer, [lesson(sentence(start + number), at=NOW) for number in range(lines)], at=NOW)


def verify_all(folder: Path) -> float:
    """Verify every signature of the files, and nothing else; return the seconds it takes."""
    signed: list[tuple[PublicKey, bytes, bytes]] = []
    for path in folder.iterdir():
        signer = PublicKey.parse(path.stem)
        for line in path.read_bytes().splitlines():
            start = line.index(b'"sig":"')
            signature = bytes.fromhex(line[start + 7 : start + 135].decode())
            signed.append((signer, line[:start] + line[start + 137 :], signature))
    return timed(lambda: all(signer.verify(message, signature) for signer, message, signature in signed))


def pulls(path: Path, target: str) -> tuple[float, float]:
    """Pull twice into a new memory; return the seconds of both."""
    home = Home.create(path)
    db = home.connect()
    commons = commons_at(target)
    try:
        first = timed(lambda: pull(home, db, commons, now=NOW))
        second = timed(lambda: pull(home, db, commons, now=NOW))
    finally:
        commons.close()
        db.close()
    return first, second


def show(place: str, bare: float, first: float, second: float) -> None:
    """Print one row."""
    print(f"{place:10}{first:>8.2f} s{first / bare:>8.2f}{second * 1_000:>7.1f} ms{first / second:>10.0f}")


def timed(work: Callable[[], object]) -> float:
    """Return how many seconds some work takes."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
