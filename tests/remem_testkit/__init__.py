"""Helpers of the tests: signed files made quickly, and real commons on loopback."""
