"""A fuzz run: mutated lines and files, re-signed and resealed mutants among them, through all of the protocol.

    python tests/bench/bench_fuzz.py [--cases N] [--seed TEXT] [--jobs N]

Each case goes through the doors that its bytes would come in by: `parse_record` or `accept`, with and without
lines that were verified before, then `judge`, `statements` and `lesson_state`. These are findings:

- anything but a `ProtocolError` is raised;
- bytes are accepted that no key's owner ever signed;
- accepted bytes do not come back as they came, or a line verified before changes what is accepted.

A finding is printed with its bytes in hex, and the run ends with 1. A case depends on the seed and its number only.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import random
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.mutants import (
    FILES,
    HASHES,
    KEYS,
    LINES,
    OBJECTS,
    any_value,
    carried_file,
    mutated_bytes,
    mutated_fields,
    resealed_file,
    signed,
    signed_bytes,
    spelled,
)
from remem.protocol import (
    Admission,
    Evidence,
    OriginFile,
    Policy,
    ProtocolError,
    Verified,
    accept,
    judge,
    lesson_state,
    newest,
    parse_record,
    statements,
)
from remem_testkit.files import NOW

CHUNK: Final = 2_000
HELD: Final = tuple(accept(data, now=NOW) for data in FILES[::4])
KEY_NAMES: Final = tuple(one.public.hex for one in KEYS)
POLICY: Final = Policy(
    confirmations=1,
    followed=frozenset(KEY_NAMES),
    admitted=frozenset(Admission(each, "a commons", each[:16]) for each in KEY_NAMES),
    revokers=frozenset([KEYS[3].public.hex]),
)


class FindingError(Exception):
    """Something holds of a case that must never hold."""


@dataclass
class Outcome:
    """What a run, or a part of it, has met: how often each code, and the findings."""

    codes: Counter[str] = field(default_factory=Counter)
    findings: list[str] = field(default_factory=list)


def ask(holds: bool, what: str) -> None:
    if not holds:
        raise FindingError(what)


def heard(files: Sequence[OriginFile], codes: Counter[str]) -> None:
    """Let a reader make what it can of accepted files."""
    for one in files[:1]:
        for record in one.records:
            fault = judge(record)
            codes["judged well" if fault is None else f"judged {fault.code}"] += 1
        statements(one)
    for subject in HASHES:
        reading = lesson_state(Evidence.of_files(subject, files), POLICY, NOW)
        codes[f"read as {reading.state.value}, {reading.cause.value}"] += bool(reading.why)


def ask_spelling(data: bytes) -> None:
    """Ask of an accepted line that it is spelled in the one way."""
    longer: list[str] = []  # fractions that have a shorter spelling, or one with an exponent

    def fraction(text: str) -> float:
        if repr(float(text)) != text:
            longer.append(text)
        return float(text)

    def ordered(pairs: list[tuple[str, object]]) -> dict[str, object]:
        names = [name for name, _ in pairs]
        ask(names == sorted(set(names)), "a field is out of order, or there twice")
        return dict(pairs)

    value = json.loads(data, object_pairs_hook=ordered, parse_float=fraction)
    ask(bool(longer) or spelled(value) == data, "a line in another spelling")


def line_case(data: bytes, codes: Counter[str], forgery: bool) -> None:
    try:
        record = parse_record(data)
    except ProtocolError as error:
        ask(str(error).isascii() and len(str(error)) < 400, f"the message {error}")
        codes[error.code] += 1
        return
    codes[f"accepted {record.type}"] += 1
    ask(record.line == data, "the line does not come back")
    ask_spelling(data)
    ask(not forgery or data in LINES, "a line is accepted that nobody signed")
    fault = judge(record)
    codes["judged well" if fault is None else f"judged {fault.code}"] += 1


def visible(data: bytes, verified: Verified | None) -> tuple[OriginFile | None, tuple[object, ...]]:
    try:
        one = accept(data, now=NOW, verified=verified)
    except ProtocolError as error:
        ask(str(error).isascii() and len(str(error)) < 400, f"the message {error}")
        return None, (error.code, error.line, error.expected, error.got)
    return one, (one.data, one.digest, one.key, one.seal, one.lines, one.topics, one.records)


def file_case(data: bytes, codes: Counter[str], forgery: bool) -> None:
    one, seen = visible(data, None)
    for held in HELD:
        ask(visible(data, held.verified)[1] == seen, "what was verified before changes what is accepted")
    if one is None:
        codes[str(seen[0])] += 1
        return
    codes["accepted file" if one.seal else "accepted file of draft 0"] += 1
    ask(one.data == data, "the file does not come back")
    ask(not forgery or data in FILES or (one.seal is None and set(one.lines) <= set(LINES)), "a file nobody sealed")
    for held in HELD:
        if held.key == one.key:
            codes[f"is {newest(held.version, one.version).value}"] += 1
    heard([one, *(other for other in HELD if other.key != one.key)], codes)


def case(choose: random.Random) -> tuple[bytes, Callable[[bytes, Counter[str], bool], None], bool]:
    """Make one case: its bytes, the door that they come in by, and whether no owner had a hand in it."""
    match choose.randrange(20):
        case 0 | 1 | 2 | 3:
            return mutated_bytes(choose, choose.choice(LINES)), line_case, True
        case 4:
            line = signed(mutated_fields(choose, choose.choice(OBJECTS)))
            data = mutated_bytes(choose, line)
            return data, line_case, data != line
        case 5:
            return spelled(any_value(choose)), line_case, True
        case 6:
            return spelled(mutated_fields(choose, choose.choice(OBJECTS))), line_case, True
        case 7 | 8:
            return signed_bytes(choose, choose.choice(OBJECTS)), line_case, False
        case 9:
            return mutated_bytes(choose, choose.choice(FILES)), file_case, True
        case 10:
            return carried_file(choose), file_case, True
        case 11 | 12 | 13:
            return resealed_file(choose), file_case, False
        case _:
            return signed(mutated_fields(choose, choose.choice(OBJECTS))), line_case, False


def run_chunk(task: tuple[str, int, int]) -> Outcome:
    """Run the cases from one number to another."""
    seed, start, end = task
    outcome = Outcome()
    for number in range(start, end):
        choose = random.Random(f"{seed} {number}")
        data, door, forgery = case(choose)
        try:
            door(data, outcome.codes, forgery)
        except Exception:  # noqa: BLE001 -- whatever it is, it is what the run looks for
            outcome.findings.append(f"case {number} of seed {seed!r}: {traceback.format_exc()}{data.hex()}")
    return outcome


def run(cases: int, seed: str, jobs: int) -> Outcome:
    tasks = [(seed, start, min(start + CHUNK, cases)) for start in range(0, cases, CHUNK)]
    whole, done, started = Outcome(), 0, time.monotonic()
    with multiprocessing.Pool(jobs) as pool:
        for part in pool.imap_unordered(run_chunk, tasks):
            whole.codes += part.codes
            whole.findings += part.findings
            done = min(done + CHUNK, cases)
            if sys.stderr.isatty():
                rate = done / (time.monotonic() - started)
                sys.stderr.write(
                    f"\r{done:,} of {cases:,} cases, {rate:,.0f} a second, {len(whole.findings)} findings "
                )
    if sys.stderr.isatty():
        sys.stderr.write("\n")
    return whole


def main() -> None:
    parser = argparse.ArgumentParser(description="Fuzz the protocol.")
    parser.add_argument("--cases", type=int, default=1_000_000, metavar="N", help="how many (1,000,000)")
    parser.add_argument("--seed", default="remem", metavar="TEXT", help="what the cases depend on (remem)")
    parser.add_argument("--jobs", type=int, default=multiprocessing.cpu_count(), metavar="N", help="how many at a time")
    asked = parser.parse_args()
    started = time.monotonic()
    outcome = run(asked.cases, asked.seed, asked.jobs)
    seconds = time.monotonic() - started
    width = max(map(len, outcome.codes))
    print(f"{asked.cases:,} cases of seed {asked.seed!r} in {seconds:,.0f} s, {asked.cases / seconds:,.0f} a second")
    for code, times in sorted(outcome.codes.items()):
        print(f"  {code:<{width}}  {times:>10,}")
    print(f"  {'findings':<{width}}  {len(outcome.findings):>10,}")
    for finding in outcome.findings[:20]:
        print(finding)
    sys.exit(1 if outcome.findings else 0)


if __name__ == "__main__":
    main()
