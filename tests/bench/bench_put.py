"""Publishing a full file over HTTP: the whole PUT of a new one, and of the next one with one line changed.

The measure is what PyNaCl takes to verify its 506 signatures and no more, on one core. The commons is a process of
its own, and everything is included: HTTP on both sides, acceptance, judgement, rows, and the commit. Counted are the
seconds of the processor, of both processes; how long a disk takes to keep what was committed is the disk's.
Verification needs no memory to speak of and the rest does, so whatever else fills the machine's caches moves both
ratios by some 4 %: that of a changed line most, which is 8 and more where many of them follow each other.

Of a new file, acceptance takes 1.26 and judgement 0.21; what a search and the counts of 505 lessons need is written in
the same transaction, and takes 0.5. Its item for gossip takes 0.01.
"""

from __future__ import annotations

import sys
import tempfile
import time
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

from nacl.signing import VerifyKey

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.bench_acceptance import changed, signed_messages
from bench.table import Bound, medians, report
from remem_testkit.files import full_file, key
from remem_testkit.server import spawn

REPETITIONS = 30
WARM_UP = 3
# What the commons does behind its answer counts too, such as the line of its log.
BEHIND_SECONDS = 0.003


def main() -> None:
    runs = range(WARM_UP + REPETITIONS)
    first = [full_file(key(number)) for number in runs]
    then = [changed(number, data) for number, data in enumerate(first)]
    messages = [signed_messages(data) for data in first]

    def bare(number: int) -> None:
        verify = VerifyKey(key(number).public.raw).verify
        for message, signature in messages[number]:
            verify(message, signature)

    with (
        tempfile.TemporaryDirectory() as folder,
        spawn(Path(folder) / "data", ["--port", "0", "--open"]) as commons,
        closing(HTTPConnection(urlsplit(commons.url).netloc, timeout=60)) as client,
    ):
        # The clock of all threads of another process, as Linux numbers it.
        its_clock = ~commons.process.pid << 3 | 2

        def put(number: int, data: bytes) -> None:
            client.request("PUT", f"/commons/{key(number).public.hex}.jsonl", data)
            answer = client.getresponse()
            said = answer.read()
            assert answer.status in (200, 201), said
            time.sleep(BEHIND_SECONDS)

        seconds = medians(
            {
                "bare verification of 506 signatures": bare,
                "PUT as a new file": lambda number: put(number, first[number]),
                "PUT with one line changed": lambda number: put(number, then[number]),
            },
            repetitions=REPETITIONS,
            warm_up=WARM_UP,
            clock=lambda: time.process_time() + time.clock_gettime(its_clock),
        )
    verification, new, one = seconds.values()
    report(
        f"a file of {len(messages[0]) - 1} lessons, {len(first[0]):,} bytes; medians of {REPETITIONS}",
        seconds,
        [
            Bound("PUT as a new file / bare verification", new / verification, most=2.3),
            Bound("PUT as a new file / PUT with one line changed", new / one, least=7.0),
        ],
    )


if __name__ == "__main__":
    main()
