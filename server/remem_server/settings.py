"""The settings of a commons: read once at the start, from options and from the environment.

Each setting has a variable, its name in capitals behind `REMEM_`; an option of the command wins over it. An
empty variable is none.
Nothing else reads the environment, and nothing changes a setting while the commons runs.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Final, Self

from pydantic import Field, field_validator, model_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from remem.protocol import ProtocolError, PublicKey

# REME on a telephone's keypad.
DEFAULT_PORT: Final = 7363

Clock = Callable[[], datetime]


def system_clock() -> datetime:
    """Read the clock of this machine."""
    return datetime.now(UTC)


class Settings(BaseSettings):
    """What the operator decides.

    Attributes:
        data: the folder of the database and the node's key; the first start makes it.
        host: the address to listen on.
        port: the port to listen on; 0 takes a free one.
        open: whether anyone may publish without a token, and every key counts.
        private: whether reading needs a token too.
        operators: further keys that answer for this commons, beside the node's own.
        body_seconds: how long a file may take to arrive.
    """

    model_config = SettingsConfigDict(env_prefix="REMEM_", env_ignore_empty=True, frozen=True, extra="ignore")

    data: Path = Path("data")
    host: str = "127.0.0.1"
    port: int = Field(default=DEFAULT_PORT, ge=0, le=65_535)
    open: bool = False
    private: bool = False
    operators: Annotated[tuple[str, ...], NoDecode] = ()
    body_seconds: float = Field(default=60, gt=0)

    @field_validator("operators", mode="before")
    @classmethod
    def _split(cls, value: object) -> object:
        return tuple(value.replace(",", " ").split()) if isinstance(value, str) else value

    @field_validator("operators")
    @classmethod
    def _are_keys(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        try:
            return tuple(PublicKey.parse(key).hex for key in value)
        except ProtocolError as error:
            raise ValueError(str(error)) from error

    @model_validator(mode="after")
    def _agree(self) -> Self:
        if self.open and self.private:
            raise ValueError("expected a commons that is open or private, got both")
        return self
