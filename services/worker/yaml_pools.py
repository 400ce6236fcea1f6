"""Reads the worker's pool from the pools file."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

from services.worker.errors import PoolsFileInvalid, UnknownPool
from services.worker.pool import ConstrainedField, Pool, Provider
from services.worker.yaml_models import read_models

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
