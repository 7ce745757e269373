"""What must not leave: secrets, and what names a person, a machine or a place on it.

Every text is scanned once more before it is signed, whoever wrote it: detect-secrets finds what looks like a
secret, and rules of our own find paths, addresses, hosts and the names of this machine and of who works on it.
Letters of other widths and forms are read as the plain ones too. A finding holds the text back. The rules rather
hold back too much: its owner sees why, and nothing is lost.
"""

from __future__ import annotations

import ipaddress
import os
import pwd
import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from typing import Final

from remem.sleep.night import machine_names

# Names that so many machines and accounts have that they name none.
_COMMON_NAMES: Final = frozenset(
    (
        "admin app build builder ci debian default dev docker guest home localhost node root runner server test"
        " ubuntu user"
    ).split()
)
_TOP_LEVEL: Final = (
    "com|org|net|io|dev|app|ai|co|edu|gov|mil|info|biz|cloud|local|localdomain|internal|intranet|lan|corp|home|arpa"
    "|onion|de|uk|fr|nl|eu|ca|au|jp|cn|br|ru|es|fi|dk|ch|cz|kr|se"
)
_RULES: Final = (
    ("url", re.compile(r"\b[a-z][a-z0-9+.-]*://\S+", re.IGNORECASE)),
    ("e-mail", re.compile(r"[\w.+%-]+@[a-z][\w-]*(?:\.[\w-]+)*", re.IGNORECASE)),
    ("path", re.compile(r"(?<![\w./])(?:~[\w-]*|\.{1,2})?/[\w.@+-]+(?:/[\w.@+-]*)+|~[\w-]*/[\w.@+-]+")),
    ("path", re.compile(r"(?<![\w/])[\w.@-]+(?:/[\w.@-]+){2,}")),
    ("path", re.compile(r"\b[a-z]:[\\/]|\\\\[\w.-]+\\", re.IGNORECASE)),
    ("host", re.compile(rf"(?<![\w.-])(?:[a-z0-9-]+\.)+(?:{_TOP_LEVEL})\b(?!\()", re.IGNORECASE)),
    ("host", re.compile(r"(?<![\w.-])(?:[a-z0-9-]+\.){2,}[a-z][a-z0-9-]*:[0-9]{2,5}(?![\w.])", re.IGNORECASE)),
    ("identifier", re.compile(r"\b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b", re.IGNORECASE)),
    ("address", re.compile(r"\b(?:[0-9a-f]{2}[:-]){5}[0-9a-f]{2}\b", re.IGNORECASE)),
    ("telephone", re.compile(r"(?<![\w.])\+?\(?[0-9]{2,4}\)?[ .-][0-9]{3,4}[ .-][0-9]{3,5}(?!\w)")),
    ("telephone", re.compile(r"(?<!\w)\+[0-9](?:[ .()/-]{0,2}[0-9]){8,14}(?!\w)")),
    (
        "credential",
        re.compile(
            r"(?<![a-z0-9])(?:password|passwd|pwd|passphrase|secret|token|api[_-]?key|access[_-]?key)\b"
            r"\s*[=:]\s*[^\s,;]+",
            re.IGNORECASE,
        ),
    ),
    ("credential", re.compile(r"(?<![a-z0-9])(?:password|passwd|pwd|passphrase)\s+is\s+[^\s,;]+", re.IGNORECASE)),
    ("credential", re.compile(r"(?<![a-z0-9])pass\s*=\s*[^\s,;=]+", re.IGNORECASE)),
    ("credential", re.compile(r"\bbearer\s+[\w.~+/=-]{8,}", re.IGNORECASE)),
)
_ADDRESS_LIKE: Final = re.compile(
    r"(?<![\w.])[0-9]{1,3}(?:\.[0-9]{1,3}){3}(?!\w|\.[0-9])|(?<![\w.:])[0-9a-f]*(?::[0-9a-f]*){2,7}(?![\w:])",
    re.IGNORECASE,
)
_LONG_WORD: Final = re.compile(r"[A-Za-z0-9+/_=-]{16,}")


@dataclass(frozen=True, slots=True)
class Finding:
    """Why a text stays.

    Attributes:
        rule: the rule that it meets.
        what: the words that meet it; for a secret, only what sort of secret it looks like.
    """

    rule: str
    what: str


@dataclass(frozen=True, slots=True)
class Machine:
    """The names of a machine and of who works on it."""

    names: frozenset[str]


@cache
def this_machine() -> Machine:
    """Read the names of this machine and of whoever runs this."""
    names = set(machine_names())
    names |= {name.partition(".")[0] for name in names}
    # An account without an entry, as in a container, has no full name to leak.
    with suppress(KeyError, OSError):
        names.add(pwd.getpwuid(os.getuid()).pw_gecos.partition(",")[0])
    return Machine(frozenset(name.lower() for name in names if len(name) > 1 and name.lower() not in _COMMON_NAMES))


def findings(text: str, machine: Machine) -> tuple[Finding, ...]:
    """Return every reason for which a text stays, each once; none lets it leave."""
    forms = dict.fromkeys((text, unicodedata.normalize("NFKC", text)))
    return tuple(dict.fromkeys(finding for form in forms for finding in _findings(form, machine)))


def _findings(text: str, machine: Machine) -> list[Finding]:
    found = [Finding(rule, match.group()) for rule, form in _RULES for match in form.finditer(text)]
    found += [Finding("address", word) for word in _ADDRESS_LIKE.findall(text) if _is_address(word)]
    lower = text.lower()
    for name in sorted(machine.names):
        if re.search(rf"(?<!\w){re.escape(name)}(?!\w)", lower):
            found.append(Finding("name", name))
    found += [Finding("secret", what) for what in _secrets(text)]
    return found


def _is_address(word: str) -> bool:
    try:
        address = ipaddress.ip_address(word)
    except ValueError:
        return False
    return not (address.is_loopback or address.is_unspecified)


def _secrets(text: str) -> Iterator[str]:
    for name, looks_like in _detectors():
        if looks_like(text):
            yield name


@cache
def _detectors() -> tuple[tuple[str, Callable[[str], bool]], ...]:
    """Make every detector once; they take a moment to load, so only what shares loads them."""
    from detect_secrets.core.plugins.util import get_mapping_from_secret_type_to_class
    from detect_secrets.plugins.base import BasePlugin
    from detect_secrets.plugins.high_entropy_strings import HighEntropyStringsPlugin

    detectors: list[tuple[str, Callable[[str], bool]]] = []
    classes: Mapping[str, Callable[[], BasePlugin]] = get_mapping_from_secret_type_to_class()
    for name, plugin_class in sorted(classes.items()):
        plugin = plugin_class()
        if isinstance(plugin, HighEntropyStringsPlugin):
            detectors.append((name, _entropy(plugin.calculate_shannon_entropy, plugin.entropy_limit)))
        else:
            detectors.append((name, _pattern(plugin.analyze_string)))
    return tuple(detectors)


# Its own search for random strings asks for quotation marks around them, which a sentence need not have.
def _entropy(measure: Callable[[str], float], limit: float) -> Callable[[str], bool]:
    return lambda text: any(measure(word) > limit for word in _LONG_WORD.findall(text))


def _pattern(search: Callable[[str], Iterator[object]]) -> Callable[[str], bool]:
    return lambda text: any(True for _found in search(text))
