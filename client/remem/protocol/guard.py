"""The imperative guard: is a text an instruction? (PROTOCOL.md, section 8).

A lesson is an observation, never an instruction. A text is an instruction if one of its sentences is one, and
the first rule that a sentence meets gives the words which made it so:

1. Its opening is an order, once bullets, labels ("Note:") and lead-ins ("then", "simply") are stripped.
2. It asks: "please" before a verb, wherever it stands.
3. It lays a duty on its reader: "you must", "the assistant should", "you are now".
4. An order stands after a preface and a comma ("If it fails, delete it") or in an aside ("…, so delete it").
5. An order stands after a preface without a comma: "Before you push run the tests".

Whether a verb gives an order or is a name ("Make fails", "Use of it", "Set -e hides") is decided by what follows
it, in `remem.protocol.guard_clause`. Words in quotes or backticks are one noun, unless the quotation is the whole
sentence.

This is hygiene, not a security border: it keeps honest memories in the mood of observation, and a determined
writer passes it. It looks at Latin letters only, so no table of the interpreter bears on the answer, and its
time is linear in the length of the text.
"""

import re
from typing import Final

from remem.protocol import guard_words as lexicon
from remem.protocol.guard_clause import JOINTS, LETTERS, PAD, finite, gives_an_order, is_plural

# Quantifiers are possessive and a run has one reading only, so nothing is scanned twice. The space is for speed.
_WORD: Final = r"[a-z0-9_\xc0-\u024f]++(?:[-'./@+=\\][a-z0-9_\xc0-\u024f]++)*+"
_TOKEN: Final = re.compile(
    rf"""[ ]?+(
      {_WORD}                                               # a word, path, number or version
    | (?<![a-z0-9.])(?:--?|\.\.?/|\.){_WORD}                # a flag, a hidden file
    | "[^"]++" | `[^`]++` | “[^“”]++” | «[^«»]++»           # a quotation
    | (?<![a-z0-9])'[^']++'(?![a-z0-9])
    | [\x21-\x2f\x3a-\x40\x5b-\x60\x7b-\x7f\n…“”‘’«»–—•]    # a mark
    | [^\x00-\x7f\xa0\xc0-\u024f\u2000-\u200a\u202f\u3000…“”‘’«»–—•]++    # pictures, other scripts
    )""",
    re.VERBOSE,
)
_BREAKS: Final = frozenset(".!?;\n…")
_QUOTES: Final = frozenset("\"`“«'")
_DIGITS: Final = frozenset("0123456789")

# No order is looked for behind more lead-ins, or after more commas, than these: a hostile text stays cheap.
_LEAD_INS_AT_MOST: Final = 12
_JOINTS_AT_MOST: Final = 16

# What a word can be at the head of a sentence; the first three are those of `guard_clause`.
_NOUN, _MIXED, _VERB, _LEAD_IN, _URGE, _LETS, _BE, _DO_NOT = range(8)
_HEADS: Final = (lexicon.NOUNS, lexicon.MIXED, lexicon.VERBS)
_OTHERS: Final = (lexicon.LEAD_INS, lexicon.URGES, lexicon.LETS, {"be"}, lexicon.DO_NOTS)
_ROLES: Final = {word: role for role, words in enumerate((*_HEADS, *_OTHERS)) for word in words}
_BEFORE_URGED: Final = lexicon.LEAD_INS | lexicon.URGES | {",", "*", "not"}
_READERS: Final = lexicon.AGENTS | lexicon.SHORTENED | {"you", "your"}
# A sentence with none of these can meet the first rule only.
_HINTS: Final = JOINTS | _READERS | lexicon.PLEASE | lexicon.PREFACES | {":"}


def instruction(text: str) -> str | None:
    """Return the words that make a text an instruction, or None for an observation (PROTOCOL.md, section 8)."""
    # Every version of Unicode lower-cases alike what version 14 assigns; a reader skips a text with anything else.
    words = _TOKEN.findall(text.lower().replace("’", "'"))
    words.append("\n")
    start = 0
    for index, word in enumerate(words):
        if word in _BREAKS and not (word == "." and index > start and _is_abbreviation(words[index - 1])):
            if index > start and (found := _order(words[start:index])) is not None:
                return found
            start = index + 1
    return None


def _is_abbreviation(word: str) -> bool:
    return word in lexicon.ABBREVIATIONS or (word[1:2] == "." and word[0] in LETTERS)


