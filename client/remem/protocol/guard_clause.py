"""The imperative guard's grammar: does a verb give an order here, or is it a name?

Words which open orders also open observations: as the name of a tool ("Make fails"), as a noun ("Use of it") or as
the first part of a longer subject ("Commit hooks reject it"). What follows the word decides, in this order:

1. Right after it a finite verb makes it a subject; a determiner or a pronoun is an object, so it gives an order.
2. Some pairs are known ("look forward", "merge conflict"); "of" and most marks make it a noun.
3. A word that is mostly a noun gives an order only with a particle ("back up") or in a known pair ("log in").
4. Else a finite verb further on in the same clause makes it a part of a subject, and without one it gives an order.

A sentence is a list of its words in lower case, quotations and marks among them, which ends in `PAD`.
"""

from typing import Final

from remem.protocol import guard_words as lexicon

PAD: Final = ("", "", "")  # so that a rule may look three words ahead
JOINTS: Final = frozenset(",-–—")
LETTERS: Final = frozenset("abcdefghijklmnopqrstuvwxyz")
# How an object may begin that is no word: a quotation, a flag, a path, a number.
_OBJECT_MARKS: Final = frozenset("\"`'“«(-./#@$~<*0123456789")

_CLAUSE_MARKS: Final = JOINTS | {":"}
_LABEL_AT_MOST: Final = 3  # words of a label: "Exit code 1: …"

NOUN, MIXED, VERB = range(3)  # the sets of `guard_words`


def gives_an_order(words: list[str], at: int, role: int) -> bool:
    """Say whether a word that can be a verb gives an order here, by what follows it."""
    verb, after = words[at], words[at + 1]
    if not after:
        return role == VERB or (role == MIXED and at < 2 and words[at - 1] != ":")
    # 1. A subject, or a verb with its object.
    if finite(words, at + 1):
        return False
    if after in lexicon.DETERMINERS or after in lexicon.OBJECTS:
        return role != NOUN or after in lexicon.FIRM
    # 2. Known pairs, "of", marks.
    pair = f"{verb} {after}"
    if pair in lexicon.IDLE or (after in lexicon.FAULTS and role != VERB and verb != "fix"):
        return False
    if after == "of":
        return verb in lexicon.TAKE_OF
    if after[0] not in LETTERS and after[0] not in _OBJECT_MARKS:
        return role == VERB and after != ":"
    # 3. Nouns.
    shell = verb in lexicon.COMMANDS and (after in lexicon.COMMANDS or after[0] in "-./~")
    if role == NOUN and not (shell or after in lexicon.PARTICLES or pair in lexicon.PAIRS):
        return False
    # 4. All others.
    return not _is_subject(words, at, role)


def _is_subject(words: list[str], at: int, role: int) -> bool:
    """Say whether a finite verb follows in the clause of an opening verb, which is then a part of its subject."""
    verb, aside = words[at], False
    if verb in lexicon.CLAUSAL:
        return False
    # "Make tests fail" orders, "Make targets with colons fail" does not.
    causes = verb in lexicon.CAUSATIVES
    plural = two = words[at + 1] in lexicon.JOINERS
    for index in range(at + 1, len(words) - len(PAD)):
        word, before = words[index], words[index - 1]
        aside = word == "(" or (aside and before != ")")
        if aside:
            continue
        if _ends_the_clause(word, words[index + 1]):
            return word == ":" and role != VERB and index - at <= _LABEL_AT_MOST
        if before in lexicon.NO_SUBJECTS:
            continue
        if finite(words, index, nouns_between=index > at + 1 and not causes):
            return True
        plural = plural or is_plural(before)
        if plural and index > at + 1 + causes and _follows_a_plural(words, index, two=two):
            return True
    return False


def _ends_the_clause(word: str, after: str) -> bool:
    if word in lexicon.JOINERS:
        return after in lexicon.DETERMINERS
    return word in _CLAUSE_MARKS or word in lexicon.CLAUSE_STARTS or (word in lexicon.SUBJECTS and word != "it")


def _follows_a_plural(words: list[str], at: int, *, two: bool) -> bool:
    """Say whether a bare verb is finite, where a plural or two subjects stand somewhere before it."""
    word, before, after = words[at], words[at - 1], words[at + 1]
    if word in lexicon.SURELY_FINITE:
        return True
    if word in lexicon.PLURAL_FINITE and (two or is_plural(before)):
        return True
    return word in lexicon.BARE_VERBS and after in lexicon.ARTICLES and before not in lexicon.PREPOSITIONS


def finite(words: list[str], at: int, *, nouns_between: bool = False) -> bool:
    """Say whether a word is surely a verb with its subject before it.

    Args:
        words: the sentence.
        at: the place of the word.
        nouns_between: whether a noun stands between the opener and the word. A past form is then hardly ever an
            adjective ("Deploy step skipped files", but "Fix skipped files").
    """
    word, after = words[at], words[at + 1]
    if word in lexicon.AUXILIARIES or word in lexicon.FINITE:
        return True
    if word in lexicon.PASTS or (word.endswith("ed") and len(word) > 3 and word not in lexicon.VERB_NOUNS):
        if after == "by" or (word in lexicon.REDUCED and after in lexicon.PREPOSITIONS):
            return False
        return _ends_a_verb(after) or (nouns_between and not words[at - 1].endswith("ly"))
    if word == "do":
        return after == "not"
    if not word.endswith("s"):
        return False
    base = _base(word)
    if base in lexicon.VERBS or f"{word} {after}" == "times out":
        return True
    if base not in lexicon.VERB_NOUNS:
        return False
    has_object = after in lexicon.OBJECTS or (after in lexicon.DETERMINERS and after not in lexicon.MEASURES)
    if nouns_between:
        return has_object or is_plural(after)
    return has_object and words[at - 1] not in lexicon.DITRANSITIVES


def _ends_a_verb(after: str) -> bool:
    """Say whether what follows a past form makes it a verb ("failed with"), not an adjective ("failed tests")."""
    return after[:1] not in LETTERS or after in lexicon.AFTER_VERBS or after.endswith("ly")


def is_plural(word: str) -> bool:
    """Say whether a word may be a noun in the plural."""
    return word.endswith("s") and not word.endswith(("ss", "us", "is")) and word not in lexicon.NO_PLURALS


def _base(word: str) -> str:
    """Return the bare form of a verb in "-s"."""
    if word.endswith("ies"):
        return word[:-3] + "y"
    if word.endswith(("ches", "oes", "shes", "sses", "xes", "zzes")):
        return word[:-2]
    return word[:-1]
