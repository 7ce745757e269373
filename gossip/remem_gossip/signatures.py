"""Who asks: requests that are signed with a node's key (RFC 9421, RFC 9530; PROTOCOL.md, section 16).

- Exactly four components are covered: `@method`, `@authority`, `@path` and `content-digest`, in any order and without
  parameters. The target's scheme is not, since a proxy may have another than the caller.
- The authority is the Host header as it came, in lower case. Whoever asks leaves the port out of it that is the
  scheme's own.
- Ed25519, by the protocol's own rule for keys and signatures; `keyid` is the key's 64 hex digits.
- `created` is at most 300 seconds away from the receiver's clock, in both directions. A request that comes twice
  changes nothing, so none is remembered.
- Signatures with other components, as a proxy adds, are nobody's business here. Of two that would do, neither does.
- The signature is verified from the head; the body is compared with the signed digest once it is there.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from typing import ClassVar, Final

from remem.protocol import ProtocolError, PublicKey, SigningKey
from remem.protocol.errors import show
from remem.protocol.times import unix_seconds
from remem_gossip.errors import GossipError
from remem_gossip.extra import need_library

WINDOW_SECONDS: Final = 300
COMPONENTS: Final = ("@method", "@authority", "@path", "content-digest")
LABEL: Final = "remem"

_HEADER_CHARACTERS: Final = 4_096
_READ: Final = ("host", "content-digest", "signature-input", "signature")
_PATH: Final = re.compile(r"/[\x21\x22\x24-\x3e\x40-\x7e]{0,2047}")
_DIGEST: Final = "sha-256"


class BadSignature(GossipError):
    """A request is not signed as one between nodes is."""

    code: ClassVar[str] = "signature"


class SignatureMissing(BadSignature):
    """A header that a signed request has is not there."""

    code = "signature_missing"


class SignatureHeader(BadSignature):
    """A header of a signed request cannot be read."""

    code = "signature_header"


class SignatureComponents(BadSignature):
    """No signature covers what has to be covered, or more than one does."""

    code = "signature_components"


class SignatureParameters(BadSignature):
    """A signature says of itself what no signature here may say."""

    code = "signature_parameters"


class SignatureTime(BadSignature):
    """A signature was made too long ago, or is yet to be made."""

    code = "signature_time"


class SignatureFalse(BadSignature):
    """A signature is not of this request by this key."""

    code = "signature_false"


class ContentDigest(BadSignature):
    """The body is not the one that was signed."""

    code = "content_digest"


@dataclass(frozen=True, slots=True)
class Signed:
    """The head of a request whose signature is good.

    Attributes:
        key: who signed it.
        digest: the SHA-256 of the body that was signed.
    """

    key: PublicKey
    digest: bytes

    def check(self, body: bytes) -> None:
        """Compare the body with what was signed.

        Raises:
            ContentDigest: it is another.
        """
        if not hmac.compare_digest(sha256(body).digest(), self.digest):
            raise ContentDigest("the body that was signed", "another")


def sign(key: SigningKey, method: str, authority: str, path: str, body: bytes, now: datetime) -> dict[str, str]:
    """Sign a request.

    Args:
        key: the node's.
        method: in upper case.
        authority: what the Host header will be.
        path: the whole path of the target, without a query.
        body: all of it.
        now: the moment that it is signed at.

    Raises:
        RememError: the library is not installed.

    Returns:
        the headers to send with it, beside Host.
    """
    need_library()
    from remem_gossip import rfc9421

    message = rfc9421.Message(method, authority.lower(), path, {})
    rfc9421.sign(message, body, key, now, label=LABEL, components=COMPONENTS)
    return message.headers


def verify(method: str, path: str, headers: Iterable[tuple[str, str]], now: datetime) -> Signed:
    """Verify the signature of a request, before its body is there.

    Args:
        method: in upper case.
        path: the path as it came, without the query and with its escapes.
        headers: all of them, each line for itself.
        now: this side's clock.

    Raises:
        BadSignature: it is not signed as it has to be.
        RememError: the library is not installed.
    """
    need_library()
    from remem_gossip import rfc9421

    # 1. Each header is there, once or as one list, and short.
    lines = _read_headers(headers)
    if not _PATH.fullmatch(path):
        raise SignatureHeader("a path without a query", show(path))
    # 2. One signature covers the four components.
    found = rfc9421.find(lines["signature-input"], lines["signature"], COMPONENTS)
    # 3. It names a key and the one algorithm, and was made about now.
    key = _read_key(found.parameters)
    _check_time(found.parameters, unix_seconds(now))
    # 4. It is of this request by that key.
    covered = {"content-digest": lines["content-digest"]}
    rfc9421.verify(rfc9421.Message(method, lines["host"].lower(), path, covered), found)
    # 5. What was signed of the body is a digest that can be compared.
    return Signed(key, rfc9421.read_digest(lines["content-digest"], _DIGEST))


def _read_headers(headers: Iterable[tuple[str, str]]) -> Mapping[str, str]:
    lines: dict[str, list[str]] = {name: [] for name in _READ}
    for name, value in headers:
        if name.lower() in lines:
            lines[name.lower()].append(value.strip(" \t"))
    for name, values in lines.items():
        if not values:
            raise SignatureMissing(f"a header {name}", "none")
        if sum(map(len, values)) > _HEADER_CHARACTERS or not all(map(_is_plain, values)):
            raise SignatureHeader(f"at most {_HEADER_CHARACTERS} printable characters of {name}", show(values[0]))
    if len(lines["host"]) > 1:
        raise SignatureHeader("one host", f"{len(lines['host'])}")
    return {name: ", ".join(values) for name, values in lines.items()}


def _is_plain(value: str) -> bool:
    return value.isascii() and value.isprintable()


def _read_key(parameters: Mapping[str, object]) -> PublicKey:
    algorithm = parameters.get("alg", "ed25519")
    if algorithm != "ed25519":
        raise SignatureParameters("`alg`, where it is said, of ed25519", show(algorithm))
    name = parameters.get("keyid")
    if not isinstance(name, str):
        raise SignatureParameters("`keyid`, a key of 64 lower-case hex digits", show(name))
    try:
        return PublicKey.parse(name)
    except ProtocolError as error:
        raise SignatureParameters(f"`keyid`, {error.expected}", error.got) from error


def _check_time(parameters: Mapping[str, object], now: int) -> None:
    created, expires = parameters.get("created"), parameters.get("expires")
    if type(created) is not int:
        raise SignatureParameters("`created`, in whole seconds", show(created))
    if abs(now - created) > WINDOW_SECONDS:
        raise SignatureTime(f"`created` within {WINDOW_SECONDS} seconds of {now}", str(created))
    if expires is None:
        return
    if type(expires) is not int:
        raise SignatureParameters("`expires`, in whole seconds", show(expires))
    if expires < now:
        raise SignatureTime(f"`expires` of {now} or later", str(expires))
