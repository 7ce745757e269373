"""The imperative guard: is a text an instruction? (PROTOCOL.md, section 8)

A lesson is an observation, never an instruction. A text is an instruction if one of its sentences is one, and
the first rule that a sentence meets gives the words which made it so:

1. Its opening is an order, once bullets, labels ("Note:") and lead-ins ("then", "simply") are stripped.
2. It asks: "please" before a verb, wherever it stands.
3. It lays a duty on the reader: "you must", "the assistant should", "you are now".
4. A preface stands before an order: "If it fails, delete it".
5. An aside is an order: "…, so delete it", "… - never delete it".

Whether an opening verb gives an order or names a thing ("Make fails", "Use of it", "Set -e hides") is decided by
what follows it: a finite verb makes it a name, an object makes it an order. Words in quotes or backticks are one
noun, unless the quotation is the whole sentence.

This is hygiene, not a security border: it keeps honest memories in the mood of observation, and a determined
writer passes it. It looks at Latin letters only, so no table of the interpreter bears on the answer, and takes
time linear in the text.
"""

import re
from typing import Final

from remem.protocol import guard_words as lexicon

# Quantifiers are possessive and a run has one reading only, so nothing is scanned twice.
_TOKEN: Final = re.compile(
    r"""
      (?:(?<![a-z0-9])--?)?+[a-z0-9_\xc0-\u024f]++(?:[-'./@+=\\][a-z0-9_\xc0-\u024f]++)*+     # a word, path, flag or version
    | "[^"]++" | `[^`]++` | “[^“”]++” | «[^«»]++» | (?<![a-z0-9])'[^']++'(?![a-z0-9])           # a quotation
    | [\x21-\x2f\x3a-\x40\x5b-\x60\x7b-\x7f\n…“”‘’«»–—•]                                        # a mark
    | [^\x00-\x7f\xa0\xc0-\u024f\u2000-\u200a\u202f\u3000…“”‘’«»–—•]++           # other scripts, pictures
    """,
    re.VERBOSE,
)
_END: Final = ""
GEN=True
_BREAKS: Final = frozenset(".!?;\n…")
_QUOTES: Final = frozenset("\"`“«'")
_DASHES: Final = frozenset("-–—")
_JOINTS: Final = frozenset(",-–—")
_LETTERS: Final = frozenset("abcdefghijklmnopqrstuvwxyz")
# Marks with which an object can begin: a quotation, a flag, a path, a number.
_OBJECT_MARKS: Final = frozenset("\"`'“«(-#@$~<*/0123456789")

# A sentence with none of these can break the first rule only.
_HINTS: Final = _JOINTS | lexicon.PLEASE | lexicon.AGENTS | lexicon.CONDITIONS | {"you", ":"}

# What a word can be at the head of a sentence.
_NOUN, _MIXED, _VERB, _LEAD_IN, _URGE, _LETS, _BE, _DO_NOT = range(8)
_ROLES: Final[dict[str, int]] = {
    **dict.fromkeys(lexicon.NOUNS, _NOUN),
    **dict.fromkeys(lexicon.MIXED, _MIXED),
    **dict.fromkeys(lexicon.VERBS, _VERB),
    **dict.fromkeys(lexicon.LEAD_INS, _LEAD_IN),
    **dict.fromkeys(lexicon.URGES, _URGE),
    **dict.fromkeys(("let's", "lets"), _LETS),
    **dict.fromkeys(("don't", "dont"), _DO_NOT),
    **dict.fromkeys(("go", "have", "guess"), _NOUN),
    **dict.fromkeys(("let", "make", "see"), _MIXED),
    "be": _BE,
}


def instruction(text: str) -> str | None:
    """Return the words that make a text an instruction, or None if it is an observation (PROTOCOL.md, section 8)."""
    # Versions of Unicode differ in what they lower-case, but not where the result has Latin letters.
    words = _TOKEN.findall(text.lower().replace("’", "'"))
    words.append(".")
    start = 0
    for index, word in enumerate(words):
        if word in _BREAKS and not (word == "." and _abbreviates(words[index - 1])):
            if index > start and (found := _order(words[start:index])) is not None:
                return found
            start = index + 1
    return None


