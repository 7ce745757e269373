"""A folder as a commons: what it reads, what it writes, and what it leaves alone."""

import errno
import multiprocessing
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from remem.commons import CommonsRefused, FolderCommons
from remem.commons.base import INDEX_MOST
from remem.errors import Unreachable
from remem.protocol import RULES, Version, accept, digest_of
from remem_testkit.files import NOW, draft_file, file, key, lesson, resealed

ONE, TWO = key(1), key(2)
OLD = file(ONE, [lesson("a build fails")], seal=5)
NEW = file(ONE, [lesson("a build fails again")], seal=6)


def put(folder: Path, data: bytes) -> str:
    return FolderCommons(folder).put(accept(data, now=NOW)).outcome


def test_a_file_is_written_under_its_key_and_read_again(tmp_path: Path) -> None:
    assert put(tmp_path, OLD) == "new"
    assert (tmp_path / f"{ONE.public.hex}.jsonl").read_bytes() == OLD
    assert FolderCommons(tmp_path).get(ONE.public.hex) == OLD
    assert FolderCommons(tmp_path).get(TWO.public.hex) is None


def test_the_newest_stands_whichever_comes_last(tmp_path: Path) -> None:
    assert [put(tmp_path, data) for data in (OLD, NEW, NEW)] == ["new", "newer", "unchanged"]
    with pytest.raises(CommonsRefused) as refused:
        put(tmp_path, OLD)
    assert refused.value.code == "older_file"
    assert refused.value.held == Version(6, digest_of(NEW))
    assert FolderCommons(tmp_path).get(ONE.public.hex) == NEW


def test_of_two_files_with_one_seal_the_larger_digest_stands(tmp_path: Path) -> None:
    smaller, larger = sorted((NEW, file(ONE, [lesson("a test fails")], seal=6)), key=digest_of)
    assert [put(tmp_path, data) for data in (smaller, larger)] == ["new", "equivocation"]
    with pytest.raises(CommonsRefused) as refused:
        put(tmp_path, smaller)
    assert refused.value.code == "equivocation"


def test_a_forged_seal_does_not_keep_the_owner_out(tmp_path: Path) -> None:
    genuine = file(ONE, [lesson("a build fails")], seal=RULES.last_seal - 1)
    forged = genuine.replace(b"a build fails", b"a build falls")
    (tmp_path / f"{ONE.public.hex}.jsonl").write_bytes(forged)
    assert put(tmp_path, NEW) == "new"


def test_both_names_of_a_key_are_read_and_the_listing_names_the_key(tmp_path: Path) -> None:
    (tmp_path / f"{ONE.public.origin}.jsonl").write_bytes(OLD)
    (tmp_path / f"{TWO.public.hex}.jsonl").write_bytes(draft_file(TWO, [lesson("a test fails")]))
    listing = FolderCommons(tmp_path).index(None)
    assert {entry.key: entry.version.seal for entry in listing.entries} == {ONE.public.hex: 5, TWO.public.hex: None}
    assert listing.whole
    assert not listing.unreadable
    (tmp_path / f"{ONE.public.hex}.jsonl").write_bytes(NEW)
    commons = FolderCommons(tmp_path)
    assert commons.get(ONE.public.hex) == NEW
    assert commons.get(ONE.public.hex, digest_of(OLD)) == OLD
    assert put(tmp_path, NEW) == "unchanged"


def test_an_unchanged_folder_is_known_by_its_bookmark(tmp_path: Path) -> None:
    put(tmp_path, OLD)
    bookmark = FolderCommons(tmp_path).index(None).bookmark
    again = FolderCommons(tmp_path).index(bookmark)
    assert again.unchanged
    assert again.entries == ()
    put(tmp_path, NEW)
    assert not FolderCommons(tmp_path).index(bookmark).unchanged


def test_an_index_gives_the_principals(tmp_path: Path) -> None:
    put(tmp_path, OLD)
    digest = digest_of(OLD)
    index = f'[{{"key":"{ONE.public.hex}","digest":"{digest}","seal":5,"principal":"p1"}},7]'
    (tmp_path / "index").write_text(index)
    listing = FolderCommons(tmp_path).index(None)
    assert [entry.principal for entry in listing.entries] == ["p1"]
    assert [one.code for one in listing.unreadable] == ["index_entry"]


