"""The commands of gossip as a person types them, over real sockets."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from remem.commons.waiting import Patience
from remem.memory import places
from remem.memory.home import Home
from remem_gossip import dial, discovery, lan, push
from remem_testkit.command import Remem
from remem_testkit.files import file, key, lesson, sentence
from remem_testkit.nodes import MapNode, Peer
from remem_testkit.served import Served, served
from remem_testkit.server import serve

CONFLICT = "Exit code 125\ndocker: Error response from daemon: Conflict. The container name is already in use."
FREE = ("--allow-http", "--allow-private")


@pytest.fixture
def node() -> MapNode:
    """Return a node that holds one file, of now."""
    made = MapNode(clock=lambda: datetime.now(UTC))
    made.put(file(key(10), [lesson(sentence(0))], at=datetime.now(UTC) - timedelta(hours=1)))
    return made


@pytest.fixture
def peer(node: MapNode) -> Peer:
    """Return what answers for it."""
    return Peer(node)


@pytest.fixture
def there(peer: Peer) -> Iterator[Served]:
    """Let it answer on loopback."""
    with served(peer) as known:
        known.key = key(77).public.hex
        yield known


@pytest.fixture(autouse=True)
def loopback_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no name and no address lead beyond this machine: whoever is added is asked who it is."""

    def resolve(host: str, _port: int) -> Sequence[str]:
        if host != "127.0.0.1":
            raise OSError("nothing leads there in a test")
        return [host]

    monkeypatch.setattr(dial, "resolve_name", resolve)


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
    said = f"{there.url}: key {there.key}, takes files of those it knows\n"
    ended = remem("peers", "add", f"{there.url}/", *FREE)
    assert (ended.status, ended.out, ended.err) == (0, f"{there.url} is a peer now\n{said}", "")
    assert remem("peers", "add", there.url, *FREE).out == f"{there.url} was a peer already\n{said}"
    listed = remem("peers", "list").out.splitlines()
    assert listed[0].split() == ["peer", "from", "key", "answered", "kept", "failures", "next", "try"]
    assert listed[1].split() == [there.url, "you", there.key[:16], "never", "-", "0", "now"]
    assert remem("peers", "check").out == said
    ended = remem("peers", "remove", there.url)
    assert (ended.status, ended.out) == (0, f"{there.url} is no peer any more\n")
    ended = remem("peers", "remove", there.url)
    assert ended.status == 1
    assert "remem peers list" in ended.err


@pytest.mark.parametrize("command", ["check", "add"])
def test_a_peer_that_names_another_key_is_warned_of(remem: Remem, there: Served, command: str) -> None:
    words = [command] if command == "check" else [command, there.url, *FREE]
    remem("peers", "add", there.url, *FREE)
    there.key = key(78).public.hex
    ended = remem("peers", *words)
    assert (ended.status, ended.err) == (
        0,
        f"remem: warning: {there.url} names key {there.key}, and named {key(77).public.hex} before\n",
    )
    ended = remem("peers", *words)
    assert (ended.status, ended.err) == (0, "")


def test_whoever_adds_this_memory_itself_is_told_and_it_is_not_asked(
    remem: Remem, there: Served, node: MapNode
) -> None:
    there.key = remem("whoami", "--json").document["key"]
    itself = "it is this memory itself, and an exchange with it moves nothing"
    with served(Peer(node)) as again:
        again.key = there.key
        for one in (there, again):
            ended = remem("peers", "add", one.url, *FREE)
            assert (ended.status, ended.err) == (0, f"remem: warning: {one.url}: {itself}\n")
        assert remem("peers", "check").err.count(itself) == 2
        ended = remem("gossip")
        assert (ended.status, "remem peers add" in ended.err) == (1, True)
        assert (there.asked, again.asked) == ([], [])


def test_a_good_check_ends_the_rest_of_a_peer(remem: Remem, there: Served) -> None:
    remem("peers", "add", there.url, *FREE)
    there.cut_at = 0
    assert remem("gossip").status == 4
    ended = remem("gossip")
    assert ended.status == 4
    assert ended.err.splitlines() == [
        "remem: error: expected a peer that answered lately, got 1 peer that is left alone for a while",
        "remem: hint: remem gossip URL asks it anyway",
    ]
    assert remem("peers", "check").status == 4
    (peer,) = remem("peers", "list", "--json").document
    assert peer["standing"]["failures"] == 1
    there.cut_at = None
    assert remem("peers", "check").status == 0
    (peer,) = remem("peers", "list", "--json").document
    assert (peer["standing"]["failures"], peer["standing"]["next_try"]) == (0, None)
    assert remem("gossip").status == 0


