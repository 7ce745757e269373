"""The one spelling of a line: every fault by its code, and two readers and a third that agree."""

import json
import math
from collections.abc import Callable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from remem.protocol import canonical
from remem.protocol.canonical import JSON, encode, parse_line
from remem.protocol.errors import ProtocolError
from remem.protocol.rules import RULES

from .respell import MOST, Number, loose, respelled

# --- what is refused, and as what ---

REFUSED = [
    pytest.param(b"", "not_an_object", id="nothing"),
    pytest.param(b"null", "not_an_object", id="a word"),
    pytest.param(b"[]", "not_an_object", id="an array"),
    pytest.param(b'"a"', "not_an_object", id="a string"),
    pytest.param(b"1", "not_an_object", id="a number"),
    pytest.param(b"NaN", "not_an_object", id="not a number"),
    pytest.param(b"\x00", "not_an_object", id="a NUL"),
    pytest.param(b"{", "syntax", id="an object without an end"),
    pytest.param(b"}", "not_an_object", id="an end without an object"),
    pytest.param(b"{}{}", "syntax", id="two objects"),
    pytest.param(b"{}x", "syntax", id="something behind the object"),
    pytest.param(b"{}\x00", "syntax", id="a NUL behind the object"),
    pytest.param(b'{"a"}', "syntax", id="a name without a value"),
    pytest.param(b'{"a":}', "syntax", id="a colon without a value"),
    pytest.param(b'{"a"1}', "syntax", id="no colon"),
    pytest.param(b'{"a":1', "syntax", id="no closing brace"),
    pytest.param(b'{"a":1]', "syntax", id="the wrong bracket"),
    pytest.param(b'{"a":1,}', "syntax", id="a comma behind the last field"),
    pytest.param(b'{,"a":1}', "syntax", id="a comma before the first field"),
    pytest.param(b'{"a":1,,"b":2}', "syntax", id="two commas"),
    pytest.param(b'{"a":1"b":2}', "syntax", id="no comma"),
    pytest.param(b'{"a":[1,]}', "syntax", id="a comma behind the last item"),
    pytest.param(b'{"a":[,1]}', "syntax", id="a comma before the first item"),
    pytest.param(b'{"a":[1 2]}', "white_space", id="a space for a comma"),
    pytest.param(b'{"a":[1', "syntax", id="an array without an end"),
    pytest.param(b'{"a":"b}', "syntax", id="a string without an end"),
    pytest.param(b'{"a":"\\"}', "syntax", id="an escaped quote at the end"),
    pytest.param(b"{a:1}", "syntax", id="a bare name"),
    pytest.param(b"{'a':1}", "syntax", id="single quotes"),
    pytest.param(b"{1:1}", "syntax", id="a number for a name"),
    pytest.param(b'{"a":tru}', "syntax", id="a word cut short"),
    pytest.param(b'{"a":truely}', "syntax", id="a word too long"),
    pytest.param(b'{"a":True}', "syntax", id="a word in upper case"),
    pytest.param(b'{"a":/**/1}', "syntax", id="a comment"),
    pytest.param(b'{"a":nan}', "syntax", id="nan in lower case"),
    pytest.param(b' {"a":1}', "white_space", id="a space in front"),
    pytest.param(b'{"a":1} ', "white_space", id="a space behind"),
    pytest.param(b'{"a": 1}', "white_space", id="a space behind a colon"),
    pytest.param(b'{"a" :1}', "white_space", id="a space before a colon"),
    pytest.param(b'{ "a":1}', "white_space", id="a space before a name"),
    pytest.param(b'{"a":1 }', "white_space", id="a space before the end"),
    pytest.param(b"{ }", "white_space", id="a space in an empty object"),
    pytest.param(b'{"a":[ ]}', "white_space", id="a space in an empty array"),
    pytest.param(b'{"a":1,\t"b":2}', "white_space", id="a tab"),
    pytest.param(b'{"a":1}\n', "white_space", id="a line feed behind"),
    pytest.param(b'{"a":1}\r', "carriage_return", id="a carriage return behind"),
    pytest.param(b'{"a":\r1}', "carriage_return", id="a carriage return within"),
    pytest.param(b'{"a":\x0b1}', "syntax", id="a vertical tab is no white space"),
    pytest.param('{"a":\u00a01}'.encode(), "syntax", id="a no-break space is no white space"),
    pytest.param(b'\xef\xbb\xbf{"a":1}', "byte_order_mark", id="a byte order mark"),
    pytest.param('{"a":1}'.encode("utf-16"), "encoding", id="UTF-16 with a mark"),
    pytest.param('{"a":1}'.encode("utf-16-le"), "syntax", id="UTF-16, low byte first"),
    pytest.param('{"a":1}'.encode("utf-16-be"), "not_an_object", id="UTF-16, high byte first"),
    pytest.param('{"a":1}'.encode("utf-32"), "encoding", id="UTF-32 with a mark"),
    pytest.param('{"a":1}'.encode("utf-32-le"), "syntax", id="UTF-32, low byte first"),
    pytest.param(b'{"a":"\xff"}', "encoding", id="a byte that UTF-8 never has"),
    pytest.param(b'{"a":"\xc3"}', "encoding", id="a sequence cut short"),
    pytest.param(b'{"a":"\xc0\xaf"}', "encoding", id="an overlong slash"),
    pytest.param(b'{"a":"\xe0\x80\x80"}', "encoding", id="an overlong NUL"),
    pytest.param(b'{"a":"\xf4\x90\x80\x80"}', "encoding", id="beyond U+10FFFF"),
    pytest.param(b'{"a":"\xed\xa0\x80"}', "encoding", id="a high surrogate in three bytes"),
    pytest.param(b'{"a":"\xed\xbf\xbf"}', "encoding", id="a low surrogate in three bytes"),
    pytest.param(b'{"a":"\\ud800"}', "surrogate", id="a lone high surrogate escaped"),
    pytest.param(b'{"a":"\\uDFFF"}', "surrogate", id="a lone low surrogate escaped"),
    pytest.param(b'{"a":"\\ud83d\\ude00"}', "surrogate", id="a pair of surrogates escaped"),
    pytest.param(b'{"\\ud800":1}', "surrogate", id="a surrogate in a name"),
    pytest.param(b'{"a":"\\/"}', "escape", id="an escaped slash"),
    pytest.param(b'{"a":"\\u0061"}', "escape", id="an escaped letter"),
    pytest.param(b'{"\\u0061":1}', "escape", id="an escaped letter in a name"),
    pytest.param(b'{"a":"\\u00e9"}', "escape", id="an escaped letter that is not ASCII"),
    pytest.param(b'{"a":"\\u0022"}', "escape", id="a quote by its number"),
    pytest.param(b'{"a":"\\u005c"}', "escape", id="a backslash by its number"),
    pytest.param(b'{"a":"\\u0008"}', "escape", id="a backspace by its number"),
    pytest.param(b'{"a":"\\u0009"}', "escape", id="a tab by its number"),
    pytest.param(b'{"a":"\\u000a"}', "escape", id="a line feed by its number"),
    pytest.param(b'{"a":"\\u000c"}', "escape", id="a form feed by its number"),
    pytest.param(b'{"a":"\\u000d"}', "escape", id="a carriage return by its number"),
    pytest.param(b'{"a":"\\u001F"}', "escape", id="upper-case hex in an escape"),
    pytest.param(b'{"a":"\\u007f"}', "escape", id="an escaped DEL"),
    pytest.param(b'{"a":"\\U0000"}', "escape", id="an upper-case U"),
    pytest.param(b'{"a":"\\u00"}', "escape", id="an escape cut short"),
    pytest.param(b'{"a":"\\x00"}', "escape", id="an escape of another language"),
    pytest.param('{"a":"\\u00٠٠"}'.encode(), "escape", id="digits of another script in an escape"),
    pytest.param(b'{"a":"\\', "escape", id="a backslash at the end"),
    pytest.param(b'{"a":"\x00"}', "escape", id="a bare NUL in a string"),
    pytest.param(b'{"a":"\n"}', "escape", id="a bare line feed in a string"),
    pytest.param(b'{"a":"\r"}', "escape", id="a bare carriage return in a string"),
    pytest.param(b'{"a":"\x1f"}', "escape", id="a bare control in a string"),
    pytest.param(b'{"a":-}', "number_form", id="a sign alone"),
    pytest.param(b'{"a":+1}', "number_form", id="a plus sign"),
    pytest.param(b'{"a":01}', "number_form", id="a leading zero"),
    pytest.param(b'{"a":-01}', "number_form", id="a leading zero behind a sign"),
    pytest.param(b'{"a":00.5}', "number_form", id="two leading zeros"),
    pytest.param(b'{"a":.5}', "number_form", id="no digit before the point"),
    pytest.param(b'{"a":5.}', "number_form", id="no digit behind the point"),
    pytest.param(b'{"a":1.2.3}', "number_form", id="two points"),
    pytest.param(b'{"a":1e5}', "number_form", id="an exponent"),
    pytest.param(b'{"a":1E+5}', "number_form", id="an exponent in upper case"),
    pytest.param(b'{"a":1.5e-5}', "number_form", id="an exponent behind a fraction"),
    pytest.param(b'{"a":1e999}', "number_form", id="beyond what a float holds"),
    pytest.param(b'{"a":0x10}', "number_form", id="hexadecimal"),
    pytest.param(b'{"a":1_000}', "syntax", id="an underscore in a number"),
    pytest.param('{"a":\u0663}'.encode(), "syntax", id="a digit of another script"),
    pytest.param('{"a":1\u0663}'.encode(), "syntax", id="a digit of another script behind one of ours"),
    pytest.param(b'{"a":-0}', "number_form", id="negative zero"),
    pytest.param(b'{"a":-0.0}', "number_form", id="negative zero with a fraction"),
    pytest.param(b'{"a":-0.000}', "number_form", id="negative zero with a longer fraction"),
    pytest.param(b'{"a":NaN}', "number_form", id="not a number as a value"),
    pytest.param(b'{"a":Infinity}', "number_form", id="infinity"),
    pytest.param(b'{"a":-Infinity}', "number_form", id="negative infinity"),
    pytest.param(b'{"a":%d}' % (MOST + 1), "number_range", id="2^53"),
    pytest.param(b'{"a":-%d}' % (MOST + 1), "number_range", id="-2^53"),
    pytest.param(b'{"a":%s}' % (b"9" * 24), "number_range", id="an integer of 24 digits"),
    pytest.param(b'{"a":%s}' % (b"9" * 25), "number_form", id="an integer of 25 digits"),
    pytest.param(b'{"a":%s}' % (b"9" * 5_000), "number_form", id="an integer of 5,000 digits"),
    pytest.param(b'{"a":-%s}' % (b"9" * 5_000), "number_form", id="a negative integer of 5,000 digits"),
    pytest.param(b'{"a":0.%s}' % (b"1" * 23), "number_form", id="a fraction of 25 characters"),
    pytest.param(b'{"a":0.%s}' % (b"1" * 5_000), "number_form", id="a fraction of 5,000 digits"),
    pytest.param(b'{"b":1,"a":2}', "field_order", id="fields out of order"),
    pytest.param(b'{"a":{"d":1,"c":2}}', "field_order", id="fields out of order further down"),
    pytest.param(b'{"a":[{"d":1,"c":2}]}', "field_order", id="fields out of order in an array"),
    pytest.param(b'{"a":1,"":2}', "field_order", id="the empty name is the first"),
    pytest.param('{"\U00010000":1,"\uffff":2}'.encode(), "field_order", id="order goes by code point"),
    pytest.param(b'{"a":1,"a":1}', "duplicate_field", id="a field twice"),
    pytest.param(b'{"a":1,"b":2,"a":1}', "duplicate_field", id="a field twice, out of order"),
    pytest.param(b'{"a":{"b":1,"b":2}}', "duplicate_field", id="a field twice further down"),
    pytest.param(b'{"\\n":1,"\\n":2}', "duplicate_field", id="an escaped field twice"),
    pytest.param(b'{"a":' * 8 + b"{}" + b"}" * 8, "depth", id="nine objects"),
    pytest.param(b'{"a":' + b"[" * 8 + b"]" * 8 + b"}", "depth", id="an object and eight arrays"),
    pytest.param(b'{"a":' + b"[" * 8_000, "depth", id="a depth bomb of arrays"),
    pytest.param(b'{"a":' * 1_600, "depth", id="a depth bomb of objects"),
    pytest.param(b"[" * 8_000, "not_an_object", id="a depth bomb without an object"),
    pytest.param(b"{" * 8_000, "syntax", id="braces without names"),
    pytest.param(b'{"a":"%s"}' % (b"x" * 8_185), "line_size", id="8,193 bytes"),
    pytest.param(b'{"a":' * 1_000_000, "line_size", id="a depth bomb of 5 MB"),
    pytest.param(b"\xff" * 8_193, "line_size", id="too long comes before everything else"),
]


