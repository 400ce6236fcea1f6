"""The pools file: which pools there are, what serves them, and which other names their models have."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypedDict, cast

import yaml

from proctor.values.providers.base_urls import is_http_address
from proctor.values.providers.errors import InvalidPools, UnknownPool
from proctor.values.providers.pool import (
    ConstrainedField,
    MaxTokensField,
    Pool,
    PoolModel,
    Provider,
    pool_serving,
)
from proctor.values.providers.rules import SCORING_METHODS
from proctor.values.scoring import ScoringMethod

MAX_MODEL_CHARACTERS = 512
_POOL_NAME = re.compile(r"[A-Za-z0-9_-]+")


@dataclass(frozen=True, slots=True)
class PoolsFile:
    """`aliases` are other names of models that the pools serve: name to "provider/name"."""

    pools: tuple[Pool, ...]
    aliases: Mapping[str, str] = field(default_factory=dict)


def parse_pools(text: str) -> PoolsFile:
    """The whole file; raises InvalidPools."""
    document = _document(text)
    pools = tuple(_parse_pool(entry) for entry in _entries(document))
    if not pools:
        raise InvalidPools("it has no list `pools`")
    return PoolsFile(pools, _aliases(document, pools))


def parse_pool(text: str, name: str) -> Pool:
    """One pool, whatever the others are like; raises InvalidPools and UnknownPool."""
    entries = _entries(_document(text))
    for entry in entries:
        if entry.get("name") == name:
            return _parse_pool(entry)
    raise UnknownPool(name, [str(entry.get("name")) for entry in entries])


def format_pools(file: PoolsFile) -> str:
    """The text that `parse_pools` reads back."""
    document: dict[str, object] = {"pools": [_pool_entry(pool) for pool in file.pools]}
    if file.aliases:
        document["aliases"] = dict(file.aliases)
    return yaml.safe_dump(document, sort_keys=False)


def _document(text: str) -> Mapping[str, Any]:
    try:
        document = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise InvalidPools(" ".join(str(error).split())) from error
    return document if isinstance(document, Mapping) else {}


def _entries(document: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    entries = document.get("pools")
    if not isinstance(entries, list) or not all(isinstance(entry, Mapping) for entry in entries):
        raise InvalidPools("it has no list `pools`")
    return entries


def _parse_pool(entry: Mapping[str, Any]) -> Pool:
    name = entry.get("name")
    try:
        pool = _read_pool(entry)
    except KeyError as error:
        raise InvalidPools(f"pool {name} has no {error}") from error
    except (AttributeError, TypeError, ValueError) as error:
        raise InvalidPools(f"pool {name}: {error}") from error
    problem = _problem(pool)
    if problem:
        raise InvalidPools(f"pool {name} {problem}")
    return pool


def _read_pool(entry: Mapping[str, Any]) -> Pool:
    engine = str(entry["engine"])
    if engine not in SCORING_METHODS:
        raise ValueError(f"names the engine {engine}; known: {', '.join(SCORING_METHODS)}")
    return Pool(
        name=str(entry["name"]),
        engine=engine,
        concurrency=int(entry["concurrency"]),
        models=_models(entry.get("models") or ()),
        provider=_provider(entry) if entry.get("provider") else None,
        scoring_methods=_scoring_methods(engine, entry),
    )


def _problem(pool: Pool) -> str:
    if not _POOL_NAME.fullmatch(pool.name):
        return "has a name that no NATS subject can carry; use letters, digits, - and _"
    if pool.concurrency < 1:
        return "has a concurrency below 1"
    if pool.engine == "vllm" and not pool.models:
        return "lists no models"
    if pool.engine != "vllm" and pool.provider is None:
        return "names no provider"
    if pool.provider is not None and not is_http_address(pool.provider.base_url):
        return "has a base_url that is not an http:// or https:// address"
    return ""


def _provider(entry: Mapping[str, Any]) -> Provider:
    return Provider(
        name=str(entry["provider"]),
        base_url=str(entry["base_url"]),
        api_key_env=str(entry.get("api_key_env") or ""),
        constrained_field=_constrained_field(entry),
        max_tokens_field=_max_tokens_field(entry),
    )


def _scoring_methods(engine: str, entry: Mapping[str, Any]) -> frozenset[ScoringMethod]:
    known = _known_methods(engine, entry)
    listed = entry.get("scoring_methods", known)
    is_list = isinstance(listed, Sequence) and not isinstance(listed, str)
    if not is_list or not all(method in tuple(ScoringMethod) for method in listed):
        raise ValueError(f"scoring_methods lists something else than {', '.join(ScoringMethod)}")
    methods = frozenset(ScoringMethod(method) for method in listed)
    if ScoringMethod.GENERATE not in methods:
        raise ValueError("scoring_methods leaves out generate, without which no text can be asked for")
    unknown = sorted(methods.difference(known))
    if unknown == [ScoringMethod.CONSTRAINED] and engine == "openai":
        fields = ", ".join(ConstrainedField)
        raise ValueError(
            f"scoring_methods lists constrained, but no constrained_field ({fields}) says how to ask for it"
        )
    if unknown:
        raise ValueError(
            f"scoring_methods lists {unknown[0]}, but the engine {engine} has {', '.join(known)}"
        )
    return methods


def _known_methods(engine: str, entry: Mapping[str, Any]) -> tuple[ScoringMethod, ...]:
    methods = SCORING_METHODS[engine]
    if engine == "openai" and _constrained_field(entry) is not None:
        return (*methods, ScoringMethod.CONSTRAINED)
    return methods


def _constrained_field(entry: Mapping[str, Any]) -> ConstrainedField | None:
    name = entry.get("constrained_field")
    if name is not None and name not in list(ConstrainedField):
        raise ValueError(f"constrained_field is {name}; known: {', '.join(ConstrainedField)}")
    return None if name is None else ConstrainedField(name)


def _max_tokens_field(entry: Mapping[str, Any]) -> MaxTokensField | None:
    name = entry.get("max_tokens_field")
    if name is None:
        return None
    if entry.get("engine") != "openai":
        raise ValueError(f"has a max_tokens_field, which the engine {entry.get('engine')} does not send")
    if name not in list(MaxTokensField):
        raise ValueError(f"max_tokens_field is {name}; known: {', '.join(MaxTokensField)}")
    return MaxTokensField(name)


def _models(entries: Sequence[Mapping[str, Any]]) -> tuple[PoolModel, ...]:
    names = [str(entry["name"]) for entry in entries]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice:
        raise ValueError(f"lists the model {twice} twice")
    # Whole models first: an adapter may stand before its base.
    whole = {str(entry["name"]): _whole(entry) for entry in entries if not entry.get("lora")}
    adapters = [_adapter(entry, whole) for entry in entries if entry.get("lora")]
    # Without adapters each model has an engine of its own, also beside another of the same weights.
    shared = {adapter.engine_key for adapter in adapters}
    for model in whole.values():
        key = _engine_key(model)
        if key in shared:
            whole[model.name] = replace(model, engine_key=key)
    by_name = whole | {adapter.name: adapter for adapter in adapters}
    return tuple(by_name[name] for name in names)


def _whole(entry: Mapping[str, Any]) -> PoolModel:
    name = str(entry["name"])
    if entry.get("base"):
        raise ValueError(f"gives the model {name} a base, which only an adapter (lora) has")
    arguments = dict(entry.get("engine_args") or {})
    return PoolModel(name, str(entry["path"]), arguments, **_parsers(entry))


class _Parsers(TypedDict, total=False):
    """vLLM's names of how a model writes more than its answer."""

    tool_parser: str
    reasoning_parser: str


