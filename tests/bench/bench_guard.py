"""Print what the imperative guard finds and what it costs.

    python tests/bench/bench_guard.py [PATH]

PATH is the folder of shared test material: by default $REMEM_SHARED, else the folder `shared` beside the repository.
The treebank's split `train` is what the rules were written against, `dev` what they were confirmed on. Of its labels
only `imperative` and `indicative` count; `imperative_embedded` (an order somewhere inside a statement) and
`directive_modal` ("you should") are shown apart. The label `benign_trigger_words` of the injection list holds harmless
texts, but nearly half of them are orders all the same, which the guard is right to find.
"""

import csv
import json
import os
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from remem.protocol.guard import instruction

_TYPICAL: Final = "The Bash tool failed when running the linter: exit status 1, two unused imports in one module."
_TEXT_AT_MOST: Final = 1_000
_ROUNDS: Final = 5
_PIECES: Final = (
    "so, ",
    "a: ",
    '"',
    "“",
    "'a ",
    "(",
    "you now ",
    "please ",
    "if x, so ",
    "run ",
    "tests and ",
    "İ",
    "- ",
)


def main(arguments: list[str]) -> int:
    """Print the figures for the shared material at a path; say so without it."""
    default = os.environ.get("REMEM_SHARED") or Path(__file__).resolve().parents[3] / "shared"
    vectors = Path(arguments[0] if arguments else default) / "vectors"
    if not (vectors / "imperatives.tsv").is_file():
        print(f"skipped: no imperatives.tsv under {vectors.name!r} (REMEM_SHARED names the folder of test material)")
        return 0
    rows = list(_treebank(vectors / "imperatives.tsv"))
    for split in sorted({split for split, _, _ in rows}):
        _print_split(split, [(label, text) for part, label, text in rows if part == split])
    _print_labels("injection list", _injections(vectors / "injection" / "injection.jsonl"))
    _print_costs([text for _, label, text in rows if label == "indicative"])
    return 0


def _treebank(path: Path) -> Iterator[tuple[str, str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE):
            yield row["split"], row["label"], row["text"]


def _injections(path: Path) -> Iterator[tuple[str, str]]:
    with path.open(encoding="utf-8") as file:
        for case in map(json.loads, file):
            yield case["label"], case["text"]


def _print_split(split: str, rows: list[tuple[str, str]]) -> None:
    found, total = _print_labels(f"treebank, {split}", rows)
    orders, statements = found["imperative"], found["indicative"]
    print(
        f"  recall {orders / total['imperative']:.3f}   precision {orders / (orders + statements):.3f}"
        f"   false positives {statements / total['indicative']:.2%}"
    )


def _print_labels(title: str, rows: Iterable[tuple[str, str]]) -> tuple[Counter[str], Counter[str]]:
    found: Counter[str] = Counter()
    total: Counter[str] = Counter()
    for label, text in rows:
        total[label] += 1
        found[label] += instruction(text) is not None
    print(f"\n{title}")
    for label, count in total.most_common():
        print(f"  {label:<22}{found[label]:>6} of {count:>5} found{found[label] / count:>8.1%}")
    return found, total


def _print_costs(statements: list[str]) -> None:
    print("\nmicroseconds per text")
    print(f"  {f'a typical observation of {len(_TYPICAL)}':<44}{_cost([_TYPICAL] * 2_000):>8.1f}")
    mean = sum(map(len, statements)) // len(statements)
    print(f"  {f'statements of the treebank, {mean} on average':<44}{_cost(statements):>8.1f}")
    hostile = [(piece * _TEXT_AT_MOST)[:_TEXT_AT_MOST] for piece in _PIECES]
    worst = max(hostile, key=lambda text: _cost([text] * 20))
    print(f"  {f'the worst hostile text of {_TEXT_AT_MOST:,}, {worst[:12]!r}…':<44}{_cost([worst] * 20):>8.1f}")


def _cost(texts: list[str]) -> float:
    """Return the microseconds that a text takes, of the best of some rounds."""
    best = float("inf")
    for _ in range(_ROUNDS):
        start = time.perf_counter()
        for text in texts:
            instruction(text)
        best = min(best, time.perf_counter() - start)
    return best / len(texts) * 1e6


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
