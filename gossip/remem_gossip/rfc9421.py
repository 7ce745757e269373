"""The library of HTTP Message Signatures, bent to this protocol's rules; `signatures.py` states them.

Nothing but `signatures.py` imports this, and that only where a request is signed or verified: the library is an extra.
What it raises about a request leaves here as `BadSignature`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar, Final

import http_sf
from http_message_signatures import (
    HTTPMessageSignaturesException,
    HTTPMessageSigner,
    HTTPMessageVerifier,
    HTTPSignatureAlgorithm,
    HTTPSignatureComponentResolver,
    HTTPSignatureKeyResolver,
    InvalidSignature,
)

from remem.protocol import PublicKey, SigningKey
from remem.protocol.errors import show
from remem_gossip.signatures import ContentDigest, SignatureComponents, SignatureFalse, SignatureHeader

_SHA256_BYTES: Final = 32


@dataclass(frozen=True, slots=True)
class Message:
    """A request as the library sees it.

    Attributes:
        method: in upper case.
        authority: of the target.
        path: of the target.
        headers: those that are covered, and those of the signature.
    """

    method: str
    authority: str
    path: str
    headers: dict[str, str]

    @property
    def url(self) -> str:
        """The target; its scheme is of no consequence, since no covered component shows it."""
        return f"https://{self.authority}{self.path}"


@dataclass(frozen=True, slots=True)
class Found:
    """A signature, not verified yet.

    Attributes:
        headers: the two headers with this signature alone.
        parameters: what it says of itself.
    """

    headers: Mapping[str, str]
    parameters: Mapping[str, object]


class Ed25519(HTTPSignatureAlgorithm):
    """Ed25519 by the protocol's rule, which refuses keys and signatures that other libraries take."""

    algorithm_id = "ed25519"

    def __init__(self, public_key: PublicKey | None = None, private_key: SigningKey | None = None) -> None:
        self._public = public_key
        self._private = private_key

    def sign(self, message: bytes) -> bytes:
        """Sign the base of a signature."""
        assert self._private is not None
        return self._private.sign(message)

    def verify(self, signature: bytes, message: bytes) -> None:
        """Verify the base of a signature.

        Raises:
            InvalidSignature: it is not of this key.
        """
        if self._public is None or not self._public.verify(message, signature):
            raise InvalidSignature("the signature is false")


class _Components(HTTPSignatureComponentResolver):
    # The library leaves out a port by the scheme, which nobody behind a proxy knows.
    derived_component_resolvers: ClassVar[dict[str, Callable[..., str]]] = {
        **HTTPSignatureComponentResolver.derived_component_resolvers,
        "@authority": lambda resolver: str(resolver.message.authority),
    }


class _Keys(HTTPSignatureKeyResolver):
    """A key is its own name."""

    def __init__(self, own: SigningKey | None = None) -> None:
        self._own = own

    def resolve_public_key(self, key_id: str) -> PublicKey:
        """Return the key of this name."""
        return PublicKey.parse(key_id)

    def resolve_private_key(self, key_id: str) -> SigningKey:
        """Return the node's own key."""
        assert self._own is not None
        assert self._own.public.hex == key_id
        return self._own


class _Verifier(HTTPMessageVerifier):
    def validate_created_and_expires(self, sig_input: Any, max_age: Any = None) -> None:
        """Leave the time alone: it was judged by the caller's clock, which is not the library's."""


def sign(
    message: Message, body: bytes, key: SigningKey, now: datetime, *, label: str, components: Sequence[str]
) -> None:
    """Put the digest of the body and the headers of a signature into a message."""
    signer = HTTPMessageSigner(
        signature_algorithm=Ed25519, key_resolver=_Keys(key), component_resolver_class=_Components
    )
    signer.sign(message, key_id=key.public.hex, created=now, label=label, covered_component_ids=components, body=body)


def find(inputs: str, signatures: str, components: Sequence[str]) -> Found:
    """Find the one signature that covers these components.

    Raises:
        SignatureHeader: the headers cannot be read.
        SignatureComponents: none covers them, or more than one does.
    """
    described, given = _read_dictionary("signature-input", inputs), _read_dictionary("signature", signatures)
    covering = {label: member for label, member in described.items() if _covered(member) == sorted(components)}
    if len(covering) != 1:
        raise SignatureComponents(f"one signature of exactly {', '.join(components)}", f"{len(covering)}")
    ((label, member),) = covering.items()
    if label not in given:
        raise SignatureHeader(f"a signature {label}", "none")
    headers = {"Signature-Input": http_sf.ser({label: member}), "Signature": http_sf.ser({label: given[label]})}
    return Found(headers, member[1])


def verify(message: Message, found: Found) -> None:
    """Verify a signature of a message.

    Raises:
        SignatureFalse: it is not of this message by the key that it names.
    """
    verifier = _Verifier(signature_algorithm=Ed25519, key_resolver=_Keys(), component_resolver_class=_Components)
    whole = Message(message.method, message.authority, message.path, {**message.headers, **found.headers})
    try:
        verifier.verify(whole, max_age=None)
    except HTTPMessageSignaturesException as error:
        raise SignatureFalse("a signature of this request by the key that it names", show(str(error), 120)) from error


def read_digest(value: str, algorithm: str) -> bytes:
    """Read the digest of one algorithm from a Content-Digest, which may have others.

    Raises:
        SignatureHeader: the header cannot be read.
        ContentDigest: it has none of this algorithm.
    """
    member = _read_dictionary("content-digest", value).get(algorithm)
    digest = member[0] if isinstance(member, tuple) else None
    if not isinstance(digest, bytes) or len(digest) != _SHA256_BYTES:
        raise ContentDigest(f"a digest of {algorithm}", show(value, 120))
    return digest


def _covered(member: Any) -> list[str] | None:
    """Return the names of the components that a signature covers, sorted; None where one has parameters."""
    if not isinstance(member, tuple) or not isinstance(member[0], list):
        return None
    names = [name for name, parameters in member[0] if isinstance(name, str) and not parameters]
    return sorted(names) if len(names) == len(member[0]) else None


def _read_dictionary(name: str, value: str) -> dict[str, Any]:
    def twice(key: str, context: str) -> None:
        raise SignatureHeader(f"each name in a {context} of {name} once", show(key))

    try:
        read = http_sf.parse(value.encode(), tltype="dictionary", on_duplicate_key=twice)
    except (ValueError, TypeError) as error:
        raise SignatureHeader(f"a dictionary of structured fields in {name}", show(value, 120)) from error
    assert isinstance(read, dict)
    return dict(read)
