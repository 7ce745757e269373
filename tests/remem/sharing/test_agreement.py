"""One lesson, three readers: the server, this memory, and the pure function agree, each on its own evidence.

Random commons go through real files over real HTTP: published with a key's own token, or carried by a folder.
The server reads its tables, the memory reads what it pulled, `remem show` counts the lines, and `lesson_state` is
handed the files themselves.
"""

import random
import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import httpx
import pytest
from sqlalchemy import delete

from remem.protocol import (
    Admission,
    Evidence,
    OriginFile,
    Policy,
    Reading,
    Statement,
    accept,
    lesson_hash,
    lesson_state,
    statements,
)
from remem.protocol.canonical import JSON
from remem.sharing.readings import list_readings, reader
from remem.sharing.show import show
from remem_server import tables
from remem_server.accept import accept_file
from remem_server.database import writing
from remem_server.tokens import create
from remem_testkit.files import NOW, confirmation, denial, file, key, lesson, revocation, sentence
from remem_testkit.memories import Memory
from remem_testkit.server import HandClock, ServedCommons, serve

KEYS: Final = [key(number) for number in range(40, 52)]
SPELLINGS: Final = 3
LESSONS: Final = 150
WORLDS: Final = 10
W: Final = timedelta(days=90)
AGES: Final = (timedelta(0), timedelta(days=1), W, W + timedelta(seconds=1), 2 * W, 2 * W + timedelta(seconds=1))
# Reading the certificates of the machine takes longer than most answers.
NO_TLS: Final = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


def spelled(number: int, spelling: int) -> str:
    text = sentence(number)
    return (text, text.upper(), text.replace(" ", "  "))[spelling]


@dataclass
class World:
    """A random commons: the newest file of every key, and the token's principal of those that have one."""

    files: dict[str, bytes]
    principals: dict[str, str | None]


def make_world(choose: random.Random) -> World:
    """Let a few keys say much about the same lessons, twice; the second time stands."""
    contents: dict[str, list[dict[str, JSON]]] = {signer.public.hex: [] for signer in KEYS}
    for number in range(LESSONS):
        about = lesson_hash("error", sentence(number))
        often = choose.choice((0.1, 0.3, 0.6))
        for signer in KEYS:
            said = contents[signer.public.hex]
            if choose.random() < 0.15:
                said.append(lesson(spelled(number, choose.randrange(SPELLINGS))))
            if choose.random() < often:
                at = NOW - choose.choice(AGES) - timedelta(microseconds=choose.choice((0, 1, 250_000)))
                said.append({**confirmation(about), "at": at.isoformat().replace("+00:00", "Z")})
            if choose.random() < often / 3:
                said.append(revocation(about, reason=choose.choice((None, "it was wrong", "two\u2028lines"))))
    for signer in KEYS:
        if choose.random() < 0.2:
            contents[signer.public.hex].append(denial(choose.choice(KEYS).public.hex))
    files = {
        signer.public.hex: file(signer, choose.sample(said, len(said)), seal=choose.randint(5, 9))
        for signer in KEYS
        if (said := contents[signer.public.hex])
    }
    principals = {name: choose.choice((None, "p1", "p2", "p3", "p4", "p5")) for name in files}
    return World(files, principals)


def publish(world: World, server: ServedCommons) -> None:
    """Put every file there, with a token of its key's principal or, where it has none, as an import would."""
    for name, data in world.files.items():
        secret = None
        if (principal := world.principals[name]) is not None:
            with writing(server.engine) as connection:
                secret, _token = create(connection, now=NOW, principal=principal)
        accept_file(server.engine, data, name=name, secret=secret, token_needed=False, now=NOW)


def ask(server: ServedCommons, path: str) -> Any:
    return httpx.get(f"{server.url}{path}", trust_env=False, verify=NO_TLS, timeout=60).raise_for_status().json()


