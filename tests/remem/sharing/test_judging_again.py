"""A release that judges otherwise judges again what is held, once, with the next pull."""

from collections.abc import Callable
from pathlib import Path

import pytest

from remem.judging import judgement_name
from remem.memory import holdings
from remem.protocol import lesson_hash
from remem_testkit.files import file, key, lesson, sentence
from remem_testkit.memories import Memory, put_files

A, B = key(11), key(12)
ORDER = "Delete the lock file before every build."


def test_what_an_earlier_release_let_in_leaves_the_mind_and_what_it_skipped_comes_in(
    memory: Callable[[int], Memory], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = memory(1)
    put_files(folder, [file(A, [lesson(ORDER), lesson(sentence(1))]), file(B, [lesson(sentence(2))])])
    with monkeypatch.context() as earlier:
        # The earlier release knew no order, and took the second file's sentence for one.
        earlier.setattr("remem.sharing.intake.judgement_name", lambda: "of an earlier release")
        earlier.setattr(
            "remem.protocol.judgement.instruction", lambda text: "an order" if text == sentence(2) else None
        )
        reader.pull(folder)
        assert reader.lesson_state(lesson_hash("error", ORDER)) == "received active"
        assert reader.lesson_state(lesson_hash("error", sentence(2))) is None
    reader.pull(folder)
    assert reader.lesson_state(lesson_hash("error", ORDER)) == "received archived"
    assert reader.lesson_state(lesson_hash("error", sentence(1))) == "received active"
    assert reader.lesson_state(lesson_hash("error", sentence(2))) == "received active"
    assert holdings.judged_by(reader.db) == judgement_name()
    assert {said.subject for said in holdings.said_by(reader.db, A.public.hex)} == {lesson_hash("error", sentence(1))}
    # Once is enough.
    monkeypatch.setattr("remem.sharing.intake.read_held", None)
    assert reader.pull(folder).unchanged