def test_a_peer_that_is_removed_and_pulled_from_keeps_what_is_known_of_it(
    remem: Remem, there: Served, tmp_path: Path
) -> None:
    with serve(tmp_path / "data") as commons:
        assert remem("pull", commons.url).status == 0
        assert remem("peers", "add", commons.url, *FREE).status == 0
        (before,) = remem("peers", "list", "--json").document
        ended = remem("peers", "remove", commons.url)
        assert ended.out == f"{commons.url} stays a peer for as long as this memory pulls from it\n"
        (after,) = remem("peers", "list", "--json").document
    assert before["key"] == commons.commons.key.public.hex
    assert after == {**before, "source": "pull"}


def test_a_private_peer_is_noted_as_one(remem: Remem, tmp_path: Path) -> None:
    home = Home(Path(remem("whoami", "--json").document["home"]))
    with serve(tmp_path / "data", private=True, open=False) as commons:
        assert remem("peers", "add", commons.url, *FREE).status == 0
    with closing(home.connect()) as db:
        assert places.private_sources(db) == {commons.url}


def test_a_peer_that_names_the_key_of_another_is_warned_of_and_not_known_by_it(
    remem: Remem, there: Served, node: MapNode
) -> None:
    remem("peers", "add", there.url, *FREE)
    with served(Peer(node)) as other:
        other.key = there.key
        ended = remem("peers", "add", other.url, *FREE)
        assert ended.status == 0
        assert f"warning: {other.url} names key {there.key}, which {there.url} named before" in ended.err
        assert f"remem peers remove {there.url}" in ended.err
        keys = {peer["url"]: peer["key"] for peer in remem("peers", "list", "--json").document}
    assert keys == {there.url: there.key, other.url: None}


def test_a_peer_that_does_not_answer_is_added_all_the_same_with_a_warning(remem: Remem) -> None:
    silent = nobody()
    ended = remem("peers", "add", silent, *FREE)
    assert (ended.status, ended.out) == (0, f"{silent} is a peer now\n")
    assert ended.err.startswith(f"remem: warning: it did not say who it is: {silent}: peer_unreachable: ")
    assert "remem peers check" in ended.err
    (peer,) = remem("peers", "list", "--json").document
    assert (peer["url"], peer["key"], peer["standing"]["failures"]) == (silent, None, 0)


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
    (pushed,) = ended.out.splitlines()[2:]
    assert pushed == "pushed: stands at 1 of 2 peers that were asked; 1 did not take it: peer_unreachable"
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
    monkeypatch.setattr(discovery, "ASKING_PATIENCE", Patience(connect=0.05, read=0.05, whole=0.05))
    monkeypatch.setattr(push, "PATIENCE", Patience(connect=0.2, read=0.2, whole=0.2))
    monkeypatch.setattr(push, "SECONDS", 0.55)
    (tmp_path / "commons").mkdir()
    learn(remem)
    with ExitStack() as stack:
        for _number in range(6):
            silent = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
            remem("peers", "add", f"http://127.0.0.1:{silent.getsockname()[1]}", *FREE)
        ended = remem("share", str(tmp_path / "commons"))
    assert ended.status == 0
    words = "pushed: stands at 0 of 2 peers that were asked; 2 did not take it: peer_timeout"
    assert ended.out.splitlines()[-1] == words


def test_a_withdrawal_goes_to_peers_at_once_too(remem: Remem, there: Served, node: MapNode, tmp_path: Path) -> None:
    (tmp_path / "commons").mkdir()
    learn(remem)
    remem("peers", "add", there.url, *FREE)
    remem("share", str(tmp_path / "commons"))
    assert remem("withdraw", str(tmp_path / "commons")).status == 0
    own = remem("whoami", "--json").document["key"]
    assert {record.type for record in node.files[own].records} == {"revoke"}


def test_a_push_says_of_whom_it_did_not_take_why(remem: Remem, there: Served, peer: Peer, tmp_path: Path) -> None:
    (tmp_path / "commons").mkdir()
    learn(remem)
    remem("peers", "add", there.url, *FREE)
    peer.takes_offers = False
    said = remem("share", str(tmp_path / "commons")).out.splitlines()[-1]
    assert said == "pushed: stands at 0 of 1 peer that was asked; 1 takes files from its own peers alone"
    document = remem("share", str(tmp_path / "commons"), "--json").document["added"]["gossip"]
    assert document == {"stands": [], "asked": [there.url], "why": {there.url: "not_a_peer"}}


