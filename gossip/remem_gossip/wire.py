"""The bytes of the three routes between nodes (PROTOCOL.md, section 16): values in, bytes out, and back.

- What is asked for, and what became of an offer, is one JSON object.
- Files travel as they are. A line of JSON says how many bytes follow it; a file ends in LF, so each line still begins
  behind one. What is no file is a line alone.
- An offer and the answer to a question are written in one way. Only an answer may say that something is blocked or
  missing.
- A file names itself: its id is made from the key in its first line and from its digest, and whoever takes it in finds
  out whether it is what it says. So does a proof.
- What breaks a rule is `BadBody`, the whole body with it. Every reader has a cap before it looks.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from remem.protocol import RULES, digest_of
from remem.protocol.errors import show
from remem.protocol.items import item_of, proof_item
from remem_gossip.errors import GossipError
from remem_gossip.parts import Blocked, Head, Missing, Outcome, Part, Proof, Verdict, Whole

RECONCILE: Final = "/gossip/reconcile"
FETCH: Final = "/gossip/fetch"
OFFER: Final = "/gossip/offer"

OCTETS: Final = "application/octet-stream"
LINES: Final = "application/x-ndjson"
JSON: Final = "application/json"

FRAME_BYTES: Final = 262_144
"""The longest message of reconciliation that is sent."""
FRAME_MOST: Final = 1_048_576
"""The longest that is read."""
FETCH_IDS: Final = 4_096
ASKED_BYTES: Final = 327_680
"""The longest question for files."""
FETCH_BYTES: Final = 8 * 1_048_576
OFFER_BYTES: Final = 8 * 1_048_576
OFFER_PARTS: Final = 256
VERDICTS_BYTES: Final = 65_536

# Two lines of the protocol, in each of which every byte may have been escaped, and what stands around them.
_LINE_BYTES: Final = 4 * RULES.line_bytes + 256
_REASON_CHARACTERS: Final = 200
# An id does not depend on the time.
_ANY_TIME: Final = datetime(1970, 1, 1, tzinfo=UTC)
_HEX_64: Final = re.compile(r"[0-9a-f]{64}")
_CODE: Final = re.compile(r"[a-z0-9_]{1,64}")
_KINDS: Final = ("file", "proof", "blocked", "missing")
_OUTCOMES: Final = {outcome.value: outcome for outcome in Outcome}


class BadBody(GossipError):
    """A body has another form than its route's."""

    code = "gossip_body"


@dataclass(frozen=True, slots=True)
class Asked:
    """What a peer asks for.

    Attributes:
        ids: the items, each once.
        heads: whether it asks which files these are, in place of the files.
    """

    ids: tuple[bytes, ...]
    heads: bool


# --- what is asked for ---


def write_fetch(ids: Iterable[bytes], *, heads: bool = False) -> bytes:
    """Ask for what these items name, or for the heads of it."""
    names = [one.hex() for one in ids]
    return _spell({"heads": True, "ids": names} if heads else {"ids": names})


def read_fetch(body: bytes) -> Asked:
    """Read what is asked for.

    Raises:
        BadBody: the body has another form, or asks for too much.
    """
    if len(body) > ASKED_BYTES:
        raise BadBody(f"a question of at most {ASKED_BYTES} bytes", f"{len(body)} bytes")
    fields = _read_object(body)
    names = fields.get("ids")
    if not isinstance(names, list) or not 1 <= len(names) <= FETCH_IDS:
        raise BadBody(f"`ids`, a list of 1 to {FETCH_IDS}", _show_list(names))
    heads = fields.get("heads", False)
    if not isinstance(heads, bool):
        raise BadBody("`heads`, true or false", show(heads))
    ids = tuple(_read_id(name) for name in names)
    if len(set(ids)) != len(ids):
        raise BadBody("each id once", "one of them twice")
    return Asked(ids, heads)


# --- files, and what stands for one ---


def write_part(part: Part) -> bytes:
    """Write what one item names."""
    lead = _lead(part)
    return lead + part.data if isinstance(part, Whole) else lead


def size_of(part: Part) -> int:
    """Return how many bytes `write_part` makes of it."""
    return len(_lead(part)) + (len(part.data) if isinstance(part, Whole) else 0)


def read_parts(body: bytes) -> Iterator[Part]:
    """Read the answer to a question for files, one part at a time.

    Raises:
        BadBody: something in it has another form; what came before is good.
    """
    if len(body) > FETCH_BYTES:
        raise BadBody(f"an answer of at most {FETCH_BYTES} bytes", f"{len(body)} bytes")
    return _read_parts(body, FETCH_IDS)


