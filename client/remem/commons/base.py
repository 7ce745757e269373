"""A commons as a place: the port that every place where files can live has (PROTOCOL.md, section 11).

A commons maps a key to that key's file. It says who it is, lists what it holds, and hands out and takes files;
it judges nothing, and nothing it says is believed: whoever takes a file from it accepts the file as if it came
from a stranger. What a commons answers is read here into values, or refused as a `BadAnswer`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Protocol

from remem.errors import Refused, Unreachable
from remem.protocol import RULES, OriginFile, ProtocolError, PublicKey, Version
from remem.protocol.errors import show
from remem.protocol.text import text_fault

PRINCIPAL_CODE_POINTS: Final = 128
LISTED_MOST: Final = 100_000
INDEX_BYTES: Final = 1_048_576
"""The most that a page of an index takes, and any other answer but a file."""
INDEX_MOST: Final = 48 * INDEX_BYTES
"""The most that a whole index takes, as an export writes it."""
UNREADABLE_MOST: Final = 100
# The code by which a host says that it does not keep the file of a key, for a reason of its own.
BLOCKED: Final = "blocked"

_HEX_64: Final = re.compile(r"[0-9a-f]{64}")
# An entry has seven. A few bytes of JSON can take fifty times as many in memory.
_VALUES_MOST: Final = 10 * LISTED_MOST


class BadAnswer(Unreachable):
    """What came is not what a commons answers.

    Attributes:
        code: a stable code for what is wrong with it.
    """

    def __init__(self, code: str, message: str, hint: str | None = None) -> None:
        super().__init__(message, hint)
        self.code = code


class CommonsRefused(Refused):
    """A commons refused what was asked of it.

    Attributes:
        code: the stable code of the refusal.
        held: what it holds instead, where it says so.
    """

    def __init__(self, code: str, message: str, hint: str | None = None, held: Version | None = None) -> None:
        super().__init__(message, hint)
        self.code = code
        self.held = held


@dataclass(frozen=True, slots=True)
class Descriptor:
    """What a commons says about itself.

    Attributes:
        key: its own key, 64 hex digits.
        operators: the keys of those who answer for it.
        open: whether anyone may publish there.
        private: whether reading needs a token.
    """

    key: str
    operators: tuple[str, ...] = ()
    open: bool = False
    private: bool = False

    @property
    def keys(self) -> tuple[str, ...]:
        """Every key that speaks for this commons, its own first."""
        return (self.key, *(key for key in self.operators if key != self.key))


@dataclass(frozen=True, slots=True)
class Entry:
    """One file as a commons lists it.

    Attributes:
        key: whose file it is.
        version: the file's seal and digest.
        principal: who answers for the key, by that commons' own name for them; None for a key it did not admit.
    """

    key: str
    version: Version
    principal: str | None = None


@dataclass(frozen=True, slots=True)
class Unreadable:
    """Something a commons lists that names no file.

    Attributes:
        name: what it is called there, as it came.
        code: a stable code for what is wrong.
        detail: what was expected and what came.
    """

    name: str
    code: str
    detail: str


@dataclass(slots=True)
class Unreadables:
    """What a listing has that names no file: the first of it by name, and the rest as a number.

    Attributes:
        first: as many as are named.
        count: how many there are in all.
    """

    first: list[Unreadable] = field(default_factory=list)
    count: int = 0

    def add(self, one: Unreadable) -> None:
        """Count one, and keep it where there is room."""
        self.count += 1
        if len(self.first) < UNREADABLE_MOST:
            self.first.append(one)

    def listed(self) -> tuple[Unreadable, ...]:
        """Return those that are named, and one that stands for the rest."""
        more = self.count - len(self.first)
        rest = Unreadable("", "unreadable_more", f"expected names of files, got {more} more that are none")
        return (*self.first, rest) if more else tuple(self.first)


@dataclass(frozen=True, slots=True)
class Listing:
    """What a commons lists, or what changed there.

    Attributes:
        entries: one for each file.
        bookmark: what to ask with next time; None where nothing can be left out then.
        unchanged: nothing changed since the bookmark that was asked with.
        whole: every file is listed, so a key that is missing is not there.
        more: the listing was cut short; asking with `bookmark` goes on from here.
        unreadable: what was listed and names no file.
    """

    entries: tuple[Entry, ...]
    bookmark: str | None
    unchanged: bool = False
    whole: bool = True
    more: bool = False
    unreadable: tuple[Unreadable, ...] = ()


@dataclass(frozen=True, slots=True)
class Published:
    """What a commons made of a file that it was given.

    Attributes:
        outcome: `new`, `newer`, `unchanged` or `equivocation`.
        skipped: how many of the file's records its readers will skip, as far as it says so.
    """

    outcome: str
    skipped: int = 0


class Commons(Protocol):
    """A place where files can live.

    Attributes:
        target: its address, in the one spelling that a memory files it under.
        warnings: what its owner should know about reaching it.
    """

    target: str
    warnings: tuple[str, ...]

    def describe(self) -> Descriptor | None:
        """Say who this is; None for a place that has nothing to say, as a folder.

        Raises:
            Unreachable: it did not answer, or not as a commons does.
            CommonsRefused: it answers, and refuses.
        """

    def index(self, bookmark: str | None) -> Listing:
        """List the files, or what changed since the bookmark of an earlier listing.

        Raises:
            Unreachable: it did not answer, or not as a commons does.
            CommonsRefused: it answers, and refuses.
        """

    def get(self, key: str, digest: str | None = None) -> bytes | None:
        """Fetch a key's file; None where it holds none.

        Args:
            key: whose file.
            digest: the version that is wanted, for a place that may hold several.

        Raises:
            Unreachable: it did not answer, or not as a commons does.
            CommonsRefused: it answers, and refuses.
        """

    def put(self, file: OriginFile) -> Published:
        """Give it a file, to keep if it is the newest of its key.

        Raises:
            Unreachable: it did not answer, or not as a commons does.
            CommonsRefused: it answers, and refuses; `older_file` or `equivocation` where its own is newer.
        """

    def close(self) -> None:
        """Let go of what reaching it took."""


def read_json(data: bytes, what: str) -> object:
    """Read JSON that a commons answered.

    Raises:
        BadAnswer: it is not JSON.
    """
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        raise BadAnswer("answer_form", f"expected {what} as JSON, got {show(data)}") from None


def read_descriptor(data: bytes) -> Descriptor:
    """Read what a commons says about itself.

    Raises:
        BadAnswer: it is not a description of a commons that speaks version 1.
    """
    fields = read_json(data, "a description")
    if not isinstance(fields, Mapping):
        raise BadAnswer("answer_form", f"expected a description as an object, got {show(fields)}")
    versions = fields.get("protocol")
    if not isinstance(versions, list) or RULES.version not in versions:
        raise BadAnswer("protocol_version", f"expected a commons of version {RULES.version}, got {show(versions)}")
    operators = fields.get("operators", [])
    if not isinstance(operators, list) or len(operators) > 100:
        raise BadAnswer("answer_form", f"expected the operators' keys, got {show(operators)}")
    return Descriptor(
        _read_key(fields.get("key")),
        tuple(dict.fromkeys(map(_read_key, operators))),
        open=fields.get("open") is True,
        private=fields.get("private") is True,
    )


def read_entries(data: bytes, strange: Unreadables) -> list[Entry]:
    """Read the entries of an index, or of one page, and add what is none to what is `strange`.

    Raises:
        BadAnswer: it is not an index.
    """
    if sum(map(data.count, (b",", b"{", b"["))) > _VALUES_MOST:
        raise BadAnswer("answer_size", f"expected an index of at most {LISTED_MOST} entries, got more")
    items = read_json(data, "an index")
    if not isinstance(items, list):
        raise BadAnswer("answer_form", f"expected an index as an array, got {show(items)}")
    entries: list[Entry] = []
    for item in items[:LISTED_MOST]:
        entry = _read_entry(item)
        if isinstance(entry, Entry):
            entries.append(entry)
        else:
            strange.add(entry)
    strange.count += max(0, len(items) - LISTED_MOST)
    return entries


def _read_key(value: object) -> str:
    try:
        return PublicKey.parse(value if isinstance(value, str) else "").hex
    except ProtocolError as error:
        raise BadAnswer(error.code, f"expected {error.expected}, got {show(value)}") from None


def _read_entry(item: object) -> Entry | Unreadable:
    if not isinstance(item, Mapping):
        return Unreadable("", "index_entry", f"expected an object, got {show(item)}")
    key, digest, seal, principal = (item.get(name) for name in ("key", "digest", "seal", "principal"))
    if not isinstance(key, str) or not _HEX_64.fullmatch(key):
        return Unreadable(show(item.get("origin")), "index_entry", f"expected a key of 64 hex digits, got {show(key)}")
    if not isinstance(digest, str) or not _HEX_64.fullmatch(digest):
        return Unreadable(key, "index_entry", f"expected a digest of 64 hex digits, got {show(digest)}")
    if seal is not None and (type(seal) is not int or not 1 <= seal <= RULES.last_seal):
        return Unreadable(key, "index_entry", f"expected a seal's number, got {show(seal)}")
    if principal is not None and not _is_principal(principal):
        return Unreadable(key, "index_entry", f"expected a principal of one line, got {show(principal)}")
    return Entry(key, Version(seal, digest), principal)


def _is_principal(value: object) -> bool:
    return isinstance(value, str) and len(value) <= PRINCIPAL_CODE_POINTS and text_fault(value) is None
