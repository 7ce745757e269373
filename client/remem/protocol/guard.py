"""The imperative guard: is a text an instruction? (PROTOCOL.md, section 8)

A lesson is an observation, never an instruction. A text is an instruction if one of its sentences is one, and
the first rule which a sentence meets gives the words that made it so:

1. Its opening is an order, once bullets, labels ("Note:") and lead-ins ("then", "simply") are stripped.
2. It asks: "please" before a verb, wherever it stands.
3. It lays a duty on the reader: "you must", "the assistant should", "you are now".
4. A preface stands before an order: "If it fails, delete it".
5. An aside is an order: "…, so delete it", "… - never delete it".

Whether an opening verb gives an order or names a thing ("Make fails", "Use of it", "Set -e hides") is decided by what
follows it: a finite verb makes it a name, an object makes it an order. Words in quotes or backticks are one noun,
unless the quotation is the whole sentence.

This is hygiene, not a security border: it keeps honest memories in the mood of observation, and a determined writer
passes it. It looks at ASCII letters only, so no table of the interpreter bears on the answer, and takes time linear in
the text.
"""

import re
from typing import Final

from remem.protocol import guard_words as lexicon

# Quantifiers are possessive and no two alternatives of a run overlap, so nothing is ever scanned twice.
_TOKEN: Final = re.compile(
    r"""
    -{0,2}+[a-z0-9_\xc0-\u024f]++(?:[-'./@+=\\][a-z0-9_\xc0-\u024f]++)*+    # a word, a path, a flag, a version
    | "[^"]++" | `[^`]++` | “[^“”]++” | «[^«»]++» | (?<![a-z0-9])'[^']++'(?![a-z0-9])      # a quotation
    | [\x21-\x2f\x3a-\x40\x5b-\x60\x7b-\x7f\n…“”‘’«»–—•]                      # a mark
    | [^\x00-\x7f\xa0\xc0-\u024f\u2000-\u200a\u202f\u3000…“”‘’«»–—•]++        # what is neither: emoji, other scripts
    """,
    re.VERBOSE,
)
_BREAKS: Final = frozenset(".!?;\n…")
_QUOTES: Final = frozenset("\"`“«'")
_DASHES: Final = frozenset(("-", "–", "—"))
_LETTERS: Final = frozenset("abcdefghijklmnopqrstuvwxyz")
_JOINTS: Final = frozenset((",", *_DASHES))
_END: Final = ""

_PLEASE: Final = frozenset(("please", "pls", "plz"))
_HINTS: Final = frozenset((*_JOINTS, *_PLEASE, "you", *lexicon.AGENTS))

# What a word can be at the head of a sentence.
_LEAD_IN, _URGE, _PHRASE, _VERB, _MIXED, _NOUN = range(6)
_PHRASES: Final = frozenset(("let's", "lets", "let", "don't", "dont", "be", "have", "go", "see", "make", "guess"))
_ROLES: Final[dict[str, int]] = {
    **dict.fromkeys(lexicon.NOUNS, _NOUN),
    **dict.fromkeys(lexicon.MIXED, _MIXED),
    **dict.fromkeys(lexicon.VERBS, _VERB),
    **dict.fromkeys(lexicon.LEAD_INS, _LEAD_IN),
    **dict.fromkeys(lexicon.URGES, _URGE),
    **dict.fromkeys(_PHRASES, _PHRASE),
}


def instruction(text: str) -> str | None:
    """Return the words that make a text an instruction, or None if it is an observation."""
    # Lower-casing is the same in every version of Unicode where its result has ASCII letters.
    words = _TOKEN.findall(text.lower().replace("’", "'"))
    words.append(".")
    start = 0
    for index, word in enumerate(words):
        if word in _BREAKS:
            if word == "." and words[index - 1] in lexicon.ABBREVIATIONS:
                continue
            if index > start:
                found = _order(words[start:index])
                if found is not None:
                    return found
            start = index + 1
    return None


def _order(words: list[str]) -> str | None:
    """Return the words that make one sentence an order."""
    words += (_END, _END, _END)
    found = _opening(words, 0)
    if found is not None or _HINTS.isdisjoint(words):
        return found
    return _request(words) or _duty(words) or _after_a_joint(words)


def _opening(words: list[str], at: int) -> str | None:
    """Rule 1: strip what may stand before an order, and decide by the first word of substance."""
    urged = at
    while word := words[at]:
        role = _ROLES.get(word)
        if role is None:
            at, inner = _strip(words, at)
            if inner is not None:
                return instruction(inner)
            if at < 0:
                return None
            continue
        if words[at + 1] == ":" and word in lexicon.LABELS:
            at += 2
        elif role == _LEAD_IN:
            at += 1
        elif role == _URGE:
            return _urged(words, at)
        elif role == _PHRASE:
            return _phrase(words, at)
        else:
            return word if _gives_an_order(words, at, role) else None
    return None


