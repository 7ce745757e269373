"""The vectors of a line by itself (PROTOCOL.md, section 2): its encoding and its one spelling."""

from __future__ import annotations

from typing import Any

from .vectors_base import Fields, Vectors, accept, refuse


def _at_depth(levels: int) -> str:
    return '{"a":' + "[" * (levels - 1) + "]" * (levels - 1) + "}"


def _objects_deep(levels: int) -> str:
    return '{"a":' * (levels - 1) + "{}" + "}" * (levels - 1)


def _object_of(levels: int) -> Fields:
    return {} if levels == 1 else {"a": _object_of(levels - 1)}


def _parts(before: str, repeat: str, times: int, after: str) -> Fields:
    return {"line_parts": [before, {"repeat": repeat, "times": times}, after]}


def _good(comment: str, line: str, value: dict[str, Any]) -> Fields:
    return accept(comment, {"line": line}, value=value)


def _bad(comment: str, line: str, code: str) -> Fields:
    return refuse(comment, {"line": line}, code)


def _bytes(comment: str, data: bytes, code: str) -> Fields:
    return refuse(comment, {"line_hex": data.hex()}, code)


def line_vectors() -> Vectors:
    return {**_objects(), **_strings(), **_numbers(), **_encodings(), **_not_json()}


def _objects() -> Vectors:
    fits = 8_192 - len('{"a":""}')
    return {
        "an-empty-object": _good("the smallest object", "{}", {}),
        "fields-in-code-point-order": _good(
            "the empty name sorts first, and a capital before a small letter",
            '{"":0,"A":1,"a":2,"aa":3,"z":4,"é":5}',
            {"": 0, "A": 1, "a": 2, "aa": 3, "z": 4, "é": 5},
        ),
        "fields-out-of-order": _bad("b sorts behind a", '{"b":1,"a":2}', "field_order"),
        "a-longer-name-before-its-beginning": _bad(
            "a name sorts before the names it begins", '{"aa":1,"a":2}', "field_order"
        ),
        "order-goes-by-code-points": _good(
            "U+FB00 sorts before U+1F600, although the surrogates of UTF-16 sort the other way",
            '{"\ufb00":1,"\U0001f600":2}',
            {"\ufb00": 1, "\U0001f600": 2},
        ),
        "order-by-utf-16-is-refused": _bad(
            "the order of UTF-16 code units", '{"\U0001f600":2,"\ufb00":1}', "field_order"
        ),
        "order-goes-by-the-field-before": _bad(
            "a sorts before b, but c does not", '{"a":1,"c":2,"b":3}', "field_order"
        ),
        "order-at-every-depth": _bad("the rule holds inside too", '{"a":[{"c":1,"b":2}]}', "field_order"),
        "a-field-twice": _bad("one name, two values", '{"a":1,"a":2}', "duplicate_field"),
        "a-field-twice-with-another-between": _bad(
            "a repeated name is named as such, not as a fault of order", '{"a":1,"b":2,"a":3}', "duplicate_field"
        ),
        "a-field-twice-inside": _bad("at any depth", '{"a":{"b":1,"b":1}}', "duplicate_field"),
        "one-name-at-two-depths": _good("other objects, other names", '{"a":{"a":1}}', {"a": {"a": 1}}),
        "words": _good("the three words of JSON", '{"a":[false,null,true]}', {"a": [False, None, True]}),
        "depth-8": _good("the outer object is level 1", _at_depth(8), {"a": [[[[[[[]]]]]]]}),
        "depth-9": _bad("a level more", _at_depth(9), "depth"),
        "depth-8-of-objects": _good("objects count too", _objects_deep(8), _object_of(8)),
        "depth-9-of-objects": _bad("a level more", _objects_deep(9), "depth"),
        "depth-of-thousands": refuse(
            "refused by counting, before any stack is in danger", _parts('{"a":', "[", 8_000, ""), "depth"
        ),
        "brackets-in-a-string": _good(
            "a string has no depth", '{"a":"[[[[[[[[[[{{{{{{{{{{"}', {"a": "[" * 10 + "{" * 10}
        ),
        "line-of-8192-bytes": accept("exactly at the limit", _parts('{"a":"', "x", fits, '"}')),
        "line-of-8193-bytes": refuse("a byte more", _parts('{"a":"', "x", fits + 1, '"}'), "line_size"),
        "the-limit-counts-bytes": refuse(
            "4,100 code points of two bytes each", _parts('{"a":"', "é", 4_100, '"}'), "line_size"
        ),
        "space-behind-a-colon": _bad("no white space outside strings", '{"a": 1}', "white_space"),
        "space-behind-a-comma": _bad("no white space outside strings", '{"a":1, "b":2}', "white_space"),
        "space-before-the-object": _bad("no white space outside strings", ' {"a":1}', "white_space"),
        "space-behind-the-object": _bad("no white space outside strings", '{"a":1} ', "white_space"),
        "a-tab-between-fields": _bad("a tab is white space", '{"a":1,\t"b":2}', "white_space"),
        "a-line-feed-between-fields": _bad("a line feed is white space", '{"a":1,\n"b":2}', "white_space"),
        "a-carriage-return-at-the-end": _bad("lines end in LF alone", '{"a":1}\r', "carriage_return"),
    }


