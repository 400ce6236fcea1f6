"""Keys of providers, from the environment or from the files of mounted secrets. Read once, at the start."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from services.worker.pools.errors import KeyFileUnreadable, KeyUnusable

_LONGEST_KEY = 16 * 1024


def read_key(variable: str, environ: Mapping[str, str]) -> str | None:
    """The key in the variable, else in the file that `<variable>_FILE` names; None where neither is set."""
    if not variable:
        return None
    # A mounted secret often ends in a line break, which no header may hold.
    key = environ.get(variable, "").strip() or _key_in_file(f"{variable}_FILE", environ)
    if key and not (key.isascii() and key.isprintable() and len(key) <= _LONGEST_KEY):
        raise KeyUnusable(variable=variable)
    return key or None


def _key_in_file(variable: str, environ: Mapping[str, str]) -> str:
    path = environ.get(variable, "").strip()
    if not path:
        return ""
    try:
        return Path(path).read_bytes()[: 2 * _LONGEST_KEY].decode("utf-8", "replace").strip()
    except OSError as error:
        problem = error.strerror or "it cannot be read"
        raise KeyFileUnreadable(variable=variable, path=path, problem=problem) from error
