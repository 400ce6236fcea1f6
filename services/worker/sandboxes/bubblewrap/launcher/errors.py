"""Errors of the launcher."""


class BoxFailed(Exception):
    """bubblewrap could not make the sandbox; the message is its own."""
