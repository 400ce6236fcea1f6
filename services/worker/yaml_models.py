"""Reads the models that a pool lists: weights of their own, or LoRA adapters over those of another."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from services.worker.pool import PoolModel


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
