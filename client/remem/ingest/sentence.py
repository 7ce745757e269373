"""From an event to what a lesson may say: one or two sentences, an observation, the same for the same event.

- `error` and `surprise` become lessons of their kind, `correction` too; `environment` becomes an error where what
  happened shows a failure, and else stays local; `note` stays local. A call that the person stopped is no error.
- A sentence is a frame of ours around what `remem.ingest.scrub` lets through. A sentence that would say nothing,
  or that would be an instruction or no text of the protocol, is not made: the event then founds no lesson.
- The person's words are reported, not repeated: what they asked for, asked against, asked about or said.
- `gist` is what the event is about. It stays in the memory, where likeness is measured by it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from typing import Final, NamedTuple

from remem.ingest import names
from remem.ingest.events import Event
from remem.ingest.failure import Failure, is_stopped, names_fault, read_failures, shows_failure
from remem.ingest.scrub import MAX_CHARACTERS, Scrubbed, clauses, private_words, scrub
from remem.protocol.guard import instruction
from remem.protocol.text import text_fault

MAX_SENTENCE: Final = 300
_MAX_DETAIL: Final = 170
_MAX_OFFER: Final = 100
_MAX_GIST: Final = 1_000

_OFFER: Final = re.compile(
    r"\b(?:let me|i'll|i will|i'm going to|i need to|i should|we could|we can|i'd suggest|want me to|should i|shall i"
    r"|would you like me to)\s+(?:(?:now|first|also|just|then|quickly)\s+)?(?=[a-z])",
    re.IGNORECASE,
)
_OPENERS: Final = re.compile(
    r"(?:(?:no|nope|yes|yeah|ok|okay|oh|hey|hmm|wait|really|also|actually|please|and|but|so"
    r"|stop for a (?:second|moment|minute))\b[,.!?:;\s]*)+",
    re.IGNORECASE,
)
_AGAINST: Final = re.compile(r"(?:don't|do not|never|let's not|let us not)\s+(?=\w)", re.IGNORECASE)
_STOP: Final = re.compile(r"stop\s+(?=\w+ing\b)", re.IGNORECASE)


class Telling(NamedTuple):
    """What an event teaches: the kind of lesson, its gist for this memory, a sentence for anyone."""

    kind: str
    gist: str
    sentence: str | None


def read_event(event: Event, private: Iterable[str] = ()) -> Telling | None:
    """Read an event, or return None where it stays local.

    Args:
        event: the event.
        private: names of this machine and its people, which no sentence may hold.
    """
    if event.kind == "note":
        return None
    texts = [
        text for text in (event.title, event.happened, event.said, event.agent_did, event.expected, event.text) if text
    ]
    hidden = private_words(event.cwd or "", texts, private)
    if event.kind == "correction":
        return _correction(event, hidden)
    if event.kind == "surprise":
        return _surprise(event, hidden)
    report = event.happened or event.text or ""
    if is_stopped(report) or (event.kind == "environment" and not shows_failure(report)):
        return None
    return _error(event, report, hidden)


def _error(event: Event, report: str, hidden: AbstractSet[str]) -> Telling:
    failures = read_failures(report)
    tool = names.TOOLS.get((event.title or "").partition(":")[0].strip().lower())
    head = f"The {tool} tool failed" if tool else "A call failed"
    for failure in failures:
        detail = _detail(failure.message, hidden)
        if not _says_something(detail, failure):
            continue
        status = f" with exit status {failure.status}" if failure.status else ""
        sentence = _checked(f"{head}{status}{_speaker(failure)}: {detail.text}.")
        if sentence is not None:
            return Telling("error", _gist(failure, detail.text), sentence)
    return Telling("error", _gist(failures[0], failures[0].message), None)


def _gist(failure: Failure, message: str) -> str:
    return " ".join(word for word in (failure.program, failure.rule, message) if word)[:_MAX_GIST] if message else ""


def _speaker(failure: Failure) -> str:
    where = f" in a {failure.language} file" if failure.language else ""
    rule = f" ({failure.rule})" if failure.rule else ""
    return f", and {failure.program} reported{where}{rule}" if failure.program else f"{where}{rule}"


def _says_something(detail: Scrubbed, failure: Failure) -> bool:
    """Tell whether what is left of a message would help anyone: it names a fault, and more of it shows than hides."""
    names_it = failure.is_marked or failure.rule or names_fault(detail.text)
    if detail.content < 1 or not (names_it or detail.content >= 4):
        return False
    by_signal = bool(failure.status and failure.status >= 124)
    known = detail.content + bool(failure.program or failure.language) + bool(failure.rule) + by_signal
    return known >= max(2, detail.hidden) and detail.content + detail.hidden + by_signal >= 2


def _surprise(event: Event, hidden: AbstractSet[str]) -> Telling:
    happened = event.happened or ""
    gist = f"{event.expected or ''} {happened}".strip()[:_MAX_GIST]
    met = _detail(happened, hidden, prose=True)
    expected = _detail(event.expected or "", hidden, prose=True)
    if met.content < 2 or met.content < met.hidden:
        return Telling("surprise", gist, None)
    if expected.content:
        return Telling("surprise", gist, _checked(f"The agent expected: {expected.text}; it met: {met.text}."))
    return Telling("surprise", gist, _checked(f"The agent did not expect this: {met.text}."))


def _correction(event: Event, hidden: AbstractSet[str]) -> Telling:
    said = event.said or ""
    gist = said[:_MAX_GIST]
    offer = _offer(event.agent_did or "", hidden)
    report = _report(said, hidden)
    if not (offer or report):
        return Telling("correction", gist, None)
    after = f" after it offered to {offer}" if offer else ""
    sentence = "; ".join(part for part in (f"The person corrected the agent{after}", report) if part)
    return Telling("correction", gist, _checked(f"{sentence}."))


def _report(said: str, hidden: AbstractSet[str]) -> str:
    """Report up to two clauses of what the person said; "" where nothing would be left of it."""
    reported: list[str] = []
    for clause in clauses(said[: 4 * MAX_CHARACTERS])[:6]:
        words, rest = _mood(_OPENERS.sub("", clause, count=1) if _OPENERS.match(clause) else clause)
        part = scrub(rest, hidden, prose=True)
        if part.content >= 1 and part.content >= part.hidden:
            reported.append(f"they {words} {part.text}")
    kept = reported[:1]
    if len(reported) > 1 and len("; ".join(reported[:2])) <= _MAX_DETAIL:
        kept = reported[:2]
    return "; ".join(kept)


def _mood(clause: str) -> tuple[str, str]:
    """Say how a clause of the person is reported, and what of it follows."""
    if found := _AGAINST.match(clause):
        return "asked it not to", clause[found.end() :]
    if found := _STOP.match(clause):
        return "asked it to stop", clause[found.end() :]
    if clause.rstrip().endswith("?"):
        return "asked:", clause
    order = instruction(clause)
    if order is None:
        return "said:", clause
    return ("asked it to" if clause.lower().startswith(order.split()[0]) else "asked for this:"), clause


def _offer(agent_did: str, hidden: AbstractSet[str]) -> str:
    """Return what the agent had last offered to do, "" where it offered nothing that can be told."""
    offers = list(_OFFER.finditer(agent_did[:4_000]))
    if not offers:
        return ""
    offer = scrub(clauses(agent_did[offers[-1].end() :][:MAX_CHARACTERS] + " ")[0], hidden, prose=True)
    telling = offer.content >= 1 and offer.content >= offer.hidden and len(offer.text) <= _MAX_OFFER
    return offer.text if telling else ""


def _detail(text: str, hidden: AbstractSet[str], *, prose: bool = False) -> Scrubbed:
    """Scrub the first clause that describes, and those behind it as long as they are short and say something."""
    kept: list[Scrubbed] = []
    goes_on = False
    for clause in clauses(text[: 4 * MAX_CHARACTERS])[:4]:
        went_on, goes_on = goes_on, clause.endswith(";")
        part = scrub(clause, hidden, prose=prose)
        if not part.text or (instruction(part.text) is not None and (kept or not names_fault(part.text))):
            continue
        if kept and not ((names_fault(part.text) or went_on) and part.content >= part.hidden):
            break
        if sum(len(p.text) for p in kept) + len(part.text) > _MAX_DETAIL:
            break
        kept.append(part)
    text = "; ".join(part.text for part in kept)
    return Scrubbed(text, sum(part.content for part in kept), sum(part.hidden for part in kept))


def _checked(sentence: str) -> str | None:
    if len(sentence) > MAX_SENTENCE or text_fault(sentence) is not None or instruction(sentence) is not None:
        return None
    return sentence
