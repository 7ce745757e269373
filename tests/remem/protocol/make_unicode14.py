"""Derive the tables of `remem.protocol.unicode14` from an interpreter that speaks Unicode 14.

Run it with Python 3.11 and put what it prints in the place of the two tables:

    python3.11 tests/remem/protocol/make_unicode14.py

The test of the tables calls the same functions where the running interpreter speaks Unicode 14.
"""

import sys
import unicodedata
from collections.abc import Iterable, Iterator

VERSION = "14.0.0"
LINE_BREAKS = {0x0A, 0x0B, 0x0C, 0x0D, 0x85, 0x2028, 0x2029}
CLASSES = {"Cc": "c", "Cf": "f", "Co": "p", "Cn": "u", "Cs": "u"}
WIDTH = 96


def classes() -> Iterator[str]:
    """Yield a token for each run of code points of one class: its first code point, then the class."""
    before = ""
    for point in range(sys.maxunicode + 1):
        now = "l" if point in LINE_BREAKS else CLASSES.get(unicodedata.category(chr(point)), "a")
        if now != before:
            yield f"{point:X}{now}"
        before = now


def full_lower() -> dict[int, str]:
    """Return the full lower-case mapping of each code point that has one, without context."""
    # The interpreter looks at the neighbours of the capital sigma alone; one without neighbours is not final.
    return {p: chr(p).lower() for p in range(sys.maxunicode + 1) if chr(p).lower() != chr(p)}


def lower() -> Iterator[str]:
    """Yield a token `first,last,step,delta` for each run of code points whose mapping adds one delta."""
    full = full_lower()
    long = {point: to for point, to in full.items() if len(to) > 1}
    if long != {0x130: "i\u0307"}:
        raise ValueError(f"expected U+0130 alone to map to several code points, got {long}")
    deltas = {point: ord(to) - point for point, to in full.items() if point not in long}
    while deltas:
        first = min(deltas)
        points = max(_run(deltas, first, 1), _run(deltas, first, 2), key=len)
        yield f"{first:X},{points[-1]:X},{points.step},{deltas[first]:X}"
        for point in points:
            del deltas[point]


def _run(deltas: dict[int, int], first: int, step: int) -> range:
    points = range(first, first + 1)
    while deltas.get(points[-1] + step) == deltas[first]:
        points = range(first, points[-1] + step + 1, step)
    return points


def literal(name: str, tokens: Iterable[str]) -> str:
    """Return the tokens as the source of one constant, in lines that a formatter leaves alone."""
    lines = [""]
    for token in tokens:
        if len(lines[-1]) + len(token) >= WIDTH:
            lines.append("")
        lines[-1] += f"{token} "
    return "\n".join([f"{name}: Final = (", *(f'    "{line}"' for line in lines), ")"])


if __name__ == "__main__":
    if unicodedata.unidata_version != VERSION:
        sys.exit(f"expected an interpreter with Unicode {VERSION}, got {unicodedata.unidata_version}")
    sys.stdout.write(f"{literal('CLASSES', classes())}\n{literal('LOWER_RUNS', lower())}\n")
