"""A commons that is killed: what it acknowledged stands after a restart, and what stands is whole.

It kills itself at moments of a PUT at which something could stay half done, while others write too. The bench
`bench_crash.py` does it a thousand times, at every such moment.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import httpx
import pytest

from remem_testkit.crashes import NO_LIMITS, Place, live_and_die, points_of
from remem_testkit.files import NOW, file, key, lesson, sentence
from remem_testkit.load import WRITERS, Ledger, load
from remem_testkit.mortal import ANY_MOMENT, AROUND_ANSWER, AROUND_COMMIT, BEFORE, Doom
from remem_testkit.postgres import fresh_database
from remem_testkit.server import CommonsProcess, prepared, spawn, verify_everything_stored
from remem_testkit.wire import connected, read_head

SPREAD = 3


# --- it dies at a moment that was chosen ---


@pytest.mark.parametrize("open_", [True, False], ids=["open", "closed"])
def test_a_commons_that_dies_in_the_midst_of_a_put_keeps_what_it_acknowledged_and_nothing_in_pieces(
    tmp_path: Path, place: Callable[[str], dict[str, Any]], *, open_: bool
) -> None:
    commons = Place.make(tmp_path / "data", open_=open_, **place("data"))
    points = points_of(commons)
    assert {BEFORE, *AROUND_COMMIT, *AROUND_ANSWER} < set(points)
    assert {f"after INSERT {table}" for table in ("files", "contents", "statements", "lessons")} < set(points)
    statements = [point for point in points if point.startswith("after ") and point.split()[1].isupper()]
    chosen = [BEFORE, *statements[:: len(statements) // SPREAD], *AROUND_COMMIT, *AROUND_ANSWER, ANY_MOMENT]
    for number, point in enumerate(chosen):
        death = live_and_die(commons, Doom(point, skip=number % 4))
        assert death.is_clean, (point, death)
        # The answer that came whole is an acknowledgement, and the other two are none.
        assert death.found.unheard <= WRITERS, (point, death.found)


@pytest.mark.parametrize("fault", ["loses", "halves"])
def test_a_commons_that_does_lose_or_halve_a_file_is_found_out(
    tmp_path: Path, place: Callable[[str], dict[str, Any]], fault: Literal["loses", "halves"]
) -> None:
    commons = Place.make(tmp_path / "data", open_=True, **place("data"))
    death = live_and_die(commons, Doom("after the answer", skip=3, fault=fault))
    assert bool(death.found.lost) == (fault == "loses")
    assert bool(death.halves) == (fault == "halves")


def test_a_server_that_dies_holds_up_no_other_server_of_its_commons(tmp_path: Path) -> None:
    with fresh_database() as url:
        commons = Place.make(tmp_path / "data", open_=True, database_url=url)
        with commons.served() as survivor, load(survivor.url, commons.ledger, writers=2) as writers:
            for point in ("after SELECT meta", "after INSERT lessons", "before the commit"):
                theirs = Ledger(first=500)
                with commons.served(Doom(point)) as served, load(served.url, theirs, writers=1):
                    assert served.is_dead_by(lambda: False)
                writers.wait_for(5, seconds=30)
        found, wrong = commons.examined()
    assert writers.statuses.keys() <= {(200, None), (201, None)}
    assert (found.lost, found.never_sent, wrong) == ([], [], [])


# --- the program itself, as it is installed ---


@pytest.mark.parametrize("round_", range(2))
def test_the_program_that_is_killed_keeps_what_it_acknowledged(
    tmp_path: Path, place: Callable[[str], dict[str, Any]], round_: int
) -> None:
    data, options = tmp_path / "data", place("data")
    commons = Place(data, {**options, "open": True})
    variables = {f"REMEM_{name.upper()}": str(value) for name, value in {**NO_LIMITS, **options}.items()}
    with spawn(data, ["--port", "0", "--open"], **variables) as served, load(served.url, commons.ledger) as writers:
        writers.wait_for(20)
        served.end(signal.SIGKILL)
    sent = {number: page.sent for number, page in commons.ledger.pages.items()}
    found, wrong = commons.examined()
    assert found.keys
    assert (found.lost, found.never_sent, wrong) == ([], [], [])
    with spawn(data, ["--port", "0", "--open"], **variables) as again, httpx.Client(base_url=again.url) as client:
        for number, files in sent.items():
            answer = client.get(f"/commons/{key(number).public.hex}.jsonl")
            assert answer.content in files if answer.is_success else number not in commons.ledger.pages
        with load(again.url, commons.ledger) as writers:
            writers.wait_for(10)


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
    with prepared(tmp_path / "data") as commons:
        engine = commons.engine
        assert [stored.data for stored in verify_everything_stored(engine, NOW)] == [data]


def key_served_at(url: str) -> str | None:
    """Ask which commons serves there; whoever else took the port since then is another one, or none."""
    try:
        answer = httpx.get(f"{url}/.well-known/remem", timeout=5, trust_env=False)
        return str(answer.json()["key"])
    except (httpx.TransportError, ValueError, KeyError):
        return None
