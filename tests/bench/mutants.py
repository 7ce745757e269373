"""Mutants of lines and files: bytes spoiled in transit, and records that their own key's owner spoiled and signed.

What an owner signs is well signed and often well sealed, whatever it says: so a mutant reaches as deep as it can.
"""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Final

from remem.protocol import RULES, SigningKey, digest_of, lesson_hash
from remem_testkit.files import NOW, confirmation, denial, draft_file, file, key, lesson, revocation

KEYS: Final = tuple(key(number) for number in range(4))
OF_HEX: Final = {one.public.hex: one for one in KEYS}
TEXTS: Final = ("The lock file was stale.", "Make fails when the tab is missing.", "ÉCOLE: the cache “grew” to 3 GB…")
HASHES: Final = tuple(lesson_hash("error", text) for text in TEXTS)

# --- what is mutated ---

Fields = dict[str, Any]


def contents(number: int) -> list[Fields]:
    """What one key says before anyone changes it: something of each type."""
    return [
        lesson(TEXTS[number % 3]),
        lesson(TEXTS[(number + 1) % 3], parents=[HASHES[number % 3]]),
        confirmation(HASHES[(number + 2) % 3], at=NOW - timedelta(days=95 * number)),
        revocation(HASHES[(number + 1) % 3], reason="it was a mistake"),
        denial(KEYS[number - 1].public.hex),
        {"praise": HASHES[0], "nested": {"a": [1, {"b": None}], "é": 1.5}},
    ]


FILES: Final = tuple(
    data
    for number, one in enumerate(KEYS)
    for data in (
        file(one, contents(number)),
        file(one, contents(number)[2:], seal=7),
        file(one, contents(number)[3:4], seal=RULES.last_seal),
        draft_file(one, contents(number)),
    )
)
LINES: Final = tuple(sorted({line for data in FILES for line in data.split(b"\n")[:-1]}))
OBJECTS: Final[tuple[Fields, ...]] = tuple(json.loads(line) for line in LINES)

# --- how it is mutated ---

SCRAPS: Final = (
    *(bytes([byte]) for byte in b'\x00\t\n\r \x1f"\\{}[]:,-.0123456789eEaftunlsiv\x7f\x80\xbf\xc0\xed\xef\xf4\xff'),
    *(b'"sig":"', b',"sig":"', b'"SIG":"', b"\\u0073ig", b"\\ud800", b"\xed\xa0\x80", b"\xef\xbb\xbf", b"NaN", b"-0.0"),
    *(b"9" * 5_000, b"[" * 300, b'{"a":' * 300, b"\xf0\x9f\x98\x80", b"1e999", b"Infinity", b"true", b"null"),
)
WORDS: Final = (
    *("please", "make", "delete", "set", "you", "must", "should", "if", "it", "fails", "the", "lock file", "then"),
    *(
        "note:",
        "-",
        "—",
        "…",
        ".",
        "!",
        "?",
        ";",
        ",",
        "`rm -rf`",
        '"quoted"',
        "“",
        "”",
        "'",
        "(",
        ")",
        "*",
        "1.",
        "assistant",
    ),
    *(
        "İ",
        "ß",
        "Σ",
        "e\u0301",
        "\u0301",
        "\u200b",
        "\u202e",
        "\u2028",
        "\ue000",
        "\U000e0001",
        "😀",
        "\u0378",
        "ﬀ",
        "K",
    ),
    *("\n", "\t", "\x00", "\x85", "\x1c", "\ufeff", "\uffff", "x" * 1_000, "e\u0301" * 500, "please " * 140),
)
TIMES: Final = (
    *(
        "2026-03-01T12:00:00Z",
        "2026-03-02T12:00:00Z",
        "2026-03-02T12:00:01Z",
        "1970-01-01T00:00:00Z",
        "2099-12-31T23:59:59Z",
    ),
    *(
        "2026-02-29T00:00:00Z",
        "2026-01-01T00:00:00.5+00:00",
        "2026-01-01T00:00:60Z",
        "2026-01-01",
        "",
        "9999-12-31T23:59:59Z",
    ),
)
NUMBERS: Final = (
    0,
    1,
    2,
    -1,
    1.0,
    0.5,
    1.5,
    -0.0,
    1e-7,
    1e16,
    1e300,
    2**53 - 1,
    2**53,
    10**30,
    float("nan"),
    float("inf"),
)
NAMES: Final = (
    *(
        "text",
        "confirm",
        "revoke",
        "deny",
        "seal",
        "sig",
        "v",
        "key",
        "origin",
        "sealed",
        "at",
        "updated",
        "hash",
        "id",
    ),
    *(
        "kind",
        "seen",
        "strength",
        "parents",
        "reason",
        "records",
        "digest",
        "praise",
        "",
        "SIG",
        's"ig',
        "é",
        "\n",
        "zzz",
    ),
)
STRINGS: Final = (
    *("", "error", "errors", "correction", "surprise", "praise", *HASHES, *OF_HEX, *TEXTS, *TIMES),
    *("0" * 32, "f" * 64, "A" * 64, "0" * 128, '"sig":"', "ff" * 32, "01" + "00" * 31, "ec" + "ff" * 30 + "7f"),
)


def any_text(choose: random.Random) -> str:
    between = choose.choice((" ", " ", " ", "", ", "))
    return between.join(choose.choices(WORDS, k=choose.randint(1, 9)))


