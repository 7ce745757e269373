"""The vectors of keys and signatures (PROTOCOL.md, sections 3 and 4), the crooked ones by curve arithmetic."""

from __future__ import annotations

from hashlib import sha256

from . import curve
from .vectors_base import ADA, BEN, Fields, Vectors, accept, lesson, line, raw, refuse, spell, unsigned, whole


def _point(data: bytes) -> curve.Point:
    point = curve.decode(data)
    if point is None:
        raise ValueError(f"expected a point, got {data.hex()}")
    return point


# A point of order 8: what L times any point keeps of it is its part in the small subgroup.
_TORSION = next(
    part
    for number in range(2, 100)
    if (point := curve.decode(number.to_bytes(32, "little"))) is not None
    and not curve.same(curve.multiply(4, part := curve.multiply(curve.L, point)), curve.IDENTITY)
)


def key_vectors() -> Vectors:
    mixed = curve.encode(curve.add(_point(ADA.raw), _TORSION))
    forms = {
        "upper-case": ADA.hex.upper(),
        "63-digits": ADA.hex[:63],
        "65-digits": f"{ADA.hex}0",
        "not-hex": f"{ADA.hex[:63]}g",
        "no-digit": "",
        "digits-of-another-script": f"{ADA.hex[:63]}\uff10",
    }
    points = {
        "the-identity": curve.encode(curve.IDENTITY),
        "the-identity-with-a-sign": (1 | 1 << 255).to_bytes(32, "little"),
        "the-identity-not-canonical": (curve.P + 1).to_bytes(32, "little"),
        "order-2": (curve.P - 1).to_bytes(32, "little"),
        "order-4": bytes(32),
        "order-8": curve.encode(_TORSION),
        "a-key-plus-torsion": mixed,
        "not-on-the-curve": (2).to_bytes(32, "little"),
        "not-canonical": (curve.P + 3).to_bytes(32, "little"),
    }
    return {
        "of-a-seed": accept("the key of the seed 00 01 02 … 1f", {"key": ADA.hex}, origin=ADA.origin),
        "of-another-seed": accept("the key of the seed 01 01 01 … 01", {"key": BEN.hex}, origin=BEN.origin),
        **{name: refuse("not 64 lower-case hex digits", {"key": text}, "key_form") for name, text in forms.items()},
        **{
            name: refuse("not a canonical point of the prime-order subgroup", {"key": data.hex()}, "key_invalid")
            for name, data in points.items()
        },
    }


def _signed(comment: str, fields: Fields) -> Fields:
    return accept(comment, {"line": line(ADA, fields)}, signed_hex=unsigned(ADA, fields).hex())


def signature_vectors() -> Vectors:
    return {**_cuts(), **_places(), **_forms(), **_false(), **_crooked()}


def _cuts() -> Vectors:
    return {
        "a-lesson": _signed("sig and the comma behind it are cut out of the line", lesson()),
        "an-unknown-record": _signed("whatever a record says, the cut is the same", {"note": "x"}),
        "fields-behind-v": _signed("v needs not be the last field", {"note": "x", "w": 1, "é": 2}),
        "fields-between-sig-and-v": _signed("sig is followed by the next field", {"sigh": 1, "tale": 2}),
        "sig-quoted-in-a-text": _signed("inside a string its quotes are escaped", {"note": 'a "sig":"b" c'}),
        "sig-inside-that-is-no-string": _signed("the bytes that count are those of a string", {"note": {"sig": 1}}),
        "a-number-keeps-its-spelling": _signed("the signature is over 1.50", {"note": raw("1.50")}),
    }


def _places() -> Vectors:
    other = "00" * 64
    places: dict[str, tuple[str, Fields]] = {
        "missing": ("a line without a signature", {}),
        "null": ("a signature that is no string", {"sig": raw("null")}),
        "inside-only": ("the signature is the line's own field", {"note": {"sig": other}}),
        "inside-as-well": ("the bytes stand twice", {"note": {"sig": other}, "sig": other}),
        "a-name-that-ends-like-it": ("the bytes stand twice, once in another name", {'a"sig': "b", "sig": other}),
        "in-upper-case": ("SIG is an unknown field", {"SIG": other}),
    }
    return {
        f"place-{name}": refuse(comment, {"line": spell(whole(ADA, fields))}, "signature_place")
        for name, (comment, fields) in places.items()
    }


def _forms() -> Vectors:
    right = ADA.sign(unsigned(ADA, lesson()))
    forms = {
        "upper-case": right.upper(),
        "127-digits": right[:127],
        "130-digits": f"{right}00",
        "not-hex": f"{right[:127]}g",
        "no-digit": "",
    }
    return {
        f"form-{name}": refuse(
            "not 128 lower-case hex digits", {"line": line(ADA, lesson(), sig=text)}, "signature_form"
        )
        for name, text in forms.items()
    }


def _false() -> Vectors:
    good = line(ADA, lesson())
    noted = line(ADA, lesson(note="x"))
    fraction = line(ADA, lesson(strength=raw("1.50")))
    emptied = ADA.sign(spell(whole(ADA, {**lesson(), "sig": ""})).encode())
    lines = {
        "another-text": ("a byte of the text changed", good.replace("lock", "lick")),
        "another-spelling": ("the same value spelled otherwise", fraction.replace("1.50", "1.5")),
        "a-field-added": ("a field added behind the signature", good.replace('"v":1', '"v":1,"w":1')),
        "another-value": ("another number of surprises", good.replace('"seen":2,', '"seen":3,')),
        "a-field-removed": ("a field that nobody needs taken out", noted.replace('"note":"x",', "")),
        "by-another-key": ("signed by another key", line(ADA, lesson(), sig=BEN.sign(unsigned(ADA, lesson())))),
        "over-an-empty-signature": ("signed with sig in place and empty", line(ADA, lesson(), sig=emptied)),
        "of-zeros": ("64 zero bytes", line(ADA, lesson(), sig="00" * 64)),
    }
    return {
        f"false-{name}": refuse(comment, {"line": text}, "signature_invalid") for name, (comment, text) in lines.items()
    }


def _crooked() -> Vectors:
    """Signatures that some verifiers take, and that only the owner of the key can make."""
    message = unsigned(ADA, lesson())
    right = bytes.fromhex(ADA.sign(message))
    unreduced = int.from_bytes(right[32:], "little") + curve.L
    nonce = int.from_bytes(sha256(b"a nonce of the vectors").digest(), "little") % curve.L
    twisted = curve.encode(curve.add(curve.multiply(nonce, curve.BASE), _TORSION))
    identity = curve.encode(curve.IDENTITY)
    crooked = {
        "s-not-reduced": ("S plus L", right[:32], unreduced),
        "torsion-in-r": ("true only if both sides are multiplied by the cofactor", twisted, _second(nonce, twisted)),
        "r-the-identity": ("R is the identity", identity, _second(0, identity)),
    }
    return {
        f"crooked-{name}": refuse(
            comment,
            {"line": line(ADA, lesson(), sig=(first + second.to_bytes(32, "little")).hex())},
            "signature_invalid",
        )
        for name, (comment, first, second) in crooked.items()
    }


def _second(nonce: int, first: bytes) -> int:
    hashed = curve.challenge(first, ADA.raw, unsigned(ADA, lesson()))
    return (nonce + hashed * ADA.scalar) % curve.L
