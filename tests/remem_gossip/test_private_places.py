"""What came from a private place alone stays between that place and the memory, whoever asks for it and however."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from random import Random
from typing import NamedTuple

import pytest

from remem.memory import holdings, places
from remem.memory.store import transaction
from remem.sharing.reports import ShareReport
from remem_gossip import peers as book
from remem_gossip.addresses import Allowed, read_url
from remem_gossip.budget import Allowance
from remem_gossip.memory_node import open_memory
from remem_gossip.night import gossip
from remem_gossip.parts import Blocked, Part, Whole
from remem_gossip.push import after_share
from remem_gossip.taking import claim_of
from remem_testkit.files import NOW, file, key, lesson, sentence
from remem_testkit.memories import Memory
from remem_testkit.nodes import PLENTY, MapNode, Peer
from remem_testkit.served import served
from remem_testkit.server import ServedCommons, serve

Make = Callable[[int], Memory]
ALL = Allowed(http=True, private=True)
SECRET = file(key(30), [lesson(sentence(3))])


@pytest.fixture
def private(tmp_path: Path) -> Iterator[ServedCommons]:
    with serve(tmp_path / "private", private=True, open=False) as commons:
        yield commons


class Public(NamedTuple):
    """A node to which anyone may offer, and its address."""

    node: MapNode
    url: str


@contextmanager
def public_node(*files: bytes) -> Iterator[Public]:
    node = MapNode()
    for data in files:
        node.put(data)
    with served(Peer(node)) as there:
        yield Public(node, there.url)


@pytest.fixture
def public() -> Iterator[Public]:
    with public_node() as node:
        yield node


def member(commons: ServedCommons, memory: Memory) -> str:
    """Give a memory a token, and return where it shares and pulls with it."""
    return f"{commons.url} {commons.token()}"


def night(memory: Memory, *peers: Public) -> None:
    with transaction(memory.db):
        for peer in peers:
            book.add(memory.db, read_url(peer.url, ALL), ALL, memory.now)
    gossip(memory.home, memory.db, now=memory.now, random=Random(1), only=[peer.url for peer in peers])


def pushed(memory: Memory, report: ShareReport) -> bool:
    return after_share(memory.home, memory.db, report, now=memory.now, random=Random(1)) is not None


def all_parts(memory: Memory) -> list[Part]:
    with open_memory(memory.home, memory.db, now=memory.now, random=Random(1)) as node, node.items() as storage:
        ids = storage.ids(0, len(storage))
        heads = list(node.heads(ids))
        parts = list(node.parts(ids))
    assert {head.id for head in heads} == {part.id for part in parts if isinstance(part, Whole)}
    return parts


def test_neither_what_was_pulled_nor_what_was_shared_at_a_private_commons_goes_to_a_peer(
    make: Make, private: ServedCommons, public: Public
) -> None:
    one, other = make(1), make(2)
    for memory in (one, other):
        memory.learn(sentence(memory.key.seed[0]))
        target = member(private, memory)
        report = memory.share(target)
        memory.pull(target)
        night(memory, public)
        assert not pushed(memory, report)
    assert set(holdings.holdings(other.db)) == {one.name, other.name}
    assert public.node.map() == {}
    assert {type(part) for part in all_parts(other)} == {Blocked}


def test_the_own_file_goes_to_peers_once_it_was_shared_elsewhere_too(
    make: Make, private: ServedCommons, public: Public, tmp_path: Path
) -> None:
    memory = make(1)
    memory.learn(sentence(1))
    memory.share(member(private, memory))
    report = memory.share(tmp_path)
    night(memory, public)
    assert set(public.node.map()) == {memory.name}
    memory.now += timedelta(hours=2)
    with transaction(memory.db):
        book.add(memory.db, read_url("http://127.0.0.1:9", ALL), ALL, memory.now)
    assert pushed(memory, report)


def test_what_a_private_place_brings_by_an_exchange_is_not_handed_on_either(make: Make) -> None:
    memory = make(1)
    with public_node(SECRET) as private, public_node() as public:
        with transaction(memory.db):
            # Spelled otherwise than the address of the peer.
            places.note_private(memory.db, f"{private.url}/", is_private=True)
        night(memory, private, public)
        assert public.node.map() == {}
    assert key(30).public.hex in holdings.holdings(memory.db)


def test_a_place_that_is_private_no_more_keeps_nothing_back(make: Make) -> None:
    memory, source = make(1), "https://team.example"
    claim = claim_of(SECRET)
    assert claim is not None
    with transaction(memory.db):
        places.note_private(memory.db, source, is_private=True)
        places.forget(memory.db, source)
    with open_memory(memory.home, memory.db, now=NOW, random=Random(1)) as node:
        node.take([Whole(claim.id, SECRET)], source, Allowance(PLENTY))
    assert [type(part) for part in all_parts(memory)] == [Blocked]
    with transaction(memory.db):
        places.note_private(memory.db, source, is_private=False)
    assert [type(part) for part in all_parts(memory)] == [Whole]
