"""Every answer that `/openapi.json` documents is given by some request, and no request gets another.

An answer is a route, a method, a status and, where it is a refusal, a code. HEAD tells no code.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from functools import partial
from threading import Event
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from sqlalchemy import text, update

from remem.protocol import RULES, SigningKey, lesson_hash
from remem_gossip import wire
from remem_gossip.parts import Whole
from remem_gossip.reconcile import Reconciler, Vector
from remem_gossip.signatures import sign
from remem_server import errors
from remem_server.database import tables
from remem_server.database.engine import DATABASE_NAME, writing
from remem_server.files import tokens
from remem_server.files.accept import Accepted, accept_file
from remem_server.web import serving
from remem_server.web.app import create_app
from remem_server.web.limits import Verifying
from remem_server.web.routes import files
from remem_testkit import server as testkit_server
from remem_testkit.breaking import answer_to_a_disconnect, answer_to_half_a_body, broken_files
from remem_testkit.crashes import NO_LIMITS
from remem_testkit.files import NOW, denial, draft_file, file, full_file, key, lesson, revocation, sentence
from remem_testkit.server import HandClock, ServedCommons

Start = Callable[..., ServedCommons]
Answer = tuple[str, str, int, str | None]
"""A method, a route, a status, and the code of a refusal."""

FILE, INDEX, LESSONS, LESSON = "/commons/{name}.jsonl", "/commons/index", "/commons/lessons", "/commons/lessons/{hash}"
PUBLIC = ("/.well-known/remem", "/healthz", "/readyz")
ME, OTHER = key(1), key(2)
HASH = lesson_hash("error", sentence(1))
VALUES = {"name": ME.public.hex, "hash": HASH, "id": "1"}
BODIES = {
    "revoke": {"hash": HASH, "reason": "it is wrong"},
    "unrevoke": {"hash": HASH},
    "deny": {"key": OTHER.public.hex, "reason": "it floods the commons"},
    "undeny": {"key": OTHER.public.hex},
    "block": {"key": OTHER.public.hex, "reason": "it floods the commons"},
    "unblock": {"key": OTHER.public.hex},
    "tokens": {},
}


def documented(app: FastAPI) -> set[Answer]:
    """Return the answers that the documentation names."""
    found: set[Answer] = set()
    for route, operations in app.openapi()["paths"].items():
        for method, operation in operations.items():
            for status, answer in operation["responses"].items():
                codes = re.findall(r"^`(\w+)`: ", answer["description"], re.MULTILINE) if method != "head" else []
                if status.isdecimal():
                    found |= {(method.upper(), route, int(status), code) for code in codes or [None]}
    return found


class World:
    """Commons of every kind, and what was seen of their answers."""

    def __init__(self, start: Start, stack: ExitStack) -> None:
        self._start, self._stack = start, stack
        self.seen: set[Answer] = set()
        self.routes: list[tuple[str, str]] = []

    def start(self, name: str, **options: Any) -> ServedCommons:
        return self._start(name, **{**NO_LIMITS, **options})

    def client(self, commons: ServedCommons, token: str | None = None) -> httpx.Client:
        headers = {"Accept-Encoding": "identity"} if token is None else {"Authorization": f"Bearer {token}"}
        hooks = {"response": [self.note]}
        # An answer that comes before its body was read ends the connection, and so does a mistake of our own.
        limits = httpx.Limits(max_keepalive_connections=0)
        made = httpx.Client(
            base_url=commons.url, headers=headers, event_hooks=hooks, limits=limits, timeout=60, trust_env=False
        )
        return self._stack.enter_context(made)

    def note(self, response: httpx.Response) -> None:
        response.read()
        method, path = response.request.method, response.request.url.path
        for known, route in self.routes:
            # The first that fits, as in the application.
            if known == method and re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", route), path):
                problem = response.headers.get("Content-Type") == "application/problem+json"
                self.see(method, route, (response.status_code, response.json() if problem and method != "HEAD" else {}))
                return
        assert path == "/", f"{method} {path} is not documented"

    def see(self, method: str, route: str, answer: tuple[int, dict[str, Any]]) -> None:
        self.seen.add((method, route, answer[0], answer[1].get("code")))

    def ask_all(self, client: httpx.Client, but: tuple[str, ...] = (), **options: Any) -> None:
        """Send one good request to every route."""
        for method, route in self.routes:
            if route not in but:
                ask(client, method, route, **options)


def ask(client: httpx.Client, method: str, route: str, **options: Any) -> httpx.Response:
    """Send a good request to a route."""
    path = route.format_map(VALUES)
    if method == "PUT":
        options = {"content": file(ME, [lesson(sentence(1))]), **options}
    elif method == "POST":
        options = {"json": BODIES.get(path.rpartition("/")[2], {}) if "{" not in route else {}, **options}
    return client.request(method, path, **options)


def publish(client: httpx.Client, data: bytes, name: str = ME.public.hex) -> int:
    return client.put(f"/commons/{name}.jsonl", content=data).status_code


# --- what comes of what is asked ---


def everything_goes_well(world: World) -> None:
    commons = world.start("well")
    # The one that is revoked.
    commons.token()
    publisher, admin = world.client(commons, commons.token()), world.client(commons, admin_token(commons))
    world.ask_all(publisher)
    world.ask_all(admin)
    etags = [publisher.get(path).headers["ETag"] for path in (f"/commons/{ME.public.hex}.jsonl", INDEX, LESSONS)]
    for etag in etags:
        world.ask_all(publisher, headers={"If-None-Match": etag})
    assert publish(publisher, file(ME, [lesson(sentence(2))], at=NOW + timedelta(seconds=1))) == 200


def what_is_not_there(world: World) -> None:
    commons = world.start("nothing")
    reader, admin = world.client(commons), world.client(commons, admin_token(commons))
    for method in ("GET", "HEAD"):
        for name in (ME.public.hex, "x"):
            reader.request(method, f"/commons/{name}.jsonl")
    reader.put("/commons/x.jsonl", content=b"")
    reader.get(f"{LESSONS}/{HASH}")
    reader.get(f"{LESSONS}/x")
    for path in (INDEX, LESSONS, "/admin/journal"):
        admin.get(path, params={"limit": "x"})
    admin.post("/admin/tokens/99/revoke", json={})
    for method, route in world.routes:
        if method == "POST":
            ask(admin, method, route, json={"x": 1})


def what_tokens_are_not_good_for(world: World) -> None:
    clock = HandClock()
    commons = world.start("tokens", private=True, clock=clock)
    good, admin = commons.token(), admin_token(commons)
    with writing(commons.engine) as connection:
        revoked, kept = tokens.create(connection, NOW)
        tokens.revoke(connection, kept.id, NOW)
        expired, _kept = tokens.create(connection, NOW, tokens.Terms(expires=NOW + timedelta(hours=1)))
    clock.advance(timedelta(hours=2))
    for token in (None, "remem_x", revoked, expired):
        world.ask_all(world.client(commons, token), but=PUBLIC)
    world.ask_all(world.client(commons, good))
    publish(world.client(commons, good), file(OTHER, []), OTHER.public.hex)
    publish(world.client(commons, admin), file(OTHER, []), OTHER.public.hex)


def what_stands_already(world: World) -> None:
    commons = world.start("stands", open=True)
    writer = world.client(commons)
    held = [file(ME, [lesson(sentence(number))], seal=5) for number in range(6)]
    for data in held:
        publish(writer, data)
    publish(writer, file(ME, [], seal=4))
    publish(writer, file(ME, []), OTHER.public.hex)


def a_collision_of_origins(world: World) -> None:
    commons = world.start("collision", open=True)
    client = world.client(commons)
    for signer in (ME, OTHER):
        publish(client, file(signer, []), signer.public.hex)
    with commons.engine.begin() as connection:
        forged = update(tables.files).where(tables.files.c.key == OTHER.public.hex)
        connection.execute(forged.values(origin=ME.public.origin))
    for method in ("GET", "HEAD"):
        client.request(method, f"/commons/{ME.public.origin}.jsonl")


def what_is_blocked(world: World) -> None:
    commons = world.start("blocked", open=True)
    admin, reader = world.client(commons, admin_token(commons)), world.client(commons)
    publish(reader, file(OTHER, []), OTHER.public.hex)
    ask(admin, "POST", "/admin/block")
    for method in ("GET", "HEAD", "PUT"):
        reader.request(method, f"/commons/{OTHER.public.hex}.jsonl")
    for act in ("block", "deny"):
        own = {"key": commons.commons.operators[0], "reason": "it is mine"}
        admin.post(f"/admin/{act}", json=own)


def an_operator_who_cannot_speak(world: World) -> None:
    """The node's own file is full, or of draft 0, or its last, or sealed days ahead of the clock."""
    said = [revocation(HASH), denial(OTHER.public.hex)]
    days = timedelta(days=5)
    kinds: dict[str, Callable[[SigningKey], bytes]] = {
        "full": partial(full_file, lines=508),
        "draft": lambda signer: draft_file(signer, said),
        "last": lambda signer: file(signer, said[:1], seal=RULES.last_seal),
        "ahead": lambda signer: file(signer, said, at=NOW + days),
    }
    for name, make in kinds.items():
        commons = world.start(name)
        signer = commons.commons.key
        accept_file(
            commons.engine, make(signer), name=signer.public.hex, secret=None, token_needed=False, now=NOW + days
        )
        admin = world.client(commons, admin_token(commons))
        admin.post("/admin/revoke", json={"hash": "1" * 32, "reason": "it is wrong"})
        admin.post("/admin/deny", json={"key": key(3).public.hex, "reason": "it floods the commons"})
        ask(admin, "POST", "/admin/unrevoke")
        ask(admin, "POST", "/admin/undeny")


