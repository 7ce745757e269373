"""The vectors of states by whole files (PROTOCOL.md, sections 7 to 9), which are offered one after the other."""

from __future__ import annotations

from collections.abc import Sequence

from .vectors_base import (
    ADA,
    BEN,
    CLEO,
    DAN,
    HAL,
    HASH,
    LAST_SEAL,
    NOW_SECONDS,
    Fields,
    Vectors,
    confirm,
    deny,
    joined,
    lesson,
    line,
    revoke,
    sealed,
)
from .vectors_statements import OPEN, RECENT, by, counted, published, state_vector, trusts


def held_vectors() -> Vectors:
    return {**_judged(), **_replaced()}


def _held(comment: str, files: Sequence[str], policy: Fields, state: str, cause: str, *reading: Fields) -> Fields:
    vector = state_vector(comment, [], policy, state, cause, *reading)
    del vector["statements"]
    return {**vector, "files": list(files)}


def _judged() -> Vectors:
    confirming = [sealed(key, [confirm(at=RECENT)]) for key in (BEN, CLEO, DAN)]
    publishing = sealed(ADA, [lesson(), {"note": "x"}])
    return {
        "files-that-make-it-common": _held(
            "one publisher and three confirmers",
            [publishing, *confirming],
            OPEN,
            "common",
            "confirmed",
            published(ADA),
            counted(3),
        ),
        "files-in-another-order": _held(
            "the order in which files of several keys came changes nothing",
            [*reversed(confirming), publishing],
            OPEN,
            "common",
            "confirmed",
            published(ADA),
            counted(3),
        ),
        "files-of-draft-0": _held(
            "a confirmation without at does not count",
            [joined([line(ADA, lesson())]), joined([line(BEN, {"confirm": HASH})]), *confirming[1:]],
            OPEN,
            "candidate",
            "unconfirmed",
            published(ADA),
            counted(2),
        ),
        "files-with-a-lesson-that-fails-judgement": _held(
            "it neither stands nor bars its key's confirmation",
            [sealed(ADA, [lesson(id="a\nb"), confirm(at=RECENT)]), *confirming[:2]],
            OPEN,
            "common",
            "confirmed",
            counted(3),
        ),
        "files-with-a-revocation-that-fails-judgement": _held(
            "it is no evidence, so the lesson beside it stands",
            [sealed(ADA, [lesson(), revoke(reason="a\nb")])],
            {},
            "candidate",
            "unconfirmed",
            published(ADA),
        ),
        "files-with-a-denial-that-fails-judgement": _held(
            "it denies nobody",
            [publishing, sealed(HAL, [deny(ADA, reason="a\nb")])],
            trusts(HAL),
            "candidate",
            "unconfirmed",
            published(ADA),
        ),
        "files-with-another-hash": _held(
            "records about other lessons are no evidence",
            [publishing, sealed(BEN, [revoke("0" * 32), lesson("Another lesson.")])],
            OPEN,
            "candidate",
            "unconfirmed",
            published(ADA),
        ),
        "files-of-a-retired-key": _held(
            "under the last seal only revocations are left, and they act",
            [sealed(ADA, [revoke()], number=LAST_SEAL), *confirming],
            OPEN,
            "revoked",
            "withdrawn",
            counted(3),
            by(ADA),
        ),
        "files-with-a-denial": _held(
            "one line sets a whole file aside",
            [publishing, *confirming, sealed(HAL, [deny(ADA), deny(BEN)])],
            OPEN | trusts(HAL),
            "candidate",
            "unconfirmed",
            counted(2),
        ),
    }


def _replaced() -> Vectors:
    """Two files of one key, in both orders: only without a seal does the order matter."""
    newer, older = sealed(ADA, [lesson()]), sealed(ADA, [revoke()], number=NOW_SECONDS - 1)
    unsealed, revoking = joined([line(ADA, lesson())]), joined([line(ADA, revoke())])

    def stands(comment: str, *files: str) -> Fields:
        return _held(comment, files, {}, "candidate", "unconfirmed", published(ADA))

    return {
        "files-of-one-key-the-older-first": stands("the higher seal stands", older, newer),
        "files-of-one-key-the-older-last": stands("whichever came last", newer, older),
        "files-of-one-key-the-seal-last": stands("a sealed file replaces one without", revoking, newer),
        "files-of-one-key-the-seal-first": stands("and never the other way", newer, revoking),
        "files-of-one-key-without-a-seal": stands("the last to come stands", revoking, unsealed),
        "files-of-one-key-without-a-seal-swapped": _held(
            "the last to come stands, so that the order matters here",
            [unsealed, revoking],
            {},
            "revoked",
            "withdrawn",
            by(ADA),
        ),
    }
