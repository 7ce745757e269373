"""The vectors of states (PROTOCOL.md, section 9): what takes a lesson back."""

from __future__ import annotations

from .vectors_base import (
    ADA,
    BEN,
    CLEO,
    DAN,
    EVE,
    FAY,
    GIL,
    HAL,
    IDA,
    JON,
    Fields,
    Vectors,
)
from .vectors_statements import (
    OPEN,
    admits,
    by,
    counted,
    follows,
    published,
    said_confirms,
    said_deny,
    said_lesson,
    said_revoke,
    said_revokes,
    state_vector,
    trusts,
)


def revoked_vectors() -> Vectors:
    return {**_withdrawals(), **_revokers(), **_quorums(), **_denials()}


def _withdrawals() -> Vectors:
    three = said_confirms(BEN, CLEO, DAN)
    return {
        "withdrawn-by-its-only-publisher": state_vector(
            "the revocation took the place of the lesson", [said_revoke(ADA)], {}, "revoked", "withdrawn", by(ADA)
        ),
        "withdrawn-beside-its-lesson": state_vector(
            "the lesson of the same file does not stand",
            [said_lesson(ADA), said_revoke(ADA)],
            {},
            "revoked",
            "withdrawn",
            by(ADA),
        ),
        "withdrawn-though-common": state_vector(
            "confirmations do not keep what nobody publishes",
            [*three, said_revoke(ADA)],
            OPEN,
            "revoked",
            "withdrawn",
            counted(3),
            by(ADA),
        ),
        "withdrawn-where-another-stands": state_vector(
            "a copy under another key stands on its own",
            [said_revoke(ADA), said_lesson(BEN)],
            {},
            "candidate",
            "unconfirmed",
            published(BEN),
        ),
        "revoked-by-a-stranger-where-one-stands": state_vector(
            "otherwise anyone could kill a fresh lesson",
            [said_lesson(ADA), said_revoke(EVE)],
            OPEN,
            "candidate",
            "unconfirmed",
            published(ADA),
        ),
        "revoked-by-a-stranger-where-none-stands": state_vector(
            "any key's revocation will do",
            [*three, said_revoke(EVE)],
            {},
            "revoked",
            "withdrawn",
            {"unadmitted": 3},
            by(EVE),
        ),
        "revoked-by-another-key-of-its-publisher": state_vector(
            "a publication is withdrawn by its own key",
            [said_lesson(ADA), said_revoke(BEN)],
            admits((ADA, "one", "a"), (BEN, "one", "a")),
            "candidate",
            "unconfirmed",
            published(ADA),
        ),
        "revoked-without-a-time": state_vector(
            "revocations act whatever their date", [said_revoke(ADA, None)], {}, "revoked", "withdrawn", by(ADA)
        ),
        "withdrawn-comes-before-a-revoker": state_vector(
            "the first rule that holds gives the cause, and all who revoke are named",
            said_revokes(ADA, HAL),
            trusts(HAL),
            "revoked",
            "withdrawn",
            by(ADA, HAL),
        ),
    }


def _revokers() -> Vectors:
    three = said_confirms(BEN, CLEO, DAN)
    return {
        "revoked-by-a-trusted-revoker": state_vector(
            "though it stands and is common",
            [said_lesson(ADA), *three, said_revoke(HAL)],
            OPEN | trusts(HAL),
            "revoked",
            "revoker",
            published(ADA),
            counted(3),
            by(HAL),
        ),
        "revoked-long-before-it-was-published": state_vector(
            "revocations act whatever their date",
            [said_lesson(ADA), said_revoke(HAL, "2001-01-01T00:00:00Z")],
            trusts(HAL),
            "revoked",
            "revoker",
            published(ADA),
            by(HAL),
        ),
        "a-revoker-comes-before-a-quorum": state_vector(
            "only the trusted revokers are named",
            [said_lesson(ADA), *three, *said_revokes(BEN, CLEO, DAN, HAL)],
            OPEN | trusts(HAL),
            "revoked",
            "revoker",
            published(ADA),
            counted(3),
            by(HAL),
        ),
        "a-revoker-who-publishes-stands-apart": state_vector(
            "a trusted revoker's own withdrawal revokes every copy",
            [said_lesson(ADA), said_lesson(HAL), said_revoke(HAL)],
            trusts(HAL),
            "revoked",
            "revoker",
            published(ADA),
            by(HAL),
        ),
    }


