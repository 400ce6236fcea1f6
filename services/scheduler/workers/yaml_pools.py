"""The pools file: which pools there are and what they serve."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import yaml

from services.scheduler.runs.orders.run_order import MAX_MODEL_LETTERS, ScoringMethod
from services.scheduler.workers.base_urls import NoBaseUrl, parse_allowed
from services.scheduler.workers.errors import InvalidAllowedBaseUrls, InvalidPoolsFile
from services.scheduler.workers.pool import METHODS_OF, Aliases, Pool, pool_serving

_NAME_MARKS = "-_"


def read_pools(file: Path, allowed_base_urls: str = "") -> tuple[Pool, ...]:
    """Raises `InvalidPoolsFile`, which says what is wrong with it.

    Servers behind the OpenAI protocol can stand in for each other where an operator allows them.
    """
    try:
        allowed = parse_allowed(allowed_base_urls)
    except NoBaseUrl as error:
        raise InvalidAllowedBaseUrls(problem=str(error)) from error
    return tuple(replace(pool, may_ask=allowed) if pool.engine == "openai" else pool for pool in _read(file))


def read_aliases(file: Path, pools: Sequence[Pool]) -> Aliases:
    """Other names of models that the pools serve. Raises `InvalidPoolsFile`."""
    aliases = _content(file).get("aliases") or {}
    if not isinstance(aliases, Mapping):
        raise InvalidPoolsFile(file=str(file), problem="aliases is no list of NAME: PROVIDER/MODEL")
    for alias, model in aliases.items():
        problem = _alias_problem(alias, model, pools)
        if problem:
            raise InvalidPoolsFile(file=str(file), problem=f"the alias {alias!r} {problem}")
    return {str(alias): str(model) for alias, model in aliases.items()}


def _alias_problem(alias: object, model: object, pools: Sequence[Pool]) -> str:
    if not isinstance(alias, str) or not _is_name(alias):
        return f"is no name of 1 to {MAX_MODEL_LETTERS} letters"
    if pool_serving(alias, pools) is not None:
        return "is the name of a model itself"
    if not isinstance(model, str) or pool_serving(model, pools) is None:
        return f"names {model}, which no pool serves"
    return ""


def _is_name(text: str) -> bool:
    return 0 < len(text) <= MAX_MODEL_LETTERS and text.isprintable() and text == text.strip()


def _content(file: Path) -> Mapping[str, object]:
    try:
        content = yaml.safe_load(file.read_text(encoding="utf-8"))
    except (OSError, yaml.YAMLError, UnicodeDecodeError) as error:
        raise InvalidPoolsFile(file=str(file), problem=str(error)) from error
    return content if isinstance(content, Mapping) else {}


def _read(file: Path) -> tuple[Pool, ...]:
    entries = _content(file).get("pools")
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
    engine = str(entry["engine"])
    if engine not in METHODS_OF:
        raise ValueError(f"pool {name} names the engine {engine}; known: {', '.join(METHODS_OF)}")
    pool = Pool(
        name=name,
        engine=engine,
        concurrency=int(str(entry.get("concurrency", 64))),
        models=tuple(str(model["name"]) for model in models),
        provider=str(entry.get("provider") or ""),
        can=_can(name, engine, entry),
        base_url=str(entry.get("base_url") or ""),
    )
    if not pool.models and not pool.provider:
        raise ValueError(f"pool {name} has neither models nor a provider")
    return pool


def _can(pool: str, engine: str, entry: Mapping[str, object]) -> frozenset[ScoringMethod]:
    """How the pool's server can score choices; by which field it constrains, only its workers know."""
    known = _known_methods(engine, entry)
    methods = entry.get("can", tuple(known))
    if not isinstance(methods, Sequence) or not all(method in tuple(ScoringMethod) for method in methods):
        raise ValueError(f"can of pool {pool} lists something else than {', '.join(ScoringMethod)}")
    if ScoringMethod.GENERATE not in methods:
        raise ValueError(f"can of pool {pool} leaves out generate, without which no text can be asked for")
    unknown = [ScoringMethod(method) for method in methods if method not in known]
    if unknown == [ScoringMethod.CONSTRAINED] and engine == "openai":
        raise ValueError(f"can of pool {pool} lists constrained, but constrained_field is missing")
    if unknown:
        raise ValueError(f"can of pool {pool} lists {unknown[0]}, which the engine {engine} cannot do")
    return frozenset(ScoringMethod(method) for method in methods)


def _known_methods(engine: str, entry: Mapping[str, object]) -> frozenset[ScoringMethod]:
    is_told_how = engine == "openai" and entry.get("constrained_field") is not None
    return METHODS_OF[engine] | ({ScoringMethod.CONSTRAINED} if is_told_how else frozenset())
