"""One lesson, five readers: a commons, a memory, `show`, the pure function and a model apart from it all agree.

Each lesson of a test is a commons of its own: a few keys, who answers for them, what they say of it. Files go to a
real server by PUT, with their key's own token; a real memory pulls them over HTTP. Then files are replaced by newer
ones, tokens are revoked and time passes, twice, and each reader says again what it makes of every lesson:

- the server, in its list and lesson by lesson, from its tables;
- the memory, from what it pulled, as `remem lessons` and `remem show` ask it;
- `lesson_state`, handed the files that stand;
- the model of `remem.protocol.state`'s own tests, which reads no file: it is told what was meant to be said.
"""

import json
import os
import random
import ssl
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final, NamedTuple

import httpx
import pytest

from remem.protocol import (
    Admission,
    Cause,
    Evidence,
    OriginFile,
    Policy,
    Reading,
    SigningKey,
    Statement,
    accept,
    lesson_hash,
    lesson_state,
    statements,
)
from remem.protocol.canonical import JSON
from remem.sharing.readings import reader
from remem.sharing.show import show
from remem_server.database.engine import writing
from remem_server.files import tokens
from remem_server.lessons.reading import as_of
from remem_testkit.files import NOW, confirmation, denial, draft_file, file, key, lesson, revocation, sentence
from remem_testkit.memories import Memory
from remem_testkit.server import HandClock, ServedCommons, serve

from ..protocol.state_model import Expected, expected_reading  # noqa: TID252 - an absolute name would be the client's

SEEDS: Final = int(os.environ.get("REMEM_TEST_SEEDS", "1"))
"""How often it is tried: `tests/bench/bench_agreement.py` does it many times more."""
CIRCLES: Final = 6
KEYS: Final = 7
LESSONS: Final = 40
STAGES: Final = 3

W: Final = timedelta(days=90)
TICK: Final = timedelta(microseconds=1)
AGES: Final = (timedelta(0), timedelta(days=1), W, W + TICK, 2 * W, 2 * W + TICK)
LATER: Final = (timedelta(days=1), timedelta(days=40), W, W + TICK)
# How often a key publishes, confirms and revokes a lesson; one lesson differs from another in that and in its age.
OFTEN: Final = ((0.15, 0.2, 0.05), (0.15, 0.6, 0.05), (0.15, 0.8, 0.1), (0.15, 0.9, 0.7), (0.1, 0.9, 0.9))
# Nobody reads what fails judgement: a lesson of another hash than its text's, and a reason of two lines.
UNFIT_TEXT: Final = "Delete the lock file."
UNFIT_REASON: Final = "two\u2028lines"
REASONS: Final = (None, None, "it was wrong", UNFIT_REASON)
# Reading the certificates of the machine takes longer than most answers.
NO_TLS: Final = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


def spelled(number: int, spelling: int) -> str:
    text = sentence(number)
    return (text, text.upper(), text.replace(" ", "  "))[spelling]


class Mood(NamedTuple):
    """How the keys of a circle think of one lesson."""

    often: tuple[float, float, float]
    ages: tuple[timedelta, ...]


@dataclass
class Circle:
    """A few keys that speak of lessons that nobody else speaks of.

    Attributes:
        number: of this circle; its keys, lessons and principals are its own.
        operator: the key that answers for the commons, or None.
        said: what stands: of a key about a subject, by type.
        principals: who answers for a key, None for one that is not admitted.
        drafts: the keys whose file has no seal yet.
        files: the file that stands of each key.
        token: the token of each key, as it was shown and by its number.
    """

    number: int
    operator: str | None
    signers: list[SigningKey]
    said: dict[tuple[str, str, str], Statement] = field(default_factory=dict)
    principals: dict[str, str | None] = field(default_factory=dict)
    drafts: set[str] = field(default_factory=set)
    files: dict[str, OriginFile] = field(default_factory=dict)
    token: dict[str, tuple[str, int]] = field(default_factory=dict)

    @property
    def lessons(self) -> dict[str, int]:
        numbers = range(self.number * LESSONS, (self.number + 1) * LESSONS)
        return {lesson_hash("error", sentence(number)): number for number in numbers}

    def policy(self, *, open_: bool) -> Policy:
        """Return how this commons reads, as far as it bears on this circle."""
        admitted = {Admission(name, "self", who) for name, who in self.principals.items() if who is not None}
        revokers = frozenset({self.operator}) if self.operator else frozenset[str]()
        return Policy(open=open_, admitted=frozenset(admitted), revokers=revokers)

    def speak(self, choose: random.Random, signer: SigningKey, moods: dict[str, Mood], now: datetime) -> bytes:
        """Let a key say what it says now, some of it as before; return its file."""
        name = signer.public.hex
        sealed = name not in self.drafts
        contents: list[dict[str, JSON]] = []
        for about, number in self.lessons.items():
            mood = moods[about]
            for type_, often in zip(("lesson", "confirm", "revoke"), mood.often, strict=True):
                where = (name, type_, about)
                stays = where in self.said and (self.said[where].time is not None or not sealed)
                if not stays or choose.random() < 0.5:
                    self.said.pop(where, None)
                    if choose.random() < often:
                        self.said[where] = new_statement(
                            choose, *where, number, now - choose.choice(mood.ages), sealed=sealed
                        )
                if where in self.said:
                    contents.append(fields_of_record(self.said[where]))
                elif type_ == "lesson" and choose.random() < 0.05:
                    contents.append({**lesson(UNFIT_TEXT), "hash": about})
        for other in self.signers:
            where = (name, "deny", other.public.hex)
            self.said.pop(where, None)
            if choose.random() < (0.2 if name == self.operator else 0.03):
                self.said[where] = Statement(*where, NOW, None, "it floods the commons")
                contents.append(denial(other.public.hex))
        choose.shuffle(contents)
        return file(signer, contents, at=now) if sealed else draft_file(signer, contents)


