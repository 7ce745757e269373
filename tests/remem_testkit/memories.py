"""Memories of tests: real homes with keys from small numbers, that learn, share and pull in a few words."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Iterable, Sequence
from contextlib import closing
from datetime import datetime, timedelta
from hashlib import sha256
from pathlib import Path

from remem.commons import Commons, commons_at
from remem.ingest.events import parse_event
from remem.memory import episodes, lessons, projects
from remem.memory.events import add_event
from remem.memory.home import Home
from remem.memory.store import transaction
from remem.protocol import Reading, SigningKey, lesson_hash
from remem.sharing.privacy import Machine
from remem.sharing.pull import pull
from remem.sharing.readings import reader
from remem.sharing.reports import PullReport, ShareReport
from remem.sharing.share import share
from remem_testkit.files import NOW, key

MACHINE = Machine(frozenset({"thor", "annika"}))


class Memory:
    """One memory, its database open."""

    def __init__(self, path: Path, number: int, now: datetime = NOW) -> None:
        path.mkdir(mode=0o700)
        (path / "identity.key").write_text(key(number).seed.hex() + "\n")
        Home.create(path)
        self.open(path, now)
        self.project.mkdir()
        with transaction(self.db):
            projects.add_project(self.db, self.project, now)

    def open(self, path: Path, now: datetime = NOW) -> None:
        """Open the home of a memory that was made before, as another process does."""
        self.home = Home.open(path)
        self.db: sqlite3.Connection = self.home.connect()
        self.key: SigningKey = self.home.signing_key()
        self.name = self.key.public.hex
        self.now = now
        self.project = path.with_name(f"{path.name}-project")

    def close(self) -> None:
        self.db.close()

    def meet(self, text: str, *, kind: str = "error", cwd: Path | None = None, at: datetime | None = None) -> str:
        """Go through an episode that is about a text; return its id."""
        moment = at or self.now
        words = {"said": text} if kind == "correction" else {"happened": text, "title": text}
        event = parse_event(json.dumps({"kind": kind, "cwd": str(cwd or self.project), **words}))
        episode = sha256(f"{self.name} {text} {moment} {cwd}".encode()).hexdigest()[:16]
        with transaction(self.db):
            add_event(self.db, event, moment)
            self.db.execute(
                "INSERT INTO episodes (id, event, kind, gist, sentence, cwd, seen, at, last_at, recorded)"
                " VALUES (?, ?, ?, ?, ?, ?, 1, ?, ?, ?)",
                (episode, event.identity, kind, text, text, str(cwd or self.project), *[_stamp(moment)] * 3),
            )
        return episode

    def learn(self, *texts: str, kind: str = "error", cwd: Path | None = None) -> list[str]:
        """Learn lessons from episodes of this memory's own project; return their hashes."""
        for text in texts:
            group = episodes.episodes(self.db, [self.meet(text, kind=kind, cwd=cwd)])
            with transaction(self.db):
                lessons.found_lesson(self.db, kind, text, group, self.now)
        return [lesson_hash(kind, text) for text in texts]

    def share(
        self, *targets: str | Path, also: Sequence[str] = (), adopt: bool = False, rehearse: bool = False
    ) -> ShareReport:
        """Share to some targets, a folder or a URL with its token behind a blank."""
        commons = [reach(target) for target in targets]
        try:
            return share(
                self.home, self.db, commons, machine=MACHINE, now=self.now, also=also, adopt=adopt, rehearse=rehearse
            )
        finally:
            for one in commons:
                one.close()

    def pull(self, target: str | Path) -> PullReport:
        """Pull from a folder or a URL."""
        with closing(reach(target)) as commons:
            return pull(self.home, self.db, commons, now=self.now)

    def reading(self, lesson: str) -> Reading:
        """Work out what a lesson is worth to this memory."""
        return self.readings([lesson])[lesson]

    def readings(self, hashes: Collection[str]) -> dict[str, Reading]:
        """Work out what lessons are worth to this memory."""
        return reader(self.db, self.name, self.home.config()).readings(self.db, hashes, self.now)

    def lesson_state(self, lesson: str) -> str | None:
        """Return the local state of a lesson."""
        found = lessons.find_lesson(self.db, lesson)
        return None if found is None else f"{found.source} {found.state}"

    def refused(self) -> dict[bytes, str]:
        """Return what this memory remembers as refused, by the ids of the items."""
        return dict(self.db.execute("SELECT id, code FROM ledger WHERE code <> 'superseded'").fetchall())

    def later(self, **by: float) -> None:
        """Move this memory's clock."""
        self.now += timedelta(**by)

    def held_files(self) -> dict[str, bytes]:
        """Return the bytes of the files that lie in the home, by name."""
        return {path.name: path.read_bytes() for path in sorted(self.home.commons_path.glob("*.jsonl"))}


def reach(target: str | Path) -> Commons:
    """Reach for a commons; a URL may have its token behind a blank."""
    address, _blank, token = str(target).partition(" ")
    return commons_at(address, token or None)


def put_files(folder: Path, files: Iterable[bytes]) -> None:
    """Put files into a folder, each under its key."""
    for data in files:
        name = json.loads(data.partition(b"\n")[0])["key"]
        (folder / f"{name}.jsonl").write_bytes(data)


def _stamp(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
