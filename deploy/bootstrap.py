"""Make the repository's own virtual environment, from nothing but a Python and its standard library.

Rules:

1. Everything lands in `.venv` at the root of the repository; nothing is written elsewhere, no cache either.
2. The stamp inside `.venv` is written last. It says what was installed from what: while that is unchanged
   there is nothing to do, and a folder without it is half made and is made anew.
3. `python -m venv` comes first. Where that has no ensurepip (a bare Debian), the folder is made without pip
   and the system's own pip installs into it; where there is none, one line says what would help.
4. One bootstrap works at a time; a second one waits, and then finds the work done.
5. A failure is one line on standard error and exit status 2 where the machine lacks something, 1 otherwise.
   The whole output of what failed is kept in `.venv/bootstrap.log`.

No syntax here is newer than Python 3.7, so that an older one than ours gets the message and not a traceback.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import hashlib
import json
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
OLDEST = (3, 11)
OLDEST_PIP = (22, 3)  # the first with --python

# What would send an installation elsewhere than into the folder, or bring foreign modules into it.
MISLEADING = ("PIP_PREFIX", "PIP_ROOT", "PIP_TARGET", "PIP_USER", "PYTHONHOME", "PYTHONPATH")

UNREACHABLE = re.compile(
    r"NewConnectionError|ConnectTimeout|NameResolutionError|ProxyError|Connection refused"
    r"|Temporary failure in name resolution|Network is unreachable|Read timed out"
)


class Failed(Exception):
    """What stopped the bootstrap, in one line, with a hint and the exit status."""

    def __init__(self, message: str, hint: str | None = None, status: int = 1) -> None:
        super().__init__(message)
        self.hint = hint
        self.status = status


def say(text: str) -> None:
    """Tell on standard error what is being done, so that standard output stays the program's."""
    print(f"bootstrap: {text}", file=sys.stderr, flush=True)


def check_version(version: Sequence[int]) -> None:
    """Refuse a Python that is too old for the project.

    Raises:
        Failed: naming the version that is needed and the one that came.
    """
    if tuple(version[:2]) < OLDEST:
        expected, got = ".".join(map(str, OLDEST)), ".".join(map(str, version[:3]))
        raise Failed(f"expected Python {expected} or newer, got {got}", "name another one: make PYTHON=…", status=2)


def base_python() -> str:
    """Return the interpreter itself, also where this one runs inside a virtual environment.

    That environment may be the very folder that is about to be made anew.
    """
    return os.path.realpath(getattr(sys, "_base_executable", None) or sys.executable)


def run(command: Sequence[str], log: Path) -> tuple[int, str]:
    """Run a command without input, keep its output in the log, and return its status and output."""
    environment = {name: value for name, value in os.environ.items() if name not in MISLEADING}
    done = subprocess.run(
        command,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )
    output = done.stdout.decode("utf-8", "replace")
    if log.parent.is_dir():
        log.write_text(output, encoding="utf-8")
    return done.returncode, output