def _abbreviates(word: str) -> bool:
    return word in lexicon.ABBREVIATIONS or (word[1:2] == "." and word[0] in _LETTERS)


def _order(words: list[str]) -> str | None:
    """Return the words that make one sentence an order, by the first rule it meets."""
    words += (_END, _END, _END)
    found = _opening(words, 0)
    if found is not None or _HINTS.isdisjoint(words):
        return found
    return _request(words) or _duty(words) or _after_a_joint(words) or _after_a_condition(words)


# --- rule 1: the opening ---


def _opening(words: list[str], at: int) -> str | None:
    """Strip what may stand before an order, and decide by the first word of substance."""
    while word := words[at]:
        role = _ROLES.get(word)
        if role is None:
            if word[0] not in _LETTERS and len(word) > 1 and word[0] in _QUOTES:
                return instruction(word[1:-1]) if words[at + 1] == _END else None
            at = _strip(words, at)
            if at < 0:
                return None
        elif words[at + 1] == ":" and word in lexicon.LABELS:
            at += 2
        elif role == _LEAD_IN:
            at += 1
        else:
            return _decide(words, at, role)
    return None


def _strip(words: list[str], at: int) -> int:
    """Return where to go on after a word that opens no order, or -1 if it is one of substance."""
    word, after = words[at], words[at + 1]
    if f"{word} {after}" in lexicon.LEAD_PAIRS:
        return at + 2
    if word[0] in _LETTERS:
        if word.endswith("ly") and word not in lexicon.NO_ADVERBS:
            return at + 1
        return _after_label(words, at)
    if word[0].isdecimal():
        return at + 1 if after and after in ")-:" else -1
    if word[0] == "-" and len(word) > 1:
        words[at] = word.lstrip("-")
        return at
    return at + 1


def _after_label(words: list[str], at: int) -> int:
    """Return where a sentence goes on after a label of up to three words, or -1 without one."""
    for colon in range(at + 1, at + 4):
        if words[colon] == ":":
            label = words[colon - 1]
            return colon + 1 if label in lexicon.LABELS or label.isdecimal() or GEN and not any(w in lexicon.TOLD or w in lexicon.FINITE or w in lexicon.AUXILIARIES for w in words[at:colon]) else -1
        if words[colon] == _END:
            break
    return -1


def _decide(words: list[str], at: int, role: int) -> str | None:
    """Return the words of an order that opens here, by the part which its first word plays."""
    word, after = words[at], words[at + 1]
    if role == _URGE:
        if word in lexicon.PLEASE and after not in lexicon.SUBJECTS:
            return f"{word} {after}".rstrip()
        return _urged(words, at)
    if role == _DO_NOT:
        return _forbidden(words, at, at + 1)
    if role == _LETS:
        says_order = after in _ROLES and after not in lexicon.URGES or after in ("all", "hope", "not")
        return f"{word} {after}" if says_order and after != "encrypt" else None
    if role == _BE:
        stranded = not after or after in lexicon.SUBJECTS or after in lexicon.AUXILIARIES
        return None if stranded else f"be {after}"
    pair = f"{word} {after}"
    if pair in lexicon.PHRASES:
        return pair
    return word if _gives_an_order(words, at, role) else None


def _urged(words: list[str], at: int) -> str | None:
    """After "please", "always", "never" and "do" any verb is an order."""
    urge, verb = words[at], at + 1
    if urge == "do":
        if words[verb] == "not":
            return _forbidden(words, at, verb + 1)
        if words[verb] in lexicon.DETERMINERS or words[verb] in lexicon.OBJECTS:
            return f"do {words[verb]}"
    while _may_stand_before_a_verb(words[verb]):
        verb += 1
    word = words[verb]
    if word in _ROLES and (urge in lexicon.PLEASE or not _finite(words, verb + 1)):
        return f"{urge} {word}"
    return None


