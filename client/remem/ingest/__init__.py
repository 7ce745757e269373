"""What agents report, read and put into words: pure functions over bytes and text."""
