"""The normal text, the hash of a lesson, and why a reader skips a text."""

import hashlib
import json
import unicodedata
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remem.protocol import unicode14
from remem.protocol.rules import RULES
from remem.protocol.text import KNOWN_KINDS, Fault, lesson_hash, normal_text, text_fault

CODES = {
    "text_empty",
    "text_long",
    "text_lines",
    "text_unassigned",
    "text_control",
    "text_format",
    "text_private_use",
    "text_not_nfc",
}

# Any string of Python's, surrogates too, and often the code points on which rules turn.
TURNING = "aZ \t\n\x1c\x85\xa0\xad\u0130\u0131Σσς\u0301\u0345\u1100\u1161\u1e9e\u212b\u2028\u3000\ud800\udc00\ue000"
any_text = st.text(st.one_of(st.sampled_from(TURNING), st.characters()))
printable_ascii = st.text(st.characters(min_codepoint=0x20, max_codepoint=0x7E))


# --- the normal text ---


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("The Cache KEY", "the cache key", id="ASCII is lower-cased"),
        pytest.param("  a \t\r\n b  ", "a b", id="a run of white space is one space, the ends are trimmed"),
        pytest.param("", "", id="nothing stays nothing"),
        pytest.param(" \u3000\u2028\t ", "", id="white space alone is nothing"),
        pytest.param("ΟΔΟΣ ΣΤΑΣΙΣ", "οδοσ στασισ", id="a capital sigma is never final"),
        pytest.param("οδος", "οδος", id="a final sigma stays as written"),
        pytest.param("İzmir", "i\u0307zmir", id="a dotted capital I becomes two code points"),
        pytest.param("Iı", "iı", id="no Turkish rule"),
        pytest.param("STRASSE ẞ ß", "strasse ß ß", id="lower case, not case folding"),
        pytest.param("Ꭰ Ᏸ", "ꭰ ᏸ", id="Cherokee has lower case"),
        pytest.param("Აა", "აა", id="Georgian has lower case"),
        pytest.param("ᾈ ῼ ǅ", "ᾀ ῳ ǆ", id="title case has lower case"),
        pytest.param("K Å Ω", "k å ω", id="signs that are letters become letters"),
        pytest.param("𐐀 𞤀", "𐐨 𞤢", id="beyond the basic plane"),
        pytest.param("\u1c89 \ua7cb", "\u1c89 \ua7cb", id="a capital of Unicode 16 stays"),
        pytest.param("E\u0301", "e\u0301", id="nothing is composed"),
        pytest.param("a\x1cb\x1fc", "a\x1cb\x1fc", id="the information separators are no white space"),
        pytest.param("\x1c A \x1f", "\x1c a \x1f", id="nor are they trimmed"),
        pytest.param("a\u200bb\ufeff\u180e", "a\u200bb\ufeff\u180e", id="no width is no white space"),
        pytest.param("\ud800 A\udfff", "\ud800 a\udfff", id="surrogates pass"),
    ],
)
def test_the_normal_text_ignores_case_and_white_space(text: str, expected: str) -> None:
    assert normal_text(text) == expected


@pytest.mark.parametrize("space", unicode14.WHITE_SPACE, ids=lambda space: f"U+{ord(space):04X}")
def test_each_white_space_separates_and_is_trimmed(space: str) -> None:
    assert normal_text(f"{space}A{space}{space} B{space}") == "a b"


@given(any_text)
def test_the_normal_text_of_a_normal_text_is_itself(text: str) -> None:
    once = normal_text(text)
    assert normal_text(once) == once


@given(any_text)
def test_the_normal_text_is_the_lower_case_of_each_code_point(text: str) -> None:
    lowered = "".join(unicode14.LOWER.get(char, char) for char in text)
    spaced = "".join(" " if char in unicode14.WHITE_SPACE else char for char in lowered)
    assert normal_text(text) == " ".join(word for word in spaced.split(" ") if word)


@given(any_text, any_text)
def test_the_normal_text_knows_no_context(left: str, right: str) -> None:
    assert normal_text(f"{left} {right}") == normal_text(f"{normal_text(left)} {normal_text(right)}")


# --- the hash of a lesson ---


@pytest.mark.parametrize(
    ("kind", "text", "expected"),
    [
        pytest.param(
            "error", "The cache key IS the lock  file", "7b374f9f122c8894a79645fd491bc72f", id="plain English"
        ),
        pytest.param("correction", "ΟΔΟΣ\u3000ΣΤΑΣΙΣ", "e4fdb11921743b7f86b2bbe7ae092195", id="sigma"),
        pytest.param("surprise", "\u2028İZMİR  straße Ꭰ", "e02931223ed235ebd1b9e4c861c956c3", id="not ASCII"),
        pytest.param("error", "", "2059d323ba606c41ed89a2f7aa531ca0", id="nothing but a kind"),
    ],
)
def test_a_known_lesson_has_a_known_hash(kind: str, text: str, expected: str) -> None:
    """The hashes were computed by another program over the normal texts."""
    assert lesson_hash(kind, text) == expected


