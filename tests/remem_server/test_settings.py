"""Settings: from options and the environment, once, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

from remem_server.settings import DEFAULT_PORT, Settings, system_clock
from remem_testkit.files import key


@pytest.fixture(autouse=True)
def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the environment have no setting."""
    for name in Settings.model_fields:
        monkeypatch.delenv(f"REMEM_{name.upper()}", raising=False)


def test_a_commons_needs_no_setting() -> None:
    settings = Settings()
    assert (settings.data, settings.host, settings.port) == (Path("data"), "127.0.0.1", DEFAULT_PORT)
    assert (settings.open, settings.private, settings.operators) == (False, False, ())


def test_each_setting_has_a_variable_and_an_option_wins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REMEM_DATA", "/somewhere")
    monkeypatch.setenv("REMEM_PORT", "1")
    monkeypatch.setenv("REMEM_PRIVATE", "1")
    settings = Settings(port=2)
    assert (settings.data, settings.port, settings.private) == (Path("/somewhere"), 2, True)
    assert {"data", "port", "private"} == settings.model_fields_set


def test_the_variables_of_a_memory_are_none_of_its_business(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REMEM_HOME", "/home")
    assert Settings() == Settings()


@pytest.mark.parametrize("name", list(Settings.model_fields))
def test_an_empty_variable_is_none(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(f"REMEM_{name.upper()}", "")
    assert Settings().model_fields_set == set()


@pytest.mark.parametrize("separator", [",", ", ", " ", "\n"])
def test_operators_are_keys_with_anything_between(monkeypatch: pytest.MonkeyPatch, separator: str) -> None:
    keys = tuple(key(number).public.hex for number in (1, 2))
    monkeypatch.setenv("REMEM_OPERATORS", separator.join(keys))
    assert Settings().operators == keys


@pytest.mark.parametrize(
    ("name", "value"),
    [("port", -1), ("port", 65_536), ("operators", ("0" * 64,)), ("operators", ("x",)), ("body_seconds", 0)],
)
def test_a_setting_of_another_form_is_refused(name: str, value: object) -> None:
    with pytest.raises(ValidationError, match=name):
        Settings.model_validate({name: value})


@pytest.mark.parametrize("separator", [",", ", ", ",\n"])
def test_names_have_commas_between_and_are_read_in_lower_case(monkeypatch: pytest.MonkeyPatch, separator: str) -> None:
    names = ("commons.example", "Commons.Example:7363", "localhost", "127.0.0.1:1", "[::1]", "[::1]:65535")
    monkeypatch.setenv("REMEM_NAMES", separator.join(names))
    assert Settings().names == tuple(map(str.lower, names))


@pytest.mark.parametrize(
    "name",
    [
        "a.example:99999",
        "a.example:0",
        "a.example:x",
        "a b",
        "a.example b.example",
        "https://a.example",
        "a.example/",
        "a.example/base",
        "someone@a.example",
        "a.example?",
        "a..example",
        "::1",
        "[::1",
        "1.2.3",
        "bücher.example",
        "a\x00b",
    ],
)
def test_what_is_no_name_of_a_host_is_refused_with_what_was_expected(name: str) -> None:
    with pytest.raises(ValidationError, match=r"names\n.* expected a name like .*, got '"):
        Settings.model_validate({"names": name})


def test_a_commons_is_not_open_and_private_at_once() -> None:
    with pytest.raises(ValidationError, match="open or private"):
        Settings(open=True, private=True)


def test_settings_do_not_change() -> None:
    with pytest.raises(ValidationError):
        Settings().port = 1


def test_the_clock_has_a_zone() -> None:
    assert system_clock().utcoffset() is not None
