"""The units for systemd: that they are units, how far they shut the service in, and that its settings are ones."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from remem_server.settings import Settings
from remem_server.web.serving import _GRACE_SECONDS
from remem_testkit.fronts import replaced

FOLDER = Path(__file__).parents[2] / "deploy" / "systemd"
UNITS = sorted(path.name for path in FOLDER.glob("remem*.[st]*"))
# Of ten, where a service without any of it has 9.6.
EXPOSURE_MOST = 2.0


def analyze(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    program = shutil.which("systemd-analyze")
    if program is None:
        pytest.skip("no systemd-analyze here (apt-get install systemd)")
    return subprocess.run([program, *arguments], cwd=folder, capture_output=True, text=True, check=False, timeout=60)


@pytest.fixture
def units(tmp_path: Path) -> Path:
    """Copy the units, with a program and a user that are on this machine."""
    for name in UNITS:
        text = (FOLDER / name).read_text("utf-8")
        if name == "remem.service":
            # Through a link, since the path of this environment may have a space in it.
            program = tmp_path / "remem-server"
            program.symlink_to(Path(sys.executable).parent / "remem-server")
            text = replaced(text, {"/opt/remem/bin/remem-server": str(program)})
        if name.endswith(".service"):
            text = replaced(text, {"User=remem\nGroup=remem\n": "User=root\nGroup=root\n"})
        (tmp_path / name).write_text(text, "utf-8")
    return tmp_path


def test_there_are_a_service_and_a_backup_with_its_timer() -> None:
    assert UNITS == ["remem-backup.service", "remem-backup.timer", "remem.service"]


def test_systemd_understands_every_line(units: Path) -> None:
    done = analyze("verify", *(f"./{name}" for name in UNITS), folder=units)
    # What it says of other units of this machine is not about these.
    assert [line for line in done.stderr.splitlines() if "remem" in line] == []
    assert done.returncode == 0


@pytest.mark.parametrize("name", [name for name in UNITS if name.endswith(".service")])
def test_a_service_is_shut_in(units: Path, name: str) -> None:
    threshold = f"--threshold={EXPOSURE_MOST * 10:.0f}"
    done = analyze("security", "--offline=true", "--no-pager", threshold, f"./{name}", folder=units)
    if "unrecognized option" in done.stderr:
        pytest.skip("this systemd-analyze cannot judge a unit by its file (it takes 250 or later)")
    assert done.returncode == 0, done.stdout


def test_a_stop_waits_until_the_server_has_finished() -> None:
    (seconds,) = re.findall(r"^TimeoutStopSec=(\d+)s$", (FOLDER / "remem.service").read_text("utf-8"), re.MULTILINE)
    assert int(seconds) > _GRACE_SECONDS


def test_the_example_sets_only_what_somebody_reads() -> None:
    named = re.findall(r"^#?([A-Z_]+)=", (FOLDER / "remem.env.example").read_text("utf-8"), re.MULTILINE)
    backup = (FOLDER.parent / "backup.sh").read_text("utf-8")
    others = {name for name in named if f"${{{name}:" in backup} | {"PGSERVICEFILE"}
    assert {name.removeprefix("REMEM_").lower() for name in set(named) - others} <= set(Settings.model_fields)
