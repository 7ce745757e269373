"""Keys, origins, and the test of the library at start-up."""

import re
from collections.abc import Callable
from hashlib import sha256

import pytest
from nacl.exceptions import BadSignatureError

from remem.protocol import keys
from remem.protocol.errors import KeyForm, KeyInvalid
from remem.protocol.keys import PublicKey, SigningKey, self_test

from . import curve

SEED = bytes(range(32))
KEY = SigningKey.from_seed(SEED)


# --- keys ---


def test_an_origin_is_the_first_eight_bytes_of_the_keys_sha256() -> None:
    assert KEY.public.origin == sha256(KEY.public.raw).hexdigest()[:16]


def test_a_key_reads_back_from_its_digits() -> None:
    again = PublicKey.parse(KEY.public.hex)
    assert again == KEY.public
    assert (again.raw.hex(), hash(again)) == (again.hex, hash(KEY.public))


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="nothing"),
        pytest.param(KEY.public.hex[:-1], id="a digit too few"),
        pytest.param(KEY.public.hex + "0", id="a digit too many"),
        pytest.param(KEY.public.hex.upper(), id="upper case"),
        pytest.param(KEY.public.hex + "\n", id="a line feed behind"),
        pytest.param(" " + KEY.public.hex[1:], id="a space"),
        pytest.param("٣" * 64, id="digits that are not ASCII"),
        pytest.param("\ud800" * 64, id="surrogates"),
    ],
)
def test_a_key_is_64_lower_case_hex_digits(text: str) -> None:
    with pytest.raises(KeyForm):
        PublicKey.parse(text)


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(bytes(32), id="of order four"),
        pytest.param(curve.encode(curve.IDENTITY), id="the identity"),
        pytest.param((curve.P + 1).to_bytes(32, "little"), id="the identity, not canonical"),
        pytest.param((1 | 1 << 255).to_bytes(32, "little"), id="the identity with a sign"),
        pytest.param((2).to_bytes(32, "little"), id="no point of the curve"),
        pytest.param((3).to_bytes(32, "little"), id="a torsion component"),
        pytest.param((curve.P + 3).to_bytes(32, "little"), id="not canonical"),
        pytest.param(b"\xff" * 32, id="every bit set"),
    ],
)
def test_a_key_is_a_canonical_point_of_prime_order(data: bytes) -> None:
    for _ in range(2):  # what was refused once is refused again
        with pytest.raises(KeyInvalid):
            PublicKey.parse(data.hex())
    assert not curve.is_key(data)


# --- signing ---


def test_a_signature_is_the_same_every_time_and_verifies() -> None:
    signature = KEY.sign(b"remem")
    assert signature == SigningKey.from_seed(SEED).sign(b"remem")
    assert KEY.public.verify(b"remem", signature)


@pytest.mark.parametrize("length", [0, 31, 63, 65, 128])
def test_a_signature_of_another_length_is_false(length: int) -> None:
    assert not KEY.public.verify(b"remem", (KEY.sign(b"remem") * 2)[:length])


def test_bytes_moved_from_the_message_into_the_signature_are_false() -> None:
    signature = KEY.sign(b"remem")
    assert not KEY.public.verify(b"emem", signature + b"r")
    assert not KEY.public.verify(signature[-1:] + b"remem", signature[:-1])


@pytest.mark.parametrize("length", [0, 31, 33, 64])
def test_a_seed_of_another_length_is_our_own_mistake(length: int) -> None:
    with pytest.raises(ValueError, match=f"expected a seed of 32 bytes, got {length}"):
        SigningKey.from_seed(bytes(length))


def test_a_signing_key_shows_its_seed_only_when_asked() -> None:
    assert KEY.seed == SEED
    assert KEY.public.hex in repr(KEY)
    assert SEED.hex() not in repr(KEY)
    assert str(SEED) not in repr(KEY)


# --- the self-test ---


