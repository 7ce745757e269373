"""Reading the report of a failed call: which of its lines says what went wrong, and who says so.

A report is a tool's output, often a screen full. `read_failure` finds the one line that names the fault, takes
off what stands around it (tags, times, log levels, the place in a source file) and keeps from that what is public:
the program that reports, the language of the file, the rule of a linter, the exit status.
Nothing here decides what may leave the machine: that is `remem.ingest.scrub`.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from remem.ingest import names

MAX_LINES: Final = 400
_NEVER: Final = -9

_LINE_END: Final = re.compile(r"[\r\n]+")
_ANSI: Final = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_STATUS: Final = re.compile(r"\b(?:exit(?:ed)?|returned?)\b[^\n\d]{0,24}?\b(?:code|status)\b:?\s*(\d{1,3})\b|^exit (\d{1,3})$", re.I)  # noqa: E501

# A person stopped the call: nothing failed.
_STOPPED: Final = re.compile(
    r"request interrupted by user|user doesn't want to|user rejected|user declined|user denied|rejected by user"
    r"|cancell?ed by (?:the )?user|user (?:chose|decided) not to|interrupted by (?:the )?user",
    re.I,
)

# Lines that never say what went wrong: banners, passed tests, commands, hints, source code, summaries.
_BESIDE: Final = re.compile(
    r"={2,}|-{3,}|ok\s|\?\s|\$ |\+ |> |>>> |\||[\^~]+|pass(?:ed)?\b|hint:|usage:|help:|info\b|debug\b|note:|tip:"
    r"|exit code|exit status|process exited|finished\b|found \d+ (?:error|warning|problem)s?\.?$|collected \d+|file \"|at "
    r"|from |\d+ (?:issues?|errors?|problems?|warnings?|failed|passing|failing)\b|error: task failed|task failed"
    r"|fail(?:\s+\S+\s+(?:[\d.]+s|\[[a-z ]+\]))?$|a complete log of this run|make(?:\[\d+\])?: \*\*\*|npm (?:err!|error) (?:code|errno|path|syscall)\b"
    r"|command failed\b|error command failed|failed to compile\b|build failed|\*|in:|import |string: |warning\b",
    re.I,
)
_FAULT: Final = re.compile(
    r"error|fatal|fail(?:ed|ure|s)?\b|can ?not|can't|could ?n[o']t|unable|not found|no such|denied|refused|undefined|invalid"
    r"|unknown|unexpected|unsupported|does ?n[o']t|missing|must|exceed|timed? ?out|conflict|no matches|not allowed|mismatch"
    r"|already exists|unrecognized|unrecognised|not installed|not recognized|is not|has not|was not|not set|unresolved|corrupt"
    r"|duplicate|deprecated|unused|not used|ineffectual|forbidden|unauthorized|illegal|bad |overflow|leak|deadlock|killed|panic"
    r"|too (?:many|long|large|few)|did not|ambiguous|incompatible|no module|parse error|broken|abort|nothing to|accepts|ignored",
    re.I,
)
_EXCEPTION: Final = re.compile(r"(?:[\w.]+\.)?([A-Z]\w*(?:Error|Exception|Warning|Exit|Interrupt))(?::\s|$)")

_TAG: Final = re.compile(r"\[[^\]\s]{1,24}\]\s*|\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d:\d\d\S*\s+|[✗✖×●❌›»•]\s*")
_LEVEL: Final = re.compile(r"(?:(?i:error|fatal|severe|warning|warn|fail|fehler)(?: in)?\s*[:!]|ERROR|FATAL|WARN)\s+(?=\S)")
_PLACE: Final = re.compile(r"([^\s:()\"'`]+\.([A-Za-z]{1,6}))(?::\d+(?::\d+)?:?|\(\d+(?:,\d+)?\):?)\s+(?:-\s+)?(?::\s+)?")
_SCRIPT: Final = re.compile(r"[^\s:]+: line \d+: |\S+?(?:\.(rb))?:\d+:in [`'][^']*': ")
_SPEAKER: Final = re.compile(r"(?:\S*/)?([a-z][\w.+-]{0,20})(?::\s+(?:line\s+)?\d+)?:\s+")
_EVAL: Final = re.compile(r"\(eval\)(?::\d+)?:\s*")
_NPM: Final = re.compile(r"npm (?:ERR!|error)\s+")
_PROMPT: Final = re.compile(r"^\s*(?:\[[^\]]*\]\s*)?\$ ([a-z][\w.+-]*)(?: ([a-z][a-z-]*)\b)?", re.M)
_RULE: Final = re.compile(r"[(\[]([A-Za-z][\w/-]+)[)\]]$")
_USAGE: Final = re.compile(r"^usage: (?:\S*/)?([a-z][\w.+-]*)(?: ([a-z][a-z-]*)\b)?", re.M | re.I)


class Failure(NamedTuple):
    """What a report says: who, where, what; None and "" where it does not say."""

    status: int | None
    program: str | None
    language: str | None
    rule: str | None
    message: str


class _Line(NamedTuple):
    score: int
    message: str
    program: str | None
    language: str | None


def is_stopped(report: str) -> bool:
    """Tell whether the report says that the person stopped the call."""
    return _STOPPED.search(report[:400]) is not None


def read_failure(report: str) -> Failure:
    """Read a report. `message` is "" where no line names a fault."""
    text = _ANSI.sub("", report)
    lines = [line for line in _LINE_END.split(text) if line.strip()][:MAX_LINES]
    status = _status(lines)
    best = _best(lines)
    if best is None:
        return Failure(status, None, None, None, "")
    rule = _RULE.search(best.message)
    known = rule is not None and rule[1] in names.RULES
    message = best.message[: rule.start()].strip() if rule is not None and known else best.message
    program = best.program or _program(text, best)
    return Failure(status, program, best.language, rule[1] if rule is not None and known else None, message)


def names_fault(text: str) -> bool:
    """Tell whether a text has a word in it that messages name a fault with."""
    return _FAULT.search(text) is not None


def shows_failure(report: str) -> bool:
    """Tell whether a report of surroundings shows a failure: a status other than 0, or a line that names a fault."""
    failure = read_failure(report)
    return bool(failure.status) or names_fault(failure.message)


def _status(lines: list[str]) -> int | None:
    for line in lines[:3] + lines[-2:]:
        found = _STATUS.search(line.strip())
        if found is not None and int(found[1] or found[2]) <= 255:
            return int(found[1] or found[2])
    return None


def _best(lines: list[str]) -> _Line | None:
    read = [_read_line(line) for line in lines]
    if any(line.startswith("Traceback (most recent call last)") for line in lines):
        # A traceback ends in what was raised.
        for line in reversed(read):
            if _EXCEPTION.match(line.message):
                return line
    best = max(read, key=lambda line: line.score, default=None)
    if best is not None and best.score <= 0:
        # A report of few lines has little else to say.
        telling = [line for line in read if line.score > _NEVER]
        best = telling[0] if 0 < len(telling) <= 3 else None
    return best


def _read_line(line: str) -> _Line:
    score = -1 if line.startswith(("\t", "  ")) else 0
    rest = line.strip()
    program = language = None
    if _BESIDE.match(rest):
        return _Line(_NEVER, rest, None, None)
    for _ in range(4):
        before = rest
        rest = _TAG.sub("", rest, count=1) if _TAG.match(rest) else rest
        if found := _NPM.match(rest):
            program, rest = "npm", rest[found.end() :]
        if found := _EVAL.match(rest):
            program, rest, score = "the shell", rest[found.end() :], score + 1
        if (found := _PLACE.match(rest)) and found[2].lower() in names.LANGUAGES:
            language, rest, score = names.LANGUAGES[found[2].lower()], rest[found.end() :], score + 2
        if found := _SCRIPT.match(rest):
            language, rest, score = "Ruby" if found[1] else "shell", rest[found.end() :], score + 1
        if (found := _SPEAKER.match(rest)) and found[1] in names.PROGRAMS:
            program, rest, score = program or found[1], rest[found.end() :], score + 1
        if found := _LEVEL.match(rest):
            program = program or ("git" if found[0].startswith("fatal:") else None)
            rest, score = rest[found.end() :], score + 1
        if rest == before:
            break
    if _BESIDE.match(rest):
        return _Line(_NEVER, rest, None, None)
    rule = _RULE.search(rest)
    score += 3 * bool(_FAULT.search(rest)) + 2 * bool(rule and rule[1] in names.RULES) + 2 * bool(_EXCEPTION.match(rest))
    return _Line(score, rest.strip(), program, language)


def _program(text: str, best: _Line) -> str | None:
    """Name who reports a line that does not say so: git, or the command whose output this is."""
    if usage := _USAGE.search(text):
        return _command(usage)
    for prompt in reversed(list(_PROMPT.finditer(text.partition(best.message)[0]))):
        if command := _command(prompt):
            return command
    return "git" if re.search(r"^hint: ", text, re.M) else None


def _command(found: re.Match[str]) -> str | None:
    if found[1] not in names.PROGRAMS:
        return None
    spoken = found[2] in names.SUBCOMMANDS or found[2] in ("test", "run", "build", "install", "lint", "check")
    return f"{found[1]} {found[2]}" if found[2] and spoken else found[1]
