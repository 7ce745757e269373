"""What the commons refuses, beside the bytes that break the protocol: one class a reason, one stable code a class.

The codes are those of PROTOCOL.md, section 12. `problems.py` gives each its status over HTTP.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from remem.protocol import Version


class CommonsError(Exception):
    """Something that the commons does not do, said to whoever asked for it."""

    code: ClassVar[str]


class NameForm(CommonsError):
    """A file is asked for by something that is no key and no origin."""

    code = "name_form"


class NameMismatch(CommonsError):
    """A file is published under the name of another key."""

    code = "name_mismatch"


class FileUnknown(CommonsError):
    """No file of that name is held."""

    code = "file_unknown"


class LessonUnknown(CommonsError):
    """Nothing is held about the lesson of that hash."""

    code = "lesson_unknown"


class OriginCollision(CommonsError):
    """Two keys have the origin that was asked for; their files are told apart by key."""

    code = "origin_collision"

    def __init__(self, origin: str, keys: Sequence[str]) -> None:
        super().__init__(f"expected one key of origin {origin}, got {len(keys)}; ask by key")
        self.keys = tuple(keys)


class Superseded(CommonsError):
    """The file that is held stands, and not the one that came."""

    def __init__(self, message: str, held: Version) -> None:
        super().__init__(message)
        self.held = held


class OlderFile(Superseded):
    """A newer file of the key is held."""

    code = "older_file"


class Equivocation(Superseded):
    """Another file of the same seal is held, and its digest is the larger."""

    code = "equivocation"


class TokenError(CommonsError):
    """A request lacks a token that is good for it."""


class TokenMissing(TokenError):
    """A token is needed, and none came."""

    code = "token_missing"


class TokenUnknown(TokenError):
    """This commons did not make the token."""

    code = "token_unknown"


class TokenRevoked(TokenError):
    """The token was revoked."""

    code = "token_revoked"


class TokenBound(CommonsError):
    """The token is not good for this key."""

    code = "token_bound"


class CompressedBody(CommonsError):
    """A file came in a content coding; it is stored as its bytes are."""

    code = "compressed_body"


class BodyTimeout(CommonsError):
    """A file did not arrive in time."""

    code = "body_timeout"


class BodyIncomplete(CommonsError):
    """The connection broke off before the file was whole."""

    code = "body_incomplete"


class ParameterForm(CommonsError):
    """A parameter of the request has another form."""

    code = "parameter_form"


class RouteUnknown(CommonsError):
    """There is no such route."""

    code = "route_unknown"


class MethodRefused(CommonsError):
    """The route knows other methods."""

    code = "method_refused"


class StoreUnavailable(CommonsError):
    """The database does not do now what was asked of it."""

    code = "store_unavailable"


class Internal(CommonsError):
    """An error of the commons itself."""

    code = "internal"
