"""Pure acceptance of a full file, and of the next one with one line changed; no network, no store, one core.

A full file has 505 lessons of about 515 bytes. The measure is what PyNaCl takes to verify its 506 signatures and no
more. Each repetition has a key and a file of its own, so nothing is remembered from one to the next.
"""

from __future__ import annotations

import sys
from datetime import timedelta
from pathlib import Path

from nacl.signing import VerifyKey

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.table import Bound, medians, report
from remem.protocol import accept, sign_record
from remem_testkit.files import NOW, full_file, key, lesson, resealed, sentence

REPETITIONS = 40
WARM_UP = 3
LATER = NOW + timedelta(seconds=1)
_SIGNATURE = b'"sig":"'


def signed_messages(data: bytes) -> list[tuple[bytes, bytes]]:
    """Cut each line into what is signed and the signature."""
    messages = []
    for line in data[:-1].split(b"\n"):
        start = line.index(_SIGNATURE)
        digits = start + len(_SIGNATURE)
        signature = bytes.fromhex(line[digits : digits + 128].decode())
        messages.append((line[:start] + line[digits + 130 :], signature))
    return messages


def changed(number: int, data: bytes) -> bytes:
    """Change one line of a file, and seal it a second later."""
    lines = data[:-1].split(b"\n")[1:]
    lines[7] = sign_record(key(number), {**lesson(f"{sentence(number)}, once more"), "sealed": True})
    return resealed(key(number), lines, at=LATER)


def main() -> None:
    runs = range(WARM_UP + REPETITIONS)
    first = [full_file(key(number)) for number in runs]
    then = [changed(number, data) for number, data in enumerate(first)]
    messages = [signed_messages(data) for data in first]
    verified = [accept(data, now=NOW).verified for data in first]

    def bare(number: int) -> None:
        verify = VerifyKey(key(number).public.raw).verify
        for message, signature in messages[number]:
            verify(message, signature)

    seconds = medians(
        {
            "bare verification of 506 signatures": bare,
            "acceptance of the file": lambda number: accept(first[number], now=NOW),
            "acceptance with one line changed": lambda number: accept(
                then[number], now=LATER, verified=verified[number]
            ),
        },
        repetitions=REPETITIONS,
        warm_up=WARM_UP,
    )
    verification, new, one = seconds.values()
    report(
        f"a file of {len(messages[0]) - 1} lessons, {len(first[0]):,} bytes; medians of {REPETITIONS}",
        seconds,
        [
            Bound("acceptance / bare verification", new / verification, most=1.35),
            Bound("acceptance / acceptance with one line changed", new / one, least=7.0),
        ],
    )


if __name__ == "__main__":
    main()
