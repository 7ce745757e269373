"""The line-based harness: what it answers, and that it answers at once."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import remem_gossip
from remem_gossip.reconcile import BadFrame
from remem_gossip.reconcile.harness import answers

ID = "ee" * 32
ITEM = f"item,12345,{ID}"


@pytest.fixture
def harness() -> Iterator[subprocess.Popen[str]]:
    paths = [str(Path(remem_gossip.__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    process = subprocess.Popen(
        [sys.executable, "-m", "remem_gossip.reconcile"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(paths), "FRAMESIZELIMIT": "4096"},
    )
    with process:
        yield process
        process.kill()


def test_it_answers_each_line_before_the_next_comes(harness: subprocess.Popen[str]) -> None:
    assert harness.stdin is not None
    assert harness.stdout is not None
    harness.stdin.write(f"{ITEM}\nseal\ninitiate\n")
    harness.stdin.flush()
    assert harness.stdout.readline() == f"msg,6100000201{ID}\n"
    harness.stdin.write("msg,6100000200\n")
    harness.stdin.flush()
    assert [harness.stdout.readline() for _ in range(2)] == [f"have,{ID}\n", "done\n"]
    harness.communicate()
    assert harness.returncode == 0


def test_it_ends_with_1_where_it_cannot_answer(harness: subprocess.Popen[str]) -> None:
    said, complaint = harness.communicate("seal\nmsg,61ff\n")
    assert (harness.returncode, said) == (1, "")
    assert complaint.startswith("remem: error: expected ")


def test_another_version_is_answered_and_the_talk_goes_on() -> None:
    said = list(answers([ITEM, "seal", "msg,62aabbccddeeff", "msg,6100000200"]))
    assert said == ["msg,61", f"msg,6100000201{ID}"]


def test_empty_lines_say_nothing() -> None:
    assert list(answers(["\n", ITEM, "", "seal\r\n", "initiate\n"])) == [f"msg,6100000201{ID}"]


@pytest.mark.parametrize(
    "lines",
    [
        pytest.param(["initiate"], id="before-the-items-end"),
        pytest.param(["seal", "seal"], id="the-items-end-twice"),
        pytest.param(["seal", ITEM], id="an-item-behind-the-end"),
        pytest.param(["seal", "initiate", "initiate"], id="it-begins-twice"),
        pytest.param(["item,1"], id="an-item-without-an-id"),
        pytest.param(["item,1,zz"], id="an-id-that-is-not-hex"),
        pytest.param([ITEM, ITEM, "seal"], id="an-item-twice"),
        pytest.param(["hello"], id="an-unknown-word"),
    ],
)
def test_lines_that_cannot_be_are_refused(lines: list[str]) -> None:
    with pytest.raises(ValueError, match=r"."):
        list(answers(lines))


def test_a_message_that_is_none_is_a_bad_frame() -> None:
    with pytest.raises(BadFrame, match="expected 1 more byte of the message, got 0"):
        list(answers(["seal", "msg,"]))
