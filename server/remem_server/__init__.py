"""The commons server: signed files in, the same bytes out, over HTTP and SQL."""
