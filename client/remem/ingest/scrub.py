"""What a text of this machine may become outside it: an allow-list, word by word.

A word passes for one of three reasons only: it is in the shipped vocabulary, it is a public name (a program, an
error class, an option, a code that is documented), or it is an HTTP status in its place. Whatever else stands there
becomes a placeholder that tells its shape: a path, a file, a URL, an address, an option, a secret, N for a number
and X for anything else. No pattern has to recognise what is private; each has to recognise what is not.

Four rules take common words out again, for a machine, a person or a project may be called by one:

- *Private words*: every part of the folder in which the event happened, and of each path, host and address in
  its texts. They are hidden wherever they occur in that event. Function words are not, as they name nothing.
- *Quotations* pass if they are a public name or a sign; of other quotations nothing passes.
- After a noun that introduces a name ("branch", "user", "host") only few words pass, after "password:" none does.
- In prose, a capital letter inside a clause makes a name.

The result holds no marks but commas, colons, round brackets, apostrophes and those inside a public name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from typing import Final, NamedTuple

from remem.ingest import names
from remem.ingest.vocabulary import FIXED, FRAME, SPELLED, TERMS

MAX_CHARACTERS: Final = 400

PATH, FILE, URL, ADDRESS, OPTION, SECRET = "a path", "a file", "a URL", "an address", "an option", "a secret"
NUMBER, UNKNOWN = "N", "X"
PLACEHOLDERS: Final = (PATH, FILE, URL, ADDRESS, OPTION, SECRET, NUMBER, UNKNOWN)

# Public names that pass anywhere, and those that pass inside quotation marks only.
_BARE: Final = names.PROGRAMS | names.SUBCOMMANDS | names.FILES | names.ERROR_NAMES | names.IDENTIFIERS
_QUOTABLE: Final = _BARE | names.PACKAGES
# After these words a quotation is an option, or a word of a language.
_OPTION_NOUNS: Final = frozenset(("option", "options", "flag", "switch"))
_KEYWORD_NOUNS: Final = frozenset(("type", "types", "token", "keyword", "near", "expected", "unexpected"))
_CODE: Final = re.compile(names.CODE)
_SHORT_CODE: Final = re.compile(r"[A-Z]\d{3}")

# Nouns that introduce a name, and the words that may follow them all the same.
_INTRODUCES: Final = frozenset(
    """
    account author branch bucket called channel client cluster company container contributor customer database
    device directory domain folder group host hostname image login machine maintainer name named namespace network
    organization owner package person pod project queue remote repo repository reviewer role schema server service
    table tag team ticket topic user username volume worktree workspace
    """.split()
)
_INTRODUCES_BY_COLON: Final = frozenset(
    "identifier import missing symbol undeclared undefined unknown unresolved".split()
)
_MAY_FOLLOW: Final = FRAME | frozenset(
    """
    access attribute closed conflict connection error exists exist expected failed failure fails file files found id
    input interface key lacks lookup missing name names option path prompt provided refused requested required
    returned returns scope set settings setting specified terminated timed type undefined unknown unreachable
    unavailable used uses value values verification version wants
    """.split()
)
_SECRETS: Final = frozenset("password passphrase passwd secret token credential credentials pin".split())
_DETERMINERS: Final = frozenset("a an the this that your its our my their his her no any each every some such".split())

# Folder names that say nothing about whose machine or project it is; they count in the paths of a text only.
_UNIVERSAL: Final = frozenset(
    """
    api app assets bin build client cmd common config core dev dist docs etc home include index internal lib local
    main modules node_modules opt out packages pkg private proc public root scripts server share site-packages src
    static tests test tmp types usr utils users var vendor web com org io net www http https git ssh github gitlab
    """.split()
)

_ANSI: Final = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|[\x00-\x08\x0b-\x1f\x7f]")
_STRAIGHT: Final = str.maketrans("\u201c\u201d\u2018\u2019\u00ab\u00bb\u2013\u2014", '""\'\'""--')
_DOTS: Final = re.compile(r"\u2026|(?<![\s/.])\.{2,}(?!/)")
_NOT_ASCII: Final = re.compile(r"[^\x09\x20-\x7e]")
_CLAUSE_END: Final = re.compile(r"(?<=[.;!?])\s+|\s+-+\s+|\s+\|\s+|\n+")

# Signs that stand for what was cut out before the text is split into words.
_QUOTATION, _OPEN_END, _SPACED, _FOREIGN = "\x01", "\x02", "\x03", "\x04"
_QUOTED: Final = re.compile(r"\"((?:[^\"\\]|\\.)*)\"|`([^`']*)[`']|(?<!\w)'([^']*)'(?!\w)")
_OPEN_QUOTE: Final = re.compile(r"(?<![\w\"'`])[\"'`](?=\w).*")
_SPACED_PATH: Final = re.compile(r"(?<!\S)(?:[A-Za-z]:\\|[~/])\S*(?: [^\s/\\]+){1,4}[^\s/\\]*[/\\]\S*")

_BETWEEN: Final = re.compile(r"[\s\"'`()<>\[\]{},;|=]+")
_SEPARATORS: Final = re.compile(r"[/\\@:]+")
_PART: Final = re.compile(r"[a-z]+|[0-9]+")
_CAMEL: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")

_EDGES: Final = "()[]{}<>,;:!?*\"'`#|=+&_"
_NUMBER: Final = re.compile(r"[vV~+-]*\d[\d.,:/%x-]*(?:[a-zA-Z]{1,2}|min|sec)?")
_WORD: Final = re.compile(r"[A-Za-z0-9+'./-]+(?:\(s\))?")


class Scrubbed(NamedTuple):
    """A text that may leave: how many words of content it kept, and how many things it hides."""

    text: str
    content: int
    hidden: int


class _Piece(NamedTuple):
    text: str
    content: bool = False
    hidden: bool = False


_HIDDEN_NAME: Final = _Piece(UNKNOWN, hidden=True)


def clauses(text: str) -> list[str]:
    """Split a text into sentences and clauses, each to be scrubbed on its own."""
    return [part for part in _CLAUSE_END.split(_DOTS.sub(". ", _plain(text))) if part.strip()]


def private_words(folder: str, texts: Iterable[str], more: Iterable[str] = ()) -> frozenset[str]:
    """Collect the words, in lower case, that no sentence about an event may hold.

    Args:
        folder: where the event happened: each of its parts counts.
        texts: the event's texts: the parts of each path, host and address in them count.
        more: names of the machine and its people, each as a whole.
    """
    found = _parts(folder) | {name.lower() for name in more}
    for text in texts:
        for token in _BETWEEN.split(text):
            if _is_place(token):
                found |= _parts(token) - _UNIVERSAL - names.PROGRAMS
    return frozenset(found - FRAME)


def scrub(text: str, private: AbstractSet[str] = frozenset(), *, prose: bool = False) -> Scrubbed:
    """Return what of one clause may leave this machine.

    Args:
        text: one clause; what is beyond `MAX_CHARACTERS` is left out.
        private: words, in lower case, that are hidden although they are common.
        prose: whether a capital letter inside the clause marks a name.
    """
    flat = _NOT_ASCII.sub(_FOREIGN, _plain(text))
    if len(flat) > MAX_CHARACTERS:
        flat = flat[:MAX_CHARACTERS].rpartition(" ")[0]
    quoted: list[str] = []

    def cut(match: re.Match[str]) -> str:
        quoted.append(next(group for group in match.groups() if group is not None))
        return _QUOTATION

    flat = _QUOTED.sub(cut, flat)
    flat = _OPEN_QUOTE.sub(_OPEN_END, _SPACED_PATH.sub(_SPACED, flat))
    return _joined(_telling(_pieces(flat.split(), iter(quoted), private, prose)))


def is_vocabulary(word: str) -> bool:
    """Tell whether a word, in lower case, is one of the shipped vocabulary in a regular form."""
    return word in FIXED or word in SPELLED or _term(word) is not None


# --- from a text to pieces ---


def _plain(text: str) -> str:
    return _ANSI.sub(" ", text).translate(_STRAIGHT)


def _parts(name: str) -> set[str]:
    found: set[str] = set()
    for component in _SEPARATORS.split(name):
        found.add(component.lower())
        found.update(_PART.findall(_CAMEL.sub(" ", component).lower()))
    return {part for part in found if len(part) > 1}


def _is_place(token: str) -> bool:
    """Tell whether a token is a path, a URL, an address, or a host with a port or a path."""
    if "/" in token or "\\" in token or "@" in token:
        return True
    host, colon, _ = token.partition(":")
    head, _, extension = host.rpartition(".")
    return bool(colon and head) and extension.lower() not in names.EXTENSIONS


def _pieces(tokens: list[str], quoted: Iterator[str], private: AbstractSet[str], prose: bool) -> list[_Piece]:
    pieces: list[_Piece] = []
    before, colon = "", False
    for token in tokens:
        core = _core(token)
        tail = token[token.rindex(core) + len(core) :] if core else token
        closing = "".join(mark for mark in "),:" if mark in tail)
        if not core:
            if pieces:
                pieces[-1] = pieces[-1]._replace(text=pieces[-1].text + closing)
            continue
        if before in _SECRETS and (colon or core in ("is", "was")):
            said = () if colon else (_Piece(core),)
            return [*pieces, *said, _Piece(SECRET, hidden=True)]
        piece = _piece(core, before, quoted, private)
        # A short code opens a message; elsewhere it is as likely a room or a ticket.
        is_label = bool(pieces) and _SHORT_CODE.fullmatch(core) is not None
        is_name = core != _QUOTATION and _names(core, before, colon, prose and bool(pieces))
        if piece.content and (is_label or is_name):
            piece = _HIDDEN_NAME
        pieces.append(piece._replace(text="(" * token.startswith("(") + piece.text + closing))
        before = "" if "," in tail else core.lower()
        colon = ":" in tail or "=" in tail
    return pieces


def _core(token: str) -> str:
    """Strip the marks around a word, but not a dot before it, which belongs to a file or a folder."""
    core = token.strip(_EDGES).rstrip("." + _EDGES)
    if core.endswith("(s"):
        core += ")"
    if token.rstrip(",;:.").endswith("/..."):
        return token.rstrip(",;:")
    return core if any(char.isalnum() or char < " " for char in core) else ""


def _names(core: str, before: str, colon: bool, prose: bool) -> bool:
    """Tell whether a word that would pass is a name by where it stands."""
    word = core.lower()
    if before in _INTRODUCES and (colon or word not in _MAY_FOLLOW) and not word.endswith("ed"):
        return True
    if colon and before in _INTRODUCES_BY_COLON:
        return True
    return prose and core[0].isupper() and not core.isupper() and core not in SPELLED.values()


def _piece(core: str, before: str, quoted: Iterator[str], private: AbstractSet[str]) -> _Piece:
    if _QUOTATION in core:
        inside = [next(quoted) for _ in range(core.count(_QUOTATION))]
        return _quotation(inside[0].strip(), before, private) if core == _QUOTATION else _HIDDEN_NAME
    if _OPEN_END in core:
        return _HIDDEN_NAME
    if _SPACED in core:
        return _Piece(PATH, hidden=True)
    if before in ("http", "status", "code") and core in names.HTTP_STATUSES:
        return _Piece(core, content=True)
    return _known(core, private) or _Piece(_shape(core), hidden=True)


def _quotation(inside: str, before: str, private: AbstractSet[str]) -> _Piece:
    if not inside:
        return _Piece("an empty string")
    if len(inside) <= 3 and not any(char.isalnum() or char in "'\x04" for char in inside):
        return _Piece(f"'{inside}'")
    in_place = (inside in names.OPTIONS and before in _OPTION_NOUNS) or (
        inside in names.KEYWORDS and before in _KEYWORD_NOUNS
    )
    if in_place or inside in _QUOTABLE or _CODE.fullmatch(inside) is not None:
        return _HIDDEN_NAME if _is_private(inside.lower(), private) else _Piece(inside, content=True)
    return _Piece(UNKNOWN if " " in inside else _shape(inside), hidden=True)


def _known(core: str, private: AbstractSet[str]) -> _Piece | None:
    if core.startswith("-"):
        name = core.lstrip("-").partition("=")[0]
        known = (len(name) == 1 and name.isalpha()) or name in names.OPTIONS
        return _Piece(core.partition("=")[0], content=True) if known and not _is_private(name, private) else None
    if core in _BARE or _CODE.fullmatch(core) is not None:
        return None if _is_private(core.lower(), private) else _Piece(core, content=True)
    if _WORD.fullmatch(core) is None:
        return None
    plural = "(s)" * core.endswith("(s)")
    word = core.removesuffix("(s)").lower()
    if word in FRAME:
        return _Piece("I" + word[1:] if word == "i" or word.startswith("i'") else word)
    if _is_private(word, private) or not is_vocabulary(word):
        return None
    return _Piece((word if core.islower() else SPELLED.get(word, word)) + plural, content=True)


def _is_private(word: str, private: AbstractSet[str]) -> bool:
    return word in private or (_term(word) or word) in private or word + "s" in private


def _term(word: str) -> str | None:
    """Return the term of the vocabulary of which a word in lower case is a regular form, or None."""
    if word in TERMS:
        return word
    for suffix in ("'s", "s", "d", "es", "ed", "ing"):
        stem = word.removesuffix(suffix)
        if stem == word or len(stem) < 2:
            continue
        # stopped, stopping; tried, tries; writing; and the plain rest.
        undoubled = stem[:-1] if suffix in ("ed", "ing") and stem[-1] == stem[-2] else stem
        as_y = stem[:-1] + "y" if suffix in ("es", "ed") and stem.endswith("i") else stem
        with_e = stem + "e" if suffix == "ing" else stem
        for candidate in (stem, undoubled, as_y, with_e):
            if candidate in TERMS:
                return candidate
    return None


def _shape(core: str) -> str:
    if "://" in core:
        return URL
    if "@" in core and not core.startswith("@"):
        return ADDRESS
    if _NUMBER.fullmatch(core):
        return NUMBER
    if core.startswith("-"):
        return OPTION
    if core.startswith(("~", "./", "..", "/", "\\")):
        return PATH
    head, _, extension = core.rpartition(".")
    if "/" in core or "\\" in core:
        # os/exec.Command is a name in Go.
        return UNKNOWN if head and extension[:1].isupper() else PATH
    return FILE if head and extension.lower() in names.EXTENSIONS else UNKNOWN


# --- from pieces to a text ---


def _telling(pieces: list[_Piece]) -> list[_Piece]:
    """Leave out a tail behind a colon that is mostly hidden, once what stands before it says something."""
    kept: list[_Piece] = []
    segment: list[_Piece] = []
    for index, piece in enumerate(pieces):
        segment.append(piece)
        if piece.text.endswith(":") or index == len(pieces) - 1:
            hidden = sum(part.hidden for part in segment)
            if sum(part.content for part in kept) >= 2 and hidden > max(1, sum(part.content for part in segment)):
                break
            kept += segment
            segment = []
    return kept


def _joined(pieces: list[_Piece]) -> Scrubbed:
    words: list[str] = []
    last = ""
    hidden = 0
    for piece in pieces:
        text, plain = piece.text, piece.text.strip("(),:")
        if piece.hidden and plain == last:
            # A list of hidden things reads as one; only its closing marks are still needed.
            words[-1] = words[-1].rstrip(",:") + "".join(mark for mark in text if mark in "),:")
            continue
        last = plain if piece.hidden else ""
        if piece.hidden:
            hidden += 1
            article, _, noun = plain.partition(" ")
            if noun and words and words[-1] in _DETERMINERS:
                # "the a path" reads as "the path", "a an option" as "an option".
                words[-1] = article if words[-1] in ("a", "an") else words[-1]
                text = text.replace(plain, noun)
        words.append(text)
    if sum(word.count("(") - word.count(")") for word in words if "'" not in word):
        words = [word if "'" in word else word.replace("(s)", "s").replace("(", "").replace(")", "") for word in words]
    return Scrubbed(" ".join(words).strip(" ,:"), sum(piece.content for piece in pieces), hidden)
