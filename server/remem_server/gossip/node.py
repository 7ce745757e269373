"""A commons as a node: what it hands out, and how what comes gets in (DESIGN section 5).

A commons holds everything. Whatever comes passes the one write path of a PUT, without a token: so it is carried, and
admits nobody. The exception is the own file of whoever shows a token to publish, which comes as if it had been put.

Nothing here holds a connection to the database while a reader takes what was read.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from random import Random
from typing import Final, TypeVar

from sqlalchemy import BindParameter, Engine, bindparam, select

from remem.protocol import Deferred, ProtocolError, Seal, Verdict, Version
from remem_gossip.budget import Allowance
from remem_gossip.parts import Blocked, Head, Missing, Outcome, Part, Proof, Whole
from remem_gossip.parts import Verdict as Said
from remem_gossip.reconcile import Storage
from remem_gossip.taking import BLOCKED, Taken, outcome_of, take_parts
from remem_server.database import changes
from remem_server.database.engine import is_postgres, writing
from remem_server.database.tables import blocks, contents, files, proofs, versions
from remem_server.errors import Blocked as KeyBlocked
from remem_server.errors import TokenBound, TokenError, TooManyKeys
from remem_server.files import items, ledger, store
from remem_server.files.accept import accept_file
from remem_server.opening.context import Commons

_T = TypeVar("_T")

_AT_ONCE: Final = 16
_HEADS_AT_ONCE: Final = 500
_IDS: Final[BindParameter[bytes]] = bindparam("ids", expanding=True)
_FILES: Final = (
    select(versions.c.id, contents.c.data, blocks.c.reason)
    .select_from(
        versions.join(files, (files.c.key == versions.c.key) & (files.c.digest == versions.c.digest))
        .outerjoin(contents, contents.c.key == files.c.key)
        .outerjoin(blocks, blocks.c.key == files.c.key)
    )
    .where(versions.c.id.in_(_IDS))
)
_PROOFS: Final = select(proofs.c.id, proofs.c.line_a, proofs.c.line_b).where(proofs.c.id.in_(_IDS))
_HEADS: Final = (
    select(versions.c.id, files.c.key, files.c.seal, files.c.size)
    .join(files, (files.c.key == versions.c.key) & (files.c.digest == versions.c.digest))
    .where(files.c.held, versions.c.id.in_(_IDS))
)
_STANDING: Final = select(files.c.key, files.c.seal, files.c.digest, files.c.held).where(
    files.c.key.in_(bindparam("keys", expanding=True))
)
_OWN: Final = select(versions.c.id).where(versions.c.key == bindparam("key"))


def of_one_moment(engine: Engine) -> Engine:
    """Return a database that is written as one of which a transaction sees one moment."""
    if is_postgres(engine):
        return engine.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
    return engine


class ServerNode:
    """A commons that takes part in exchanges.

    Args:
        commons: which.
        random: chooses among equals.
        reads: where it is read; a transaction there sees one moment.
        own: the key whose file comes by a token, and the token.
        when_new: called before a key comes in that was never here; it may refuse it by `TooManyKeys`.
        settles: whether it remembers what it does not want. What others than peers bring is never fetched, and could
            fill the ledger.
    """

    def __init__(
        self,
        commons: Commons,
        random: Random,
        *,
        reads: Engine | None = None,
        own: tuple[str, str] | None = None,
        when_new: Callable[[], None] | None = None,
        settles: bool = True,
    ) -> None:
        self._commons = commons
        self._random = random
        self._reads = reads or of_one_moment(commons.engine)
        self._own = own
        self._when_new = when_new
        self._settles = settles
        self._unwanted: dict[bytes, str] = {}

    # --- Node ---

    def items(self) -> AbstractContextManager[Storage]:
        """Open the items that are held, as they are at one moment."""
        return items.opened(self._reads)

    def own(self) -> bytes | None:
        """Return the id of the node's own file; None where it has none."""
        with self._reads.connect() as connection:
            id_: bytes | None = connection.execute(_OWN, {"key": self._commons.key.public.hex}).scalar()
        return id_

    def parts(self, ids: Sequence[bytes]) -> Iterator[Part]:
        """Hand out what these items name, in their order."""
        for some in _chunks(ids, _AT_ONCE):
            with self._reads.connect() as connection:
                found = {row.id: row for row in connection.execute(_FILES, {"ids": some})}
                left = [id_ for id_ in some if id_ not in found]
                proven = {row.id: row for row in connection.execute(_PROOFS, {"ids": left})} if left else {}
            for id_ in some:
                if id_ in proven:
                    yield Proof(id_, (proven[id_].line_a, proven[id_].line_b))
                elif id_ not in found:
                    yield Missing(id_)
                elif found[id_].data is not None:
                    yield Whole(id_, found[id_].data)
                else:
                    yield Missing(id_) if found[id_].reason is None else Blocked(id_, found[id_].reason)

    def heads(self, ids: Sequence[bytes]) -> Iterator[Head]:
        """Say which files these items name, in their order; what is no file that is here is left out."""
        for some in _chunks(ids, _HEADS_AT_ONCE):
            with self._reads.connect() as connection:
                found = {row.id: Head(*row) for row in connection.execute(_HEADS, {"ids": some})}
            yield from (found[id_] for id_ in some if id_ in found)

    def settled(self, ids: Collection[bytes]) -> set[bytes]:
        """Return those of these items that were refused or superseded before."""
        with self._commons.engine.connect() as connection:
            noted = ledger.settled(connection, ids)
        return noted | (self._unwanted.keys() & set(ids))

    def wanted(self, heads: Iterable[Head], newcomers: int) -> list[bytes]:
        """Choose among files that a peer says it has: all updates, and then as many newcomers at random."""
        found = list(heads)
        self._random.shuffle(found)
        held: dict[str, int | None] = {}
        with self._commons.engine.connect() as connection:
            for some in _chunks([head.key for head in found], _HEADS_AT_ONCE):
                held |= {row.key: row.seal for row in connection.execute(_STANDING, {"keys": some})}
        updates = [head.id for head in found if head.key in held and head.seal >= (held[head.key] or 0)]
        strangers = [head.id for head in found if head.key not in held]
        return updates + strangers[:newcomers]

    def take(self, parts: Sequence[Whole | Proof], source: str, allowance: Allowance) -> list[Said]:
        """Take in what a peer sent, as far as its allowance goes; what stands is stored when this returns."""
        try:
            return take_parts(self, parts, source, allowance)
        finally:
            self._write()

    # --- Shelf ---

    def standing(self, key: str) -> Version | None:
        """Return the version that stands of a key; None where its bytes are to come again, or never came."""
        with self._commons.engine.connect() as connection:
            row = connection.execute(_STANDING, {"keys": [key]}).one_or_none()
            if row is None or not (row.held or store.block_reason(connection, key) is not None):
                return None
        return Version(row.seal, row.digest)

    def is_blocked(self, key: str) -> bool:
        """Tell whether this commons keeps no file of a key."""
        with self._commons.engine.connect() as connection:
            return store.block_reason(connection, key) is not None

    def settle(self, id_: bytes, code: str | None) -> None:
        """Remember an item that is not wanted again; written down when what came with it is taken in."""
        if self._settles:
            self._unwanted[id_] = code or ledger.SUPERSEDED

    def take_file(self, data: bytes, key: str, source: str) -> Taken:
        """Accept a file, and store it where it is the newest of its key."""
        secret = self._own[1] if self._own is not None and key == self._own[0] else None
        lines = data.count(b"\n")
        try:
            accepted = accept_file(
                self._commons.engine,
                data,
                name=key,
                secret=secret,
                token_needed=secret is not None,
                now=self._commons.clock(),
                when_new=None if secret is not None else self._when_new,
                source=source,
            )
        except (Deferred, TooManyKeys, TokenError, TokenBound) as error:
            # What is wrong with the token is nothing that is wrong with the file.
            return Taken(Outcome.DEFERRED, error.code, lines)
        except ProtocolError as error:
            return Taken(Outcome.REFUSED, error.code, lines)
        except KeyBlocked:
            return Taken(Outcome.REFUSED, BLOCKED, lines)
        verdict = accepted.verdict
        code = verdict.value if verdict is Verdict.EQUIVOCATION_LEFT else None
        return Taken(outcome_of(verdict), code, len(accepted.file.fresh) + 1)

    def has_proof(self, key: str) -> bool:
        """Tell whether it is proven here that a key spoke twice."""
        with self._commons.engine.connect() as connection:
            return items.has_proof(connection, key)

    def take_proof(self, first: Seal, second: Seal) -> None:
        """Keep two seals that prove that their key spoke twice."""
        with writing(self._commons.engine) as connection:
            changes.lock(connection)
            items.prove(connection, first.key.hex, first.line, second.line)

    def _write(self) -> None:
        unwanted, self._unwanted = self._unwanted, {}
        if unwanted:
            now = self._commons.clock()
            with writing(self._commons.engine) as connection:
                changes.lock(connection)
                for id_, code in unwanted.items():
                    ledger.note(connection, id_, code, now)


def _chunks(things: Sequence[_T], size: int) -> Iterator[Sequence[_T]]:
    return (things[at : at + size] for at in range(0, len(things), size))
