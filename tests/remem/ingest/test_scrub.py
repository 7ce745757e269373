"""The allow-list: what passes, what becomes a placeholder, and what the vocabulary may not contain."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remem.ingest import names
from remem.ingest.scrub import MAX_CHARACTERS, PLACEHOLDERS, clauses, is_vocabulary, private_words, scrub
from remem.ingest.vocabulary import FRAME

PASSES = [
    ("words of the vocabulary", "Cannot open the file", "cannot open the file"),
    ("their regular forms", "stopped trying to rewrite cached entries", "stopped trying to rewrite cached entries"),
    ("an error class", "ModuleNotFoundError: x", "ModuleNotFoundError: X"),
    ("an error number", "ENOENT: no such file or directory", "ENOENT: no such file or directory"),
    ("a documented code", "error TS2322 and E0308 and SC2086", "error TS2322 and E0308 and SC2086"),
    ("an HTTP status in its place", "HTTP 404, then status 503", "HTTP 404, then status 503"),
    ("an option", "use of --force and -x", "use of --force and -x"),
    ("a public file", "in .gitignore or pyproject.toml", "in .gitignore or pyproject.toml"),
    ("a public name in quotes", "no module named 'yaml'", "no module named yaml"),
    ("a sign in quotes", "parse error near `('", "parse error near '('"),
    ("a spelling of its own", "a JSON document over HTTPS", "a JSON document over HTTPS"),
    ("a plural in brackets", "at most 1 arg(s)", "at most N arg(s)"),
]
HIDDEN = [
    ("a path", "open /srv/falconry/x.go", "open a path"),
    ("a relative path", "open falconry/x.go", "open a path"),
    ("a Windows path", "open C:\\Users\\zed\\x", "open a path"),
    ("a path with spaces", "open /Users/zed/My Project Files/x.txt now", "open a path now"),
    ("a path in the home", "open ~zed/x", "open a path"),
    ("an unknown file", "open secretplans.py", "open a file"),
    ("a URL", "fetch https://falconry.example/x?y=1", "fetch a URL"),
    ("an address", "mail zed@falconry", "mail an address"),
    ("a number", "line 42 of 1,000 in 3.5s", "line N of N in N"),
    ("an unknown word", "the falconry failed", "the X failed"),
    ("an unknown option", "option --falconry", "option an option"),
    ("the value of an option", "with --branch=falconry", "with --branch"),
    ("a quoted ordinary word", "cannot find 'release'", "cannot find X"),
    ("a quoted sentence", 'failed with "the plan is secret"', "failed with X"),
    ("an open quotation", 'failed with "the plan is', "failed with X"),
    ("a compound of common words", "on fix-shadow-branch", "on X"),
    ("camel case", "in readFile and FalconryError", "in X and X"),
    ("foreign letters", "the größe of 日本", "the X of X"),
    ("a letter that only looks common", "the pass\u0435d test", "the X test"),
    ("a branch called like a common word", "on branch release", "on branch X"),
    ("a user called like a common word", "denied for user test", "denied for user X"),
    ("a host called like a common word", "unable to reach host build: timeout", "unable to reach host X: timeout"),
    ("what a password is", "the password is open door policy", "the password is a secret"),
    ("what follows a token", "token: open door policy", "token: a secret"),
    ("a status that is none", "HTTP 418418", "HTTP N"),
    ("a short code in the middle", "G104: errors in room B204", "G104: errors in X"),
    ("a code with a private prefix", "ticket QZX2422 or QZX-242", "ticket X or X"),
]


@pytest.mark.parametrize(("text", "expected"), [row[1:] for row in PASSES], ids=[row[0] for row in PASSES])
def test_public_words_pass(text: str, expected: str) -> None:
    assert scrub(text).text == expected


@pytest.mark.parametrize(("text", "expected"), [row[1:] for row in HIDDEN], ids=[row[0] for row in HIDDEN])
def test_what_is_not_known_as_public_becomes_its_shape(text: str, expected: str) -> None:
    assert scrub(text).text == expected


def test_in_prose_a_capital_letter_makes_a_name() -> None:
    assert scrub("ask Grant and Key about the Field", prose=True).text == "ask X and X about the X"
    assert scrub("Field is missing", prose=True).text == "field is missing"


def test_the_words_of_the_folder_are_hidden_though_common() -> None:
    hidden = private_words("/home/build/release-server", [])
    assert scrub("the release server cannot build the image", hidden).text == "the X cannot X the image"


def test_the_words_of_paths_hosts_and_addresses_in_the_texts_are_hidden_too() -> None:
    hidden = private_words("", ["git@release.example.com:payload/filter.git failed in /srv/cluster/x.py"])
    assert {"release", "payload", "filter", "cluster"} <= hidden
    assert scrub("the payload filter of the cluster", hidden).text == "the X of the X"


def test_function_words_are_never_private() -> None:
    assert private_words("/the/and/of", ["/it/is"]) == frozenset()


def test_a_folder_that_everybody_has_is_private_only_where_the_event_happened() -> None:
    assert "tests" in private_words("/home/zed/tests", [])
    assert "tests" not in private_words("", ["in /home/zed/tests/x.py"])


@pytest.mark.parametrize(
    "word",
    """
    aaron adam alan albert alex alice amy andrea andrew angela anna anne anthony ben bill bob brad brian bruce carl
    carol charles chris claire claude craig dan daniel dave david dawn dean diana don donald doug drew ed eddie emily
    emma eric erin eva faith frank fred gary george gina grace grant greg guy hannah harry heidi helen henry hope
    hugo ian ivan jack jacob jake james jane jason jay jean jeff jennifer jerry jim joan joe john jon josh joy judy
    julia june justin karen kate keith ken kevin kim kyle lance larry laura lee leo lily linda lisa louis lucas lucy
    luke maria marie mark martha martin mary matt max may megan mia michael mike miles molly nancy ned nick nina noah
    nora norm olga oliver oscar pam pat paul penny peter phil pierce rachel ralph ray rich rob robert robin roger ron
    rose roy ruby ruth ryan sally sam sandy sara scott sean sharon sophie stan steve sue susan ted terry tim tina tom
    tony tyler victor wade walter ward warren wendy will
    smith jones brown wilson taylor baker carter cooper fisher hunter mason miller parker porter turner walker wright
    acme apollo atlas aurora falcon gemini hermes jupiter lotus mercury nimbus orion phoenix titan venus zeus
    berlin boston india london paris tokyo apple mango maple oak tiger wolf eagle red blue green
    """.split(),
)
def test_no_name_is_in_the_vocabulary(word: str) -> None:
    assert not is_vocabulary(word)
    assert word not in names.PROGRAMS | names.PACKAGES


def test_function_words_and_the_rest_are_lower_case_and_plain() -> None:
    for word in FRAME | names.OPTIONS - {"watchAll", "noEmit"}:
        assert word == word.lower()
        assert word.isascii()


@given(st.text())
def test_the_result_is_made_of_nothing_but_words_that_are_public(text: str) -> None:
    public = names.PROGRAMS | names.SUBCOMMANDS | names.FILES | names.ERROR_NAMES | names.IDENTIFIERS
    public |= names.PACKAGES | names.KEYWORDS | {f"--{one}" for one in names.OPTIONS}
    result = scrub(text).text
    for placeholder in (*PLACEHOLDERS, "path", "file", "URL", "address", "option", "secret", "an empty string"):
        result = result.replace(placeholder, " ")
    for token in result.split():
        word = token.strip("(),:")
        allowed = word in public or is_vocabulary(word.lower()) or not any(char.isalnum() for char in word)
        assert allowed or len(word) <= 3 or word.upper() == word, word


@given(st.text(alphabet=st.characters(codec="utf-8"), max_size=2_000))
def test_scrubbing_is_total_short_and_one_line(text: str) -> None:
    for clause in [text, *clauses(text)]:
        found = scrub(clause, private_words(text, [text]), prose=True)
        assert found.text.isprintable()
        assert found.text.isascii()
        # A placeholder is at most a few characters longer than what it stands for.
        assert len(found.text) <= 10 * MAX_CHARACTERS
        assert scrub(clause, private_words(text, [text]), prose=True) == found
