"""The node's own key: made once, its owner's alone, never half written."""

from __future__ import annotations

import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from remem.errors import RememError
from remem_server.node import KEY_NAME, load_key


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