def _strings() -> Vectors:
    return {
        "escapes-with-a-letter": _good(
            "the seven that have one",
            r'{"a":"\"\\\b\t\n\f\r"}',
            {"a": '"\\\b\t\n\f\r'},
        ),
        "escapes-of-other-controls": _good(
            "four lower-case hex digits", r'{"a":"\u0000\u000b\u001f"}', {"a": "\x00\x0b\x1f"}
        ),
        "white-space-inside-a-string": _good("kept as it is", '{"a":"  b  "}', {"a": "  b  "}),
        "everything-else-as-itself": _good(
            "slash, delete, accents, emoji, noncharacters and a byte order mark inside",
            '{"a":"/\x7fé漢\U0001f600\ufffe\ufeff"}',
            {"a": "/\x7fé漢\U0001f600\ufffe\ufeff"},
        ),
        "a-slash-escaped": _bad("a slash stands as itself", r'{"a":"\/"}', "escape"),
        "a-letter-escaped": _bad("a letter stands as itself", r'{"a":"\u0041"}', "escape"),
        "an-accent-escaped": _bad("é stands as itself", r'{"a":"\u00e9"}', "escape"),
        "a-delete-escaped": _bad("U+007F stands as itself", r'{"a":"\u007f"}', "escape"),
        "a-tab-by-its-number": _bad("the tab has its letter", r'{"a":"\u0009"}', "escape"),
        "a-backspace-by-its-number": _bad("the backspace has its letter", r'{"a":"\u0008"}', "escape"),
        "a-line-feed-by-its-number": _bad("the line feed has its letter", r'{"a":"\u000a"}', "escape"),
        "a-form-feed-by-its-number": _bad("the form feed has its letter", r'{"a":"\u000c"}', "escape"),
        "a-carriage-return-by-its-number": _bad("the carriage return has its letter", r'{"a":"\u000d"}', "escape"),
        "a-quote-by-its-number": _bad("the quote has its own escape", r'{"a":"\u0022"}', "escape"),
        "upper-case-hex-in-an-escape": _bad("lower case only", r'{"a":"\u001F"}', "escape"),
        "a-capital-digit-in-an-escape": _bad("lower case only", r'{"a":"\u000B"}', "escape"),
        "an-escape-cut-short": _bad("four digits", r'{"a":"\u00"}', "escape"),
        "an-escape-of-another-language": _bad("JSON has no such escape", r'{"a":"\x41"}', "escape"),
        "a-field-name-escaped": _bad("names follow the same rule", r'{"\u0061":1}', "escape"),
        "a-tab-in-a-string": _bad("a control character is escaped", '{"a":"\t"}', "escape"),
        "a-nul-in-a-string": _bad("a control character is escaped", '{"a":"\x00"}', "escape"),
        "a-line-feed-in-a-string": _bad("a control character is escaped", '{"a":"\n"}', "escape"),
        "a-carriage-return-in-a-string": _bad("a control character is escaped", '{"a":"\r"}', "escape"),
        "the-last-control-in-a-string": _bad("U+001F is the last below U+0020", '{"a":"\x1f"}', "escape"),
        "a-lone-surrogate": _bad("half a character", r'{"a":"\ud800"}', "surrogate"),
        "a-pair-of-surrogates": _bad(
            "a character beyond U+FFFF stands as itself", r'{"a":"\ud83d\ude00"}', "surrogate"
        ),
        "a-pair-of-surrogates-in-upper-case": _bad("whatever the case", r'{"a":"\uD83D\uDE00"}', "surrogate"),
        "a-lone-low-surrogate-in-upper-case": _bad("the other half", r'{"a":"\uDC00"}', "surrogate"),
        "a-surrogate-cut-short": _bad("four digits", r'{"a":"\ud83"}', "escape"),
    }


