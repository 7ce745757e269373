"""Looking after a commons: audit, numbers, copies."""
