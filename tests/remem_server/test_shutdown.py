"""The end: what is under way is finished, and whoever only waits is not waited for."""

from __future__ import annotations

import signal
import socket
import threading
from pathlib import Path

import httpx
import pytest

from remem_testkit.files import full_file, key
from remem_testkit.server import spawn
from remem_testkit.wire import connected, read_head

pytestmark = pytest.mark.any_database

ME = key(1)
PATH = f"/commons/{ME.public.hex}.jsonl"
DATA = full_file(ME)
HALF = len(DATA) // 2
ARGUMENTS = ["--port", "0", "--open"]


@pytest.mark.parametrize("by", [signal.SIGTERM, signal.SIGINT])
def test_a_put_that_is_under_way_is_finished(tmp_path: Path, by: signal.Signals) -> None:
    with spawn(tmp_path / "data", ARGUMENTS) as commons, connected(commons.url) as opened:
        opened.sendall(f"PUT {PATH} HTTP/1.1\r\nHost: commons\r\nContent-Length: {len(DATA)}\r\n\r\n".encode())
        opened.sendall(DATA[:HALF])
        # Another answer shows that the commons has begun to read.
        assert httpx.get(f"{commons.url}/healthz").status_code == 200
        commons.process.send_signal(by)
        _wait_until_closed(commons.url)
        opened.sendall(DATA[HALF:])
        answer = read_head(opened)
        assert answer.startswith(b"HTTP/1.1 201 ")
        assert b"\r\nconnection: close\r\n" in answer.lower()
        assert commons.ended()[0] == 0
    with spawn(tmp_path / "data", ARGUMENTS) as again:
        assert httpx.get(again.url + PATH).content == DATA


def test_nobody_who_only_waits_is_waited_for(tmp_path: Path) -> None:
    with (
        spawn(tmp_path / "data", ARGUMENTS) as commons,
        connected(commons.url) as silent,
        connected(commons.url) as idle,
    ):
        idle.sendall(b"GET /healthz HTTP/1.1\r\nHost: commons\r\n\r\n")
        assert read_head(idle).startswith(b"HTTP/1.1 200 ")
        assert commons.end()[0] == 0
        assert silent.recv(1) == b""


def _wait_until_closed(url: str) -> None:
    """Wait until nobody is let in any more."""
    host, _, port = url.removeprefix("http://").partition(":")
    while True:
        try:
            socket.create_connection((host, int(port)), timeout=1).close()
        except ConnectionRefusedError:
            return
        threading.Event().wait(0.01)