def test_where_there_are_peers_and_no_target_what_is_shared_goes_to_them(
    remem: Remem, there: Served, node: MapNode
) -> None:
    learn(remem)
    for command in ("share", "withdraw"):
        ended = remem(command)
        assert (ended.status, "none is known" in ended.err) == (2, True)
    remem("peers", "add", there.url, *FREE)
    own = remem("whoami", "--json").document["key"]
    assert remem("share", "--dry-run").status == 0
    assert own not in node.files
    ended = remem("share")
    assert (ended.status, ended.err) == (0, "")
    assert ended.out.splitlines()[1:] == ["pushed: stands at 1 of 1 peer that was asked"]
    assert {record.type for record in node.files[own].records} == {"lesson"}
    assert remem("withdraw").status == 0
    assert {record.type for record in node.files[own].records} == {"revoke"}


def test_what_has_no_target_and_no_peer_that_may_be_asked_goes_by_a_later_night(
    remem: Remem, node: MapNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    learn(remem)
    silent = nobody()
    remem("peers", "add", silent, *FREE)
    ended = remem("share")
    assert (ended.status, "1 did not take it: peer_unreachable" in ended.out) == (0, True)
    remem("gossip")
    later = "it goes to peers with a later remem sleep or remem gossip"
    assert remem("share").out.splitlines()[1:] == [f"no peer may be asked now: {later}"]
    with served(Peer(node)) as there:
        remem("peers", "add", there.url, *FREE)
        assert "1 of 1 that went stand there" in remem("sleep").out
    assert remem("whoami", "--json").document["key"] in node.files
    monkeypatch.setitem(sys.modules, "http_message_signatures", None)
    ended = remem("share")
    assert (ended.status, ended.err) == (0, f"remem: warning: {later}: pip install 'remem[gossip]'\n")


def test_a_memory_that_only_pulls_from_a_commons_shares_nothing_without_being_told_where(
    remem: Remem, tmp_path: Path
) -> None:
    with serve(tmp_path / "data") as commons:
        assert remem("pull", commons.url).status == 0
        assert [peer["source"] for peer in remem("peers", "list", "--json").document] == ["pull"]
        assert remem("share").status == 2


@pytest.mark.parametrize("command", ["share", "pull"])
def test_a_node_that_is_no_commons_is_told_as_one(remem: Remem, there: Served, command: str) -> None:
    ended = remem(command, there.url)
    assert ended.status == 4
    assert f"expected a commons at {there.url}, got a node that is no commons" in ended.err
    assert f"remem peers add {there.url}" in ended.err
    # It was no place to come back to.
    assert remem(command).status == 2


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
    code = "import sys, remem.cli.app; print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(run.stdout.split())
    assert "remem_gossip.commands" in loaded
    assert loaded.isdisjoint(
        {"httpcore", "ssl", "cryptography", "http_message_signatures", "zeroconf", "remem_gossip.dial"}
    )


def test_help_says_how_long_a_sleep_may_take_and_one_way_what_is_named(remem: Remem) -> None:
    assert "ten minutes at most" in " ".join(remem("sleep", "--help").out.split())
    for words in (["gossip"], ["peers", "add"], ["peers", "remove"]):
        usage = remem(*words, "--help").out.splitlines()[0]
        assert "URL" in usage


@pytest.mark.parametrize(
    ("program", "module"), [("remem", "remem.cli.main"), ("remem-server", "remem_server.__main__")]
)
def test_an_interrupt_ends_a_command_while_it_is_loaded(tmp_path: Path, program: str, module: str) -> None:
    # What is loaded is held up by a module that comes first and never ends.
    (tmp_path / "typer.py").write_text("import sys, time\nprint('loading', flush=True)\ntime.sleep(60)\n")
    environment = {"PYTHONPATH": str(tmp_path), "PATH": os.environ["PATH"]}
    code = f"import {module} as start; start.main()"
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as started:
        assert started.stdout is not None
        assert started.stdout.readline() == "loading\n"
        started.send_signal(signal.SIGINT)
        _out, err = started.communicate()
    assert (started.returncode, err) == (130, f"{program}: error: stopped\n")
