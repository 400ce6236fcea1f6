"""The pools file: which pools there are and what they serve."""

from collections.abc import Mapping
from pathlib import Path

import yaml

from services.scheduler.errors import InvalidPoolsFile
from services.scheduler.pools.pool import Pool

_NAME_MARKS = "-_"


def read_pools(file: Path) -> tuple[Pool, ...]:
    """Raises `InvalidPoolsFile`, which says what is wrong with it."""
    try:
        content = yaml.safe_load(file.read_text(encoding="utf-8"))
    except (OSError, yaml.YAMLError, UnicodeDecodeError) as error:
        raise InvalidPoolsFile(file=str(file), problem=str(error)) from error
    entries = content.get("pools") if isinstance(content, Mapping) else None
    if not isinstance(entries, list) or not entries:
        raise InvalidPoolsFile(file=str(file), problem="it has no list named pools")
    try:
        return tuple(_pool(entry) for entry in entries)
    except (KeyError, TypeError, ValueError) as error:
        problem = f"{error.args[0]} is missing" if isinstance(error, KeyError) else str(error)
        raise InvalidPoolsFile(file=str(file), problem=problem) from error


def _pool(entry: Mapping[str, object]) -> Pool:
    name = str(entry["name"])
    if not name or not all(letter.isalnum() or letter in _NAME_MARKS for letter in name):
        raise ValueError(f"the pool name {name!r} may only have letters, digits, - and _")
    models = entry.get("models") or []
    if not isinstance(models, list):
        raise TypeError(f"models of pool {name} is no list")
    pool = Pool(
        name=name,
        engine=str(entry["engine"]),
        concurrency=int(str(entry.get("concurrency", 64))),
        models=tuple(str(model["name"]) for model in models),
        provider=str(entry.get("provider") or ""),
    )
    if not pool.models and not pool.provider:
        raise ValueError(f"pool {name} has neither models nor a provider")
    return pool
