"""What the commons refuses, beside the bytes that break the protocol: one class a reason, one stable code a class.

The codes are those of PROTOCOL.md, section 12. `web/problems.py` gives each its status over HTTP.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
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


class TokenExpired(TokenError):
    """The token's time is over."""

    code = "token_expired"


class TokenBound(CommonsError):
    """The token is not good for this key."""

    code = "token_bound"


class AdminNeeded(CommonsError):
    """The operator's acts need an admin token, and the token that came is none."""

    code = "admin_needed"


class AdminToken(CommonsError):
    """The token is for the operator's acts, and publishes nothing."""

    code = "admin_token"


class TokenIdUnknown(CommonsError):
    """No token has that id."""

    code = "token_id_unknown"


class NotAPeer(CommonsError):
    """This commons takes offers of its peers alone, and of whoever may publish."""

    code = "not_a_peer"


class Blocked(CommonsError):
    """This host does not keep the file of that key, for a reason of its own."""

    code = "blocked"

    def __init__(self, key: str, reason: str) -> None:
        super().__init__(f"expected a key whose file this host keeps, got {key}, which it blocks: {reason}")
        self.reason = reason


class OperatorKey(CommonsError):
    """The key is the operator's own, which is neither denied nor blocked."""

    code = "operator_key"


class OperatorFileFull(CommonsError):
    """The operator's own file has no room for one more record."""

    code = "operator_file_full"


class KeyRetired(CommonsError):
    """The operator's key withdrew for good, and says nothing any more."""

    code = "key_retired"


class CompressedBody(CommonsError):
    """A body came in a content coding; a file is stored as its bytes are."""

    code = "compressed_body"


class BodyTimeout(CommonsError):
    """A body did not arrive in time."""

    code = "body_timeout"


class RequestForm(CommonsError):
    """What came is no request of HTTP/1.1, or its head is too long."""

    code = "request_form"


class BodyIncomplete(CommonsError):
    """The connection broke off before the body was whole."""

    code = "body_incomplete"


class ComeAgain(CommonsError):
    """A request is refused for now.

    Attributes:
        seconds: when to come again.
    """

    def __init__(self, message: str, seconds: float) -> None:
        super().__init__(message)
        self.seconds = max(1, ceil(seconds))


class TooManyRequests(ComeAgain):
    """Too much came from this address, or by this token."""

    code = "too_many_requests"


class TooManyKeys(ComeAgain):
    """Too many keys that were never seen here came without a token."""

    code = "too_many_keys"


class Busy(ComeAgain):
    """More came at once than can be taken in."""

    code = "busy"


class QuerySize(CommonsError):
    """The query of a request is longer than any that this commons knows."""

    code = "query_size"


class NotReady(CommonsError):
    """The database is not of this release, or not yet."""

    code = "not_ready"


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