def _quorums() -> Vectors:
    keys = (BEN, CLEO, DAN, EVE, FAY, GIL, IDA)

    def turned(confirmers: int, revoking: int) -> list[Fields]:
        return [said_lesson(ADA), *said_confirms(*keys[:confirmers]), *said_revokes(*keys[:revoking])]

    def holds(comment: str, confirmers: int, revoking: int) -> Fields:
        reading = (published(ADA), counted(confirmers), by(*keys[:revoking]))
        return state_vector(comment, turned(confirmers, revoking), OPEN, "revoked", "quorum", *reading)

    def fails(comment: str, confirmers: int, revoking: int) -> Fields:
        reading = (published(ADA), counted(confirmers))
        return state_vector(comment, turned(confirmers, revoking), OPEN, "common", "confirmed", *reading)

    one = admits(*((key, "one", key.origin) for key in (BEN, CLEO, DAN)), (JON, "one", BEN.origin))
    return {
        "quorum-of-three-of-three": holds("all of them", 3, 3),
        "quorum-of-three-of-four": holds("more than two thirds", 4, 3),
        "quorum-of-five-of-seven": holds("more than two thirds", 7, 5),
        "no-quorum-of-two-of-three": fails("two thirds are not more than two thirds", 3, 2),
        "no-quorum-of-four-of-six": fails("two thirds are not more than two thirds", 6, 4),
        "no-quorum-below-n": state_vector(
            "two of two, and N is three", turned(2, 2), OPEN, "candidate", "unconfirmed", published(ADA), counted(2)
        ),
        "quorum-by-another-key-of-a-confirmer": state_vector(
            "who confirms and revokes is a principal, not a key",
            [said_lesson(ADA), *said_confirms(BEN, CLEO, DAN), *said_revokes(JON, CLEO, DAN)],
            one,
            "revoked",
            "quorum",
            published(ADA),
            counted(3),
            by(JON, CLEO, DAN),
        ),
        "no-quorum-of-two-keys-of-one-principal": state_vector(
            "two keys of one principal turn once",
            [said_lesson(ADA), *said_confirms(BEN, CLEO, DAN), *said_revokes(BEN, JON, CLEO)],
            one,
            "common",
            "confirmed",
            published(ADA),
            counted(3),
        ),
        "quorum-names-who-counts": state_vector(
            "a stranger who revokes it too is not named",
            [said_lesson(ADA), *said_confirms(BEN, CLEO, DAN), *said_revokes(BEN, CLEO, DAN, EVE)],
            follows(BEN, CLEO, DAN),
            "revoked",
            "quorum",
            published(ADA),
            counted(3),
            by(BEN, CLEO, DAN),
        ),
        "no-quorum-of-strangers": state_vector(
            "who does not count does not turn",
            [said_lesson(ADA), *said_confirms(BEN, CLEO, DAN), *said_revokes(EVE, FAY, GIL)],
            follows(BEN, CLEO, DAN),
            "common",
            "confirmed",
            published(ADA),
            counted(3),
        ),
    }


def _denials() -> Vectors:
    three = said_confirms(BEN, CLEO, DAN)
    stands = [said_lesson(ADA), *three]
    same = admits((ADA, "one", "a"), (BEN, "one", "a"))
    chain = admits((BEN, "one", "x"), (CLEO, "one", "x"), (CLEO, "two", "y"), (DAN, "two", "y"))
    return {
        "a-denied-publisher": state_vector(
            "nothing of that key is heard",
            [*stands, said_deny(HAL, ADA)],
            OPEN | trusts(HAL),
            "common",
            "confirmed",
            counted(3),
        ),
        "a-denied-confirmer": state_vector(
            "nothing of that key is heard",
            [*stands, said_deny(HAL, BEN)],
            OPEN | trusts(HAL),
            "candidate",
            "unconfirmed",
            published(ADA),
            counted(2),
        ),
        "a-revocation-by-a-denied-key": state_vector(
            "nor its revocations", [said_revoke(EVE), said_deny(HAL, EVE)], trusts(HAL), "candidate", "unconfirmed"
        ),
        "a-denial-by-a-stranger": state_vector(
            "denials bind those who trust the revoker",
            [*stands, said_deny(EVE, BEN)],
            OPEN,
            "common",
            "confirmed",
            published(ADA),
            counted(3),
        ),
        "revokers-who-deny-each-other": state_vector(
            "all denials apply in one step, so both are set aside, and with them their revocations",
            [said_lesson(ADA), *said_revokes(HAL, IDA), said_deny(HAL, IDA), said_deny(IDA, HAL)],
            trusts(HAL, IDA),
            "candidate",
            "unconfirmed",
            published(ADA),
        ),
        "a-denied-revoker-still-denies": state_vector(
            "its file is set aside as evidence, its denials have applied in the same step",
            [*stands, said_deny(HAL, IDA), said_deny(IDA, BEN)],
            OPEN | trusts(HAL, IDA),
            "candidate",
            "unconfirmed",
            published(ADA),
            counted(2),
        ),
        "a-denied-key-still-joins-principals": state_vector(
            "its admissions are no records",
            [said_lesson(ADA), *said_confirms(BEN, CLEO, DAN), said_deny(HAL, CLEO)],
            chain | trusts(HAL),
            "candidate",
            "unconfirmed",
            published(ADA),
            counted(1),
        ),
        "a-denied-publication-bars-nobody": state_vector(
            "what is not heard cannot bar its principal's other key",
            [said_lesson(ADA), *said_confirms(BEN), said_deny(HAL, ADA)],
            same | trusts(HAL),
            "candidate",
            "unconfirmed",
            counted(1),
        ),
    }