@pytest.mark.parametrize(("line", "code"), REFUSED)
def test_a_line_in_another_spelling_is_refused(line: bytes, code: str) -> None:
    with pytest.raises(ProtocolError) as caught:
        parse_line(line)
    assert caught.value.code == code
    assert str(caught.value).isascii()
    assert len(str(caught.value)) < 300


# --- what is read ---


@pytest.mark.parametrize(
    ("line", "fields"),
    [
        pytest.param(b"{}", {}, id="an empty object"),
        pytest.param(b'{"":0}', {"": 0}, id="an empty name"),
        pytest.param(b'{"a":[],"b":{},"c":[[],{}]}', {"a": [], "b": {}, "c": [[], {}]}, id="empty containers"),
        pytest.param(b'{"a":[true,false,null]}', {"a": [True, False, None]}, id="words"),
        pytest.param(b'{"A":1,"a":2,"aa":3,"b":4}', {"A": 1, "a": 2, "aa": 3, "b": 4}, id="order"),
        pytest.param(
            '{"\uffff":1,"\U00010000":2}'.encode(),
            {"\uffff": 1, "\U00010000": 2},
            id="order beyond the basic plane",
        ),
        pytest.param('{"a\u0301":1,"\u00e1":2}'.encode(), {"a\u0301": 1, "\u00e1": 2}, id="no normal form"),
        pytest.param(b'{"a":"\\"\\\\\\b\\t\\n\\f\\r"}', {"a": '"\\\b\t\n\f\r'}, id="short escapes"),
        pytest.param(b'{"a":"\\u0000\\u000b\\u001f"}', {"a": "\x00\x0b\x1f"}, id="numbered escapes"),
        pytest.param(b'{"a":"/\x7f"}', {"a": "/\x7f"}, id="a slash and a DEL stand as they are"),
        pytest.param(
            '{"a":"\u2028\ufeff\uffff\U0010ffff"}'.encode(),
            {"a": "\u2028\ufeff\uffff\U0010ffff"},
            id="all else stands as it is",
        ),
        pytest.param(b'{"a":"\\",\\"b\\":1"}', {"a": '","b":1'}, id="a string that looks like fields"),
        pytest.param(b'{"a\\":":1}', {'a":': 1}, id="a name that looks like a name"),
        pytest.param(b'{"a":"[[[[[[[[[{{{{{{{{{"}', {"a": "[" * 9 + "{" * 9}, id="brackets in a string"),
        pytest.param(b'{"a":"-0.0"}', {"a": "-0.0"}, id="a negative zero in a string"),
        pytest.param(b'{"a":%d,"b":-%d}' % (MOST, MOST), {"a": MOST, "b": -MOST}, id="2^53-1"),
        pytest.param(b'{"a":0,"b":0.0,"c":-0.5}', {"a": 0, "b": 0.0, "c": -0.5}, id="zeros"),
        pytest.param(b'{"a":1.50}', {"a": 1.5}, id="a fraction with a zero behind"),
        pytest.param(b'{"a":0.00000000000000000001}', {"a": 1e-20}, id="a small fraction"),
        pytest.param(b'{"a":%s.0}' % (b"9" * 22), {"a": 1e22}, id="a fraction has no range"),
        pytest.param(b'{"a":0.%s}' % (b"1" * 22), {"a": 1 / 9}, id="a fraction of 24 characters"),
        pytest.param(b'{"a":' * 7 + b"{}" + b"}" * 7, {"a": {}}, id="eight objects"),
        pytest.param(b'{"a":"%s"}' % (b"x" * 8_184), {"a": "x" * 8_184}, id="8,192 bytes"),
    ],
)
def test_a_line_in_its_one_spelling_is_read(line: bytes, fields: dict[str, JSON]) -> None:
    read = parse_line(line)
    assert read == json.loads(line)
    if line.count(b"{") != 8:
        assert read == fields