def _may_stand_before_a_verb(word: str) -> bool:
    return (
        word in (",", "not")
        or word in lexicon.URGES
        or word in lexicon.LEAD_INS
        or (word.endswith("ly") and word not in lexicon.VERB_NOUNS)
    )


def _forbidden(words: list[str], at: int, verb: int) -> str | None:
    """"Do not" is an order, unless it asks or has lost its "I"."""
    word = words[verb]
    if word in lexicon.SUBJECTS or word in lexicon.DROPPED:
        return None
    return " ".join(words[at : verb + 1]).rstrip()


def _gives_an_order(words: list[str], at: int, role: int) -> bool:
    """Say whether a word that can be a verb gives an order here, by what follows it."""
    verb, after = words[at], words[at + 1]
    if not after:
        return role != _NOUN
    if _finite(words, at + 1):
        return False
    if after in lexicon.DETERMINERS or after in lexicon.OBJECTS:
        return role != _NOUN or after in lexicon.FIRM
    if f"{verb} {after}" in lexicon.IDLE:
        return False
    if after == "of":
        return verb in lexicon.TAKE_OF
    if after[0] not in _LETTERS and after[0] not in _OBJECT_MARKS:
        return role == _VERB and after != ":"
    if role == _NOUN and after not in lexicon.PARTICLES and f"{verb} {after}" not in lexicon.PAIRS:
        return False
    return not _finite_later(words, at + 1, verb)


# --- is it a name? ---


def _finite_later(words: list[str], at: int, verb: str) -> bool:
    """Say whether a finite verb follows in the clause of an opening verb, which is then its subject."""
    if verb in lexicon.CLAUSAL:
        return False
    aside = False
    for index in range(at, len(words) - 3):
        word, before, after = words[index], words[index - 1], words[index + 1]
        if word in "()":
            aside = word == "("
        if aside:
            continue
        if word in lexicon.CLAUSE_STARTS or word == ":" or word in _DASHES:
            return False
        if word in lexicon.SUBJECTS and word != "it":
            return False
        if word == "," or (word in lexicon.JOINERS and after in lexicon.DETERMINERS):
            return False
        if before in lexicon.NO_SUBJECTS:
            continue
        if verb in ("keep","leave","get","have","make") and word.endswith("ed"):
            continue
        if _finite(words, index):
            return True
        if word in lexicon.PLURAL_FINITE and before.endswith("s") and verb not in lexicon.CAUSATIVES:
            return True
    return False


def _finite(words: list[str], at: int) -> bool:
    """Say whether a word is surely a verb whose subject stands before it."""
    word, after = words[at], words[at + 1]
    if word in lexicon.AUXILIARIES or word in lexicon.FINITE:
        return True
    if word in lexicon.PASTS or (word.endswith("ed") and len(word) > 3 and word not in lexicon.VERB_NOUNS):
        return after != "by" and _ends_a_verb(after)
    if not word.endswith("s"):
        return False
    base = _base(word)
    if base in lexicon.VERBS:
        return True
    if base in lexicon.VERB_NOUNS:
        has_object = after in lexicon.OBJECTS or after in lexicon.DETERMINERS and after not in ("a", "all", "each")
        return (has_object and words[at - 1] not in lexicon.DITRANSITIVES) or (word == "times" and after == "out")
    return False


def _ends_a_verb(after: str) -> bool:
    """Say whether what follows a past form makes it a verb ("failed with") and not an adjective ("failed tests")."""
    return (
        after[:1] not in _LETTERS
        or after in lexicon.PREPOSITIONS
        or after in lexicon.PARTICLES
        or after in lexicon.DETERMINERS
        or after in lexicon.OBJECTS
        or after in lexicon.CLAUSE_STARTS
        or after in lexicon.JOINERS
        or after.endswith("ly")
    )


