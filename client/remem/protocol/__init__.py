"""The protocol of Remem, version 1: pure functions from bytes, and a clock that the caller reads, to values.

This is the documented public library: PROTOCOL.md states the rules, and each module names the section that
it implements. Nothing here touches a file, a socket, a clock or a source of randomness.
"""

from remem.protocol.errors import Deferred, ProtocolError
from remem.protocol.evidence import Admission, Evidence, Policy, Statement, statements
from remem.protocol.file import OriginFile, Verdict, Verified, Version, accept, compose, digest_of, newest
from remem.protocol.judgement import judge
from remem.protocol.keys import PublicKey, SigningKey, self_test
from remem.protocol.records import (
    AnyRecord,
    Confirmation,
    Denial,
    Lesson,
    Record,
    Revocation,
    Seal,
    Unknown,
    parse_record,
    sign_record,
)
from remem.protocol.rules import RULES, Rules
from remem.protocol.state import (
    TRANSITIONS,
    Cause,
    Reading,
    State,
    StateEvent,
    event_between,
    lesson_state,
)
from remem.protocol.text import KNOWN_KINDS, Fault, lesson_hash, normal_text

__all__ = [
    "KNOWN_KINDS",
    "RULES",
    "TRANSITIONS",
    "Admission",
    "AnyRecord",
    "Cause",
    "Confirmation",
    "Deferred",
    "Denial",
    "Evidence",
    "Fault",
    "Lesson",
    "OriginFile",
    "Policy",
    "ProtocolError",
    "PublicKey",
    "Reading",
    "Record",
    "Revocation",
    "Rules",
    "Seal",
    "SigningKey",
    "State",
    "StateEvent",
    "Statement",
    "Unknown",
    "Verdict",
    "Verified",
    "Version",
    "accept",
    "compose",
    "digest_of",
    "event_between",
    "judge",
    "lesson_hash",
    "lesson_state",
    "newest",
    "normal_text",
    "parse_record",
    "self_test",
    "sign_record",
    "statements",
]