def test_booleans_and_numbers_are_told_apart() -> None:
    read = parse_line(b'{"a":true,"b":1,"c":1.0}')
    assert list(map(type, read.values())) == [bool, int, float]


# --- what is written ---


def nested(levels: int) -> JSON:
    value: JSON = []
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({"a": math.nan}, id="not a number"),
        pytest.param({"a": math.inf}, id="infinity"),
        pytest.param({"a": -0.0}, id="negative zero"),
        pytest.param({"a": 1e16}, id="a number that needs an exponent"),
        pytest.param({"a": 1e-7}, id="a number that needs a negative exponent"),
        pytest.param({"a": 2**53}, id="2^53"),
        pytest.param({"a": 10**5_000}, id="an integer of 5,001 digits"),
        pytest.param({"a": "\ud800"}, id="a surrogate"),
        pytest.param({"\udfff": 1}, id="a surrogate in a name"),
        pytest.param({"a": "x" * 8_185}, id="too long"),
        pytest.param({"a": [[[[[[[[]]]]]]]]}, id="too deep"),
        pytest.param({"a": nested(5_000)}, id="deeper than the stack"),
    ],
)
def test_what_has_no_spelling_is_our_own_mistake(fields: dict[str, JSON]) -> None:
    with pytest.raises(ValueError, match=r"not a line of the protocol|\d digits"):
        encode(fields)


