"""What other nodes ask of a commons and offer to it, over real sockets."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import timedelta
from random import Random
from threading import Event
from typing import Any

import httpx
import pytest
from sqlalchemy import select

from remem.protocol import SigningKey
from remem.protocol.items import item_of
from remem_gossip import wire
from remem_gossip.addresses import Allowed, read_url
from remem_gossip.dial import Dial
from remem_gossip.failures import TooLong
from remem_gossip.parts import Whole
from remem_gossip.reconcile import Reconciler, Vector
from remem_gossip.signatures import sign
from remem_server.database import tables
from remem_server.database.engine import writing
from remem_server.files import items
from remem_server.gossip import peers
from remem_server.gossip.spending import STRANGERS, STRANGERS_PART
from remem_server.upkeep.audit import audit
from remem_server.web.routes import gossip
from remem_testkit.files import NOW, draft_file, file, key, lesson, sentence
from remem_testkit.nodes import MapNode
from remem_testkit.server import ServedCommons

Start = Callable[..., ServedCommons]
Ask = Callable[..., httpx.Client]

PEER = key(900)
STRANGER = key(901)
LINES = "application/x-ndjson"
ALLOWED = Allowed(http=True, private=True)


def said(number: int, version: int = 0) -> bytes:
    return file(key(number), [lesson(sentence(number))], at=NOW + timedelta(seconds=version))


def offered(*files: bytes) -> bytes:
    return b"".join(wire.write_part(Whole(bytes(32), data)) for data in files)


def post(
    client: httpx.Client, path: str, body: bytes, signer: SigningKey | None = None, **headers: str
) -> httpx.Response:
    """Ask as a node does."""
    signed = {}
    if signer is not None:
        signed = sign(signer, "POST", client.base_url.netloc.decode(), path, body, NOW)
    return client.post(path, content=body, headers={**signed, **headers})


def list_peer(commons: ServedCommons, signer: SigningKey = PEER, url: str = "http://127.0.0.1:9") -> None:
    with writing(commons.engine) as connection:
        peers.add(connection, read_url(url, ALLOWED), ALLOWED, NOW, publish=False)
        peers.note_key(connection, url, signer.public.hex)


def verdicts(response: httpx.Response) -> list[tuple[str, str | None]]:
    assert response.status_code == 200, response.text
    return [(one["verdict"], one.get("code")) for one in response.json()["verdicts"]]


def ids_of(commons: ServedCommons) -> set[bytes]:
    with items.opened(commons.engine) as storage:
        return set(storage.ids(0, len(storage)))


def spent(commons: ServedCommons, account: str) -> Any:
    with commons.engine.connect() as connection:
        return connection.execute(select(tables.spent).where(tables.spent.c.account == account)).one_or_none()


@pytest.fixture
def filled(start: Start, ask: Ask) -> ServedCommons:
    commons = start(open=True)
    client = ask(commons)
    for number in range(20):
        assert client.put(f"/commons/{key(number).public.hex}.jsonl", content=said(number)).status_code == 201
    return commons


def test_a_reader_learns_what_differs_and_fetches_it(filled: ServedCommons, ask: Ask) -> None:
    client, mine = ask(filled), MapNode()
    for number in range(10, 30):
        mine.put(said(number))
    with mine.items() as storage:
        side = Reconciler(storage)
        answer = post(client, wire.RECONCILE, side.initiate())
        assert (answer.status_code, answer.headers["Content-Type"]) == (200, "application/octet-stream")
        step = side.reconcile(answer.content)
    assert step.message is None
    assert set(step.need) == ids_of(filled) - mine._items.keys()
    fetched = post(client, wire.FETCH, wire.write_fetch(step.need))
    assert [part.data for part in wire.read_parts(fetched.content) if isinstance(part, Whole)] == [
        said(int(number)) for number in _numbers(step.need)
    ]
    heads = wire.read_heads(post(client, wire.FETCH, wire.write_fetch(step.need, heads=True)).content)
    assert [head.id for head in heads] == step.need
    assert {head.key for head in heads} == {key(number).public.hex for number in range(10)}


def _numbers(ids: list[bytes]) -> list[int]:
    from remem.protocol import digest_of

    of = {item_of(key(number).public, NOW, digest_of(said(number))).id: number for number in range(30)}
    return [of[one] for one in ids]


def test_a_closed_commons_takes_offers_of_its_peers_and_of_nobody_else(commons: ServedCommons, ask: Ask) -> None:
    client = ask(commons)
    list_peer(commons)
    for signer in (None, STRANGER):
        refused = post(client, wire.OFFER, offered(said(1)), signer)
        assert (refused.status_code, refused.json()["code"]) == (403, "not_a_peer")
    took = post(client, wire.OFFER, offered(said(1), said(2), said(1)), PEER)
    assert verdicts(took) == [("new", None), ("new", None), ("known", None)]
    assert client.get(f"/commons/{key(1).public.hex}.jsonl").content == said(1)
    assert {entry["principal"] for entry in client.get("/commons/index").json()} == {None}
    again = post(client, wire.OFFER, offered(said(1, 5), said(2)), PEER)
    assert verdicts(again) == [("newer", None), ("known", None)]
    assert verdicts(post(client, wire.OFFER, offered(said(1)), PEER)) == [("older", None)]
    assert len(ids_of(commons)) == 2
    assert not list(audit(commons.engine, NOW))


def test_what_is_wrong_with_a_file_is_its_verdict_and_it_is_not_taken_again(commons: ServedCommons, ask: Ask) -> None:
    client = ask(commons)
    list_peer(commons)
    broken = said(1).replace(b'"text":"the', b'"text":"The', 1)
    late = file(key(2), [], at=NOW + timedelta(days=3))
    draft = draft_file(key(3), [lesson(sentence(1))])
    body = offered(broken, late, said(4))
    assert verdicts(post(client, wire.OFFER, body, PEER)) == [
        ("refused", "signature_invalid"),
        ("deferred", "deferred"),
        ("new", None),
    ] or verdicts(post(client, wire.OFFER, body, PEER))[0] == ("refused", "refused_before")
    assert verdicts(post(client, wire.OFFER, offered(broken), PEER)) == [("refused", "refused_before")]
    unsealed = post(client, wire.OFFER, offered(draft), PEER)
    assert (unsealed.status_code, unsealed.json()["code"]) == (422, "gossip_body")


def test_the_bearer_of_a_token_publishes_its_own_file_and_carries_others(commons: ServedCommons, ask: Ask) -> None:
    me = key(50)
    client = ask(commons, commons.token(principal="me"))
    assert verdicts(post(client, wire.OFFER, offered(said(51), said(50)), me)) == [("new", None), ("new", None)]
    principals = {entry["key"]: entry["principal"] for entry in client.get("/commons/index").json()}
    assert principals == {key(51).public.hex: None, me.public.hex: "me"}
    # From then on the token tells whose it is.
    assert verdicts(post(client, wire.OFFER, offered(said(50, 3), said(52)))) == [("newer", None), ("new", None)]
    assert spent(commons, STRANGERS).origins == 2
    other = post(ask(commons, "remem_none"), wire.OFFER, offered(said(53)))
    assert (other.status_code, other.json()["code"]) == (401, "token_unknown")


def test_strangers_share_one_small_budget_and_peers_have_their_own(start: Start, ask: Ask) -> None:
    commons = start(open=True, gossip_newcomers=3 * STRANGERS_PART)
    client = ask(commons)
    list_peer(commons)
    body = offered(*(said(number) for number in range(5)))
    assert verdicts(post(client, wire.OFFER, body)) == [("new", None)] * 3 + [("deferred", "over_budget")] * 2
    # Updates of what is held are no newcomers.
    assert verdicts(post(client, wire.OFFER, offered(said(9), said(0, 5)), STRANGER)) == [
        ("deferred", "over_budget"),
        ("newer", None),
    ]
    assert verdicts(post(client, wire.OFFER, offered(said(9)), PEER)) == [("new", None)]
    commons.clock.advance(timedelta(days=1))  # type: ignore[attr-defined]  # the clock of a test
    assert verdicts(post(client, wire.OFFER, offered(said(10)))) == [("new", None)]


def test_new_keys_that_strangers_offer_count_as_those_that_they_publish(start: Start, ask: Ask) -> None:
    commons = start(open=True, new_keys_per_day=2)
    body = offered(*(said(number) for number in range(3)))
    assert verdicts(post(ask(commons), wire.OFFER, body)) == [("new", None)] * 2 + [("deferred", "too_many_keys")]


@pytest.mark.any_database
@pytest.mark.parametrize(
    ("path", "body", "code"),
    [
        (wire.RECONCILE, b"", "frame"),
        (wire.RECONCILE, b"\x61" + b"\xff" * 100, "frame"),
        (wire.RECONCILE, bytes(wire.FRAME_MOST + 1), "frame"),
        (wire.FETCH, b"{}", "gossip_body"),
        (wire.FETCH, b" " * (wire.ASKED_BYTES + 1), "gossip_body"),
        (wire.OFFER, b"", "gossip_body"),
        (wire.OFFER, b'{"file":3}\nabc', "gossip_body"),
        (wire.OFFER, bytes(wire.OFFER_BYTES + 1), "gossip_body"),
    ],
    ids=lambda value: value[:16].hex() if isinstance(value, bytes) else str(value),
)
def test_a_body_of_another_form_is_refused_with_its_code(
    start: Start, ask: Ask, path: str, body: bytes, code: str
) -> None:
    refused = post(ask(start(open=True)), path, body)
    assert (refused.status_code, refused.json()["code"]) == (422, code)


def test_a_signature_has_to_be_good_where_there_is_one(commons: ServedCommons, ask: Ask) -> None:
    client = ask(commons)
    list_peer(commons)
    body = offered(said(1))
    host = client.base_url.netloc.decode()
    for method, path, of, at, code in [
        ("POST", wire.OFFER, body + b" ", NOW, "content_digest"),
        ("POST", wire.FETCH, body, NOW, "signature_false"),
        ("PUT", wire.OFFER, body, NOW, "signature_false"),
        ("POST", wire.OFFER, body, NOW - timedelta(seconds=301), "signature_time"),
    ]:
        headers = sign(PEER, method, host, path, of, at)
        refused = client.post(wire.OFFER, content=body, headers=headers)
        assert (refused.status_code, refused.json()["code"]) == (401, code)
    # A request that comes twice changes nothing.
    headers = sign(PEER, "POST", host, wire.OFFER, body, NOW)
    assert verdicts(client.post(wire.OFFER, content=body, headers=headers)) == [("new", None)]
    assert verdicts(client.post(wire.OFFER, content=body, headers=headers)) == [("known", None)]


def test_a_private_commons_answers_its_peers_and_whoever_has_a_token(start: Start, ask: Ask) -> None:
    commons = start(private=True, names="b.example, c.example:7363")
    list_peer(commons)
    message = Reconciler(Vector([])).initiate()
    for signer in (None, STRANGER):
        refused = post(ask(commons), wire.RECONCILE, message, signer)
        assert (refused.status_code, refused.json()["code"]) == (401, "token_missing")
        assert post(ask(commons), wire.FETCH, wire.write_fetch([bytes(32)]), signer).status_code == 401
        assert post(ask(commons), wire.OFFER, offered(said(1)), signer).status_code == 403
    for host, status in (("b.example", 200), ("C.example:7363", 200), ("a.example", 401)):
        # A peer that is dishonest passes on what was signed for itself.
        headers = {**sign(PEER, "POST", host, wire.RECONCILE, message, NOW), "Host": host}
        assert ask(commons).post(wire.RECONCILE, content=message, headers=headers).status_code == status
    assert post(ask(commons, commons.token()), wire.RECONCILE, message).status_code == 200


def test_a_blocked_version_counts_as_held_until_the_block_is_taken_back(start: Start, ask: Ask, operator: Any) -> None:
    commons = start(open=True)
    client = ask(commons)
    list_peer(commons)
    assert verdicts(post(client, wire.OFFER, offered(said(1)), PEER)) == [("new", None)]
    (id_,) = ids_of(commons)
    name = key(1).public.hex
    assert operator("block", name, "--reason", "it floods the commons").status == 0
    assert ids_of(commons) == {id_}
    (part,) = wire.read_parts(post(client, wire.FETCH, wire.write_fetch([id_])).content)
    assert type(part).__name__ == "Blocked"
    assert verdicts(post(client, wire.OFFER, offered(said(1), said(1, 4)), PEER)) == [
        ("known", None),
        ("refused", "blocked"),
    ]
    assert operator("unblock", name).status == 0
    assert ids_of(commons) == set()
    assert verdicts(post(client, wire.OFFER, offered(said(1, 4)), PEER)) == [("newer", None)]
    assert not list(audit(commons.engine, NOW))


def test_random_parts_of_a_question_never_break_the_order(filled: ServedCommons, ask: Ask) -> None:
    ids = [*ids_of(filled), *(bytes([number]) * 32 for number in range(40))]
    Random(3).shuffle(ids)
    parts = list(wire.read_parts(post(ask(filled), wire.FETCH, wire.write_fetch(ids)).content))
    assert [part.id for part in parts] == ids


def test_files_come_in_gzip_to_whoever_reads_it_and_plain_to_others(filled: ServedCommons, ask: Ask) -> None:
    client, question = ask(filled), wire.write_fetch(sorted(ids_of(filled)))
    plain = post(client, wire.FETCH, question)
    assert (plain.headers.get("Content-Encoding"), plain.headers["Vary"]) == (None, "Accept-Encoding")
    zipped = client.post(wire.FETCH, content=question, headers={"Accept-Encoding": "gzip"})
    assert (zipped.headers["Content-Encoding"], zipped.headers["Vary"]) == ("gzip", "Accept-Encoding")
    assert zipped.content == plain.content
    assert 2 * zipped.num_bytes_downloaded < plain.num_bytes_downloaded
    with closing(Dial(read_url(filled.url, ALLOWED), PEER, lambda: NOW, allowed=ALLOWED)) as dial:
        whole = len(plain.content)
        assert dial.ask("POST", wire.FETCH, question, most=whole).body == plain.content
        with pytest.raises(TooLong):
            # What passed is far less.
            dial.ask("POST", wire.FETCH, question, most=whole - 1)


def test_a_private_commons_without_a_name_knows_nobody_by_a_signature(start: Start, ask: Ask) -> None:
    commons = start(private=True)
    list_peer(commons)
    refused = post(ask(commons), wire.RECONCILE, Reconciler(Vector([])).initiate(), PEER)
    assert (refused.status_code, refused.json()["code"]) == (401, "token_missing")


def test_what_nodes_ask_keeps_nobody_from_publishing(start: Start, ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    commons = start(open=True, verify_threads=1, verify_queue=0)
    began, go_on = Event(), Event()

    def waits(*_arguments: Any) -> bytes:
        began.set()
        assert go_on.wait(60)
        return b"\x61"

    monkeypatch.setattr(gossip, "answer_reconcile", waits)
    message = Reconciler(Vector([])).initiate()
    with ThreadPoolExecutor(8) as pool:
        asked = [pool.submit(post, ask(commons), wire.RECONCILE, message) for _ in range(6)]
        assert began.wait(60)
        assert ask(commons).put(f"/commons/{key(1).public.hex}.jsonl", content=said(1)).status_code == 201
        go_on.set()
        answers = [one.result(60).status_code for one in asked]
    assert set(answers) <= {200, 429}
    assert answers.count(200) >= 4


def test_what_strangers_bring_fills_no_ledger(start: Start, ask: Ask) -> None:
    commons = start(open=True)
    broken = said(1).replace(b'"text":"the', b'"text":"The', 1)
    for _ in range(2):
        assert verdicts(post(ask(commons), wire.OFFER, offered(broken))) == [("refused", "signature_invalid")]
    with commons.engine.connect() as connection:
        assert connection.execute(select(tables.ledger)).all() == []


def test_no_peer_takes_the_name_of_another(commons: ServedCommons, ask: Ask) -> None:
    list_peer(commons)
    list_peer(commons, PEER, "http://127.0.0.1:8")
    with commons.engine.connect() as connection:
        assert peers.url_of_key(connection, PEER.public.hex) == "http://127.0.0.1:9"
    assert verdicts(post(ask(commons), wire.OFFER, offered(said(1)), PEER)) == [("new", None)]
    assert spent(commons, "http://127.0.0.1:9").origins == 1
