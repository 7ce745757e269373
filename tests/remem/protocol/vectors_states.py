"""The vectors of states (PROTOCOL.md, section 9): what counts, for how long, and whose sentence is shown.

And those of events, which lead from one state to another.
"""

from __future__ import annotations

from typing import Any

from .vectors_base import ADA, BEN, CLEO, DAN, EVE, NOW, TEXT, Fields, Vectors, accept
from .vectors_statements import (
    A_MICROSECOND_ON,
    AHEAD,
    OPEN,
    OVER_TWO_W_AGO,
    OVER_W_AGO,
    RECENT,
    TWO_W_AGO,
    W_AGO,
    admits,
    counted,
    follows,
    published,
    said_confirm,
    said_confirms,
    said_lesson,
    said_revoke,
    state_vector,
)


def state_vectors() -> Vectors:
    return {
        **_counts(),
        **_ages(),
        **_principals(),
        **_bars(),
        **_publishers(),
    }


def _counts() -> Vectors:
    three = said_confirms(BEN, CLEO, DAN)
    told = [said_lesson(ADA)]
    return {
        "nothing-held": state_vector("no record about it at all", [], {}, "candidate", "unconfirmed"),
        "published-only": state_vector("by one key", told, {}, "candidate", "unconfirmed", published(ADA)),
        "two-confirmations": state_vector(
            "fewer than N", told + three[:2], OPEN, "candidate", "unconfirmed", published(ADA), counted(2)
        ),
        "three-confirmations": state_vector("N", told + three, OPEN, "common", "confirmed", published(ADA), counted(3)),
        "three-followed-keys": state_vector(
            "followed keys count",
            told + three,
            follows(BEN, CLEO, DAN),
            "common",
            "confirmed",
            published(ADA),
            counted(3),
        ),
        "three-keys-that-nobody-admitted": state_vector(
            "shown, not counted", told + three, {}, "candidate", "unconfirmed", published(ADA), {"unadmitted": 3}
        ),
        "another-n": state_vector(
            "the reader's own N",
            told + three[:1],
            OPEN | {"confirmations": 1},
            "common",
            "confirmed",
            published(ADA),
            counted(1),
        ),
        "confirmed-and-nowhere-published": state_vector(
            "the counts decide, and there is no text to show", three, OPEN, "common", "confirmed", counted(3)
        ),
        "a-confirmation-without-a-time": state_vector(
            "it counts neither as a confirmation nor as an unadmitted one",
            [*told, *three[:2], said_confirm(EVE, None)],
            follows(BEN, CLEO),
            "candidate",
            "unconfirmed",
            published(ADA),
            counted(2),
        ),
    }


def _ages() -> Vectors:
    def aged(comment: str, at: str, state: str, cause: str, now: str = NOW, **policy: Any) -> Fields:
        said = [said_lesson(ADA), *said_confirms(BEN, CLEO, DAN, at=at)]
        vector = state_vector(comment, said, OPEN | policy, state, cause, published(ADA), counted(3, at))
        return vector | {"now": now}

    long_ago = said_confirms(BEN, CLEO, at=OVER_TWO_W_AGO)
    return {
        "confirmed-exactly-w-ago": aged("at most W", W_AGO, "common", "confirmed"),
        "confirmed-a-second-more-than-w-ago": aged("longer than W", OVER_W_AGO, "fading", "lapsed"),
        "confirmed-a-microsecond-more-than-w-ago": aged(
            "ages are exact", W_AGO, "fading", "lapsed", now=A_MICROSECOND_ON
        ),
        "confirmed-exactly-2w-ago": aged("at most 2W", TWO_W_AGO, "fading", "lapsed"),
        "confirmed-a-second-more-than-2w-ago": aged("longer than 2W", OVER_TWO_W_AGO, "removed", "expired"),
        "confirmed-a-microsecond-more-than-2w-ago": aged(
            "ages are exact", TWO_W_AGO, "removed", "expired", now=A_MICROSECOND_ON
        ),
        "confirmed-ahead-of-the-clock": aged("a time ahead is no older than now", AHEAD, "common", "confirmed"),
        "another-w": aged("the reader's own W", RECENT, "fading", "lapsed", window_days=10),
        "the-last-confirmation-decides": state_vector(
            "one new confirmation brings a removed lesson back",
            [said_lesson(ADA), *long_ago, said_confirm(DAN)],
            OPEN,
            "common",
            "confirmed",
            published(ADA),
            counted(3),
        ),
    }