def _strip(words: list[str], at: int) -> tuple[int, str | None]:
    """Return where to go on after a word without a role, -1 for nowhere, or the quotation which is all that is left."""
    word, after = words[at], words[at + 1]
    if word[0] in _LETTERS:
        if word.endswith("ly"):
            return at + 1, None
        for colon in (at + 1, at + 2, at + 3):
            if words[colon] == ":":
                label = words[colon - 1]
                return (colon + 1 if label in lexicon.LABELS or label.isdigit() else -1), None
            if not words[colon]:
                break
        return -1, None
    if len(word) > 1:
        if word[0] in _QUOTES:
            return (-1, word[1:-1] if not after else None)
        if word[0] == "-":
            words[at] = word.lstrip("-")
            return at, None
        if word[0].isdigit():
            return (at + 1 if after and after[0] in ")-:" else -1), None
    elif word.isdigit():
        return (at + 1 if after and after[0] in ")-:" else -1), None
    return at + 1, None


def _urged(words: list[str], at: int) -> str | None:
    """After "please", "always", "never", "do" any verb is an order."""
    urge = words[at]
    verb = at + 1
    while words[verb] == "," or words[verb].endswith("ly") or words[verb] in lexicon.LEAD_INS or words[verb] in lexicon.URGES or words[verb] == "not":
        verb += 1
    word = words[verb]
    if urge == "do":
        if words[at + 1] == "not":
            return _forbidden(words, at, at + 2)
        if word in lexicon.SUBJECTS and word != "it":
            return None
        if word in lexicon.DETERMINERS or word in lexicon.OBJECTS or word == "be":
            return f"do {word}"
    if urge in _PLEASE and not (word in lexicon.SUBJECTS):
        return f"{urge} {word}".rstrip()
    if word in lexicon.VERB_NOUNS or word in _PHRASES or word == "let" or word == "be":
        if _finite(words, verb + 1):
            return None
        return f"{urge} {word}"
    return None


def _forbidden(words: list[str], at: int, verb: int) -> str | None:
    word = words[verb]
    if word in lexicon.SUBJECTS or word in ("know", "think", "have", "want", "wish", "care", "see", "like", "understand", "mind", "need", "believe", "recommend"):
        return None
    return " ".join(words[at : verb + 1]).strip()


def _phrase(words: list[str], at: int) -> str | None:
    word, after = words[at], words[at + 1]
    if word in ("don't", "dont"):
        return _forbidden(words, at, at + 1)
    if word in ("let's", "lets"):
        if after == "encrypt" or not (after in lexicon.VERB_NOUNS or after in _PHRASES or after in ("not", "just", "all", "do", "say", "be")):
            return None
        return f"{word} {after}"
    if word == "be":
        return f"be {after}" if after and after not in lexicon.SUBJECTS and after not in lexicon.AUXILIARIES else None
    if word == "have":
        return f"have {after}" if after in ("a", "an", "the", "fun", "patience", "him", "her", "them", "it", "your", "someone", "at", "faith", "mercy", "pity") else None
    if word == "go":
        if after in ("to", "there", "here", "ahead", "back", "on", "into", "home", "for", "with", "down", "up", "out", "through", "over", "get", "see", "find", "check", "and", "somewhere", "next", "around", "away", "onto", "in", "straight", "left", "right"):
            return None if _finite_later(words, at + 1, "go") else f"go {after}"
        return None
    if word == "see":
        if after in ("you", "below", "above", "also", "attached", "here", "there", "if", "what", "how", "why", "whether", "where", "to", "which", "page", "section", "link"):
            return f"see {after}"
        return "see" if _gives_an_order(words, at, _MIXED) else None
    if word == "guess":
        return "guess what" if after == "what" else None
    if word == "make":
        if after in ("sure", "certain"):
            return f"make {after}"
        return "make" if _gives_an_order(words, at, _MIXED) else None
    # let
    if after in lexicon.OBJECTS or after in lexicon.DETERMINERS:
        return f"let {after}"
    return "let" if _gives_an_order(words, at, _MIXED) else None


_FIRM = frozenset("the a an it my your them me her his our their its each every these those him us all both this any".split())
_PAIRS = frozenset(
    """log in;log into;sign in;sign into;work on;switch to;switch from;point to;stick to;stick with;step through;plug in;search for;play with;
    talk to;talk about;listen to;look at;look for;look in;look on;worry about;reply to;report to;tap on;focus on;aim for;aim at;start with;stop at;
    stop by;wait for;call for;check for;check with;check in;check on;try to;try on;help with;turn to;move to;move on;walk to;run to;run for;shop at;shop for;
    ride in;vote for;rest on;care for;fight for;push for;push to;head to;head for;chat with;deal with;cook with;drive to;question whether;change to;
    change into;link to;post to;post on;ship to;stand in;stand on;stand by;stay in;sleep on;save to;load from;pull from;merge into;merge with;attack from;
    jump to;jump in;jump on;settle for""".replace("\n", "").replace("    ", "").split(";")
)


