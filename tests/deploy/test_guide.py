"""The sessions of the operator's guide run as they stand there: from nothing to a lesson that was taken back."""

from __future__ import annotations

import os
import re
import signal
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from sqlalchemy import make_url

from docs.sessions import Shell, Step, sessions
from remem_testkit.postgres import fresh_database
from remem_testkit.programs import postgres_programs
from remem_testkit.server import plain_environment

DEPLOY = Path(__file__).parents[2] / "deploy"
GUIDE = DEPLOY / "README.md"
ADDRESS = "127.0.0.1:7363"
END_SECONDS = 60


class LastingShell(Shell):
    """A shell whose variables last from one step to the next, as a person's do."""

    def run(self, step: Step) -> str | None:
        kept = self.place.with_name(".variables")
        kept.touch()
        return super().run(step._replace(command=f"set -a; . {kept}; {step.command}\nexport -p > {kept}"))


def write_service_file(folder: Path, url: str) -> None:
    """Write the file that the guide shows, for a database of the tests."""
    found = make_url(url)
    fields: dict[str, object] = {"host": found.host, "port": found.port, "dbname": found.database, **found.query}
    fields |= {"user": found.username, "password": found.password}
    lines = [f"{name}={value}\n" for name, value in fields.items() if value is not None]
    (folder / "pg_service.conf").write_text("[remem]\n" + "".join(lines), "utf-8")


@contextmanager
def ended(pid_file: Path) -> Iterator[None]:
    """End the server that the sessions leave running."""
    try:
        yield
    finally:
        with suppress(FileNotFoundError, ProcessLookupError):
            pid = int(pid_file.read_text())
            os.kill(pid, signal.SIGTERM)
            end = time.monotonic() + END_SECONDS
            while time.monotonic() < end:
                os.kill(pid, 0)
                time.sleep(0.05)
            os.kill(pid, signal.SIGKILL)


def test_the_sessions_lead_from_nothing_to_a_lesson_that_was_taken_back(tmp_path: Path) -> None:
    path = os.pathsep.join(map(str, (Path(sys.executable).parent, postgres_programs(), os.environ["PATH"])))
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
    place = tmp_path / "place"
    place.mkdir()
    steps = [step for session in sessions(GUIDE) for step in session]
    assert len(steps) > 25
    with fresh_database() as url, ended(place / "remem.pid"):
        write_service_file(place, url)
        environment = plain_environment(HOME=str(tmp_path), PATH=path, REMEM_PORT=str(port))
        shell = LastingShell(place, environment, lambda text: text.replace(ADDRESS, f"127.0.0.1:{port}"))
        for step in steps:
            # What comes behind a step that went wrong would only repeat it.
            assert (wrong := shell.run(step)) is None, wrong


@pytest.mark.parametrize("document", ["README.md", "GROWING.md"])
def test_every_link_leads_somewhere(document: str) -> None:
    text = (DEPLOY / document).read_text("utf-8")
    links = re.findall(r"\]\(([^)]+)\)", text)
    assert links
    for link in links:
        path, _, anchor = link.partition("#")
        target = (DEPLOY / path) if path else DEPLOY / document
        assert target.is_file(), link
        titles = re.findall(r"^#+ (.+)$", target.read_text("utf-8"), re.MULTILINE)
        assert not anchor or anchor in {re.sub(r"[^a-z0-9 -]", "", title.lower()).replace(" ", "-") for title in titles}


def test_every_file_of_the_folder_is_told_of() -> None:
    told = GUIDE.read_text("utf-8") + (DEPLOY / "kubernetes" / "kustomization.yaml").read_text("utf-8")
    files = {path.relative_to(DEPLOY) for path in DEPLOY.rglob("*") if path.is_file()}
    # Of the folder itself, only what is the operator's: the rest is of whoever builds.
    operators = {path for path in files if len(path.parts) > 1 and "__pycache__" not in path.parts} | {
        Path("backup.sh")
    }
    quiet = {"Containerfile", ".gitignore", "kustomization.yaml", "remem-backup.service"}
    assert {path.name for path in operators if path.name not in told} == quiet


def test_every_alert_is_explained_and_no_other() -> None:
    told = re.findall(r"^\| (Remem[A-Z]\w+) \|", GUIDE.read_text("utf-8"), re.MULTILINE)
    assert told == re.findall(r"alert: (\w+)", (DEPLOY / "observability" / "alerts.yaml").read_text("utf-8"))
