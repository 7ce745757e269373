"""The words that a search goes by, and the places that put lessons in order.

A word is a run of letters and digits of the normal text, cut to 64 characters. A lesson is found by a text if it has
every word of it, wherever and in whatever order. The words are the same for both databases, which only look
them up: neither stems, folds or leaves out anything of its own.

A place is one whole number, lower is earlier, and nothing else orders a list. From its highest bits down it is the
grade (confirmed, candidate, revoked), the confirmations, the day, and the number of the lesson's row, so each differs.
No time passes in it: what a confirmed lesson is worth at this moment, the time of its last confirmation says.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Final

from sqlalchemy import ColumnElement, Integer, literal_column

from remem.protocol import Policy, State, normal_text
from remem.protocol.evidence import Count
from remem.protocol.state import rule

WORDS_MOST: Final = 32
WORD_CHARACTERS: Final = 64

GRADE_CONFIRMED: Final = 0
GRADE_CANDIDATE: Final = 1
GRADE_REVOKED: Final = 2

_WORD: Final = re.compile(rf"([^\W_]{{1,{WORD_CHARACTERS}}})[^\W_]*")
_THRESHOLDS: Final = Policy()
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
ID_BITS: Final = 33
DAY_BITS: Final = 16
_COUNT_BITS: Final = 12
_GRADES: Final = {State.COMMON: GRADE_CONFIRMED, State.CANDIDATE: GRADE_CANDIDATE, State.REVOKED: GRADE_REVOKED}


def words_of(text: str) -> str:
    """Return the words of a text in their order, joined by one space."""
    return " ".join(_WORD.findall(normal_text(text)))


def query_of(text: str) -> tuple[str, ...]:
    """Return the different words of a text, all of which a lesson must have to be found by it.

    Raises:
        ValueError: there are too many of them.
    """
    found = tuple(dict.fromkeys(words_of(text).split()))
    if len(found) > WORDS_MOST:
        raise ValueError(f"expected at most {WORDS_MOST} different words, got {len(found)}")
    return found


def fts_query(words: tuple[str, ...]) -> str:
    """Write a query in the words of SQLite's full-text index."""
    return " ".join(f'"{word}"' for word in words)


def tsquery(words: tuple[str, ...]) -> str:
    """Write a query in the words of PostgreSQL's."""
    return " & ".join(words)


def place_of(count: Count, updated: datetime, number: int) -> int:
    """Say where in a list a lesson stands.

    Args:
        count: what the statements about it come to.
        updated: the time of the publication that is shown.
        number: its row.
    """
    # At the moment of its last confirmation a confirmed lesson is common, and no other rule asks for the time.
    state, _cause = rule(count, _THRESHOLDS, count.last_confirmed or _EPOCH)
    confirmations = min(max(count.confirmations, 0), (1 << _COUNT_BITS) - 1)
    day = turned_day(count.last_confirmed or updated)
    place = _GRADES[state]
    place = place << _COUNT_BITS | (1 << _COUNT_BITS) - 1 - confirmations
    place = place << DAY_BITS | day
    return place << ID_BITS | number


def places_of(grade: int) -> tuple[int, int]:
    """Return the first place of a grade, and the first behind it."""
    bits = _COUNT_BITS + DAY_BITS + ID_BITS
    return grade << bits, (grade + 1) << bits


def turned_day(when: datetime) -> int:
    """Return a day as places have it: the later, the lower."""
    return (1 << DAY_BITS) - 1 - (when.toordinal() - _EPOCH.toordinal())


def turned_day_of(place: ColumnElement[int]) -> ColumnElement[int]:
    """Select the day of a place, as `turned_day` gives it.

    An index of places tells it alone, so that what a list passes over is not read.
    """
    # PostgreSQL shifts by an integer, and would take a parameter for a larger one.
    shifted: ColumnElement[int] = place.bitwise_rshift(literal_column(str(ID_BITS), Integer))
    return shifted.bitwise_and((1 << DAY_BITS) - 1)