def read_offer(body: bytes) -> list[Whole | Proof]:
    """Read what is offered.

    Raises:
        BadBody: the body has another form.
    """
    if len(body) > OFFER_BYTES:
        raise BadBody(f"an offer of at most {OFFER_BYTES} bytes", f"{len(body)} bytes")
    offered: list[Whole | Proof] = []
    for part in _read_parts(body, OFFER_PARTS):
        if not isinstance(part, Whole | Proof):
            raise BadBody("a file or a proof", type(part).__name__.lower())
        offered.append(part)
    if not offered:
        raise BadBody("at least one file or proof", "none")
    return offered


def _lead(part: Part) -> bytes:
    """Write the line that says what it is."""
    match part:
        case Whole(data=data):
            fields: Mapping[str, object] = {"file": len(data)}
        case Proof(seals=seals):
            fields = {"proof": [seal.decode() for seal in seals]}
        case Blocked(id=id_, reason=reason):
            fields = {"blocked": reason[:_REASON_CHARACTERS], "id": id_.hex()}
        case Missing(id=id_):
            fields = {"id": id_.hex(), "missing": True}
    return _spell(fields) + b"\n"


def _read_parts(body: bytes, most: int) -> Iterator[Part]:
    at = count = 0
    while at < len(body):
        count += 1
        if count > most:
            raise BadBody(f"at most {most} parts", "more")
        line, at = _line_at(body, at)
        fields = _read_object(line)
        known = [name for name in _KINDS if name in fields]
        if len(known) != 1:
            raise BadBody(f"one of {', '.join(_KINDS)}", show(sorted(fields)))
        if known == ["file"]:
            size = _read_size(fields["file"])
            yield _read_file(body[at : at + size], size)
            at += size
        else:
            yield _read_other(known[0], fields)


def _line_at(body: bytes, at: int) -> tuple[bytes, int]:
    """Return the line that begins here, and where the next one does."""
    end = body.find(b"\n", at, at + _LINE_BYTES + 1)
    if end < 0:
        raise BadBody(f"a line of at most {_LINE_BYTES} bytes that ends in LF", "another")
    return body[at:end], end + 1


def _read_file(data: bytes, size: int) -> Whole:
    """Read a file, with the id that it has if it is what it says."""
    if len(data) < size:
        raise BadBody(f"a file of {size} bytes", f"{len(data)} bytes")
    if not data.endswith(b"\n"):
        raise BadBody("a file that ends in LF", show(data[-16:]))
    key = _key_of(data[: data.index(b"\n")])
    return Whole(item_of(key, _ANY_TIME, digest_of(data)).id, data)


def _read_other(kind: str, fields: Mapping[str, object]) -> Part:
    match kind:
        case "proof":
            return _read_proof(fields["proof"])
        case "blocked":
            return Blocked(_read_id(fields.get("id")), _read_reason(fields["blocked"]))
    if fields["missing"] is not True:
        raise BadBody("`missing`, which is true", show(fields["missing"]))
    return Missing(_read_id(fields.get("id")))


def _key_of(seal: bytes) -> str:
    """Read whose seal it says it is, fast: that it is a line of the protocol is found out by whoever takes it in."""
    if len(seal) > RULES.line_bytes:
        raise BadBody(f"a line of at most {RULES.line_bytes} bytes", f"{len(seal)} bytes")
    fields = _read_object(seal)
    if "seal" not in fields:
        raise BadBody("the line of a seal", show(seal))
    return _read_key(fields.get("key"))


def _read_size(size: object) -> int:
    if type(size) is not int or not 1 <= size <= RULES.file_bytes:
        raise BadBody(f"a file of 1 to {RULES.file_bytes} bytes", show(size))
    return size


def _read_proof(lines: object) -> Proof:
    if not isinstance(lines, list) or len(lines) != 2:
        raise BadBody("a proof of two lines", _show_list(lines))
    first, second = (_read_seal(line) for line in lines)
    key = _key_of(first)
    if _key_of(second) != key:
        raise BadBody("two seals of one key", "those of two keys")
    return Proof(proof_item(key).id, (first, second))


def _read_seal(line: object) -> bytes:
    if not isinstance(line, str):
        raise BadBody("the line of a seal", show(line))
    try:
        return line.encode()
    except UnicodeEncodeError:
        raise BadBody("the line of a seal", "a half of a pair of code units") from None


