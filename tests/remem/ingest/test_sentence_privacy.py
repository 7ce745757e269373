"""Nothing private survives into a sentence. What is private is planted or collected here, by means of this file.

None of the patterns that make sentences is used to judge them. Three ways of judging:

- canaries: words planted into every field and many positions, looked for in the sentence;
- non-interference: the sentence is the same whichever private word was planted, so it can tell nothing of it;
- the shared events: every word in them that is not one of the shipped ones, every part of their folders, and the
  names in them.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remem.ingest import names
from remem.ingest.events import Event, parse_event, read_events
from remem.ingest.scrub import is_vocabulary
from remem.ingest.sentence import read_event

CANARIES = [
    "Zuqaxi", "falconry", "mallory", "jdoe", "Ottoline", "kestrel", "acme", "corvid-7", "nightjar_prod", "HeronBank",
    "ghp_16C7e42F292c6912E7710c838347Ae178B4a", "AKIAIOSFODNN7EXAMPLE", "sk-live-4eC39HqLyjWDarjtT1zdp7dc",
    "hunter2", "xoxb-17653672481-19874698323-pdFZKVeTuE8sk7oOcHrzqqgy", "eyJhbGciOiJIUzI1NiJ9.e30.abc",
    "10.11.12.13", "fe80::1ff:fe23:4567:890a", "build7.corp.example", "deadbeefcafe", "0xDEADBEEF", "PROJ-4711",
    "1b9d6bcd-bbfd-4b2d-9b5d-ab8dfbbd4bed", "Müllerová", "山田太郎", "Ωmega",
]  # fmt: skip

POSITIONS = [
    "{}", "'{}'", '"{}"', "`{}`", "“{}”", "‘{}’", "«{}»", "({})", "[{}]", "<{}>", "{{{}}}", "{}:", "{},", "{}.", "{}!",
    "/home/{}/x.py", "/Users/{}/My Project/x.py", "C:\\Users\\{}\\x", "~{}/x", "~/{}", "./{}", "../{}/x", "{}/{}",
    "{}@example.com", "me@{}", "git@github.com:{}/{}.git", "https://{}.example.com/{}?q={}", "ssh://{}:22", "{}:8080",
    "https://user:{}@example.com/x", "{}.internal", "branch {}", "branch '{}'", "on branch {} now", "user {} denied",
    "for user {}", "host {} not found", "repository {} not found", "team {}", "from {} import x", "import {}",
    "password: {}", "password is {}", "token={}", "TOKEN={} failed", "export KEY={}", "Authorization: Bearer {}",
    "--{}", "--name={}", "--name {}", "-{}", "${}", "${{{}}}", "%{}%", "@{}", "#{}", "*{}*", "_{}_", "**{}**",
    "pre-{}", "{}-post", "pre_{}", "{}_post", "{}Error: failed", "{}.py:3:1: error: invalid", "{}.go:3: undefined: x",
    "[{}] error: failed", "{}: command not found", "{}: error: failed", "error in {}: failed", "cannot find {}",
    "cannot open file '{}': no such file", "No module named '{}'", "undefined: {}", "error: {} is not a file",
    "fatal: {}", "npm ERR! {}", "$ {}", "+ {}", "hint: {}", "{} failed", "failed {}", "{} is invalid and {} is missing",
    "one\n{}\nthree failed", "\t{}", "\x1b[31m{}\x1b[0m failed", "error\u200b{}", "{}\u00a0failed", "failed\r{}",
    "a|{}|b", "a;{};b", "a,{},b", "a\\{}", "…{}…", "{} - {}", "-- {}", "said \"I am {} and\"", "it's {}'s fault",
    "the {} branch is missing", "the {} server refused the connection", "error TS2322: Type '{}' is invalid",
    "error[{}]: mismatched types", "HTTP {}", "exit status {}", "line {}", "{} (errcheck)", "failed ({})",
]  # fmt: skip

EVERY_WAY = bool(os.environ.get("CI"))
FIELDS = ["title", "happened", "said", "agent_did", "expected", "text", "agent", "session", "cwd"]
BASE = {
    "title": "Bash: run the tests",
    "happened": "Exit code 1\nerror: could not open the file",
    "said": "no, the tests are slow",
    "agent_did": "Let me run the tests",
    "expected": "the tests to pass",
    "text": "error: the tests failed",
    "agent": "claude-code",
    "session": "s",
    "cwd": "/home/zed/work",
}


def _sentence(**fields: str) -> str:
    reading = read_event(parse_event(json.dumps(fields)))
    return "" if reading is None or reading.sentence is None else reading.sentence


# Which fields a kind is made of; the others are planted with the kind that is read most.
PLACES = [
    ("error", "title"), ("error", "happened"), ("error", "cwd"), ("error", "agent"), ("error", "session"),
    ("correction", "said"), ("correction", "agent_did"), ("surprise", "expected"), ("surprise", "happened"),
    ("environment", "text"),
]  # fmt: skip


def _sentences_with(word: str, position: str, turn: int) -> Iterator[tuple[str, str]]:
    """Plant a word in one of three ways, by turns; in all three where CI is set."""
    text = position.replace("{{", "\x01").replace("}}", "\x02").replace("{}", word)
    text = text.replace("\x01", "{").replace("\x02", "}")
    for kind, field in PLACES:
        ways = [text, f"{BASE[field]} {text}", f"{text} {BASE[field]}"]
        for planted in ways if EVERY_WAY else [ways[turn % 3]]:
            yield f"{kind}.{field}", _sentence(kind=kind, **{**BASE, field: planted})


def _parts(word: str) -> list[str]:
    """What of a canary would give it away: each of its runs of at least four letters and digits."""
    return list(re.findall(r"\w{4,}", word.lower().replace("_", " "))) or [word.lower()]


@pytest.mark.parametrize("canary", CANARIES)
def test_no_canary_survives_in_any_position_of_any_field(canary: str) -> None:
    made = told = 0
    for turn, position in enumerate(POSITIONS, CANARIES.index(canary)):
        for place, sentence in _sentences_with(canary, position, turn):
            made += 1
            told += bool(sentence)
            for part in _parts(canary):
                assert part not in sentence.lower(), (place, position, sentence)
    # The canaries are kept out of sentences, and not by making none.
    assert told > made * 2 / 3


# Ordinary words as names: nothing but their place tells that they are private.
ORDINARY = ["release", "scanner", "payload", "parser", "module", "worker", "session", "kernel", "network", "container"]


@pytest.mark.parametrize("word", ORDINARY)
def test_an_ordinary_word_is_private_where_it_names_the_folder(word: str) -> None:
    for cwd in (f"/home/zed/{word}", f"/home/{word}/x", f"/home/zed/my-{word}/src", f"C:\\Users\\zed\\{word}"):
        for text in (
            f"cannot open the {word} file",
            f"the {word} is missing and the {word}s are invalid",
            f"{word}: error",
        ):
            for kind in ("error", "correction", "surprise"):
                sentence = _sentence(kind=kind, title="Bash: x", happened=text, said=text, agent_did=text, cwd=cwd)
                assert word not in re.findall(r"\w+", sentence.lower()), (cwd, sentence)


@pytest.mark.parametrize("word", ORDINARY)
@pytest.mark.parametrize(
    "text",
    [
        "no such branch '{}'", "cannot find branch {}", "permission denied for user {}", "unable to reach host {}",
        "repository {} not found", "repository: {} is missing", "the project is called {} and is missing",
        "error: failed to open /srv/zed/my-{}-app and the {} is missing",
        "cannot resolve git@{}.example.com: the {} failed",
        "could not read \"{}\"", "unable to open `{}`", "cannot find {}.py", "cannot find a/{}", "password is {} error",
        "cannot find {}-main", "cannot find Main{}", "cannot find {}_main",
    ],
)  # fmt: skip
def test_an_ordinary_word_is_private_where_its_place_makes_it_a_name(word: str, text: str) -> None:
    sentence = _sentence(kind="error", title="Bash: x", happened=text.format(*[word] * 3))
    assert word not in re.findall(r"\w+", sentence.lower()), sentence


def test_what_the_machine_and_its_people_are_called_is_private_everywhere() -> None:
    event = parse_event(
        json.dumps({"kind": "error", "title": "Bash: x", "happened": "cannot find the parser of the worker"})
    )
    reading = read_event(event, ["Parser", "worker"])
    assert reading is not None
    assert reading.sentence is None or not re.search("parser|worker", reading.sentence)


# Words of no language: four letters that no vocabulary joins are in each.
private_word = st.builds(
    "{}{}{}".format, st.text("abcdeiounrst", min_size=1, max_size=6), st.just("zqxj"), st.text("aeiost", max_size=4)
)
private_name = st.one_of(
    private_word,
    private_word.map(str.capitalize),
    private_word.map(str.upper),
    st.tuples(private_word, private_word).map("-".join),
    st.tuples(private_word, private_word).map("_".join),
    st.tuples(private_word, st.integers(0, 99)).map(lambda pair: f"{pair[0]}{pair[1]}"),
)
around = st.lists(
    st.sampled_from("error cannot open the file of a test failed : ' \" ` ( ) / - . , ; \n".split(" ")), max_size=8
)


@given(
    around,
    private_name,
    st.sampled_from(["", "'", '"', "`", "/", "@", "-", "=", ":", "."]),
    around,
    st.sampled_from(FIELDS),
)
def test_no_random_word_survives(before: list[str], name: str, glue: str, after: list[str], field: str) -> None:
    text = " ".join([*before, f"{glue}{name}{glue}", *after])
    for kind in ("error", "correction", "surprise", "environment"):
        assert "zqxj" not in _sentence(kind=kind, **{**BASE, field: text}).lower()


@given(around, st.tuples(private_word, private_word), around, st.sampled_from(POSITIONS), st.sampled_from(FIELDS))
def test_the_sentence_is_the_same_whichever_private_word_it_hides(
    before: list[str], words: tuple[str, str], after: list[str], position: str, field: str
) -> None:
    for kind in ("error", "correction", "surprise"):
        found = {
            _sentence(kind=kind, **{**BASE, field: " ".join([*before, position.replace("{}", word), *after])})
            for word in words
        }
        assert len(found) == 1, found


# --- the shared events ---

PUBLIC = frozenset().union(
    names.PROGRAMS, names.SUBCOMMANDS, names.FILES, names.ERROR_NAMES, names.RULES, names.IDENTIFIERS, names.OPTIONS,
    names.PACKAGES, names.KEYWORDS, names.EXTENSIONS, names.TOOLS, map(str.lower, names.LANGUAGES.values()),
)  # fmt: skip

# Names of projects, firms, people and their code in those events, found by reading them, by their digests alone.
# Some of them are ordinary words.
SALT = b"what a name was"
NAMED = frozenset(
    """
    04e8ed7d31 0fdd57cb66 1328b15bd4 15b6ac0b73 2886efdb3f 2b7cb02a12 37c7d6ec74 397ccb6a68 3ccfd06fbc 4803f257f4
    506b6cf5a4 5361256166 76820c97f0 7c09c00316 8165f4422b 82ccd2b79d 8e6161ce97 97a7449b0d 9990f2ab9c 9dcea65eb1
    a2b6b858e6 ac56124bc6 ade87cefda b5f6e6674d b7a59343de b93e05b13a c4ffb6c681 d7a3ad3098 d815567ecf db77e03f36
    e3a0618ff8 f33835be9e f6392288a0
