"""What a person meets when a command cannot do what was asked: one tree, one exit code a branch.

A message is lower case, has no full stop, and says what was expected and what came; a hint says what helps.
Bytes of a peer that break the protocol are another tree: `remem.protocol.errors`.
"""

from __future__ import annotations

from typing import ClassVar


class RememError(Exception):
    """A failure that is told to the person; the command ends with `exit_code`."""

    default_exit_code: ClassVar[int] = 1

    def __init__(self, message: str, hint: str | None = None, exit_code: int | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.exit_code = self.default_exit_code if exit_code is None else exit_code


class Usage(RememError):
    """The command was called in a way that it does not know."""

    default_exit_code = 2


class Refused(RememError):
    """A rule forbids what was asked: nothing was done."""

    default_exit_code = 3


class Unreachable(RememError):
    """A commons did not answer."""

    default_exit_code = 4


class Partly(RememError):
    """Some of what was asked is done, and the message says what is not."""

    default_exit_code = 5