def test_the_kinds_of_version_1_are_three() -> None:
    assert KNOWN_KINDS == ("error", "correction", "surprise")
    assert len({lesson_hash(kind, "one text") for kind in KNOWN_KINDS}) == 3


@given(st.lists(st.text(st.characters(min_codepoint=0x21, max_codepoint=0x7E), min_size=1)), st.data())
def test_a_hash_ignores_case_and_white_space(words: list[str], data: st.DataObject) -> None:
    gap = st.text(st.sampled_from(unicode14.WHITE_SPACE), min_size=1)
    other = "".join(data.draw(gap) + data.draw(st.sampled_from((word.upper(), word.lower()))) for word in words)
    assert lesson_hash("error", other) == lesson_hash("error", " ".join(words))


@pytest.mark.parametrize("text", ["\ud800", "a\udfffb", "\ud83d\ude00"], ids=ascii)
def test_a_surrogate_has_no_hash(text: str) -> None:
    with pytest.raises(ValueError, match="surrogates not allowed"):
        lesson_hash("error", text)


def test_the_library_computes_the_known_answers_of_blake2b(shared_dir: Path) -> None:
    answers = json.loads((shared_dir / "vectors/blake2b/blake2-kat.json").read_text())
    ours = [a for a in answers if a["hash"] == "blake2b" and not a["key"]]
    assert len(ours) == 256
    for answer in ours:
        assert hashlib.blake2b(bytes.fromhex(answer["in"])).hexdigest() == answer["out"]


def test_the_library_computes_short_digests_of_blake2b(shared_dir: Path) -> None:
    data = (shared_dir / "vectors/blake2b/crypto-test-vectors-blake2-nosalt-nopersonalization.txt").read_text()
    rows = [line.split("\t") for line in data.splitlines() if line and not line.startswith("#")]
    assert {"16", "32"} <= {size for _, _, size, _ in rows}
    for message, key, size, digest in rows:
        hasher = hashlib.blake2b(bytes.fromhex(message), key=bytes.fromhex(key), digest_size=int(size))
        assert hasher.hexdigest() == digest


# --- why a reader skips a text ---


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("a", id="one code point"),
        pytest.param("a" * RULES.text_code_points, id="as long as may be"),
        pytest.param("😀" * RULES.text_code_points, id="code points are counted, not bytes"),
        pytest.param("  two  spaces  ", id="spaces at the ends and in runs"),
        pytest.param("non\xa0breaking", id="a space of another kind"),
        pytest.param("Prüfsumme, ключ, 鍵, مفتاح, 열쇠", id="any script"),
        pytest.param("\u0301a", id="a mark without a base"),
        pytest.param("\U0001fae6", id="new in Unicode 14"),
    ],
)
def test_a_clean_text_has_no_fault(text: str) -> None:
    assert text_fault(text) is None