# --- three readers ---


def verdict(reader: Callable[[], dict[str, JSON] | None]) -> str | None:
    """Run a reader, and return what it read in a spelling that tells all types apart, or None."""
    try:
        fields = reader()
    except ProtocolError:
        return None
    return None if fields is None else repr(fields)


# --- texts that are nearly lines ---

NAMES = st.one_of(st.sampled_from(["", "a", "b", "sig", '"', '":', "\\", "\n", "é", "\uffff", "\U0001f600"]))
CHARACTERS = '\x00\x08\t\n\r\x1b\x1f "\\/:,{}[]-+.019eEtua\x7f\x80\u00e9\u2028\ufeff\uffff\U0001f600'
STRINGS = st.text(st.sampled_from(CHARACTERS), max_size=6)
NUMBERS = st.one_of(
    st.integers(-(2**54), 2**54).map(str),
    st.from_regex(r"\A-?(0|[1-9][0-9]{0,12})(\.[0-9]{1,12})?\Z"),
    st.text(st.sampled_from("-+.0019eE"), min_size=1, max_size=26),
    st.sampled_from(["NaN", "Infinity", "-0", "-0.0", "0.0", "1.0", "1.50", "9" * 24, "9" * 25]),
).map(Number)
VALUES = st.recursive(
    st.one_of(STRINGS, NUMBERS, st.sampled_from([True, False, None])),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(NAMES, inner, max_size=3)),
    max_leaves=12,
)