def _order(words: list[str]) -> str | None:
    """Return the words that make a sentence an order, by the first rule it meets."""
    words += PAD
    if (found := _opening(words, 0)) is not None:
        return found
    hints = _HINTS.intersection(words)
    if not hints:
        return None
    return (
        (None if hints.isdisjoint(lexicon.PLEASE) else _request(words))
        or (None if hints.isdisjoint(_READERS) else _duty(words))
        or _after_a_preface(words)
    )


# --- rule 1: the opening ---


def _opening(words: list[str], at: int) -> str | None:
    """Strip what may stand before an order, and decide by the first word of substance."""
    lead_ins = 0
    while (word := words[at]) and lead_ins < _LEAD_INS_AT_MOST:
        role = _ROLES.get(word)
        if role is None:
            if word[0] in _QUOTES and len(word) > 1:
                return instruction(word[1:-1]) if _is_a_sentence(words, at) else None
            lead_ins += word[0] in LETTERS
            at = _strip(words, at)
            if at < 0:
                return None
        elif word in lexicon.LABELS and ":" in (words[at + 1], words[at + 2]):
            lead_ins += 1
            at = words.index(":", at) + 1
        elif role == _LEAD_IN:
            lead_ins += 1
            at += 1
        else:
            return _decide(words, at, role)
    return None


def _is_a_sentence(words: list[str], at: int) -> bool:
    """Say whether a quotation is all that is left of a sentence, or ends like one."""
    return words[at][-2] in _BREAKS or all(word[:1] not in LETTERS for word in words[at + 1 : at + 4])


def _strip(words: list[str], at: int) -> int:
    """Return where to go on after words that change nothing, or -1 at a word of substance."""
    word, after = words[at], words[at + 1]
    if word[0] in LETTERS:
        if f"{word} {after}" in lexicon.LEAD_PAIRS:
            return at + 2
        if word.endswith("ly") and word not in lexicon.NO_ADVERBS:
            return at + 1
        return _after_a_label(words, at)
    if word[0] in _DIGITS:
        return at + 1 if after and after in ")-:" else -1
    if word[0] in "-." and len(word) > 1:
        words[at] = word.lstrip("-./")
        return at
    return at + 1


def _after_a_label(words: list[str], at: int) -> int:
    """Return where a sentence goes on after a label of up to three words, or -1 if it has none."""
    for index in range(at, at + 4):
        word = words[index]
        if word == ":":
            return index + 1
        if not word or word in lexicon.TOLD or word in lexicon.AUXILIARIES or word in lexicon.FINITE:
            break
    return -1


def _decide(words: list[str], at: int, role: int) -> str | None:
    """Return the words of an order that opens here, by the part its first word plays."""
    word, after = words[at], words[at + 1]
    if role == _URGE:
        if word in lexicon.PLEASE and after not in lexicon.SUBJECTS:
            return f"{word} {after}".rstrip()
        return _urged(words, at)
    if role == _DO_NOT:
        return _forbidden(words, at, at + 1)
    if role == _LETS:
        orders = after in lexicon.AFTER_LETS or (after in _ROLES and after not in lexicon.URGES)
        return f"{word} {after}" if orders and after != "encrypt" else None
    if role == _BE:
        asks = not after or after in lexicon.SUBJECTS or after in lexicon.AUXILIARIES
        return None if asks else f"be {after}"
    pair = f"{word} {after}"
    if pair in lexicon.PHRASES:
        return pair
    return word if gives_an_order(words, at, role) else None


def _urged(words: list[str], at: int) -> str | None:
    """After "please", "always", "never" and "do" any verb is an order."""
    urge, verb = words[at], at + 1
    if urge == "do":
        if words[verb] == "not":
            return _forbidden(words, at, verb + 1)
        if words[verb] in lexicon.DETERMINERS or words[verb] in lexicon.OBJECTS:
            return f"do {words[verb]}"
    while verb < at + _LEAD_INS_AT_MOST and words[verb] in _BEFORE_URGED:
        verb += 1
    if words[verb].endswith("ly") and words[verb] not in _ROLES:
        verb += 1
    word = words[verb]
    if word in _ROLES and (urge in lexicon.PLEASE or not finite(words, verb + 1)):
        return f"{urge} {word}"
    return None


def _forbidden(words: list[str], at: int, verb: int) -> str | None:
    """Return "do not" and its verb, unless they ask, or have lost an "I"."""
    word = words[verb]
    if word in lexicon.SUBJECTS or word in lexicon.DROPPED:
        return None
    return " ".join(words[at : verb + 1]).rstrip()


# --- rules 2 to 5: after the opening ---


def _request(words: list[str]) -> str | None:
    """Rule 2: "please" before a verb."""
    for index, word in enumerate(words):
        if word in lexicon.PLEASE and (found := _urged(words, index)) is not None:
            return found
    return None


