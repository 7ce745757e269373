"""Frames of reconciliation that mean harm: much work for few bytes, and honest ones with bytes of another kind.

Whoever makes them knows the set that is asked, since what nodes hold is public.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from random import Random
from typing import Final

from remem_gossip.reconcile import Storage
from remem_gossip.reconcile.encoding import END, VERSION, Bound, Writer, bound_between, fingerprint_of, write_number

Say = Callable[[Writer, Bound, int, int], None]

_FIRST: Final = bytes((VERSION,))
_NOTHING: Final = fingerprint_of(0, 0)
_SPREADS: Final = (470, 700, 2_000, 8_000, 40_000)


def hostile_frames(storage: Storage, most: int) -> Iterator[tuple[str, bytes]]:
    """Make frames of at most so many bytes against a storage, each with a name that says what is hostile about it."""

    def right(out: Writer, bound: Bound, begin: int, end: int) -> None:
        out.fingerprint(bound, fingerprint_of(storage.sum(begin, end), end - begin))

    def mixed(out: Writer, bound: Bound, begin: int, end: int) -> None:
        (wrong if end % 2 else right)(out, bound, begin, end)

    count = len(storage)
    for name, say in (("right", right), ("wrong", wrong), ("mixed", mixed), ("skipped", skipped), ("listed", listed)):
        for parts in _SPREADS:
            spread = (count * number // parts for number in range(1, parts))
            yield f"{parts} ranges all over the set, {name}", _ranges(storage, spread, say, most)
        yield f"a range for each item, {name}", _ranges(storage, range(1, count), say, most)
        yield f"a range for every 32 items, {name}", _ranges(storage, range(32, count, 32), say, most)
        yield f"ranges that end amid blocks, {name}", _ranges(storage, range(256, count, 512), say, most)
    yield from _lists(storage, most)
    for name, one in _REPEATED.items():
        yield name, _FIRST + one * ((most - 1) // len(one))
    yield "a number that does not end", _FIRST + b"\xff" * (most - 1)
    yield "a list of 2^64 ids", _FIRST + b"\0\0\2" + write_number(2**64 - 1) + bytes(most - 14)


def wrong(out: Writer, bound: Bound, begin: int, end: int) -> None:
    """Say a fingerprint that no range has."""
    out.fingerprint(bound, bytes(16))


def skipped(out: Writer, bound: Bound, begin: int, end: int) -> None:
    """Say nothing of a range."""
    out.skip(bound)


def listed(out: Writer, bound: Bound, begin: int, end: int) -> None:
    """Say that a range is empty."""
    out.ids(bound, [])


def mutated(random: Random, frame: bytes, most: int) -> bytes:
    """Make another frame of an honest one: bytes changed, put in, taken out, moved or repeated."""
    data = bytearray(frame)
    for _ in range(random.choice((1, 1, 2, 3, 8))):
        at = random.randrange(len(data) + 1)
        until = min(len(data), at + random.choice((1, 1, 2, 19, 32, 400)))
        match random.randrange(7):
            case 0:
                data[at:until] = random.randbytes(until - at)
            case 1:
                data[at:at] = random.choice((b"\0", b"\xff", b"\x80", b"\x81\0", b"\0\0\2\0", random.randbytes(16)))
            case 2:
                del data[at:until]
            case 3:
                data[at:at] = data[at:until] * random.choice((1, 2, 50))
            case 4 if until > at:
                data[at] ^= 1 << random.randrange(8)
            case 5 if until > at:
                data[at] = random.choice((0, 1, 2, 3, 32, 33, 127, 128, 255))
            case 6:
                del data[at:]
    return bytes(data[:most])


def _ranges(storage: Storage, ends: Iterable[int], say: Say, most: int) -> bytes:
    out, begin = Writer(), 0
    for end in ends:
        written = len(out)
        say(out, bound_between(storage.item(end - 1), storage.item(end)), begin, end)
        if len(out) > most:
            out.cut(written)
            break
        begin = end
    return out.message


def _lists(storage: Storage, most: int) -> Iterator[tuple[str, bytes]]:
    fitting = (most - 10) // 32
    for name, ids in (
        ("one id, again and again", [bytes(32)] * fitting),
        ("ids of the set, and no others", storage.ids(0, min(fitting, len(storage)))),
        ("ids that nobody has", [number.to_bytes(32, "big") for number in range(2**200, 2**200 + fitting)]),
        ("an empty list for everything", []),
    ):
        out = Writer()
        out.ids(END, ids)
        yield name, out.message


_REPEATED: Final = {
    f"{place}, {name}, again and again": bound + said
    for place, bound in (("nothing at the beginning", b"\1\0"), ("nothing at infinity", b"\0\0"), ("a second", b"\2\0"))
    for name, said in (
        ("skipped", b"\0"),
        ("right", b"\1" + _NOTHING),
        ("wrong", b"\1" + bytes(16)),
        ("listed", b"\2\0"),
        ("listed with an id", b"\2\1" + bytes(32)),
    )
}
