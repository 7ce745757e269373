"""How what a peer sent comes in, and what it costs whoever sent it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from random import Random

import pytest

from remem.protocol import Seal, Version, digest_of, parse_record
from remem.protocol.items import item_of, proof_item
from remem_gossip.budget import Allowance, Budget
from remem_gossip.parts import NO_ID, Outcome, Proof, Verdict, Whole
from remem_gossip.taking import claim_of, take_parts
from remem_testkit.files import NOW, file, full_file, key, lesson, sentence
from remem_testkit.hostile import forged
from remem_testkit.nodes import PLENTY, MapNode

DAY = timedelta(days=1)


def said(number: int, version: int = 0, text: int | None = None) -> bytes:
    return file(
        key(number), [lesson(sentence(version if text is None else text))], at=NOW + version * timedelta(minutes=1)
    )


def take(node: MapNode, part: bytes | Proof, allowance: Allowance | None = None) -> Verdict:
    whole = part if isinstance(part, Proof) else Whole(id_of(part), part)
    (verdict,) = take_parts(node, [whole], "peer", allowance or Allowance(PLENTY))
    return verdict


def id_of(data: bytes) -> bytes:
    claim = claim_of(data)
    return NO_ID if claim is None else claim.id


def proof(number: int) -> Proof:
    first, second = (said(number, 0, text).split(b"\n", 1)[0] for text in (1, 2))
    return Proof(proof_item(key(number).public).id, (first, second))


def test_a_file_claims_to_be_what_it_is() -> None:
    data = said(1, 5)
    claim = claim_of(data)
    seal = parse_record(data.split(b"\n", 1)[0])
    assert claim is not None
    assert isinstance(seal, Seal)
    assert claim.key == seal.key.hex
    assert claim.version == Version(seal.number, digest_of(data))
    assert claim.id == item_of(seal.key, seal.time, digest_of(data)).id


@pytest.mark.parametrize(
    ("make", "outcome", "checks", "settles"),
    [
        (lambda: said(1, 5), Outcome.KNOWN, 0, False),
        (lambda: said(1, 9), Outcome.NEWER, 2, False),
        (lambda: said(2), Outcome.NEW, 2, False),
        (lambda: said(1, 1), Outcome.OLDER, 1, True),
        (lambda: forged(said(1, 9), Random(2)), Outcome.REFUSED, 2, True),
        (lambda: said(3), Outcome.REFUSED, 1, True),
        (lambda: file(key(2), [lesson(sentence(0))], at=NOW + 2 * DAY), Outcome.DEFERRED, 2, False),
        (lambda: b'{"key":"x","seal":1}\n', Outcome.REFUSED, 1, True),
    ],
    ids=["held", "newer", "of a new key", "older", "forged", "of a blocked key", "of a day to come", "no seal"],
)
def test_what_comes_is_charged_and_what_is_not_wanted_is_remembered(
    make: Callable[[], bytes], outcome: Outcome, checks: int, settles: bool
) -> None:
    node, allowance = MapNode(), Allowance(PLENTY)
    node.put(said(1, 5))
    node.block(key(3).public.hex, "spam")
    data = make()
    assert take(node, data, allowance).outcome is outcome
    assert allowance.spent.checks == checks
    assert (id_of(data) in node.ledger) is settles


@pytest.mark.parametrize("version", [1, 9], ids=["superseded", "refused"])
def test_what_was_not_wanted_costs_nothing_when_it_comes_again(version: int) -> None:
    node, allowance = MapNode(), Allowance(PLENTY)
    node.put(said(1, 5))
    data = forged(said(1, version), Random(2)) if version == 9 else said(1, version)
    take(node, data)
    assert take(node, data, allowance).outcome in (Outcome.OLDER, Outcome.REFUSED)
    assert allowance.spent == Budget()


def test_a_newcomer_beyond_a_budget_waits_and_an_update_does_not() -> None:
    node, allowance = MapNode(), Allowance(Budget(bytes=10**9, checks=10**9, origins=1))
    node.put(said(1))
    assert [take(node, data, allowance).outcome for data in (said(2), said(3), said(1, 5))] == [
        Outcome.NEW, Outcome.DEFERRED, Outcome.NEWER,
    ]  # fmt: skip


def test_behind_a_spent_budget_nothing_comes_and_nothing_is_remembered() -> None:
    node, allowance = MapNode(), Allowance(Budget(bytes=10**9, checks=2, origins=9))
    node.put(said(1, 5))
    outcomes = [take(node, data, allowance).outcome for data in (said(1, 6), said(1, 7), said(2), said(1, 1))]
    assert outcomes == [Outcome.NEWER, Outcome.DEFERRED, Outcome.DEFERRED, Outcome.DEFERRED]
    assert allowance.spent.checks == 2
    assert id_of(said(1, 1)) not in node.ledger


def test_a_refused_newcomer_is_no_newcomer() -> None:
    node, allowance = MapNode(), Allowance(Budget(bytes=10**9, checks=10**9, origins=1))
    assert take(node, forged(said(2), Random(2)), allowance).outcome is Outcome.REFUSED
    assert take(node, said(3), allowance).outcome is Outcome.NEW


def test_a_proof_is_taken_once_and_then_costs_nothing() -> None:
    node, allowance = MapNode(), Allowance(PLENTY)
    node.put(said(1))
    assert take(node, proof(1), allowance) == Verdict(proof_item(key(1).public).id, Outcome.NEW)
    assert take(node, proof(1), allowance).outcome is Outcome.KNOWN
    assert allowance.spent == Budget(checks=2)


def test_a_proof_about_a_key_that_never_came_is_a_newcomer() -> None:
    node, allowance = MapNode(), Allowance(Budget(bytes=10**9, checks=10**9, origins=1))
    outcomes = [take(node, proof(number), allowance).outcome for number in range(3)]
    assert outcomes == [Outcome.NEW, Outcome.DEFERRED, Outcome.DEFERRED]
    assert allowance.spent == Budget(checks=2, origins=1)


def test_a_proof_that_has_no_room_waits_and_costs_a_newcomer_all_the_same() -> None:
    node, allowance = _Full(), Allowance(Budget(bytes=10**9, checks=10**9, origins=2))
    verdicts = [take(node, proof(number), allowance) for number in range(4)]
    assert [verdict.code for verdict in verdicts] == ["no_room", "no_room", "over_budget", "over_budget"]
    assert {verdict.outcome for verdict in verdicts} == {Outcome.DEFERRED}
    assert allowance.spent == Budget(checks=4, origins=2)
    again = take(node, proof(0), allowance)
    assert (again.outcome, again.code) == (Outcome.REFUSED, "refused_before")
    assert allowance.spent == Budget(checks=4, origins=2)


class _Full(MapNode):
    def take_proof(self, first: Seal, second: Seal) -> str | None:
        return "no_room"


@pytest.mark.parametrize(
    "seals",
    [
        (said(1).split(b"\n")[0],) * 2,
        (said(1, 0).split(b"\n")[0], said(1, 5).split(b"\n")[0]),
        (said(1, 0, 1).split(b"\n")[0], forged(said(1, 0, 2), Random(2)).split(b"\n")[0]),
        (b"{}", b"{}"),
        (b"\xff", b"\xff"),
    ],
    ids=["one seal twice", "two numbers", "one that is forged", "no seals", "no text"],
)
def test_what_proves_nothing_is_refused(seals: tuple[bytes, bytes]) -> None:
    node = MapNode()
    assert take(node, Proof(NO_ID, seals)).outcome is Outcome.REFUSED
    assert not node.proofs


def test_lines_that_were_verified_before_are_not_charged_again() -> None:
    node, allowance = MapNode(), Allowance(PLENTY)
    node.put(full_file(key(1), seal=1))
    assert take(node, full_file(key(1), seal=2), allowance).outcome is Outcome.NEWER
    assert allowance.spent.checks == 1


@pytest.mark.parametrize(
    "line",
    [
        b'{"a":' + b"[" * 4_000 + b"]" * 4_000 + b"}",
        b"[" * 8_192,
        b'{"a":' + b"9" * 8_000 + b"}",
        b"\xff\xfe{\x00}\x00",
        b"[]",
        b'{"key":"%s","seal":1.0}' % key(1).public.hex.encode(),
        b'{"key":"%s","seal":true}' % key(1).public.hex.encode(),
        b'{"key":["x"],"seal":1}',
        b'{"key":"%s","seal":1,"a":"%s"}' % (key(1).public.hex.encode(), b"a" * 8_192),
        b"",
    ],
    ids=["deep", "never closed", "digits", "UTF-16", "a list", "a fraction", "true", "no key", "too long", "empty"],
)
def test_a_hostile_first_line_claims_nothing(line: bytes) -> None:
    assert claim_of(line + b"\n") is None
    assert claim_of(line) is None
