"""Every vector of what passes between nodes: items, and the bodies of an exchange."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

import pytest

from remem.protocol import Seal, accept, parse_record
from remem.protocol.items import item_of, proof_item
from remem_gossip import wire
from remem_gossip.parts import Blocked, Head, Missing, Part, Proof, Whole
from remem_gossip.wire import BadBody

from . import vectors_items, vectors_reader
from .vectors_reader import Vector

VECTORS = vectors_reader.read_vectors()
NOW = datetime(2026, 12, 2, tzinfo=UTC)


def of_kind(kind: str) -> pytest.MarkDecorator:
    chosen = [vector for vector in VECTORS if vector.kind == kind]
    return pytest.mark.parametrize("vector", chosen, ids=[f"{v.kind}/{v.name}" for v in chosen])


@of_kind("item")
def test_a_file_or_a_proof_has_its_item(vector: Vector) -> None:
    assert vector.accepted == item_by_the_package(vector)


def item_by_the_package(vector: Vector) -> Mapping[str, Any]:
    if "proof" in vector.given:
        first, second = (parse_record(line.encode()) for line in vector.given["proof"])
        assert isinstance(first, Seal)
        assert isinstance(second, Seal)
        assert (first.key, first.number) == (second.key, second.number)
        item = proof_item(first.key)
    else:
        file = accept(vector.data("file"), now=NOW)
        if file.seal is None:
            return {"time": None, "id": None}
        item = item_of(file.key, file.seal.time, file.digest)
    return {"time": item.time, "id": item.id.hex()}


def fields_of(part: Part) -> Mapping[str, Any]:
    match part:
        case Whole(id=name, data=data):
            return {"file": name.hex(), "bytes": len(data)}
        case Proof(id=name):
            return {"proof": name.hex()}
        case Blocked(id=name, reason=reason):
            return {"blocked": name.hex(), "reason": reason}
        case Missing(id=name):
            return {"missing": name.hex()}


def parts_of(parts: Iterable[Part]) -> Mapping[str, Any]:
    return {"parts": [fields_of(part) for part in parts]}


def fields_of_head(head: Head) -> Mapping[str, Any]:
    return dataclasses.asdict(head) | {"id": head.id.hex()}


def question(body: bytes, _given: Mapping[str, Any]) -> Mapping[str, Any]:
    asked = wire.read_fetch(body)
    return {"ids": [one.hex() for one in asked.ids], "heads": asked.heads}


def verdicts(body: bytes, given: Mapping[str, Any]) -> Mapping[str, Any]:
    said = wire.read_verdicts(body, given["offered"])
    return {"verdicts": [{"id": one.id.hex(), "verdict": one.outcome.value, "code": one.code} for one in said]}


READERS: Mapping[str, Callable[[bytes, Mapping[str, Any]], Mapping[str, Any]]] = {
    "question": question,
    "answer": lambda body, _given: parts_of(wire.read_parts(body)),
    "offer": lambda body, _given: parts_of(wire.read_offer(body)),
    "heads": lambda body, _given: {"heads": list(map(fields_of_head, wire.read_heads(body)))},
    "verdicts": verdicts,
}


@of_kind("body")
def test_a_body_is_read_or_refused(vector: Vector) -> None:
    read, body = READERS[vector.given["form"]], vector.data("body")
    if vector.error is None:
        assert vector.accepted == read(body, vector.given)
        return
    with pytest.raises(BadBody) as refused:
        read(body, vector.given)
    assert refused.value.code == vector.error


def test_the_caps_of_the_vectors_are_those_of_the_package() -> None:
    assert (vectors_items.LINE_BYTES, vectors_items.REASON_CHARACTERS) == (wire._LINE_BYTES, wire._REASON_CHARACTERS)


def test_every_form_of_a_body_has_good_vectors_and_bad_ones() -> None:
    seen = {(vector.given["form"], vector.error is None) for vector in VECTORS if vector.kind == "body"}
    assert seen == {(form, good) for form in READERS for good in (True, False)}
