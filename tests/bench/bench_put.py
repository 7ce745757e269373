"""Publishing a full file: acceptance, the whole PUT, and the PUT of the next file with one line changed.

A full file has 505 lessons of about 515 bytes. The measure is bare PyNaCl verification of its lines on one core.
The commons is a process of its own, and everything is included: HTTP, judgement, rows, and the commit.
"""

from __future__ import annotations

import sys
import tempfile
from datetime import timedelta
from pathlib import Path

import httpx
from nacl.bindings import crypto_sign_open

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.table import Bound, medians, report
from remem.protocol import accept, sign_record
from remem_testkit.files import NOW, full_file, key, lesson, resealed, sentence
from remem_testkit.server import spawn

REPETITIONS = 30
WARM_UP = 3
_SIGNATURE = b'"sig":"'


def signed_messages(data: bytes) -> list[bytes]:
    """Cut each line into its signature and what it signs, as the library takes them."""
    messages = []
    for line in data[:-1].split(b"\n"):
        start = line.index(_SIGNATURE)
        digits = start + len(_SIGNATURE)
        signature = bytes.fromhex(line[digits : digits + 128].decode())
        messages.append(signature + line[:start] + line[digits + 130 :])
    return messages


def changed(number: int, data: bytes) -> bytes:
    """Change one line of a file, and seal it a second later."""
    lines = data[:-1].split(b"\n")[1:]
    lines[7] = sign_record(key(number), {**lesson(f"{sentence(number)}, once more"), "sealed": True})
    return resealed(key(number), lines, at=NOW + timedelta(seconds=1))


def main() -> None:
    runs = range(WARM_UP + REPETITIONS)
    first = [full_file(key(number)) for number in runs]
    then = [changed(number, data) for number, data in enumerate(first)]
    messages, raw = signed_messages(first[0]), key(0).public.raw
    with (
        tempfile.TemporaryDirectory() as folder,
        spawn(Path(folder) / "data", ["--port", "0", "--open"]) as commons,
        httpx.Client(base_url=commons.url, timeout=60) as client,
    ):

        def put(number: int, data: bytes) -> None:
            answer = client.put(f"/commons/{key(number).public.hex}.jsonl", content=data)
            assert answer.status_code in (200, 201), answer.text

        seconds = medians(
            {
                "bare verification of 506 lines": lambda _: [crypto_sign_open(one, raw) for one in messages],
                "acceptance of the file": lambda _: accept(first[0], now=NOW),
                "PUT as a new file": lambda number: put(number, first[number]),
                "PUT with one line changed": lambda number: put(number, then[number]),
            },
            repetitions=REPETITIONS,
            warm_up=WARM_UP,
        )
    bare, acceptance, new, one = seconds.values()
    bounds = [
        Bound("acceptance / bare verification", acceptance / bare, most=1.35),
        Bound("PUT as a new file / bare verification", new / bare, most=2.0),
        Bound("PUT as a new file / PUT with one line changed", new / one, least=7.0),
    ]
    report(f"a file of {len(messages) - 1} lessons, {len(first[0]):,} bytes; medians of {REPETITIONS}", seconds, bounds)


if __name__ == "__main__":
    main()
