"""The vectors of the number and the time of the next seal (PROTOCOL.md, section 10)."""

from __future__ import annotations

from collections.abc import Sequence

from .vectors_base import NOW, NOW_SECONDS, Fields, Vectors, accept

DAY = 86_400


def seal_vectors() -> Vectors:
    now, latest = NOW_SECONDS, NOW_SECONDS + 2 * DAY
    day_on = "2026-12-02T12:00:00Z"
    return {
        "the-first": _next("the seconds of now", [], now),
        "by-whole-seconds": _next("rounded down", [], now, clock="2026-12-01T12:00:00.999999Z"),
        "above-a-second-ago": _next("now is above it", [now - 1], now),
        "above-this-second": _next("one more", [now], now + 1),
        "above-the-highest": _next("whatever the order", [now - DAY, now + 5, now, 1], now + 6),
        "a-day-ahead": _next("a number may be a day above its time", [now + DAY - 1], now + DAY),
        "a-day-and-a-second-ahead": _next(
            "from there on the time goes ahead", [now + DAY], now + DAY + 1, "2026-12-01T12:00:01Z"
        ),
        "two-days-ahead": _next("and never by more than a day", [latest - 1], latest, day_on),
        "above-two-days-ahead": _next("nobody could accept what is above it", [latest], now),
        "beside-one-above-two-days-ahead": _next("the others count", [latest + 1, now + 5], now + 6),
    }


def _next(comment: str, found: Sequence[int], number: int, at: str = NOW, clock: str = NOW) -> Fields:
    return accept(comment, {"now": clock, "found": list(found)}, seal=number, at=at)
