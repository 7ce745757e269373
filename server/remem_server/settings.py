"""The settings of a commons: read once at the start, from options and from the environment.

Each setting has a variable, its name in capitals behind `REMEM_`; an option of the command wins over it. An
empty variable is none.
Nothing else reads the environment, but for the token of an operator who signs elsewhere; and nothing changes a
setting while the commons runs.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from ipaddress import ip_network
from pathlib import Path
from typing import Annotated, Final, Literal, Self

from pydantic import Field, SecretStr, field_validator, model_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from remem.protocol import ProtocolError, PublicKey
from remem.protocol.errors import show
from remem_gossip.addresses import Allowed, read_url
from remem_gossip.failures import PeerFailed
from remem_server.postgres_url import conninfo_of

# REME on a telephone's keypad.
DEFAULT_PORT: Final = 7363

# As many as the database counts of one thing.
_COUNT_MOST: Final = 10**9

_ANYWHERE: Final = Allowed(http=True, private=True)

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
        body_seconds: how long a body may take to arrive.
        database_url: the PostgreSQL database, `postgresql+psycopg://…`; SQLite in the data folder if not given.
        replica_url: a replica of it, which answers whoever only reads.
        database_connections: how many connections to PostgreSQL a process holds at most, for each of its URLs.
        proxies: the addresses or networks of proxies that are believed about whom they speak for.
        log_format: how a line of the log is written.
        reads_per_minute: how many requests an address may make that read; beyond them, a good token may make as many.
        publishes_per_minute: how many files a token may send, or an address without one.
        kilobytes_per_minute: how many bytes of files, in units of 1,000.
        lines_per_minute: how many lines of files, each with a signature to check.
        refusals_per_minute: how many requests of an address may be refused before all are that come without a good
            token; of ten times as many, its connections are closed unheard.
        new_keys_per_day: how many keys that were never seen here may come without a token, altogether.
        new_keys_per_address: how many of them from one address.
        verify_threads: how many files are verified at once.
        verify_queue: how many more may wait for that; the others are told to come later.
        names: the names that others reach this commons by, with commas between, each with its port where that is not
            the scheme's own: what a peer signed for another is not for this commons.
        gossip_minutes: how often this commons asks some of its peers, about; 0 for never.
        gossip_megabytes: how much one peer may send in a night; all that are no peers together a twelfth of it.
        gossip_newcomers: how many keys of them may be new here; for those that are no peers a twelfth again.
    """

    model_config = SettingsConfigDict(env_prefix="REMEM_", env_ignore_empty=True, frozen=True, extra="ignore")

    data: Path = Path("data")
    host: str = "127.0.0.1"
    port: int = Field(default=DEFAULT_PORT, ge=0, le=65_535)
    open: bool = False
    private: bool = False
    operators: Annotated[tuple[str, ...], NoDecode] = ()
    body_seconds: float = Field(default=60, gt=0, le=3_600)
    database_url: SecretStr | None = None
    replica_url: SecretStr | None = None
    database_connections: int = Field(default=20, ge=2, le=1_000)
    proxies: Annotated[tuple[str, ...], NoDecode] = ()
    log_format: Literal["json", "console"] = "console"
    reads_per_minute: int = Field(default=60_000, ge=1, le=_COUNT_MOST)
    publishes_per_minute: int = Field(default=6_000, ge=1, le=_COUNT_MOST)
    kilobytes_per_minute: int = Field(default=60_000, ge=1, le=_COUNT_MOST)
    lines_per_minute: int = Field(default=60_000, ge=1, le=_COUNT_MOST)
    refusals_per_minute: int = Field(default=3_000, ge=1, le=_COUNT_MOST)
    new_keys_per_day: int = Field(default=10_000, ge=1, le=_COUNT_MOST)
    new_keys_per_address: int = Field(default=1_000, ge=1, le=_COUNT_MOST)
    verify_threads: int = Field(default=2, ge=1, le=64)
    verify_queue: int = Field(default=32, ge=0, le=10_000)
    names: Annotated[tuple[str, ...], NoDecode] = ()
    gossip_minutes: float = Field(default=60, ge=0, le=10_080)
    gossip_megabytes: int = Field(default=4_000, ge=1, le=_COUNT_MOST)
    gossip_newcomers: int = Field(default=12_000, ge=0, le=_COUNT_MOST)

    @field_validator("operators", "proxies", mode="before")
    @classmethod
    def _split(cls, value: object) -> object:
        return tuple(value.replace(",", " ").split()) if isinstance(value, str) else value

    @field_validator("names", mode="before")
    @classmethod
    def _split_at_commas(cls, value: object) -> object:
        # A space is most often a dot that was missed, and half a name is a name too.
        return tuple(filter(None, map(str.strip, value.split(",")))) if isinstance(value, str) else value

    @field_validator("operators")
    @classmethod
    def _are_keys(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        try:
            return tuple(PublicKey.parse(key).hex for key in value)
        except ProtocolError as error:
            raise ValueError(str(error)) from error

    @field_validator("names")
    @classmethod
    def _are_names(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for name in value:
            if not _is_name(name):
                raise ValueError(f"expected a name like commons.example or commons.example:7363, got {show(name)}")
        return tuple(name.lower() for name in value)

    @field_validator("proxies")
    @classmethod
    def _are_networks(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for network in value:
            try:
                ip_network(network)
            except ValueError as error:
                raise ValueError(f"expected an address or a network, got {show(network)}") from error
        return value

    @field_validator("database_url", "replica_url")
    @classmethod
    def _is_postgres(cls, value: SecretStr | None) -> SecretStr | None:
        if value is not None:
            conninfo_of(value.get_secret_value())
        return value

    @model_validator(mode="after")
    def _agree(self) -> Self:
        if self.open and self.private:
            raise ValueError("expected a commons that is open or private, got both")
        if self.replica_url is not None and self.database_url is None:
            raise ValueError("expected REMEM_DATABASE_URL beside REMEM_REPLICA_URL, got the replica alone")
        return self


def _is_name(name: str) -> bool:
    """Tell whether peers may ask for a host by this name: what they ask for is in ASCII, and has no path."""
    try:
        return name.isascii() and "/" not in name and read_url(f"https://{name}", _ANYWHERE).path == ""
    except PeerFailed:
        return False
