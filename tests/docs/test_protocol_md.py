"""PROTOCOL.md against the package and the vectors: what the document says is what the code does."""

from __future__ import annotations

import ast
import importlib
import inspect
import json
import re
from collections.abc import Iterator
from datetime import timedelta
from hashlib import blake2b, sha256
from pathlib import Path
from typing import Any

import pytest

from remem.ingest import events
from remem.protocol import (
    KNOWN_KINDS,
    RULES,
    TRANSITIONS,
    Cause,
    Fault,
    ProtocolError,
    SigningKey,
    State,
    StateEvent,
    accept,
    judgement,
    lesson_hash,
    normal_text,
    parse_record,
    text,
    unicode14,
)
from remem.protocol.times import parse_time, unix_seconds
from remem_gossip import memory_node, taking, wire
from remem_gossip.night import MEMORY_BUDGET
from remem_gossip.reconcile import BadFrame
from remem_gossip.signatures import WINDOW_SECONDS

ROOT = Path(__file__).resolve().parents[2]
DOCUMENT = (ROOT / "PROTOCOL.md").read_text("utf-8")
VECTORS = ROOT / "tests" / "vectors"
TITLES = (
    "1. Words",
    "2. A line",
    "3. The signature",
    "4. Key and origin",
    "5. Records",
    "6. A file",
    "7. The newest wins",
    "8. Judgement",
    "9. The state of a lesson",
    "10. Writing",
    "11. Places",
    "12. Error codes",
    "13. Numbers",
    "14. A worked example",
    "15. Decisions",
    "16. Gossip",
    "Appendix A. The event",
)
LINES_OF_A_PAGE = 60


def section(title: str, level: int = 2) -> str:
    """Return what stands under a heading, down to the next of its level or above."""
    found = re.search(
        rf"^#{{{level}}} {re.escape(title)}$\n(.*?)(?=^#{{1,{level}}} |\Z)", DOCUMENT, re.MULTILINE | re.DOTALL
    )
    assert found is not None, title
    return found[1]


def rows(of: str) -> list[list[str]]:
    """Return the cells of every row of every table, the heads left out."""
    found = re.findall(r"^\|(.*)\|$", of, re.MULTILINE)
    cells = [[cell.strip() for cell in row.split(" | ")] for row in found]
    heads = {number - 1 for number, row in enumerate(cells) if set(row[0]) <= {"-", "|"}}
    return [row for number, row in enumerate(cells) if number not in heads and number - 1 not in heads]


def code(cell: str) -> str:
    return cell.strip("`")


# --- the shape of the document ---


def test_the_sections_have_the_numbers_that_docstrings_name() -> None:
    assert tuple(re.findall(r"^## (.*)$", DOCUMENT, re.MULTILINE)) == ("Summary", *TITLES)


def test_the_summary_fits_on_a_page() -> None:
    before, _rest = DOCUMENT.split("\n## 1. Words\n")
    assert before.count("\n", before.index("## Summary")) <= LINES_OF_A_PAGE


def test_docstrings_name_sections_that_exist() -> None:
    named = set()
    for path in [found for name in ("client", "gossip", "server") for found in (ROOT / name).rglob("*.py")]:
        for numbers in re.findall(r"PROTOCOL\.md, sections? ([0-9, andto]+)", path.read_text("utf-8")):
            named |= set(re.findall(r"[0-9]+", numbers))
    assert named <= {title.split(".")[0] for title in TITLES[:-1]}


# --- the examples are vectors ---


def vector(name: str) -> dict[str, Any]:
    return dict(json.loads((VECTORS / f"{name}.json").read_text("utf-8")))


EXAMPLES = [row for row in rows(DOCUMENT) if re.fullmatch(r"`[a-z]+/[a-z0-9-]+`", row[-1])]


def test_every_vector_that_is_named_exists() -> None:
    kinds = {path.name for path in VECTORS.iterdir() if path.is_dir()}
    named = set(re.findall(rf"`((?:{'|'.join(kinds)})/[a-z0-9-]+)`", DOCUMENT))
    assert {name for name in named if not (VECTORS / f"{name}.json").is_file()} == set()
    assert {name.split("/")[0] for name in named} == kinds


def now_of(given: dict[str, Any]) -> int:
    return unix_seconds(parse_time(given["now"]))


@pytest.mark.parametrize("row", EXAMPLES, ids=[code(row[-1]) for row in EXAMPLES])
def test_an_example_has_the_verdict_of_its_vector(row: list[str]) -> None:
    name = code(row[-1])
    given = vector(name)
    expect = given["expect"]
    match name.split("/")[0]:
        case "text":
            kind, words, normal, hashed = map(code, row[:4])
            assert (given["kind"], given["text"]) == (kind, words)
            assert expect["accept"] == {"normal": normal, "hash": hashed}
        case "newest":
            assert f"`{expect['accept']['verdict']}`" in row[2]
        case "state":
            assert expect["accept"]["state"] == code(row[1])
        case "item":
            time, id_ = (None if cell == "none" else code(cell) for cell in row[1:3])
            assert expect["accept"] == {"time": time and int(time.replace(",", "")), "id": id_}
        case "seal":
            assert [int(number.replace(",", "")) for number in row[0].split() if number != "none"] == given["found"]
            assert expect["accept"] == {"seal": int(row[1].replace(",", "")), "at": code(row[2])}
            assert f"In the examples now is {now_of(given):,}, which is `{given['now']}`." in DOCUMENT
        case _:
            verdict = expect.get("error") or expect.get("skipped") or "accept"
            assert code(row[1]) == verdict