def every_broken_file(world: World) -> None:
    commons = world.start("broken", open=True, clock=HandClock(datetime(2026, 12, 1, 12, tzinfo=UTC)))
    client = world.client(commons)
    for data in broken_files():
        publish(client, data)
    client.put(f"/commons/{ME.public.hex}.jsonl", content=b"", headers={"Content-Encoding": "gzip"})


def bearer_for(bearers: dict[str, str], method: str, path: str) -> str:
    """Return the token for a route: to offer is to publish."""
    return bearers["PUT" if path == wire.OFFER else method]


def bodies_that_do_not_come(world: World) -> None:
    commons = world.start("slow", body_seconds=0.1)
    bearers = {"PUT": commons.token(), "POST": admin_token(commons)}
    for method, route in world.routes:
        if method in bearers:
            path = route.format_map(VALUES)
            world.see(
                method, route, answer_to_half_a_body(commons.url, method, path, bearer_for(bearers, method, path))
            )


def bodies_that_break_off(world: World) -> None:
    commons = world.start("broken off")
    served = serving.make_server(create_app(commons.commons)).config.app
    bearers = {"PUT": commons.token(), "POST": admin_token(commons)}
    for method, route in world.routes:
        if method in bearers:
            path = route.format_map(VALUES)
            world.see(
                method,
                route,
                asyncio.run(answer_to_a_disconnect(served, method, path, bearer_for(bearers, method, path))),
            )


