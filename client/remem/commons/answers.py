"""What a commons answers over HTTP, read with every bound counted (PROTOCOL.md, section 11).

A body is counted before and behind its decompression and is one gzip member at most; a header is read in one go
through a bounded text, and one that makes no sense counts as absent or is a `BadAnswer`.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable
from typing import Final

from remem.commons.base import BadAnswer
from remem.protocol.errors import show

LINK_MOST: Final = 1_024

_ETAG: Final = re.compile(r"[\x21-\x7e]{1,256}")


def read_body(chunks: Iterable[bytes], coding: str, most: int) -> bytes:
    """Read a body as it comes, and stop where it is longer than it may be, packed or unpacked.

    Raises:
        BadAnswer: it is too long, or not in the coding that it says.
    """
    if coding not in ("identity", "gzip"):
        raise BadAnswer("answer_form", f"expected no coding but gzip, got {show(coding)}")
    body = bytearray()
    came = 0
    unpack = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16) if coding == "gzip" else None
    for chunk in chunks:
        came += len(chunk)
        # Blocks that unpack to nothing cost bytes on the way, so those are counted too.
        if came > most:
            raise _too_long(most)
        body += chunk if unpack is None else _unpacked(unpack, chunk, most + 1 - len(body))
        if len(body) > most or (unpack is not None and unpack.unconsumed_tail):
            raise _too_long(most)
    if unpack is not None and came and not unpack.eof:
        raise BadAnswer("answer_form", "expected gzip to its end, got a part of it")
    return bytes(body)


def read_etag(value: object) -> str | None:
    """Return an ETag that can be sent back, None for anything else."""
    return value if isinstance(value, str) and _ETAG.fullmatch(value) else None


def leads_on(link: str) -> bool:
    """Tell whether a Link header names a next page.

    Raises:
        BadAnswer: it is too long to be read.
    """
    if len(link) > LINK_MOST:
        raise BadAnswer("answer_form", f"expected a Link of at most {LINK_MOST} characters, got {len(link)}")
    for behind in link.split(">")[1:]:
        for parameter in behind.partition("<")[0].partition(",")[0].split(";"):
            name, _equals, value = parameter.partition("=")
            if name.strip().lower() == "rel" and "next" in value.strip().strip('"').lower().split():
                return True
    return False


def _unpacked(unpack: zlib._Decompress, chunk: bytes, most: int) -> bytes:
    if not unpack.eof:
        try:
            body = unpack.decompress(chunk, most)
        except zlib.error:
            raise BadAnswer("answer_form", "expected gzip, got other bytes") from None
        if not unpack.unused_data:
            return body
    elif not chunk:
        return b""
    raise BadAnswer("answer_form", "expected the end behind gzip, got more bytes")


def _too_long(most: int) -> BadAnswer:
    return BadAnswer("answer_size", f"expected an answer of at most {most} bytes, got more")
