"""Opening a commons: its folder, its tables, the key of its node."""
