"""Requests that stop half-way, and files that are refused: what a good client never sends."""

from __future__ import annotations

import json
from collections.abc import Iterator
from http.client import HTTPResponse
from pathlib import Path
from typing import Any, Final

from remem_testkit.wire import connected

_VECTORS: Final = Path(__file__).parents[1] / "vectors"

Told = tuple[int, dict[str, Any]]
"""A status, and the problem that came with it."""


def broken_files() -> Iterator[bytes]:
    """Return the vectors that are refused, as files."""
    for path in sorted(_VECTORS.glob("*/*.json")):
        vector = json.loads(path.read_text("utf-8"))
        end = b"\n" if path.parent.name != "file" else b""
        for name in ("line", "file") if "error" in vector["expect"] else ():
            if name in vector:
                yield vector[name].encode() + end
            elif f"{name}_hex" in vector:
                yield bytes.fromhex(vector[f"{name}_hex"]) + end
            elif f"{name}_parts" in vector:
                parts = vector[f"{name}_parts"]
                yield "".join(p if isinstance(p, str) else p["repeat"] * p["times"] for p in parts).encode() + end


def answer_to_half_a_body(url: str, method: str, path: str, token: str) -> Told:
    """Send the beginning of a body and nothing more, and read what the commons says to that."""
    head = f"{method} {path} HTTP/1.1\r\nHost: commons\r\nAuthorization: Bearer {token}\r\nContent-Length: 9\r\n\r\n"
    with connected(url) as opened:
        opened.sendall(head.encode() + b"half")
        answer = HTTPResponse(opened)
        answer.begin()
        return answer.status, json.loads(answer.read())


async def answer_to_a_disconnect(app: Any, method: str, path: str, token: str) -> Told:
    """Break off before the body, and take the answer from the application itself: it goes out to nobody."""
    scope = {
        "type": "http",
        "http_version": "1.1",
        "method": method,
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "root_path": "",
        "headers": [(b"authorization", f"Bearer {token}".encode())],
        "client": ("127.0.0.1", 1),
    }
    sent: list[Any] = []

    async def receive() -> dict[str, str]:
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        sent.append(message)

    await app(scope, receive, send)
    return sent[0]["status"], json.loads(sent[1]["body"])
