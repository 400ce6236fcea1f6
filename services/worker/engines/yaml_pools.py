"""Reads the worker's pool from the pools file, and its API key from the environment or a mounted secret."""

from collections.abc import Mapping
from pathlib import Path

from proctor.values.providers import pools_file as pools
from proctor.values.providers.errors import UnknownPool
from proctor.values.providers.pool import Pool
from services.worker.engines.errors import CannotStart

# Servers refuse headers beyond 8 to 16 KiB.
_MAX_KEY_CHARACTERS = 16 * 1024


def read_pool(path: Path, name: str) -> Pool:
    """The pool of that name; raises CannotStart."""
    try:
        return pools.parse_pool(path.read_text(encoding="utf-8"), name)
    except UnknownPool as error:
        known = ", ".join(error.known) or "none"
        problem = f"has no pool {name}; it has: {known}. Set PROCTOR_WORKER_POOL to one of them."
    except (OSError, ValueError) as error:
        why = (error.strerror or "it cannot be read") if isinstance(error, OSError) else str(error)
        problem = f"cannot be used: {why}. Correct it or set PROCTOR_POOLS_FILE."
    raise CannotStart(problem=f"The pools file {path} {problem}")


def read_key(variable: str, environ: Mapping[str, str]) -> str | None:
    """The key in the variable, else in the file that `<variable>_FILE` names; None where neither is set."""
    if not variable:
        return None
    # A mounted secret often ends in a line break, which no header may hold.
    key = environ.get(variable, "").strip() or _key_in_file(f"{variable}_FILE", environ)
    if key and not (key.isascii() and key.isprintable() and len(key) <= _MAX_KEY_CHARACTERS):
        problem = "has characters that no request can carry: it must be one line of plain ASCII."
        raise CannotStart(problem=f"The key of {variable} {problem}")
    return key or None


def _key_in_file(variable: str, environ: Mapping[str, str]) -> str:
    path = environ.get(variable, "").strip()
    if not path:
        return ""
    try:
        return Path(path).read_bytes()[: 2 * _MAX_KEY_CHARACTERS].decode("utf-8", "replace").strip()
    except OSError as error:
        problem = f"cannot be used: {error.strerror or 'it cannot be read'}. Mount it or unset that."
        raise CannotStart(problem=f"The file {path} that {variable} names for a key {problem}") from error
