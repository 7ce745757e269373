"""A wire to a server that can be cut: a port of loopback that hands on every byte, until it is told not to."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from typing import Final
from urllib.parse import urlsplit

_CHUNK: Final = 16_384


class Wire:
    """One address that stays the same, whichever port the server behind it has.

    Attributes:
        url: the address.
        cuts: how many connections were cut.
        passed: how many bytes went through, both ways.
    """

    def __init__(self) -> None:
        self._listening = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.url = f"http://127.0.0.1:{self._listening.getsockname()[1]}"
        self.cuts = self.passed = 0
        self._lock = threading.Lock()
        self._target: tuple[str, int] | None = None
        self._left: int | None = None
        self._ends: set[socket.socket] = set()
        threading.Thread(target=self._accept, daemon=True).start()

    def lead_to(self, url: str) -> None:
        """Hand on to a server from now on."""
        address = urlsplit(url)
        assert address.hostname is not None
        assert address.port is not None
        self._target, self._left = (address.hostname, address.port), None

    def cut(self, after: int = 0) -> None:
        """Break every connection once so many more bytes have passed, and let no other through until it leads again."""
        with self._lock:
            self._left = after
        if after == 0:
            self._break()

    def close(self) -> None:
        """End it."""
        self._listening.close()
        self._left = 0
        self._break()

    def _accept(self) -> None:
        while True:
            try:
                near, _address = self._listening.accept()
            except OSError:
                return
            threading.Thread(target=self._connect, args=(near,), daemon=True).start()

    def _connect(self, near: socket.socket) -> None:
        if self._target is None or self._left == 0:
            near.close()
            return
        try:
            far = socket.create_connection(self._target, timeout=10)
        except OSError:
            near.close()
            return
        far.settimeout(None)
        with self._lock:
            self._ends |= {near, far}
        for one, other in ((near, far), (far, near)):
            threading.Thread(target=self._pump, args=(one, other), daemon=True).start()

    def _pump(self, one: socket.socket, other: socket.socket) -> None:
        with suppress(OSError):
            while data := one.recv(_CHUNK):
                may = self._may_pass(len(data))
                other.sendall(data[:may])
                if may < len(data):
                    self._break()
                    return
        # An end that was said goes on to the other side; the answer may still come.
        with suppress(OSError):
            other.shutdown(socket.SHUT_WR)

    def _may_pass(self, size: int) -> int:
        with self._lock:
            may = size if self._left is None else min(size, self._left)
            if self._left is not None:
                self._left -= may
            self.passed += may
            return may

    def _break(self) -> None:
        with self._lock:
            ends, self._ends = self._ends, set()
        self.cuts += len(ends) // 2
        for end in ends:
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()
