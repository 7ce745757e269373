"""deploy/bootstrap.py over a project of three files that needs no network: its build backend is its own.

The interpreter that the bootstrap builds upon is a small shell script here, so that a Python without
ensurepip, or one without any pip, is a line of text and not another machine.
"""

import importlib.util
import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "deploy" / "bootstrap.py"

BACKEND = """
import zipfile

REQUIRES = []

def build_editable(folder, config_settings=None, metadata_directory=None):
    name = "remem-1-py3-none-any.whl"
    lines = ["Metadata-Version: 2.1", "Name: remem", "Version: 1"]
    lines += ["Provides-Extra: server", "Provides-Extra: dev", *(f"Requires-Dist: {one}" for one in REQUIRES)]
    files = {
        "remem_marker.py": "",
        "remem-1.dist-info/METADATA": "\\n".join(lines) + "\\n",
        "remem-1.dist-info/WHEEL": "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n",
    }
    record = "".join(f"{path},,\\n" for path in [*files, "remem-1.dist-info/RECORD"])
    with zipfile.ZipFile(f"{folder}/{name}", "w") as wheel:
        for path, text in {**files, "remem-1.dist-info/RECORD": record}.items():
            wheel.writestr(path, text)
    return name
"""
PYPROJECT = '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'

WITHOUT_ENSUREPIP = """#!/bin/sh
echo "$*" >> {calls}
case "$*" in
    "-m venv --without-pip "*) exec {base} "$@" ;;
    "-m venv "*) mkdir -p "$3/bin"; echo "ensurepip is not available"; exit 1 ;;
    "-m pip "*) exec {pip} "$@" ;;
esac
exit 9
"""
WITHOUT_PIP = WITHOUT_ENSUREPIP.replace('exec {pip} "$@"', 'echo "No module named pip"; exit 1')


@dataclass(frozen=True)
class Project:
    """A copy of the bootstrap beside a project that installs without a network."""

    root: Path
    home: Path
    base: Path

    @property
    def venv(self) -> Path:
        return self.root / ".venv"

    @property
    def stamp(self) -> dict[str, object]:
        content = json.loads((self.venv / "bootstrap.json").read_text(encoding="utf-8"))
        assert isinstance(content, dict)
        return content

    @property
    def calls(self) -> list[str]:
        log = self.base.with_name("calls")
        return log.read_text(encoding="utf-8").splitlines() if log.exists() else []

    def command(self, *extras: str, simulated: bool = True) -> list[str]:
        """Return a command that runs the bootstrap upon the simulated interpreter or the real one."""
        script = str(self.root / "deploy" / "bootstrap.py")
        lines = [
            "import runpy, sys",
            f"sys.argv[0] = {script!r}",
            f"runpy.run_path({script!r}, run_name='__main__')",
        ]
        if simulated:
            lines.insert(1, f"sys._base_executable = {str(self.base)!r}")
        code = "\n".join(lines)
        return [sys.executable, "-c", code, *extras]

    def environment(self, **more: str) -> dict[str, str]:
        ours = ("PIP_", "PYTHON", "XDG_")
        return {
            **{name: value for name, value in os.environ.items() if not name.startswith(ours)},
            "HOME": str(self.home),
            "TMPDIR": str(self.home.with_name("tmp")),
            # Nothing of the user's: pip asks a compiler on PATH for its version, and some then write to HOME.
            "PATH": os.defpath,
            "PIP_NO_INDEX": "1",
            "PIP_CONFIG_FILE": os.devnull,
            "PYTHONDONTWRITEBYTECODE": "1",
            **more,
        }

    def run(self, *extras: str, simulated: bool = True, **more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.command(*extras, simulated=simulated),
            env=self.environment(**more),
            cwd=self.home,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )

    def simulate(self, interpreter: str) -> None:
        words = {
            "calls": self.base.with_name("calls"),
            "base": os.path.realpath(getattr(sys, "_base_executable", sys.executable)),
            "pip": sys.executable,
        }
        self.base.write_text(interpreter.format(**{name: shlex.quote(str(word)) for name, word in words.items()}))
        self.base.chmod(0o755)

    def has_the_package(self) -> bool:
        done = subprocess.run([self.venv / "bin" / "python", "-c", "import remem_marker"], check=False)
        return done.returncode == 0


