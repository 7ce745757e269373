"""The database of a memory: one SQLite file, its schema, and how it is opened.

- Write-ahead log and a busy timeout of 10 seconds: several agents may write at once, each waits for its turn.
- Every write happens inside `transaction`, which takes the write lock at its start: what a transaction has read
  is still so when it writes, and nothing is left of one that fails.
- `MIGRATIONS` are applied in order, each in a transaction of its own; `user_version` counts those applied. A
  migration never changes once released: a change of the schema is a new one. A database of a newer version is
  refused, for this version does not know what its tables mean.
- Times are texts like 2026-01-31T12:00:00Z, so that their order is that of their letters. `recorded` and `received`
  are this memory's own clock and have microseconds, for what came first matters within a second too.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from remem.errors import Refused
from remem.protocol.items import item_id

BUSY_SECONDS: Final = 10.0
APPLICATION_ID: Final = 0x52454D31

_EVENTS: Final = """
CREATE TABLE events (
    id TEXT PRIMARY KEY,
    kind TEXT NOT NULL,
    agent TEXT,
    session TEXT,
    cwd TEXT,
    seen INTEGER NOT NULL DEFAULT 0,
    first_at TEXT NOT NULL,
    last_at TEXT NOT NULL,
    recorded TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- One sighting of an event, as it came. Nothing of the raw stream is ever deleted.
CREATE TABLE occurrences (
    number INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    event TEXT NOT NULL REFERENCES events (id),
    at TEXT NOT NULL,
    recorded TEXT NOT NULL,
    raw TEXT NOT NULL,
    is_read INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX occurrences_unread ON occurrences (number) WHERE is_read = 0;
CREATE INDEX occurrences_event ON occurrences (event);

-- How far a file of events has been taken in.
CREATE TABLE batches (name TEXT PRIMARY KEY, taken INTEGER NOT NULL, recorded TEXT NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE rejected (
    batch TEXT NOT NULL, line INTEGER NOT NULL, code TEXT NOT NULL, message TEXT NOT NULL, recorded TEXT NOT NULL
) STRICT;

CREATE TABLE episodes (
    id TEXT PRIMARY KEY,
    event TEXT NOT NULL REFERENCES events (id),
    kind TEXT NOT NULL,
    gist TEXT NOT NULL,
    sentence TEXT,
    cwd TEXT,
    seen INTEGER NOT NULL,
    at TEXT NOT NULL,
    last_at TEXT NOT NULL,
    recorded TEXT NOT NULL,
    is_compared INTEGER NOT NULL DEFAULT 0
) STRICT, WITHOUT ROWID;
CREATE INDEX episodes_uncompared ON episodes (id) WHERE is_compared = 0;
"""

_LESSONS: Final = """
CREATE TABLE lessons (
    hash TEXT PRIMARY KEY,
    kind TEXT NOT NULL,
    text TEXT NOT NULL,
    seen INTEGER NOT NULL,
    strength REAL NOT NULL,
    updated TEXT NOT NULL,
    parents TEXT NOT NULL DEFAULT '[]',
    source TEXT NOT NULL CHECK (source IN ('own', 'received', 'imported')),
    state TEXT NOT NULL DEFAULT 'active' CHECK (state IN ('active', 'archived', 'vetoed', 'dropped')),
    explicit INTEGER NOT NULL DEFAULT 0,
    received TEXT
) STRICT, WITHOUT ROWID;
CREATE INDEX lessons_received ON lessons (received) WHERE source = 'received';

-- `seen` is how often the episode had been seen when the lesson last absorbed it.
CREATE TABLE lesson_episodes (
    lesson TEXT NOT NULL REFERENCES lessons (hash),
    episode TEXT NOT NULL UNIQUE REFERENCES episodes (id),
    seen INTEGER NOT NULL,
    PRIMARY KEY (lesson, episode)
) STRICT, WITHOUT ROWID;

-- An episode that met a lesson of somebody else: a confirmation, if the person says so.
CREATE TABLE meetings (
    lesson TEXT NOT NULL REFERENCES lessons (hash),
    episode TEXT NOT NULL REFERENCES episodes (id),
    likeness REAL NOT NULL,
    PRIMARY KEY (lesson, episode)
) STRICT, WITHOUT ROWID;

CREATE TABLE vetoes (hash TEXT PRIMARY KEY, at TEXT NOT NULL, reason TEXT) STRICT, WITHOUT ROWID;
CREATE TABLE projects (path TEXT PRIMARY KEY, added TEXT NOT NULL) STRICT, WITHOUT ROWID;
"""

_COMMONS: Final = """
-- The newest file of each key; its bytes lie in the folder `commons`.
CREATE TABLE holdings (
    id INTEGER PRIMARY KEY,
    key TEXT NOT NULL UNIQUE,
    seal INTEGER,
    digest TEXT NOT NULL,
    size INTEGER NOT NULL,
    records INTEGER NOT NULL,
    source TEXT NOT NULL,
    received TEXT NOT NULL
) STRICT;

-- What the records of those files say, where judgement lets it through. A file says each type and subject once.
CREATE TABLE statements (
    holding INTEGER NOT NULL REFERENCES holdings (id),
    type TEXT NOT NULL,
    subject TEXT NOT NULL,
    time TEXT,
    kind TEXT,
    text TEXT,
    PRIMARY KEY (holding, type, subject)
) STRICT, WITHOUT ROWID;
CREATE INDEX statements_subject ON statements (subject);
CREATE INDEX statements_revoked ON statements (subject) WHERE type = 'revoke';
CREATE INDEX statements_denied ON statements (subject) WHERE type = 'deny';

-- The rules of judgement that made these statements.
CREATE TABLE judgement (name TEXT NOT NULL) STRICT;

-- From which keys a lesson came. A key that took it back is marked, and never brings it again by itself.
CREATE TABLE receipts (
    hash TEXT NOT NULL,
    holding INTEGER NOT NULL REFERENCES holdings (id),
    at TEXT NOT NULL,
    dropped INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (hash, holding)
) STRICT, WITHOUT ROWID;

-- Versions that acceptance refused, and seals that prove that a key spoke twice.
CREATE TABLE refusals (
    key TEXT NOT NULL, digest TEXT NOT NULL, code TEXT NOT NULL, at TEXT NOT NULL, PRIMARY KEY (key, digest)
) STRICT, WITHOUT ROWID;
CREATE TABLE equivocations (
    key TEXT NOT NULL,
    seal INTEGER NOT NULL,
    first BLOB NOT NULL,
    second BLOB NOT NULL,
    at TEXT NOT NULL,
    PRIMARY KEY (key, seal)
) STRICT, WITHOUT ROWID;

-- The commons that this memory pulls from and shares to, by their targets; and whom they admitted.
CREATE TABLE places (
    target TEXT PRIMARY KEY,
    keys TEXT,
    bookmark TEXT,
    pulled TEXT,
    shared TEXT,
    shared_seal INTEGER,
    own_seal INTEGER,
    own_digest TEXT
) STRICT, WITHOUT ROWID;
CREATE TABLE admissions (
    target TEXT NOT NULL, key TEXT NOT NULL, principal TEXT NOT NULL, PRIMARY KEY (target, key)
) STRICT, WITHOUT ROWID;
CREATE TABLE trust (
    key TEXT NOT NULL,
    role TEXT NOT NULL CHECK (role IN ('follow', 'revoker')),
    since TEXT NOT NULL,
    via TEXT,
    declined INTEGER NOT NULL,
    PRIMARY KEY (key, role)
) STRICT, WITHOUT ROWID;

-- What this memory says in its own file, every seal that it made, and every lesson that it ever let go.
CREATE TABLE own_records (
    type TEXT NOT NULL CHECK (type IN ('confirm', 'revoke', 'deny')),
    subject TEXT NOT NULL,
    at TEXT NOT NULL,
    reason TEXT,
    episode TEXT,
    PRIMARY KEY (type, subject)
) STRICT, WITHOUT ROWID;
CREATE TABLE own_seals (
    seal INTEGER NOT NULL, digest TEXT NOT NULL, at TEXT NOT NULL, PRIMARY KEY (seal, digest)
) STRICT, WITHOUT ROWID;
CREATE TABLE published (hash TEXT PRIMARY KEY, at TEXT NOT NULL) STRICT, WITHOUT ROWID;
"""

_GOSSIP: Final = """
-- The time of the seal and the id of the item; NULL in a file without a seal. An earlier release kept neither, so
-- they are read from the file where they are missing.
ALTER TABLE holdings ADD COLUMN sealed TEXT;
ALTER TABLE holdings ADD COLUMN item BLOB;
CREATE UNIQUE INDEX holdings_item ON holdings (item);
CREATE INDEX holdings_without_item ON holdings (id) WHERE item IS NULL;
ALTER TABLE equivocations ADD COLUMN item BLOB;
CREATE INDEX equivocations_item ON equivocations (item);

-- The items of what is held, in their order; see `remem.itemset`. The index is all that opening the set reads.
CREATE TABLE items (start BLOB PRIMARY KEY, size INTEGER NOT NULL, sum BLOB NOT NULL, items BLOB NOT NULL) STRICT;
CREATE INDEX items_heads ON items (start, size, sum);

-- Versions that are not wanted, by their items' ids: refused by acceptance, or superseded.
CREATE TABLE ledger (id BLOB PRIMARY KEY, code TEXT NOT NULL, at TEXT NOT NULL) STRICT, WITHOUT ROWID;
CREATE INDEX ledger_at ON ledger (at);
INSERT INTO ledger (id, code, at) SELECT item_id(key, digest), code, at FROM refusals;
DROP TABLE refusals;

CREATE TABLE peers (
    url TEXT PRIMARY KEY,
    key TEXT,
    source TEXT NOT NULL CHECK (source IN ('owner', 'pull')),
    added TEXT NOT NULL,
    allow_private INTEGER NOT NULL DEFAULT 0,
    allow_http INTEGER NOT NULL DEFAULT 0,
    tried TEXT,
    answered TEXT,
    failures INTEGER NOT NULL DEFAULT 0,
    next_try TEXT,
    delivered INTEGER NOT NULL DEFAULT 0,
    promised INTEGER NOT NULL DEFAULT 0
) STRICT, WITHOUT ROWID;

-- What each peer cost in a night, the days of UTC since 1970.
CREATE TABLE spent (
    peer TEXT NOT NULL,
    night INTEGER NOT NULL,
    bytes INTEGER NOT NULL DEFAULT 0,
    checks INTEGER NOT NULL DEFAULT 0,
    origins INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (peer, night)
) STRICT, WITHOUT ROWID;
"""

_PRIVATE: Final = """
-- The commons and other nodes that ask for a token before anyone reads there. They stay here when they are forgotten.
CREATE TABLE private_places (target TEXT PRIMARY KEY) STRICT, WITHOUT ROWID;
"""

MIGRATIONS: tuple[str, ...] = (_EVENTS + _LESSONS, _COMMONS, _GOSSIP, _PRIVATE)


def open_store(path: Path) -> sqlite3.Connection:
    """Open the database, create it if it is missing, and bring its schema up to date.

    Raises:
        Refused: the file is of another program or of a newer version, or is no database.
    """
    # SQLite gives the log and the index beside the database the mode of the database.
    os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    db = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None)
    db.row_factory = sqlite3.Row
    try:
        _check_owner(db, path)
        _use_log(db)
        db.execute("PRAGMA foreign_keys = ON")
        # A seal that went out must be known after a power cut too, or it looks as if somebody else had made it.
        db.execute("PRAGMA synchronous = FULL")
        _migrate(db, path)
    except BaseException:
        db.close()
        raise
    return db


def stamp(now: datetime) -> str:
    """Spell a moment of this memory's own clock, with microseconds."""
    return now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


@contextmanager
def transaction(db: sqlite3.Connection) -> Iterator[None]:
    """Write all of what happens inside, or nothing of it."""
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        db.execute("ROLLBACK")
        raise
    db.execute("COMMIT")


def _check_owner(db: sqlite3.Connection, path: Path) -> None:
    try:
        # In one statement: another process may make the tables between two.
        application, tables = db.execute(
            "SELECT application_id, (SELECT count(*) FROM sqlite_schema) FROM pragma_application_id"
        ).fetchone()
    except sqlite3.DatabaseError as error:
        if isinstance(error, sqlite3.OperationalError):
            raise
        raise Refused(f"expected a memory at {path}, got a file that is no database") from None
    if application != APPLICATION_ID and (application or tables):
        raise Refused(f"expected a memory at {path}, got a database of another program")


def _use_log(db: sqlite3.Connection) -> None:
    # Changing the mode needs the file alone, and SQLite does not wait for that by itself.
    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            db.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.02)
        else:
            return


def _migrate(db: sqlite3.Connection, path: Path) -> None:
    db.create_function("item_id", 2, item_id, deterministic=True)
    while (version := _version(db, path)) < len(MIGRATIONS):
        with transaction(db):
            # Another process may have been faster.
            if _version(db, path) != version:
                continue
            if version == 0:
                db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            for statement in _statements(MIGRATIONS[version]):
                db.execute(statement)
            db.execute(f"PRAGMA user_version = {version + 1}")


def _version(db: sqlite3.Connection, path: Path) -> int:
    (version,) = db.execute("PRAGMA user_version").fetchone()
    if version > len(MIGRATIONS):
        raise Refused(
            f"expected a memory of schema {len(MIGRATIONS)} or older at {path}, got schema {version}",
            hint="a newer remem has written it: update this one",
        )
    return int(version)


def _statements(script: str) -> Iterator[str]:
    """Split a script, because `executescript` would commit the transaction around it."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""
    if statement.strip():
        raise ValueError("a migration ends in the middle of a statement")
