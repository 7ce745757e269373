"""The acts between a memory and the commons: share, pull, confirm, revoke, and reading what is held."""