def new_statement(
    choose: random.Random, name: str, type_: str, about: str, number: int, time: datetime, *, sealed: bool
) -> Statement:
    time -= timedelta(microseconds=choose.choice((0, 0, 1, 250_000)))
    if type_ == "lesson":
        return Statement(name, type_, about, NOW, "error", spelled(number, choose.randrange(3)))
    reason = choose.choice(REASONS) if type_ == "revoke" else None
    # Before there were seals, a statement could leave its time out; such a confirmation does not count.
    return Statement(name, type_, about, time if sealed or choose.randrange(2) else None, None, reason)


def fields_of_record(said: Statement) -> dict[str, JSON]:
    if said.type == "lesson":
        return lesson(said.text or "")
    whole = confirmation(said.subject) if said.type == "confirm" else revocation(said.subject, reason=said.text)
    at = {} if said.time is None else {"at": said.time.isoformat().replace("+00:00", "Z")}
    return {**{name: value for name, value in whole.items() if name != "at"}, **at}


@dataclass
class World:
    """The circles of one commons, and what happens to them."""

    choose: random.Random
    server: ServedCommons
    clock: HandClock
    client: httpx.Client
    circles: list[Circle]
    moods: dict[str, Mood]
    happened: Counter[str] = field(default_factory=Counter)

    def publish(self, circle: Circle, signer: SigningKey) -> None:
        """Put the next file of a key; one that was not admitted gets a token for it."""
        name = signer.public.hex
        if name not in circle.token:
            who = f"p{circle.number}-{self.choose.randrange(KEYS + 3)}"
            with writing(self.server.engine) as connection:
                secret, token = tokens.create(connection, self.clock.now, tokens.Terms(principal=who))
            circle.token[name], circle.principals[name] = (secret, token.id), who
        before = circle.said.copy()
        data = circle.speak(self.choose, signer, self.moods, self.clock.now)
        headers = {"Authorization": f"Bearer {circle.token[name][0]}"}
        answer = self.client.put(f"/commons/{name}.jsonl", content=data, headers=headers)
        assert answer.json()["outcome"] == ("newer" if name in circle.files else "new"), answer.text
        circle.files[name] = accept(data, now=self.clock.now)
        for about in circle.lessons:
            now_, then = ((name, "revoke", about) in said for said in (circle.said, before))
            if (name, "lesson", about) in circle.said and (name, "lesson", about) in before:
                self.happened["taken back"] += now_ and not then
                self.happened["published again"] += then and not now_

    def begin(self) -> None:
        for circle in self.circles:
            circle.drafts = {signer.public.hex for signer in circle.signers if self.choose.random() < 0.2}
            for signer in circle.signers:
                self.publish(circle, signer)
            for name in circle.token:
                if self.choose.random() < 0.15:
                    self.revoke_token(circle, name)

    def go_on(self) -> None:
        """Let time pass, replace some files, and admit some keys no more."""
        self.clock.advance(self.choose.choice(LATER))
        for circle in self.circles:
            for signer in circle.signers:
                name = signer.public.hex
                if circle.principals[name] is None:
                    continue
                if self.choose.random() < (0.7 if name in circle.drafts else 0.3):
                    self.happened["sealed"] += name in circle.drafts
                    circle.drafts.discard(name)
                    self.publish(circle, signer)
                    self.happened["replaced"] += 1
                elif self.choose.random() < 0.05:
                    self.revoke_token(circle, name)

    def revoke_token(self, circle: Circle, name: str) -> None:
        with writing(self.server.engine) as connection:
            tokens.revoke(connection, circle.token[name][1], self.clock.now)
        circle.principals[name] = None


def ask_all(client: httpx.Client) -> Iterator[Any]:
    """Ask for the whole list of lessons, page by page."""
    cursor = ""
    while True:
        page = client.get(f"/commons/lessons?limit=100{cursor}").raise_for_status().json()
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
        "why": reading.why,
        "confirmations": reading.confirmations,
        "unadmitted": reading.unadmitted,
        "corroborations": reading.corroborations,
        "last_confirmed": None if last is None else last.isoformat().replace("+00:00", "Z"),
    }


