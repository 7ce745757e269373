"""Nodes of the local network: what one announces on loopback another finds there."""

from __future__ import annotations

import sys
from contextlib import ExitStack

import pytest

from remem.errors import RememError
from remem_gossip import lan

LOOPBACK = ("127.0.0.1",)
LOOKS_MOST = 8


def test_what_is_announced_is_found() -> None:
    urls = ["http://127.0.0.1:8001", "https://commons.example"]
    with ExitStack() as stack:
        try:
            for number, url in enumerate(urls):
                stack.enter_context(lan.announced(url, "127.0.0.1", 8001 + number, interfaces=LOOPBACK))
            found: set[str] = set()
            # Multicast is answered when there is time for it, and may be lost.
            for _attempt in range(LOOKS_MOST):
                found |= set(lan.find(1.5, interfaces=LOOPBACK))
                if found >= set(urls):
                    break
        except RememError as error:
            pytest.skip(f"no multicast on this machine: {error}")
    if not found:
        pytest.skip("no multicast on this machine: nothing came back")
    assert set(urls) <= found


def test_without_the_library_its_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "zeroconf", None)
    with pytest.raises(RememError) as caught:
        lan.find(0.1)
    assert caught.value.hint == "pip install 'remem[lan]'"
