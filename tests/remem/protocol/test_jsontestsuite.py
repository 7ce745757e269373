"""The parser against public collections of JSON: nothing that anyone thought of makes it stumble."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import pytest

from remem.protocol.canonical import encode, parse_line
from remem.protocol.errors import ProtocolError
from remem.protocol.file import accept
from remem.protocol.records import parse_record

from .respell import respelled

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def is_line(data: bytes) -> bool:
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return False
    return respelled(text) == text


def lines_of(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Every file as it is, and as a value inside an object."""
    for path in sorted(folder.iterdir()):
        data = path.read_bytes()
        yield path.name, data
        yield f"{path.name}, wrapped", b'{"a":' + data.rstrip(b"\n") + b"}"


@pytest.mark.parametrize(
    ("folder", "files", "read"),
    [
        # What is read is spelled as the protocol spells it, as it is or wrapped: no n_ file among it.
        pytest.param("test_parsing", 318, 47, id="parsing"),
        pytest.param("test_transform", 22, 6, id="transforms"),
    ],
)
def test_every_file_is_a_line_or_a_protocol_error(folder: str, files: int, read: int, shared_dir: Path) -> None:
    lines = list(lines_of(shared_dir / "vectors" / "jsontestsuite" / folder))
    accepted = []
    for name, line in lines:
        try:
            fields = parse_line(line)
        except ProtocolError:
            assert not is_line(line), name
            continue
        accepted.append(name)
        assert not name.startswith("n_"), name
        assert repr(fields) == repr(json.loads(line)), name
        assert is_line(line), name
        if b"." not in line:
            assert encode(fields) == line, name
    assert (len(lines), len(accepted)) == (2 * files, read), accepted


@pytest.mark.parametrize("folder", ["test_parsing", "test_transform"])
def test_no_file_is_a_record_or_a_file_of_ours(folder: str, shared_dir: Path) -> None:
    for name, line in lines_of(shared_dir / "vectors" / "jsontestsuite" / folder):
        for data in (line, line + b"\n"):
            for read in (parse_record, partial(accept, now=NOW)):
                try:
                    read(data)
                except ProtocolError:
                    continue
                pytest.fail(f"expected a ProtocolError for {name}, got a record or a file")


@pytest.mark.parametrize(
    ("name", "code"),
    [
        pytest.param("french.json", None, id="accents sort by code point"),
        pytest.param("structures.json", None, id="nested objects are sorted too"),
        pytest.param("unicode.json", None, id="nothing is normalised"),
        pytest.param("arrays.json", "not_an_object", id="a line is an object"),
        pytest.param("values.json", "number_form", id="numbers have no exponent"),
        pytest.param("weird.json", "field_order", id="order is by code point, not by UTF-16"),
    ],
)
def test_rfc_8785_differs_where_the_protocol_says_so(name: str, code: str | None, shared_dir: Path) -> None:
    folder = shared_dir / "vectors" / "jcs" / "testdata"
    line = (folder / "output" / name).read_bytes().rstrip(b"\n")
    if code is None:
        assert parse_line(line) == json.loads((folder / "input" / name).read_bytes())
        assert encode(parse_line(line)) == line
        return
    with pytest.raises(ProtocolError) as caught:
        parse_line(line)
    assert caught.value.code == code
