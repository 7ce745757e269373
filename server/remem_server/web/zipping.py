"""Answers in gzip, to whoever reads it (RFC 9110, section 12.5.3).

The level is the lowest: signatures hardly compress, so a higher one costs more and gains next to nothing. What repeats
in each line of a file goes at any level.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator
from typing import Final, TypeAlias

LEVEL: Final = 1

_GZIP_FORM: Final = zlib.MAX_WBITS | 16

Coding: TypeAlias = Callable[[Iterable[bytes]], Iterator[bytes]]


def accepts_gzip(accept_encoding: str) -> bool:
    """Tell whether an Accept-Encoding lets us compress (RFC 9110, section 12.5.3)."""
    codings = accept_encoding.lower()
    if "gzip" not in codings and "*" not in codings:
        return False
    weights = dict(map(_weight, codings.split(",")))
    return weights.get("gzip", weights.get("x-gzip", weights.get("*", 0.0))) > 0.0


def coding_for(accept_encoding: str) -> tuple[Coding, dict[str, str]]:
    """Return what becomes of the pieces of an answer to this Accept-Encoding, and the headers that say so."""
    if accepts_gzip(accept_encoding):
        return _packed, {"Content-Encoding": "gzip", "Vary": "Accept-Encoding"}
    return _plain, {"Vary": "Accept-Encoding"}


def _packed(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Compress pieces as they come; those that fill nothing yet wait."""
    pack = zlib.compressobj(LEVEL, wbits=_GZIP_FORM)
    for piece in pieces:
        if some := pack.compress(piece):
            yield some
    yield pack.flush()


def _plain(pieces: Iterable[bytes]) -> Iterator[bytes]:
    return iter(pieces)


def _weight(item: str) -> tuple[str, float]:
    coding, _, parameter = item.partition(";")
    name, _, value = parameter.partition("=")
    if name.strip() != "q":
        return coding.strip(), 1.0
    try:
        return coding.strip(), float(value)
    except ValueError:
        return coding.strip(), 0.0
