"""The passes of a night: from events to episodes, and from episodes to lessons."""
