"""The cases of tests/vectors/negentropy.json: conversations as a reference implementation has them, byte for byte.

    python -m tests.remem_gossip.reconcile.negentropy_cases COMMAND [ARGUMENT…]

makes the file anew, run at the root of the repository. The command is a harness of a reference implementation: a
program that reads and answers lines as `remem_gossip.reconcile.harness` does. Both sides are played by it, and this
package has no part in what comes out.

Item n of a case has the SHA-256 of the ASCII text `negentropy n` as its id, with zeros in place of its first `zeros`
bytes, and the time `start` + floor(n / `same_second`). Each side holds the items that its list says: from the first of
two numbers up to the second, which it excludes, without those in `but`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterable
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from remem.protocol.items import Item

FILE: Final = Path(__file__).resolve().parents[2] / "vectors" / "negentropy.json"

Case = dict[str, Any]
Side = Callable[[str], list[str]]


def _case(
    name: str,
    first: tuple[int, int],
    second: tuple[int, int],
    *,
    but: tuple[Iterable[int], Iterable[int]] = ((), ()),
    limits: tuple[int, int] = (0, 0),
    **items: int,
) -> Case:
    sides = zip((first, second), but, limits, strict=True)
    return {
        "name": name,
        "items": {"start": 1_700_000_000, "same_second": 1, "zeros": 0} | items,
        "sides": [
            {"from": start, "to": stop, "but": list(without), "frame_limit": limit}
            for (start, stop), without, limit in sides
        ],
    }


CASES: Final = (
    _case("two empty sets", (0, 0), (0, 0)),
    _case("the first side is empty", (0, 0), (0, 40)),
    _case("the second side is empty", (0, 40), (0, 0)),
    _case("equal sets take one trip", (0, 1_000), (0, 1_000)),
    _case("31 items are listed", (0, 31), (0, 32)),
    _case("32 items are split", (0, 32), (0, 31)),
    _case("the first parts of an uneven range hold one more", (0, 43), (0, 42)),
    _case("one item differs", (0, 1_000), (0, 1_000), but=([], [500])),
    _case("an item at each end differs", (0, 999), (1, 1_000)),
    _case("ranges side by side that match become one skip", (0, 900), (0, 900), but=([300], [600])),
    _case("a skip at the end is not sent", (0, 900), (0, 900), but=([], [3])),
    _case("the newest items differ", (0, 2_000), (0, 2_050), but=(range(1_970, 1_990), [])),
    _case("items of one second are told apart by their ids", (0, 300), (0, 300), but=([5], [250]), same_second=300),
    _case("a prefix is as long as it has to be", (0, 200), (0, 200), but=([9], [90]), same_second=50, zeros=20),
    _case("ids differ in their last bytes alone", (0, 60), (0, 60), but=([9], [30]), same_second=60, zeros=30),
    _case("times begin at 0", (0, 100), (0, 100), but=([0], []), start=0),
    _case("times end before infinity", (0, 100), (0, 100), but=([], [99]), start=2**64 - 101),
    _case("a list is cut at the frame limit", (0, 20), (0, 200), limits=(0, 4_096)),
    _case(
        "a split that does not fit is left out",
        (0, 1_200), (0, 1_200), but=(range(0, 1_200, 40), []), limits=(4_096, 4_096),
    ),
    _case("the first side alone has a frame limit", (0, 500), (0, 500), but=(range(0, 500, 9), []), limits=(4_096, 0)),
    _case("the second side alone has a frame limit", (0, 500), (0, 500), but=([], range(0, 500, 9)), limits=(0, 4_096)),
    _case("nothing in common", (0, 150), (150, 300), limits=(4_096, 4_096), same_second=300),
)  # fmt: skip


def items_of(case: Case, side: int) -> list[Item]:
    """Make the items of a side."""
    rule, held = case["items"], case["sides"][side]
    without = frozenset(held["but"])
    return [
        Item(
            rule["start"] + number // rule["same_second"],
            bytes(rule["zeros"]) + sha256(b"negentropy %d" % number).digest()[rule["zeros"] :],
        )
        for number in range(held["from"], held["to"])
        if number not in without
    ]


def read_cases() -> list[Case]:
    """Read the file."""
    cases: list[Case] = json.loads(FILE.read_text("ascii"))["cases"]
    if not cases:
        raise ValueError(f"expected cases in {FILE.name}, got none")
    return cases


def converse(first: Side, second: Side) -> dict[str, list[str]]:
    """Let two sides talk until the first has no more to say, and return what was said and learned."""
    messages: list[str] = []
    learned: dict[str, set[str]] = {"have": set(), "need": set()}
    line = "initiate"
    while True:
        *found, last = first(line)
        for one in found:
            word, name = one.split(",")
            learned[word].add(name)
        if last == "done":
            return {"messages": messages} | {word: sorted(names) for word, names in learned.items()}
        messages.append(last.removeprefix("msg,"))
        (answer,) = second(last)
        messages.append(answer.removeprefix("msg,"))
        line = answer


def _run(case: Case, command: list[str]) -> Case:
    sides = [_start(case, side, command) for side in (0, 1)]
    try:
        return case | converse(*(_speaker(side) for side in sides))
    finally:
        for side in sides:
            side.kill()
            side.communicate()


def _start(case: Case, side: int, command: list[str]) -> subprocess.Popen[str]:
    limit = {"FRAMESIZELIMIT": str(case["sides"][side]["frame_limit"])}
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=os.environ | limit
    )
    assert process.stdin is not None
    process.stdin.writelines(f"item,{item.time},{item.id.hex()}\n" for item in items_of(case, side))
    process.stdin.write("seal\n")
    return process


def _speaker(process: subprocess.Popen[str]) -> Side:
    def speak(line: str) -> list[str]:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(f"{line}\n")
        process.stdin.flush()
        said = [process.stdout.readline().strip()]
        while said[-1].startswith(("have,", "need,")):
            said.append(process.stdout.readline().strip())
        return said

    return speak


def _text(cases: list[Case]) -> str:
    comment = json.dumps("made by tests/remem_gossip/reconcile/negentropy_cases.py, which says how to make the items")
    lines = ",\n".join(map(json.dumps, cases))
    return f'{{"comment": {comment}, "cases": [\n{lines}\n]}}\n'


if __name__ == "__main__":
    FILE.write_text(_text([_run(case, sys.argv[1:]) for case in CASES]), "ascii")
