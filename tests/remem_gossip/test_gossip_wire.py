"""What passes between two nodes comes out as it went in, and nothing else does."""

from __future__ import annotations

import json
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remem.protocol import RULES, accept, digest_of
from remem.protocol.items import item_of, proof_item
from remem_gossip import wire
from remem_gossip.parts import Blocked, Head, Missing, Outcome, Part, Proof, Verdict, Whole
from remem_gossip.wire import BadBody
from remem_testkit.files import NOW, draft_file, file, full_file, key, lesson, sentence

ID = bytes(range(32))
NAME = ID.hex()


def whole(number: int, texts: int = 1) -> Whole:
    data = file(key(number), [lesson(sentence(text)) for text in range(texts)])
    return Whole(item_of(key(number).public, NOW, digest_of(data)).id, data)


def proof(number: int) -> Proof:
    lines = [file(key(number), [lesson(sentence(text))], seal=5).split(b"\n")[0] for text in (0, 1)]
    return Proof(proof_item(key(number).public).id, (lines[0], lines[1]))


PARTS: list[Part] = [whole(1), proof(2), Blocked(ID, "its operator does not keep it"), Missing(ID), whole(3, 4)]
SPOKEN: list[Whole | Proof] = [whole(1), proof(2), whole(3, 4)]

ids = st.lists(st.binary(min_size=32, max_size=32), min_size=1, max_size=20, unique=True)


@given(ids, st.booleans())
def test_what_is_asked_for_is_what_is_read(asked: list[bytes], heads: bool) -> None:
    assert wire.read_fetch(wire.write_fetch(asked, heads=heads)) == wire.Asked(tuple(asked), heads)


def test_the_longest_question_is_within_its_cap() -> None:
    asked = [number.to_bytes(32, "big") for number in range(wire.FETCH_IDS)]
    body = wire.write_fetch(asked, heads=True)
    assert len(body) <= wire.ASKED_BYTES
    assert len(wire.read_fetch(body).ids) == wire.FETCH_IDS


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"[]", id="no object"),
        pytest.param(b"\xff", id="no UTF-8"),
        pytest.param(b'{"ids":[]}', id="no id"),
        pytest.param(b'{"ids":"' + NAME.encode() + b'"}', id="no list"),
        pytest.param(json.dumps({"ids": [NAME, NAME]}).encode(), id="an id twice"),
        pytest.param(json.dumps({"ids": [NAME.upper()]}).encode(), id="an id in capitals"),
        pytest.param(json.dumps({"ids": [NAME[:-2]]}).encode(), id="a short id"),
        pytest.param(json.dumps({"ids": [7]}).encode(), id="a number for an id"),
        pytest.param(json.dumps({"ids": [NAME], "heads": 1}).encode(), id="heads that is a number"),
        pytest.param(json.dumps({"ids": [NAME], "heads": None}).encode(), id="heads that is null"),
        pytest.param(b'{"ids":["%b"],"ids":["%b"]}' % (NAME.encode(), NAME.encode()), id="a field twice"),
        pytest.param(b'{"ids":["%b"],"a":NaN}' % NAME.encode(), id="a number that is none"),
        pytest.param(b'{"ids":' + b"[" * 100_000 + b"]" * 100_000 + b"}", id="a deep nest"),
        pytest.param(b'{"ids":' + b"9" * 100_000 + b"}", id="a long number"),
        pytest.param(json.dumps({"ids": [f"{n:064x}" for n in range(wire.FETCH_IDS + 1)]}).encode(), id="too many"),
        pytest.param(b'{"ids":["%b"]}' % NAME.encode() + b" " * wire.ASKED_BYTES, id="too long"),
    ],
)
def test_a_question_of_another_form_is_a_bad_body(body: bytes) -> None:
    with pytest.raises(BadBody):
        wire.read_fetch(body)


def test_parts_come_out_as_they_went_in() -> None:
    body = b"".join(map(wire.write_part, PARTS))
    assert list(wire.read_parts(body)) == PARTS
    assert len(body) == sum(map(wire.size_of, PARTS))


def test_what_is_offered_comes_out_as_it_went_in() -> None:
    body = b"".join(map(wire.write_part, SPOKEN))
    assert wire.read_offer(body) == SPOKEN


def test_a_file_travels_byte_for_byte_and_every_line_is_json() -> None:
    body = wire.write_part(whole(1, 3))
    assert body.startswith(b'{"file":')
    assert body.endswith(whole(1, 3).data)
    for line in body.splitlines():
        assert json.loads(line)
    accept(whole(1, 3).data, now=NOW)


