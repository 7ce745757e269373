"""What an installation brings: light for a memory, whole for a server, pinned for whoever works on it."""

import ast
import re
import subprocess
import sys
import zipfile
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[2]
CONSTRAINTS = ROOT / "deploy" / "constraints.txt"

# They install packages and are not part of any.
INSTALLERS = {"pip", "setuptools", "wheel"}
HEAVY = {"alembic", "fastapi", "psycopg", "sqlalchemy", "starlette", "uvicorn"}
# Standard modules through which a file, a socket, a clock, another process or chance would come in.
# fmt: off
IMPURE = {
    "asyncio", "ctypes", "glob", "http", "io", "logging", "multiprocessing", "os", "pathlib", "random",
    "secrets", "selectors", "shutil", "signal", "socket", "sqlite3", "ssl", "subprocess", "tempfile",
    "threading", "time", "urllib", "uuid",
}
# fmt: on


def closure(name: str, extras: frozenset[str]) -> set[str]:
    """Return the names of all installed packages that a package with these extras pulls in here."""
    found: set[str] = set()
    waiting = [(name, extras)]
    seen = set(waiting)
    while waiting:
        name, extras = waiting.pop()
        try:
            lines = distribution(name).requires or []
        except PackageNotFoundError:
            continue  # a marker of another system or an extra nobody asked for
        found.add(canonicalize_name(name))
        for requirement in map(Requirement, lines):
            wanted = not requirement.marker or any(
                requirement.marker.evaluate({"extra": extra}) for extra in extras | {""}
            )
            step = (requirement.name, frozenset(requirement.extras))
            if wanted and step not in seen:
                seen.add(step)
                waiting.append(step)
    return found - {"remem"}


def pins() -> list[str]:
    return CONSTRAINTS.read_text(encoding="utf-8").splitlines()


def test_constraints_are_names_and_versions_and_nothing_else() -> None:
    assert pins()
    odd = [line for line in pins() if not re.fullmatch(r"[A-Za-z0-9._-]+==[A-Za-z0-9.!+]+", line)]
    assert odd == []


@pytest.mark.parametrize("extra", ["gossip", "lan", "server", "dev"])
def test_every_installed_dependency_of_an_extra_is_pinned(extra: str) -> None:
    pinned = {canonicalize_name(line.partition("==")[0]) for line in pins()}
    missing = closure("remem", frozenset({extra})) - pinned - INSTALLERS
    assert missing == set()


def test_a_memory_alone_brings_no_web_framework_and_no_database_library() -> None:
    light = closure("remem", frozenset())
    assert {"httpx", "pynacl", "typer"} <= light
    assert light & HEAVY == set()
    assert "cryptography" not in light


def test_what_gossip_needs_comes_with_it_and_with_the_server() -> None:
    needed = {"http-message-signatures", "httpcore", "certifi", "idna"}
    assert closure("remem", frozenset({"gossip"})) >= needed
    assert closure("remem", frozenset({"server"})) >= needed
    assert closure("remem", frozenset({"gossip"})) & HEAVY == set()


def test_the_server_brings_what_a_memory_does_not() -> None:
    assert closure("remem", frozenset({"server"})) >= HEAVY


def test_a_wheel_holds_the_packages_their_type_markers_and_the_migrations(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    packages = {name.split("/")[0] for name in names if ".dist-info/" not in name}
    assert packages == {"remem", "remem_gossip", "remem_server"}
    assert {
        "remem/__init__.py",
        "remem/py.typed",
        "remem_gossip/__init__.py",
        "remem_gossip/py.typed",
        "remem_server/__init__.py",
        "remem_server/py.typed",
    } <= set(names)
    assert any(re.fullmatch(r"remem_server/_migrations/versions/.+\.py", name) for name in names)
    assert any(name.endswith(".dist-info/licenses/LICENSE") for name in names)
    assert [name for name in names if name.endswith((".pyc", ".ini")) or "test" in name] == []


def test_the_migrations_folder_never_shadows_the_library() -> None:
    assert not (ROOT / "alembic" / "__init__.py").exists()


def imports(module: Path) -> set[str]:
    """Return the top-level names of what a module imports; a relative import counts as the protocol's own."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names.add(node.module or "")
    return {name for name in names if not f"{name}.".startswith("remem.protocol.")}


@pytest.mark.parametrize(
    "module", sorted((ROOT / "client" / "remem" / "protocol").rglob("*.py")), ids=lambda path: path.stem
)
def test_the_protocol_stands_on_the_pure_standard_library_and_pynacl(module: Path) -> None:
    used = {name.partition(".")[0] for name in imports(module)}
    assert used <= sys.stdlib_module_names | {"nacl"}
    assert used & IMPURE == set()
