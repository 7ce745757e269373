"""What the commands say of peers, and of addresses that none may have."""

from __future__ import annotations

import pytest

from remem.errors import Partly, Unreachable, Usage
from remem_gossip.addresses import Allowed
from remem_gossip.words import Checked, address_of, end_checked, silent_words

HTTP = "--allow-http lets this peer be asked without TLS"
PRIVATE = "--allow-private lets this peer be on this machine or in its networks"


@pytest.mark.parametrize(
    ("url", "allowed", "hint"),
    [
        pytest.param("http://a.example", Allowed(), HTTP, id="without TLS"),
        pytest.param("HTTP://a.example", Allowed(), HTTP, id="without TLS, in capitals"),
        pytest.param("https://127.0.0.1", Allowed(), PRIVATE, id="this machine"),
        pytest.param("http://127.0.0.1", Allowed(), f"{HTTP}; {PRIVATE}", id="this machine without TLS"),
        pytest.param("http://127.0.0.1", Allowed(http=True), PRIVATE, id="what is missing alone"),
        pytest.param("http://127.0.0.1", Allowed(private=True), HTTP, id="what is missing alone, the other way round"),
        pytest.param("http://[::1", Allowed(), None, id="a host without its bracket"),
        pytest.param("http://a.example:99999", Allowed(), None, id="a port that is none"),
        pytest.param("http://a.example/?q", Allowed(), None, id="a query"),
        pytest.param("https://224.0.0.1", Allowed(), None, id="where no peer may be"),
        pytest.param("ftp://a.example", Allowed(), None, id="another scheme"),
    ],
)
def test_an_option_is_named_where_it_would_let_a_peer_have_the_address_and_nowhere_else(
    url: str, allowed: Allowed, hint: str | None
) -> None:
    with pytest.raises(Usage) as caught:
        address_of(url, allowed)
    assert caught.value.hint == hint


def silent(code: str, detail: str) -> Checked:
    return Checked("https://a.example", None, None, code, detail)


def test_a_peer_that_did_not_say_who_it_is_may_have_answered() -> None:
    (words,) = silent_words(silent("peer_refused", "expected a description, got status 500"), "check", Allowed())
    assert words == (
        "it did not say who it is: https://a.example: peer_refused: expected a description, got status 500;"
        " what it offers is taken once it does: check"
    )


@pytest.mark.parametrize("is_private", [False, True])
def test_a_name_that_leads_where_a_peer_may_not_be_is_told_with_the_option(is_private: bool) -> None:
    checked = silent("peer_address", "expected a public address, got 127.0.0.1, which is loopback")
    _words, *more = silent_words(checked, "check", Allowed(private=is_private))
    assert more == ([] if is_private else [PRIVATE])


@pytest.mark.parametrize(("answered", "kind"), [(0, Unreachable), (1, Partly)])
def test_a_check_ends_with_how_many_did_not_say_who_they_are(answered: int, kind: type[Exception]) -> None:
    said = [Checked("https://b.example", "ab" * 32, open=False, code=None, detail=None)] * answered
    with pytest.raises(kind, match="expected every peer to say who it is, got 1 peer that did not"):
        end_checked([*said, silent("peer_refused", "expected a description, got status 500")])
