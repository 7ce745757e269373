"""The map of keys to files: the one write path, its store, its tokens, its journal."""
