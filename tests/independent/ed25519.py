"""The one rule of keys and signatures (PROTOCOL.md, sections 3 and 4), from the equations of the curve.

They are spelled out because the document fixes an equation and not a library. Points are X, Y, Z and T, where
x = X/Z, y = Y/Z and x·y = T/Z (RFC 8032, section 5.1.4). None of it is fit for a secret.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache

P = 2**255 - 19
L = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, -1, P) % P

Point = tuple[int, int, int, int]

IDENTITY: Point = (0, 1, 1, 0)
IDENTITY_BYTES = (1).to_bytes(32, "little")


def add(p: Point, q: Point) -> Point:
    """The sum of two points, which may be equal."""
    a, b = (p[1] - p[0]) * (q[1] - q[0]) % P, (p[1] + p[0]) * (q[1] + q[0]) % P
    c, d = 2 * p[3] * q[3] * D % P, 2 * p[2] * q[2] % P
    e, f, g, h = b - a, d - c, d + c, b + a
    return e * f % P, g * h % P, f * g % P, e * h % P


def double(p: Point) -> Point:
    """The sum of a point and itself."""
    a, b, c = p[0] * p[0] % P, p[1] * p[1] % P, 2 * p[2] * p[2] % P
    h, g = a + b, a - b
    e, f = h - (p[0] + p[1]) ** 2 % P, c + g
    return e * f % P, g * h % P, f * g % P, e * h % P


@lru_cache(maxsize=1024)
def sums(p: Point, q: Point) -> tuple[Point, ...]:
    """The sixteen sums of none to three times p and none to three times q."""
    threes = [(IDENTITY, one, double(one), add(one, double(one))) for one in (p, q)]
    return tuple(add(left, right) for right in threes[1] for left in threes[0])


def combine(s: int, p: Point, k: int, q: Point) -> Point:
    """The point s·p + k·q, two bits at a time from the highest."""
    terms = sums(p, q)
    total = IDENTITY
    for shift in reversed(range(0, 256, 2)):
        total = add(double(double(total)), terms[(s >> shift & 3) + 4 * (k >> shift & 3)])
    return total


def encode_point(p: Point) -> bytes:
    """The encoding of a point (RFC 8032, section 5.1.2)."""
    inverse = pow(p[2], -1, P)
    x, y = p[0] * inverse % P, p[1] * inverse % P
    return (y | (x & 1) << 255).to_bytes(32, "little")


def decode_point(encoding: bytes) -> Point | None:
    """The point of a canonical encoding (RFC 8032, section 5.1.3), or nothing."""
    number = int.from_bytes(encoding, "little")
    sign, y = number >> 255, number & (2**255 - 1)
    square = (y * y - 1) * pow(D * y * y + 1, -1, P) % P
    x = pow(square, (P + 3) // 8, P)
    if x * x % P != square:
        x = x * pow(2, (P - 1) // 4, P) % P
    if y >= P or x * x % P != square or (x == 0 and sign):
        return None
    x = P - x if x & 1 != sign else x
    return x, y, 1, x * y % P


@lru_cache(maxsize=1024)
def key_point(key: bytes) -> Point | None:
    """The point of a key that keeps both rules of section 4, or nothing."""
    point = decode_point(key)
    if point is None or key == IDENTITY_BYTES:
        return None
    return point if encode_point(combine(L, point, 0, IDENTITY)) == IDENTITY_BYTES else None


def _base() -> Point:
    point = decode_point(bytes.fromhex("58" + 31 * "66"))
    if point is None:
        raise AssertionError("the base point of RFC 8032 is a point")
    return point


BASE = _base()


def signature_is_valid(key: bytes, signed: bytes, signature: bytes) -> bool:
    """The rule of section 3: S is reduced, R is not the identity, and the equation holds byte for byte."""
    point = key_point(key)
    r, s = signature[:32], int.from_bytes(signature[32:], "little")
    if point is None or s >= L or r == IDENTITY_BYTES:
        return False
    k = int.from_bytes(hashlib.sha512(r + key + signed).digest(), "little") % L
    x, y, z, t = point
    return encode_point(combine(s, BASE, k, (-x, y, z, -t))) == r
