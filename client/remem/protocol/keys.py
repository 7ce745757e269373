"""Keys, origins and signatures (PROTOCOL.md, section 4).

Ed25519 under one rule for everyone: the key canonical and in the prime-order subgroup, S < L, R not the
identity, and the equation without the cofactor. PyNaCl does exactly that; `self_test` proves it of the
library that is installed, since libraries have changed their rule between releases.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from typing import Final, Self

from nacl.bindings import crypto_core_ed25519_is_valid_point, crypto_sign_open
from nacl.exceptions import BadSignatureError
from nacl.signing import SigningKey as _NaClKey

from remem.protocol.errors import KeyForm, KeyInvalid, show

SEED_BYTES: Final = 32
SIGNATURE_BYTES: Final = 64

_HEX_64: Final = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True, order=True)
class PublicKey:
    """A memory's public key, known to be a point that signatures may be judged by.

    Attributes:
        hex: the key as 64 hex digits.
        raw: its 32 bytes.
        origin: its short name, the first 8 bytes of the SHA-256 of `raw`, as 16 hex digits.
    """

    hex: str
    raw: bytes
    origin: str

    @classmethod
    def parse(cls, text: str) -> PublicKey:
        """Read a key from its 64 hex digits (PROTOCOL.md, section 4).

        Raises:
            KeyForm: the text is not 64 lower-case hex digits.
            KeyInvalid: the bytes are no canonical point of the prime-order subgroup.
        """
        return _parse_key(text)

    def verify(self, message: bytes, signature: bytes) -> bool:
        """Tell whether this key signed the message; any signature that is not 64 bytes long is false."""
        if len(signature) != SIGNATURE_BYTES:
            return False
        try:
            crypto_sign_open(signature + message, self.raw)
        except BadSignatureError:
            return False
        return True


# A file has one key on up to 1,001 lines, and the subgroup check costs more than a signature.
@lru_cache(maxsize=4_096)
def _parse_key(text: str) -> PublicKey:
    if not _HEX_64.fullmatch(text):
        raise KeyForm("a key of 64 lower-case hex digits", show(text))
    raw = bytes.fromhex(text)
    if not crypto_core_ed25519_is_valid_point(raw):
        raise KeyInvalid("a canonical point of the prime-order subgroup", text)
    return PublicKey(text, raw, sha256(raw).hexdigest()[:16])


class SigningKey:
    """A memory's private key. It never shows its seed in a `repr`."""

    __slots__ = ("_key", "public")

    def __init__(self, key: _NaClKey) -> None:
        self._key = key
        self.public = PublicKey.parse(bytes(key.verify_key).hex())

    @classmethod
    def from_seed(cls, seed: bytes) -> Self:
        """Make the key of a 32-byte seed; a seed of another length is a ValueError."""
        if len(seed) != SEED_BYTES:
            raise ValueError(f"expected a seed of {SEED_BYTES} bytes, got {len(seed)}")
        return cls(_NaClKey(seed))

    @property
    def seed(self) -> bytes:
        """The 32 bytes that the key is made from. Whoever has them is this memory."""
        return bytes(self._key)

    def sign(self, message: bytes) -> bytes:
        """Sign a message; the 64 bytes are the same every time."""
        return self._key.sign(message).signature

    def __repr__(self) -> str:
        return f"SigningKey(public={self.public.hex})"


# Keys and signatures made by curve arithmetic, not by a library.
_TEST_KEY: Final = "7767a3242dc9b58bbc68488c1265cc6cc5f26c6f3c88a5d55e901b0734dca572"
_SELF_TEST_KEYS: Final = (
    ("a key of prime order", _TEST_KEY, True),
    (
        "a torsion component in a key",
        "6a84d583f06569edb3f5ed77df65544b27d6948b4f0b2cb76f33dd8413b20719",
        False,
    ),
    ("a key of small order", "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a", False),
    ("an identity key", "0100000000000000000000000000000000000000000000000000000000000000", False),
    (
        "an identity key that is not canonical",
        "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
        False,
    ),
)
_SELF_TEST_SIGNATURES: Final = (
    (
        "a plain signature",
        b"remem",
        (
            "dd6aa28431ffc8e4361c670028ea259c8ade909a68b314d1fed04736f9befa29"
            "2cbbdaf9b1c8de6a956d49fd9375b40348e64e03612443310e59c44c2249090f"
        ),
        True,
    ),
    (
        "a torsion component in R",
        b"remem",
        (
            "2765c742432fbe7a6ee09176864de8fe901eb9c7027724fc65a06de6f860319a"
            "fb5fab3e01efad73d07505fa65a6296b762ca7c9e00c5b0d3a4817ffcd0ca004"
        ),
        False,
    ),
    (
        "an identity R",
        b"remem",
        (
            "0100000000000000000000000000000000000000000000000000000000000000"
            "7479f545dfd3e4963da7d11a24eb0399810970d14b37a3074601f86265baba05"
        ),
        False,
    ),
    (
        "an S that is not reduced",
        b"remem",
        (
            "dd6aa28431ffc8e4361c670028ea259c8ade909a68b314d1fed04736f9befa29"
            "198fd056cc2bf1c26b0a41a0726f931848e64e03612443310e59c44c2249091f"
        ),
        False,
    ),
    (
        "another message",
        b"other",
        (
            "dd6aa28431ffc8e4361c670028ea259c8ade909a68b314d1fed04736f9befa29"
            "2cbbdaf9b1c8de6a956d49fd9375b40348e64e03612443310e59c44c2249090f"
        ),
        False,
    ),
)


def self_test() -> None:
    """Refuse a library whose rule for keys or signatures has drifted (PROTOCOL.md, sections 3 and 4).

    Raises:
        RuntimeError: the installed library judges one of our own cases otherwise.
    """
    # The library itself is asked about keys, not `PublicKey.parse`, which remembers its answers.
    for name, key, valid in _SELF_TEST_KEYS:
        if crypto_core_ed25519_is_valid_point(bytes.fromhex(key)) is not valid:
            raise _drifted(name, valid)
    for name, message, signature, valid in _SELF_TEST_SIGNATURES:
        if PublicKey.parse(_TEST_KEY).verify(message, bytes.fromhex(signature)) is not valid:
            raise _drifted(name, valid)


def _drifted(name: str, valid: bool) -> RuntimeError:
    return RuntimeError(f"the installed Ed25519 library is wrong about {name}: expected valid={valid}")
