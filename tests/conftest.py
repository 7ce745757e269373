"""What every test may ask for.

Nothing here reads the user's home: a test that needs a memory's home asks for `remem_home`.
Hypothesis runs a quick profile by default and a larger, derandomised one where the variable CI is set.
"""

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
