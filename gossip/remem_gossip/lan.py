"""Nodes of the local network, by multicast DNS. Asked for by the owner alone: it tells the network that one asks.

A node announces the service `_remem._tcp` with its address under `url`. What others announce is nothing but a
suggestion. The library is an extra of its own.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final

from remem.errors import RememError

if TYPE_CHECKING:
    from zeroconf import ServiceInfo, Zeroconf

SERVICE: Final = "_remem._tcp.local."
FOUND_MOST: Final = 100
_URL: Final = b"url"
_ANSWER_MILLISECONDS: Final = 1_000


def find(seconds: float, *, interfaces: Sequence[str] | None = None) -> list[str]:
    """Listen for nodes of the local network, and return the addresses that they announce.

    Args:
        seconds: for how long.
        interfaces: the addresses of the interfaces to ask on; all by default.

    Raises:
        RememError: the library is not installed, or there is no network that one can ask on.
    """
    found: dict[str, None] = {}

    def look(zeroconf: Zeroconf, service_type: str, name: str, **_more: Any) -> None:
        if len(found) < FOUND_MOST and (info := zeroconf.get_service_info(service_type, name, _ANSWER_MILLISECONDS)):
            url = _url_of(info)
            if url is not None:
                found[url] = None

    with _opened(interfaces) as opened:
        from zeroconf import ServiceBrowser

        browser = ServiceBrowser(opened, SERVICE, handlers=[look])
        threading.Event().wait(seconds)
        browser.cancel()
    return list(found)


@contextmanager
def announced(url: str, host: str, port: int, *, interfaces: Sequence[str] | None = None) -> Iterator[None]:
    """Announce a node in the local network for as long as the context lasts.

    Args:
        url: its address as others of that network reach it.
        host: the IP address of that.
        port: the port of that.
        interfaces: the addresses of the interfaces to announce it on; all by default.

    Raises:
        RememError: the library is not installed, or there is no network to announce it in.
    """
    with _opened(interfaces) as opened:
        from zeroconf import ServiceInfo

        name = f"remem-{sha256(url.encode()).hexdigest()[:12]}"
        info = ServiceInfo(
            SERVICE,
            f"{name}.{SERVICE}",
            parsed_addresses=[host],
            port=port,
            properties={_URL: url.encode()},
            server=f"{name}.local.",
        )
        opened.register_service(info)
        try:
            yield
        finally:
            opened.unregister_service(info)


@contextmanager
def _opened(interfaces: Sequence[str] | None) -> Iterator[Zeroconf]:
    try:
        from zeroconf import InterfaceChoice, Zeroconf
    except ImportError as error:
        raise RememError("expected the library zeroconf, got none", "pip install 'remem[lan]'") from error
    try:
        opened = Zeroconf(interfaces=InterfaceChoice.All if interfaces is None else list(interfaces))
    except OSError as error:
        raise RememError(f"expected a local network that can be asked, got: {str(error).lower()}") from error
    try:
        yield opened
    finally:
        opened.close()


def _url_of(info: ServiceInfo) -> str | None:
    value = info.properties.get(_URL)
    try:
        return None if value is None else value.decode()
    except UnicodeDecodeError:
        return None
