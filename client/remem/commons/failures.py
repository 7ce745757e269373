"""What went wrong on the way to a commons, in words that help whoever named the address."""

from __future__ import annotations

import json
import re
import shlex
import ssl
from collections.abc import Mapping
from typing import Final

from remem.commons.base import BLOCKED, BadAnswer
from remem.errors import Unreachable
from remem.protocol.errors import show

# What the library calls bytes that are not of TLS, by its versions.
_NO_TLS: Final = (
    "WRONG_VERSION_NUMBER", "HTTP_REQUEST", "UNKNOWN_PROTOCOL", "PACKET_LENGTH_TOO_LONG", "RECORD_LAYER_FAILURE",
)  # fmt: skip


def no_connection(target: str, error: Exception) -> Unreachable:
    """Word a connection that failed, or was not made."""
    failed = _tls_failure(error)
    if failed is None:
        return Unreachable(f"expected an answer from {target}, got {_words(error)}")
    if isinstance(failed, ssl.SSLCertVerificationError):
        got = failed.verify_message.lower().removesuffix(".")
        return Unreachable(f"expected a certificate that is good for {target}, got one that is not: {got}")
    # Those that are raised by the interpreter itself have none.
    reason = getattr(failed, "reason", None) or "no reason"
    if reason in _NO_TLS:
        hint = "if it has no TLS, its address begins with http://"
        return Unreachable(f"expected https at {target}, got an answer without TLS", hint)
    return Unreachable(f"expected https at {target}, got a failure of TLS: {reason.lower().replace('_', ' ')}")


def no_http(target: str, error: Exception) -> BadAnswer:
    """Word an answer that breaks HTTP."""
    if not str(error).startswith(("illegal status line", "illegal request line")):
        return BadAnswer("answer_form", f"expected an answer from {target}, got {_words(error)}")
    hint = "if it has TLS, its address begins with https://" if target.startswith("http:") else None
    return BadAnswer("answer_form", f"expected an answer from {target}, got something that is no HTTP", hint)


def no_commons(target: str, *, is_node: bool) -> BadAnswer:
    """Word an address that has no commons, and may have a node of gossip."""
    got, hint = "none", "check the address"
    if is_node:
        got, hint = "a node that is no commons", f"gossip with it: remem peers add {shlex.quote(target)}"
    return BadAnswer("no_commons", f"expected a commons at {target}, got {got}", hint)


def problem_of(body: bytes) -> Mapping[str, object]:
    """Read what a refusal says; nothing where it is no problem."""
    try:
        problem = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return problem if isinstance(problem, Mapping) else {}


def refusal_hint(target: str, code: str) -> str | None:
    """Say what helps against a refusal, where something does."""
    if code in ("token_missing", "token_unknown", "token_revoked", "token_expired"):
        return f"ask its operator for a token, then: remem login {shlex.quote(target)}"
    if code == "token_bound":
        return "a token belongs to the first key that published with it; each memory needs its own"
    if code == BLOCKED:
        return f"its operator keeps nothing of this key; to go there no more: remem logout {shlex.quote(target)}"
    return None


def _tls_failure(error: BaseException) -> ssl.SSLError | None:
    """Find the failure of TLS that a failure to connect comes from."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, ssl.SSLError):
        cause = cause.__cause__ or cause.__context__
    return cause


def _words(error: Exception) -> str:
    words = re.sub(r"^\[Errno -?[0-9]+\] ", "", str(error)).lower()
    return show(words, 120).strip("'\"").rstrip(".") or "a broken connection"
