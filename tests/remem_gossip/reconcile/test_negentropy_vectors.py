"""Every vector of reconciliation, byte for byte, with this package on each side of it."""

from __future__ import annotations

import pytest

from remem_gossip.reconcile import Reconciler, Vector
from remem_gossip.reconcile.harness import answers

from . import negentropy_cases
from .negentropy_cases import CASES, Case, Side, converse, items_of

READ = negentropy_cases.read_cases()


def _side(case: Case, number: int) -> Reconciler:
    return Reconciler(Vector(items_of(case, number)), case["sides"][number]["frame_limit"])


def _speaker(case: Case, number: int) -> Side:
    lines = [f"item,{item.time},{item.id.hex()}" for item in items_of(case, number)] + ["seal"]
    out = answers(iter(lambda: lines.pop(0), ""), case["sides"][number]["frame_limit"])

    def speak(line: str) -> list[str]:
        lines.append(line)
        said = [next(out)]
        while said[-1].startswith(("have,", "need,")):
            said.append(next(out))
        return said

    return speak


@pytest.mark.parametrize("case", READ, ids=[case["name"] for case in READ])
def test_the_side_that_begins_sends_these_bytes_and_learns_these_ids(case: Case) -> None:
    side = _side(case, 0)
    sent, came = case["messages"][::2], case["messages"][1::2]
    assert side.initiate().hex() == sent[0]
    have, need = set(), set()
    for answer, following in zip(came, [*sent[1:], None], strict=True):
        step = side.reconcile(bytes.fromhex(answer))
        assert (step.message and step.message.hex()) == following
        have |= {one.hex() for one in step.have}
        need |= {one.hex() for one in step.need}
    assert sorted(have) == case["have"]
    assert sorted(need) == case["need"]


@pytest.mark.parametrize("case", READ, ids=[case["name"] for case in READ])
def test_the_side_that_answers_sends_these_bytes(case: Case) -> None:
    side = _side(case, 1)
    for message, answer in zip(case["messages"][::2], case["messages"][1::2], strict=True):
        assert side.answer(bytes.fromhex(message)).hex() == answer


@pytest.mark.parametrize("case", READ, ids=[case["name"] for case in READ])
def test_two_harnesses_have_this_conversation(case: Case) -> None:
    said = converse(_speaker(case, 0), _speaker(case, 1))
    assert said == {word: case[word] for word in ("messages", "have", "need")}


@pytest.mark.parametrize("case", READ, ids=[case["name"] for case in READ])
def test_a_vector_says_what_the_sides_lack_of_each_other(case: Case) -> None:
    first, second = ({item.id.hex() for item in items_of(case, number)} for number in (0, 1))
    assert case["have"] == sorted(first - second)
    assert case["need"] == sorted(second - first)


@pytest.mark.parametrize("case", READ, ids=[case["name"] for case in READ])
def test_no_message_of_a_vector_is_over_its_frame_limit(case: Case) -> None:
    for number in (0, 1):
        limit = case["sides"][number]["frame_limit"]
        assert not limit or all(len(one) <= 2 * limit for one in case["messages"][number::2])


def test_the_vectors_are_of_the_cases_that_are_written_down() -> None:
    assert [{key: case[key] for key in ("name", "items", "sides")} for case in READ] == list(CASES)