def _duty(words: list[str]) -> str | None:
    """Rule 3: what the reader must do, or is made to be."""
    for index, word in enumerate(words):
        if word not in _READERS:
            continue
        before = words[index - 1] if index else ","
        found = None
        if word == "your":
            found = _task(words, index)
        elif word == "you" and words[index + 1] == "to":
            if f"{words[index - 2]} {before}" in lexicon.WISHES and words[index + 2] != "know":
                found = f"{before} you to"
        elif _is_addressed(word, before):
            found = _must(words, index)
        if found is not None:
            return found
    return None


def _task(words: list[str], at: int) -> str | None:
    """Return "your task is", "your new role will" and their like."""
    for index in (at + 2, at + 3):
        if words[index - 1] in lexicon.TASKS and words[index] in lexicon.TASK_VERBS:
            return " ".join(words[at : index + 1])
    return None


def _must(words: list[str], at: int) -> str | None:
    """Return the reader and the words which lay a duty on it."""
    modal = at + 1
    while words[modal].endswith("ly") or words[modal] in lexicon.BEFORE_MODALS:
        modal += 1
    first, second = words[modal], words[modal + 1]
    if words[at] not in lexicon.SHORTENED:
        if first in lexicon.DUTIES and second != "have":
            return f"{words[at]} {first}"
        if f"{first} {second}" in lexicon.DUTY_PAIRS:
            return f"{words[at]} {first} {second}"
    while words[modal] in lexicon.BEFORE_ROLES:
        modal += 1
    if words[modal] in lexicon.ROLE_VERBS and (modal > at + 1 or words[at] in lexicon.SHORTENED):
        return " ".join(words[at : modal + 1])
    return None


def _is_addressed(word: str, before: str) -> bool:
    """Say whether "you" opens a clause, or an agent's name is not a part of a longer one ("the user agent")."""
    if before in JOINTS or before == ":" or before in lexicon.LEAD_INS:
        return True
    if word not in lexicon.AGENTS:
        return before == "on"
    return before[0] not in LETTERS or before in lexicon.DETERMINERS or before in lexicon.BEFORE_AGENTS


def _after_a_preface(words: list[str]) -> str | None:
    """Find where the sentence begins, and whether with a preface; then try both rules."""
    first = 0
    while words[first] and (words[first][0] not in LETTERS or words[first] in lexicon.LEAD_INS):
        first += 1
    prefaced = not lexicon.PREFACES.isdisjoint(words[: first + 1])
    return _after_a_joint(words, first, prefaced) or (_without_a_joint(words, first) if prefaced else None)


def _after_a_joint(words: list[str], first: int, prefaced: bool) -> str | None:
    """Rule 4: an order after a comma, a dash or (with a preface) a colon."""
    joined, tried, vocative = False, 0, words[first] not in lexicon.SUBJECTS
    for index in range(first + 1, len(words) - len(PAD)):
        word, after = words[index], words[index + 1]
        if word in JOINTS or (word == ":" and prefaced):
            joined = after not in lexicon.JOINERS
            if not joined or after in JOINTS:
                continue
            asks = after in lexicon.ASIDES or f"{after} {words[index + 2]}" in lexicon.PHRASES
            opens = prefaced or asks or (vocative and index - first <= 3)
            if opens and (found := _opening(words, index + 1)) is not None:
                return found
            tried += opens
            if tried == _JOINTS_AT_MOST:
                break
        elif joined and (word in lexicon.SUBJECTS or word in lexicon.AUXILIARIES):
            # The main clause has begun, and what a comma adds to it goes on with it.
            prefaced = False
    return None


def _without_a_joint(words: list[str], first: int) -> str | None:
    """Rule 5: an order right after a preface that speaks to its reader ("if you") or is short ("in the meantime")."""
    addressed = "you" in words[first : first + 2] or words[first + 1].endswith("ing")
    last = len(words) - len(PAD)
    for at in range(first + 2, last if addressed else min(first + 6, last)):
        word, before, after = words[at], words[at - 1], words[at + 1]
        if not addressed and (word in lexicon.SUBJECTS or word in lexicon.AUXILIARIES or is_plural(word)):
            break
        if before in lexicon.NO_CLAUSE_ENDS or before.endswith("ly"):
            continue
        role = _ROLES.get(word)
        verb = role == _VERB or (role == _MIXED and addressed)
        orders = verb and after in lexicon.FIRM and word not in lexicon.SAME_PASTS
        if orders or role == _DO_NOT or f"{word} {after}" in lexicon.PHRASES:
            return f"{word} {after}"
    return None
