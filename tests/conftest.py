"""What every test may ask for.

Nothing here reads the user's home: a test that needs a memory's home asks for `remem_home`.
Hypothesis runs a quick profile by default and a larger, derandomised one where the variable CI is set.
"""

import gc
import os
from pathlib import Path

import pytest
from hypothesis import settings

ROOT = Path(__file__).resolve().parent.parent

# Nothing is timed: two busy cores make any deadline a coin toss.
settings.register_profile("quick", max_examples=50, deadline=None)
settings.register_profile("ci", max_examples=100, deadline=None, derandomize=True, database=None, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "quick")


def pytest_xdist_auto_num_workers() -> int:
    """Run twice as many tests at once as there are processors: most of them wait for a disk, or for a process."""
    return 2 * (os.cpu_count() or 1)


# What takes longest, so that no processor waits for one of them in the end.
LONGEST = (
    "remem_server/test_replica.py",
    "remem_server/test_agreement.py",
    "remem_server/test_crash.py",
    "remem_server/test_postgres_outages.py",
    "remem_server/test_schemathesis.py",
    "deploy/test_guide.py",
    "docs/test_readme.py",
    "remem/sharing/test_agreement.py",
    "deploy/test_bootstrap.py",
    "remem_server/test_operator_command.py",
    "remem_server/test_documented_answers.py",
    "remem_server/test_migrations.py",
)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with what takes longest, divided among the processes of a run: each is given a share that is in a row."""
    folder = ROOT / "tests"
    of_file: dict[str, list[pytest.Item]] = {}
    rest: list[pytest.Item] = []
    for item in items:
        name = item.path.relative_to(folder).as_posix() if item.path.is_relative_to(folder) else ""
        (of_file.setdefault(name, []) if name in LONGEST else rest).append(item)
    processes = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    long = [of_file[name] for name in LONGEST if name in of_file]
    share, ordered = len(items) // processes, list[pytest.Item]()
    for number in range(processes):
        first = [item for file in long[number::processes] for item in file]
        ordered += first
        more = max(0, share - len(first)) if number < processes - 1 else len(rest)
        ordered += rest[:more]
        del rest[:more]
    items[:] = ordered


def pytest_collection_finish() -> None:
    """Keep the thousands of tests out of what is looked through for garbage again and again."""
    gc.freeze()


@pytest.fixture(scope="session")
def shared_dir() -> Path:
    """Return the folder of shared test material, or skip the test where it is absent."""
    named = os.environ.get("REMEM_SHARED")
    folder = Path(named) if named else ROOT.parent / "shared"
    if not folder.is_dir():
        pytest.skip(f"no shared test material at {folder.name!r} beside the repository (REMEM_SHARED names it)")
    return folder


@pytest.fixture
def remem_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a home for one memory that does not exist yet, named by REMEM_HOME."""
    home = tmp_path / "remem-home"
    monkeypatch.setenv("REMEM_HOME", str(home))
    return home