def make_link(path: Path) -> None:
    (path.parent / "elsewhere").write_bytes(OLD)
    path.symlink_to(path.parent / "elsewhere")


STRANGE: dict[str, Callable[[Path], Any]] = {
    "a symbolic link is not followed": make_link,
    "a pipe is not waited at": os.mkfifo,
    "a folder is no file": Path.mkdir,
}


@pytest.mark.parametrize("make", STRANGE.values(), ids=STRANGE.keys())
def test_only_regular_files_are_opened(tmp_path: Path, make: Callable[[Path], Any]) -> None:
    make(tmp_path / f"{ONE.public.hex}.jsonl")
    commons = FolderCommons(tmp_path)
    assert commons.index(None).entries == ()
    assert commons.get(ONE.public.hex) is None


UNREADABLE = {
    "a file larger than any may be": (f"{ONE.public.hex}.jsonl", OLD + b" " * RULES.file_bytes, "file_size"),
    "a first line that is no record": (f"{ONE.public.hex}.jsonl", b"{}\n", "field_missing"),
    "the file of another key": (f"{TWO.public.hex}.jsonl", OLD, "name_mismatch"),
    "an empty file": (f"{ONE.public.origin}.jsonl", b"", "not_an_object"),
}


@pytest.mark.parametrize(("name", "data", "code"), UNREADABLE.values(), ids=UNREADABLE.keys())
def test_what_names_no_file_is_listed_with_its_code(tmp_path: Path, name: str, data: bytes, code: str) -> None:
    (tmp_path / name).write_bytes(data)
    listing = FolderCommons(tmp_path).index(None)
    assert listing.entries == ()
    assert [(one.name, one.code) for one in listing.unreadable] == [(name, code)]


def test_other_files_are_left_alone(tmp_path: Path) -> None:
    for name in ("README", "0123.jsonl", f"{ONE.public.hex}.jsonl~", f".{ONE.public.hex}.jsonl", "x" * 64 + ".jsonl"):
        (tmp_path / name).write_bytes(OLD)
    listing = FolderCommons(tmp_path).index(None)
    assert listing.entries == ()
    assert listing.unreadable == ()


def test_a_folder_that_is_missing_is_not_made(tmp_path: Path) -> None:
    commons = FolderCommons(tmp_path / "absent")
    for act in (lambda: commons.index(None), lambda: commons.put(accept(OLD, now=NOW))):
        with pytest.raises(Unreachable) as unreachable:
            act()
        assert unreachable.value.exit_code == 4
    assert not (tmp_path / "absent").exists()


def acts(commons: FolderCommons) -> list[Callable[[], object]]:
    return [
        commons.describe,
        lambda: commons.index(None),
        lambda: commons.get(ONE.public.hex),
        lambda: commons.put(accept(OLD, now=NOW)),
    ]


def told(act: Callable[[], object]) -> Unreachable:
    with pytest.raises(Unreachable) as unreachable:
        act()
    return unreachable.value


def test_a_folder_that_is_missing_is_told_from_one_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    (tmp_path / "link").symlink_to(tmp_path / "absent")
    for name, got in (("absent", "none"), ("link", "none"), ("file", "a file"), ("file/in", "a file")):
        for act in acts(FolderCommons(tmp_path / name)):
            assert told(act).message == f"expected a folder at {tmp_path / name}, got {got}"


HOSTS = ("127.0.0.1:7363", "localhost:8000", "localhost", "10.1.2.3", "[::1]:7363", "commons.example", "web:80/x")


@pytest.mark.parametrize("name", HOSTS)
def test_a_missing_folder_that_is_called_like_a_host_gets_the_hint_of_a_url(tmp_path: Path, name: str) -> None:
    hint = told(FolderCommons(tmp_path / name).describe).hint
    assert hint is not None
    assert hint.startswith("a URL begins with http:// or https://")


@pytest.mark.parametrize("name", ["lessons", "a b", "notes.d9", "12:30", "x"])
def test_another_missing_folder_is_to_be_made_first(tmp_path: Path, name: str) -> None:
    hint = told(FolderCommons(tmp_path / name).describe).hint
    assert hint is not None
    assert "make it first" in hint


