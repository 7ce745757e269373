"""The commons over HTTP."""
