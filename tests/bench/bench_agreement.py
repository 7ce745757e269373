"""All readers agree about all lessons: the two agreement tests of the suite, with many more seeds than it has time for.

    python tests/bench/bench_agreement.py [--seeds N]

They are `tests/remem/sharing/test_agreement.py` and `tests/remem_server/test_agreement.py`, which say what is compared.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
TESTS: Final = ("tests/remem/sharing/test_agreement.py", "tests/remem_server/test_agreement.py")


def main() -> int:
    """Run them, and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=20, help="how often each of them is tried")
    seeds = parser.parse_args().seeds
    words = [sys.executable, "-m", "pytest", "-n", "auto", "-q", *TESTS]
    return subprocess.run(words, cwd=ROOT, env={**os.environ, "REMEM_TEST_SEEDS": str(seeds)}, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