@pytest.mark.parametrize("row", EXAMPLES, ids=[code(row[-1]) for row in EXAMPLES])
def test_an_example_shows_what_its_vector_holds(row: list[str]) -> None:
    name, shown = code(row[-1]), re.match(r"`(.*?)`", row[0])
    given = vector(name)
    if shown is None or "line" not in given:
        return
    if name.startswith("line/"):
        assert given["line"] == code(row[0])
    elif shown[1].startswith("{"):
        held = json.loads(given["line"])
        part = json.loads(shown[1])
        assert {field: held[field] for field in part} == part


# --- the tables ---


def subclasses(kind: type[Exception]) -> Iterator[type[Exception]]:
    for child in kind.__subclasses__():
        yield child
        yield from subclasses(child)


def test_the_error_codes_are_those_of_the_package() -> None:
    written = [(code(row[0]), row[1]) for row in rows(section("Acceptance", 3))]
    assert written == [(vars(kind)["code"], kind.__doc__) for kind in subclasses(ProtocolError)]


def fault_codes() -> set[str]:
    found = {name for name, _expected in text._CLASS_FAULTS.values()}
    for module in (judgement, text):
        for node in ast.walk(ast.parse(inspect.getsource(module))):
            match node:
                case ast.Call(func=ast.Name(id=Fault.__name__), args=[ast.Constant(value=str(name)), *_]):
                    found.add(name)
    return found


def test_the_judgement_codes_are_those_of_the_package() -> None:
    assert {code(row[0]) for row in rows(section("Judgement", 3))} == fault_codes()


def test_the_http_codes_are_those_of_the_server() -> None:
    pytest.importorskip("remem_server.web.problems", reason="the server is not installed")
    errors = importlib.import_module("remem_server.errors")
    status_of = importlib.import_module("remem_server.web.problems").status_of
    kinds = [kind for kind in subclasses(errors.CommonsError) if "code" in vars(kind)]
    written = {code(row[0]): int(row[1]) for row in rows(section("HTTP", 3))}
    assert written == {vars(kind)["code"]: int(status_of(kind)) for kind in kinds}


def test_the_codes_between_nodes_are_those_of_the_package() -> None:
    pytest.importorskip("remem_server.web.problems", reason="the server is not installed")
    problems = importlib.import_module("remem_server.web.problems")
    signatures = importlib.import_module("remem_gossip.signatures")
    refused = [*subclasses(signatures.BadSignature), BadFrame, wire.BadBody]
    table = rows(section("Between nodes", 3))
    written = [(code(row[0]), int(row[1]), row[2]) for row in table if len(row) == 3]
    made = [(vars(kind)["code"], int(problems.status_of(kind)), str(kind.__doc__).splitlines()[0]) for kind in refused]
    assert written == made
    verdicts = {taking.OVER_BUDGET, taking.NOT_SEALED, taking.NO_PROOF, taking.REFUSED_BEFORE}
    verdicts |= {memory_node.OWN_FILE, memory_node.NO_ROOM}
    assert {code(row[0]) for row in table if len(row) == 2} == verdicts


def test_the_numbers_are_those_of_the_rules() -> None:
    written = {code(name): value for name, value, _what in rows(section("13. Numbers"))}
    of_nodes = {name: value for name, value in written.items() if name.isupper()}
    made = {name: spell(getattr(RULES, name)) for name in RULES.__dataclass_fields__}
    assert {name: value for name, value in written.items() if name not in of_nodes} == made
    numbers = {**vars(wire), "WINDOW_SECONDS": WINDOW_SECONDS}
    assert of_nodes == {name: spell(numbers[name]) for name in of_nodes}


def test_what_a_memory_takes_of_a_peer_in_a_night_is_what_the_package_takes() -> None:
    most = MEMORY_BUDGET
    written = f"a memory takes {most.bytes:,} bytes, {most.checks:,} signatures and {most.origins:,} new keys"
    assert written in " ".join(DOCUMENT.split())


def spell(value: int | timedelta) -> str:
    if isinstance(value, timedelta):
        hours = value // timedelta(hours=1)
        return f"{hours} hours" if hours <= 24 else f"{hours // 24} days"
    return f"{value:,}"


