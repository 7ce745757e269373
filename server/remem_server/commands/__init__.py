"""`remem-server`: the operator's command."""

from remem_server.commands.main import app, main

__all__ = ["app", "main"]
