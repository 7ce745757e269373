"""What the doctor says of peers: how many nodes they are, whether they fail together, and who is silent."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import NamedTuple

import pytest

from remem.memory.store import transaction
from remem_gossip import peers as book
from remem_gossip.addresses import Allowed, read_url
from remem_gossip.checks import check_peers, names_of
from remem_testkit.files import NOW, key
from remem_testkit.memories import Memory

Make = Callable[[int], Memory]
ALL = Allowed(http=True, private=True)
ONE, TWO, THREE = (key(number).public.hex for number in (51, 52, 53))
OWN = key(1).public.hex


class Listed(NamedTuple):
    """A peer: its address, and the key that it named."""

    url: str
    key: str | None = None


def list_peers(memory: Memory, peers: Sequence[Listed]) -> None:
    """List peers that all answered lately."""
    with transaction(memory.db):
        for url, named in peers:
            address = read_url(url, ALL)
            book.add(memory.db, address, ALL, NOW)
            book.note_answered(memory.db, str(address), NOW)
            if named is not None:
                assert book.note_key(memory.db, str(address), named, own=OWN) is None


def said(memory: Memory) -> list[str]:
    return [one.text for one in check_peers(memory.home, memory.db, now=NOW)]


@pytest.mark.parametrize(
    ("peers", "number"),
    [
        pytest.param([], 0, id="nobody"),
        pytest.param(
            [Listed("http://127.0.0.1:9"), Listed("http://localhost:9"), Listed("http://[::1]:9")],
            1,
            id="three spellings of one place, whose key is not known",
        ),
        pytest.param(
            [Listed("http://127.0.0.1:9", ONE), Listed("http://a.localhost:9"), Listed("http://[::1]:9")],
            1,
            id="three spellings of one place, whose key is known by one of them",
        ),
        pytest.param(
            [Listed("http://127.0.0.1:9", OWN), Listed("http://10.0.0.1:9", OWN), Listed("https://a.example", ONE)],
            1,
            id="the memory itself by two addresses, and one other",
        ),
        pytest.param(
            [Listed("http://127.0.0.1:9", OWN), Listed("http://localhost:9"), Listed("https://a.example", ONE)],
            1,
            id="the memory itself by two spellings, and one other",
        ),
        pytest.param(
            [Listed("https://a.example"), Listed("https://b.example", ONE)], 2, id="two, one of which is not known yet"
        ),
    ],
)
def test_peers_count_by_whom_they_are_and_not_by_how_they_are_spelled(
    make: Make, peers: list[Listed], number: int
) -> None:
    memory = make(1)
    list_peers(memory, peers)
    assert f"expected at least 3 peers, got {number}: what they hold back nobody else tells" in said(memory)


def test_three_nodes_that_answer_at_different_hosts_are_enough(make: Make) -> None:
    memory = make(1)
    list_peers(
        memory, [Listed("https://a.example", ONE), Listed("https://b.example", TWO), Listed("https://c.example")]
    )
    (found,) = check_peers(memory.home, memory.db, now=NOW)
    assert (found.level, found.text) == ("ok", "3 peers or more, on different hosts")


def test_all_names_of_loopback_are_one_host(make: Make) -> None:
    memory = make(1)
    urls = ("http://127.0.0.1:1", "http://localhost:2", "http://[::1]:3")
    list_peers(memory, [Listed(url, named) for url, named in zip(urls, (ONE, TWO, THREE), strict=True)])
    assert said(memory) == ["all 3 peers are on this machine: one failure takes all of them away"]


def test_the_memory_itself_among_its_peers_is_told(make: Make) -> None:
    memory = make(1)
    list_peers(memory, [Listed("http://127.0.0.1:9", OWN), *(Listed(f"https://{one}.example") for one in "abc")])
    (found,) = check_peers(memory.home, memory.db, now=NOW)
    assert (found.level, found.text) == ("warning", "http://127.0.0.1:9 is this memory itself, and is not counted")
    assert found.hint == "remem peers remove http://127.0.0.1:9"


def test_peers_that_did_not_answer_when_they_were_last_asked_are_named(make: Make) -> None:
    memory = make(1)
    list_peers(memory, [Listed(f"https://{one}.example") for one in "abc"])
    with transaction(memory.db):
        book.note_failed(memory.db, "https://b.example", NOW + timedelta(hours=1))
        book.add(memory.db, read_url("https://d.example", ALL), ALL, NOW)
    words = "expected every peer to answer when it was last asked, got nothing of https://b.example, https://d.example"
    assert said(memory) == [words]
    with transaction(memory.db):
        for url, named in (("https://b.example", ONE), ("https://d.example", TWO)):
            assert book.note_said(memory.db, url, named, own=OWN) is None
    assert said(memory) == ["3 peers or more, on different hosts"]


def test_the_same_counts_for_a_commons(make: Make) -> None:
    memory = make(1)
    list_peers(memory, [Listed("http://127.0.0.1:9", ONE), Listed("http://localhost:9"), Listed("https://a.example")])
    assert sorted(set(names_of(book.peers(memory.db)).values())) == sorted({ONE, "a.example 443 "})