def made_project(folder: Path) -> Project:
    root = folder / "a project"
    (root / "deploy").mkdir(parents=True)
    shutil.copy(SCRIPT, root / "deploy")
    (root / "deploy" / "constraints.txt").write_text("")
    (root / "pyproject.toml").write_text(PYPROJECT)
    (root / "backend.py").write_text(BACKEND)
    made = Project(root, folder / "home", folder / "bin dir" / "python")
    for one in (made.home, folder / "tmp", made.base.parent):
        one.mkdir()
    made.simulate(WITHOUT_ENSUREPIP)
    return made


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return made_project(tmp_path)


@pytest.fixture(scope="module")
def installed_once(tmp_path_factory: pytest.TempPathFactory) -> tuple[Project, Path]:
    """Install a project, which takes a second, and return it and a copy of all that there is then."""
    folder = tmp_path_factory.mktemp("installed")
    made = made_project(folder / "here")
    assert made.run("dev").returncode == 0
    shutil.copytree(folder / "here", folder / "kept", symlinks=True)
    return made, folder / "kept"


@pytest.fixture
def installed(installed_once: tuple[Project, Path]) -> Iterator[Project]:
    """Return a project that is installed with the extra `dev`; what a test does to it is undone."""
    made, kept = installed_once
    yield made
    shutil.rmtree(kept.with_name("here"))
    shutil.copytree(kept, kept.with_name("here"), symlinks=True)


