"""Edwards-curve arithmetic in plain Python, so that no test of a signature asks a library for the answer.

Ed25519's curve is -x² + y² = 1 + d·x²·y² over the integers modulo `P`. `BASE` generates the subgroup of
prime order `L`, and the whole group is eight times as large. Points are in extended coordinates (RFC 8032,
section 5.1.4). All is as slow and as plain as it looks, and none of it is fit for a secret.
"""

from __future__ import annotations

from functools import cache
from hashlib import sha512
from typing import Final, NamedTuple

P: Final = 2**255 - 19
L: Final = 2**252 + 27742317777372353535851937790883648493
D: Final = -121665 * pow(121666, -1, P) % P
_SQRT_MINUS_ONE: Final = pow(2, (P - 1) // 4, P)


class Point(NamedTuple):
    """A point (X/Z, Y/Z), and T = X·Y/Z."""

    x: int
    y: int
    z: int
    t: int


IDENTITY: Final = Point(0, 1, 1, 0)


def affine(x: int, y: int) -> Point:
    return Point(x, y, 1, x * y % P)


def add(one: Point, two: Point) -> Point:
    a = (one.y - one.x) * (two.y - two.x) % P
    b = (one.y + one.x) * (two.y + two.x) % P
    c = 2 * D * one.t * two.t % P
    d = 2 * one.z * two.z % P
    e, f, g, h = b - a, d - c, d + c, b + a
    return Point(e * f % P, g * h % P, f * g % P, e * h % P)


def negative(point: Point) -> Point:
    return Point(-point.x % P, point.y, point.z, -point.t % P)


def multiply(scalar: int, point: Point) -> Point:
    result = IDENTITY
    for bit in f"{scalar:b}":
        result = add(result, result)
        if bit == "1":
            result = add(result, point)
    return result


def same(one: Point, two: Point) -> bool:
    return (one.x * two.z - two.x * one.z) % P == 0 and (one.y * two.z - two.y * one.z) % P == 0


def encode(point: Point) -> bytes:
    inverse = pow(point.z, -1, P)
    x, y = point.x * inverse % P, point.y * inverse % P
    return (y | (x & 1) << 255).to_bytes(32, "little")


def decode(data: bytes) -> Point | None:
    """Return the point that 32 bytes spell, however they spell it; None where there is no such point."""
    number = int.from_bytes(data, "little")
    y, sign = number % 2**255 % P, number >> 255
    x = _root((y * y - 1) * pow(D * y * y + 1, -1, P) % P)
    if x is None:
        return None
    return affine(x if x & 1 == sign else -x % P, y)


def _root(square: int) -> int | None:
    for root in (candidate := pow(square, (P + 3) // 8, P), candidate * _SQRT_MINUS_ONE % P):
        if root * root % P == square:
            return root
    return None


_base = decode((4 * pow(5, -1, P) % P).to_bytes(32, "little"))
assert _base is not None
BASE: Final = _base


# --- the rule (PROTOCOL.md, sections 3 and 4) ---


@cache
def is_key(data: bytes) -> bool:
    """Tell whether bytes are the one spelling of a point of prime order."""
    point = decode(data)
    if point is None or encode(point) != data:
        return False
    return not same(point, IDENTITY) and same(multiply(L, point), IDENTITY)


def challenge(first: bytes, key: bytes, message: bytes) -> int:
    """Return what a signature by this key over this message multiplies the key with; `first` is its R."""
    return int.from_bytes(sha512(first + key + message).digest(), "little") % L


def expected_first(key: Point, second: int, hashed: int) -> Point:
    """Return the R that goes with an S: S·B less the challenge times the key."""
    return add(multiply(second, BASE), negative(multiply(hashed, key)))


def is_signature(key: bytes, message: bytes, signature: bytes) -> bool:
    """Tell whether a signature is valid, and its key too, under the one rule of the protocol."""
    point = decode(key)
    if point is None or not is_key(key) or len(signature) != 64:
        return False
    first, second = signature[:32], int.from_bytes(signature[32:], "little")
    if second >= L or first == encode(IDENTITY):
        return False
    return encode(expected_first(point, second, challenge(first, key, message))) == first