def _parsers(entry: Mapping[str, Any]) -> _Parsers:
    """Those that the entry of a model names."""
    return cast("_Parsers", {name: str(entry[name]) for name in _Parsers.__annotations__ if entry.get(name)})


def _adapter(entry: Mapping[str, Any], whole: Mapping[str, PoolModel]) -> PoolModel:
    """`base` names a model of the pool, whose engine is shared, or a folder or hub id as `path` does."""
    name, lora, base = str(entry["name"]), str(entry["lora"]), str(entry.get("base") or "")
    if not base or entry.get("path"):
        raise ValueError(
            f"must say the base of the adapter {name} instead of a path: a model of the pool or its path"
        )
    arguments = dict(entry.get("engine_args") or {})
    if base not in whole:
        adapter = PoolModel(name, base, arguments, lora, **_parsers(entry))
    elif arguments:
        raise ValueError(f"gives the adapter {name} engine_args; they belong to its base {base}")
    else:
        adapter = replace(whole[base], name=name, lora=lora, **_parsers(entry))
    return replace(adapter, engine_key=_engine_key(adapter))


def _engine_key(model: PoolModel) -> str:
    """Equal where the same weights are served with the same arguments."""
    return json.dumps([model.path, model.engine_args], sort_keys=True, default=str)


def _aliases(document: Mapping[str, Any], pools: Sequence[Pool]) -> dict[str, str]:
    aliases = document.get("aliases") or {}
    if not isinstance(aliases, Mapping):
        raise InvalidPools("aliases is not a list of NAME: PROVIDER/MODEL")
    for alias, model in aliases.items():
        problem = _alias_problem(alias, model, pools)
        if problem:
            raise InvalidPools(f"the alias {alias!r} {problem}")
    return {str(alias): str(model) for alias, model in aliases.items()}


def _alias_problem(alias: object, model: object, pools: Sequence[Pool]) -> str:
    if not isinstance(alias, str) or not _is_model_name(alias):
        return f"is not a name of 1 to {MAX_MODEL_CHARACTERS} characters"
    if pool_serving(alias, pools) is not None:
        return "is the name of a model itself"
    if not isinstance(model, str) or pool_serving(model, pools) is None:
        return f"names {model}, which no pool serves"
    return ""


def _is_model_name(text: str) -> bool:
    return 0 < len(text) <= MAX_MODEL_CHARACTERS and text.isprintable() and text == text.strip()


def _pool_entry(pool: Pool) -> dict[str, object]:
    entry: dict[str, object] = {"name": pool.name, "engine": pool.engine, "concurrency": pool.concurrency}
    if pool.models:
        entry["models"] = [_model_entry(model) for model in pool.models]
    if pool.provider is None:
        return entry
    entry |= {
        "provider": pool.provider.name,
        "base_url": pool.provider.base_url,
        "api_key_env": pool.provider.api_key_env,
    }
    if pool.provider.constrained_field is not None:
        entry["constrained_field"] = str(pool.provider.constrained_field)
    if pool.provider.max_tokens_field is not None:
        entry["max_tokens_field"] = str(pool.provider.max_tokens_field)
    known = _known_methods(pool.engine, entry)
    if pool.scoring_methods != frozenset(known):
        entry["scoring_methods"] = [str(method) for method in known if method in pool.scoring_methods]
    return entry


def _model_entry(model: PoolModel) -> dict[str, object]:
    """An adapter names its base by path; the same arguments give it the same engine as before."""
    more: dict[str, object] = {"engine_args": dict(model.engine_args)} if model.engine_args else {}
    more |= {name: parser for name in _Parsers.__annotations__ if (parser := getattr(model, name))}
    if model.lora:
        return {"name": model.name, "lora": model.lora, "base": model.path, **more}
    return {"name": model.name, "path": model.path, **more}
