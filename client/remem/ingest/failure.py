"""Reading the report of a failed call: which of its lines says what went wrong, and who says so.

A report is a tool's output, often a screen full. `read_failures` ranks the lines that name a fault, takes off
what stands around each (tags, times, log levels, the place in a source file) and keeps from that what is public:
the program that reports, the language of the file, the rule of a linter, the exit status.
Nothing here decides what may leave the machine: that is `remem.ingest.scrub`.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from remem.ingest import names

MAX_LINES: Final = 200
MAX_LINE: Final = 1_000
MAX_CANDIDATES: Final = 4


def _any_of(alternatives: str) -> re.Pattern[str]:
    """Compile alternatives, one or more a line, without regard to case."""
    return re.compile("|".join(alternatives.split()), re.IGNORECASE)


_ANSI: Final = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_LINE_END: Final = re.compile(r"[\r\n]+")
_STATUS: Final = re.compile(
    r"\b(?:exit(?:ed)?|returned?)\b[^\n\d]{0,24}?\b(?:code|status)\b:?\s*(\d{1,3})\b|^exit (\d{1,3})$", re.IGNORECASE
)

# A status and what went wrong, on one line.
_STATUS_HEAD: Final = re.compile(r"exit(?:ed)?(?: with)? (?:code|status):? \d{1,3}\s*[:;,.-]\s+(?=\S)", re.IGNORECASE)

# A person stopped the call: nothing failed.
_STOPPED: Final = re.compile(
    r"interrupted by (?:the )?user|user (?:doesn't want|does not want|rejected|declined|denied|chose not|decided not)"
    r"|(?:rejected|denied|declined|cancell?ed) by (?:the )?user",
    re.IGNORECASE,
)

# Lines that never say what went wrong: banners, passed tests, commands, hints, tables, summaries.
_BESIDE: Final = _any_of(r"""
    ={2,}
    -{3,}
    [|^~]
    \*\s
    [$+>]\s
    >>>\s
    (?:ok|\?|at|from)\s
    (?:in|hint|usage|help|note|tip|string):
    import\s
    file\s"
    (?:pass(?:ed)?|info|debug|warning|finished)\b
    exit(?:\scode|\sstatus|ed)
    process\sexited
    command\sfailed\b
    collected\s\d+
    found\s\d+\s(?:error|warning|problem)s?\b
    \d+\s(?:issues?|errors?|problems?|warnings?|failed|passing|failing)\b
    (?:error:?\s)?task\sfailed
    fail(?:\s+\S+\s+(?:[\d.]+s|\[[a-z\s]+\]))?$
    failed\sto\scompile\b
    build\sfailed
    error:\saborting\sdue\sto
    error\scommand\sfailed
    a\scomplete\slog\sof\sthis\srun
    make(?:\[\d+\])?:\s\*\*\*\s\[
    npm\s(?:err!|error)\s(?:code|errno|path|syscall)\b
    [^\t]*\t[^\t]*\t
""")
# Words with which messages name a fault.
_FAULT: Final = _any_of(r"""
    error|fatal|fail(?:ed|ure|s)?\b|panic|killed|abort|broken|corrupt|leak|deadlock|overflow
    can\s?not|can't|could\s?n[o']t|does\s?n[o']t|did\snot|unable|must|accepts
    (?:is|has|was)\snot|not\s(?:found|allowed|installed|set|used|recogni[sz]ed)|no\s(?:such|matches|module|rule)
    should\s|externally|nothing\sto|missing|denied|refused|rejected|forbidden|unauthorized|illegal|bad\s|invalid|incompatible|mismatch
    un(?:known|expected|supported|defined|recogni[sz]ed|resolved|used|terminated|closed|matched|balanced|handled)
    un(?:caught|safe|available|reachable)
    exceed|timed?\s?out|too\s(?:many|long|large|few)
    conflict|already\sexists|in\suse|duplicate|overwritten|ambiguous|deprecated|ineffectual|ignored|locked
    (?-i:\bE[A-Z]{4,}\b)
""")
_EXCEPTION: Final = re.compile(r"(?:[a-z_][\w.]*\.)?([A-Z]\w*(?:Error|Exception|Warning|Exit|Interrupt))(?=:\s|$)")

# What stands before the message.
_TAG: Final = re.compile(
    r"\[[^\]\s]{1,24}\]:?\s*|<[a-z_]+>|\*{3}\s+|\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d:\d\d\S*\s+"
    r"|[^\w\s\"'`(<\[{/~.$%@#&*+=|^?!:;,-]+\s*"
)
_LEVEL: Final = re.compile(
    r"(?:(?i:error|fatal|severe|warning|warn|fail)(?: in)?\s*[:!]|ERROR|FATAL|WARN|[EW]:)\s+(?=\S)"
)
_CODED: Final = re.compile(rf"(?:error|warning)\[({names.CODE})\]:\s+")
_PLACE: Final = re.compile(
    r"([^\s:()\"'`]+\.([A-Za-z]{1,6}))(?::\d+(?::\d+)?:?|\(\d+(?:,\d+)?\):?)\s+(?:-\s+)?(?::\s+)?"
)
_COLUMN: Final = re.compile(r"\d+:\d+\s+(?:error|warning)\s+(.+?)\s{2,}([\w@/-]+)$")
_SCRIPT: Final = re.compile(r"[^\s:]+: line \d+: |\S+?(?:\.(rb))?:\d+:in [`'][^']*': ")
_SPEAKER: Final = re.compile(r"(?:\S*/)?([a-z][\w.+-]{0,20})(?::\s+(?:line\s+)?\d+)?:\s+")
_NO_COMMAND: Final = re.compile(r"([\w.+-]+): (?:command )?not found$")
_EVAL: Final = re.compile(r"\(eval\)(?::\d+)?:\s*")
_NPM: Final = re.compile(r"npm (?:ERR!|error)\s+")
_RULE: Final = re.compile(r"[(\[]([A-Za-z][\w/-]+)[)\]]$")

# Who reports, where the line does not say it.
_PROMPT: Final = re.compile(r"^[ \t]*(?:\[[^\]\n]*\][ \t]*)?\$ ([a-z][\w.+-]*)(?: ([a-z][a-z-]*)\b)?", re.MULTILINE)
_USAGE: Final = re.compile(r"^usage: (?:\S*/)?([a-z][\w.+-]*)(?: ([a-z][a-z-]*)\b)?", re.MULTILINE | re.IGNORECASE)
_SPOKEN: Final = names.SUBCOMMANDS | frozenset(("build", "check", "install", "lint", "test"))

_NEVER: Final = -9
_OPENING: Final = 8


class Failure(NamedTuple):
    """What one line of a report says: who, where, what; None and "" where it does not say.

    `is_marked` tells that the line is marked as an error ("fatal:"), whatever its words are.
    """

    status: int | None
    program: str | None = None
    language: str | None = None
    rule: str | None = None
    message: str = ""
    is_marked: bool = False


class _Line(NamedTuple):
    score: int
    message: str
    program: str | None = None
    language: str | None = None
    rule: str | None = None
    is_marked: bool = False


def is_stopped(report: str) -> bool:
    """Tell whether the report says that the person stopped the call."""
    return _STOPPED.search(report[:400]) is not None


def names_fault(text: str) -> bool:
    """Tell whether a text has a word in it that messages name a fault with."""
    return _FAULT.search(text) is not None


def shows_failure(report: str) -> bool:
    """Tell whether a report shows a failure: a status other than 0, or a line that names a fault."""
    return any(failure.status or names_fault(failure.message) for failure in read_failures(report))


def read_failures(report: str) -> list[Failure]:
    """Read a report: one failure for each line that may name the fault, the likeliest first; at least one."""
    lines = _lines(report)
    text = "\n".join(lines)
    status = _status(lines)
    # A tool that has no exit status says what is wrong first, and then often quotes what it was given.
    ranked = _ranked(lines if status is not None else lines[:_OPENING])
    if not ranked:
        return [Failure(status)]
    return [
        Failure(
            status,
            line.program or _program(text, line.message),
            line.language,
            line.rule,
            line.message,
            line.is_marked,
        )
        for line in ranked[:MAX_CANDIDATES]
    ]


def _lines(report: str) -> list[str]:
    """Return the lines that are read: the first and the last ones, where a fault is told, and so much of each."""
    lines = [line[:MAX_LINE] for line in _LINE_END.split(_ANSI.sub("", report)) if line and not line.isspace()]
    return lines if len(lines) <= 2 * MAX_LINES else lines[:MAX_LINES] + lines[-MAX_LINES:]


def _status(lines: list[str]) -> int | None:
    for line in lines[:3] + lines[-2:]:
        found = _STATUS.search(line.strip())
        if found is not None and int(found[1] or found[2]) <= 255:
            return int(found[1] or found[2])
    return None


def _ranked(lines: list[str]) -> list[_Line]:
    read = [_read_line(line) for line in lines]
    if any(line.startswith("Traceback (most recent call last)") for line in lines):
        # A traceback ends in what was raised.
        raised = [line for line in reversed(read) if _EXCEPTION.match(line.message)]
        if raised:
            return raised[:1]
    telling = [line for line in read if line.score > 0]
    if not telling:
        # A report of few lines has little else to say.
        rest = [line for line in read if line.score > _NEVER]
        return rest[:1] if len(rest) <= 3 else []
    return sorted(telling, key=lambda line: -line.score)


def _read_line(line: str) -> _Line:
    rest = _STATUS_HEAD.sub("", line.strip())
    if found := _COLUMN.match(rest):
        return _Line(5, found[1], "eslint", None, found[2] if found[2] in names.RULES else None)
    if _BESIDE.match(rest):
        return _Line(_NEVER, rest)
    stripped = _stripped(rest)
    if not stripped.message or _BESIDE.match(stripped.message):
        return _Line(_NEVER, rest)
    message, rule = stripped.message, stripped.rule
    if (found := _RULE.search(message)) and found[1] in names.RULES:
        message, rule = message[: found.start()].strip(), found[1]
    if found := _EXCEPTION.match(message):
        message = message[found.start(1) :]
    score = stripped.score + 3 * names_fault(message) + 2 * bool(rule) + 2 * bool(found)
    return stripped._replace(score=score - line.startswith(("\t", "  ")), message=message, rule=rule)


def _stripped(rest: str) -> _Line:
    """Take off, layer by layer, what stands before the message."""
    score = 0
    program = language = rule = None
    is_marked = False
    before = ""
    while rest != before:
        before = rest
        if found := _CODED.match(rest):
            rule, program, score = found[1], program or "rustc", score + 1
        elif found := _TAG.match(rest):
            pass
        elif found := _NPM.match(rest):
            program = "npm"
        elif found := _EVAL.match(rest):
            program, score = "the shell", score + 1
        elif found := _NO_COMMAND.match(rest):
            return _Line(score + 1, f"command not found: {found[1]}", program, language, rule)
        elif (found := _PLACE.match(rest)) and found[2].lower() in names.LANGUAGES:
            language, score = names.LANGUAGES[found[2].lower()], score + 2
        elif (found := _SPEAKER.match(rest)) and found[1] in names.PROGRAMS:
            program, score = program or found[1], score + 1
        elif found := _SCRIPT.match(rest):
            language, score = "Ruby" if found[1] else "shell", score + 1
        elif found := _LEVEL.match(rest):
            program, score = program or ("git" if found[0].startswith("fatal:") else None), score + 1
            is_marked = is_marked or not found[0].lower().startswith("w")
        else:
            break
        rest = rest[found.end() :]
    return _Line(score, rest.strip(), program, language, rule, is_marked)


def _program(text: str, message: str) -> str | None:
    """Name who reports a line that does not say so: the command whose output this is, or git by its hints."""
    if usage := _USAGE.search(text):
        return _command(usage)
    for prompt in reversed(list(_PROMPT.finditer(text.partition(message)[0]))):
        if command := _command(prompt):
            return command
    return "git" if re.search(r"^hint: ", text, re.MULTILINE) else None


def _command(found: re.Match[str]) -> str | None:
    if found[1] not in names.PROGRAMS:
        return None
    return f"{found[1]} {found[2]}" if found[2] in _SPOKEN else found[1]
