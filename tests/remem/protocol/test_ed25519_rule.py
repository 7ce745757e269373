"""The one rule for signatures, against public vectors and against cases made for it.

Under the rule every case has one right answer. It is worked out here by `curve`, whose arithmetic no library
had a part in; what a vector file says of its cases is not read.
"""

import json
from collections.abc import Callable, Iterator
from hashlib import sha512
from pathlib import Path
from typing import Final, NamedTuple

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from remem.protocol.errors import KeyInvalid
from remem.protocol.keys import PublicKey, SigningKey

from . import curve


class Case(NamedTuple):
    key: bytes
    message: bytes
    signature: bytes
    seed: bytes | None = None


def library_says(case: Case) -> bool:
    try:
        key = PublicKey.parse(case.key.hex())
    except KeyInvalid:
        return False
    return key.verify(case.message, case.signature)


def rule_says(case: Case) -> bool:
    return curve.is_signature(case.key, case.message, case.signature)


# --- public vectors ---


def wycheproof(folder: Path) -> Iterator[Case]:
    for group in json.loads((folder / "wycheproof_ed25519_test.json").read_text())["testGroups"]:
        for test in group["tests"]:
            yield Case(*map(bytes.fromhex, (group["publicKey"]["pk"], test["msg"], test["sig"])))


def cctv(folder: Path) -> Iterator[Case]:
    for test in json.loads((folder / "cctv_ed25519vectors.json").read_text()):
        yield Case(bytes.fromhex(test["key"]), test["msg"].encode(), bytes.fromhex(test["sig"]))


def speccheck(folder: Path) -> Iterator[Case]:
    for test in json.loads((folder / "speccheck_cases.json").read_text()):
        yield Case(*map(bytes.fromhex, (test["pub_key"], test["message"], test["signature"])))


def sign_input(folder: Path) -> Iterator[Case]:
    for line in (folder / "sign.input").read_text().splitlines():
        secret, key, message, signed = map(bytes.fromhex, line.split(":")[:4])
        yield Case(key, message, signed[:64], secret[:32])


def rfc8032(folder: Path) -> Iterator[Case]:
    for test in json.loads((folder / "rfc8032.json").read_text()):
        yield Case(*(bytes.fromhex(test[name]) for name in ("pk", "msg", "sig", "sk")))


@pytest.mark.parametrize(
    ("read", "cases", "valid"),
    [
        pytest.param(wycheproof, 151, 88, id="Wycheproof"),
        pytest.param(cctv, 914, 1, id="CCTV"),
        pytest.param(speccheck, 12, 0, id="speccheck"),
        pytest.param(sign_input, 1_024, 1_024, id="sign.input"),
        pytest.param(rfc8032, 3, 3, id="RFC 8032"),
    ],
)
def test_every_case_has_the_answer_of_the_rule(
    read: Callable[[Path], Iterator[Case]], cases: int, valid: int, shared_dir: Path
) -> None:
    every = list(read(shared_dir / "vectors" / "ed25519"))
    right = {case: rule_says(case) for case in every}
    assert [case for case in every if library_says(case) is not right[case]] == []
    assert (len(every), sum(right[case] for case in every)) == (cases, valid)


@pytest.mark.parametrize("read", [pytest.param(sign_input, id="sign.input"), pytest.param(rfc8032, id="RFC 8032")])
def test_a_seed_gives_the_key_and_the_signatures_of_the_vectors(
    read: Callable[[Path], Iterator[Case]], shared_dir: Path
) -> None:
    for case in read(shared_dir / "vectors" / "ed25519"):
        assert case.seed is not None
        key = SigningKey.from_seed(case.seed)
        assert (key.public.raw, key.sign(case.message)) == (case.key, case.signature)


# --- cases made for the rule ---

# A point of order eight; its multiples are all the points of small order.
_torsion = curve.decode(bytes.fromhex("c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a"))
assert _torsion is not None
TORSION: Final = _torsion

scalars = st.one_of(st.just(0), st.integers(1, curve.L - 1))
eighths = st.one_of(st.just(0), st.integers(1, 7))


