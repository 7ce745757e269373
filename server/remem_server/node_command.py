"""`remem node`: a memory that accepts exchanges.

- The memory is opened before anything is served, so that one that cannot be used is told at once. Once it serves, an
  interrupt ends it in order, as that of a commons does.
- It is a command of `remem`, and each of those reads this module: nothing of the server is imported before it runs.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import ExitStack, closing
from functools import partial
from importlib.util import find_spec
from typing import Annotated, Final

import typer

from remem.cli.memory import clock, opened
from remem.cli.output import warn
from remem.cli.stopping import stop_in_order
from remem.errors import RememError
from remem.protocol.errors import show

NODE_PORT: Final = 7364
_PACKAGES: Final = ("uvicorn", "starlette", "sqlalchemy", "pydantic")
_CONNECTIONS_MOST: Final = 128


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(node)


def node(
    host: Annotated[str, typer.Option(help="Where to listen.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65_535, help="The port, 0 for a free one.")] = NODE_PORT,
    open_: Annotated[bool, typer.Option("--open", help="Take offers of anyone, within a small budget.")] = False,
    announce: Annotated[bool, typer.Option("--announce", help="Tell the local network by mDNS.")] = False,
) -> None:
    """Accept exchanges: peers that reach this machine fetch what this memory holds, and bring what is new."""
    _need_packages()
    from remem_gossip.extra import need_library
    from remem_gossip.peers import known_peers
    from remem_server.web.memory_app import Host, memory_app
    from remem_server.web.serving import listen, make_server, run, url_for_others, url_of

    need_library()
    with opened() as (_home, db):
        unknown = [peer.url for peer in known_peers(db, clock()) if peer.key is None]
    with ExitStack() as stack:
        listening = stack.enter_context(closing(listen(host, port, or_any=False)))
        here, elsewhere = url_of(listening), url_for_others(listening)
        memory = stack.enter_context(closing(Host(opened, clock, is_open=open_)))
        memory.open()
        if announce:
            from remem_gossip.lan import announced

            address, at = listening.getsockname()[:2]
            stack.enter_context(announced(here, address, at))
        stop_in_order()
        server = make_server(memory_app(memory), connections=_CONNECTIONS_MOST)
        run(server, listening, partial(_tell, here, unknown, is_near=elsewhere is None))


def _need_packages() -> None:
    if missing := [name for name in _PACKAGES if find_spec(name) is None]:
        got = f"none of {', '.join(missing)}"
        raise RememError(f"expected the server's packages, got {got}", "pip install 'remem[server]'")


def _tell(here: str, unknown: Sequence[str], *, is_near: bool) -> None:
    print(f"serving {here}")
    if unknown:
        warn(f"whose key is not known may not offer yet: {', '.join(map(show, unknown))}: remem peers check")
    if not is_near:
        warn("other machines reach this memory by plain HTTP: whoever carries the bytes sees what it holds")
    sys.stdout.flush()