def test_the_largest_file_and_proof_fit() -> None:
    data = full_file(key(1))
    line = file(key(4), [], seal=5).removesuffix(b"\n")
    quotes = b'"' * ((RULES.line_bytes - len(line)) // 2)
    # Escaped in the line, and escaped again around it.
    filled = line.replace(b'"records":0', b'"quotes":"' + quotes.replace(b'"', rb"\"")[:-20] + b'","records":0')
    assert len(filled) > RULES.line_bytes - 60
    parts: list[Part] = [Whole(ID, data), Proof(ID, (filled, filled))]
    came = list(wire.read_parts(b"".join(map(wire.write_part, parts))))
    assert isinstance(came[0], Whole)
    assert isinstance(came[1], Proof)
    assert (came[0].data, came[1].seals) == (data, (filled, filled))


def body_of(*pieces: object) -> bytes:
    return b"".join(
        piece if isinstance(piece, bytes) else json.dumps(piece, separators=(",", ":")).encode() + b"\n"
        for piece in pieces
    )


SEAL = whole(1).data.split(b"\n")[0].decode()
OTHER_SEAL = whole(3).data.split(b"\n")[0].decode()
DRAFT = draft_file(key(1), [lesson("a build fails")])


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b'{"file":4}', id="a line without an end"),
        pytest.param(b"\n", id="an empty line"),
        pytest.param(body_of([]), id="no object"),
        pytest.param(body_of({}), id="an object that says nothing"),
        pytest.param(body_of({"id": NAME}), id="an id alone"),
        pytest.param(body_of({"file": 3, "missing": True, "id": NAME}, b"{}\n"), id="two things at once"),
        pytest.param(body_of({"file": 0}), id="a file of no bytes"),
        pytest.param(body_of({"file": -1}), id="a file of fewer"),
        pytest.param(body_of({"file": True}, b"\n"), id="a file of true bytes"),
        pytest.param(body_of({"file": 3.0}, b"{}\n"), id="a fraction of bytes"),
        pytest.param(body_of({"file": RULES.file_bytes + 1}, b"x" * RULES.file_bytes + b"\n"), id="a file too long"),
        pytest.param(body_of({"file": len(whole(1).data) + 1}, whole(1).data), id="a file that is cut"),
        pytest.param(body_of({"file": len(whole(1).data) - 1}, whole(1).data), id="a file whose size is too small"),
        pytest.param(body_of({"file": 1}, b"\n"), id="a file that is one LF"),
        pytest.param(body_of({"file": 5}, b"abcd\n"), id="a file that is none"),
        pytest.param(body_of({"file": len(DRAFT)}, DRAFT), id="a file without a seal"),
        pytest.param(body_of({"proof": [SEAL]}), id="half a proof"),
        pytest.param(body_of({"proof": [SEAL, OTHER_SEAL]}), id="a proof of two keys"),
        pytest.param(body_of({"proof": [SEAL, 7]}), id="a proof with a number"),
        pytest.param(body_of({"proof": [SEAL, "\ud800"]}), id="a proof with a half of a character"),
        pytest.param(body_of({"proof": [SEAL, "{}"]}), id="a proof with another line"),
        pytest.param(body_of({"proof": SEAL}), id="a proof that is no list"),
        pytest.param(body_of({"blocked": "so", "id": "7"}), id="a blocked one without an id"),
        pytest.param(body_of({"blocked": True, "id": NAME}), id="a reason that is no text"),
        pytest.param(body_of({"missing": 1, "id": NAME}), id="missing that is a number"),
        pytest.param(body_of({"missing": True}), id="a missing one without an id"),
        pytest.param(b"[" * 30_000 + b"\n", id="a deep nest"),
        pytest.param(b" " * 100_000 + body_of({"missing": True, "id": NAME}), id="a line too long"),
        pytest.param(body_of(*[{"missing": True, "id": NAME}] * (wire.FETCH_IDS + 1)), id="too many parts"),
        pytest.param(b"x" * (wire.FETCH_BYTES + 1), id="too many bytes"),
    ],
)
def test_parts_of_another_form_are_a_bad_body(body: bytes) -> None:
    with pytest.raises(BadBody) as caught:
        list(wire.read_parts(body))
    assert caught.value.code == "gossip_body"
    with pytest.raises(BadBody):
        wire.read_offer(body)


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(wire.write_part(Missing(ID)), id="a missing one"),
        pytest.param(wire.write_part(whole(1)) + wire.write_part(Blocked(ID, "so")), id="a blocked one"),
        pytest.param(wire.write_part(whole(1)) * (wire.OFFER_PARTS + 1), id="too many"),
    ],
)
def test_an_offer_is_files_and_proofs_and_at_least_one(body: bytes) -> None:
    with pytest.raises(BadBody):
        wire.read_offer(body)


