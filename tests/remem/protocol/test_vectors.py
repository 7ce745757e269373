"""Every vector through every door that its bytes can come in by, and the set of vectors itself."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from remem.protocol import (
    Admission,
    Evidence,
    Fault,
    OriginFile,
    Policy,
    ProtocolError,
    PublicKey,
    Seal,
    SigningKey,
    State,
    Statement,
    Verified,
    Version,
    accept,
    compose,
    event_between,
    judge,
    judgement,
    lesson_hash,
    lesson_state,
    newest,
    normal_text,
    parse_record,
    statements,
    text,
)
from remem.protocol.canonical import parse_line
from remem.protocol.records import verify_record
from remem.protocol.times import format_time
from remem.sharing.seal import next_seal

from . import make_vectors, vectors_reader
from .vectors_base import ADA, NOW, alike, whole
from .vectors_reader import Vector

VECTORS = vectors_reader.read_vectors()


def of_kind(*kinds: str) -> pytest.MarkDecorator:
    chosen = [vector for vector in VECTORS if vector.kind in kinds]
    return pytest.mark.parametrize("vector", chosen, ids=[f"{v.kind}/{v.name}" for v in chosen])


NOTHING_HELD = lesson_state(Evidence("0" * 32, ()), Policy(), datetime.fromisoformat(NOW))


def moment(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)


NOON = datetime.fromisoformat(NOW)


def code_of(error: ProtocolError) -> tuple[str, int | None]:
    return error.code, error.line


# --- lines, keys and records ---


@of_kind("line")
def test_a_line_is_read_or_refused_at_every_door(vector: Vector) -> None:
    line = vector.data("line")
    if vector.error is None:
        assert parse_line(line) == vector.accepted.get("value", parse_line(line))
        # As a record it lacks something else, which is not a fault of its form.
        with pytest.raises(ProtocolError) as as_record:
            parse_record(line)
        assert as_record.value.code == "field_missing"
        return
    for read in (parse_line, parse_record):
        with pytest.raises(ProtocolError) as refused:
            read(line)
        assert code_of(refused.value) == (vector.error, None)
    if b"\n" in line:
        return  # in a file it is two lines
    with pytest.raises(ProtocolError) as in_a_file:
        accept(line + b"\n", now=NOON)
    assert code_of(in_a_file.value) == (file_fault(line) or vector.error, 1)


def file_fault(line: bytes) -> str | None:
    """Return what a file is refused for before its one line is read (PROTOCOL.md, section 6, step 1)."""
    if not line:
        return "blank_line"
    return "carriage_return" if b"\r" in line else None


@of_kind("key")
def test_a_key_is_read_or_refused_at_every_door(vector: Vector) -> None:
    key = str(vector.given["key"])
    line = json.dumps(
        whole(ADA, {"key": key, "sig": "0" * 128}), sort_keys=True, separators=(",", ":"), ensure_ascii=False
    ).encode()
    if vector.error is None:
        assert PublicKey.parse(key).origin == vector.accepted["origin"]
        return
    with pytest.raises(ProtocolError) as refused:
        PublicKey.parse(key)
    assert refused.value.code == vector.error
    with pytest.raises(ProtocolError) as as_record:
        parse_record(line)
    assert as_record.value.code == vector.error


@of_kind("record", "signature")
def test_a_record_is_read_or_refused_at_every_door(vector: Vector) -> None:
    line = vector.data("line")
    if vector.error is None:
        record = parse_record(line)
        assert record.line == line
        check_values(vector.accepted, record, line)
        return
    with pytest.raises(ProtocolError) as refused:
        parse_record(line)
    assert code_of(refused.value) == (vector.error, None)
    with pytest.raises(ProtocolError) as in_a_file:
        accept(line + b"\n", now=NOON)
    assert code_of(in_a_file.value) == (vector.error, 1)


def check_values(expected: Mapping[str, Any], record: Any, line: bytes) -> None:
    for name, value in expected.items():
        if name == "signed_hex":
            assert signed_bytes(line).hex() == value
        elif name == "signed_bytes":
            assert len(signed_bytes(line)) == value
        elif name == "time":
            assert record.time == moment(value)
        else:
            assert getattr(record, name) == value


def signed_bytes(line: bytes) -> bytes:
    before, behind = line.split(b'"sig":"')
    return before + behind[130:]


@of_kind("record", "signature", "judgement")
def test_a_good_line_without_a_seal_is_a_file(vector: Vector) -> None:
    line = vector.data("line")
    if vector.error is not None or (record := parse_record(line)).sealed:
        return
    if record.time is None or record.time <= NOON + timedelta(days=1):
        file = accept(line + b"\n", now=NOON)
        assert (file.records, file.seal) == ((record,), None)


# --- files ---


@cache
def verified_lines() -> Verified:
    """Everything that the accepted sealed files of one key hold, as if a receiver had verified all of it."""
    topics: dict[bytes, str] = {}
    for vector in VECTORS:
        if vector.kind == "file" and vector.error is None:
            file = accept(vector.data("file"), now=datetime.fromisoformat(vector.given["now"]))
            topics |= file.verified.topics if file.verified is not None else {}
    return Verified(PublicKey.parse(ADA.hex), topics)


@of_kind("file")
@pytest.mark.parametrize("again", [False, True], ids=["as new", "with lines verified before"])
def test_a_file_is_accepted_or_refused(vector: Vector, again: bool) -> None:
    known = verified_lines() if again else None
    data, now = vector.data("file"), datetime.fromisoformat(vector.given["now"])
    if vector.error is None:
        file = accept(data, now=now, verified=known)
        assert data == file.data
        assert vector.accepted == {
            "key": file.key.hex,
            "seal": file.version.seal,
            "digest": file.digest,
            "records": len(file.records),
        }
        return
    with pytest.raises(ProtocolError) as refused:
        accept(data, now=now, verified=known)
    assert code_of(refused.value) == (vector.error, vector.expect.get("line"))


@of_kind("file")
def test_what_is_accepted_stays_accepted(vector: Vector) -> None:
    if vector.error is None:
        file = accept(vector.data("file"), now=datetime.fromisoformat(vector.given["now"]))
        for record in file.records:
            verify_record(record)
        assert accept(file.data, now=NOON + timedelta(days=10_000), verified=file.verified).records == file.records


def test_more_records_than_a_file_may_have_fit_under_a_seal() -> None:
    sizes = {v.name: len(v.data("file")) for v in VECTORS if v.kind == "file" and v.name.endswith("that-say-nothing")}
    assert sizes == {"of-1000-records-that-say-nothing": 260_397, "of-1001-records-that-say-nothing": 260_657}
    assert {len(line) for line in alike(ADA, 3)} == {260 - len("\n")}


@of_kind("newest")
def test_the_newest_of_two_versions(vector: Vector) -> None:
    held = vector.given["held"]
    verdict = newest(None if held is None else Version(**held), Version(**vector.given["offered"]))
    assert verdict.value == vector.accepted["verdict"]


# --- texts and judgement ---


@of_kind("text")
def test_a_text_has_its_normal_form_and_hash(vector: Vector) -> None:
    kind, words = vector.given["kind"], vector.given["text"]
    assert vector.accepted == {"normal": normal_text(words), "hash": lesson_hash(kind, words)}
    assert lesson_hash(kind, normal_text(words)) == vector.accepted["hash"]


@of_kind("judgement")
def test_a_record_is_let_in_or_skipped_and_its_file_travels(vector: Vector) -> None:
    line = vector.data("line")
    fault = judge(parse_record(line))
    file = accept(line + b"\n", now=NOON)
    said = statements(file)
    if "skipped" in vector.expect:
        assert fault is not None
        assert fault.code == vector.expect["skipped"]
        assert said == []
    else:
        assert fault is None
        assert len(said) == (file.records[0].type != "unknown")


# --- states ---


def evidence_of(vector: Vector) -> Evidence:
    subject = vector.given["hash"]
    if "files" in vector.given:
        return Evidence.of_files(subject, files_of(vector))
    said = [
        Statement(s["key"], s["type"], s["subject"], moment(s["time"]), s.get("kind"), s.get("text"))
        for s in vector.given["statements"]
    ]
    return Evidence(subject, tuple(said), tuple(s for s in said if s.type == "deny"))


def files_of(vector: Vector) -> list[OriginFile]:
    """Return the files that are held when those of the vector have been offered one after the other."""
    now = datetime.fromisoformat(vector.given["now"])
    held: dict[PublicKey, OriginFile] = {}
    for data in vector.given["files"]:
        offered = accept(data.encode(), now=now)
        before = held.get(offered.key)
        if newest(None if before is None else before.version, offered.version).takes:
            held[offered.key] = offered
    return list(held.values())


def policy_of(given: Mapping[str, Any]) -> Policy:
    values: dict[str, Any] = {name: given[name] for name in ("confirmations", "open") if name in given}
    if "window_days" in given:
        values["window"] = timedelta(days=given["window_days"])
    values |= {name: frozenset(given[name]) for name in ("followed", "revokers") if name in given}
    values["admitted"] = frozenset(Admission(**admission) for admission in given.get("admitted", ()))
    return Policy(**values)


@of_kind("state")
def test_the_state_of_a_lesson(vector: Vector) -> None:
    evidence, policy = evidence_of(vector), policy_of(vector.given["policy"])
    now = datetime.fromisoformat(vector.given["now"])
    reading = lesson_state(evidence, policy, now)
    assert vector.accepted == {
        "state": reading.state.value,
        "cause": reading.cause.value,
        "kind": reading.kind,
        "text": reading.text,
        "publishers": list(reading.publishers),
        "confirmations": reading.confirmations,
        "unadmitted": reading.unadmitted,
        "corroborations": reading.corroborations,
        "last_confirmed": None if reading.last_confirmed is None else f"{reading.last_confirmed:%Y-%m-%dT%H:%M:%SZ}",
        "revokers": list(reading.revokers),
    }
    backwards = Evidence(evidence.hash, evidence.statements[::-1], evidence.denials[::-1] * 2)
    assert lesson_state(backwards, policy, now) == reading


@of_kind("event")
def test_the_event_between_two_states(vector: Vector) -> None:
    before, after = (dataclasses.replace(NOTHING_HELD, state=State(vector.given[name])) for name in ("before", "after"))
    event = event_between(before, after)
    assert vector.accepted == {"event": event and event.value}


# --- the next seal ---


@of_kind("seal")
def test_the_next_seal(vector: Vector) -> None:
    now = datetime.fromisoformat(vector.given["now"])
    seal = next_seal(now, vector.given["found"])
    assert vector.accepted == {"seal": seal.number, "at": format_time(seal.at)}
    assert accept(compose(SigningKey.from_seed(ADA.seed), [], number=seal.number, at=seal.at), now=now).records == ()


# --- the set of vectors ---


def test_the_generator_makes_the_vectors_byte_for_byte() -> None:
    kept = {
        str(path.relative_to(vectors_reader.FOLDER)): path.read_bytes() for path in vectors_reader.FOLDER.glob("*/*")
    }
    assert kept == {path: text.encode() for path, text in make_vectors.all_files().items()}


def test_an_empty_folder_of_vectors_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="expected vectors"):
        vectors_reader.read_vectors(tmp_path)


def test_every_kind_of_vector_is_run() -> None:
    here = "".join(path.read_text("utf-8") for path in Path(__file__).parent.glob("test_vectors*.py"))
    assert set(re.findall(r'"(\w+)"', "".join(re.findall(r"@of_kind\((.*?)\)", here)))) == {v.kind for v in VECTORS}


def test_a_vector_has_a_name_that_a_link_can_hold() -> None:
    assert [v.name for v in VECTORS if not re.fullmatch(r"[a-z0-9-]+", v.name)] == []


def subclasses(kind: type[ProtocolError]) -> Iterator[type[ProtocolError]]:
    for child in kind.__subclasses__():
        yield child
        yield from subclasses(child)


def fault_codes() -> Iterable[str]:
    """The codes of judgement, from where they are written: each `Fault(…)`, and the table of classes of characters."""
    for module in (judgement, text):
        for node in ast.walk(ast.parse(inspect.getsource(module))):
            match node:
                case ast.Call(func=ast.Name(id=Fault.__name__), args=[ast.Constant(value=code), *_]):
                    yield str(code)
    for code, _expected in text._CLASS_FAULTS.values():
        yield code


def test_every_error_code_has_a_vector() -> None:
    codes = {child.code for child in subclasses(ProtocolError)}
    assert codes == {vector.error for vector in VECTORS if vector.error is not None and vector.kind != "body"}


def test_every_judgement_code_has_a_vector() -> None:
    assert set(fault_codes()) == {v.expect["skipped"] for v in VECTORS if "skipped" in v.expect}


def test_every_type_of_record_has_a_vector() -> None:
    types = {vector.accepted.get("type") for vector in VECTORS if vector.kind == "record" and vector.error is None}
    assert types == {"lesson", "confirm", "revoke", "deny", "seal", "unknown"}
    assert any(isinstance(parse_record(v.data("line")), Seal) for v in VECTORS if v.kind == "record" and not v.error)


README = (vectors_reader.FOLDER / "README.md").read_text("utf-8")


def members(value: object) -> Iterator[str]:
    """Yield the name of every member of some JSON; what a line's own object holds is described elsewhere."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield name
            if name != "value":
                yield from members(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from members(inner)


def test_every_member_of_a_vector_is_described() -> None:
    described = set(re.findall(r"`([a-z_]+)`", README))
    assert {name for vector in VECTORS for name in members(dict(vector.given))} - described == set()


def test_every_kind_of_vector_is_described() -> None:
    table = README.split("| kind | section |")[1].split("\n\n")[0]
    assert re.findall(r"^\| `([a-z]+)` \|", table, re.MULTILINE) == list(make_vectors.all_vectors())
