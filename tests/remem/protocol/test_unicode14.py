"""The tables of Unicode 14: against the interpreter that speaks it, later interpreters and the case files."""

import runpy
import sys
import unicodedata
from collections.abc import Iterator
from pathlib import Path

import pytest

from remem.protocol import unicode14
from remem.protocol.unicode14 import LOWER, WHITE_SPACE, class_of

OF_CATEGORY = {"Cc": "c", "Cf": "f", "Co": "p", "Cn": "u", "Cs": "u"}
LINE_BREAKS = "\n\v\f\r\x85\u2028\u2029"

speaks_14 = pytest.mark.skipif(
    unicodedata.unidata_version != "14.0.0",
    reason=f"this interpreter speaks Unicode {unicodedata.unidata_version}; Python 3.11 speaks 14.0.0",
)


def every_code_point() -> Iterator[str]:
    return map(chr, range(sys.maxunicode + 1))


@speaks_14
def test_the_shipped_tables_are_the_derived_ones() -> None:
    maker = runpy.run_path(str(Path(__file__).with_name("make_unicode14.py")))
    assert list(maker["classes"]()) == unicode14.CLASSES.split()
    assert list(maker["lower"]()) == unicode14.LOWER_RUNS.split()


@speaks_14
def test_every_code_point_has_the_class_of_its_general_category() -> None:
    def expected(char: str) -> str:
        return "l" if char in LINE_BREAKS else OF_CATEGORY.get(unicodedata.category(char), "a")

    assert [char for char in every_code_point() if class_of(char) != expected(char)] == []


@speaks_14
def test_every_code_point_has_the_lower_case_of_unicode_14() -> None:
    assert [char for char in every_code_point() if LOWER.get(char, char) != char.lower()] == []


def test_a_later_unicode_takes_nothing_back() -> None:
    """What is assigned stays so, and no code point joins or leaves the controls or private use."""
    strange = []
    for char in every_code_point():
        ours, theirs = class_of(char), OF_CATEGORY.get(unicodedata.category(char), "a")
        if (ours != "u" and theirs == "u") or (ours != "l" and (ours in "cp" or theirs in "cp") and ours != theirs):
            strange.append(char)
    assert strange == []


@pytest.mark.parametrize(
    ("char", "expected"),
    [
        pytest.param("a", unicode14.ASSIGNED, id="a letter"),
        pytest.param(" ", unicode14.ASSIGNED, id="the space"),
        pytest.param("\u3000", unicode14.ASSIGNED, id="the ideographic space"),
        pytest.param("\ufffd", unicode14.ASSIGNED, id="the replacement character"),
        pytest.param("\U0001f6d8", unicode14.UNASSIGNED, id="a hole in 14"),
        pytest.param("\U0001fae8", unicode14.UNASSIGNED, id="the shaking face, of 15"),
        pytest.param("\u0cf3", unicode14.UNASSIGNED, id="a Kannada sign, of 15"),
        pytest.param("\U0001fae6", unicode14.ASSIGNED, id="the biting lip, of 14"),
        pytest.param("\ufdd0", unicode14.UNASSIGNED, id="a noncharacter"),
        pytest.param("\U0010ffff", unicode14.UNASSIGNED, id="the last code point"),
        pytest.param("\ud800", unicode14.UNASSIGNED, id="the first surrogate"),
        pytest.param("\udfff", unicode14.UNASSIGNED, id="the last surrogate"),
        pytest.param("\ue000", unicode14.PRIVATE_USE, id="the first of private use"),
        pytest.param("\U0010fffd", unicode14.PRIVATE_USE, id="the last of private use"),
        pytest.param("\0", unicode14.CONTROL, id="the first code point"),
        pytest.param("\t", unicode14.CONTROL, id="the tabulator"),
        pytest.param("\x1c", unicode14.CONTROL, id="the file separator breaks no line"),
        pytest.param("\x9f", unicode14.CONTROL, id="the last control"),
        pytest.param("\xad", unicode14.FORMAT, id="the soft hyphen"),
        pytest.param("\u200d", unicode14.FORMAT, id="the joiner of emoji"),
        pytest.param("\u202e", unicode14.FORMAT, id="the override of direction"),
        pytest.param("\ufeff", unicode14.FORMAT, id="the byte order mark"),
        pytest.param("\U000e0041", unicode14.FORMAT, id="a tag letter"),
        *(pytest.param(c, unicode14.LINE_BREAK, id=f"a line break, U+{ord(c):04X}") for c in LINE_BREAKS),
    ],
)
def test_a_code_point_has_one_class(char: str, expected: str) -> None:
    assert class_of(char) == expected


def test_white_space_is_what_the_interpreter_knows_less_four_controls() -> None:
    theirs = {char for char in every_code_point() if char.isspace()}
    assert len(WHITE_SPACE) == 25
    assert set(WHITE_SPACE) == theirs - set("\x1c\x1d\x1e\x1f")


def test_lower_case_is_final_and_never_white_space() -> None:
    made = set("".join(LOWER.values()))
    assert not made & LOWER.keys()
    assert not (made | LOWER.keys()) & set(WHITE_SPACE)


def test_only_one_letter_becomes_two_code_points() -> None:
    assert {upper: to for upper, to in LOWER.items() if len(to) != 1} == {"\u0130": "i\u0307"}


def test_special_casing_agrees_where_it_sets_no_condition(shared_dir: Path) -> None:
    data = (shared_dir / "vectors/unicode/SpecialCasing.txt").read_text(encoding="utf-8")
    rows = [line.split("#")[0].split(";") for line in data.splitlines() if line.split("#")[0].strip()]
    plain = [row for row in rows if len(row) == 5]
    assert len(plain) == 103
    for point, lower, *_ in plain:
        char, expected = (_text(field) for field in (point, lower))
        assert LOWER.get(char, char) == expected


def test_case_folding_agrees_except_for_cherokee(shared_dir: Path) -> None:
    """A source that is no interpreter: folding is lower case, but for Cherokee, which folds the other way."""
    data = (shared_dir / "vectors/unicode/CaseFolding.txt").read_text(encoding="utf-8")
    rows = [line.split("; ") for line in data.splitlines() if line and not line.startswith("#")]
    # A character has a common or a simple folding; U+0130 alone has neither, and a full one.
    simple = {_text(point): _text(to) for point, status, to, _ in rows if status in ("C", "S")}
    folding = {_text(point): _text(to) for point, status, to, _ in rows if status == "F"} | simple
    cherokee = {char for char in LOWER if "\u13a0" <= char <= "\u13f5"}
    assert len(cherokee) == 86
    assert {char: folding[char] for char in LOWER.keys() - cherokee} == {
        char: to for char, to in LOWER.items() if char not in cherokee
    }


def _text(field: str) -> str:
    return "".join(chr(int(point, 16)) for point in field.split())
