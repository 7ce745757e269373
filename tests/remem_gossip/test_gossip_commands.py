"""The commands of gossip as a person types them, over real sockets."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from remem.memory.home import Home
from remem_gossip import lan, push
from remem_testkit.command import Remem
from remem_testkit.files import file, key, lesson, sentence
from remem_testkit.nodes import MapNode, Peer
from remem_testkit.served import Served, served

CONFLICT = "Exit code 125\ndocker: Error response from daemon: Conflict. The container name is already in use."
FREE = ("--allow-http", "--allow-private")


@pytest.fixture
def node() -> MapNode:
    """Return a node that holds one file, of now."""
    made = MapNode(clock=lambda: datetime.now(UTC))
    made.put(file(key(10), [lesson(sentence(0))], at=datetime.now(UTC) - timedelta(hours=1)))
    return made


@pytest.fixture
def there(node: MapNode) -> Iterator[Served]:
    """Let it answer on loopback."""
    with served(Peer(node)) as known:
        known.key = key(77).public.hex
        yield known


def nobody() -> str:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return f"http://127.0.0.1:{listening.getsockname()[1]}"


def learn(remem: Remem) -> None:
    """Let a memory learn one lesson."""
    for session in ("monday", "tuesday"):
        event = {"kind": "error", "title": "Bash", "happened": CONFLICT, "cwd": str(Path.cwd()), "session": session}
        assert remem("remember", given=json.dumps(event).encode()).status == 0
    assert remem("sleep").status == 0


# --- peers ---


def test_a_peer_is_added_listed_checked_and_removed(remem: Remem, there: Served) -> None:
    assert remem("peers", "list").out == "no peer is known yet\n"
    ended = remem("peers", "add", f"{there.url}/", *FREE)
    assert (ended.status, ended.out) == (0, f"{there.url} is a peer now\n")
    assert remem("peers", "add", there.url, *FREE).out == f"{there.url} was a peer already\n"
    listed = remem("peers", "list").out.splitlines()
    assert listed[0].split() == ["peer", "from", "answered", "kept", "failures", "next", "try"]
    assert listed[1].split() == [there.url, "you", "never", "-", "0", "now"]
    assert remem("peers", "check").out == f"{there.url}: key {there.key}, takes files by token\n"
    there.key = key(78).public.hex
    assert f"named {key(77).public.hex} before" in remem("peers", "check").err
    ended = remem("peers", "remove", there.url)
    assert (ended.status, ended.out) == (0, f"{there.url} is no peer any more\n")
    ended = remem("peers", "remove", there.url)
    assert ended.status == 1
    assert "remem peers list" in ended.err


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        pytest.param(["http://commons.example"], "--allow-http", id="without TLS"),
        pytest.param(["https://127.0.0.1"], "--allow-private", id="this machine"),
        pytest.param(["https://[fd00::1]"], "--allow-private", id="a private network"),
        pytest.param(["http://10.0.0.1", "--allow-http"], "--allow-private", id="a private network without TLS"),
    ],
)
def test_what_a_peer_may_not_be_is_refused_with_what_allows_it(remem: Remem, words: list[str], hint: str) -> None:
    ended = remem("peers", "add", *words)
    assert ended.status == 2
    assert hint in ended.err
    assert remem("peers", "add", *words, hint, *(FREE if len(words) == 1 else ())).status == 0


@pytest.mark.parametrize(
    "words",
    [
        pytest.param(["commons.example"], id="no scheme"),
        pytest.param(["https://me:secret@commons.example"], id="a user"),
        pytest.param(["https://commons.example:99999"], id="a port that is none"),
        pytest.param(["http://commons.example/?q", "--allow-http"], id="a query"),
    ],
)
def test_no_option_is_named_that_would_not_help(remem: Remem, words: list[str]) -> None:
    ended = remem("peers", "add", *words)
    assert ended.status == 2
    assert "--allow" not in ended.err


def test_a_peer_that_says_nothing_is_told_with_the_reason(remem: Remem, there: Served) -> None:
    silent = nobody()
    remem("peers", "add", silent, *FREE)
    ended = remem("peers", "check")
    assert ended.status == 4
    assert ended.out.startswith(f"{silent}: peer_unreachable: ")
    remem("peers", "add", there.url, *FREE)
    assert remem("peers", "check").status == 5


def test_what_peers_publish_is_suggested_and_not_added(remem: Remem, there: Served) -> None:
    remem("peers", "add", there.url, *FREE)
    there.peers = [
        "https://Commons.Example/", "https://commons.example", there.url, "http://127.0.0.1:9/", "https://10.1.2.3",
        "ftp://x", "https://a@b", 7, None, "https://\x1b[31m.example",
    ]  # fmt: skip
    ended = remem("peers", "discover")
    assert ended.status == 0
    assert ended.out.splitlines() == [
        f"remem peers add http://127.0.0.1:9 --allow-http --allow-private  # published by {there.url}",
        f"remem peers add https://10.1.2.3 --allow-private  # published by {there.url}",
        f"remem peers add https://commons.example  # published by {there.url}",
    ]
    assert [peer["url"] for peer in remem("peers", "list", "--json").document] == [there.url]
    there.peers = [f"https://commons{number}.example" for number in range(500)]
    assert len(remem("peers", "discover", "--json").document) == 100
    there.peers = ()
    assert remem("peers", "discover").out == "nobody suggests a node that is not a peer already\n"


def test_the_local_network_is_asked_where_that_is_wanted_alone(remem: Remem, monkeypatch: pytest.MonkeyPatch) -> None:
    listened: list[float] = []

    def find(seconds: float) -> list[str]:
        listened.append(seconds)
        return ["http://192.168.1.5:8000", "not a url"]

    monkeypatch.setattr(lan, "find", find)
    assert remem("peers", "discover").status == 0
    assert listened == []
    ended = remem("peers", "discover", "--lan", "--seconds", "2")
    assert listened == [2.0]
    assert ended.out == (
        "remem peers add http://192.168.1.5:8000 --allow-http --allow-private  # in the local network\n"
    )


# --- gossip ---


def test_gossip_brings_and_takes_and_says_so(remem: Remem, there: Served, node: MapNode) -> None:
    ended = remem("gossip")
    assert ended.status == 1
    assert "remem peers add" in ended.err
    remem("peers", "add", there.url, *FREE)
    learn_without_sleep = remem("gossip")
    assert learn_without_sleep.status == 0
    assert learn_without_sleep.out == f"{there.url}: 1 new file and 0 newer came\n1 lesson of others came to mind\n"
    assert sentence(0) in remem("lessons").out
    ended = remem("gossip", there.url, "--json")
    assert ended.document["met"][0]["report"]["lacked"] == 0
    assert remem("gossip", "https://other.example").status == 1


def test_a_peer_that_is_named_and_silent_is_a_failure(remem: Remem, there: Served) -> None:
    silent = nobody()
    for url in (silent, there.url):
        remem("peers", "add", url, *FREE)
    ended = remem("gossip", silent)
    assert ended.status == 4
    assert f"{silent}: peer_unreachable" in ended.out
    assert remem("gossip", silent, there.url).status == 5
    # One of those that were chosen by themselves may be silent.
    assert remem("gossip").status == 0


def test_every_sleep_gossips_and_is_quiet_without_peers(remem: Remem, there: Served, node: MapNode) -> None:
    ended = remem("sleep", "--json")
    assert ended.document["added"] == {}
    quiet = remem("sleep")
    assert len(quiet.out.splitlines()) == 2
    remem("peers", "add", there.url, *FREE)
    ended = remem("sleep")
    assert (ended.status, ended.err) == (0, "")
    assert f"{there.url}: 1 new file and 0 newer came" in ended.out
    assert remem("sleep", "--json").document["added"]["gossip"]["met"][0]["code"] is None


def test_a_night_without_a_network_fails_no_sleep(remem: Remem) -> None:
    silent = nobody()
    remem("peers", "add", silent, *FREE)
    ended = remem("sleep")
    assert ended.status == 0
    assert f"{silent}: peer_unreachable" in ended.out
    assert "1 peer did not answer lately and will be asked again later" in remem("sleep").out


def test_a_file_of_the_own_key_at_a_peer_is_warned_of(remem: Remem, there: Served, node: MapNode) -> None:
    remem("peers", "add", there.url, *FREE)
    node.clock = lambda: datetime(2100, 1, 1, tzinfo=UTC)
    home = remem("whoami", "--json").document
    signer = Home(Path(home["home"])).signing_key()
    node.put(file(signer, [lesson(sentence(5))], at=datetime.now(UTC)))
    ended = remem("sleep")
    assert ended.status == 0
    assert "warning: foreign_seal: " in ended.err
    assert f"remem share {there.url} --adopt" in ended.err


# --- the push ---


def test_what_is_shared_goes_to_peers_at_once_and_that_is_one_line(
    remem: Remem, there: Served, node: MapNode, tmp_path: Path
) -> None:
    (tmp_path / "commons").mkdir()
    learn(remem)
    assert "pushed:" not in remem("share", str(tmp_path / "commons")).out
    remem("peers", "add", there.url, *FREE)
    remem("peers", "add", nobody(), *FREE)
    ended = remem("share", str(tmp_path / "commons"))
    assert ended.status == 0
    assert ended.out.splitlines()[-1] == "pushed: stands at 1 of 2 peers that were asked"
    own = remem("whoami", "--json").document["key"]
    assert own in node.files
    assert there.asked == ["/gossip/offer"]
    assert "pushed:" not in remem("share", str(tmp_path / "commons"), "--dry-run").out
    assert remem("share", str(tmp_path / "commons"), "--json").document["added"]["gossip"]["stands"] == [there.url]
    # No peer is blamed for not having been there at that moment.
    assert {peer["standing"]["failures"] for peer in remem("peers", "list", "--json").document} == {0}


def test_a_share_does_not_wait_for_peers_that_say_nothing(
    remem: Remem, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(push, "SECONDS", 0.4)
    monkeypatch.setattr(push, "_ANSWER_SECONDS", 0.3)
    (tmp_path / "commons").mkdir()
    learn(remem)
    with ExitStack() as stack:
        for _number in range(6):
            silent = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
            remem("peers", "add", f"http://127.0.0.1:{silent.getsockname()[1]}", *FREE)
        ended = remem("share", str(tmp_path / "commons"))
    assert ended.status == 0
    assert ended.out.splitlines()[-1] == "pushed: stands at 0 of 2 peers that were asked"


def test_a_withdrawal_goes_to_peers_at_once_too(remem: Remem, there: Served, node: MapNode, tmp_path: Path) -> None:
    (tmp_path / "commons").mkdir()
    learn(remem)
    remem("peers", "add", there.url, *FREE)
    remem("share", str(tmp_path / "commons"))
    assert remem("withdraw", str(tmp_path / "commons")).status == 0
    own = remem("whoami", "--json").document["key"]
    assert {record.type for record in node.files[own].records} == {"revoke"}


# --- without the extra ---


def test_without_the_extra_the_commands_are_there_and_say_what_brings_it(
    remem: Remem, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    remem("peers", "add", "https://commons.example")
    monkeypatch.setitem(sys.modules, "http_message_signatures", None)
    for words in (["gossip"], ["peers", "list"], ["peers", "add", "https://other.example"], ["peers", "discover"]):
        ended = remem(*words)
        assert ended.status == 1
        assert "pip install 'remem[gossip]'" in ended.err
    assert remem("peers", "add", "--help").status == 0
    ended = remem("sleep")
    assert ended.status == 0
    assert "pip install 'remem[gossip]'" in ended.err
    (tmp_path / "commons").mkdir()
    assert remem("share", str(tmp_path / "commons")).status == 0


def test_the_command_starts_without_anything_of_the_network() -> None:
    code = "import sys, remem.cli.main; print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(run.stdout.split())
    assert "remem_gossip.commands" in loaded
    assert loaded.isdisjoint(
        {"httpcore", "ssl", "cryptography", "http_message_signatures", "zeroconf", "remem_gossip.dial"}
    )