def _numbers() -> Vectors:
    good = {
        "zero": ("0", 0),
        "a-negative-integer": ("-1", -1),
        "the-largest-integer": ("9007199254740991", 9007199254740991),
        "the-smallest-integer": ("-9007199254740991", -9007199254740991),
        "a-fraction": ("0.5", 0.5),
        "a-fraction-that-ends-in-zero": ("1.50", 1.5),
        "a-fraction-of-zero": ("0.0", 0.0),
        "a-small-negative-fraction": ("-0.5", -0.5),
        "a-number-of-24-characters": ("0.1234567890123456789012", 0.1234567890123456789012),
        "a-fraction-beyond-the-integers": ("99999999999999999999.5", 99999999999999999999.5),
    }
    bad = {
        "a-number-of-25-characters": ("0.12345678901234567890123", "number_form"),
        "the-sign-counts-as-a-character": ("-0.1234567890123456789012", "number_form"),
        "an-integer-of-25-digits": ("1" * 25, "number_form"),
        "an-integer-of-24-digits": ("1" * 24, "number_range"),
        "an-integer-above-the-largest": ("9007199254740992", "number_range"),
        "an-integer-below-the-smallest": ("-9007199254740992", "number_range"),
        "an-exponent": ("1e2", "number_form"),
        "a-plus-sign": ("+1", "number_form"),
        "a-leading-zero": ("01", "number_form"),
        "a-fraction-without-an-integer": (".5", "number_form"),
        "a-point-without-a-fraction": ("1.", "number_form"),
        "a-negative-zero": ("-0", "number_form"),
        "a-negative-zero-with-a-fraction": ("-0.0", "number_form"),
        "a-negative-zero-with-two-digits": ("-0.00", "number_form"),
        "a-letter-behind-a-number": ("1x", "number_form"),
        "two-signs": ("--1", "number_form"),
        "not-a-number": ("NaN", "number_form"),
        "not-a-number-in-lower-case": ("nan", "syntax"),
        "infinity": ("Infinity", "number_form"),
        "minus-infinity": ("-Infinity", "number_form"),
        "a-number-in-hex": ("0x10", "number_form"),
    }
    return {
        **{name: _good(f"{text} is a number", f'{{"a":{text}}}', {"a": value}) for name, (text, value) in good.items()},
        **{name: _bad(f"{text} is refused", f'{{"a":{text}}}', code) for name, (text, code) in bad.items()},
        "an-integer-of-5000-digits": refuse(
            "refused by its length, before anything computes it", _parts('{"a":', "7", 5_000, "}"), "number_form"
        ),
    }


def _encodings() -> Vectors:
    return {
        "latin-1": _bytes("0xE9 is é in Latin-1 and nothing in UTF-8", b'{"a":"\xe9"}', "encoding"),
        "an-overlong-spelling": _bytes("0xC0 0xAF spells a slash too long", b'{"a":"\xc0\xaf"}', "encoding"),
        "a-character-cut-in-two": _bytes("the second byte of é is missing", b'{"a":"\xc3"}', "encoding"),
        "beyond-unicode": _bytes("U+110000 does not exist", b'{"a":"\xf4\x90\x80\x80"}', "encoding"),
        "a-surrogate-in-bytes": _bytes(
            "ED A0 80 is U+D800, which UTF-8 leaves out", b'{"a":"\xed\xa0\x80"}', "encoding"
        ),
        "utf-16-with-its-mark": _bytes("0xFF begins no character", '{"a":1}'.encode("utf-16"), "encoding"),
        "utf-16-without-a-mark": _bytes("a NUL is no brace", '{"a":1}'.encode("utf-16-be"), "not_an_object"),
        "a-byte-order-mark": _bytes("UTF-8 needs none", b'\xef\xbb\xbf{"a":1}', "byte_order_mark"),
    }


def _not_json() -> Vectors:
    bad = {
        "an-empty-line": ("", "not_an_object"),
        "an-array": ("[1]", "not_an_object"),
        "a-string": ('"a"', "not_an_object"),
        "a-bare-word": ("null", "not_an_object"),
        "a-trailing-comma": ('{"a":1,}', "syntax"),
        "a-leading-comma": ('{,"a":1}', "syntax"),
        "a-trailing-comma-in-an-array": ('{"a":[1,]}', "syntax"),
        "no-colon": ('{"a"1}', "syntax"),
        "no-value": ('{"a":}', "syntax"),
        "no-comma": ('{"a":1"b":2}', "syntax"),
        "an-object-without-its-end": ('{"a":1', "syntax"),
        "a-string-without-its-end": ('{"a":"b}', "syntax"),
        "two-objects": ('{"a":1}{"b":2}', "syntax"),
        "single-quotes": ("{'a':1}", "syntax"),
        "a-name-without-quotes": ("{a:1}", "syntax"),
        "a-word-with-a-capital": ('{"a":True}', "syntax"),
        "a-word-cut-short": ('{"a":tru}', "syntax"),
        "a-comment": ('{"a":1/*b*/}', "syntax"),
        "a-no-break-space": ('{"a":\u00a01}', "syntax"),
        "a-form-feed": ('{"a":\f1}', "syntax"),
    }
    return {name: _bad("not one JSON object", text, code) for name, (text, code) in bad.items()}