@pytest.mark.parametrize(
    ("text", "code", "got"),
    [
        pytest.param("", "text_empty", "no code point", id="nothing"),
        pytest.param(" ", "text_empty", "only white space", id="a space"),
        pytest.param("\u3000\n\u2028", "text_empty", "only white space", id="white space of any kind"),
        pytest.param(" " * 1001, "text_empty", "only white space", id="empty comes before long"),
        pytest.param("a" * 1001, "text_long", "1001 code points", id="one too many"),
        pytest.param("\n" * 1000 + "a", "text_long", "1001 code points", id="long comes before its code points"),
        pytest.param("a\nb", "text_lines", "U+000A at index 1", id="line feed"),
        pytest.param("a\r\nb", "text_lines", "U+000D at index 1", id="carriage return"),
        pytest.param("ab\v", "text_lines", "U+000B at index 2", id="vertical tabulator"),
        pytest.param("ab\f", "text_lines", "U+000C at index 2", id="form feed"),
        pytest.param("\x85ab", "text_lines", "U+0085 at index 0", id="next line"),
        pytest.param("a\u2028", "text_lines", "U+2028 at index 1", id="line separator"),
        pytest.param("a\u2029", "text_lines", "U+2029 at index 1", id="paragraph separator"),
        pytest.param("a\tb", "text_control", "U+0009 at index 1", id="tabulator"),
        pytest.param("\x1b[31mred", "text_control", "U+001B at index 0", id="escape of a terminal"),
        pytest.param("a\x1c", "text_control", "U+001C at index 1", id="file separator"),
        pytest.param("a\x7f", "text_control", "U+007F at index 1", id="delete"),
        pytest.param("é\x9b", "text_control", "U+009B at index 1", id="a control of Latin-1"),
        pytest.param("a\0", "text_control", "U+0000 at index 1", id="null"),
        pytest.param("a\xad", "text_format", "U+00AD at index 1", id="soft hyphen"),
        pytest.param("a\u202eb", "text_format", "U+202E at index 1", id="override of direction"),
        pytest.param("👩\u200d💻", "text_format", "U+200D at index 1", id="joiner of emoji"),
        pytest.param("\ufeffa", "text_format", "U+FEFF at index 0", id="byte order mark"),
        pytest.param("a\U000e0061", "text_format", "U+E0061 at index 1", id="tag letter"),
        pytest.param("a\uf8ff", "text_private_use", "U+F8FF at index 1", id="private use"),
        pytest.param("a\U000f0000", "text_private_use", "U+F0000 at index 1", id="private use, plane 15"),
        pytest.param("a\U00100000", "text_private_use", "U+100000 at index 1", id="private use, plane 16"),
        pytest.param("a\u0378", "text_unassigned", "U+0378 at index 1", id="unassigned for ever so far"),
        pytest.param("a\U0001fae8", "text_unassigned", "U+1FAE8 at index 1", id="assigned in Unicode 15"),
        pytest.param("a\ufffe", "text_unassigned", "U+FFFE at index 1", id="a noncharacter"),
        pytest.param("a\ud83d", "text_unassigned", "U+D83D at index 1", id="a surrogate"),
        pytest.param("e\u0301", "text_not_nfc", "U+0065 at index 0", id="decomposed"),
        pytest.param("a \u212b", "text_not_nfc", "U+212B at index 2", id="the sign of the angstrom"),
        pytest.param("a\u0301\u0323", "text_not_nfc", "U+0061 at index 0", id="marks out of order"),
        pytest.param("b\u0344", "text_not_nfc", "U+0344 at index 1", id="a mark that is two"),
        pytest.param("ab\u0958", "text_not_nfc", "U+0958 at index 2", id="a letter that NFC takes apart"),
        pytest.param("가\u11a8", "text_not_nfc", "U+AC00 at index 0", id="Hangul to be composed"),
        pytest.param("e\u0301\ue000", "text_private_use", "U+E000 at index 2", id="code points before NFC"),
        pytest.param("\ue000\n\u202e", "text_private_use", "U+E000 at index 0", id="the first one is named"),
    ],
)
def test_a_fault_names_its_rule_and_its_place(text: str, code: str, got: str) -> None:
    fault = text_fault(text)
    assert fault is not None
    assert (fault.code, fault.got) == (code, got)


def test_a_fault_says_what_was_expected() -> None:
    assert text_fault("a" * 1001) == Fault("text_long", "at most 1000 code points", "1001 code points")
    assert text_fault("a\u202e") == Fault("text_format", "no format character", "U+202E at index 1")


@given(any_text)
def test_any_text_is_judged(text: str) -> None:
    fault = text_fault(text)
    if fault is None:
        assert 1 <= len(text) <= RULES.text_code_points
        assert normal_text(text)
        assert text.splitlines() == [text]
        assert unicodedata.is_normalized("NFC", text)
        assert not {unicodedata.category(char) for char in text} & {"Cc", "Cf", "Co", "Cs", "Cn", "Zl", "Zp"}
        assert len(lesson_hash("error", text)) == 32
    else:
        assert fault.code in CODES


@given(printable_ascii.filter(str.strip))
def test_printable_ascii_has_no_fault(text: str) -> None:
    assert text_fault(text) is None


def test_nfc_is_judged_as_the_normalization_test_says(shared_dir: Path) -> None:
    data = (shared_dir / "vectors/unicode/NormalizationTest.txt").read_text(encoding="utf-8")
    rows = [line.split("#")[0].split(";")[:5] for line in data.splitlines() if line[:1] not in ("", "#", "@")]
    judged = 0
    for row in rows:
        # The file is of Unicode 15: a row with a code point that came with it says nothing about 14.
        # Two code points in front keep white space from being the whole text, and compose with nothing.
        texts = ["x " + "".join(chr(int(point, 16)) for point in field.split()) for field in row]
        if any(unicode14.class_of(char) != unicode14.ASSIGNED for text in texts for char in text):
            continue
        judged += 1
        composed, compatible = texts[1], texts[3]
        for text in texts:
            fault = text_fault(text)
            assert (fault is None) == (text in (composed, compatible)), row
            assert fault is None or fault.code == "text_not_nfc"
    assert judged > 18_000


def test_naughty_strings_are_judged(shared_dir: Path) -> None:
    strings: list[str] = json.loads((shared_dir / "vectors/blns/blns.json").read_text(encoding="utf-8"))
    faults = [fault for text in strings if (fault := text_fault(text))]
    assert Counter(fault.code for fault in faults) == {
        "text_format": 12,
        "text_control": 6,
        "text_empty": 2,
        "text_lines": 1,
        "text_private_use": 1,
        "text_unassigned": 1,
    }
    for text in strings:
        assert normal_text(normal_text(text)) == normal_text(text)
        assert lesson_hash("error", text) == lesson_hash("error", normal_text(text))