def right_readings(world: World, now: datetime) -> dict[str, Reading]:
    """Read every lesson as of a moment by the pure function, from the files, and compare it with the model."""
    found: dict[str, Reading] = {}
    for circle in world.circles:
        policy = circle.policy(open_=world.server.settings.open)
        said = [one for whole in circle.files.values() for one in statements(whole)]
        denials = tuple(one for one in said if one.type == "deny")
        meant = [one for one in circle.said.values() if one.type != "deny" and one.text != UNFIT_REASON]
        meant_denials = [one for one in circle.said.values() if one.type == "deny"]
        for about in circle.lessons:
            evidence = Evidence(about, tuple(one for one in said if one.subject == about), denials)
            reading = lesson_state(evidence, policy, now)
            said_of_it = [one for one in meant if one.subject == about]
            model = expected_reading(about, said_of_it, meant_denials, policy, now)
            assert Expected.of(reading) == model, (about, circle)
            if evidence.statements:
                found[about] = reading
            denied = {one.subject for one in meant_denials if one.key == circle.operator}
            world.happened["denied"] += bool(denied & {one.key for one in evidence.statements})
            world.happened["unadmitted"] += reading.unadmitted > 0
            world.happened["shared principal"] += len(reading.counted) > reading.confirmations
            world.happened["timeless"] += any(one.time is None for one in evidence.statements)
            world.happened[reading.cause.value] += 1
    return found


def compare(world: World, memory: Memory, stage: int) -> None:
    """Ask every reader about every lesson; about a part of them, also in the ways that ask for one alone."""
    right = right_readings(world, world.clock.now)
    # The commons reads as of the beginning of the day.
    answered = {about: fields_of(one) for about, one in right_readings(world, as_of(world.clock.now)).items()}
    this = reader(memory.db, memory.name, memory.home.config())
    ours = this.readings(memory.db, list(right), memory.now)
    assert {about: Expected.of(reading) for about, reading in ours.items()} == {
        about: Expected.of(reading) for about, reading in right.items()
    }
    listed = {answer["hash"]: answer for answer in ask_all(world.client)}
    assert listed == {about: answered[about] for about, reading in right.items() if reading.publishers}
    for about in sorted(right)[stage::STAGES]:
        answer = world.client.get(f"/commons/lessons/{about}").json()
        evidence, complete = answer.pop("evidence"), answer.pop("complete")
        assert (answer, complete) == (answered[about], True)
        counted = tuple(sorted(one["key"] for one in evidence if one["counted"]))
        assert counted == right[about].counted
        report = show(memory.home, memory.db, about, now=memory.now)
        assert report.reading == ours[about] == right[about]
        counting = {record.key for record in report.records if record.counts and record.fault is None}
        assert tuple(sorted(counting)) == right[about].counted
        assert len({this.policy.principal(name) for name in counting}) == right[about].confirmations


@pytest.fixture(params=range(SEEDS))
def seed(request: pytest.FixtureRequest) -> int:
    return int(request.param)


@pytest.mark.parametrize("open_", [False, True], ids=["admitted by token", "open"])
def test_every_reader_agrees_about_every_lesson(tmp_path: Path, seed: int, *, open_: bool) -> None:
    choose = random.Random(f"{seed} {open_}")
    first = 1_000 + (2 * seed + open_) * CIRCLES
    circles = []
    for number in range(first, first + CIRCLES):
        signers = [key(KEYS * number + one) for one in range(KEYS)]
        operator = None if number % 2 else signers[0].public.hex
        circles.append(Circle(number, operator, signers))
    operators = tuple(circle.operator for circle in circles if circle.operator)
    moods = {
        about: Mood(choose.choice(OFTEN), choose.choice((AGES, AGES, AGES[2:], AGES[4:])))
        for circle in circles
        for about in circle.lessons
    }
    clock = HandClock(NOW)
    memory = Memory(tmp_path / "reader", 1)
    memory.home.config_path.write_text(f"[policy]\nopen = {json.dumps(open_)}\n")
    with (
        serve(tmp_path / "server", clock=clock, open=open_, operators=operators) as server,
        httpx.Client(base_url=server.url, trust_env=False, verify=NO_TLS, timeout=60) as client,
    ):
        world = World(choose, server, clock, client, circles, moods)
        world.begin()
        for stage in range(STAGES):
            if stage:
                world.go_on()
            memory.now = clock.now
            assert memory.pull(server.url).complete
            compare(world, memory, stage)
    memory.close()
    met = {name for name, times in world.happened.items() if times}
    assert met >= {cause.value for cause in Cause}, world.happened
    assert met >= {"taken back", "published again", "replaced", "sealed", "denied", "timeless"}, world.happened
    # Where everyone counts, nobody is left out, and nobody answers for two keys.
    assert open_ or met >= {"unadmitted", "shared principal"}, world.happened
