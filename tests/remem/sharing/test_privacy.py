"""What holds a text back, and what does not."""

from pathlib import Path

import pytest

from remem.ingest.events import Event, read_events
from remem.ingest.sentence import read_event
from remem.sharing.privacy import Machine, findings, this_machine

MACHINE = Machine(frozenset({"annika", "thor", "annika holm"}))

HELD = {
    "a path from the root": ("It failed in /srv/data/build", "path"),
    "a path from a home": ("It failed in ~/work", "path"),
    "a path of another user's home": ("It failed in ~bob/work", "path"),
    "a relative path": ("It failed in ../secret-project/src", "path"),
    "a path inside a project": ("It failed in acme/billing/ledger.py", "path"),
    "a path of Windows": ("It failed in C:\\Users\\bob", "path"),
    "a share of Windows": ("It failed at \\\\server\\share", "path"),
    "an e-mail address": ("It was sent to bob.smith+x@mail.example", "e-mail"),
    "a user at a host": ("It logged in as bob@web01", "e-mail"),
    "a URL": ("It asked https://intern.example/x?y=1", "url"),
    "a URL of a database": ("It asked postgres://db/x", "url"),
    "a host of the internet": ("It asked api.acme-corp.com for it", "host"),
    "a host of a company": ("It asked build7.corp for it", "host"),
    "an address of version 4": ("It asked 10.1.2.3 for it", "address"),
    "an address of version 6": ("It asked fe80::1ff:fe23:4567:890a for it", "address"),
    "an address with a port": ("It asked 10.1.2.3:8443 for it", "address"),
    "an address behind a word": ("It asked host:10.1.2.3 for it", "address"),
    "a host with a port": ("It asked db.prod.acmecorp:5432 for it", "host"),
    "a long telephone number": ("It called +4915112345678 twice", "telephone"),
    "a telephone number in parts": ("It called +49 (151) 123-456-78 twice", "telephone"),
    "a password in a sentence": ("The password is hunter2 there", "credential"),
    "a short password": ("It ran with pass=hunter2 there", "credential"),
    "a password behind a prefix": ("It ran with DB_PASSWORD=hunter2 there", "credential"),
    "a bearer token": ("It sent Bearer abcdefghij there", "credential"),
    "a password in wide letters": (
        "It read \uff50\uff41\uff53\uff53\uff57\uff4f\uff52\uff44\uff1dhunter2 there",
        "credential",
    ),
    "an address in wide digits": ("It asked \uff11\uff10.1.2.3 for it", "address"),
    "an address of a card": ("The card 00:1b:44:11:3a:b7 was lost", "address"),
    "an identifier": ("The session 123e4567-e89b-12d3-a456-426614174000 was lost", "identifier"),
    "a telephone number": ("It printed +1 860-665-2368 twice", "telephone"),
    "the name of the user": ("It ran as Annika on that day", "name"),
    "the full name of the user": ("annika holm wrote it", "name"),
    "the name of the machine": ("It ran on thor, twice", "name"),
    "a password": ("It read password = hunter2 from it", "credential"),
    "a token in a sentence": ("The token: abcd was refused", "credential"),
    "a token of GitHub": ("It used ghp_16C7e42F292c6912E7710c838347Ae178B4a for it", "secret"),
    "a key of AWS": ("It used AKIAIOSFODNN7EXAMPLE for it", "secret"),
    "a web token": ("It used eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmN here", "secret"),
    "a private key": ("It began with -----BEGIN RSA PRIVATE KEY----- there", "secret"),
    "a random string": ("It used wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY there", "secret"),
    "a hash of a commit": ("It broke in 3f786850e387550fdab836ed7e6dc881de23001b there", "secret"),
    "a secret that asks to be let through": (
        "It used ghp_16C7e42F292c6912E7710c838347Ae178B4a here  # pragma: allowlist secret",
        "secret",
    ),
}

LEAVES = (
    "The build fails with a linker error while the cache of the old compiler is still there",
    "A test that passes alone fails in a run with others, since both write to one port",
    "Reading and/or writing the file fails while another program holds it",
    "The type checker calls `dict[str, int]` wrong where Python is older than version 3.9",
    "The flag --no-cache-dir was needed, and std::string was not",
    "A password that is empty is refused by the server, and no secret is logged",
    "The server on localhost answers at 127.0.0.1 and at ::1 alike",
    "Running as root hides that the folder is not writable",
    "The file package.json and the file setup.py disagree about the version",
    "Version 1.2.3 of the library returns None where version 1.2.2 raised",
    "The thorough test is slow",
)


@pytest.mark.parametrize(("text", "rule"), HELD.values(), ids=HELD.keys())
def test_what_names_a_place_a_person_or_a_secret_is_held_back(text: str, rule: str) -> None:
    assert rule in {found.rule for found in findings(text, MACHINE)}


@pytest.mark.parametrize("text", LEAVES)
def test_an_observation_leaves(text: str) -> None:
    assert findings(text, MACHINE) == ()


def test_a_finding_does_not_repeat_a_secret() -> None:
    secret = "ghp_16C7e42F292c6912E7710c838347Ae178B4a"
    found = [one.what for one in findings(f"It used {secret} there", MACHINE) if one.rule == "secret"]
    assert found
    assert not any(secret in what for what in found)


def test_this_machine_has_names_in_small_letters() -> None:
    names = this_machine().names
    assert names == frozenset(name.lower() for name in names)
    assert "root" not in names


def test_the_sentences_of_real_events_leave(shared_dir: Path) -> None:
    with (shared_dir / "events/events.jsonl").open("rb") as stream:
        found = [read_event(event, frozenset()) for _number, event in read_events(stream) if isinstance(event, Event)]
    sentences = [reading.sentence for reading in found if reading is not None and reading.sentence is not None]
    assert len(sentences) > 50
    assert [text for text in sentences if findings(text, Machine(frozenset()))] == []