def ask_all(server: ServedCommons) -> Iterator[Any]:
    """Ask for the whole list of lessons, page by page."""
    cursor = ""
    while True:
        page = ask(server, f"/commons/lessons?limit=100{cursor}")
        yield from page["lessons"]
        if page["next"] is None:
            return
        cursor = f"&cursor={page['next']}"


def fields_of(reading: Reading) -> dict[str, object]:
    """Return what the server says of a lesson, as this reading has it."""
    last = reading.last_confirmed
    return {
        "hash": reading.hash,
        "kind": reading.kind,
        "text": reading.text,
        "state": reading.state.value,
        "cause": reading.cause.value,
        "confirmations": reading.confirmations,
        "unadmitted": reading.unadmitted,
        "corroborations": reading.corroborations,
        "last_confirmed": None if last is None else last.isoformat().replace("+00:00", "Z"),
    }


def expected(world: World, server: ServedCommons, files: list[OriginFile], node: str) -> dict[str, Reading]:
    """Read every lesson by the pure function alone, from the files."""
    policy = Policy(
        open=server.settings.open,
        admitted=frozenset(
            Admission(name, "self", principal) for name, principal in world.principals.items() if principal is not None
        ),
        revokers=frozenset({node, *server.settings.operators}),
    )
    said = [one for whole in files for one in statements(whole)]
    denials = tuple(one for one in said if one.type == "deny")
    about: dict[str, list[Statement]] = {}
    for one in said:
        if one.type != "deny":
            about.setdefault(one.subject, []).append(one)
    return {
        subject: lesson_state(Evidence(subject, tuple(found), denials), policy, NOW) for subject, found in about.items()
    }


@pytest.fixture(params=[False, True], ids=["admitted by token", "open"])
def server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ServedCommons]:
    operators = tuple(signer.public.hex for signer in KEYS[:1])
    with serve(tmp_path / "server", clock=HandClock(NOW), open=request.param, operators=operators) as made:
        yield made


def test_three_readers_agree_about_every_lesson(server: ServedCommons, tmp_path: Path) -> None:
    node = ask(server, "/.well-known/remem")["key"]
    seen: set[tuple[object, object]] = set()
    for seed in range(WORLDS):
        choose = random.Random(f"{seed} {server.settings.open}")
        world = make_world(choose)
        forget(server)
        publish(world, server)
        memory = Memory(tmp_path / f"reader-{seed}", 1)
        if server.settings.open:
            memory.home.config_path.write_text("[policy]\nopen = true\n")
        memory.pull(server.url)
        files = [accept(data, now=NOW) for data in world.files.values()]
        right = expected(world, server, files, node)
        config = memory.home.config()
        ours = {one.hash: one for one in list_readings(memory.db, memory.name, config, NOW)}
        assert {about: fields_of(reading) for about, reading in ours.items()} == {
            about: fields_of(reading) for about, reading in right.items()
        }
        listed = {answer["hash"]: answer for answer in ask_all(server)}
        standing = {about: reading for about, reading in right.items() if reading.publishers}
        assert listed.keys() == standing.keys()
        for about, reading in standing.items():
            assert {name: listed[about][name] for name in fields_of(reading)} == fields_of(reading)
        policy = reader(memory.db, memory.name, config).policy
        for about in choose.sample(sorted(right), 20):
            answer = ask(server, f"/commons/lessons/{about}")
            assert {name: answer[name] for name in fields_of(right[about])} == fields_of(right[about])
            report = show(memory.home, memory.db, about, now=NOW)
            assert report.reading == ours[about]
            counting = {
                policy.principal(record.key) for record in report.records if record.counts and record.fault is None
            }
            assert len(counting) == right[about].confirmations
        seen |= {(reading.state, reading.cause) for reading in right.values()}
        memory.close()
    assert len(seen) >= (6 if server.settings.open else 7)


def forget(server: ServedCommons) -> None:
    """Empty the commons for the next world."""
    with writing(server.engine) as connection:
        for table in (
            tables.statements,
            tables.skipped,
            tables.equivocations,
            tables.contents,
            tables.files,
            tables.tokens,
        ):
            connection.execute(delete(table))
