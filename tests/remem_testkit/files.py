"""Keys from small numbers, and signed files from a few words.

Nothing here checks what it makes more than signing does, so a broken file is as easily made as a good one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from hashlib import sha256

from remem.protocol import SigningKey, digest_of, lesson_hash, sign_record
from remem.protocol.canonical import JSON
from remem.protocol.times import format_time, unix_seconds

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
"""The moment at which the tests' files are made, if nothing else is said."""


@cache
def key(number: int) -> SigningKey:
    """Make the key of a number: the same for every test, and no one's outside."""
    return SigningKey.from_seed(sha256(b"remem test key %d" % number).digest())


def lesson(text: str, *, kind: str = "error", at: datetime = NOW, **fields: JSON) -> dict[str, JSON]:
    """Make the fields of a lesson; `fields` replace or add some."""
    digest = lesson_hash(kind, text)
    whole: dict[str, JSON] = {
        "id": digest[:8],
        "text": text,
        "kind": kind,
        "seen": 2,
        "strength": 1.5,
        "updated": format_time(at),
        "hash": digest,
    }
    return {**whole, **fields}


def confirmation(subject: str, *, at: datetime = NOW) -> dict[str, JSON]:
    """Make the fields of a confirmation of a lesson."""
    return {"confirm": subject, "at": format_time(at)}


def revocation(subject: str, *, at: datetime = NOW, reason: str | None = None) -> dict[str, JSON]:
    """Make the fields of a revocation of a lesson."""
    fields: dict[str, JSON] = {"revoke": subject, "at": format_time(at)}
    return fields if reason is None else {**fields, "reason": reason}


def denial(subject: str, *, at: datetime = NOW, reason: str = "it floods the commons") -> dict[str, JSON]:
    """Make the fields of a denial of a key."""
    return {"deny": subject, "at": format_time(at), "reason": reason}


def sentence(number: int) -> str:
    """Return one of as many observations as there are numbers, about as long as real ones."""
    return (
        f"the build of module {number} fails while the generated header of part {number * 7 % 1000} is older "
        "than the schema that it is made from"
    )


def file(
    signer: SigningKey, contents: Sequence[Mapping[str, JSON]], *, seal: int | None = None, at: datetime = NOW
) -> bytes:
    """Sign and seal a file; the seal's number is the seconds of its time if none is given."""
    lines = [sign_record(signer, {**fields, "sealed": True}) for fields in contents]
    return resealed(signer, lines, seal=seal, at=at)


def resealed(signer: SigningKey, lines: Sequence[bytes], *, seal: int | None = None, at: datetime = NOW) -> bytes:
    """Seal lines that are signed already."""
    behind = b"".join(line + b"\n" for line in lines)
    fields: dict[str, JSON] = {
        "seal": unix_seconds(at) if seal is None else seal,
        "at": format_time(at),
        "records": len(lines),
        "digest": digest_of(behind),
        "sealed": True,
    }
    return sign_record(signer, fields) + b"\n" + behind


def draft_file(signer: SigningKey, contents: Sequence[Mapping[str, JSON]]) -> bytes:
    """Sign a file of draft 0, which has no seal."""
    return b"".join(sign_record(signer, fields) + b"\n" for fields in contents)


def full_file(signer: SigningKey, *, lines: int = 505, seal: int | None = None, at: datetime = NOW) -> bytes:
    """Sign a file of lessons of about 515 bytes a line; 505 of them make it full."""
    padded = (lesson(sentence(number).ljust(115, "."), at=at) for number in range(lines))
    return file(signer, list(padded), seal=seal, at=at)