class Environment:
    """The virtual environment of one repository: its folder, its stamp, and how it is made."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.folder = root / ".venv"
        self.python = self.folder / "bin" / "python"
        self.stamp = self.folder / "bootstrap.json"
        self.log = self.folder / "bootstrap.log"
        self.constraints = root / "deploy" / "constraints.txt"

    def ensure(self, extras: Sequence[str]) -> None:
        """Bring the folder to what the project now asks for, with at least these extras.

        Raises:
            Failed: if the folder cannot be made or the project not be installed into it.
        """
        if self._is_ready(extras):
            return
        with self._alone():
            if self._is_ready(extras):
                return
            held = self._read_stamp()
            if not self._same_ground(held):
                self._make()
                held = {}
            self._install(sorted({*extras, *held.get("extras", [])}))

    def _ground(self) -> dict[str, str]:
        """Return what an environment cannot outlive: its interpreter, and its own path."""
        return {
            "python": f"{platform.python_implementation()} {platform.python_version()} in {sys.base_prefix}",
            "root": str(self.root),
        }

    def _inputs(self) -> str:
        digest = hashlib.sha256()
        for path in (self.root / "pyproject.toml", self.constraints):
            content = path.read_bytes()
            digest.update(f"{path.name} {len(content)}\n".encode() + content)
        return digest.hexdigest()

    def _implied(self, extras: Sequence[str]) -> list[str]:
        """Return these extras and the ones they bring, as `dev` brings `server` by naming `remem[server]`."""
        import tomllib  # here, where the version is known to have it

        project = tomllib.loads((self.root / "pyproject.toml").read_text(encoding="utf-8")).get("project", {})
        offered = project.get("optional-dependencies", {})
        found: set[str] = set()
        waiting = list(extras)
        while waiting:
            extra = waiting.pop()
            if extra not in found:
                found.add(extra)
                named = (re.match(r"remem\[(.+)\]$", one) for one in offered.get(extra, []))
                waiting += [name.strip() for match in named if match for name in match.group(1).split(",")]
        return sorted(found)

    def _read_stamp(self) -> dict[str, Any]:
        try:
            held = json.loads(self.stamp.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return held if isinstance(held, dict) else {}

    def _same_ground(self, held: dict[str, Any]) -> bool:
        return self.python.exists() and all(held.get(name) == value for name, value in self._ground().items())

    def _is_ready(self, extras: Sequence[str]) -> bool:
        held = self._read_stamp()
        return (
            self._same_ground(held)
            and held.get("inputs") == self._inputs()
            and set(extras) <= set(held.get("extras", []))
        )

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        """Hold the lock beside the folder; the system lets it go when the process ends, however it ends."""
        with (self.root / ".venv.lock").open("w", encoding="utf-8") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                say("another one is at work, waiting for it")
                fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def _remove(self) -> None:
        if self.folder.is_symlink() or self.folder.is_file():
            self.folder.unlink()
        elif self.folder.exists():
            shutil.rmtree(str(self.folder))

    def _make(self) -> None:
        """Make the folder, with pip if Python has ensurepip and else without."""
        if self.folder.exists() or self.folder.is_symlink():
            say(".venv is unfinished or of another Python or place, making it anew")
        else:
            say(f"making .venv with Python {platform.python_version()}")
        for options in ([], ["--without-pip"]):
            self._remove()
            status, output = run([base_python(), "-m", "venv", *options, str(self.folder)], self.log)
            if status == 0 and self._pip() is not None:
                return
        self._remove()
        hint = f"apt install python{sys.version_info[0]}.{sys.version_info[1]}-venv"
        if status != 0:
            raise Failed(f"cannot make .venv: {cause(output)}", hint, status=2)
        got = f"Python {platform.python_version()} with neither"
        raise Failed(f"expected a Python with ensurepip or with pip 22.3 or newer, got {got}", hint, status=2)

    def _pip(self) -> list[str] | None:
        """Return how to call a pip that installs into the folder: its own, or the system's."""
        own = [str(self.python), "-m", "pip"]
        if run([*own, "--version"], self.log)[0] == 0:
            return own
        for command in ([base_python(), "-m", "pip"], ["pip3"], ["pip"]):
            if shutil.which(command[0]) is None:
                continue
            status, output = run([*command, "--version"], self.log)
            found = re.match(r"pip (\d+)\.(\d+)", output)
            if status == 0 and found and (int(found.group(1)), int(found.group(2))) >= OLDEST_PIP:
                return [*command, "--python", str(self.python)]
        return None

    def _install(self, extras: Sequence[str]) -> None:
        """Install the project with these extras, then write the stamp.

        Raises:
            Failed: with pip's own last word. The stamp of an earlier installation then comes back, since pip
                ended by itself and left whole packages; after a kill the folder counts as half made.
        """
        pip = self._pip()
        if pip is None:
            raise Failed("the pip that made .venv is gone", "remove .venv and try again", status=2)
        target = f"remem[{','.join(extras)}]" if extras else "remem"
        say(f"installing {target} (this can take a minute)")
        earlier = self.stamp.read_bytes() if self.stamp.exists() else None
        if earlier is not None:
            self.stamp.unlink()
        inputs = self._inputs()
        project = f"{self.root}[{','.join(extras)}]" if extras else str(self.root)
        options = ["--quiet", "--no-input", "--no-cache-dir", "--disable-pip-version-check"]
        status, output = run(
            [*pip, "install", *options, "-c", str(self.constraints), "-e", project],
            self.log,
        )
        if status != 0:
            if earlier is not None:
                self.stamp.write_bytes(earlier)
            raise Failed(f"cannot install {target}: {cause(output)}", "all of pip's words: .venv/bootstrap.log")
        content = {**self._ground(), "inputs": inputs, "extras": self._implied(extras)}
        unfinished = self.stamp.with_suffix(".part")
        unfinished.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
        unfinished.replace(self.stamp)


def cause(output: str) -> str:
    """Return the one line of pip's output that says why it failed."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    errors = [line[len("ERROR:") :].strip() for line in lines if line.startswith("ERROR:")]
    last = (errors or lines or ["no word of why"])[-1]
    # Retries that succeeded leave the same words in the output: only the last error tells.
    starved = not errors or last.startswith("No matching distribution") or UNREACHABLE.search(last)
    if starved and UNREACHABLE.search(output):
        return "the package index is out of reach (the first run needs the network)"
    return last


def main(arguments: Sequence[str] | None = None) -> int:
    """Make or refresh the environment and return the exit status."""
    parser = argparse.ArgumentParser(description="Make the repository's own virtual environment in .venv.")
    parser.add_argument("extras", nargs="*", help="extras of the project to install: server, dev")
    extras = parser.parse_args(arguments).extras
    try:
        check_version(sys.version_info[:3])
        Environment(ROOT).ensure(extras)
    except Failed as failure:
        print(f"remem: error: {failure}", file=sys.stderr)
        if failure.hint:
            print(f"remem: hint: {failure.hint}", file=sys.stderr)
        return failure.status
    except OSError as failure:
        print(f"remem: error: cannot make .venv: {failure}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