def any_value(choose: random.Random, depth: int = 0) -> Any:
    match choose.randrange(10 if depth < 9 else 7):
        case 0 | 1:
            return choose.choice(NUMBERS)
        case 2 | 3:
            return choose.choice(STRINGS)
        case 4:
            return any_text(choose)
        case 5:
            return choose.choice(TIMES)
        case 6:
            return choose.choice((None, True, False))
        case 7 | 8:
            return [any_value(choose, depth + 1) for _ in range(choose.randrange(3))]
        case _:
            return {choose.choice(NAMES): any_value(choose, depth + 1) for _ in range(choose.randrange(3))}


def mutated_fields(choose: random.Random, fields: Fields) -> Fields:
    """Change a few fields; often enough so that what is left still says something."""
    fields = dict(fields)
    for _ in range(choose.randint(0, 2)):
        match choose.randrange(8):
            case 0:
                fields.pop(choose.choice(list(fields)), None)
            case 1:
                fields[choose.choice(NAMES)] = any_value(choose)
            case 2 | 3 if "text" in fields:
                fields["text"] = any_text(choose)
                kind = fields.get("kind")
                if isinstance(kind, str) and choose.randrange(4):
                    fields["hash"] = lesson_hash(kind, fields["text"])
            case 4 if "at" in fields:
                fields["at"] = choose.choice(TIMES)
            case 5 if "reason" in fields:
                fields["reason"] = any_text(choose)
            case _:
                fields[choose.choice(list(fields) or NAMES)] = any_value(choose)
    return fields


def mutated_bytes(choose: random.Random, data: bytes) -> bytes:
    for _ in range(choose.choice((1, 1, 1, 2, 3, 8))):
        start = choose.randrange(len(data) + 1)
        match choose.randrange(6):
            case 0:
                data = data[:start] + data[start + 1 :]
            case 1:
                data = data[:start] + choose.choice(SCRAPS) + data[start:]
            case 2 if start < len(data):
                data = data[:start] + bytes([data[start] ^ 1 << choose.randrange(8)]) + data[start + 1 :]
            case 3:
                end = start + choose.randrange(200)
                data = data[:start] + data[end:]
            case 4:
                end = start + choose.randrange(200)
                data = data[:end] + data[start:end] + data[end:]
            case _:
                data = data[:start] + choose.choice(SCRAPS) + data[start + 1 :]
    return data


def spelled(fields: Fields) -> bytes:
    text = json.dumps(fields, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return text.encode("utf-8", "surrogatepass")


def signed(fields: Fields) -> bytes:
    """Sign an object whatever it holds, by the key that it names if that is one of ours."""
    fields = {name: value for name, value in fields.items() if name != "sig"}
    named = fields.get("key")
    signer = OF_HEX.get(named, KEYS[0]) if isinstance(named, str) else KEYS[0]
    return spelled({**fields, "sig": signer.sign(spelled(fields)).hex()})


def signed_bytes(choose: random.Random, fields: Fields) -> bytes:
    """Spoil the spelling of an object, and sign what came of it: nothing but the spelling is wrong."""
    signer = OF_HEX.get(fields.get("key", ""), KEYS[0])
    body = spelled({name: value for name, value in fields.items() if name != "sig"})
    if choose.randrange(2):
        body = mutated_bytes(choose, body)
    else:
        twice = body.split(b",")
        twice.insert(choose.randrange(len(twice)), choose.choice(twice))
        body = b",".join(twice)
    before, _, behind = body.rpartition(b'"v":')
    return before + b'"sig":"' + signer.sign(body).hex().encode() + b'","v":' + behind


def sealed(choose: random.Random, signer: SigningKey, lines: Sequence[bytes]) -> bytes:
    """Seal lines, and often enough say something else than what is true of them."""
    behind = joined(lines)
    fields: Fields = {
        "v": 1,
        "key": signer.public.hex,
        "origin": signer.public.origin,
        "seal": choose.choice((1, 7, 1_772_366_400, RULES.last_seal)),
        "at": "2026-03-01T12:00:00Z",
        "records": len(lines),
        "digest": digest_of(behind),
        "sealed": True,
    }
    if choose.randrange(6) == 0:
        fields = mutated_fields(choose, fields)
    return signed(fields) + b"\n" + behind


def changed_lines(choose: random.Random, lines: list[bytes]) -> list[bytes]:
    """Change up to two lines of a file: add, move, repeat, drop, or change and sign again."""
    lines = list(lines)
    for _ in range(choose.randrange(3)):
        at = choose.randrange(len(lines) + 1)
        match choose.randrange(6):
            case 0:
                lines.insert(at, choose.choice(LINES))
            case 1:
                choose.shuffle(lines)
            case 2 if at < len(lines):
                lines.insert(choose.randrange(len(lines) + 1), lines[at])
            case 3 if at < len(lines):
                del lines[at]
            case _ if at < len(lines):
                lines[at] = signed(mutated_fields(choose, json.loads(lines[at])))
    return lines


def resealed_file(choose: random.Random) -> bytes:
    """Change the lines of a file as its key's owner, and seal them or leave them without a seal."""
    lines = choose.choice(FILES).split(b"\n")[:-1]
    first = json.loads(lines[0])
    lines = changed_lines(choose, lines[1:] if "seal" in first else lines)
    signer = OF_HEX[first["key"]] if choose.randrange(20) else choose.choice(KEYS)
    return sealed(choose, signer, lines) if choose.randrange(8) else joined(lines)


def carried_file(choose: random.Random) -> bytes:
    """Change the lines of a sealed file as whoever carries it could, and leave its seal."""
    lines = choose.choice([data for data in FILES if b'"seal":' in data]).split(b"\n")[:-1]
    return joined([lines[0], *changed_lines(choose, lines[1:])])


def joined(lines: Sequence[bytes]) -> bytes:
    return b"".join(line + b"\n" for line in lines)
