"""Reads the worker's pool and its models from the pools file."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

from services.worker.pools.errors import PoolsFileInvalid, UnknownPool
from services.worker.pools.pool import ConstrainedField, Pool, PoolModel, Provider


def read_models(entries: Sequence[Mapping[str, Any]]) -> tuple[PoolModel, ...]:
    """Raises ValueError or KeyError for an entry that cannot be used."""
    names = [str(entry["name"]) for entry in entries]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice:
        raise ValueError(f"lists the model {twice} twice")
    whole = {str(entry["name"]): _whole(entry) for entry in entries if not entry.get("lora")}
    adapters = [_adapter(entry, whole) for entry in entries if entry.get("lora")]
    keys = {adapter.engine_key for adapter in adapters}
    for model in whole.values():
        key = _engine_key(model)
        if key in keys:
            whole[model.name] = replace(model, engine_key=key)
    by_name = whole | {adapter.name: adapter for adapter in adapters}
    return tuple(by_name[name] for name in names)


def _whole(entry: Mapping[str, Any]) -> PoolModel:
    name = str(entry["name"])
    if entry.get("base"):
        raise ValueError(f"gives the model {name} a base, which only an adapter (lora) has")
    return PoolModel(name, str(entry["path"]), dict(entry.get("engine_args") or {}))


def _adapter(entry: Mapping[str, Any], whole: Mapping[str, PoolModel]) -> PoolModel:
    """`base` names a model of the pool, whose engine is shared, or a folder or hub id as `path` does."""
    name, lora, base = str(entry["name"]), str(entry["lora"]), str(entry.get("base") or "")
    if not base or entry.get("path"):
        raise ValueError(
            f"must say the base of the adapter {name} instead of a path: a model of the pool or its path"
        )
    arguments = dict(entry.get("engine_args") or {})
    if base not in whole:
        adapter = PoolModel(name, base, arguments, lora)
    elif arguments:
        raise ValueError(f"gives the adapter {name} engine_args; they belong to its base {base}")
    else:
        adapter = replace(whole[base], name=name, lora=lora)
    return replace(adapter, engine_key=_engine_key(adapter))


def _engine_key(model: PoolModel) -> str:
    """Equal where the same weights are served with the same arguments."""
    return json.dumps([model.path, model.engine_args], sort_keys=True, default=str)


METHODS = ("loglikelihood", "generate", "constrained")
# A server behind the OpenAI protocol constrains an answer where a constrained_field says how.
METHODS_OF = {
    "vllm": METHODS,
    "openai": ("loglikelihood", "generate"),
    "ollama": ("generate", "constrained"),
    "gemini": ("generate", "constrained"),
    "anthropic": ("generate",),
}

_FIELDS = ", ".join(ConstrainedField)
_NAME = re.compile(r"[A-Za-z0-9_-]+")


def read_pool(path: Path, name: str) -> Pool:
    """The pool of that name; one clear error where there is none or it cannot be used."""
    entries = _read_entries(path)
    for entry in entries:
        if entry.get("name") == name:
            return _pool(path, entry)
    known = ", ".join(str(entry.get("name")) for entry in entries) or "none"
    raise UnknownPool(path=str(path), pool=name, known=known)


def _read_entries(path: Path) -> list[dict[str, Any]]:
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise PoolsFileInvalid(path=str(path), problem=error.strerror or "it cannot be read") from error
    except yaml.YAMLError as error:
        raise PoolsFileInvalid(path=str(path), problem=str(error).replace("\n", " ")) from error
    entries = content.get("pools") if isinstance(content, dict) else None
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise PoolsFileInvalid(path=str(path), problem="it has no list `pools`")
    return entries


def _pool(path: Path, entry: dict[str, Any]) -> Pool:
    try:
        methods = _methods(entry)
        pool = Pool(
            name=str(entry["name"]),
            engine=str(entry["engine"]),
            concurrency=int(entry["concurrency"]),
            models=read_models(entry.get("models") or ()),
            provider=_provider(entry, methods) if entry.get("provider") else None,
        )
    except KeyError as error:
        raise PoolsFileInvalid(path=str(path), problem=f"pool {entry['name']} has no {error}") from error
    except (TypeError, ValueError) as error:
        raise PoolsFileInvalid(path=str(path), problem=f"pool {entry['name']}: {error}") from error
    problem = _problem(pool)
    if problem:
        raise PoolsFileInvalid(path=str(path), problem=f"pool {pool.name} {problem}")
    return pool


def _problem(pool: Pool) -> str:
    if not _NAME.fullmatch(pool.name):
        return "has a name that no NATS subject can carry; use letters, digits, - and _"
    if pool.engine not in METHODS_OF:
        return f"names the engine {pool.engine}; known: {', '.join(METHODS_OF)}"
    if pool.concurrency < 1:
        return "has a concurrency below 1"
    if pool.engine == "vllm" and not pool.models:
        return "lists no models"
    if pool.engine != "vllm" and pool.provider is None:
        return "names no provider"
    if pool.provider is not None and not _is_http_address(pool.provider.base_url):
        return "has a base_url that is no http:// or https:// address"
    return ""


def _is_http_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # a port or an address of version 6 that is none
        return False


def _provider(entry: dict[str, Any], methods: Sequence[str]) -> Provider:
    return Provider(
        name=str(entry["provider"]),
        base_url=str(entry["base_url"]),
        api_key_env=str(entry.get("api_key_env") or ""),
        has_loglikelihood="loglikelihood" in methods,
        constrained_field=_constrained_field(entry) if "constrained" in methods else None,
    )


def _methods(entry: dict[str, Any]) -> Sequence[str]:
    """The ways to score choices that the pool's server has; the scheduler reads the same of the file."""
    known = _known_methods(entry)
    methods = entry.get("can", known)
    if not isinstance(methods, Sequence) or not all(method in METHODS for method in methods):
        raise ValueError(f"can lists something else than {', '.join(METHODS)}")
    if "generate" not in methods:
        raise ValueError("can leaves out generate, without which no text can be asked for")
    unknown = [method for method in methods if method not in known]
    if unknown == ["constrained"] and entry["engine"] == "openai":
        raise ValueError(
            f"can lists constrained, but no constrained_field ({_FIELDS}) says how to ask for it"
        )
    if unknown:
        raise ValueError(f"can lists {unknown[0]}, but the engine {entry['engine']} has {', '.join(known)}")
    return methods


def _known_methods(entry: dict[str, Any]) -> tuple[str, ...]:
    of_engine = METHODS_OF.get(str(entry["engine"]), METHODS)
    is_told_how = entry["engine"] == "openai" and _constrained_field(entry) is not None
    return (*of_engine, "constrained") if is_told_how else of_engine


def _constrained_field(entry: dict[str, Any]) -> ConstrainedField | None:
    name = entry.get("constrained_field")
    if name is not None and name not in list(ConstrainedField):
        raise ValueError(f"constrained_field is {name}; known: {_FIELDS}")
    return None if name is None else ConstrainedField(name)
