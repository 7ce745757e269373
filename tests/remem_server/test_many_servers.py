"""Several servers over one PostgreSQL: whichever of them is asked, there is one commons."""

from __future__ import annotations

import shutil
import ssl
import subprocess
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from random import Random
from typing import Any

import httpx
import pytest

from remem.protocol import SigningKey, accept
from remem_server.opening.node import KEY_NAME, load_key
from remem_server.settings import system_clock
from remem_server.upkeep.audit import audit
from remem_testkit.crowd import UNLIMITED
from remem_testkit.files import NOW, confirmation, file, key, lesson, sentence
from remem_testkit.postgres import made_database
from remem_testkit.server import operator_command, plain_environment, prepared, spawn, verify_everything_stored

SERVERS = 3
# Reading the certificates of the machine takes longer than most tests.
_NO_TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
# A connection that was idle for five seconds is closed by the server, which a client may learn too late.
_LIMITS = httpx.Limits(keepalive_expiry=1)


@dataclass
class Servers:
    """Servers of one commons.

    Attributes:
        clients: one of each.
        folders: their data folders.
        variables: what all of them were started with.
        admin: the header of an admin token.
    """

    clients: list[httpx.Client]
    folders: list[Path]
    variables: dict[str, str]
    admin: dict[str, str]

    def act(self, server: int, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """Let the operator act on one of them."""
        answer = self.clients[server].post(f"/admin/{path}", json=body, headers=self.admin)
        assert answer.is_success, answer.text
        return dict(answer.json())

    def put(self, server: int, signer: SigningKey, data: bytes, token: str) -> httpx.Response:
        """Publish a file on one of them."""
        return self.clients[server].put(path_of(signer), content=data, headers=bearer(token))

    def answers(self, path: str) -> list[httpx.Response]:
        """Ask all of them the same."""
        return [client.get(path) for client in self.clients]


def path_of(signer: SigningKey) -> str:
    return f"/commons/{signer.public.hex}.jsonl"


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    """Return three servers that were started at once, over a database that was new to them, and audit it at the end."""
    folder = tmp_path_factory.mktemp("servers")
    folders = [folder / str(number) for number in range(SERVERS)]
    for one in folders:
        one.mkdir(mode=0o700)
    load_key(folders[0])
    for one in folders[1:]:
        shutil.copy2(folders[0] / KEY_NAME, one)
    with made_database() as url:
        variables = {**UNLIMITED, "REMEM_DATABASE_URL": url}
        with ExitStack() as stack, ThreadPoolExecutor(SERVERS) as pool:
            started = list(pool.map(lambda data: stack.enter_context(spawn(data, **variables)), folders))
            clients = [
                stack.enter_context(httpx.Client(base_url=commons.url, timeout=60, verify=_NO_TLS, limits=_LIMITS))
                for commons in started
            ]
            # A first start of a commons makes one token, however many servers it has.
            assert sum(commons.token is not None for commons in started) == 1
            admin = token_by_command(folders[0], variables, "--admin")
            yield Servers(clients, folders, variables, bearer(admin))
        with prepared(folders[0], system_clock, database_url=url) as commons:
            verify_everything_stored(commons.engine, NOW)
            assert list(audit(commons.engine, system_clock(), node=commons.key.public.hex)) == []


def token_by_command(data: Path, variables: dict[str, str], *options: str) -> str:
    command = operator_command("token", "create", "--data", str(data), *options)
    ended = subprocess.run(command, env=plain_environment(**variables), check=True, capture_output=True, text=True)
    return ended.stdout.strip()


@pytest.fixture
def token(servers: Servers) -> Callable[..., str]:
    """Return a function that makes a token on one of the servers."""

    def token(server: int = 0, **asked: Any) -> str:
        return str(servers.act(server, "tokens", asked)["token"])

    return token


def spread(servers: Servers, signer: SigningKey, files: list[bytes], token: str) -> list[httpx.Response]:
    """Publish files of one key, each on the next server, several at a time."""
    with ThreadPoolExecutor(3 * SERVERS) as pool:
        jobs = [pool.submit(servers.put, number % SERVERS, signer, data, token) for number, data in enumerate(files)]
        return [job.result() for job in jobs]


def test_of_many_files_of_a_key_at_once_the_newest_stands_on_every_server(
    servers: Servers, token: Callable[..., str]
) -> None:
    me = key(1)
    files = [
        file(
            me,
            [lesson(sentence(line)) for line in range(number % 7, number % 7 + 10)],
            at=NOW + timedelta(seconds=number),
        )
        for number in range(45)
    ]
    Random(7).shuffle(files)
    answers = spread(servers, me, files, token())
    assert {answer.status_code for answer in answers} <= {200, 201, 409}
    assert sum(answer.status_code == 201 for answer in answers) == 1
    newest = max(files, key=lambda data: accept(data, now=NOW).version.seal or 0)
    assert [answer.content for answer in servers.answers(path_of(me))] == [newest] * SERVERS
    assert len({answer.headers["ETag"] for answer in servers.answers(path_of(me))}) == 1


def test_one_token_publishes_for_one_key_however_many_servers_are_asked_at_once(
    servers: Servers, token: Callable[..., str]
) -> None:
    secret = token()
    signers = [key(10 + number) for number in range(4 * SERVERS)]

    def publish(number: int) -> int:
        data = file(signers[number], [lesson(sentence(100))])
        return servers.put(number % SERVERS, signers[number], data, secret).status_code

    with ThreadPoolExecutor(len(signers)) as pool:
        statuses = list(pool.map(publish, range(len(signers))))
    assert sorted(statuses) == [201] + [403] * (len(signers) - 1)


def test_files_of_many_keys_at_once_are_all_there_and_all_counted(servers: Servers, token: Callable[..., str]) -> None:
    author, confirmers = key(30), [key(40 + number) for number in range(36)]
    subject = lesson(sentence(200))
    assert servers.put(0, author, file(author, [subject]), token()).status_code == 201
    before = int(servers.clients[0].get("/commons/index").headers["Remem-Cursor"])
    tokens = [token(number % SERVERS) for number in range(len(confirmers))]

    def confirm(number: int) -> int:
        data = file(confirmers[number], [confirmation(str(subject["hash"])), lesson(sentence(300 + number % 5))])
        # Not the server that made the token.
        return servers.put((number + 1) % SERVERS, confirmers[number], data, tokens[number]).status_code

    with ThreadPoolExecutor(4 * SERVERS) as pool:
        assert set(pool.map(confirm, range(len(confirmers)))) == {201}
    for answer in servers.answers(f"/commons/lessons/{subject['hash']}"):
        assert answer.json()["confirmations"] == len(confirmers)
    pages = servers.answers(f"/commons/index?since={before}")
    assert len({page.content for page in pages}) == 1
    assert {entry["key"] for entry in pages[0].json()} == {signer.public.hex for signer in confirmers}
    corroborated = lesson(sentence(300))["hash"]
    for answer in servers.answers(f"/commons/lessons/{corroborated}"):
        assert answer.json()["corroborations"] == len(range(0, len(confirmers), 5)) - 1


def test_a_token_that_a_command_makes_beside_one_server_is_good_on_another_at_once(servers: Servers) -> None:
    me = key(80)
    secret = token_by_command(servers.folders[2], servers.variables)
    assert servers.put(0, me, file(me, [lesson(sentence(400))]), secret).status_code == 201


def test_a_token_that_is_revoked_on_one_server_is_refused_on_another_at_once(
    servers: Servers, token: Callable[..., str]
) -> None:
    me, secret = key(81), token(0)
    assert servers.put(1, me, file(me, []), secret).status_code == 201
    entries = servers.clients[2].get("/admin/tokens", headers=servers.admin).json()
    number = next(entry["id"] for entry in entries if entry["key"] == me.public.hex)
    servers.act(2, f"tokens/{number}/revoke", {})
    for server in range(SERVERS):
        refused = servers.put(server, me, file(me, [], at=NOW + timedelta(hours=1)), secret)
        assert (refused.status_code, refused.json()["code"]) == (401, "token_revoked")


def test_an_act_of_the_operator_on_one_server_holds_on_all(servers: Servers, token: Callable[..., str]) -> None:
    author, flooder, secret = key(90), key(91), token()
    poison = lesson(sentence(500))
    servers.put(0, author, file(author, [poison]), token())
    servers.put(1, flooder, file(flooder, [lesson(sentence(501))]), secret)
    assert servers.act(2, "revoke", {"hash": poison["hash"], "reason": "it is poisoned"})["outcome"] == "done"
    assert servers.act(1, "block", {"key": flooder.public.hex, "reason": "it floods"})["outcome"] == "done"
    for answer in servers.answers(f"/commons/lessons/{poison['hash']}"):
        assert (answer.json()["state"], answer.json()["cause"]) == ("revoked", "revoker")
    assert {answer.status_code for answer in servers.answers(path_of(flooder))} == {410}
    for server in range(SERVERS):
        refused = servers.put(server, flooder, file(flooder, [], at=NOW + timedelta(hours=1)), secret)
        assert (refused.status_code, refused.json()["code"]) == (410, "blocked")
    # What one server has done, another does not do again.
    assert servers.act(0, "revoke", {"hash": poison["hash"], "reason": "it is poisoned"})["outcome"] == "already"
    logs = [client.get("/admin/journal?limit=1000", headers=servers.admin).json()["acts"] for client in servers.clients]
    assert logs[0] == logs[1] == logs[2]
    assert sum(row["act"] == "revoke" for row in logs[0]) == 1


def test_acts_of_the_operator_on_all_servers_at_once_are_all_in_the_nodes_file(
    servers: Servers, token: Callable[..., str]
) -> None:
    author = key(95)
    poisons = [lesson(sentence(600 + number)) for number in range(2 * SERVERS)]
    servers.put(0, author, file(author, poisons), token())

    def revoke(number: int) -> str:
        body = {"hash": poisons[number]["hash"], "reason": "it is poisoned"}
        return str(servers.act(number % SERVERS, "revoke", body)["outcome"])

    with ThreadPoolExecutor(len(poisons)) as pool:
        assert set(pool.map(revoke, range(len(poisons)))) == {"done"}
    for poison in poisons:
        for answer in servers.answers(f"/commons/lessons/{poison['hash']}"):
            assert answer.json()["state"] == "revoked"
