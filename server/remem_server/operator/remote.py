"""An operator's word said from another machine, where its key is (PROTOCOL.md, sections 10 and 11).

1. What the key signed last is read beside its file, and then what stands at the commons.
2. A seal there that was not made here stops it, unless the operator takes that file over: then all that either file
   says is said on. A commons that shows less, or nothing, is no reason to say less.
3. The next file is signed here, kept beside the key, and only then sent. One that is kept and did not arrive is sent
   by the next act.

Where nothing was signed here before, what the commons has is gone on from, and that is told. Nothing but the signed
file and the token leaves this machine. An operator's key is best a key of its own: a memory whose key signs here finds
a seal that it did not log, and stops until it adopts that file.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final

from remem.commons import BadAnswer, Commons, CommonsRefused, commons_at
from remem.errors import Refused, Unreachable
from remem.protocol import OriginFile, ProtocolError, SigningKey, Version, accept
from remem_server.errors import OperatorKey
from remem_server.opening.node import read_key
from remem_server.operator.own_file import (
    END_OF_TIME,
    Act,
    Word,
    check_not_retired,
    percent_of,
    revised,
    united,
    word_of,
)
from remem_server.operator.signed import SignedFile, opened_signed

_ATTEMPTS: Final = 5
_OVERTAKEN: Final = ("older_file", "equivocation")
_VARIABLE: Final = "the variable REMEM_TOKEN is to hold a token to publish with there"
_KEPT: Final = "what was signed is kept beside the key, and the next act sends it"


class ForeignSeal(Refused):
    """A commons holds a file of the operator's key that was not signed on this machine."""

    code = "foreign_seal"

    def __init__(self, target: str, version: Version) -> None:
        super().__init__(
            f"{self.code}: expected at {target} a file that was signed here, got seal {version.seal}, which was not",
            "signed on another of your machines, --adopt takes that file over; else someone has your key",
        )
        self.version = version


@dataclass(frozen=True, slots=True)
class Sent:
    """What became of an act.

    Attributes:
        act: what was to be done.
        subject: to what: a lesson's hash, or a key.
        outcome: whether it is done now, or was so already.
        key: by which key.
        target: where.
        obeyed: whether that commons names the key as one of its operators'; None where it names none.
        warnings: what is to be known about reaching it.
        file_percent: how full the key's file is.
    """

    act: str
    subject: str
    outcome: str
    key: str
    target: str
    obeyed: bool | None
    warnings: tuple[str, ...]
    file_percent: int


def say_at(
    target: str,
    token: str | None,
    key_file: Path,
    act: Act,
    subject: str,
    reason: str | None,
    clock: Callable[[], datetime],
    *,
    tell: Callable[[str], None],
    adopt: bool = False,
) -> Sent:
    """Revoke a lesson or deny a key, or take that back, in a key's file at a commons.

    Args:
        target: where the commons is.
        token: the token to publish with there.
        key_file: the file of the operator's key; what it signs is kept beside it.
        act: what is to be done.
        subject: to what: a lesson's hash, or a key.
        reason: why.
        clock: the clock of this machine.
        tell: told from which file it is gone on, where that is not the one that was signed here last.
        adopt: take over a file of the key that was signed elsewhere.

    Raises:
        RememError: the key cannot be used, or what it signed cannot be kept.
        ForeignSeal: the commons holds a file that was signed elsewhere, and `adopt` is not set.
        CommonsError: the subject or the reason has another form, or the key's file cannot say it.
        ProtocolError: what stands at the commons is no file of this key that can be followed.
        Unreachable: the commons did not answer.
        CommonsRefused: it answers, and refuses.
    """
    word, key = word_of(act, subject, reason), read_key(key_file)
    with opened_signed(key_file, key.public) as kept, closing(commons_at(target, token)) as commons:
        descriptor = commons.describe()
        operators = () if descriptor is None else descriptor.keys
        if word.type == "deny" and word.said and word.subject in (key.public.hex, *operators):
            raise OperatorKey(f"expected the key of somebody else, got {word.subject}, which answers for this commons")
        outcome = _Speaker(key, kept, commons, clock, tell, adopt).say(word)
        obeyed = None if descriptor is None else key.public.hex in operators
        file = kept.holds.file
        percent = 0 if file is None else percent_of(len(file.data), len(file.records))
        return Sent(act, word.subject, outcome, key.public.hex, commons.target, obeyed, commons.warnings, percent)