@pytest.mark.parametrize(
    ("reason", "read"),
    [
        pytest.param("spam\u3000and more\u00a0of it", "spam and more of it", id="spaces of other scripts"),
        pytest.param("a\nb\x1b[31m", "a b [31m", id="what paints"),
        pytest.param("a" * 201, "a" * 200, id="a long one"),
        pytest.param("", "", id="none"),
    ],
)
def test_no_reason_of_a_block_ends_an_exchange(reason: str, read: str) -> None:
    body = body_of({"blocked": reason, "id": NAME}) + wire.write_part(whole(1))
    assert list(wire.read_parts(body)) == [Blocked(ID, read), whole(1)]


def test_nothing_asked_for_may_be_answered_by_nothing() -> None:
    assert list(wire.read_parts(b"")) == []
    assert wire.read_heads(b"") == []


@given(st.binary(max_size=400) | st.text(max_size=200).map(str.encode))
def test_any_bytes_are_parts_or_a_bad_body(body: bytes) -> None:
    for read in (wire.read_offer, lambda data: list(wire.read_parts(data)), wire.read_heads, wire.read_fetch):
        with suppress(BadBody):
            read(body)


@given(st.integers(0, 2_000), st.binary(max_size=3), st.integers(0, 3))
def test_any_damage_is_parts_or_a_bad_body(at: int, put: bytes, cut: int) -> None:
    body = b"".join(map(wire.write_part, PARTS))
    damaged = body[:at] + put + body[at + cut :]
    with suppress(BadBody):
        for part in wire.read_parts(damaged):
            assert wire.write_part(part)


@given(st.data())
def test_a_cut_body_gives_its_whole_parts_first(data: st.DataObject) -> None:
    body = b"".join(map(wire.write_part, PARTS))
    cut = data.draw(st.integers(0, len(body)))
    came: list[Part] = []
    with suppress(BadBody):
        came.extend(wire.read_parts(body[:cut]))
    assert came == PARTS[: len(came)]


def test_heads_come_out_as_they_went_in() -> None:
    heads = [Head(ID, key(1).public.hex, 1, 1), Head(bytes(32), key(2).public.hex, RULES.last_seal, RULES.file_bytes)]
    assert wire.read_heads(b"".join(map(wire.write_head, heads))) == heads


@pytest.mark.parametrize(
    "changed",
    [
        {"id": "x"},
        {"key": "x"},
        {"key": None},
        {"seal": 0},
        {"seal": 2**53},
        {"seal": True},
        {"seal": "1"},
        {"size": 0},
        {"size": 300_000},
    ],
    ids=str,
)
def test_a_head_of_another_form_is_a_bad_body(changed: dict[str, object]) -> None:
    fields = {"id": NAME, "key": key(1).public.hex, "seal": 5, "size": 900}
    assert wire.read_heads(body_of(fields))
    with pytest.raises(BadBody):
        wire.read_heads(body_of({**fields, **changed}))


def test_more_heads_than_may_be_asked_for_are_a_bad_body() -> None:
    line = wire.write_head(Head(ID, key(1).public.hex, 1, 1))
    with pytest.raises(BadBody):
        wire.read_heads(line * (wire.FETCH_IDS + 1))
    with pytest.raises(BadBody):
        wire.read_heads(b" " * (wire.FETCH_BYTES + 1))


verdicts = st.builds(
    Verdict,
    st.binary(min_size=32, max_size=32),
    st.sampled_from(Outcome),
    st.none() | st.from_regex(r"[a-z0-9_]{1,64}", fullmatch=True),
)


@given(st.lists(verdicts, max_size=10))
def test_verdicts_come_out_as_they_went_in(given_: list[Verdict]) -> None:
    assert wire.read_verdicts(wire.write_verdicts(given_), len(given_)) == given_


def test_the_most_verdicts_are_within_their_cap() -> None:
    body = wire.write_verdicts([Verdict(ID, Outcome.DEFERRED, "c" * 64)] * wire.OFFER_PARTS)
    assert len(body) <= wire.VERDICTS_BYTES
    assert len(wire.read_verdicts(body, wire.OFFER_PARTS)) == wire.OFFER_PARTS


@pytest.mark.parametrize(
    "answer",
    [
        {"verdicts": []},
        {"verdicts": [{"id": NAME, "verdict": "new"}] * 2},
        {"verdicts": {}},
        {},
        {"verdicts": ["new"]},
        {"verdicts": [{"id": NAME, "verdict": "fine"}]},
        {"verdicts": [{"id": NAME, "verdict": ["new"]}]},
        {"verdicts": [{"id": NAME, "verdict": "refused", "code": "Not So"}]},
        {"verdicts": [{"verdict": "new"}]},
        {"verdicts": [{"id": NAME, "verdict": "new"}], "more": " " * wire.VERDICTS_BYTES},
    ],
    ids=lambda answer: str(answer)[:60],
)
def test_verdicts_of_another_form_or_number_are_a_bad_body(answer: object) -> None:
    with pytest.raises(BadBody):
        wire.read_verdicts(json.dumps(answer).encode(), 1)