SCRAPS = st.one_of(
    st.sampled_from(CHARACTERS),
    st.sampled_from(["", '"a":1', ',"a":1', '"sig":"x",', "\\u0000", "\\u0061", "\\ud800", "\\/", "-0.0", "[[", "]]"]),
)


@st.composite
def near_lines(draw: st.DrawFn) -> str:
    """Spell a line as it should be, then spoil it in up to three places."""
    text = loose(draw(st.dictionaries(NAMES, VALUES, max_size=4)))
    for _ in range(draw(st.integers(0, 3))):
        start = draw(st.integers(0, len(text)))
        end = draw(st.integers(start, min(len(text), start + 3)))
        text = text[:start] + draw(SCRAPS) + text[end:]
    return text


TOKENS = st.sampled_from(
    ["{", "}", "[", "]", ",", ":", '"a"', '"b"', '":"', '"\\""', "0", "-1", "1.5", "-0", "true", "null", " ", "\r"]
)
TEXTS = st.one_of(near_lines(), st.lists(TOKENS, max_size=14).map("".join), st.text(st.sampled_from(CHARACTERS)))


def agree(text: str) -> None:
    """Assert that the three readers agree about a text."""
    fast = verdict(lambda: canonical._parse_fast(text))
    strict = verdict(canonical._Strict(text).parse)
    assert fast in (None, strict), "the fast reader reads only what the strict one reads, and the same"
    assert (strict is not None) == (respelled(text) == text), "a line is what is spelled in its one spelling"
    if strict is not None:
        assert strict == repr(json.loads(text)), "a line says what JSON says that it says"
    if len(line := text.encode("utf-8", "surrogatepass")) <= RULES.line_bytes:
        assert verdict(lambda: parse_line(line)) == strict