def too_much_at_once(world: World) -> None:
    """One file is being verified, and there is no place to wait."""
    commons = world.start("many", open=True, verify_threads=1, verify_queue=0)
    began, go_on = Event(), Event()

    def waits(*arguments: Any, **options: Any) -> Accepted:
        began.set()
        assert go_on.wait(60)
        return accept_file(*arguments, **options)

    with pytest.MonkeyPatch.context() as patched, ThreadPoolExecutor(1) as threads:
        patched.setattr(files, "accept_file", waits)
        first = threads.submit(publish, world.client(commons), file(ME, []))
        assert began.wait(60)
        assert publish(world.client(commons), file(ME, [])) == 503
        go_on.set()
        assert first.result(60) == 201


def too_much_in_a_while(world: World) -> None:
    commons = world.start("often", open=True, reads_per_minute=1, publishes_per_minute=1)
    client = world.client(commons)
    for _ in range(2):
        world.ask_all(client)
    keys = world.start("keys", open=True, new_keys_per_day=1)
    for signer in (ME, OTHER):
        publish(world.client(keys), file(signer, []), signer.public.hex)


def nodes_that_ask(world: World) -> None:
    """Ask as other nodes do, and as they must not."""
    commons = world.start("nodes", open=True)
    client = world.client(commons)
    host = client.base_url.netloc.decode()
    bodies = {
        wire.RECONCILE: Reconciler(Vector([])).initiate(),
        wire.FETCH: wire.write_fetch([bytes(32)]),
        wire.OFFER: wire.write_part(Whole(bytes(32), file(ME, []))),
    }
    for path, body in bodies.items():
        assert client.post(path, content=body).status_code == 200
        client.post(path, content=body, headers={"Content-Encoding": "gzip"})
        good = sign(ME, "POST", host, path, body, NOW)
        client.post(path, content=body + b" ", headers=good)
        late = sign(ME, "POST", host, path, body, NOW + timedelta(days=1))
        other = sign(ME, "PUT", host, path, body, NOW)
        inputs = good["Signature-Input"]
        for changed in (
            {"Signature": "?"},
            {"Signature-Input": inputs.replace('"@path" ', "")},
            {"Signature-Input": inputs.replace('alg="ed25519"', 'alg="rsa"')},
        ):
            client.post(path, content=body, headers={**good, **changed})
        for headers in (late, other, {"Signature": good["Signature"]}):
            client.post(path, content=body, headers=headers)
    busy = world.start("busy nodes", open=True, verify_threads=1, verify_queue=0)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Verifying, "check", _no_room)
        for path, body in bodies.items():
            world.client(busy).post(path, content=body)


