"""Pulling a commons of many files into an empty memory, and pulling again where nothing is new.

The measure is what PyNaCl takes to verify the signatures of all lines and no more, on one core. The commons on
loopback is a process of its own, and everything is included: HTTP, acceptance, judgement, bytes on the disk, rows,
and what the lessons do to the mind.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

from nacl.signing import VerifyKey

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.bench_acceptance import signed_messages
from bench.table import Bound, medians, report
from remem.commons import commons_at
from remem.memory.home import Home
from remem.sharing.pull import pull
from remem.sharing.reports import PullReport
from remem_server.files.accept import accept_file
from remem_testkit.files import file, key, lesson, sentence
from remem_testkit.server import prepared, spawn

NOW = datetime.now(UTC).replace(microsecond=0)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--files", type=int, default=1_000)
    options.add_argument("--lines", type=int, default=100)
    options.add_argument("--repetitions", type=int, default=3)
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        measure(Path(scratch), chosen.files, chosen.lines, chosen.repetitions)


def measure(scratch: Path, files: int, lines: int, repetitions: int) -> None:
    """Make the files, put them at both places, and pull them into one memory after the other."""
    folder, data = scratch / "folder", scratch / "data"
    folder.mkdir()
    made = {number: make_file(number, lines) for number in range(files)}
    with prepared(data) as filled:
        for number, content in made.items():
            name = key(number).public.hex
            (folder / f"{name}.jsonl").write_bytes(content)
            accept_file(filled.engine, content, name=name, secret=None, token_needed=False, now=NOW)
    messages = {number: signed_messages(content) for number, content in made.items()}

    def bare(_repetition: int) -> None:
        for number, signed in messages.items():
            verify = VerifyKey(key(number).public.raw).verify
            for message, signature in signed:
                verify(message, signature)

    def pull_once(place: str, target: str, repetition: int) -> PullReport:
        home = Home.create(scratch / f"{place}-{repetition}")
        with closing(home.connect()) as db, closing(commons_at(target)) as commons:
            return pull(home, db, commons, now=NOW)

    def first(place: str, target: str, repetition: int) -> None:
        assert len(pull_once(place, target, repetition).taken) == files

    def second(place: str, target: str, repetition: int) -> None:
        assert pull_once(place, target, repetition).unchanged

    with spawn(data) as commons:
        seconds = medians(
            {
                "bare verification": bare,
                "first pull from a folder": lambda number: first("folder", str(folder), number),
                "second pull from a folder": lambda number: second("folder", str(folder), number),
                "first pull from a commons": lambda number: first("commons", commons.url, number),
                "second pull from a commons": lambda number: second("commons", commons.url, number),
            },
            repetitions=repetitions,
            warm_up=0,
        )
    verification, first_folder, second_folder, first_commons, second_commons = seconds.values()
    report(
        f"{files} files of {lines} lessons; medians of {repetitions}",
        seconds,
        [
            Bound("first pull from a folder / bare", first_folder / verification, most=2.5),
            Bound("first pull from a commons / bare", first_commons / verification, most=2.5),
            Bound("first / second from a folder", first_folder / second_folder, least=50),
            Bound("first / second from a commons", first_commons / second_commons, least=50),
        ],
    )


def make_file(number: int, lines: int) -> bytes:
    """Sign a file of lessons that no other file has."""
    contents = [lesson(sentence(number * lines + line), at=NOW) for line in range(lines)]
    return file(key(number), contents, at=NOW)


if __name__ == "__main__":
    main()