def _read_reason(reason: object) -> str:
    """Read why something is blocked: whatever stands there, a word on one file is no reason to break an exchange."""
    if not isinstance(reason, str):
        raise BadBody("a reason", show(reason))
    return "".join(char if char.isprintable() else " " for char in reason[:_REASON_CHARACTERS])


# --- heads ---


def write_head(head: Head) -> bytes:
    """Write which file an item names."""
    return _spell({"id": head.id.hex(), "key": head.key, "seal": head.seal, "size": head.size}) + b"\n"


def read_heads(body: bytes) -> list[Head]:
    """Read the answer to a question for heads.

    Raises:
        BadBody: the body has another form.
    """
    if len(body) > FETCH_BYTES:
        raise BadBody(f"an answer of at most {FETCH_BYTES} bytes", f"{len(body)} bytes")
    heads: list[Head] = []
    at = 0
    while at < len(body):
        if len(heads) == FETCH_IDS:
            raise BadBody(f"at most {FETCH_IDS} heads", "more")
        line, at = _line_at(body, at)
        fields = _read_object(line)
        seal = fields.get("seal")
        if type(seal) is not int or not 1 <= seal <= RULES.last_seal:
            raise BadBody(f"a seal from 1 to {RULES.last_seal}", show(seal))
        key = _read_key(fields.get("key"))
        heads.append(Head(_read_id(fields.get("id")), key, seal, _read_size(fields.get("size"))))
    return heads


# --- what became of an offer ---


def write_verdicts(verdicts: Iterable[Verdict]) -> bytes:
    """Write what became of each part of an offer, in its order."""
    return _spell({"verdicts": [_verdict_fields(verdict) for verdict in verdicts]})


def read_verdicts(body: bytes, expected: int) -> list[Verdict]:
    """Read what became of an offer.

    Args:
        body: the answer.
        expected: how many parts were offered.

    Raises:
        BadBody: the body has another form, or speaks of more or fewer parts.
    """
    if len(body) > VERDICTS_BYTES:
        raise BadBody(f"an answer of at most {VERDICTS_BYTES} bytes", f"{len(body)} bytes")
    verdicts = _read_object(body).get("verdicts")
    if not isinstance(verdicts, list) or len(verdicts) != expected:
        raise BadBody(f"`verdicts`, a list of {expected}", _show_list(verdicts))
    return [_read_verdict(verdict) for verdict in verdicts]


def is_code(text: str) -> bool:
    """Tell whether it has the form of a stable code."""
    return _CODE.fullmatch(text) is not None


def _verdict_fields(verdict: Verdict) -> Mapping[str, object]:
    code = {} if verdict.code is None else {"code": verdict.code}
    return {**code, "id": verdict.id.hex(), "verdict": verdict.outcome.value}


def _read_verdict(fields: object) -> Verdict:
    if not isinstance(fields, Mapping):
        raise BadBody("a verdict", show(fields))
    name, code = fields.get("verdict"), fields.get("code")
    if not isinstance(name, str) or name not in _OUTCOMES:
        raise BadBody(f"one of {', '.join(_OUTCOMES)}", show(name))
    if code is not None and (not isinstance(code, str) or not is_code(code)):
        raise BadBody("a code", show(code))
    return Verdict(_read_id(fields.get("id")), _OUTCOMES[name], code)


# --- JSON ---


def _spell(fields: Mapping[str, object]) -> bytes:
    return json.dumps(fields, ensure_ascii=False, separators=(",", ":")).encode()


def _read_object(text: bytes) -> Mapping[str, object]:
    try:
        fields = json.loads(text.decode(), object_pairs_hook=_fields_once, parse_constant=_no_constant)
    except BadBody:
        raise
    except (ValueError, RecursionError):
        raise BadBody("a JSON object", show(text)) from None
    if not isinstance(fields, Mapping):
        raise BadBody("a JSON object", show(text))
    return fields


def _fields_once(pairs: Sequence[tuple[str, object]]) -> Mapping[str, object]:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise BadBody("each field once", "one of them twice")
    return fields


def _no_constant(name: str) -> object:
    raise BadBody("a number of JSON", name)


def _read_id(name: object) -> bytes:
    if not isinstance(name, str) or not _HEX_64.fullmatch(name):
        raise BadBody("an id of 64 lower-case hex digits", show(name))
    return bytes.fromhex(name)


def _read_key(key: object) -> str:
    if not isinstance(key, str) or not _HEX_64.fullmatch(key):
        raise BadBody("a key of 64 lower-case hex digits", show(key))
    return key


def _show_list(value: object) -> str:
    return f"a list of {len(value)}" if isinstance(value, list) else show(value)
