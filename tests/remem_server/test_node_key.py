"""The node's own key: made once, its owner's alone, never half written."""

from __future__ import annotations

import stat
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest

from remem.errors import RememError
from remem.protocol import SigningKey
from remem_server.opening import node
from remem_server.opening.node import KEY_NAME, load_key
from remem_server.opening.opened import open_commons
from remem_testkit.postgres import fresh_database
from remem_testkit.server import HandClock, make_settings


def test_the_key_is_made_once_and_for_its_owner_alone(tmp_path: Path) -> None:
    made = load_key(tmp_path)
    assert load_key(tmp_path).public == made.public
    assert stat.S_IMODE((tmp_path / KEY_NAME).stat().st_mode) == 0o600
    assert (tmp_path / KEY_NAME).read_text() == made.seed.hex() + "\n"
    assert [found.name for found in tmp_path.iterdir()] == [KEY_NAME]


def test_starts_at_once_end_with_one_key(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as threads:
        made = list(threads.map(load_key, [tmp_path] * 8))
    assert len({key.public for key in made}) == 1
    assert [found.name for found in tmp_path.iterdir()] == [KEY_NAME]


def test_first_starts_at_once_over_one_database_end_with_one_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    together = threading.Barrier(2, timeout=1)

    def slow(data: Path) -> SigningKey:
        # Both are between reading which key it is and writing it down, if nothing keeps one of them out.
        with suppress(threading.BrokenBarrierError):
            together.wait()
        return load_key(data)

    monkeypatch.setattr(node, "load_key", slow)
    with fresh_database() as url:

        def start(name: str) -> str:
            try:
                with open_commons(
                    make_settings(tmp_path / name, database_url=url), HandClock(), serves=True
                ) as commons:
                    return commons.key.public.hex
            except RememError as error:
                return str(error)

        with ThreadPoolExecutor(2) as pool:
            ended = list(pool.map(start, ["first", "second"]))
        made = [one for one in ended if not one.startswith("expected the key of node ")]
        assert len(made) == 1
        assert start("first" if ended[0] == made[0] else "second") == made[0]


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o644])
def test_a_key_that_others_may_use_is_refused(tmp_path: Path, mode: int) -> None:
    load_key(tmp_path)
    (tmp_path / KEY_NAME).chmod(mode)
    with pytest.raises(RememError, match="others may read") as refused:
        load_key(tmp_path)
    assert refused.value.hint == f"chmod 600 {tmp_path / KEY_NAME}"


@pytest.mark.parametrize("content", ["", "x", "0" * 63, "0" * 65, "G" * 64, "0" * 64 + "\n\n"])
def test_a_file_that_is_no_key_is_refused_and_left_alone(tmp_path: Path, content: str) -> None:
    path = tmp_path / KEY_NAME
    path.write_text(content)
    path.chmod(0o600)
    with pytest.raises(RememError, match="64 hex digits"):
        load_key(tmp_path)
    assert path.read_text() == content