def _gives_an_order(words: list[str], at: int, role: int) -> bool:
    """Say whether a word that can be a verb gives an order here, by what follows it."""
    verb, after = words[at], words[at + 1]
    if not after:
        return role == _VERB
    if _finite(words, at + 1):
        return False
    if after in lexicon.DETERMINERS or after in lexicon.OBJECTS:
        return role != _NOUN or after in _FIRM
    if after == "of":
        return verb in ("beware", "think", "dispose", "take", "conceive", "hear", "learn", "approve", "rid", "dream", "know")
    if after[0] not in _LETTERS and not after[0].isdigit() and after[0] not in "-`\"'“(#@$~<*/":
        return role == _VERB and after != ":" and after != "'"
    if role == _NOUN:
        if after in lexicon.PARTICLES or f"{verb} {after}" in _PAIRS:
            return not _finite_later(words, at + 1, verb)
        return False
    if role == _MIXED:
        if after in lexicon.PREPOSITIONS and not (after in lexicon.PARTICLES or f"{verb} {after}" in _PAIRS):
            return False
    return not _finite_later(words, at + 1, verb)


def _finite(words: list[str], at: int) -> bool:
    """Say whether a word is surely a verb with a subject before it."""
    word, after = words[at], words[at + 1]
    if word in lexicon.AUXILIARIES or word in lexicon.FINITE:
        return True
    if word.endswith("ed") and len(word) > 4 or word in ("built", "set", "cut", "put", "hit"):
        return (
            not after
            or after in lexicon.PREPOSITIONS
            or after in lexicon.PARTICLES
            or after in lexicon.DETERMINERS
            or after in lexicon.OBJECTS
            or after in lexicon.CLAUSE_STARTS
            or after in ("and", "or", ",", "not")
            or after.endswith("ly")
            or after[0].isdigit()
            or after[0] in "`\"'“"
        )
    if word.endswith("s") and not word.endswith("ss"):
        if _base(word) in lexicon.VERBS:
            return True
        if _base(word) in lexicon.VERB_NOUNS:
            return (after in lexicon.DETERMINERS or after in lexicon.OBJECTS) and words[at - 1] not in lexicon.DITRANSITIVE
        return word == "times" and after == "out"
    return False


def _base(word: str) -> str:
    if word.endswith("ies"):
        return word[:-3] + "y"
    if word.endswith(("shes", "ches", "sses", "xes", "zzes", "oes")):
        return word[:-2]
    return word[:-1]


def _finite_later(words: list[str], at: int, verb: str) -> bool:
    if verb in lexicon.CLAUSAL:
        return False
    for index in range(at, len(words) - 2):
        word = words[index]
        if word in lexicon.CLAUSE_STARTS or (word in lexicon.SUBJECTS and word != "it"):
            return False
        if not word or word == ":" or word in _DASHES:
            return False
        if word == ",":
            after = words[index + 1]
            if after in lexicon.CLAUSE_STARTS or after in lexicon.SUBJECTS or after in ("and", "or", "then", "please"):
                return False
            continue
        if words[index - 1] in ("to", "and", "or"):
            continue
        if _finite(words, index):
            return True
        if word in lexicon.PLURAL_FINITE and words[index - 1].endswith("s") and verb not in ("make", "let", "help", "have", "watch", "see"):
            return True
    return False


def _request(words: list[str]) -> str | None:
    for index, word in enumerate(words):
        if word in _PLEASE:
            found = _urged(words, index)
            if found is not None and words[index + 1] and (words[index+1] in lexicon.VERB_NOUNS or words[index-1] == ","):
                return found
    return None


def _duty(words: list[str]) -> str | None:
    for index, word in enumerate(words):
        if word == "you" or word in lexicon.AGENTS:
            at = index + 1
            while words[at].endswith("ly") or words[at] in ("also", "now", "just", "then"):
                at += 1
            modal, after = words[at], words[at + 1]
            before = words[index - 1] if index else ","
            if word == "you" and not (before in _JOINTS or before in lexicon.LEAD_INS or before == ":"):
                continue
            if modal in lexicon.DUTIES and not (after == "have"):
                return f"{word} {modal}"
            if (modal, after) in (("need", "to"), ("have", "to"), ("needs", "to"), ("has", "to"), ("are", "to"), ("is", "to"), ("are", "now"), ("will", "now"), ("had", "better"), ("are", "required")):
                return f"{word} {modal} {after}"
    return None


def _after_a_joint(words: list[str]) -> str | None:
    """Rules 4 and 5: an order after a comma or a dash."""
    first = 0
    while words[first] and (words[first][0] not in _LETTERS or words[first] in lexicon.LEAD_INS):
        first += 1
    prefaced = words[first] in lexicon.PREFACES
    for index, word in enumerate(words):
        if word in _JOINTS and (prefaced or index - first <= 2 or words[index + 1] in lexicon.ASIDES):
            found = _opening(words, index + 1)
            if found is not None:
                return found
    return None