def _no_room(_verifying: Verifying) -> None:
    raise errors.Busy("expected room, got none", 2)


def questions_without_an_end(world: World) -> None:
    world.ask_all(world.client(world.start("long")), params={"x": "x" * 16_384})


def a_database_that_is_gone(world: World) -> None:
    for private in (False, True):
        commons = world.start(f"gone, {private=}", private=private)
        client = world.client(commons, commons.token())
        with commons.engine.begin() as connection:
            connection.execute(text("UPDATE alembic_version SET version_num = '0001'"))
        client.get("/readyz")
        take_away(commons)
        # On the one that is private, the token alone asks for it.
        world.ask_all(client)


def an_error_of_our_own(world: World) -> None:
    """Whatever fails below, one handler answers it."""

    class Fails:
        def __init__(self, app: Any) -> None:
            self._app = app

        async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
            if scope["type"] == "http":
                raise RuntimeError("a mistake of our own")
            await self._app(scope, receive, send)

    def failing(commons: Any) -> FastAPI:
        app = create_app(commons)
        app.add_middleware(Fails)
        return app

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(testkit_server, "create_app", failing)
        world.ask_all(world.client(world.start("fails")))


# --- how it is asked ---


def admin_token(commons: ServedCommons) -> str:
    with writing(commons.engine) as connection:
        return tokens.create(connection, NOW, tokens.Terms(admin=True))[0]


def take_away(commons: ServedCommons) -> None:
    """Put something in the place of the database that is none."""
    commons.engine.dispose()
    place = commons.settings.data / DATABASE_NAME
    place.rename(place.with_suffix(".away"))
    place.mkdir()


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_every_documented_answer_is_given_and_no_other(start: Start) -> None:
    with ExitStack() as stack:
        world = World(start, stack)
        app = create_app(world.start("documentation").commons)
        wanted = documented(app)
        world.routes = sorted({answer[:2] for answer in wanted}, key=lambda route: "{" in route[1])
        for story in (
            everything_goes_well,
            what_is_not_there,
            what_tokens_are_not_good_for,
            what_stands_already,
            a_collision_of_origins,
            what_is_blocked,
            an_operator_who_cannot_speak,
            every_broken_file,
            bodies_that_do_not_come,
            bodies_that_break_off,
            too_much_at_once,
            too_much_in_a_while,
            questions_without_an_end,
            a_database_that_is_gone,
            an_error_of_our_own,
            nodes_that_ask,
        ):
            story(world)
    assert world.seen <= wanted, told(world.seen - wanted)
    assert wanted <= world.seen, told(wanted - world.seen)


def told(answers: set[Answer]) -> str:
    return "\n".join(" ".join(map(str, answer)) for answer in sorted(answers, key=str))
