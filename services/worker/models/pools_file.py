"""Reads the worker's pool from the pools file, and its API key from the environment or a mounted secret."""

from collections.abc import Mapping
from pathlib import Path

from proctor.values import pools
from services.common.errors import DomainError, ErrorKind


class WorkerError(DomainError):
    """The worker cannot go on."""


class PoolsFileInvalid(WorkerError):
    """The pools file {path} cannot be used: {problem}. Correct it or set PROCTOR_POOLS_FILE."""

    kind = ErrorKind.INVALID
    reason = "INVALID_PARAMETER"


class UnknownPool(WorkerError):
    """The pools file {path} has no pool {pool}; it has: {known}. Set PROCTOR_WORKER_POOL to one of them."""

    kind = ErrorKind.INVALID
    reason = "INVALID_PARAMETER"


class KeyFileUnreadable(WorkerError):
    """The file {path} that {variable} names for a key cannot be used: {problem}. Mount it or unset that."""

    kind = ErrorKind.INVALID
    reason = "INVALID_PARAMETER"


class KeyUnusable(WorkerError):
    """The key of {variable} has letters that no request can carry: it must be one line of plain ASCII."""

    kind = ErrorKind.INVALID
    reason = "INVALID_PARAMETER"


_LONGEST_KEY = 16 * 1024


def read_pool(path: Path, name: str) -> pools.Pool:
    """The pool of that name; raises PoolsFileInvalid and UnknownPool."""
    try:
        return pools.parse_pool(path.read_text(encoding="utf-8"), name)
    except pools.UnknownPool as error:
        known = ", ".join(error.known) or "none"
        raise UnknownPool(path=str(path), pool=name, known=known) from error
    except OSError as error:
        raise PoolsFileInvalid(path=str(path), problem=error.strerror or "it cannot be read") from error
    except ValueError as error:
        raise PoolsFileInvalid(path=str(path), problem=str(error)) from error


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
