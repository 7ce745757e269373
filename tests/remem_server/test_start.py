"""The start of `remem-server` where the server's packages are not installed."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from remem_server.__main__ import PACKAGES

ROOT = Path(__file__).resolve().parents[2]
# A module that is None there is one that cannot be found.
WITHOUT = "import sys; sys.modules.update(dict.fromkeys(sys.argv.pop().split())); "


def start_without(*packages: str) -> subprocess.CompletedProcess[str]:
    program = WITHOUT + "import runpy; runpy.run_module('remem_server', run_name='__main__', alter_sys=True)"
    return subprocess.run(
        [sys.executable, "-c", program, "--version", " ".join(packages)], capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("missing", [PACKAGES, ("sqlalchemy",)], ids=["all", "one"])
def test_without_its_packages_it_says_what_to_install(missing: tuple[str, ...]) -> None:
    ran = start_without(*missing)
    assert (ran.returncode, ran.stdout) == (1, "")
    assert ran.stderr.splitlines() == [
        f"remem-server: error: expected the server's packages, got none of {', '.join(missing)}",
        "remem-server: hint: pip install 'remem[server]'",
    ]


def test_with_its_packages_it_is_the_command() -> None:
    ran = start_without()
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout.startswith("remem-server ")


def test_the_package_itself_needs_none_of_them() -> None:
    program = WITHOUT + "import remem_server"
    subprocess.run([sys.executable, "-c", program, " ".join(PACKAGES)], check=True)


def test_what_is_looked_for_is_what_the_extra_brings() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert project["scripts"]["remem-server"] == "remem_server.__main__:main"
    extra = [re.match(r"[\w-]+", line) for line in project["optional-dependencies"]["server"]]
    named = {found[0].replace("-", "_") for found in extra if found is not None}
    # Gossip's own extra, of which the library of signatures is what nothing else brings.
    named = named - {"remem"} | {"http_message_signatures"}
    # The web server runs without it, only slower.
    assert set(PACKAGES) == named - {"uvloop"}