def test_a_folder_that_may_not_be_read_or_written_is_told_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_arguments: object, **_named: object) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    commons = FolderCommons(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(os, "scandir", refuse)
        assert told(lambda: commons.index(None)).message == f"expected to read {tmp_path}, got permission denied"
    with monkeypatch.context() as patch:
        patch.setattr(os, "open", refuse)
        message = told(lambda: commons.put(accept(OLD, now=NOW))).message
    assert message == f"expected to write into {tmp_path}, got permission denied"


def write_many(folder: Path, numbers: list[int]) -> None:
    lines = OLD.splitlines()[1:]
    for number in numbers:
        with suppress(CommonsRefused):
            FolderCommons(folder).put(accept(resealed(ONE, lines, seal=number), now=NOW))


def test_of_several_writers_at_once_the_newest_stands(tmp_path: Path) -> None:
    ways = multiprocessing.get_context("spawn")
    writers = [ways.Process(target=write_many, args=(tmp_path, list(range(start, 90, 3)))) for start in (1, 2, 3)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(120)
        assert writer.exitcode == 0
    data = FolderCommons(tmp_path).get(ONE.public.hex)
    assert data is not None
    assert accept(data, now=NOW).version.seal == 89
    assert sorted(path.name for path in tmp_path.iterdir()) == [".lock", f"{ONE.public.hex}.jsonl"]


def refuse_to_open(monkeypatch: pytest.MonkeyPatch, name: str, writing: bool = False) -> None:
    """Let nobody open the files of this name, or nobody write into them."""
    real = os.open

    def guarded(path: Any, flags: int, *rest: Any, **named: Any) -> int:
        if Path(path).name == name and (flags & os.O_RDWR or not writing):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        return real(path, flags, *rest, **named)

    monkeypatch.setattr(os, "open", guarded)


def test_a_lock_that_another_user_made_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".lock").touch(0o644)
    refuse_to_open(monkeypatch, ".lock", writing=True)
    assert put(tmp_path, OLD) == "new"


def test_a_file_that_cannot_be_read_costs_a_reader_that_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for data in (OLD, file(TWO, [lesson("a test fails")], seal=5)):
        put(tmp_path, data)
    (tmp_path / f"{ONE.public.origin}.jsonl").write_bytes(OLD)
    name = f"{ONE.public.hex}.jsonl"
    refuse_to_open(monkeypatch, name)
    commons = FolderCommons(tmp_path)
    listing = commons.index(None)
    assert {entry.key for entry in listing.entries} == {ONE.public.hex, TWO.public.hex}
    assert [(one.name, one.code) for one in listing.unreadable] == [(name, "file_unreadable")]
    assert listing.bookmark is None
    assert commons.get(ONE.public.hex) == OLD
    assert told(lambda: put(tmp_path, NEW)).message.endswith("got permission denied")


INDEXES = {
    "no JSON": (b"<html>", "answer_form"),
    "no array": (b"{}", "answer_form"),
    "a nest of arrays": (b"[" * 100_000, "answer_form"),
    "more than an index may be": (b"[" + b" " * INDEX_MOST + b"]", "file_size"),
}


@pytest.mark.parametrize(("data", "code"), INDEXES.values(), ids=INDEXES.keys())
def test_a_nonsense_index_costs_the_principals_alone(tmp_path: Path, data: bytes, code: str) -> None:
    put(tmp_path, OLD)
    (tmp_path / "index").write_bytes(data)
    listing = FolderCommons(tmp_path).index(None)
    assert [(entry.key, entry.principal) for entry in listing.entries] == [(ONE.public.hex, None)]
    assert [(one.name, one.code) for one in listing.unreadable] == [("index", code)]


def test_an_index_that_cannot_be_read_costs_the_principals_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(tmp_path, OLD)
    (tmp_path / "index").write_text("[]")
    refuse_to_open(monkeypatch, "index")
    listing = FolderCommons(tmp_path).index(None)
    assert len(listing.entries) == 1
    assert [(one.name, one.code) for one in listing.unreadable] == [("index", "file_unreadable")]
    assert listing.bookmark is None