class _Speaker:
    """One act: what its steps share."""

    def __init__(
        self,
        key: SigningKey,
        kept: SignedFile,
        commons: Commons,
        clock: Callable[[], datetime],
        tell: Callable[[str], None],
        adopt: bool,
    ) -> None:
        self.key = key
        self.kept = kept
        self.commons = commons
        self.clock = clock
        self.tell = tell
        self.adopt = adopt

    def say(self, word: Word) -> str:
        """Let the file at the commons say a word; return the outcome."""
        outcome = "done"
        for left in reversed(range(_ATTEMPTS)):
            now, there = self.clock(), self._read()
            base = self._base(there, now)
            made = revised(self.key, base, word, now, None if base is None else base.verified, self._numbers())
            if made is None and left == _ATTEMPTS - 1 and _says_so(there, word):
                outcome = "already"
            file = made or base
            if file is None:
                break
            others = () if there is None or there.seal is None else (there,)
            self.kept.keep(self.kept.holds.followed_by(file, *others))
            if (there is not None and there.version == file.version) or self._sent(file, may_fail=left > 0):
                break
        return outcome

    # --- 1 and 2: what to go on from ---

    def _read(self) -> OriginFile | None:
        key, target = self.key.public, self.commons.target
        data = self.commons.get(key.hex)
        if data is None:
            return None
        try:
            there = accept(data, now=END_OF_TIME)
        except ProtocolError as error:
            raise BadAnswer(error.code, f"expected a file of {key.hex} at {target}, got {error}") from error
        if there.key != key:
            raise BadAnswer("name_mismatch", f"expected a file of {key.hex}, got one of {there.key.hex}")
        return there

    def _base(self, there: OriginFile | None, now: datetime) -> OriginFile | None:
        """Choose the file that the next one follows."""
        check_not_retired(there)
        signed = self.kept.holds
        if signed.file is None:
            self._tell_of("nothing was signed here with this key before", there)
            return there
        # A file of draft 0 replaces no sealed one.
        if there is None or there.seal is None or there.version in signed.seals:
            return signed.file
        if not self.adopt:
            raise ForeignSeal(self.commons.target, there.version)
        self._tell_of("a file that was signed elsewhere is taken over", there)
        return united(self.key, signed.file, there, now, self._numbers())

    def _tell_of(self, what: str, there: OriginFile | None) -> None:
        target = self.commons.target
        had = "has no file of it"
        if there is not None:
            had = f"has seal {there.version.seal} with {len(there.lines)} records, which is gone on from"
        self.tell(f"{what}: {target} {had}")

    def _numbers(self) -> list[int]:
        return [one.seal for one in self.kept.holds.seals if one.seal is not None]

    # --- 3: send ---

    def _sent(self, file: OriginFile, *, may_fail: bool) -> bool:
        """Publish a file; false where another of the key came between, which the next round reads."""
        try:
            published = self.commons.put(file)
        except CommonsRefused as error:
            if error.code in _OVERTAKEN and may_fail:
                return False
            error.hint = _with_kept(_VARIABLE if error.code.startswith("token_") else error.hint)
            raise
        except Unreachable as error:
            error.hint = _with_kept(error.hint)
            raise
        if published.outcome == "equivocation":
            self.tell(f"another file of seal {file.version.seal}, signed elsewhere, was there: --adopt it")
        return True


def _with_kept(hint: str | None) -> str:
    return _KEPT if hint is None else f"{hint}; {_KEPT}"


def _says_so(there: OriginFile | None, word: Word) -> bool:
    return (there is not None and word.topic in there.topics) is word.said