def verifier(judge: Callable[[bytes, bytes, bytes], bool]) -> Callable[[bytes, bytes], bytes]:
    """Make a library's `crypto_sign_open` of a judge of key, message and signature."""

    def crypto_sign_open(signed: bytes, key: bytes) -> bytes:
        if not judge(key, signed[64:], signed[:64]):
            raise BadSignatureError
        return signed[64:]

    return crypto_sign_open


def cofactored(key: bytes, message: bytes, signature: bytes) -> bool:
    """The other rule in use: the equation holds after all is multiplied by eight."""
    point, first = curve.decode(key), curve.decode(signature[:32])
    second = int.from_bytes(signature[32:], "little")
    if point is None or first is None or second >= curve.L or signature[:32] == curve.encode(curve.IDENTITY):
        return False
    expected = curve.expected_first(point, second, curve.challenge(signature[:32], key, message))
    return curve.same(curve.multiply(8, first), curve.multiply(8, expected))


def lax_about_s(key: bytes, message: bytes, signature: bytes) -> bool:
    reduced = int.from_bytes(signature[32:], "little") % curve.L
    return curve.is_signature(key, message, signature[:32] + reduced.to_bytes(32, "little"))


def lax_about_identity(key: bytes, message: bytes, signature: bytes) -> bool:
    point, second = curve.decode(key), int.from_bytes(signature[32:], "little")
    assert point is not None
    expected = curve.expected_first(point, second, curve.challenge(signature[:32], key, message))
    return second < curve.L and curve.encode(expected) == signature[:32]


def test_the_installed_library_passes() -> None:
    self_test()


def test_the_arithmetic_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keys, "crypto_sign_open", verifier(curve.is_signature))
    monkeypatch.setattr(keys, "crypto_core_ed25519_is_valid_point", curve.is_key)
    self_test()


@pytest.mark.parametrize(
    ("judge", "about"),
    [
        pytest.param(cofactored, "a torsion component in R", id="the cofactored equation"),
        pytest.param(lax_about_s, "an S that is not reduced", id="an S of any size"),
        pytest.param(lax_about_identity, "an identity R", id="any R"),
        pytest.param(lambda *_: True, "a torsion component in R", id="anything"),
        pytest.param(lambda *_: False, "a plain signature", id="nothing"),
        pytest.param(
            lambda key, _message, signature: curve.is_signature(key, b"remem", signature),
            "another message",
            id="any message",
        ),
    ],
)
def test_a_library_that_lets_in_other_signatures_is_refused(
    judge: Callable[[bytes, bytes, bytes], bool], about: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keys, "crypto_sign_open", verifier(judge))
    with pytest.raises(RuntimeError, match=f"wrong about {re.escape(about)}: expected"):
        self_test()


def on_the_curve(key: bytes) -> bool:
    return curve.decode(key) is not None


def not_of_small_order(key: bytes) -> bool:
    point = curve.decode(key)
    return point is not None and not curve.same(curve.multiply(8, point), curve.IDENTITY)


def in_the_subgroup(key: bytes) -> bool:
    point = curve.decode(key)
    return point is not None and curve.same(curve.multiply(curve.L, point), curve.IDENTITY)


@pytest.mark.parametrize(
    ("judge", "about"),
    [
        pytest.param(on_the_curve, "a torsion component in a key", id="any point"),
        pytest.param(not_of_small_order, "a torsion component in a key", id="points of mixed order"),
        pytest.param(
            lambda key: curve.is_key(key) or not not_of_small_order(key),
            "a key of small order",
            id="points of small order",
        ),
        pytest.param(in_the_subgroup, "an identity key", id="the identity"),
        pytest.param(
            lambda key: in_the_subgroup(key) and key != curve.encode(curve.IDENTITY),
            "an identity key that is not canonical",
            id="the identity in another spelling",
        ),
        pytest.param(lambda _key: False, "a key of prime order", id="no key"),
    ],
)
def test_a_library_that_lets_in_other_keys_is_refused(
    judge: Callable[[bytes], bool], about: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keys, "crypto_core_ed25519_is_valid_point", judge)
    with pytest.raises(RuntimeError, match=f"wrong about {re.escape(about)}: expected"):
        self_test()