@given(TEXTS)
@example('{"a":"\\"","b":1}')
@example('{"a":1,"a":2}')
@example('{"a\\":":1,"b":1}')
@example('{"a":1.50,"b":-0.5}')
@example('{"b":[{"c":1,"a":2}]}')
@example('{"a":["x","y"],"b":[]}')
@example('{"a":"\\u001f"}')
@example('{"a":%s}' % ("9" * 24))
def test_three_readers_agree(text: str) -> None:
    agree(text)


def test_three_readers_agree_on_every_refused_line() -> None:
    for case in REFUSED:
        line = case.values[0]
        assert isinstance(line, bytes)
        if len(line) <= RULES.line_bytes and (text := line.decode(errors="ignore")).encode() == line:
            agree(text)


def test_the_fast_reader_reads_what_records_look_like() -> None:
    line = '{"kind":"error","parents":["0f"],"seen":2,"strength":0.30000000000000004,"text":"é \\"x\\"","v":1}'
    assert canonical._parse_fast(line) == json.loads(line)


@given(st.binary(max_size=40))
def test_any_bytes_are_a_line_or_a_protocol_error(data: bytes) -> None:
    try:
        fields = parse_line(data)
    except ProtocolError:
        return
    assert repr(parse_line(encode(fields))) == repr(fields)


@given(st.dictionaries(NAMES, VALUES, max_size=4).map(loose))
def test_what_is_written_is_read_and_written_alike(text: str) -> None:
    try:
        fields = parse_line(text.encode())
        line = encode(fields)
    except (ProtocolError, ValueError):
        return  # a number out of bounds, or one whose shortest spelling has an exponent
    assert repr(parse_line(line)) == repr(fields)
    assert encode(parse_line(line)) == line
