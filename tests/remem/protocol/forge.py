"""Lines and files that are signed well whatever they say, for tests of what else is checked."""

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from hashlib import blake2b
from typing import Final

from remem.protocol.canonical import JSON
from remem.protocol.keys import SigningKey
from remem.protocol.text import lesson_hash

Fields = Mapping[str, JSON]

KEY: Final = SigningKey.from_seed(b"one memory".ljust(32, b"."))
OTHER: Final = SigningKey.from_seed(b"another memory".ljust(32, b"."))
NOW: Final = datetime(2026, 3, 1, 12, tzinfo=UTC)
SECONDS: Final = int(NOW.timestamp())
LAST_SEAL: Final = 2**53 - 1
SEAL: Final[dict[str, JSON]] = {
    "seal": 7,
    "at": "2026-03-01T12:00:00Z",
    "records": 0,
    "digest": "0" * 64,
    "sealed": True,
}
HASHES: Final = tuple(f"{number:032x}" for number in range(16))


def spell(fields: Fields) -> bytes:
    """Spell an object as the protocol does, whatever it holds."""
    return json.dumps(fields, ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode()


def without(fields: Fields, *names: str) -> dict[str, JSON]:
    return {name: value for name, value in fields.items() if name not in names}


def lesson(number: int = 0, **changes: JSON) -> dict[str, JSON]:
    text = f"the build broke {number} times"
    return {
        "text": text,
        "kind": "error",
        "hash": lesson_hash("error", text),
        "id": f"lesson-{number}",
        "seen": 2,
        "strength": 1.5,
        "updated": "2026-02-28T00:00:00Z",
        **changes,
    }


def confirmation(number: int = 0, **changes: JSON) -> dict[str, JSON]:
    return {"confirm": HASHES[number], "at": "2026-02-27T00:00:00Z", **changes}


def revocation(number: int = 0, **changes: JSON) -> dict[str, JSON]:
    return {"revoke": HASHES[number], "at": "2026-02-26T00:00:00Z", "reason": "it was wrong", **changes}


def denial(number: int = 0, **changes: JSON) -> dict[str, JSON]:
    return {"deny": f"{number:064x}", "at": "2026-02-25T00:00:00Z", "reason": "a campaign", **changes}


def unknown(number: int = 0, **changes: JSON) -> dict[str, JSON]:
    return {"praise": number, **changes}


def whole(fields: Fields, key: SigningKey = KEY) -> dict[str, JSON]:
    """Add what every line carries, but for the signature, where it is not there."""
    return {"v": 1, "key": key.public.hex, "origin": key.public.origin, **fields}


def line(fields: Fields, key: SigningKey = KEY) -> bytes:
    """Sign a line of exactly these fields."""
    return spell({**fields, "sig": key.sign(spell(fields)).hex()})


def seal(behind: Sequence[bytes], key: SigningKey = KEY, **changes: JSON) -> bytes:
    """Seal lines, with changes to what their seal should say."""
    data = b"".join(each + b"\n" for each in behind)
    fields: dict[str, JSON] = {
        "seal": SECONDS,
        "at": "2026-03-01T12:00:00Z",
        "records": len(behind),
        "digest": blake2b(data, digest_size=32).hexdigest(),
        "sealed": True,
        **changes,
    }
    return line(whole(fields, key), key)


def join(lines: Sequence[bytes]) -> bytes:
    return b"".join(each + b"\n" for each in lines)


def sealed(contents: Sequence[Fields], key: SigningKey = KEY, **changes: JSON) -> bytes:
    """Make a sealed file of these records, with changes to what its seal should say."""
    behind = [line(whole({"sealed": True, **fields}, key), key) for fields in contents]
    return join([seal(behind, key, **changes), *behind])


def unsealed(contents: Sequence[Fields], key: SigningKey = KEY) -> bytes:
    """Make a file of draft 0."""
    return join([line(whole(fields, key), key) for fields in contents])
