"""Where a commons listens, and at which address it says that it is reached."""

from __future__ import annotations

from typing import Any, cast

import pytest

from remem_server.web.serving import url_for_others, url_of

pytestmark = pytest.mark.any_database


class Bound:
    """Stands for a socket that is bound to an address which this machine may not have."""

    def __init__(self, host: str) -> None:
        # An address of version 6 comes with its flow and its scope.
        self._name: tuple[Any, ...] = (host, 7363, 0, 0) if ":" in host else (host, 7363)

    def getsockname(self) -> tuple[Any, ...]:
        return self._name


@pytest.mark.parametrize(
    ("host", "here", "others"),
    [
        ("127.0.0.1", "http://127.0.0.1:7363", None),
        ("127.0.0.2", "http://127.0.0.2:7363", None),
        ("::1", "http://[::1]:7363", None),
        ("192.0.2.1", "http://192.0.2.1:7363", "http://192.0.2.1:7363"),
        ("2001:db8::1", "http://[2001:db8::1]:7363", "http://[2001:db8::1]:7363"),
        ("0.0.0.0", "http://127.0.0.1:7363", "http://<this host>:7363"),
        ("::", "http://[::1]:7363", "http://<this host>:7363"),
    ],
)
def test_an_address_is_one_that_can_be_used_from_where_it_is_said(host: str, here: str, others: str | None) -> None:
    listening = cast("Any", Bound(host))
    assert (url_of(listening), url_for_others(listening)) == (here, others)