""".split()
)


def _squashed(word: str) -> str:
    return re.sub(r"[^a-z0-9]", "", word.lower())


SQUASHED_PUBLIC = frozenset(map(_squashed, PUBLIC))


def _is_named(word: str) -> bool:
    return blake2b(word.encode(), digest_size=5, key=SALT).hexdigest() in NAMED


def _inside(word: str) -> Iterator[str]:
    """Return a word and all runs of at least four letters in it, as a name may be part of a longer word."""
    yield word
    for start in range(len(word) - 3):
        for end in range(start + 4, len(word) + 1):
            yield word[start:end]


def _is_ordinary(word: str) -> bool:
    """Tell whether a word is shipped, so that everybody's sentences may hold it."""
    return is_vocabulary(word) or word in SQUASHED_PUBLIC or re.fullmatch(names.CODE, word.upper()) is not None


def _fields(event: Event) -> list[str]:
    said = (event.title, event.happened, event.said, event.agent_did, event.expected, event.text)
    return [*filter(None, said), event.cwd or "", event.session or ""]


def _words(text: str) -> set[str]:
    """Split a text into all its words, by plain splitting: paths by their parts, identifiers whole and by theirs."""
    found = set()
    for part in re.split(r"[^\w.-]+", text):
        found |= {_squashed(part), *re.findall(r"[a-z]+[0-9]*", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", part).lower())}
    return {word for word in found if len(word) > 1 and not word.isdigit()}


@pytest.fixture(scope="module")
def told(shared_dir: Path) -> list[tuple[Event, str]]:
    """Return the shared events that become a sentence, each with it."""
    with (shared_dir / "events" / "events.jsonl").open("rb") as stream:
        events = [event for _, event in read_events(stream) if isinstance(event, Event)]
    assert len(events) == 117
    readings = [(event, read_event(event)) for event in events]
    found = [(event, reading.sentence) for event, reading in readings if reading and reading.sentence]
    assert len(found) >= 97
    return found


def test_no_word_of_the_shared_events_survives_that_is_not_shipped_not_even_inside_another(
    told: list[tuple[Event, str]],
) -> None:
    private = {word for event, _ in told for text in _fields(event) for word in _words(text)}
    private = {word for word in private if not _is_ordinary(word)}
    assert len(private) > 500
    for event, sentence in told:
        for word in sentence.lower().split():
            if not (is_vocabulary(word.strip("(),:;.?")) or _is_ordinary(_squashed(word))):
                assert private.isdisjoint(_inside(_squashed(word))), (word, sentence)
        # Of the event's own folder, ordinary words neither.
        assert _words(event.cwd or "").isdisjoint(map(_squashed, sentence.split())), sentence


def test_no_name_of_the_shared_events_survives_in_any_sentence(told: list[tuple[Event, str]]) -> None:
    # Each of the names is there to be kept out.
    words = {word for event, _ in told for text in _fields(event) for word in _words(text)}
    assert sum(map(_is_named, words)) >= 28
    for _, sentence in told:
        for word in map(_squashed, sentence.split()):
            assert not any(map(_is_named, _inside(word))), (word, sentence)


def test_no_path_address_commit_or_long_number_survives_in_any_sentence(told: list[tuple[Event, str]]) -> None:
    for _, sentence in told:
        low = sentence.lower()
        assert "/" not in low.replace("encoding/json", "")
        assert "@" not in low
        assert not re.search(r"\b(?=\w*\d)[0-9a-f]{7,}\b", low)
        assert not re.search(r"\d{4,}", low)
