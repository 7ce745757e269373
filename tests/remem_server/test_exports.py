"""A commons as a folder: what is written, what a reader makes of it, and how it comes back."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import httpx
import pytest
from sqlalchemy import select, update

from remem.commons.folder import stage_file
from remem.memory import trust
from remem.protocol import RULES, State
from remem_server.commands.common import PROGRAM
from remem_server.database import tables
from remem_server.database.engine import writing
from remem_server.opening.context import Commons
from remem_server.operator import acts
from remem_server.upkeep import exports
from remem_server.upkeep.audit import audit
from remem_server.upkeep.exports import Exported, Imported, export_files, import_files
from remem_testkit.command import Remem
from remem_testkit.files import NOW, draft_file, file, key, lesson, sentence
from remem_testkit.filled import AUTHOR, BLOCKED, DENIED, KNOWN, POISONED, READERS, fill, filled_commons, put
from remem_testkit.memories import Memory, put_files
from remem_testkit.postgres import DATABASES
from remem_testkit.server import HandClock, ServedCommons, prepared

Place = Callable[[str], dict[str, Any]]
LATER = file(key(AUTHOR), [lesson(sentence(9))], seal=int(NOW.timestamp()) + 9)


@pytest.fixture
def filled(tmp_path: Path, place: Place) -> Iterator[Commons]:
    with prepared(tmp_path / "data", **place("data")) as made:
        fill(made)
        yield made


@pytest.fixture(scope="module", params=DATABASES)
def whole(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Commons]:
    """Return a commons that nothing changes."""
    with filled_commons(tmp_path_factory.mktemp("commons") / "data", request.param) as made:
        yield made


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "site" / "commons"


def held(commons: Commons) -> dict[str, bytes]:
    """Return the files that a commons holds, by their names in a folder."""
    with commons.engine.connect() as connection:
        rows = connection.execute(select(tables.contents.c.key, tables.contents.c.data)).all()
    return {f"{row.key}.jsonl": row.data for row in rows}


def written(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.glob("*.jsonl")}


def index(folder: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((folder / "index").read_bytes())
    return found


def marks(folder: Path) -> dict[str, tuple[int, int]]:
    """Return what changes with every writing of a file."""
    paths = (path for path in folder.rglob("*") if path.is_file())
    return {path.name: (path.stat().st_ino, path.stat().st_mtime_ns) for path in paths}


# --- out ---


def test_an_export_is_every_file_and_the_index_as_http_answers_it(
    start: Callable[..., ServedCommons], folder: Path
) -> None:
    served = start()
    fill(served.commons)
    done = export_files(served.commons, folder)
    assert done == Exported(folder, files=8, written=8)
    assert written(folder) == held(served.commons)
    assert index(folder) == httpx.get(f"{served.url}/commons/index").json()
    descriptor = json.loads((folder / ".well-known/remem").read_bytes())
    assert descriptor == httpx.get(f"{served.url}/.well-known/remem").json()
    assert not list(folder.rglob("*.tmp"))


def test_nobody_publishes_to_an_export_and_nobody_needs_a_token(tmp_path: Path, folder: Path) -> None:
    options: list[dict[str, Any]] = [{"open": True}, {"private": True}]
    for number, option in enumerate(options):
        with prepared(tmp_path / str(number), **option) as commons:
            export_files(commons, folder)
        descriptor = json.loads((folder / ".well-known/remem").read_bytes())
        assert (descriptor["open"], descriptor["private"]) == (False, False)


def test_an_export_into_the_same_folder_touches_what_changed_alone(filled: Commons, folder: Path) -> None:
    export_files(filled, folder)
    before = marks(folder)
    assert export_files(filled, folder) == Exported(folder, files=8, unchanged=8)
    assert marks(folder) == before
    put(filled, LATER)
    assert export_files(filled, folder) == Exported(folder, files=8, written=1, unchanged=7)
    changed = {name for name, mark in marks(folder).items() if before[name] != mark}
    assert changed == {f"{key(AUTHOR).public.hex}.jsonl", "index"}


def test_an_export_that_was_cut_short_goes_on(whole: Commons, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    staged: list[str] = []

    def stage(where: Path, name: str, data: bytes) -> Path:
        if len(staged) == 3:
            raise KeyboardInterrupt
        staged.append(name)
        return stage_file(where, name, data)

    monkeypatch.setattr(exports, "stage_file", stage)
    with pytest.raises(KeyboardInterrupt):
        export_files(whole, folder)
    assert len(written(folder)) == 3
    assert not (folder / "index").exists()
    monkeypatch.undo()
    assert export_files(whole, folder) == Exported(folder, files=8, written=5, unchanged=3)
    assert written(folder) == held(whole)


def test_what_changes_during_an_export_is_in_it(filled: Commons, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exports, "PAGE", 2)
    new = [LATER, file(key(50), [lesson(sentence(50))])]

    def step(_done: int, _all: int) -> None:
        if new:
            put(filled, new.pop())

    export_files(filled, folder, step)
    assert written(folder) == held(filled)
    assert {(entry["key"], entry["digest"]) for entry in index(folder)} == versions(filled)
    assert len(index(folder)) == 9


def versions(commons: Commons) -> set[tuple[str, str]]:
    with commons.engine.connect() as connection:
        rows = connection.execute(select(tables.files.c.key, tables.files.c.digest).where(tables.files.c.held))
        return {(row.key, row.digest) for row in rows}


def test_an_export_only_reads_and_waits_for_nobody(filled: Commons, operator: Remem, folder: Path) -> None:
    with writing(filled.engine) as connection:
        # A writer that waits for its own end: whoever wanted to write would wait for it.
        connection.execute(update(tables.meta).values(changes=tables.meta.c.changes))
        assert operator("export", str(folder)).status == 0


def test_a_newer_file_in_the_folder_stays_and_is_told(whole: Commons, folder: Path) -> None:
    folder.mkdir(parents=True)
    put_files(folder, [LATER])
    done = export_files(whole, folder)
    name = f"{key(AUTHOR).public.hex}.jsonl"
    assert [(one.name, one.code) for one in done.left] == [(name, "older_file")]
    assert (folder / name).read_bytes() == LATER


@pytest.mark.parametrize(
    "there",
    [
        file(key(AUTHOR), [], seal=1),
        draft_file(key(AUTHOR), [lesson(sentence(9))]),
        LATER.replace(b"the", b"The", 1),
        file(key(2), [], seal=2**50),
        b"",
        b"garbage",
    ],
    ids=["an older one", "one without a seal", "one that is forged", "another key's", "nothing", "garbage"],
)
def test_anything_else_in_its_place_is_replaced(whole: Commons, folder: Path, there: bytes) -> None:
    folder.mkdir(parents=True)
    (folder / f"{key(AUTHOR).public.hex}.jsonl").write_bytes(there)
    assert export_files(whole, folder).left == []
    assert written(folder) == held(whole)


def test_a_link_in_its_place_is_replaced_and_not_followed(whole: Commons, folder: Path, tmp_path: Path) -> None:
    folder.mkdir(parents=True)
    (tmp_path / "mine").write_text("mine")
    (folder / f"{key(AUTHOR).public.hex}.jsonl").symlink_to(tmp_path / "mine")
    export_files(whole, folder)
    assert written(folder) == held(whole)
    assert (tmp_path / "mine").read_text() == "mine"


def test_files_of_blocked_keys_go_and_all_others_stay(whole: Commons, folder: Path) -> None:
    folder.mkdir(parents=True)
    strangers = file(key(70), [lesson(sentence(70))])
    put_files(folder, [file(key(BLOCKED), [lesson(sentence(8))]), strangers])
    (folder / "notes.txt").write_text("mine")
    assert export_files(whole, folder).removed == 1
    assert written(folder) == {**held(whole), f"{key(70).public.hex}.jsonl": strangers}
    assert (folder / "notes.txt").read_text() == "mine"


def test_a_file_of_a_key_that_was_blocked_goes_until_it_comes_again(filled: Commons, folder: Path) -> None:
    export_files(filled, folder)
    acts.block(filled, "command by the test", key(AUTHOR).public.hex, "It floods the commons.")
    acts.unblock(filled, "command by the test", key(AUTHOR).public.hex, None)
    assert export_files(filled, folder).removed == 1
    assert f"{key(AUTHOR).public.hex}.jsonl" not in written(folder)


def test_a_damaged_file_is_told_and_not_written(filled: Commons, folder: Path) -> None:
    with writing(filled.engine) as connection:
        of_author = tables.contents.c.key == key(AUTHOR).public.hex
        connection.execute(update(tables.contents).where(of_author).values(data=b"garbage"))
    done = export_files(filled, folder)
    assert [(one.name[:64], one.code) for one in done.left] == [(key(AUTHOR).public.hex, "damaged")]
    assert f"{key(AUTHOR).public.hex}.jsonl" not in written(folder)
    assert done.written == 7


# --- what a reader makes of it ---


@contextmanager
def static(folder: Path) -> Iterator[str]:
    """Hand a folder out by a plain web server, and yield its address."""

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_args: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder))) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Callable[[int], Memory]]:
    with ExitStack() as stack:

        def memory(number: int) -> Memory:
            made = Memory(tmp_path / f"memory-{number}", number)
            stack.callback(made.close)
            return made

        yield memory


def seen(memory: Memory) -> dict[str, object]:
    """Return what a memory makes of the lessons that it knows."""
    return {hash_: (reading.state, reading.counted) for hash_, reading in memory.readings([KNOWN, POISONED]).items()}


def test_a_memory_reads_a_static_host_as_it_reads_the_commons(
    start: Callable[..., ServedCommons], folder: Path, memory: Callable[[int], Memory]
) -> None:
    served = start()
    fill(served.commons)
    export_files(served.commons, folder)
    live, root, below = memory(20), memory(21), memory(22)
    report = live.pull(served.url)
    # Below `/commons/`, as a server has them, or at the address itself.
    with static(folder.parent) as url:
        assert below.pull(url).complete
    with static(folder) as url:
        told = root.pull(url)
        assert told.pinned == report.pinned == (served.commons.key.public.hex,)
        assert told.complete
        again = root.pull(url)
        assert (len(again.taken), again.current) == (0, len(report.taken))
    assert root.held_files() == below.held_files() == live.held_files() == held(served.commons)
    assert seen(root) == seen(live)
    assert seen(live)[KNOWN] == (State.COMMON, tuple(sorted(key(number).public.hex for number in READERS)))


def test_a_memory_reads_the_folder_itself(whole: Commons, folder: Path, memory: Callable[[int], Memory]) -> None:
    export_files(whole, folder)
    reader = memory(20)
    report = reader.pull(folder)
    assert report.complete
    assert report.refused == ()
    assert reader.held_files() == held(whole)
    assert reader.pull(folder).unchanged
    # The index names who was admitted. Whom to obey a folder tells nobody: anyone may have written into it.
    assert set(reader.reading(KNOWN).counted) == {key(number).public.hex for number in (*READERS, DENIED)}
    assert trust.everything(reader.db, "revoker") == ()


def test_a_memory_takes_up_what_an_export_has_anew(
    filled: Commons, folder: Path, memory: Callable[[int], Memory]
) -> None:
    export_files(filled, folder)
    reader = memory(20)
    with static(folder) as url:
        reader.pull(url)
        put(filled, LATER)
        export_files(filled, folder)
        assert [one.key for one in reader.pull(url).taken] == [key(AUTHOR).public.hex]


# --- in ---


@pytest.fixture
def other(tmp_path: Path, place: Place) -> Iterator[Commons]:
    """Return a commons that has nothing yet."""
    with prepared(tmp_path / "other", **place("other")) as made:
        yield made


def test_an_import_is_the_inverse_of_an_export(whole: Commons, other: Commons, folder: Path, tmp_path: Path) -> None:
    export_files(whole, folder)
    clock = HandClock()
    done = import_files(other.engine, folder, clock)
    assert done.outcomes == {"new": 8, "newer": 0, "unchanged": 0, "older": 0, "equivocation": 0}
    assert done.refused == []
    assert held(other) == held(whole)
    assert list(audit(other.engine, clock())) == []
    export_files(other, tmp_path / "again")
    assert written(tmp_path / "again") == written(folder)
    # Nobody is admitted by an import.
    assert {entry["principal"] for entry in index(tmp_path / "again")} == {None}


def test_an_import_that_was_cut_short_goes_on(whole: Commons, other: Commons, folder: Path) -> None:
    export_files(whole, folder)

    def step(done: int, _all: int) -> None:
        if done == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        import_files(other.engine, folder, HandClock(), step)
    done = import_files(other.engine, folder, HandClock())
    assert (done.outcomes["unchanged"], done.outcomes["new"]) == (3, 5)
    assert import_files(other.engine, folder, HandClock()).outcomes["unchanged"] == 8


def test_the_newest_stands_behind_an_import_too(filled: Commons, folder: Path) -> None:
    folder.mkdir(parents=True)
    newer = file(key(2), [], seal=int(NOW.timestamp()) + 5)
    same_seal = [file(key(AUTHOR), [lesson(sentence(number))]) for number in (31, 32)]
    put_files(folder, [newer, file(key(3), [], seal=1), same_seal[0]])
    before = held(filled)
    done = import_files(filled.engine, folder, HandClock())
    assert done.outcomes == {"new": 0, "newer": 1, "unchanged": 0, "older": 1, "equivocation": 1}
    assert held(filled)[f"{key(2).public.hex}.jsonl"] == newer
    assert held(filled)[f"{key(3).public.hex}.jsonl"] == before[f"{key(3).public.hex}.jsonl"]


def test_an_import_mends_a_damaged_file(filled: Commons, folder: Path) -> None:
    export_files(filled, folder)
    before = held(filled)
    with writing(filled.engine) as connection:
        of_author = tables.contents.c.key == key(AUTHOR).public.hex
        connection.execute(update(tables.contents).where(of_author).values(data=b"garbage"))
    import_files(filled.engine, folder, HandClock())
    assert held(filled) == before
    assert list(audit(filled.engine, NOW)) == []


FOREIGN: dict[str, tuple[bytes, str]] = {
    "garbage": (b"garbage\n", "not_an_object"),
    "nothing": (b"", "file_empty"),
    "too long": (b" " * (RULES.file_bytes + 1), "file_size"),
    "another key's": (file(key(40), []), "name_mismatch"),
    "of the day after tomorrow": (file(key(41), [], at=NOW.replace(day=4)), "deferred"),
    "blocked": (file(key(BLOCKED), [lesson(sentence(8))]), "blocked"),
}


@pytest.mark.parametrize(("data", "code"), FOREIGN.values(), ids=FOREIGN.keys())
def test_what_is_refused_is_told_with_its_code_and_costs_nothing_else(
    filled: Commons, folder: Path, data: bytes, code: str
) -> None:
    folder.mkdir(parents=True)
    names = {"blocked": BLOCKED, "deferred": 41}
    name = f"{key(names.get(code, 60)).public.hex}.jsonl"
    (folder / name).write_bytes(data)
    put_files(folder, [file(key(61), [])])
    done = import_files(filled.engine, folder, HandClock())
    assert [(one.name, one.code) for one in done.refused] == [(name, code)]
    assert done.outcomes["new"] == 1


def test_a_file_under_its_origin_is_taken(other: Commons, folder: Path) -> None:
    folder.mkdir(parents=True)
    (folder / f"{key(61).public.origin}.jsonl").write_bytes(file(key(61), []))
    assert import_files(other.engine, folder, HandClock()) == Imported(
        folder, outcomes={"new": 1, "newer": 0, "unchanged": 0, "older": 0, "equivocation": 0}
    )


# --- as commands ---


def test_the_commands_say_what_they_did(filled: Commons, operator: Remem, folder: Path) -> None:
    assert operator("export", str(folder)).out == "8 files: 8 written, 0 unchanged, 0 of blocked keys removed\n"
    ended = operator("export", str(folder), "--json")
    assert ended.document == {
        "folder": str(folder),
        "files": 8,
        "written": 0,
        "unchanged": 8,
        "removed": 0,
        "left": [],
    }
    ended = operator("import", str(folder))
    assert (ended.status, ended.out) == (0, "0 new, 0 newer, 8 unchanged, 0 older, 0 equivocation\n")


def test_what_is_left_is_told_and_ends_with_partly_done(filled: Commons, operator: Remem, folder: Path) -> None:
    folder.mkdir(parents=True)
    put_files(folder, [LATER])
    ended = operator("export", str(folder))
    assert ended.status == 5
    assert ended.out.splitlines()[1].startswith(f"{key(AUTHOR).public.hex}.jsonl older_file: expected seal ")
    (folder / f"{key(60).public.hex}.jsonl").write_bytes(b"garbage \x1b[2J\n")
    ended = operator("import", str(folder))
    assert ended.status == 5
    assert ended.err == f"{PROGRAM}: error: expected to take every file, got 1 file refused\n"
    assert f"{key(60).public.hex}.jsonl " in ended.out
    assert "\x1b" not in ended.out


def test_the_folder_of_a_commons_is_never_handed_out(operator: Remem, filled: Commons) -> None:
    ended = operator("export", str(filled.settings.data))
    assert ended.status == 3
    assert "which has a commons' own data in it" in ended.err
    assert not (filled.settings.data / "index").exists()


def test_a_folder_above_that_of_a_commons_is_never_handed_out(operator: Remem, filled: Commons) -> None:
    above = filled.settings.data.parent
    (above / "link").symlink_to(above)
    for name in (above, above / "link", above / "data" / ".."):
        ended = operator("export", str(name))
        assert ended.status == 3
        assert "which has a commons' own data in it" in ended.err
    assert not (above / "index").exists()


@pytest.mark.parametrize("exists", [True, False])
def test_a_link_in_the_place_of_a_folder_is_not_followed(
    operator: Remem, filled: Commons, folder: Path, tmp_path: Path, exists: bool
) -> None:
    folder.mkdir(parents=True)
    programs = tmp_path / "programs"
    if exists:
        programs.mkdir()
        (programs / "remem").write_text("a program")
    (folder / ".well-known").symlink_to(programs)
    ended = operator("export", str(folder))
    assert ended.status == 3
    assert "got a link or a file" in ended.err
    assert programs.exists() is exists
    assert not exists or [found.read_text() for found in programs.iterdir()] == ["a program"]


@pytest.mark.parametrize(("name", "got"), [("missing", "no folder"), ("shop", "a folder without one")])
def test_a_folder_that_has_no_files_of_a_commons_is_told(
    filled: Commons, operator: Remem, tmp_path: Path, name: str, got: str
) -> None:
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "apples.txt").write_text("3")
    ended = operator("import", str(tmp_path / name))
    assert (ended.status, ended.out) == (1, "")
    first = ended.err.splitlines()[0]
    assert first == f"{PROGRAM}: error: expected the files of a commons in {tmp_path / name}, got {got}"