def _principals() -> Vectors:
    told = [said_lesson(ADA)]
    three = told + said_confirms(BEN, CLEO, DAN)

    def counts(comment: str, policy: Fields, number: int) -> Fields:
        state, cause = ("common", "confirmed") if number >= 3 else ("candidate", "unconfirmed")
        return state_vector(comment, three, policy, state, cause, published(ADA), counted(number))

    apart = [(BEN, "one", "b"), (CLEO, "one", "c"), (DAN, "one", "d")]
    chain = [(BEN, "one", "x"), (CLEO, "one", "x"), (CLEO, "two", "y"), (DAN, "two", "y")]
    return {
        "admitted-keys-of-three-principals": counts("each counts", admits(*apart), 3),
        "two-keys-of-one-principal": counts("they count once", admits(*apart[:2], (DAN, "one", "b")), 2),
        "principals-joined-through-two-commons": counts("one shared pair joins, and the next", admits(*chain), 1),
        "one-name-at-two-commons": counts(
            "a name means nothing elsewhere", admits((BEN, "one", "x"), (CLEO, "two", "x"), (DAN, "three", "x")), 3
        ),
        "a-followed-key-of-an-admitted-principal": counts(
            "following a key does not make it another", admits(*apart[:2], (DAN, "one", "b")) | follows(DAN), 2
        ),
        "open-reads-every-key-by-itself": counts("whatever a commons says", admits(*chain) | OPEN, 3),
        "the-later-of-one-principal": state_vector(
            "of two confirmations of one principal the later one gives the time",
            [*told, said_confirm(BEN, W_AGO), said_confirm(CLEO, RECENT)],
            admits((BEN, "one", "x"), (CLEO, "one", "x")),
            "candidate",
            "unconfirmed",
            published(ADA),
            counted(1),
        ),
        "the-later-of-one-principal-first": state_vector(
            "whichever is read first",
            [*told, said_confirm(BEN, RECENT), said_confirm(CLEO, W_AGO)],
            admits((BEN, "one", "x"), (CLEO, "one", "x")),
            "candidate",
            "unconfirmed",
            published(ADA),
            counted(1),
        ),
    }


def _bars() -> Vectors:
    """Who published a lesson does not confirm it."""
    both = admits((ADA, "one", "a"), (BEN, "one", "a"), (CLEO, "one", "c"))
    return {
        "a-confirmation-by-its-publisher": state_vector(
            "it does not count, nor as unadmitted",
            [said_lesson(ADA), said_confirm(ADA)],
            {},
            "candidate",
            "unconfirmed",
            published(ADA),
        ),
        "a-confirmation-by-another-key-of-the-publisher": state_vector(
            "one principal",
            [said_lesson(ADA), *said_confirms(BEN, CLEO)],
            both,
            "candidate",
            "unconfirmed",
            published(ADA),
            counted(1),
        ),
        "a-confirmation-by-a-publisher-that-withdrew": state_vector(
            "its key published it, so it is not shown as unadmitted either",
            [said_lesson(ADA), said_revoke(ADA), said_lesson(DAN), said_confirm(ADA)],
            {},
            "candidate",
            "unconfirmed",
            published(DAN),
        ),
        "a-withdrawn-publication-still-bars": state_vector(
            "the lesson line is there, so its principal published it",
            [said_lesson(ADA), said_revoke(ADA), said_lesson(DAN), *said_confirms(ADA, CLEO)],
            OPEN,
            "candidate",
            "unconfirmed",
            published(DAN),
            counted(1),
        ),
    }


def _publishers() -> Vectors:
    low, high = sorted((ADA, BEN), key=lambda key: key.hex)
    loud = TEXT.upper()
    return {
        "two-publishers": state_vector(
            "the second corroborates, and the spelling of the lower key is shown",
            [said_lesson(high), said_lesson(low, loud)],
            OPEN,
            "candidate",
            "unconfirmed",
            published(ADA, BEN, text=loud),
        ),
        "the-lower-key-withdraws": state_vector(
            "the spelling of the lowest key that stands",
            [said_lesson(high), said_lesson(low, loud), said_revoke(low)],
            OPEN,
            "candidate",
            "unconfirmed",
            published(high),
        ),
    }


def event_vectors() -> Vectors:
    leads_to = {
        "candidate": "discounted",
        "common": "confirmed",
        "fading": "lapsed",
        "removed": "expired",
        "revoked": "revoked",
    }

    def event(before: str, after: str) -> str | None:
        if before == after:
            return None
        return "reinstated" if (before, after) == ("revoked", "candidate") else leads_to[after]

    return {
        f"{before}-to-{after}": accept(
            "whatever the cause was and is" if before == after else "named by where it leads",
            {"before": before, "after": after},
            event=event(before, after),
        )
        for before in leads_to
        for after in leads_to
    }
