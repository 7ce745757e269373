"""What the owner sets: config.toml in the home, parsed once into one frozen value.

- Every key has a default, so that an empty file, or none, is a complete configuration. A key that is not known is
  an error that names it: a misspelt setting would otherwise be one that silently does nothing.
- `targets` are the commons that this memory shares with and pulls from, in order: a URL or a folder, with the
  token where one is needed. The file therefore is the owner's alone (0600).
- Changes keep the owner's comments and order, replace the file in one step, and wait for each other.
- No message repeats a value of `targets`: a token is a secret, and may stand where it does not belong.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import tomlkit
from tomlkit.exceptions import TOMLKitError

from remem.errors import RememError
from remem.protocol.rules import RULES

_POLICY: Final = ("confirmations", "window_days", "open")
# Numbers beyond these mean nothing, and some of them no clock could reckon with.
_CONFIRMATIONS_MOST: Final = 1_000_000
_WINDOW_DAYS_MOST: Final = 36_500
_BUDGET_MOST: Final = 10**15


@dataclass(frozen=True, slots=True)
class Target:
    """A commons: where it is, and the token that lets this memory in."""

    address: str
    token: str | None = None


@dataclass(frozen=True, slots=True)
class Config:
    """The owner's settings.

    Attributes:
        targets: the commons, in order; the first is the one meant where none is named.
        confirmations: how many counted confirmations make a lesson common.
        window_days: for how many days the last confirmation keeps it common.
        open: whether every key counts.
        budget_bytes: how much the files of others may take.
    """

    targets: tuple[Target, ...] = ()
    confirmations: int = RULES.confirmations
    window_days: int = RULES.window.days
    open: bool = False
    budget_bytes: int = 200_000_000

    def target(self, address: str) -> Target:
        """Return the target of this address, without a token if it is not a known one."""
        return next((target for target in self.targets if target.address == address), Target(address))


def read_config(path: Path) -> Config:
    """Read the settings; the defaults where there is no file.

    Raises:
        RememError: the file is no TOML, or a key of it is unknown or has a wrong value.
    """
    values = _read(path).unwrap()
    policy = _table(path, values, "policy")
    _no_others(path, values, ("budget_bytes", "policy", "targets"))
    _no_others(path, policy, _POLICY, "policy.")
    defaults = Config()
    return Config(
        targets=_targets(path, values.get("targets", [])),
        confirmations=_number(path, policy, "policy.confirmations", defaults.confirmations, _CONFIRMATIONS_MOST),
        window_days=_number(path, policy, "policy.window_days", defaults.window_days, _WINDOW_DAYS_MOST),
        open=_flag(path, policy, "policy.open"),
        budget_bytes=_number(path, values, "budget_bytes", defaults.budget_bytes, _BUDGET_MOST),
    )


def set_target(path: Path, address: str, token: str | None) -> None:
    """Add a target, or give a known one this token."""
    with _alone(path):
        read_config(path)
        document = _read(path)
        targets = document.setdefault("targets", tomlkit.aot())
        target = next((known for known in targets if known["address"] == address), None)
        if target is None:
            target = tomlkit.table()
            target["address"] = address
            targets.append(target)
        if token is not None:
            target["token"] = token
        elif "token" in target:
            del target["token"]
        _write(path, document)


def remove_target(path: Path, address: str) -> bool:
    """Forget a target and its token; tell whether it was known."""
    with _alone(path):
        read_config(path)
        document = _read(path)
        targets = document.get("targets", [])
        for index, target in enumerate(targets):
            if target["address"] == address:
                del targets[index]
                _write(path, document)
                return True
    return False


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Keep other processes from changing the settings between a reading and its writing."""
    # The folder is locked, for the file itself is replaced by each change.
    handle = os.open(path.parent, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _read(path: Path) -> tomlkit.TOMLDocument:
    try:
        text = path.read_text("utf-8")
    except FileNotFoundError:
        return tomlkit.document()
    except UnicodeDecodeError:
        raise RememError(f"{path}: expected UTF-8, got other bytes") from None
    try:
        return tomlkit.parse(text)
    except TOMLKitError as error:
        raise RememError(f"{path}: expected TOML, got a text that is not: {error}".lower()) from None


def _write(path: Path, document: tomlkit.TOMLDocument) -> None:
    spare = path.with_name(f".{path.name}.{os.getpid()}")
    handle = os.open(spare, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(tomlkit.dumps(document))
        file.flush()
        os.fsync(file.fileno())
    spare.replace(path)


def _wrong(path: Path, key: str, expected: str, value: object) -> RememError:
    return RememError(f"{path}: {key}: expected {expected}, got {str(value)[:60]!r}")


def _wrong_target(path: Path, key: str, expected: str) -> RememError:
    return RememError(f"{path}: {key}: expected {expected}, got something else")


def _no_others(path: Path, values: Mapping[str, object], known: tuple[str, ...], prefix: str = "") -> None:
    for key in values:
        if key not in known:
            names = ", ".join(prefix + name for name in known)
            raise RememError(f"{path}: expected one of {names}, got {prefix}{key}")


def _table(path: Path, values: Mapping[str, object], key: str) -> Mapping[str, object]:
    value = values.get(key, {})
    if not isinstance(value, dict):
        raise _wrong(path, key, "a table", value)
    return value


def _number(path: Path, values: Mapping[str, object], key: str, default: int, most: int) -> int:
    value = values.get(key.rpartition(".")[2], default)
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= most:
        raise _wrong(path, key, f"a whole number from 1 to {most}", value)
    return value


def _flag(path: Path, values: Mapping[str, object], key: str) -> bool:
    value = values.get(key.rpartition(".")[2], False)
    if not isinstance(value, bool):
        raise _wrong(path, key, "true or false", value)
    return value


def _targets(path: Path, value: object) -> tuple[Target, ...]:
    if not isinstance(value, list):
        raise _wrong_target(path, "targets", "an array of tables, each under [[targets]]")
    return tuple(_one_target(path, item) for item in value)


def _one_target(path: Path, item: object) -> Target:
    if not isinstance(item, dict):
        raise _wrong_target(path, "targets", "an array of tables, each under [[targets]]")
    _no_others(path, item, ("address", "token"), "targets.")
    address, token = item.get("address"), item.get("token")
    if not isinstance(address, str) or not address:
        raise _wrong_target(path, "targets.address", "a URL or a folder")
    if token is not None and not isinstance(token, str):
        raise _wrong_target(path, "targets.token", "a string")
    return Target(address, token)
