"""The pools file, written and read back: which pools there are, for the scheduler and the workers."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from proctor.stack.options import Pool, RemotePool, ServedModel, VllmPool


def write_pools_file(path: Path, pools: tuple[Pool, ...], aliases: Mapping[str, str] | None = None) -> Path:
    document: dict[str, object] = {"pools": [_pool_entry(pool) for pool in pools]}
    if aliases:
        document["aliases"] = dict(aliases)
    draft = path.with_suffix(".new")
    draft.write_text(yaml.safe_dump(document, sort_keys=False), encoding="utf-8")
    draft.replace(path)
    return path


def read_pools_file(path: Path) -> tuple[Pool, ...]:
    """What `write_pools_file` wrote, but for the pythons, which it does not keep."""
    document = yaml.safe_load(path.read_text(encoding="utf-8"))
    return tuple(_pool(entry) for entry in document["pools"])


def _pool(entry: dict[str, Any]) -> Pool:
    if entry["engine"] == "vllm":
        models = tuple(ServedModel(**model) for model in entry["models"])
        return VllmPool(models, name=entry["name"], concurrency=entry["concurrency"])
    return RemotePool(**{**entry, "can": tuple(entry.get("can", ()))})


def _pool_entry(pool: Pool) -> dict[str, object]:
    match pool:
        case VllmPool():
            return {
                "name": pool.name,
                "engine": "vllm",
                "concurrency": pool.concurrency,
                "models": [_model_entry(model) for model in pool.models],
            }
        case RemotePool():
            return {
                "name": pool.name,
                "engine": pool.engine,
                "concurrency": pool.concurrency,
                "provider": pool.provider,
                "base_url": pool.base_url,
                "api_key_env": pool.api_key_env,
                **_abilities(pool),
            }


def _abilities(pool: RemotePool) -> dict[str, object]:
    """What is not known of a server stays out of the file."""
    known: dict[str, object] = {"can": list(pool.can), "constrained_field": pool.constrained_field}
    return {name: value for name, value in known.items() if value}


def _model_entry(model: ServedModel) -> dict[str, object]:
    arguments = dict(model.engine_args)
    if not model.lora:
        return {"name": model.name, "path": model.path, "engine_args": arguments}
    entry: dict[str, object] = {"name": model.name, "lora": model.lora, "base": model.base}
    return {**entry, "engine_args": arguments} if arguments else entry
