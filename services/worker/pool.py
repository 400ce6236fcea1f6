"""The pool a worker belongs to: its engine, what it serves, and how much at a time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PoolModel:
    """A model with local weights."""

    name: str
    path: str
    engine_args: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Provider:
    """A server that speaks the OpenAI protocol."""

    name: str
    base_url: str
    api_key_env: str


@dataclass(frozen=True, slots=True)
class Pool:
    """It has either models of its own or a provider, any of whose models it serves."""

    name: str
    engine: str
    concurrency: int
    models: tuple[PoolModel, ...]
    provider: Provider | None

    @property
    def provider_name(self) -> str:
        return self.provider.name if self.provider else self.engine

    @property
    def model_names(self) -> tuple[str, ...]:
        return tuple(model.name for model in self.models)

    @property
    def completes_text(self) -> bool:
        """Whether a plain text is continued where the order leaves it open; a provider's models chat."""
        return self.provider is None