def test_the_points_of_small_order_are_eight() -> None:
    assert len({curve.encode(curve.multiply(k, TORSION)) for k in range(8)}) == 8
    assert curve.same(curve.multiply(8, TORSION), curve.IDENTITY)
    assert curve.same(curve.multiply(curve.L, curve.BASE), curve.IDENTITY)


def test_no_point_of_prime_order_has_a_second_spelling() -> None:
    # Only a y below 19 leaves room for p more in 255 bits.
    # So "canonical" refuses nothing that "of prime order" lets in.
    for y in range(19):
        for sign in (0, 1 << 255):
            point = curve.decode((y + curve.P | sign).to_bytes(32, "little"))
            if point is not None and not curve.same(point, curve.IDENTITY):
                assert not curve.same(curve.multiply(curve.L, point), curve.IDENTITY)


def test_a_point_on_the_y_axis_has_no_sign() -> None:
    for y in (1, curve.P - 1):
        assert not curve.is_key((y | 1 << 255).to_bytes(32, "little"))


def made(secret: int, nonce: int, in_key: int, in_nonce: int, more: int, message: bytes) -> Case:
    """Sign as the owner of a key could, with torsion in the key, torsion in R, and S beyond L."""
    key = curve.encode(curve.add(curve.multiply(secret, curve.BASE), curve.multiply(in_key, TORSION)))
    first = curve.encode(curve.add(curve.multiply(nonce, curve.BASE), curve.multiply(in_nonce, TORSION)))
    second = (nonce + curve.challenge(first, key, message) * secret) % curve.L + more * curve.L
    return Case(key, message, first + second.to_bytes(32, "little"))


@given(scalars, scalars, eighths, eighths, st.sampled_from((0, 0, 1, 8)), st.binary(max_size=8))
@example(1, 1, 0, 0, 0, b"plain")
@example(1, 1, 0, 0, 1, b"an S that is not reduced")
@example(1, 0, 0, 0, 0, b"an identity R")
@example(1, 1, 0, 1, 0, b"torsion in R")
@example(1, 1, 1, 0, 0, b"torsion in the key")
@example(0, 1, 0, 0, 0, b"an identity key")
@example(0, 0, 4, 4, 0, b"small orders")
def test_only_a_signature_without_tricks_is_valid(
    secret: int, nonce: int, in_key: int, in_nonce: int, more: int, message: bytes
) -> None:
    case = made(secret, nonce, in_key, in_nonce, more, message)
    plain = secret > 0 and nonce > 0 and not in_key and not in_nonce and not more
    assert rule_says(case) is plain
    assert library_says(case) is plain


@given(st.binary(min_size=32, max_size=32), st.binary(max_size=70), st.integers(0, 511))
def test_no_bit_of_key_message_or_signature_can_change(seed: bytes, message: bytes, bit: int) -> None:
    key = SigningKey.from_seed(seed)
    case = Case(key.public.raw, message, key.sign(message))
    assert library_says(case)
    assert rule_says(case)
    for name in ("key", "message", "signature"):
        data = bytearray(getattr(case, name))
        if data:
            data[bit // 8 % len(data)] ^= 1 << bit % 8
            changed = case._replace(**{name: bytes(data)})
            assert not library_says(changed)
            assert not rule_says(changed)


@given(st.binary(min_size=32, max_size=32))
def test_any_32_bytes_are_a_key_or_not_as_the_arithmetic_says(data: bytes) -> None:
    try:
        PublicKey.parse(data.hex())
    except KeyInvalid:
        assert not curve.is_key(data)
    else:
        assert curve.is_key(data)


def test_the_arithmetic_signs_as_the_library_does() -> None:
    seed = bytes(range(32))
    expanded = sha512(seed).digest()
    secret = int.from_bytes(expanded[:32], "little") & (1 << 254) - 8 | 1 << 254
    nonce = int.from_bytes(sha512(expanded[32:] + b"remem").digest(), "little") % curve.L
    case = made(secret % curve.L, nonce, 0, 0, 0, b"remem")
    key = SigningKey.from_seed(seed)
    assert (case.key, case.signature) == (key.public.raw, key.sign(b"remem"))
