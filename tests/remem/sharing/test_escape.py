"""What others wrote, on a person's terminal."""

import base64
import json
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remem.sharing.escape import printable

CASES = {
    "a plain sentence stays": ("The lock file was stale", "The lock file was stale"),
    "letters of any script stay": ("Größe, Δοκιμή, 試験, اختبار", "Größe, Δοκιμή, 試験, اختبار"),
    "a line break is spelled": ("one\ntwo\r\n", "one\\ntwo\\r\\n"),
    "a tab is spelled": ("one\ttwo", "one\\ttwo"),
    "an escape sequence is spelled": ("\x1b[2J\x1b]0;title\x07", "\\x1b[2J\\x1b]0;title\\x07"),
    "an 8-bit control is spelled": ("\x9b2J", "\\x9b2J"),
    "a change of direction is spelled": ("a\u202eb\u2066c", "a\\u202eb\\u2066c"),
    "a hidden mark is spelled": ("a\u200bb\u00adc\ufeff", "a\\u200bb\\xadc\\ufeff"),
    "an unpaired surrogate is spelled": ("\ud800x", "\\ud800x"),
    "a tag is spelled": ("\U000e0041", "\\U000e0041"),
    "a private-use character is spelled": ("\ue000", "\\ue000"),
    "a line separator is spelled": ("a\u2028b", "a\\u2028b"),
    "nothing is nothing": ("", ""),
}


@pytest.mark.parametrize(("text", "shown"), CASES.values(), ids=CASES.keys())
def test_what_could_move_a_terminal_is_spelled(text: str, shown: str) -> None:
    assert printable(text) == shown


@given(st.text(st.characters(blacklist_categories=())))
def test_what_is_shown_is_one_line_without_a_control_and_can_be_written(text: str) -> None:
    shown = printable(text)
    assert not {unicodedata.category(char) for char in shown} & {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"}
    assert len(shown.splitlines()) <= 1
    shown.encode()


def test_the_naughty_strings_are_tamed(shared_dir: Path) -> None:
    strings = json.loads((shared_dir / "vectors/blns/blns.json").read_text("utf-8"))
    encoded = json.loads((shared_dir / "vectors/blns/blns.base64.json").read_text("utf-8"))
    strings += [base64.b64decode(one).decode("utf-8", "surrogateescape") for one in encoded]
    assert len(strings) > 500
    for text in strings:
        shown = printable(text)
        assert not {unicodedata.category(char) for char in shown} & {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"}