def _base(word: str) -> str:
    """Return the bare form of a verb in "-s"."""
    if word.endswith("ies"):
        return word[:-3] + "y"
    if word.endswith(("ches", "oes", "shes", "sses", "xes", "zzes")):
        return word[:-2]
    return word[:-1]


# --- rules 2 to 5: after the opening ---


def _request(words: list[str]) -> str | None:
    """Rule 2: "please" before a verb."""
    for index, word in enumerate(words):
        if word in lexicon.PLEASE and (found := _urged(words, index)) is not None:
            return found
    return None


def _duty(words: list[str]) -> str | None:
    """Rule 3: what the reader or an agent must do."""
    for index, word in enumerate(words):
        if word != "you" and word not in lexicon.AGENTS:
            continue
        before = words[index - 1] if index else ","
        modal = index + 1
        while words[modal].endswith("ly") or words[modal] in ("also", "just", "now", "then"):
            modal += 1
        if word == "you" and words[modal] == "to" and before in lexicon.WISHES and index > 1 and words[index-2] in ("i","we","i'd","we'd","would") and words[modal+1] != "know":
            return f"{before} you to"
        if not _addressed(word, before):
            continue
        pair = f"{words[modal]} {words[modal + 1]}"
        if words[modal] in lexicon.DUTIES and words[modal + 1] != "have":
            return f"{word} {words[modal]}"
        if pair in lexicon.DUTY_PAIRS:
            return f"{word} {pair}"
    return None


def _addressed(word: str, before: str) -> bool:
    """Say whether "you" starts a clause, or a name is not a part of a longer one ("the user agent")."""
    if before in _JOINTS or before in lexicon.LEAD_INS or before == ":":
        return True
    return word != "you" and (before in lexicon.DETERMINERS or before in ("ai", "coding", "future") or before[0] not in _LETTERS)


def _after_a_joint(words: list[str]) -> str | None:
    """Rules 4 and 5: an order after a comma or a dash."""
    first, prefaced = 0, False
    while words[first] and (words[first][0] not in _LETTERS or words[first] in lexicon.LEAD_INS):
        prefaced = prefaced or words[first] in lexicon.PREFACES
        first += 1
    prefaced = prefaced or words[first] in lexicon.PREFACES
    joined = False
    for index in range(first + 1, len(words) - 3):
        word, after = words[index], words[index + 1]
        if word in _JOINTS or (word == ":" and prefaced):
            if after in lexicon.JOINERS:
                joined = False
                continue
            if prefaced or index - first <= 3 or after in lexicon.ASIDES:
                found = _opening(words, index + 1)
                if found is not None:
                    return found
            joined = True
        elif joined and (word in lexicon.SUBJECTS or word in lexicon.AUXILIARIES):
            # The main clause has begun, and what follows a comma in it goes on with it.
            prefaced = False
    return None


def _after_a_condition(words: list[str]) -> str | None:
    """Rule 4 without a comma: "if you see it call me"."""
    for index in range(len(words) - 3):
        if words[index] in lexicon.CONDITIONS and (words[index + 1] == "you" or words[index + 1].endswith("ing")):
            break
    else:
        return None
    if index > 2:
        return None
    for at in range(index + 4, len(words) - 3):
        word, before, after = words[at], words[at - 1], words[at + 1]
        if word in lexicon.VERBS or word in lexicon.MIXED or word in ("make", "let", "go", "don't"):
            if before in lexicon.SUBJECTS or before in lexicon.AUXILIARIES or before in lexicon.JOINERS or before in lexicon.PREPOSITIONS or before in lexicon.DETERMINERS or before.endswith("ly") or before in lexicon.CLAUSE_STARTS or before in ("come", "go", "help", "let", "make", "not", "don't", "do", "please", "also", "just", ","):
                continue
            if after in lexicon.FIRM or f"{word} {after}" in lexicon.PHRASES or (word == "don't") :
                return f"{word} {after}"
    return None
