"""Who offers files to this commons, and what it may (DESIGN section 5).

1. A peer that the operator listed, known by the key that signed the request.
2. The bearer of a token to publish: the file of its own key as one that is admitted, and others as carried. Its own key
   is the one that the token is bound to, or the one that signed the request while the token is bound to none.
3. Anyone, on an open commons.
4. Nobody else.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from remem.protocol import PublicKey
from remem_gossip.budget import Budget
from remem_server.errors import AdminToken, NotAPeer
from remem_server.files import tokens
from remem_server.files.tokens import Token
from remem_server.gossip import peers, spending
from remem_server.opening.context import Commons

ANYONE: Final = "anyone"


@dataclass(frozen=True, slots=True)
class Caller:
    """Whoever offers files.

    Attributes:
        source: what its files are said to come from.
        account: what is spent for it counts there.
        budget: what all of that account may cost in a night.
        is_peer: whether the operator listed it.
        own: the key whose file is its own; None where it has none here.
        token: the token that it shows.
        secret: the token itself.
    """

    source: str
    account: str
    budget: Budget
    is_peer: bool = False
    own: str | None = None
    token: Token | None = None
    secret: str | None = None


def caller_of(commons: Commons, signer: PublicKey | None, secret: str | None) -> Caller:
    """Say who offers something.

    Args:
        commons: to which commons.
        signer: the key that signed the request.
        secret: the bearer token that came with it.

    Raises:
        TokenError: the token is not good.
        AdminToken: the token publishes nothing.
        NotAPeer: this commons takes no offers of it.
    """
    with commons.engine.connect() as connection:
        url = None if signer is None else peers.url_of_key(connection, signer.hex)
        if url is not None:
            return Caller(url, url, spending.budget_of_peer(commons.settings), is_peer=True)
        token = None if secret is None else tokens.check(connection, secret, commons.clock())
    budget = spending.budget_of_strangers(commons.settings)
    if token is not None:
        if token.admin:
            raise AdminToken("expected a token to publish with, got one for the operator's acts")
        own = token.key or (signer.hex if signer is not None else None)
        return Caller(token.name, spending.STRANGERS, budget, own=own, token=token, secret=secret)
    if commons.settings.open:
        return Caller(ANYONE, spending.STRANGERS, budget)
    raise NotAPeer("expected a peer of this commons, or a token to publish with, got neither")
