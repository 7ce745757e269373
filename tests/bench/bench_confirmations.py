"""400 confirmations of one lesson from 400 admitted keys, 8 at a time: all of them must count.

Each key has a token of its own, and confirms in a file of its own. The commons is a
process of its own. The measure is the same number of confirmations one at a time.
"""

from __future__ import annotations

import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.table import Bound, report
from remem.protocol import lesson_hash
from remem_server.database.engine import open_sqlite
from remem_testkit.files import confirmation, file, key, lesson, sentence
from remem_testkit.server import new_token, spawn

KEYS = 400
AT_A_TIME = 8
PUBLISHER = 1_000


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "data"
        # All of it comes from one address.
        with spawn(data, REMEM_PUBLISHES_PER_MINUTE="1000000") as commons:
            engine = open_sqlite(data)
            tokens = {number: new_token(engine) for number in [PUBLISHER, *range(2 * KEYS)]}
            engine.dispose()
            limits = httpx.Limits(max_connections=AT_A_TIME, max_keepalive_connections=AT_A_TIME)
            with httpx.Client(base_url=commons.url, timeout=60, limits=limits) as client:
                report_on(client, tokens)


def report_on(client: httpx.Client, tokens: dict[int, str]) -> None:
    """Publish two lessons and confirm each: one with confirmations in turn, one with 8 at a time."""
    lessons = [lesson(sentence(number)) for number in (1, 2)]
    hashes = [lesson_hash("error", sentence(number)) for number in (1, 2)]
    files = {PUBLISHER: file(key(PUBLISHER), lessons)}
    for number in range(2 * KEYS):
        files[number] = file(key(number), [confirmation(hashes[number // KEYS])])

    def publish(number: int) -> None:
        headers = {"Authorization": f"Bearer {tokens[number]}"}
        path = f"/commons/{key(number).public.hex}.jsonl"
        answer = client.put(path, content=files[number], headers=headers)
        assert answer.status_code == 201, answer.text

    publish(PUBLISHER)
    started = time.perf_counter()
    for number in range(KEYS):
        publish(number)
    between = time.perf_counter()
    with ThreadPoolExecutor(AT_A_TIME) as threads:
        list(threads.map(publish, range(KEYS, 2 * KEYS)))
    ended = time.perf_counter()
    counted = [client.get(f"/commons/lessons/{one}").json()["confirmations"] for one in hashes]
    seconds = {
        f"{KEYS} confirmations in turn": between - started,
        f"{KEYS} confirmations, {AT_A_TIME} at a time": ended - between,
    }
    bounds = [
        Bound("counted of those in turn", counted[0] / KEYS, least=1.0),
        Bound(f"counted of those {AT_A_TIME} at a time", counted[1] / KEYS, least=1.0),
        Bound("at a time / in turn", (ended - between) / (between - started)),
    ]
    report(f"{counted[0]} and {counted[1]} of {KEYS} counted", seconds, bounds)


if __name__ == "__main__":
    main()
