"""A commons that is killed: what it acknowledged stands after a restart, and what stands is whole."""

from __future__ import annotations

import signal
import threading
import time
from datetime import timedelta
from pathlib import Path

import httpx
import pytest

from remem_testkit.files import NOW, file, key, lesson, sentence
from remem_testkit.server import CommonsProcess, prepared, spawn, verify_everything_stored
from remem_testkit.wire import connected, read_head

WRITERS = 4


class Writer(threading.Thread):
    """Publishes newer and newer files of one key until the commons is gone."""

    def __init__(self, url: str, number: int, ready: threading.Semaphore) -> None:
        super().__init__(daemon=True)
        self._url = f"{url}/commons/{key(number).public.hex}.jsonl"
        self._number, self._ready = number, ready
        self.sent: list[bytes] = []
        self.acknowledged = 0

    def run(self) -> None:
        lines = [lesson(sentence(number)) for number in range(40)]
        with httpx.Client(timeout=60) as client:
            for second in range(10_000):
                data = file(key(self._number), lines[second % 20 :], at=NOW + timedelta(seconds=second))
                self.sent.append(data)
                try:
                    answer = client.put(self._url, content=data)
                except httpx.TransportError:
                    return
                assert answer.status_code in (200, 201), answer.text
                self.acknowledged += 1
                if self.acknowledged == 3:
                    self._ready.release()


@pytest.mark.parametrize("round_", range(3))
def test_a_commons_that_is_killed_keeps_what_it_acknowledged_and_nothing_in_pieces(tmp_path: Path, round_: int) -> None:
    data = tmp_path / "data"
    ready = threading.Semaphore(0)
    with spawn(data, ["--port", "0", "--open"]) as commons:
        writers = [Writer(commons.url, number, ready) for number in range(WRITERS)]
        for writer in writers:
            writer.start()
        for _ in writers:
            assert ready.acquire(timeout=60)
        commons.end(signal.SIGKILL)
        for writer in writers:
            writer.join(60)
    with prepared(data) as engine:
        stands = {stored.key.hex: stored.data for stored in verify_everything_stored(engine, NOW)}
    for number, writer in enumerate(writers):
        # The last one may have been stored without its writer learning of it.
        may_stand = writer.sent[writer.acknowledged - 1 : writer.acknowledged + 1]
        assert stands[key(number).public.hex] in may_stand
    with spawn(data, ["--port", "0", "--open"]) as again, httpx.Client(base_url=again.url) as client:
        for name, stored in stands.items():
            assert client.get(f"/commons/{name}.jsonl").content == stored
        newer = file(key(0), [], at=NOW + timedelta(hours=12))
        assert client.put(f"/commons/{key(0).public.hex}.jsonl", content=newer).json()["outcome"] == "newer"


def test_a_restart_keeps_files_tokens_and_the_nodes_key(tmp_path: Path) -> None:
    data = tmp_path / "data"
    path = f"/commons/{key(1).public.hex}.jsonl"
    stored = file(key(1), [lesson(sentence(1))])

    def visit(commons: CommonsProcess, token: str | None) -> tuple[httpx.Response, list[object]]:
        with httpx.Client(base_url=commons.url, headers={"Authorization": f"Bearer {token}"}) as client:
            answer = client.put(path, content=stored)
            descriptor, index = client.get("/.well-known/remem"), client.get("/commons/index")
            return answer, [descriptor.json(), index.json(), index.headers["ETag"], index.headers["Remem-Cursor"]]

    with spawn(data) as first:
        token = first.token
        answer, before = visit(first, token)
        assert answer.status_code == 201
        assert first.end()[0] == 0
    with spawn(data) as second:
        assert second.token is None
        answer, after = visit(second, token)
    assert answer.json()["outcome"] == "unchanged"
    assert after == before


@pytest.mark.parametrize("by", [signal.SIGINT, signal.SIGTERM])
def test_a_commons_that_is_asked_to_end_finishes_what_is_under_way(tmp_path: Path, by: signal.Signals) -> None:
    data = file(key(1), [lesson(sentence(1))])
    head = (
        f"PUT /commons/{key(1).public.hex}.jsonl HTTP/1.1\r\nHost: commons\r\n"
        f"Content-Length: {len(data)}\r\nExpect: 100-continue\r\n\r\n"
    )
    with spawn(tmp_path / "data", ["--port", "0", "--open"]) as commons:
        node = key_served_at(commons.url)
        assert node is not None
        with connected(commons.url) as opened:
            opened.sendall(head.encode())
            assert read_head(opened).startswith(b"HTTP/1.1 100 ")
            commons.process.send_signal(by)
            deadline = time.monotonic() + 60
            while key_served_at(commons.url) == node:
                assert time.monotonic() < deadline, "expected it to serve nobody new, got an answer"
                time.sleep(0.01)
            opened.sendall(data)
            assert read_head(opened).startswith(b"HTTP/1.1 201 ")
        assert commons.process.wait(60) == 0
    with prepared(tmp_path / "data") as engine:
        assert [stored.data for stored in verify_everything_stored(engine, NOW)] == [data]


def key_served_at(url: str) -> str | None:
    """Ask which commons serves there; whoever else took the port since then is another one, or none."""
    try:
        answer = httpx.get(f"{url}/.well-known/remem", timeout=5, trust_env=False)
        return str(answer.json()["key"])
    except (httpx.TransportError, ValueError, KeyError):
        return None