@pytest.fixture(scope="module")
def bootstrap() -> ModuleType:
    spec = importlib.util.spec_from_file_location("bootstrap_under_test", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def everything_under(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


def test_a_complete_python_makes_an_environment_with_its_own_pip_and_writes_nowhere_else(
    project: Project,
) -> None:
    around = project.root.parent
    before = everything_under(around)
    done = project.run("dev", simulated=False)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert project.has_the_package()
    assert project.stamp["extras"] == ["dev"]
    new = everything_under(around) - before
    assert {path for path in new if not path.startswith("a project/.venv/")} == {
        "a project/.venv",
        "a project/.venv.lock",
    }


def test_a_python_without_ensurepip_installs_with_the_pip_of_the_system(project: Project) -> None:
    done = project.run("dev")
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert project.has_the_package()
    assert not list(project.venv.glob("lib/python*/site-packages/pip"))
    assert any(call.startswith("-m venv --without-pip") for call in project.calls)


def test_a_python_with_neither_ensurepip_nor_pip_is_told_the_one_package_that_helps(project: Project) -> None:
    project.simulate(WITHOUT_PIP)
    done = project.run("dev", PATH="/nowhere")
    assert done.returncode == 2
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    assert done.stderr.splitlines()[-1] == f"remem: hint: apt install python{version}-venv"
    assert not project.venv.exists()


def test_an_unchanged_project_runs_nothing_at_all(installed: Project) -> None:
    before = installed.calls
    done = installed.run("dev")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert installed.calls == before


def test_an_extra_that_another_one_brought_is_not_installed_again(project: Project) -> None:
    with (project.root / "pyproject.toml").open("a", encoding="utf-8") as content:
        content.write('[project.optional-dependencies]\nserver = []\ndev = ["remem[server]"]\n')
    project.run("dev")
    done = project.run("server")
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("file", ["pyproject.toml", "deploy/constraints.txt"])
def test_a_changed_input_installs_again_into_the_same_folder(installed: Project, file: str) -> None:
    before = installed.stamp
    (installed.venv / "kept").touch()
    with (installed.root / file).open("a", encoding="utf-8") as content:
        content.write("# changed\n")
    done = installed.run("server")
    assert done.returncode == 0, done.stderr
    assert (installed.venv / "kept").exists()
    assert installed.stamp == {**before, "inputs": installed.stamp["inputs"], "extras": ["dev", "server"]}
    assert installed.stamp["inputs"] != before["inputs"]


@pytest.mark.parametrize(
    "spoil",
    [
        pytest.param(lambda venv: (venv / "bootstrap.json").unlink(), id="no stamp: half made"),
        pytest.param(lambda venv: (venv / "bootstrap.json").write_text("{"), id="a torn stamp"),
        pytest.param(lambda venv: (venv / "bin" / "python").unlink(), id="its interpreter is gone"),
    ],
)
def test_a_folder_that_is_not_whole_is_made_anew(installed: Project, spoil: Callable[[Path], object]) -> None:
    (installed.venv / "left over").touch()
    spoil(installed.venv)
    done = installed.run("dev")
    assert done.returncode == 0, done.stderr
    assert not (installed.venv / "left over").exists()
    assert installed.has_the_package()


def test_a_repository_that_moved_gets_a_new_environment(installed: Project) -> None:
    moved = Project(installed.root.rename(installed.root.with_name("moved")), installed.home, installed.base)
    (moved.venv / "left over").touch()
    assert moved.run("dev").returncode == 0
    assert not (moved.venv / "left over").exists()
    assert moved.stamp["root"] == str(moved.root)


def test_two_at_once_install_once(project: Project) -> None:
    running = [
        subprocess.Popen(
            project.command("dev"),
            env=project.environment(),
            stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    words = [process.communicate()[1] for process in running]
    assert [process.returncode for process in running] == [0, 0], words
    assert "".join(words).count("installing") == 1
    assert project.has_the_package()


def test_without_a_network_one_line_says_so_and_the_earlier_environment_stays(installed: Project) -> None:
    before = installed.stamp
    (installed.root / "backend.py").write_text(BACKEND.replace("REQUIRES = []", 'REQUIRES = ["remem-nowhere"]'))
    (installed.root / "pyproject.toml").write_text(PYPROJECT + "# changed\n")
    done = installed.run("dev", PIP_NO_INDEX="0", PIP_INDEX_URL="https://127.0.0.1:9/", PIP_RETRIES="1")
    assert done.returncode == 1
    _, error, hint = done.stderr.splitlines()
    assert error.startswith("remem: error: cannot install remem[dev]: the package index is out of reach")
    assert hint == "remem: hint: all of pip's words: .venv/bootstrap.log"
    assert installed.stamp == before


@pytest.mark.parametrize(
    ("version", "got"),
    [
        pytest.param((2, 7, 18), "2.7.18", id="of another age"),
        pytest.param((3, 9, 2), "3.9.2", id="not compared as text"),
        pytest.param((3, 10, 13), "3.10.13", id="the last that is too old"),
    ],
)
def test_a_python_that_is_too_old_is_named(bootstrap: ModuleType, version: tuple[int, ...], got: str) -> None:
    with pytest.raises(bootstrap.Failed, match=f"^expected Python 3.11 or newer, got {got}$") as failure:
        bootstrap.check_version(version)
    assert failure.value.status == 2


def test_a_python_that_is_new_enough_passes(bootstrap: ModuleType) -> None:
    for version in ((3, 11, 0), (3, 14, 1), (4, 0, 0)):
        bootstrap.check_version(version)


RETRY = "WARNING: Retrying after connection broken by 'NewConnectionError(…)'\n"


@pytest.mark.parametrize(
    ("output", "said"),
    [
        pytest.param("ERROR: one\nERROR: two\n", "two", id="the last error"),
        pytest.param("  ERROR: inner\nerror: subprocess-exited\nnote: …\n", "inner", id="an error inside a build"),
        pytest.param("\nfirst\nlast\n\n", "last", id="no error: the last line"),
        pytest.param("", "no word of why", id="silence"),
        pytest.param(RETRY + "ERROR: No matching distribution found for x\n", "out of reach", id="no network"),
        pytest.param(RETRY + "ERROR: conflicting dependencies\n", "conflicting", id="a retry that succeeded"),
        pytest.param("ERROR: No matching distribution found for x\n", "No matching", id="a package that is missing"),
    ],
)
def test_the_cause_is_one_line_of_the_output(bootstrap: ModuleType, output: str, said: str) -> None:
    cause = bootstrap.cause(output)
    assert said in cause
    assert "\n" not in cause


def test_make_says_in_one_line_that_python_is_missing(project: Project) -> None:
    shutil.copy(ROOT / "Makefile", project.root)
    done = subprocess.run(
        ["make", "-C", project.root, "test", "PYTHON=/nowhere/python3"],
        env=project.environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    said = [line for line in done.stderr.splitlines() if line.startswith("remem: error:")]
    assert said == ["remem: error: expected Python 3.11 or newer, found none as /nowhere/python3"]