def test_the_transitions_are_those_of_the_package() -> None:
    part = section("How a reading follows another", 3)
    table = {(State(row[0]), StateEvent(row[1])): State(row[2]) for row in rows(part) if len(row) == 3}
    diagram = {
        (State(before), StateEvent(event)): State(after)
        for before, after, event in re.findall(r"^    (\w+) --> (\w+): (\w+)$", part, re.MULTILINE)
    }
    assert table == dict(TRANSITIONS)
    assert diagram == dict(TRANSITIONS)
    assert {row[0] for row in rows(part) if len(row) == 2} == {event.value for event in StateEvent}


def test_the_rules_of_states_give_every_state_and_cause() -> None:
    steps, _rest = section("9. The state of a lesson").split("\nAges are ")
    given = [(code(state), code(cause)) for _rule, state, cause in rows(steps)]
    assert {state for state, _cause in given} == {state.value for state in State}
    assert [cause for _state, cause in given] == [cause.value for cause in Cause]


def test_the_white_space_is_that_of_the_package() -> None:
    listed = re.search(r"White space is\s+the\s+25\s+code\s+points\s(.*?)\.$", DOCUMENT, re.MULTILINE | re.DOTALL)
    assert listed is not None
    points: set[str] = set()
    for first, last in re.findall(r"U\+([0-9A-F]{4})(?: to U\+([0-9A-F]{4}))?", listed[1]):
        points |= {chr(point) for point in range(int(first, 16), int(last or first, 16) + 1)}
    assert points == set(unicode14.WHITE_SPACE)
    assert len(points) == 25


def test_the_known_kinds_are_those_of_the_package() -> None:
    found = re.search(r"The known kinds are (.*?);", DOCUMENT, re.DOTALL)
    assert found is not None
    assert tuple(re.findall(r"`(\w+)`", found[1])) == KNOWN_KINDS


def test_the_event_is_that_of_the_package() -> None:
    cells = rows(section("Appendix A. The event"))
    fields, kinds = cells[: -len(events.KINDS)], cells[-len(events.KINDS) :]
    assert [code(row[0]) for row in fields] == ["kind", *events._TEXTS, "at"]
    assert {code(row[0]): tuple(re.findall(r"`(\w+)`", row[1])) for row in kinds} == events._SUBSTANCE
    assert f"{events.MAX_BYTES:,} bytes" in " ".join(DOCUMENT.split())


# --- the worked example ---

BLOCKS = dict(re.findall(r"^```text ([a-z-]+)\n(.*?)\n```$", section("14. A worked example"), re.MULTILINE | re.DOTALL))


def without_signature(line: str, signature: str) -> str:
    whole = f'"sig":"{signature}",'
    assert line.count(whole) == 1
    return line.replace(whole, "")


def digest(data: bytes) -> str:
    return blake2b(data, digest_size=32).hexdigest()


def test_the_example_goes_from_a_seed_to_a_key() -> None:
    key = SigningKey.from_seed(bytes.fromhex(BLOCKS["seed"])).public
    assert key.hex == BLOCKS["key"]
    assert sha256(bytes.fromhex(BLOCKS["key"])).digest()[:8].hex() == BLOCKS["origin"] == key.origin


def test_the_example_goes_from_a_text_to_a_hash() -> None:
    assert normal_text(BLOCKS["text"]) == BLOCKS["normal"]
    assert ("error" + BLOCKS["normal"]).encode().hex() == BLOCKS["hashed"]
    assert blake2b(bytes.fromhex(BLOCKS["hashed"]), digest_size=16).hexdigest() == BLOCKS["hash"]
    assert lesson_hash("error", BLOCKS["text"]) == BLOCKS["hash"]


@pytest.mark.parametrize("name", ["lesson", "revocation", "seal"])
def test_the_example_goes_from_signed_bytes_to_a_line(name: str) -> None:
    signed, signature = BLOCKS[f"{name}-signed"], BLOCKS[f"{name}-signature"]
    assert SigningKey.from_seed(bytes.fromhex(BLOCKS["seed"])).sign(signed.encode()).hex() == signature
    assert without_signature(BLOCKS[name], signature) == signed
    assert parse_record(BLOCKS[name].encode()).key.hex == BLOCKS["key"]


def test_the_example_goes_from_lines_to_a_file() -> None:
    behind = f"{BLOCKS['lesson']}\n{BLOCKS['revocation']}\n".encode()
    assert digest(behind) == BLOCKS["behind-digest"] == json.loads(BLOCKS["seal"])["digest"]
    assert json.loads(BLOCKS["lesson"])["hash"] == BLOCKS["hash"]
    data = f"{BLOCKS['file']}\n".encode()
    assert data == f"{BLOCKS['seal']}\n".encode() + behind
    assert digest(data) == BLOCKS["file-digest"]
    part = " ".join(section("14. A worked example").split())
    assert f"over these {len(behind)} bytes" in part
    assert f"{len(data):,} bytes in all" in part
    seal = json.loads(BLOCKS["seal"])
    file = accept(data, now=parse_time(seal["at"]))
    assert (file.digest, file.version.seal) == (BLOCKS["file-digest"], int(parse_time(seal["at"]).timestamp()))
    assert vector("file/worked-example")["file"].encode() == data
